/* SPDX-License-Identifier: MIT */
/* passes/diff/gates.c - see gates.h. */
#include "passes/diff/gates.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kit/amount.h"
#include "model/run.h"
#include "tidemark/tidemark.h"

enum { MAX_GATE_BYTES = 96 };

static bool find_category(const char *name, uint8_t *ret)
{
    for (unsigned i = 0; i <= TIDEMARK_KV_CACHE; i++)
        if (strcmp(tmk_category_name((uint8_t)i), name) == 0) {
            *ret = (uint8_t)i;
            return true;
        }
    return false;
}

static bool find_what(const char *name, struct tmk_gate *g)
{
    static const struct {
        const char *name;
        enum tmk_gate_kind kind;
    } names[] = {{"peak", TMK_GATE_ALLOCATED},
                 {"allocated", TMK_GATE_ALLOCATED},
                 {"reserved", TMK_GATE_RESERVED},
                 {"leak", TMK_GATE_LEAK}};
    for (size_t i = 0; i < TMK_N(names); i++)
        if (strcmp(names[i].name, name) == 0) {
            g->kind = names[i].kind;
            return true;
        }
    g->kind = TMK_GATE_CATEGORY;
    return find_category(name, &g->category);
}

/* Cut blanks off both ends; writes to `text`. */
static char *trim_blanks(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    char *end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return text;
}

/* Parse "5%", "2.5 %", or a size; writes to `text`. */
static bool parse_limit(char *text, struct tmk_gate *g)
{
    size_t n = strlen(text);
    g->is_percent = n > 0 && text[n - 1] == '%';
    if (!g->is_percent)
        return tmk_size_parse(text, &g->bytes) == 0;
    text[n - 1] = '\0';
    text = trim_blanks(text);
    char *end;
    g->percent = strtod(text, &end);
    return isdigit((unsigned char)text[0]) && *end == '\0' && isfinite(g->percent);
}

int tmk_gate_parse(const char *text, struct tmk_gate *ret, struct tmk_error *err)
{
    char copy[MAX_GATE_BYTES];
    struct tmk_gate g = {.text = text};
    if (strlen(text) >= sizeof copy)
        return tmk_fail(err, TMK_EINVAL, "a gate is short, as in 'peak>5%%'");
    char *sign = strchr(strcpy(copy, text), '>');
    if (!sign)
        return tmk_fail(err, TMK_EINVAL,
                        "'%s' has no '>': a gate is a name, > and a limit, as in 'peak>5%%'", text);
    *sign++ = '\0';
    g.or_equal = *sign == '=';
    sign += g.or_equal;
    const char *what = trim_blanks(copy);
    if (!find_what(what, &g))
        return tmk_fail(err, TMK_EINVAL,
                        "'%s': '%s' is not known; there are peak, allocated, reserved, leak and "
                        "the categories (activation, gradient ...)",
                        text, what);
    if (!parse_limit(trim_blanks(sign), &g))
        return tmk_fail(err, TMK_EINVAL,
                        "'%s': the limit is a percentage (5%%) or a size (1GiB, 0)", text);
    if (g.kind == TMK_GATE_LEAK && g.is_percent)
        return tmk_fail(err, TMK_EINVAL,
                        "'%s': a leak has a size a step, not a percentage; try leak>0", text);
    *ret = g;
    return 0;
}

/* True for more than the limit, or as much where that counts. */
static bool is_over_limit(const struct tmk_gate *g, double value, double limit)
{
    return g->or_equal ? value >= limit : value > limit;
}

bool tmk_gate_passes(const struct tmk_gate *g, const struct tmk_gate_measure *m)
{
    bool is_leak = g->kind == TMK_GATE_LEAK;
    if (!m->known[1] || (!is_leak && !m->known[0]))
        return false;
    uint64_t a = is_leak ? 0 : m->bytes[0], b = m->bytes[1];
    if (b < a)
        return true;
    if (!g->is_percent)
        return g->or_equal ? b - a < g->bytes : b - a <= g->bytes;
    if (a == 0) /* no percentage of nothing: any increase is over every limit */
        return b == 0 && !is_over_limit(g, 0, g->percent);
    return !is_over_limit(g, 100.0 * (double)(b - a), g->percent * (double)a);
}
