/* SPDX-License-Identifier: MIT */
/* test_drain.c - sixteen threads write through lanes while a drain moves what they write: every
 * event arrives, in the order its thread wrote it, times never fall. Runs under TSan.
 *
 * The recorder is armed by hand: a ring in memory, no packer thread of its own. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/drain.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/ring.h"
#include "trace/state.h"
#include "trace/writer.h"
#include "trace_kit.h"

enum { N_WRITERS = 16, N_PAGES = 256, MAX_WAITING = 60000, MAX_TEXT = 200 };
static const uint8_t id[16] = "drain the lanes";

struct flow {
    char folder[256], path[300];
    struct tmk_control control;
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct tmk_drain *drain;
    uint64_t n_each;
    _Atomic uint64_t n_written, n_packed;
    _Atomic uint32_t n_done;
    bool is_damaged; /* the ring, on purpose */
};

static struct flow flow;

static void flow_open(uint32_t n_pages, uint64_t n_each)
{
    flow = (struct flow){.n_each = n_each};
    snprintf(flow.folder, sizeof flow.folder, "%s", kit_folder_make());
    snprintf(flow.path, sizeof flow.path, "%s/a.trace", flow.folder);
    struct tmk_packer_options options = tmk_packer_options_for(0, &tmk_state_limits_recorder);
    options.max_events = 5000;
    assert_int_equal(
        tmk_ring_create(&tmk_recorder.ring, NULL, n_pages, n_pages, id, flow.path, NULL), 0);
    assert_int_equal(tmk_writer_create(&flow.writer, flow.path, id, "", 0, NULL), 0);
    struct tmk_chunk_out out = tmk_writer_out(&flow.writer);
    assert_int_equal(tmk_packer_open(&options, &out, &flow.packer), 0);
    assert_int_equal(tmk_drain_open(&tmk_recorder.ring, flow.packer, true, &flow.drain), 0);
    assert_int_equal(tmk_intern_reset(), 0);
    tmk_recorder.counter = tmk_clock_has_counter();
    tmk_recorder.control = &flow.control;
    tmk_recorder_set_armed(true);
}

static void flow_close(void)
{
    tmk_recorder_disarm();
    assert_true(flow.is_damaged || tmk_ring_is_valid(&tmk_recorder.ring));
    tmk_drain_close(flow.drain);
    tmk_packer_close(flow.packer);
    tmk_writer_close(&flow.writer);
    tmk_ring_close(&tmk_recorder.ring);
    kit_folder_remove(flow.folder);
}

/* Not inlined: gcc 12's check for NULL goes wrong where it knows the address of a thread-local. */
__attribute__((noinline)) static struct tmk_lane *enter(void)
{
    return tmk_lane_enter();
}

/* From further down the stack, as a signal handler is. */
__attribute__((noinline)) static struct tmk_lane *enter_from_below(void)
{
    volatile char room[512];
    room[0] = 0;
    struct tmk_lane *lane = enter();
    room[1] = room[0];
    return lane;
}

/* Event i of writer w: an allocation of i bytes at an address that says w; now and then a mark with
 * a long text, which takes several slots. */
static void write_event(uint64_t w, uint64_t i)
{
    char text[MAX_TEXT];
    struct tmk_lane *lane = enter();
    if (!lane)
        abort();
    if (i % 10 == 0) {
        memset(text, 'a' + (int)(i % 26), sizeof text);
        tmk_lane_put_text(lane, TMK_KIND_MARK, (uint32_t)w, 0, text, i % MAX_TEXT);
    } else {
        tmk_lane_put(lane, TMK_KIND_ALLOC, 0, 0, w << 40 | i, i);
    }
    if (i % 16 == 0 && !tmk_lane_is_valid(lane))
        abort();
    tmk_lane_leave(lane);
    atomic_fetch_add(&flow.n_written, 1);
}

static void *write_events(void *arg)
{
    for (uint64_t i = 1; i <= flow.n_each; i++) {
        while (atomic_load(&flow.n_written) - atomic_load(&flow.n_packed) > MAX_WAITING)
            sched_yield();
        write_event((uintptr_t)arg, i);
    }
    atomic_fetch_add(&flow.n_done, 1);
    return NULL;
}

static void *drain_all(void *arg)
{
    uint32_t n_writers = (uint32_t)(uintptr_t)arg;
    bool last = false;
    while (!last) {
        last = atomic_load(&flow.n_done) == n_writers;
        if (tmk_drain_run(flow.drain) != 0)
            abort();
        atomic_store(&flow.n_packed, tmk_packer_state(flow.packer)->n_events);
    }
    return NULL;
}

static void start_writers(pthread_t *threads, uint32_t n)
{
    for (uintptr_t i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_events, (void *)(i + 1)), 0);
}

static void run_writers(uint32_t n)
{
    pthread_t threads[N_WRITERS], drain;
    assert_int_equal(pthread_create(&drain, NULL, drain_all, (void *)(uintptr_t)n), 0);
    start_writers(threads, n);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    pthread_join(drain, NULL);
    assert_int_equal(tmk_packer_finish(flow.packer), 0);
    assert_int_equal(tmk_writer_put_status(&flow.writer, tmk_packer_state(flow.packer)), 0);
}

/* ---- what arrived ---- */

struct seen {
    uint64_t next[N_WRITERS + 1];
    uint32_t writer_of[4096]; /* by thread of the trace */
    uint64_t last_ns, n_wrong, n_dropped;
};

static bool is_right(const struct tmk_event *ev, uint64_t i)
{
    if (i % 10)
        return ev->kind == TMK_KIND_ALLOC && ev->size_bytes == i;
    return ev->kind == TMK_KIND_MARK && ev->text_bytes == i % MAX_TEXT &&
           (ev->text_bytes == 0 || ev->text[ev->text_bytes - 1] == 'a' + (char)(i % 26));
}

static void see(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                struct tmk_block *b)
{
    struct seen *s = arg;
    (void)b;
    if (rp->implied)
        return;
    s->n_wrong += ev->time_ns < s->last_ns;
    s->last_ns = ev->time_ns;
    if (ev->kind == TMK_KIND_DROP) {
        s->n_dropped += ev->size_bytes;
        return;
    }
    uint64_t w = ev->kind == TMK_KIND_MARK ? ev->name : ev->address >> 40;
    uint64_t i = ++s->next[w <= N_WRITERS ? w : 0];
    uint32_t *known = &s->writer_of[ev->thread % 4096];
    s->n_wrong += (*known && *known != w) || !is_right(ev, i);
    *known = (uint32_t)w;
}

static void check_all_there(void)
{
    struct tmk_reader *r = NULL;
    struct tmk_replay rp;
    static struct seen seen;
    struct tmk_visitor visitor = {.arg = &seen, .event = see};
    seen = (struct seen){0};
    assert_int_equal(tmk_reader_open(flow.path, &r, NULL), 0);
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &visitor, NULL), 0);
    assert_int_equal(seen.n_dropped, 0);
    assert_int_equal(seen.n_wrong, 0);
    for (uint32_t w = 1; w <= N_WRITERS; w++)
        assert_int_equal(seen.next[w], flow.n_each);
    assert_int_equal(rp.state.n_events, N_WRITERS * flow.n_each);
    for (uint32_t t = 1; t <= N_WRITERS; t++) {
        struct tmk_thread_info info;
        assert_true(tmk_reader_thread(r, t, &info));
        assert_true(info.system_id > 0);
    }
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
}

/* ---- tests ---- */

static void test_sixteen_writers(void **unused)
{
    (void)unused;
    flow_open(N_PAGES, 12000);
    run_writers(N_WRITERS);
    check_all_there();
    flow_close();
}

/* Threads come and go: the pages of those that ended go round. */
static void test_generations_of_threads(void **unused)
{
    (void)unused;
    enum { N_ROUNDS = 30 };
    flow_open(N_PAGES, 40);
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        pthread_t threads[N_WRITERS];
        start_writers(threads, N_WRITERS);
        for (uint32_t i = 0; i < N_WRITERS; i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(tmk_drain_run(flow.drain), 0);
        atomic_store(&flow.n_packed, tmk_packer_state(flow.packer)->n_events);
        uint32_t n_free = 0;
        for (uint32_t i = 0; i < N_PAGES; i++)
            n_free += atomic_load(&tmk_recorder.ring.pages[i].state) == TMK_PAGE_FREE;
        assert_int_equal(n_free, N_PAGES); /* all threads ended, all is packed */
    }
    assert_int_equal(tmk_packer_state(flow.packer)->n_events, N_ROUNDS * N_WRITERS * 40);
    assert_int_equal(tmk_packer_state(flow.packer)->n_dropped, 0);
    flow_close();
}

/* A ring of one page and no drain: what has no room is counted, event for event; definitions that
 * have none are not counted as events. */
static void test_full_ring(void **unused)
{
    (void)unused;
    static const struct tidemark_site site = {"file", "function", 3, 0};
    flow_open(1, 0);
    struct tmk_lane *lane = enter();
    assert_non_null(lane);
    for (uint64_t i = 1; i <= 1000; i++) {
        tmk_lane_put(lane, TMK_KIND_ALLOC, 0, 0, i, i);
        assert_true(tmk_lane_is_valid(lane));
    }
    _Atomic uint64_t *counted = &tmk_recorder.ring.header->n_dropped;
    uint64_t dropped = atomic_load(counted);
    assert_int_equal(dropped, 1000 - (TMK_PAGE_SLOTS - 2)); /* the thread's name takes two */
    assert_int_equal(tmk_intern_string(lane, "no room for me"), 0);
    assert_int_equal(tmk_intern_site(lane, &site), 0);
    assert_int_equal(atomic_load(counted), dropped);
    tmk_lane_put_text(lane, TMK_KIND_MARK, 0, 0, "x", 1);
    assert_int_equal(atomic_load(counted), dropped + 1);
    assert_null(enter_from_below()); /* re-entered, as by a signal handler */
    assert_int_equal(atomic_load(counted), dropped + 2);
    assert_ptr_equal(enter(), lane); /* not from below: who was in there has jumped out */
    assert_int_equal(atomic_load(counted), dropped + 2);
    tmk_lane_leave(lane);

    assert_int_equal(tmk_drain_run(flow.drain), 0);
    const struct tmk_state *s = tmk_packer_state(flow.packer);
    assert_int_equal(s->n_allocs, 1000 - dropped);
    assert_int_equal(s->n_dropped, dropped + 2);
    assert_int_equal(s->n_events, s->n_allocs + 1); /* and the event that says so */
    lane = enter();                                 /* the page was given back: room again */
    tmk_lane_put(lane, TMK_KIND_ALLOC, 0, 0, 1, 1);
    assert_true(tmk_lane_is_valid(lane));
    tmk_lane_leave(lane);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(s->n_allocs, 1000 - dropped + 1);
    assert_int_equal(s->n_dropped, dropped + 2);
    flow_close();
}

/* ---- single records ---- */

static void put_on(struct tmk_page *page, uint32_t slot, uint64_t ticks, union tmk_record_head head)
{
    page->slots[slot].ticks = ticks;
    page->slots[slot].a = slot + 1;
    tmk_record_publish(&page->slots[slot], head);
}

/* A record stamped after the drain began is left for the next one, and so is everything its thread
 * wrote after it, whatever the stamps say (clocks of two cores differ a little). */
static void test_not_yet_due(void **unused)
{
    (void)unused;
    static const union tmk_record_head head = {{.kind = TMK_KIND_ALLOC, .n_slots = 1}};
    flow_open(4, 0);
    uint64_t now = tmk_clock_ticks(tmk_recorder.counter);
    struct tmk_page *first = tmk_ring_take(&tmk_recorder.ring, 1);
    struct tmk_page *second = tmk_ring_take(&tmk_recorder.ring, 1);
    struct tmk_page *other = tmk_ring_take(&tmk_recorder.ring, 2);
    put_on(first, 0, now, head);
    put_on(first, 1, now + (1ull << 50), head);
    put_on(second, 0, now, head);
    put_on(other, 0, now, head);
    tmk_page_seal(first);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(tmk_packer_state(flow.packer)->n_allocs, 2);
    assert_int_equal(tmk_packer_state(flow.packer)->n_live, 1); /* both at the same address */
    assert_int_equal(atomic_load(&first->state), TMK_PAGE_SEALED);
    tmk_drain_take_until(flow.drain, UINT64_MAX);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(tmk_packer_state(flow.packer)->n_allocs, 4);
    assert_int_equal(atomic_load(&first->state), TMK_PAGE_FREE);
    flow_close();
}

struct order {
    char kinds[8]; /* as letters */
    uint32_t threads[8];
    uint64_t times_ns[8];
    unsigned n;
};

static void note_order(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                       struct tmk_block *b)
{
    struct order *o = arg;
    (void)b;
    if (rp->implied || o->n == 7)
        return;
    o->kinds[o->n] = ev->kind == TMK_KIND_ALLOC ? 'a' : ev->kind == TMK_KIND_TAG ? 't' : '?';
    o->threads[o->n] = ev->thread;
    o->times_ns[o->n++] = ev->time_ns;
}

/* A record that is stamped earlier than its thread's last (clocks of two cores differ a little)
 * comes right behind that one, and has its time. */
static void test_earlier_moment(void **unused)
{
    (void)unused;
    static const union tmk_record_head alloc = {{.kind = TMK_KIND_ALLOC, .n_slots = 1}};
    static const union tmk_record_head tag = {{.kind = TMK_KIND_TAG, .n_slots = 1}};
    struct tmk_reader *r = NULL;
    struct tmk_replay rp;
    struct order order = {0};
    struct tmk_visitor visitor = {.arg = &order, .event = note_order};
    flow_open(4, 0);
    uint64_t now = tmk_clock_ticks(tmk_recorder.counter);
    struct tmk_page *first = tmk_ring_take(&tmk_recorder.ring, 1);
    struct tmk_page *other = tmk_ring_take(&tmk_recorder.ring, 2);
    put_on(first, 0, now, alloc);
    put_on(first, 1, now + 200000, alloc);
    put_on(first, 2, now, tag);
    first->slots[2].a = 1; /* the first one */
    first->slots[2].b = TIDEMARK_GRADIENT;
    put_on(other, 0, now + 100000, alloc);
    other->slots[0].a = 9;
    put_on(other, 1, now + 300000, alloc);
    tmk_drain_take_until(flow.drain, UINT64_MAX);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(tmk_packer_finish(flow.packer), 0);
    assert_int_equal(tmk_reader_open(flow.path, &r, NULL), 0);
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &visitor, NULL), 0);
    assert_string_equal(order.kinds, "aaata");
    assert_memory_equal(order.threads, ((uint32_t[]){1, 2, 1, 1, 2}), 5 * sizeof(uint32_t));
    assert_true(order.times_ns[0] < order.times_ns[1] && order.times_ns[1] < order.times_ns[2]);
    assert_int_equal(order.times_ns[3], order.times_ns[2]);
    assert_true(order.times_ns[4] > order.times_ns[3]);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    flow_close();
}

/* Records that cannot be: more slots than the page has left, more text than slots, no such kind. */
static void test_impossible_records(void **unused)
{
    (void)unused;
    static const union tmk_record_head far = {
        {.kind = TMK_KIND_DEF_STRING, .n_slots = 200, .id = 1}};
    static const union tmk_record_head text = {
        {.kind = TMK_KIND_DEF_STRING, .n_slots = 1, .id = 2}};
    static const union tmk_record_head odd = {{.kind = 99, .n_slots = 1}};
    static const union tmk_record_head good = {{.kind = TMK_KIND_ALLOC, .n_slots = 1}};
    flow_open(2, 0);
    flow.is_damaged = true;
    (void)tmk_ring_take(&tmk_recorder.ring, 1);
    struct tmk_page *page = tmk_ring_take(&tmk_recorder.ring, 2); /* the last of the mapping */
    assert_ptr_equal(page, &tmk_recorder.ring.pages[1]);
    for (uint32_t i = 0; i < TMK_PAGE_SLOTS - 3; i++)
        put_on(page, i, 1, good);
    put_on(page, TMK_PAGE_SLOTS - 3, 1, odd);
    put_on(page, TMK_PAGE_SLOTS - 2, 1, text);
    page->slots[TMK_PAGE_SLOTS - 2].a = 4000;
    put_on(page, TMK_PAGE_SLOTS - 1, 1, far);
    page->slots[TMK_PAGE_SLOTS - 1].a = 4000;
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(tmk_packer_finish(flow.packer), 0);
    assert_int_equal(tmk_packer_state(flow.packer)->n_allocs, TMK_PAGE_SLOTS - 3);
    struct tmk_reader *r = NULL;
    assert_int_equal(tmk_reader_open(flow.path, &r, NULL), 0);
    assert_int_equal(tmk_reader_n_strings(r), 0);
    tmk_reader_close(r);
    flow_close();
}

/* One record of each of the kinds that torch and Python stacks need, through the ring. */
static void test_further_kinds(void **unused)
{
    (void)unused;
    flow_open(4, 0);
    struct tmk_lane *lane = enter();
    assert_non_null(lane);
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, 1, 0, "a.py", 4));
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, 2, 0, "f", 1));
    tmk_lane_put(lane, TMK_KIND_DEF_CODE, 0, 7, 1ull << 32 | 2, 310ull << 32 | 40);
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_LINES, 7, 2, "\2\3", 2));
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_LINES, 7, 0, "\2\1", 2));
    tmk_lane_put(lane, TMK_KIND_DEF_CODE_FRAME, 0, 1, 7, 2);
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_MODULE, 3, 2, "\1\2/lib/x.so", 11));
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_MODULE, 4, 12, "\1\2/lib/y.so", 11));
    tmk_lane_put(lane, TMK_KIND_DEF_NATIVE_FRAME, 0, 2, 3, 0xabc);
    tmk_lane_put(lane, TMK_KIND_DEF_STREAM, 0x100, 9, 0x7777, 0);
    tmk_lane_put(lane, TMK_KIND_ALLOC, 0x100, 0, 64, 9ull << TMK_SIZE_BITS | 4096);
    tmk_lane_put(lane, TMK_KIND_RESERVED, 0x100, 0, 1 << 21, 0);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    const struct tmk_state *s = tmk_packer_state(flow.packer);
    const struct tmk_block *b = tmk_state_find(tmk_packer_state(flow.packer), 0x100, 64);
    assert_int_equal(b->size_bytes, 4096);
    assert_int_equal(b->stream, 9);
    assert_int_equal(s->devices[0].reserved_bytes, 1 << 21);
    tmk_lane_put(lane, TMK_KIND_DEVICE_END, 0x100, 0, 0, 0);
    tmk_lane_put(lane, TMK_KIND_FREE, 0x100, 0, 64, 0); /* too late: nothing is there */
    tmk_lane_leave(lane);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(s->n_live, 0);
    assert_int_equal(s->devices[0].allocated_bytes, 0);
    assert_int_equal(s->devices[0].reserved_bytes, 1 << 21);
    assert_int_equal(s->n_unknown_free, 1);
    struct tmk_reader *r = NULL;
    struct tmk_frame f;
    struct tmk_native native;
    struct tmk_stream stream;
    assert_int_equal(tmk_reader_open(flow.path, &r, NULL), 0);
    assert_true(tmk_reader_frame(r, 1, &f));
    assert_string_equal(f.file, "a.py");
    assert_string_equal(f.function, "f");
    assert_int_equal(f.line, 44);
    assert_true(tmk_reader_native(r, 2, &native));
    assert_string_equal(native.path, "/lib/x.so");
    assert_memory_equal(native.build_id, "\1\2", 2);
    assert_int_equal(native.address, 0xabc);
    assert_true(tmk_reader_stream(r, 9, &stream));
    assert_int_equal(stream.device, 0x100);
    assert_int_equal(stream.handle, 0x7777);
    tmk_reader_close(r);
    flow_close();
}

static uint32_t innermost_name(uint32_t thread)
{
    const struct tmk_state *s = tmk_packer_state(flow.packer);
    return s->contexts[tmk_state_thread_context(s, thread)].name;
}

/* Ranges written on behalf of another thread are that thread's; what torch defines. */
static void test_torch_kinds(void **unused)
{
    (void)unused;
    struct {
        struct tmk_parameter_head head;
        char shape[12];
    } parameter = {{.address = 0xfeed00, .size_bytes = 24, .name = 1}, "float32 [6]"};
    flow_open(4, 0);
    struct tmk_lane *lane = enter();
    assert_non_null(lane);
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, 1, 0, "fc", 2));
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, 2, 0, "nn.Linear", 9));
    tmk_lane_put(lane, TMK_KIND_DEF_TORCH_MODULE, 0, 1, 2, 0);
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_PARAMETER, 5, 3 << 16 | 0x101, &parameter,
                                  sizeof parameter.head + 11));
    assert_true(tmk_lane_put_text(lane, TMK_KIND_DEF_PARAMETER, 6, 0, &parameter, 23)); /* cut */
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, 1, 1, 0);
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, 2, 1, 77);
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, 3, 1, 1ull << 32); /* no thread */
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(innermost_name(lane->thread), 1);
    assert_int_equal(innermost_name(77), 2);
    tmk_lane_put(lane, TMK_KIND_POP, 0, 0, 1, 77);
    tmk_lane_leave(lane);
    assert_int_equal(tmk_drain_run(flow.drain), 0);
    assert_int_equal(innermost_name(lane->thread), 1);
    assert_int_equal(innermost_name(77), 0);
    struct tmk_reader *r = NULL;
    struct tmk_parameter p;
    assert_int_equal(tmk_reader_open(flow.path, &r, NULL), 0);
    assert_string_equal(tmk_reader_class(r, 1), "nn.Linear");
    assert_int_equal(tmk_reader_n_parameters(r), 6);
    assert_true(tmk_reader_parameter(r, 5, &p));
    assert_string_equal(p.name, "fc");
    assert_string_equal(p.shape, "float32 [6]");
    assert_int_equal(p.flags, 3);
    assert_int_equal(p.device, 0x101);
    assert_int_equal(p.address, 0xfeed00);
    assert_int_equal(p.size_bytes, 24);
    tmk_reader_close(r);
    flow_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_ring),       cmocka_unit_test(test_not_yet_due),
        cmocka_unit_test(test_earlier_moment),  cmocka_unit_test(test_impossible_records),
        cmocka_unit_test(test_further_kinds),   cmocka_unit_test(test_torch_kinds),
        cmocka_unit_test(test_sixteen_writers), cmocka_unit_test(test_generations_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
