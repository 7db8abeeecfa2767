/* SPDX-License-Identifier: MIT */
/* sql/table_stacks.c - the table stacks: call stacks, each once, as text. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "trace/defs.h"
#include "trace/reader.h"

#define COLUMNS(X)                                                                                 \
    X(id, INT, TMK_PLAIN, "number, one of a kind in the run")                                      \
    X(n_frames, INT, TMK_PLAIN, "how deep it is")                                                  \
    X(text, TEXT, TMK_PLAIN, "file:line function, innermost first, joined by ' < '")               \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

struct text {
    char *bytes;
    uint64_t n, room;
};

static int append_text(struct text *t, const char *bytes)
{
    size_t n = strlen(bytes);
    if (TMK_GROW(t->bytes, t->n + n + 1, t->room) < 0)
        return TMK_ENOMEM;
    memcpy(t->bytes + t->n, bytes, n + 1);
    t->n += n;
    return 0;
}

static int append_frame(struct text *t, const struct tmk_process *p, uint32_t id)
{
    struct tmk_frame frame;
    char text[TMK_FRAME_TEXT_BYTES];
    bool known = tmk_process_frame(p, id, &frame);
    int rc = t->n ? append_text(t, " < ") : 0;
    return rc < 0 ? rc : append_text(t, tmk_frame_text(known ? &frame : NULL, false, text));
}

static int add_stack_row(struct tmk_fill *f, uint32_t id, const struct tmk_stack *stack,
                         struct text *t)
{
    uint64_t row = tmk_rows_add(f->rows);
    tmk_rows_int(f->rows, COL_id, row, tmk_source_id(f->source, id));
    tmk_rows_int(f->rows, COL_n_frames, row, stack->n_frames);
    if (!tmk_rows_want(f->rows, COL_text))
        return 0;
    t->n = 0;
    int rc = append_text(t, "");
    for (uint32_t i = 0; rc == 0 && i < stack->n_frames; i++)
        rc = append_frame(t, f->source->p, stack->frames[i]);
    if (rc == 0)
        tmk_rows_text(f->rows, COL_text, row, tmk_textpool_copy(f->pool, t->bytes, (size_t)t->n));
    return rc;
}

static int fill_stacks(struct tmk_fill *f, struct tmk_error *err)
{
    (void)err;
    const struct tmk_reader *r = f->source->p->reader;
    struct text text = {0};
    int rc = 0;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    for (uint32_t id = 1; rc == 0 && id < tmk_reader_n_stacks(r); id++) {
        struct tmk_stack stack;
        if (tmk_reader_stack(r, id, &stack))
            rc = add_stack_row(f, id, &stack, &text);
    }
    free(text.bytes);
    return rc;
}

const struct tmk_vtab_def tmk_vtab_stacks = {
    .doc = {.name = "stacks",
            .meaning = "call stacks, each once",
            .columns = columns,
            .n_columns = N_COLUMNS,
            .example = "SELECT id, n_frames, text FROM stacks LIMIT 10",
            .more = {"SELECT s.text, count(*) AS blocks FROM allocations a JOIN stacks s ON s.id = "
                     "a.stack_id GROUP BY s.id ORDER BY blocks DESC LIMIT 10",
                     "SELECT max(n_frames) AS deepest FROM stacks"}},
    .name = "stacks",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_stacks,
};
