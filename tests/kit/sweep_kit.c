/* SPDX-License-Identifier: MIT */
/* sweep_kit.c - see sweep_kit.h. Without memory the test ends by the null pointer. */
#include "sweep_kit.h"

#include <stdlib.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/arena.h"

static void *take(struct tmk_results *r, size_t n)
{
    void *p = tmk_arena_take(r->arena, n);
    if (!p)
        abort();
    return p;
}

static void read_param(struct tmk_results *r, const char *text, struct tmk_sweep_param *ret)
{
    char *copy = tmk_arena_text(r->arena, text, strlen(text)), *rest = copy;
    bool all_numbers = true;
    ret->name = strsep(&rest, "=");
    ret->values = take(r, strlen(text) * sizeof *ret->values);
    ret->numbers = take(r, strlen(text) * sizeof *ret->numbers);
    for (char *value; (value = strsep(&rest, ","));) {
        char *end;
        ret->numbers[ret->n_values] = strtod(value, &end);
        all_numbers = all_numbers && *value && !*end;
        ret->values[ret->n_values++] = value;
    }
    if (!all_numbers)
        ret->numbers = NULL;
}

static void make_cell(struct tmk_results *r, uint32_t i)
{
    struct tmk_cell *c = &r->cells[i];
    uint32_t rest = i / r->n_repeats;
    *c = (struct tmk_cell){.repeat = i % r->n_repeats,
                           .capacity = TMK_BYTES_UNKNOWN,
                           .peak_allocated = TMK_BYTES_UNKNOWN,
                           .peak_reserved = TMK_BYTES_UNKNOWN,
                           .peak_device = TMK_BYTES_UNKNOWN,
                           .peak_step = -1};
    c->choice = take(r, r->n_params * sizeof *c->choice);
    for (uint32_t p = r->n_params; p-- > 0;) {
        c->choice[p] = rest % r->params[p].n_values;
        rest /= r->params[p].n_values;
    }
}

struct tmk_results *kit_sweep_open(const char *const *params, uint32_t n_params, uint32_t n_repeats)
{
    struct tmk_results *r = calloc(1, sizeof *r);
    r->arena = calloc(1, sizeof *r->arena);
    r->title = "made up";
    r->n_params = n_params;
    r->n_repeats = n_repeats;
    r->n_cells = n_repeats;
    r->params = take(r, n_params * sizeof *r->params);
    for (uint32_t p = 0; p < n_params; p++) {
        read_param(r, params[p], &r->params[p]);
        r->n_cells *= r->params[p].n_values;
    }
    r->cells = take(r, r->n_cells * sizeof *r->cells);
    for (uint32_t i = 0; i < r->n_cells; i++)
        make_cell(r, i);
    return r;
}

void kit_sweep_close(struct tmk_results *r)
{
    tmk_arena_fini(r->arena);
    free(r->arena);
    free(r);
}

double kit_sweep_number(const struct tmk_results *r, uint32_t c, uint32_t p)
{
    return r->params[p].numbers[r->cells[c].choice[p]];
}

struct tmk_shares kit_sweep_shares(struct tmk_results *r, const char *const *keys,
                                   const uint64_t *bytes)
{
    struct tmk_shares s = {0};
    while (keys[s.n])
        s.n++;
    s.rows = take(r, (s.n + 1) * sizeof *s.rows);
    for (uint32_t i = 0; i < s.n; i++)
        s.rows[i] = (struct tmk_share){.key = keys[i], .bytes = bytes[i]};
    return s;
}

void kit_sweep_done(struct tmk_results *r, uint32_t c, double parameter, double activation)
{
    struct tmk_cell *cell = &r->cells[c];
    const uint64_t bytes[] = {(uint64_t)parameter, (uint64_t)activation};
    cell->outcome = TMK_CELL_DONE;
    cell->categories =
        kit_sweep_shares(r, (const char *[]){"parameter", "activation", NULL}, bytes);
    cell->peak_allocated = bytes[0] + bytes[1];
    cell->peak_reserved = cell->peak_allocated;
}
