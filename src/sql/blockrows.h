/* SPDX-License-Identifier: MIT */
/* sql/blockrows.h - rows about blocks, shared by the tables allocations, tensors, peak and
 * live_at. */
#ifndef TMK_SQL_BLOCKROWS_H
#define TMK_SQL_BLOCKROWS_H

#include "passes/peak.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/table_doc.h"

#define TMK_BLOCK_COLUMNS(X)                                                                       \
    X(id, INT, TMK_PLAIN, "number of the allocation; NULL: made before the trace knew it")         \
    X(pid, INT, TMK_FEW, "process")                                                                \
    X(rank, INT, TMK_FEW, "its rank")                                                              \
    X(device, TEXT, TMK_FEW, "cpu, cuda:0 and so on")                                              \
    X(address, INT, TMK_PLAIN, "where the block is")                                               \
    X(size, INT, TMK_PLAIN, "bytes")                                                               \
    X(alloc_ns, INT, TMK_PLAIN, "when it was made, ns since the run's start")                      \
    X(free_ns, INT, TMK_PLAIN, "when it went, or was found gone; NULL: alive to the end")          \
    X(thread, INT, TMK_FEW, "the system's number of the thread that made it")                      \
    X(stack_id, INT, TMK_PLAIN, "who made it: stacks.id")                                          \
    X(step, INT, TMK_PLAIN, "training step it was made in; NULL: before the first")                \
    X(stage, TEXT, TMK_FEW, "innermost stage it was made in; else what its stack says, or other")  \
    X(module, TEXT, TMK_FEW, "innermost module it was made in; else that of its parameter")        \
    X(component, TEXT, TMK_FEW, "kind of module: attention, mlp, embedding and so on")             \
    X(category, TEXT, TMK_FEW, "what it is for: parameter, gradient and so on")                    \
    X(tensor, TEXT, TMK_FEW, "its name")                                                           \
    X(stream, INT, TMK_FEW, "handle of the stream it was made on, 0: default; NULL: has none")     \
    X(requested, INT, TMK_PLAIN, "bytes requested, before rounding up; NULL: not known")

enum { TMK_BLOCK_COLUMNS(TMK_COLUMN_NUMBER) TMK_N_BLOCK_COLUMNS };
extern const struct tmk_sql_column tmk_block_columns[];
extern const struct tmk_column_spec tmk_block_specs[];

/* Make a row for each block of the process, in the order of allocation, or for each that was
 * named, in the order of naming. */
enum tmk_block_choice { TMK_BLOCKS_ALL, TMK_BLOCKS_NAMED };
int tmk_block_rows(struct tmk_fill *f, enum tmk_block_choice choice, struct tmk_error *err);

/* Make a row for each block alive at a moment. */
int tmk_block_rows_at(struct tmk_fill *f, const struct tmk_moment *moment, struct tmk_error *err);

#endif
