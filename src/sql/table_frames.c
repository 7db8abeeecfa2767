/* SPDX-License-Identifier: MIT */
/* sql/table_frames.c - the table frames: the lines of each stack, a row each; depth 0 is the
 * innermost. */
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "trace/defs.h"
#include "trace/reader.h"

#define COLUMNS(X)                                                                                 \
    X(stack_id, INT, TMK_PLAIN, "stacks.id")                                                       \
    X(depth, INT, TMK_PLAIN, "0: innermost")                                                       \
    X(file, TEXT, TMK_FEW, "source file, or the library of a native frame")                        \
    X(function, TEXT, TMK_FEW, "function; NULL: not known")                                        \
    X(line, INT, TMK_PLAIN, "line in the file; NULL: not known")                                   \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(address, INT, TMK_PLAIN, "of a native frame: address in the library; else NULL")

enum { COLUMNS(TMK_COLUMN_NUMBER) N_COLUMNS };
static const struct tmk_sql_column columns[] = {COLUMNS(TMK_COLUMN_DOC)};
static const struct tmk_column_spec specs[] = {COLUMNS(TMK_COLUMN_SPEC)};

static void add_frame_row(struct tmk_fill *f, uint32_t stack, uint32_t depth, uint32_t id)
{
    struct tmk_rows *rows = f->rows;
    struct tmk_frame frame;
    uint64_t row = tmk_rows_add(rows);
    tmk_rows_int(rows, COL_stack_id, row, tmk_source_id(f->source, stack));
    tmk_rows_int(rows, COL_depth, row, depth);
    bool want_names = tmk_rows_want(rows, COL_file) || tmk_rows_want(rows, COL_function) ||
                      tmk_rows_want(rows, COL_line);
    if (want_names ? !tmk_process_frame(f->source->p, id, &frame)
                   : !tmk_reader_frame(f->source->p->reader, id, &frame))
        return;
    if (tmk_rows_want(rows, COL_file) && frame.file && frame.file[0])
        tmk_rows_text(rows, COL_file, row, tmk_textpool_put(f->pool, frame.file));
    if (tmk_rows_want(rows, COL_function) && frame.function)
        tmk_rows_text(rows, COL_function, row, tmk_textpool_put(f->pool, frame.function));
    if (frame.line)
        tmk_rows_int(rows, COL_line, row, frame.line);
    if (frame.address)
        tmk_rows_u64(rows, COL_address, row, frame.address);
}

static int fill_frames(struct tmk_fill *f, struct tmk_error *err)
{
    (void)err;
    const struct tmk_reader *r = f->source->p->reader;
    tmk_rows_constant_int(f->rows, COL_pid, tmk_source_pid(f->source));
    tmk_rows_constant_int(f->rows, COL_rank, tmk_source_rank(f->source));
    for (uint32_t id = 1; id < tmk_reader_n_stacks(r); id++) {
        struct tmk_stack stack;
        if (!tmk_reader_stack(r, id, &stack))
            continue;
        for (uint32_t i = 0; i < stack.n_frames; i++)
            add_frame_row(f, id, i, stack.frames[i]);
    }
    return 0;
}

const struct tmk_vtab_def tmk_vtab_frames = {
    .doc =
        {.name = "frames",
         .meaning = "the lines of each call stack",
         .columns = columns,
         .n_columns = N_COLUMNS,
         .example = "SELECT file, line, function FROM frames WHERE depth = 0",
         .more =
             {"SELECT depth, file, line, function FROM frames WHERE stack_id = (SELECT stack_id "
              "FROM peak ORDER BY size DESC LIMIT 1) ORDER BY depth",
              "SELECT f.file, f.line, sum(p.size) AS bytes FROM peak p JOIN frames f ON f.stack_id "
              "= p.stack_id AND f.depth = 0 GROUP BY f.file, f.line ORDER BY bytes DESC"}},
    .name = "frames",
    .specs = specs,
    .scope = TMK_SCOPE_PROCESS,
    .fill = fill_frames,
};
