/* SPDX-License-Identifier: MIT */
/* tests/tools/journal_check.c - compare traces with the journal of the program that made them.
 *
 *     journal_check [--plain] [--exact] JOURNAL TRACE...
 *
 * Every lane of the journal (tests/fault/journal.h) must be in the traces taken together, event for
 * event from the first on, in order: at least those counted, at most one more (it was reported, and
 * the kill came before it was counted); with --exact just those. --plain is for lanes of
 * allocations only, where dropped events are allowed if the traces count them: then present +
 * dropped = reported.
 *
 * Prints one line of JSON; exit 1 and the reason on stderr when something is wrong. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../fault/journal.h"
#include "base/error.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { MAX_THREADS = 65536 };

struct check {
    bool is_plain, is_exact;
    uint64_t counted[JOURNAL_LANES]; /* the journal's */
    uint64_t seen[JOURNAL_LANES];    /* number of the last event seen */
    uint64_t n_seen[JOURNAL_LANES];
    uint32_t lane_of[MAX_THREADS]; /* lane + 1 by the trace's thread id */
    uint64_t n_events, n_dropped, last_ns;
    uint32_t n_traces, n_merged, n_stopped;
    const struct tmk_reader *reader;
    char wrong[256];
};

static void complain(struct check *c, const char *what, uint32_t lane, const struct tmk_event *ev)
{
    if (c->wrong[0])
        return;
    snprintf(c->wrong, sizeof c->wrong,
             "%s: lane %u after event %" PRIu64 ": kind %d address %" PRIx64 " size %" PRIu64, what,
             lane, c->seen[lane], ev->kind, ev->address, ev->size_bytes);
}

static bool is_text(const struct tmk_event *ev, uint32_t lane, uint64_t i)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%u %" PRIu64, lane, i);
    return ev->text_bytes == (uint32_t)n && memcmp(ev->text, text, (size_t)n) == 0;
}

static bool is_named(const struct check *c, const struct tmk_event *ev, const char *form,
                     uint32_t lane)
{
    char text[64];
    const char *name = tmk_reader_string(c->reader, ev->name);
    snprintf(text, sizeof text, form, lane);
    return name && strcmp(name, text) == 0;
}

static bool is_event(const struct check *c, const struct tmk_event *ev, uint32_t lane,
                     const struct journal_event *want)
{
    switch (want->kind) {
    case JOURNAL_ALLOC:
        return ev->kind == TMK_KIND_ALLOC && ev->address == want->address &&
               ev->size_bytes == want->i && ev->stack != 0;
    case JOURNAL_TAG:
        return ev->kind == TMK_KIND_TAG && ev->address == want->address &&
               ev->category == want->i % 10 && is_named(c, ev, "block of lane %u", lane);
    case JOURNAL_PUSH:
        return ev->kind == TMK_KIND_PUSH && ev->range_kind == 2 && is_named(c, ev, "lane %u", lane);
    case JOURNAL_POP:
        return ev->kind == TMK_KIND_POP && ev->range_kind == 2;
    case JOURNAL_FREE:
        return ev->kind == TMK_KIND_FREE && ev->address == want->address;
    default:
        return ev->kind == TMK_KIND_MARK && is_text(ev, lane, want->i);
    }
}

static bool has_address(const struct tmk_event *ev)
{
    return ev->kind == TMK_KIND_ALLOC || ev->kind == TMK_KIND_FREE || ev->kind == TMK_KIND_TAG;
}

static void check_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                        struct tmk_block *b)
{
    struct check *c = arg;
    (void)b;
    if (rp->implied)
        return;
    if (ev->time_ns < c->last_ns)
        complain(c, "time runs backwards", 0, ev);
    c->last_ns = ev->time_ns;
    if (ev->kind == TMK_KIND_DROP) {
        c->n_dropped += ev->size_bytes;
        return;
    }
    c->n_events++;
    uint32_t *known = &c->lane_of[ev->thread % MAX_THREADS];
    if (has_address(ev))
        *known = journal_lane(ev->address) + 1;
    uint32_t lane = *known - 1;
    if (lane >= JOURNAL_LANES) {
        complain(c, "an event of no lane", 0, ev);
        return;
    }
    uint64_t i = c->is_plain ? ev->size_bytes : c->seen[lane] + 1;
    struct journal_event want = journal_event(lane, i, c->is_plain);
    if (i <= c->seen[lane] || !is_event(c, ev, lane, &want))
        complain(c, "not the event that comes next", lane, ev);
    c->seen[lane] = i;
    c->n_seen[lane]++;
}

static bool check_trace(struct check *c, const char *path)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    bool live = false;
    if (tmk_merge_open(path, &r, &live, &err) < 0) {
        snprintf(c->wrong, sizeof c->wrong, "%s", err.text);
        return false;
    }
    struct tmk_replay rp;
    struct tmk_visitor visitor = {.arg = c, .event = check_event};
    memset(c->lane_of, 0, sizeof c->lane_of);
    c->reader = r;
    c->last_ns = 0;
    int rc = tmk_replay_init(&rp, &tmk_state_limits_tool);
    if (rc == 0)
        rc = tmk_replay_run(&rp, r, &visitor, &err);
    const struct tmk_status *status = tmk_reader_status(r);
    const struct tmk_damage *damage = tmk_reader_damage(r);
    c->n_traces++;
    c->n_merged += (status->flags & TMK_STATUS_MERGED) != 0;
    c->n_stopped += status->state == TMK_STATE_STOPPED;
    if (rc < 0 || live || status->state == TMK_STATE_OPEN || damage->n_bytes || damage->n_chunks ||
        rp.n_gaps || rp.n_bad_chunks || rp.state.n_events != status->n_events)
        snprintf(c->wrong, sizeof c->wrong,
                 "%s: rc %d live %d state %u, %" PRIu64 " bytes damaged, %u gaps, %u bad chunks, "
                 "%" PRIu64 " events, status says %" PRIu64,
                 path, rc, live, status->state, damage->n_bytes, rp.n_gaps, rp.n_bad_chunks,
                 rp.state.n_events, status->n_events);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    return c->wrong[0] == '\0';
}

/* Lanes against the journal; the sum of what it counted, and false when one does not fit. */
static bool check_lanes(struct check *c, uint64_t *ret_counted)
{
    uint64_t n_counted = 0, n_seen = 0;
    for (uint32_t lane = 0; lane < JOURNAL_LANES; lane++) {
        uint64_t counted = c->counted[lane], seen = c->n_seen[lane];
        n_counted += counted;
        n_seen += seen;
        bool fits = c->is_plain || (seen >= counted && seen <= counted + !c->is_exact);
        if (!fits && !c->wrong[0])
            snprintf(c->wrong, sizeof c->wrong,
                     "lane %u: %" PRIu64 " events, the journal has %" PRIu64, lane, seen, counted);
    }
    if (c->is_plain && n_seen + c->n_dropped != n_counted && !c->wrong[0])
        snprintf(c->wrong, sizeof c->wrong,
                 "%" PRIu64 " present + %" PRIu64 " dropped, reported %" PRIu64, n_seen,
                 c->n_dropped, n_counted);
    *ret_counted = n_counted;
    return c->wrong[0] == '\0';
}

int main(int n_arguments, char **arguments)
{
    static struct check c;
    int at = 1;
    for (; at < n_arguments && arguments[at][0] == '-'; at++) {
        c.is_plain |= strcmp(arguments[at], "--plain") == 0;
        c.is_exact |= strcmp(arguments[at], "--exact") == 0;
    }
    FILE *journal = at < n_arguments ? fopen(arguments[at], "rb") : NULL;
    if (!journal || fread(c.counted, sizeof c.counted, 1, journal) != 1) {
        fprintf(stderr, "usage: journal_check [--plain] [--exact] JOURNAL TRACE...\n");
        return 2;
    }
    fclose(journal);
    bool ok = true;
    for (at++; ok && at < n_arguments; at++)
        ok = check_trace(&c, arguments[at]);
    uint64_t n_counted = 0;
    if (ok)
        ok = check_lanes(&c, &n_counted);
    if (!ok)
        fprintf(stderr, "journal_check: %s\n", c.wrong);
    printf("{\"events\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"reported\":%" PRIu64
           ",\"lane0\":%" PRIu64 ",\"lane1\":%" PRIu64
           ",\"traces\":%u,\"merged\":%u,\"stopped\":%u}\n",
           c.n_events, c.n_dropped, n_counted, c.n_seen[0], c.n_seen[1], c.n_traces, c.n_merged,
           c.n_stopped);
    return ok ? 0 : 1;
}
