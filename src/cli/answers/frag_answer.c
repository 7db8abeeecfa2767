/* SPDX-License-Identifier: MIT */
/* cli/answers/frag_answer.c - see frag_answer.h. */
#include "cli/answers/frag_answer.h"

#include <stdio.h>

#include "base/array.h"
#include "cli/output/chart.h"
#include "kit/amount.h"
#include "kit/progress.h"
#include "model/run.h"
#include "passes/frag/frag_moment.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/replay.h"

int tmk_frag_answer_find(struct tmk_frag_answer *a, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_fragmentation_open(a->p, &a->moment, &a->frag);
    if (rc == 0)
        rc = tmk_timeline_open(0, a->p->end_ns, tmk_chart_columns(stdout), &a->timeline);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, a->p->file);
    struct tmk_visitor visitors[] = {tmk_fragmentation_visitor(a->frag),
                                     tmk_timeline_visitor(a->timeline),
                                     {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(a->p, visitors, TMK_N(visitors), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = tmk_fragmentation_finish(a->frag, &rp, err);
    if (rc == 0)
        rc = tmk_timeline_finish(a->timeline);
    tmk_replay_fini(&rp);
    return rc;
}

bool tmk_frag_chosen(const struct tmk_frag_answer *a, uint64_t *ret)
{
    for (uint64_t i = 0; i < tmk_fragmentation_n(a->frag); i++)
        if (!a->has_device || tmk_fragmentation_get(a->frag, i)->device == a->device) {
            *ret = i;
            return true;
        }
    return false;
}

const char *tmk_frag_moment_name(enum tmk_frag_kind kind, const struct tmk_frag_device *d)
{
    if (kind == TMK_FRAG_TIME)
        return "time";
    if (kind == TMK_FRAG_STEP)
        return "step";
    return d->is_oom                                    ? "oom"
           : d->sum.reserved_bytes != TMK_BYTES_UNKNOWN ? "reserved"
                                                        : "allocated";
}

bool tmk_frag_stream(const struct tmk_process *p, const struct tmk_frag_pool_row *row,
                     uint64_t *ret_handle)
{
    struct tmk_stream stream = {0};
    if (!row->has_stream ||
        (row->stream != 0 && !tmk_reader_stream(p->reader, row->stream, &stream)))
        return false;
    *ret_handle = stream.handle;
    return true;
}
