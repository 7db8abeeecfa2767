/* SPDX-License-Identifier: MIT */
/* sql/rows.c - see rows.h. Buffers grow and are kept, so that filling segment after segment
 * touches the same memory, which is then in the cache. */
#include "sql/rows.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"

void tmk_rows_init(struct tmk_rows *r, const struct tmk_column_spec *specs, uint32_t n_columns)
{
    *r = (struct tmk_rows){.specs = specs, .n_columns = n_columns};
}

void tmk_rows_fini(struct tmk_rows *r)
{
    for (uint32_t c = 0; c < r->n_columns; c++)
        free(r->buffers[c]);
    *r = (struct tmk_rows){0};
}

void tmk_rows_begin(struct tmk_rows *r, uint64_t wanted)
{
    r->wanted = wanted;
    r->constants = 0;
    r->n = r->room = 0;
    r->failed = false;
    for (uint32_t c = 0; c < r->n_columns; c++)
        r->columns[c] = NULL;
    (void)tmk_rows_reserve(r, 1); /* a failure is remembered */
}

int tmk_rows_reserve(struct tmk_rows *r, uint64_t n)
{
    uint64_t need = r->n + n;
    if (need <= r->room)
        return 0;
    uint64_t room = UINT64_MAX;
    for (uint32_t c = 0; c < r->n_columns; c++) {
        if (!(r->wanted >> c & 1))
            continue;
        if (!(r->constants >> c & 1)) {
            size_t bytes = tmk_cell_bytes(r->specs[c].kind);
            void *more = tmk_grow(r->buffers[c], need, &r->rooms[c], bytes);
            if (!more) {
                r->failed = true;
                return TMK_ENOMEM;
            }
            r->buffers[c] = more;
            room = r->rooms[c] < room ? r->rooms[c] : room;
        }
        r->columns[c] = r->buffers[c];
    }
    r->room = room;
    return 0;
}

static void set_cells_unknown(struct tmk_rows *r, uint64_t row)
{
    for (uint32_t c = 0; c < r->n_columns; c++) {
        if (!r->columns[c] || (r->constants >> c & 1))
            continue;
        switch (r->specs[c].kind) {
        case TMK_CELL_TEXT:
            ((uint32_t *)r->columns[c])[row] = 0;
            break;
        case TMK_CELL_COUNT:
            ((uint32_t *)r->columns[c])[row] = TMK_NULL_COUNT;
            break;
        default:
            ((int64_t *)r->columns[c])[row] = TMK_NULL_INT;
        }
    }
}

uint64_t tmk_rows_add(struct tmk_rows *r)
{
    if (tmk_rows_reserve(r, 1) < 0)
        return UINT64_MAX;
    set_cells_unknown(r, r->n);
    return r->n++;
}

void tmk_rows_constant_int(struct tmk_rows *r, uint32_t column, int64_t value)
{
    if (!r->columns[column])
        return;
    r->constants |= UINT64_C(1) << column;
    *(int64_t *)r->columns[column] = value;
}

void tmk_rows_constant_text(struct tmk_rows *r, uint32_t column, uint32_t id)
{
    if (!r->columns[column])
        return;
    r->constants |= UINT64_C(1) << column;
    *(uint32_t *)r->columns[column] = id;
}
