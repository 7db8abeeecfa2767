/* SPDX-License-Identifier: MIT */
/* passes/quality.c - see quality.h. */
#include "passes/quality.h"

#include "base/error.h"
#include "kit/language.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

/* The checkpoint where replay began, the oldest one, if older chunks are gone. */
static uint64_t detail_start(const struct tmk_reader *r)
{
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++)
        if (tmk_reader_chunk(r, i)->header.kind == TMK_CHUNK_CHECKPOINT)
            return tmk_reader_chunk(r, i)->header.start_ns;
    return 0;
}

struct tmk_quality tmk_quality_of_status(const struct tmk_process *p)
{
    const struct tmk_status *status = tmk_reader_status(p->reader);
    const struct tmk_damage *damage = tmk_reader_damage(p->reader);
    struct tmk_quality q = {
        .live = p->live,
        .merged = (status->flags & TMK_STATUS_MERGED) != 0,
        .unfinished = !p->live && (status->state == TMK_STATE_OPEN || damage->status_lost),
        .n_dropped = status->n_dropped,
        .n_given_up = status->n_given_up,
        .n_untracked = status->n_untracked,
        .n_unnamed = status->n_unnamed,
        .n_bad_chunks = damage->n_chunks,
        .n_stray_bytes = damage->n_bytes,
        .first_bad_offset = damage->first_offset,
        .header_damaged = damage->status_lost || damage->info_lost,
    };
    if (status->state == TMK_STATE_STOPPED) {
        q.stop = (enum tmk_stop)status->reason;
        q.stop_os_error = (int)status->os_error;
    }
    if (status->n_given_up > 0)
        q.detail_from_ns = detail_start(p->reader);
    return q;
}

struct tmk_quality tmk_quality_of(const struct tmk_process *p, const struct tmk_replay *rp)
{
    const struct tmk_state *s = &rp->state;
    struct tmk_quality q = tmk_quality_of_status(p);
    if (s->n_dropped > q.n_dropped)
        q.n_dropped = s->n_dropped;
    q.n_without_details = tmk_state_n_without_details(s);
    q.n_replaced = s->n_replaced;
    q.n_unknown_free = s->n_unknown_free;
    q.n_lost_segments = s->segments.n_lost;
    if (rp->n_bad_chunks > q.n_bad_chunks)
        q.n_bad_chunks = rp->n_bad_chunks;
    if (rp->n_bad_chunks)
        q.first_bad_offset = rp->damage.offset;
    return q;
}

const char *tmk_quality_ring_text(const struct tmk_process *p)
{
    if (tmk_reader_info(p->reader, "ring") || tmk_reader_damage(p->reader)->info_lost)
        return _("its ring is gone: what was in it is missing");
    return _("its ring had no file, because there was no room for one or files may not be so large "
             "(ulimit -f): what was in it is missing");
}

/* A checkpoint with room for all blocks lists all of them; so does a trace that has its
 * beginning. Chunks that cannot be read list nothing. */
static bool may_lack_details(const struct tmk_reader *r)
{
    const struct tmk_status *status = tmk_reader_status(r);
    const struct tmk_damage *damage = tmk_reader_damage(r);
    bool is_cut = status->n_given_up > 0 && (status->flags & TMK_STATUS_CUT || status->n_untracked);
    return is_cut || damage->n_places > 0 || damage->n_chunks > 0 || damage->status_lost;
}

int tmk_quality_without_details(struct tmk_process *p, uint64_t *ret_n, struct tmk_error *err)
{
    struct tmk_replay rp = {0};
    struct tmk_visitor nobody = {0};
    if (!may_lack_details(p->reader)) {
        *ret_n = 0;
        return 0;
    }
    int rc = tmk_process_sweep(p, &nobody, 1, &rp, err);
    if (rc < 0)
        return rc;
    *ret_n = tmk_state_n_without_details(&rp.state);
    tmk_replay_fini(&rp);
    return 0;
}

bool tmk_quality_is_good(const struct tmk_quality *q)
{
    return !q->unfinished && q->stop == TMK_STOP_NONE && q->n_dropped == 0 && q->n_given_up == 0 &&
           q->n_untracked == 0 && q->n_without_details == 0 && q->n_unnamed == 0 &&
           q->n_replaced == 0 && q->n_unknown_free == 0 && q->n_lost_segments == 0 &&
           q->n_bad_chunks == 0 && q->n_stray_bytes == 0 && !q->header_damaged;
}
