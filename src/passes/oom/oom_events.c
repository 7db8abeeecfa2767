/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_events.c - see oom_events.h. */
#include "passes/oom/oom_events.h"

#include "base/bytes.h"
#include "base/error.h"
#include "model/holders.h"
#include "passes/oom/ooms.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"

/* Whether one of the chunk's events is an OOM. Uses the cursor up. */
static bool has_oom_event(struct tmk_cursor *c)
{
    struct tmk_event ev;
    while (tmk_view_left(&c->data[TMK_KIND_OTHER]) > 0 && tmk_cursor_read_other(c, &ev))
        if (ev.kind == TMK_KIND_OOM)
            return true;
    return false;
}

struct oom_search {
    const struct tmk_process *p;
    uint64_t after_ns;
    void (*heard)(void *arg, const struct tmk_event *ev);
    void *arg;
    struct tmk_cursor cursor;
    struct tmk_holders *holders; /* made when the first OOM is found */
};

static int hear_ooms_of_chunk(struct oom_search *s)
{
    struct tmk_event ev;
    if (!s->holders && tmk_holders_open(s->p, &s->holders) < 0)
        return TMK_ENOMEM;
    while (tmk_cursor_next(&s->cursor, &ev) > 0)
        if (ev.kind == TMK_KIND_OOM && ev.time_ns > s->after_ns &&
            !tmk_oom_is_first_try(s->holders, &ev))
            s->heard(s->arg, &ev);
    return 0;
}

static int search_chunk(struct oom_search *s, uint32_t i)
{
    struct tmk_reader *r = s->p->reader;
    const struct tmk_chunk_ref *chunk = tmk_reader_chunk(r, i);
    struct tmk_view payload;
    if (chunk->header.kind != TMK_CHUNK_EVENTS || chunk->header.end_ns <= s->after_ns ||
        tmk_reader_payload(r, i, &payload, NULL) < 0 ||
        tmk_cursor_begin(&s->cursor, &chunk->header, payload, NULL) < 0 ||
        !has_oom_event(&s->cursor) ||
        tmk_cursor_begin(&s->cursor, &chunk->header, payload, NULL) < 0)
        return 0;
    return hear_ooms_of_chunk(s);
}

int tmk_oom_events_after(const struct tmk_process *p, uint64_t after_ns,
                         void (*heard)(void *arg, const struct tmk_event *ev), void *arg)
{
    struct oom_search s = {.p = p, .after_ns = after_ns, .heard = heard, .arg = arg};
    int rc = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(p->reader) && rc == 0; i++)
        rc = search_chunk(&s, i);
    tmk_cursor_fini(&s.cursor);
    tmk_holders_close(s.holders);
    return rc;
}
