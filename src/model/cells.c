/* SPDX-License-Identifier: MIT */
/* model/cells.c - see cells.h. One look at each text when a trace is opened; what is no cell's text
 * costs the comparison of its first bytes. */
#include "model/cells.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "trace/reader.h"

struct tmk_cells {
    struct tmk_arena arena;
    struct tmk_textmap files;
    const char **names; /* by a file's number */
    uint64_t n, room;
};

/* Return the file of a cell's text, "In [12]\tFILE", and the length of its label; else NULL. */
static const char *cell_file(const char *text, size_t *ret_n_label)
{
    static const char begin[] = "In [";
    if (strncmp(text, begin, sizeof begin - 1) != 0)
        return NULL;
    size_t n_digits = strspn(text + sizeof begin - 1, "0123456789");
    const char *end = text + sizeof begin - 1 + n_digits;
    if (n_digits == 0 || end[0] != ']' || end[1] != '\t' || end[2] == '\0')
        return NULL;
    *ret_n_label = (size_t)(end + 1 - text);
    return end + 2;
}

static int add_cell(struct tmk_cells *c, const char *text, size_t n_label, const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *name = tmk_arena_format(&c->arena, "%.*s%.*s", slash ? (int)(slash + 1 - file) : 0,
                                        file, (int)n_label, text);
    uint32_t number;
    if (!name || tmk_textmap_put(&c->files, file, &number) < 0)
        return TMK_ENOMEM;
    if (number == c->n) {
        if (TMK_GROW(c->names, c->n + 1, c->room) < 0)
            return TMK_ENOMEM;
        c->n++;
    }
    c->names[number] = name;
    return 0;
}

int tmk_cells_open(const struct tmk_reader *r, struct tmk_cells **ret_cells)
{
    struct tmk_cells *c = NULL;
    for (uint32_t id = 1; id < tmk_reader_n_strings(r); id++) {
        size_t n_label;
        const char *text = tmk_reader_string(r, id);
        const char *file = text ? cell_file(text, &n_label) : NULL;
        if (!file)
            continue;
        if (!c && !(c = calloc(1, sizeof *c)))
            return TMK_ENOMEM;
        if (add_cell(c, text, n_label, file) < 0) {
            tmk_cells_close(c);
            return TMK_ENOMEM;
        }
    }
    *ret_cells = c;
    return 0;
}

struct tmk_cells *tmk_cells_close(struct tmk_cells *cells)
{
    if (!cells)
        return NULL;
    tmk_textmap_fini(&cells->files);
    tmk_arena_fini(&cells->arena);
    free(cells->names);
    free(cells);
    return NULL;
}

const char *tmk_cells_name(const struct tmk_cells *cells, const char *file)
{
    uint32_t number;
    return cells && file && tmk_textmap_find(&cells->files, file, &number) ? cells->names[number]
                                                                           : file;
}
