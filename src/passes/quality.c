/* SPDX-License-Identifier: MIT */
/* passes/quality.c - see quality.h. */
#include "passes/quality.h"

/* Where replay began, when older chunks are gone: the oldest checkpoint. */
static uint64_t detail_start(const struct tmk_reader *r)
{
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++)
        if (tmk_reader_chunk(r, i)->header.kind == TMK_CHUNK_CHECKPOINT)
            return tmk_reader_chunk(r, i)->header.start_ns;
    return 0;
}

struct tmk_quality tmk_quality_of(const struct tmk_process *p, const struct tmk_replay *rp)
{
    const struct tmk_status *status = tmk_reader_status(p->reader);
    const struct tmk_damage *damage = tmk_reader_damage(p->reader);
    const struct tmk_state *s = &rp->state;
    struct tmk_quality q = {
        .live = p->live,
        .merged = (status->flags & TMK_STATUS_MERGED) != 0,
        .unfinished = !p->live && (status->state == TMK_STATE_OPEN || damage->status_lost),
        .n_dropped = s->n_dropped > status->n_dropped ? s->n_dropped : status->n_dropped,
        .n_given_up = status->n_given_up,
        .n_untracked = status->n_untracked,
        .n_replaced = s->n_replaced,
        .n_unknown_free = s->n_unknown_free,
        .n_lost_segments = s->segments.n_lost,
        .n_bad_chunks = damage->n_chunks > rp->n_bad_chunks ? damage->n_chunks : rp->n_bad_chunks,
        .n_stray_bytes = damage->n_bytes,
        .header_damaged = damage->status_lost || damage->info_lost,
    };
    if (status->state == TMK_STATE_STOPPED) {
        q.stop = (enum tmk_stop)status->reason;
        q.stop_os_error = (int)status->os_error;
    }
    if (status->n_given_up > 0)
        q.detail_from_ns = detail_start(p->reader);
    q.first_bad_offset = rp->n_bad_chunks ? rp->damage.offset : damage->first_offset;
    return q;
}

bool tmk_quality_is_good(const struct tmk_quality *q)
{
    return !q->unfinished && q->stop == TMK_STOP_NONE && q->n_dropped == 0 && q->n_given_up == 0 &&
           q->n_untracked == 0 && q->n_replaced == 0 && q->n_unknown_free == 0 &&
           q->n_lost_segments == 0 && q->n_bad_chunks == 0 && q->n_stray_bytes == 0 &&
           !q->header_damaged;
}

const char *tmk_stop_text(enum tmk_stop stop)
{
    switch (stop) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        TMK_STOPS(X)
#undef X
    }
    return "for a reason that this tidemark does not know";
}
