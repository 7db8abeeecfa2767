/* SPDX-License-Identifier: MIT */
/* replay_speed.c - how fast a trace is read: decoding alone, and replay through a state.
 *
 *     replay_speed FILE.trace [--repeat N]      one JSON object; --repeat: best of N (5)
 *
 * "decode" reads every payload, checks its checksum and walks its events; "replay" does that and
 * keeps blocks, ranges and steps, with a visitor that does nothing; "open" reads chunk headers,
 * definitions and step rows. Each repetition opens the file anew; it lies in the page cache after
 * the first. One thread. What was read is printed too, to be held against the truth: totals are
 * counted by the visitor, not taken from the file's status. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct counts {
    uint64_t n_events, n_allocs, n_frees, n_tags, n_rows, n_steps;
    uint64_t live_bytes, n_live, peak_bytes, peak_ns;
};

struct times {
    uint64_t open_ns, decode_ns, replay_ns;
};

static int complain(const char *path, int rc, const struct tmk_error *err)
{
    fprintf(stderr, "replay_speed: %s: %s\n", path, err->text[0] ? err->text : tmk_result_text(rc));
    return rc;
}

/* ---- decoding ---- */

/* Walk the events of all chunks; the sum keeps the compiler from dropping the work. */
static int decode(struct tmk_reader *r, uint64_t *ret_n_events, uint64_t *ret_sum,
                  struct tmk_error *err)
{
    struct tmk_cursor cursor = {0};
    uint64_t n = 0, sum = 0;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *header = &tmk_reader_chunk(r, i)->header;
        if (header->kind != TMK_CHUNK_EVENTS)
            continue;
        struct tmk_view payload;
        rc = tmk_reader_payload(r, i, &payload, err);
        if (rc == 0)
            rc = tmk_cursor_begin(&cursor, header, payload, err);
        struct tmk_event event;
        while (rc == 0 && (rc = tmk_cursor_next(&cursor, &event)) > 0) {
            n++;
            sum += event.time_ns + event.address;
            rc = 0;
        }
    }
    tmk_cursor_fini(&cursor);
    *ret_n_events = n;
    *ret_sum = sum;
    return rc;
}

/* ---- replay ---- */

static void see_nothing(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                        struct tmk_block *b)
{
    (void)arg, (void)rp, (void)ev, (void)b;
}

static uint64_t allocated_bytes(const struct tmk_state *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n_devices; i++)
        sum += s->devices[i].allocated_bytes;
    return sum;
}

static bool is_in_stage(const struct tmk_state *s, const struct tmk_event *ev,
                        const struct tmk_replay *rp)
{
    uint32_t context = tmk_state_thread_context(s, ev->thread);
    if (ev->kind == TMK_KIND_POP)
        context = rp->closed.context;
    return context && s->contexts[context].stage;
}

static void count_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                        struct tmk_block *b)
{
    struct counts *c = arg;
    const struct tmk_state *s = &rp->state;
    (void)b;
    c->n_events += !rp->implied;
    c->n_allocs += ev->kind == TMK_KIND_ALLOC;
    c->n_frees += ev->kind == TMK_KIND_FREE && !rp->implied;
    c->n_tags += ev->kind == TMK_KIND_TAG;
    c->n_steps += ev->kind == TMK_KIND_STEP;
    bool is_range = ev->kind == TMK_KIND_PUSH || ev->kind == TMK_KIND_POP;
    if (is_range && ev->range_kind == TIDEMARK_MODULE)
        c->n_rows += is_in_stage(s, ev, rp);
    if (ev->kind != TMK_KIND_ALLOC && ev->kind != TMK_KIND_FREE)
        return;
    c->live_bytes = allocated_bytes(s);
    c->n_live = s->n_live;
    if (c->live_bytes > c->peak_bytes) {
        c->peak_bytes = c->live_bytes;
        c->peak_ns = ev->time_ns;
    }
}

static int replay(struct tmk_reader *r, const struct tmk_visitor *visitor, uint64_t *ret_n_events,
                  struct tmk_error *err)
{
    struct tmk_replay rp;
    int rc = tmk_replay_init(&rp, &tmk_state_limits_tool);
    if (rc < 0)
        return rc;
    rc = tmk_replay_run(&rp, r, visitor, err);
    if (rc >= 0 && (rp.n_gaps || rp.n_bad_chunks))
        rc = tmk_fail(err, TMK_EDAMAGED, "the trace has gaps or damage: not a benchmark");
    *ret_n_events = rp.n_replayed;
    tmk_replay_fini(&rp);
    return rc < 0 ? rc : 0;
}

/* ---- measuring ---- */

static void keep_best(uint64_t *best_ns, uint64_t since_ns)
{
    uint64_t ns = tmk_clock_monotonic_ns() - since_ns;
    if (*best_ns == 0 || ns < *best_ns)
        *best_ns = ns;
}

static int measure_once(const char *path, struct times *best, uint64_t *ret_n_events,
                        struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    uint64_t start_ns = tmk_clock_monotonic_ns();
    int rc = tmk_reader_open(path, &r, err);
    if (rc < 0)
        return rc;
    keep_best(&best->open_ns, start_ns);
    uint64_t n_decoded = 0, sum = 0;
    start_ns = tmk_clock_monotonic_ns();
    rc = decode(r, &n_decoded, &sum, err);
    keep_best(&best->decode_ns, start_ns);
    const struct tmk_visitor nobody = {.event = see_nothing};
    start_ns = tmk_clock_monotonic_ns();
    if (rc == 0)
        rc = replay(r, &nobody, ret_n_events, err);
    keep_best(&best->replay_ns, start_ns);
    if (rc == 0 && (n_decoded != *ret_n_events || sum == 0))
        rc = tmk_fail(err, TMK_EDAMAGED, "decoding and replay do not agree on what is there");
    tmk_reader_close(r);
    return rc;
}

static int count_all(const char *path, struct counts *ret, struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    int rc = tmk_reader_open(path, &r, err);
    if (rc < 0)
        return rc;
    const struct tmk_visitor counter = {.event = count_event, .arg = ret};
    uint64_t n_events;
    rc = replay(r, &counter, &n_events, err);
    tmk_reader_close(r);
    return rc;
}

static void print_result(const struct counts *c, const struct times *best)
{
    double n = (double)c->n_events;
    printf("{\"open_s\":%.4f,\"decode_s\":%.4f,\"decode_events_per_s\":%.0f,\"replay_s\":%.4f,"
           "\"replay_events_per_s\":%.0f,",
           (double)best->open_ns / 1e9, (double)best->decode_ns / 1e9,
           n * 1e9 / (double)best->decode_ns, (double)best->replay_ns / 1e9,
           n * 1e9 / (double)best->replay_ns);
    printf("\"events\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64
           ",\"tags\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"steps\":%" PRIu64
           ",\"live_bytes\":%" PRIu64 ",\"live_blocks\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
           ",\"peak_ns\":%" PRIu64 "}\n",
           c->n_events, c->n_allocs, c->n_frees, c->n_tags, c->n_rows, c->n_steps, c->live_bytes,
           c->n_live, c->peak_bytes, c->peak_ns);
}

int main(int argc, char **argv)
{
    long n_repeat = 5;
    if (argc == 4 && strcmp(argv[2], "--repeat") == 0)
        n_repeat = strtol(argv[3], NULL, 10);
    if ((argc != 2 && argc != 4) || n_repeat < 1) {
        fputs("usage: replay_speed FILE.trace [--repeat N]\n", stderr);
        return 2;
    }
    struct tmk_error err = {0};
    struct times best = {0};
    uint64_t n_events = 0;
    int rc = 0;
    for (long i = 0; rc == 0 && i < n_repeat; i++)
        rc = measure_once(argv[1], &best, &n_events, &err);
    struct counts counts = {0};
    if (rc == 0)
        rc = count_all(argv[1], &counts, &err);
    if (rc < 0)
        return complain(argv[1], rc, &err), 1;
    print_result(&counts, &best);
    return 0;
}
