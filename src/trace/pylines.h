/* SPDX-License-Identifier: MIT */
/* trace/pylines.h - finds the lines of Python instructions in a code object's line table.
 *
 * A table is a list of ranges of instructions; CPython's three layouts and tidemark's
 * (docs/format.md 2.1) write their lengths and lines differently. A walk goes through it once: ask
 * for offsets that do not fall. The bytes may be anything; instructions behind the last entry have
 * the code's first line. */
#ifndef TMK_TRACE_PYLINES_H
#define TMK_TRACE_PYLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct tmk_pylines {
    struct tmk_view in;
    uint32_t layout; /* enum tmk_py_lines */
    uint32_t first_line;
    /* The range that was read last. */
    uint64_t end;     /* offset behind it, in bytes (layout 39: where it begins) */
    int64_t line;     /* of it, or of the last one that had a line */
    bool has_line;    /* it has one */
    bool is_finished; /* there is no further one, or it makes no sense */
};

/* Start at the table's beginning; `bytes` must outlive the walk. */
void tmk_pylines_init(struct tmk_pylines *p, uint32_t layout, uint32_t first_line,
                      const uint8_t *bytes, size_t n);
/* The line of the instruction at `offset`, which is not before the previous call's; 0: it has none.
 */
uint32_t tmk_pylines_at(struct tmk_pylines *p, uint64_t offset);

/* Write whole entries of a table of layout 311 as runs of instructions on the same line, layout
 * TMK_PY_LINES_RUNS: a tenth of the bytes, and never more than there were. Returns false when the
 * bytes are no such entries, or `out` has no room. */
bool tmk_pylines_runs(const uint8_t *bytes, size_t n, struct tmk_sink *out);

#endif
