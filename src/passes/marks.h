/* SPDX-License-Identifier: MIT */
/* passes/marks.h - the marks that the program itself set: name, text and moment of each.
 *
 * The first thousand are kept, all are counted. */
#ifndef TMK_PASSES_MARKS_H
#define TMK_PASSES_MARKS_H

#include "model/run.h"
#include "trace/replay.h"

struct tmk_mark {
    uint64_t time_ns; /* trace time */
    int64_t step;     /* TMK_NO_STEP: before the first */
    const char *name; /* NULL: none */
    const char *text; /* "" when there is none */
};

struct tmk_marks;

int tmk_marks_open(const struct tmk_process *p, struct tmk_marks **ret_marks);
struct tmk_marks *tmk_marks_close(struct tmk_marks *m);
struct tmk_visitor tmk_marks_visitor(struct tmk_marks *m);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_marks_finish(struct tmk_marks *m, struct tmk_error *err);

uint64_t tmk_marks_n(const struct tmk_marks *m);
uint64_t tmk_marks_n_kept(const struct tmk_marks *m);
const struct tmk_mark *tmk_marks_get(const struct tmk_marks *m, uint64_t i);

#endif
