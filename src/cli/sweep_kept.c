/* SPDX-License-Identifier: MIT */
/* cli/sweep_kept.c - see sweep_kept.h. */
#include "cli/sweep_kept.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"
#include "kit/json_in.h"

struct span {
    const char *start, *end;
};

struct tmk_kept_cell {
    uint64_t number, peak;
    struct span modules, lines;
};

/* ---- where they stand ---- */

static struct span skip(struct tmk_json_in *j)
{
    struct span s = {.start = j->at};
    tmk_json_in_skip(j);
    s.end = j->at;
    return s;
}

static uint64_t number_or_unknown(struct tmk_json_in *j)
{
    char c = tmk_json_in_peek(j);
    if (c >= '0' && c <= '9')
        return tmk_json_in_u64(j);
    tmk_json_in_skip(j);
    return TMK_UNKNOWN_BYTES;
}

static void find_cell(struct tmk_sweep_kept *k, struct tmk_json_in *j)
{
    struct tmk_kept_cell c = {.peak = TMK_UNKNOWN_BYTES};
    const char *key;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "number") == 0)
            c.number = number_or_unknown(j);
        else if (strcmp(key, "peak_allocated") == 0)
            c.peak = number_or_unknown(j);
        else if (strcmp(key, "modules") == 0)
            c.modules = skip(j);
        else if (strcmp(key, "lines") == 0)
            c.lines = skip(j);
        else
            tmk_json_in_skip(j);
    struct tmk_kept_cell *more = tmk_grow(k->cells, k->n + 1, &k->room, sizeof *more);
    if (!more || j->problem)
        return;
    k->cells = more;
    k->cells[k->n++] = c;
}

static void find_cells(struct tmk_sweep_kept *k, size_t n)
{
    struct tmk_json_in j;
    const char *key;
    tmk_json_in_init(&j, k->bytes, n, &k->arena);
    tmk_json_in_object(&j);
    while ((key = tmk_json_in_key(&j)))
        if (strcmp(key, "results") == 0) {
            tmk_json_in_array(&j);
            while (tmk_json_in_item(&j))
                find_cell(k, &j);
        } else {
            tmk_json_in_skip(&j);
        }
    tmk_json_in_end(&j);
    k->n = j.problem ? 0 : k->n; /* not as we write it: nothing of it is believed */
}

void tmk_sweep_kept_read(struct tmk_sweep_kept *k, const char *path)
{
    *k = (struct tmk_sweep_kept){0};
    FILE *in = fopen(path, "re");
    size_t room = 0;
    if (!in)
        return;
    ssize_t n = getdelim(&k->bytes, &room, '\0', in);
    fclose(in);
    if (n > 0)
        find_cells(k, (size_t)n);
}

void tmk_sweep_kept_fini(struct tmk_sweep_kept *k)
{
    tmk_arena_fini(&k->arena);
    free(k->cells);
    free(k->bytes);
}

/* ---- written again ---- */

static void put_row(struct tmk_json *to, struct tmk_json_in *j)
{
    const char *key;
    tmk_json_object(to, NULL);
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j))) {
        char c = tmk_json_in_peek(j);
        if (c == '"') {
            tmk_json_text(to, key, tmk_json_in_text(j));
        } else if (c >= '0' && c <= '9') {
            tmk_json_u64(to, key, tmk_json_in_u64(j));
        } else {
            tmk_json_in_skip(j);
            tmk_json_null(to, key);
        }
    }
    tmk_json_end(to);
}

bool tmk_sweep_kept_put(struct tmk_sweep_kept *k, struct tmk_json *to, const char *key,
                        uint32_t number, uint64_t peak)
{
    for (uint64_t i = 0; i < k->n; i++) {
        const struct tmk_kept_cell *c = &k->cells[i];
        struct span s = strcmp(key, "modules") == 0 ? c->modules : c->lines;
        if (c->number != number || c->peak != peak || !s.start)
            continue;
        struct tmk_json_in j;
        tmk_json_in_init(&j, s.start, (size_t)(s.end - s.start), &k->arena);
        if (tmk_json_in_peek(&j) != '[')
            return false;
        tmk_json_array(to, key);
        tmk_json_in_array(&j);
        while (tmk_json_in_item(&j))
            put_row(to, &j);
        tmk_json_end(to);
        return true;
    }
    return false;
}
