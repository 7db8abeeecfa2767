/* SPDX-License-Identifier: MIT */
/* sweep/params.c - see params.h. */
#include "sweep/params.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/arena.h"

/* Names with a TIDEMARK_ variable that has a meaning already, and words of constraints. */
static const char *const taken[] = {
    "run",           "ranks",      "max_size", "cpu_tensors", "native",  "no_stacks", "no_modules",
    "no_categories", "no_symbols", "off",      "lib",         "library", "ring_dir",  "debug_dir",
    "components",    "program",    "repeat",   "cell",        "and",     "or",        "not",
    "scan",          "proc_dir",   "sys_dir",  "step_at",
};

enum { MAX_NUMBER_BYTES = 40 };

/* ---- values as they are read ---- */

struct value_list { /* grows in the arena by doubling, which wastes little */
    struct tmk_arena *arena;
    const char **rows;
    uint32_t n, room;
};

static int add_param_value(struct value_list *v, const char *text, size_t n_text,
                           struct tmk_error *err)
{
    if (n_text == 0)
        return tmk_fail(err, TMK_EINVAL, "a value is empty");
    if (v->n == TMK_SWEEP_MAX_VALUES)
        return tmk_fail(err, TMK_EINVAL, "there are more than %d values",
                        (int)TMK_SWEEP_MAX_VALUES);
    if (v->n == v->room) {
        uint32_t room = v->room ? 2 * v->room : 16;
        const char **more = tmk_arena_take(v->arena, room * sizeof *more);
        if (!more)
            return TMK_ENOMEM;
        if (v->n > 0)
            memcpy(more, v->rows, v->n * sizeof *more);
        v->rows = more;
        v->room = room;
    }
    v->rows[v->n] = tmk_arena_text(v->arena, text, n_text);
    return v->rows[v->n++] ? 0 : TMK_ENOMEM;
}

bool tmk_param_number(const char *text, double *ret)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) && !(text[0] && strchr("+-.", text[0])))
        return false; /* refuses blanks, "inf" and "nan" */
    double number = strtod(text, &end);
    if (end == text || *end || !isfinite(number) || strpbrk(text, "xX"))
        return false;
    *ret = number;
    return true;
}

static bool text_number(const char *text, size_t n, double *ret)
{
    char copy[MAX_NUMBER_BYTES];
    if (n == 0 || n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return tmk_param_number(copy, ret);
}

/* ---- ranges ---- */

struct value_range {
    double from, to, step;
    bool multiplies;
};

/* Parse "128..1024", "128..1024..128" or "128..1024*2". False: it is no range. */
static bool read_range(const char *text, size_t n, struct value_range *ret)
{
    struct value_range r = {.step = 1};
    const char *end = text + n, *dots = memmem(text, n, "..", 2);
    if (!dots || !text_number(text, (size_t)(dots - text), &r.from))
        return false;
    const char *to = dots + 2, *behind = memmem(to, (size_t)(end - to), "..", 2);
    const char *star = memchr(to, '*', (size_t)(end - to));
    const char *to_end = behind ? behind : star ? star : end;
    const char *step = behind ? behind + 2 : star ? star + 1 : end;
    r.multiplies = !behind && star;
    if (!text_number(to, (size_t)(to_end - to), &r.to))
        return false;
    if (step < end && !text_number(step, (size_t)(end - step), &r.step))
        return false;
    *ret = r;
    return to_end == end || step < end;
}

static int check_range(const struct value_range *r, const char *text, int n, struct tmk_error *err)
{
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", n, text);
    if (r->to < r->from)
        return tmk_fail(err, TMK_EINVAL, "'%s' goes down; write the smaller end first", shown);
    if (r->multiplies && (r->step <= 1 || r->from <= 0))
        return tmk_fail(err, TMK_EINVAL, "'%s': a factor is above 1, and its start above 0", shown);
    if (!r->multiplies && r->step <= 0)
        return tmk_fail(err, TMK_EINVAL, "'%s': a step is above 0", shown);
    return 0;
}

/* Multiply the steps rather than add them up, so that 0.1..0.5..0.1 has five values. */
static double value_at(const struct value_range *r, uint32_t i)
{
    return r->multiplies ? r->from * pow(r->step, i) : r->from + r->step * i;
}

static int add_value_range(struct value_list *v, const struct value_range *r, struct tmk_error *err)
{
    double slack = 1e-9 * (fabs(r->to) + fabs(r->step));
    for (uint32_t i = 0; value_at(r, i) <= r->to + slack; i++) {
        char text[MAX_NUMBER_BYTES];
        int n = snprintf(text, sizeof text, "%.12g", value_at(r, i));
        int rc = add_param_value(v, text, (size_t)n, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int add_value_item(struct value_list *v, const char *text, size_t n, struct tmk_error *err)
{
    struct value_range r;
    if (!read_range(text, n, &r))
        return add_param_value(v, text, n, err);
    int rc = check_range(&r, text, (int)n, err);
    return rc < 0 ? rc : add_value_range(v, &r, err);
}

/* ---- a parameter ---- */

static int check_name(const char *name, struct tmk_error *err)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (n == 0 || name[n] || isdigit((unsigned char)name[0]) || n >= TMK_SWEEP_MAX_NAME)
        return tmk_fail(err, TMK_EINVAL,
                        "'%s' is no name of a parameter: letters, digits and _, as in seq=128,256",
                        name);
    for (size_t i = 0; i < TMK_N(taken); i++)
        if (strcasecmp(name, taken[i]) == 0)
            return tmk_fail(err, TMK_EINVAL,
                            "a parameter cannot be called '%s', tidemark has a "
                            "meaning for that; use another name",
                            name);
    return 0;
}

static int check_twice(const struct tmk_sweep_param *p, struct tmk_error *err)
{
    for (uint32_t i = 0; i < p->n_values; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(p->values[i], p->values[j]) == 0)
                return tmk_fail(err, TMK_EINVAL, "%s has the value '%s' twice", p->name,
                                p->values[i]);
    return 0;
}

/* Set the numbers, if all values are numbers. */
static int read_param_numbers(struct tmk_sweep_param *p, struct tmk_arena *a)
{
    double *numbers = tmk_arena_take(a, p->n_values * sizeof *numbers);
    if (!numbers)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < p->n_values; i++)
        if (!tmk_param_number(p->values[i], &numbers[i]))
            return 0;
    p->numbers = numbers;
    return 0;
}

static int finish_param(const struct value_list *v, const char *name, struct tmk_sweep_param *ret,
                        struct tmk_error *err)
{
    struct tmk_sweep_param p = {.name = name, .values = v->rows, .n_values = v->n};
    if (p.n_values == 0)
        return tmk_fail(err, TMK_EINVAL, "%s has no values", name);
    int rc = check_twice(&p, err);
    if (rc == 0)
        rc = read_param_numbers(&p, v->arena);
    if (rc == 0)
        *ret = p;
    return rc;
}

int tmk_param_parse(const char *text, struct tmk_arena *a, struct tmk_sweep_param *ret,
                    struct tmk_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals)
        return tmk_fail(err, TMK_EINVAL, "'%s' has no '=': a parameter is NAME=VALUE,VALUE...",
                        text);
    const char *name = tmk_arena_text(a, text, (size_t)(equals - text));
    struct value_list v = {.arena = a};
    int rc = name ? check_name(name, err) : TMK_ENOMEM;
    for (const char *at = equals + 1; rc == 0; at++) {
        size_t n = strcspn(at, ",");
        rc = add_value_item(&v, at, n, err);
        at += n;
        if (!*at)
            break;
    }
    return rc < 0 ? rc : finish_param(&v, name, ret, err);
}

int tmk_param_make(const char *name, const char *const *values, uint32_t n, struct tmk_arena *a,
                   struct tmk_sweep_param *ret, struct tmk_error *err)
{
    const char *copy = tmk_arena_text(a, name, strlen(name));
    struct value_list v = {.arena = a};
    int rc = copy ? check_name(copy, err) : TMK_ENOMEM;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = add_param_value(&v, values[i], strlen(values[i]), err);
    return rc < 0 ? rc : finish_param(&v, copy, ret, err);
}

/* ---- all of them ---- */

int tmk_params_check(const struct tmk_sweep_param *params, uint32_t n, struct tmk_error *err)
{
    if (n > TMK_SWEEP_MAX_PARAMS)
        return tmk_fail(err, TMK_EINVAL, "there are more than %d parameters",
                        (int)TMK_SWEEP_MAX_PARAMS);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcasecmp(params[i].name, params[j].name) == 0)
                return tmk_fail(err, TMK_EINVAL,
                                "there are two parameters %s; give all values at once: %s=1,2,3",
                                params[i].name, params[i].name);
    return 0;
}

int tmk_params_n_cells(const struct tmk_sweep_param *params, uint32_t n, uint32_t n_repeats,
                       uint32_t *ret, struct tmk_error *err)
{
    uint64_t cells = n_repeats;
    for (uint32_t i = 0; i < n && cells <= TMK_SWEEP_MAX_CELLS; i++)
        cells *= params[i].n_values;
    if (cells == 0 || cells > TMK_SWEEP_MAX_CELLS)
        return tmk_fail(err, TMK_EINVAL, "that is more than %d configurations; give fewer values",
                        (int)TMK_SWEEP_MAX_CELLS);
    *ret = (uint32_t)cells;
    return 0;
}

void tmk_params_choice(const struct tmk_sweep_param *params, uint32_t n, uint32_t number,
                       uint32_t *ret_choice)
{
    for (uint32_t i = n; i-- > 0; number /= params[i].n_values)
        ret_choice[i] = number % params[i].n_values;
}

int tmk_params_find(const struct tmk_sweep_param *params, uint32_t n, const char *name,
                    size_t n_name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strlen(params[i].name) == n_name && memcmp(params[i].name, name, n_name) == 0)
            return (int)i;
    return -1;
}
