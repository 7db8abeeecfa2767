/* SPDX-License-Identifier: MIT */
/* passes/segment_rows.h - every segment of a process: its owner, and when it began and ended.
 *
 * Segments come in the order in which they began. If a gap hides a segment's end, it ends with
 * the gap. */
#ifndef TMK_PASSES_SEGMENT_ROWS_H
#define TMK_PASSES_SEGMENT_ROWS_H

#include "model/run.h"
#include "trace/replay.h"
#include "trace/segments.h"

struct tmk_segment_row {
    struct tmk_driver_segment segment;
    uint64_t end_ns;     /* UINT64_MAX: it is still there */
    const char *stage;   /* in which it began; NULL: none */
    const char *module;  /* likewise */
    const char *owner;   /* NULL: not known */
    const char *library; /* likewise */
};

struct tmk_segment_rows;

int tmk_segment_rows_open(const struct tmk_process *p, struct tmk_segment_rows **ret_rows);
struct tmk_segment_rows *tmk_segment_rows_close(struct tmk_segment_rows *s);
struct tmk_visitor tmk_segment_rows_visitor(struct tmk_segment_rows *s);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_segment_rows_finish(struct tmk_segment_rows *s, struct tmk_error *err);

uint64_t tmk_segment_rows_n(const struct tmk_segment_rows *s);
/* The result is borrowed until close. */
const struct tmk_segment_row *tmk_segment_rows_get(const struct tmk_segment_rows *s, uint64_t i);

#endif
