/* SPDX-License-Identifier: MIT */
/* test_merge.c - whatever moment a process dies at, each of its records is in the trace exactly
 * once, and the same holds for the one who merges.
 *
 * The test plays the watched process: it fills pages of a ring for several threads and runs drain,
 * packer and writer over it. At every stage of a packing cycle ring and trace are copied, as a
 * SIGKILL at that moment would leave them, and the copy is merged. An allocation's size is its
 * number among those of its thread, so "exactly once, in order" is a count.
 *
 * The merger itself is killed, or its disk filled, at each of its writes in turn: pwritev() below
 * is ours. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crc32.h"
#include "base/error.h"
#include "trace/drain.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/merge.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/ring.h"
#include "trace/state.h"
#include "trace/writer.h"
#include "trace_kit.h"

enum { N_THREADS = 4, N_PAGES = 24, STEP_EVERY = 400 };

/* ---- faults ---- */

static enum fault { FAULT_NONE, FAULT_DIE, FAULT_TEAR, FAULT_FULL, FAULT_PAUSE } fault;
static int writes_left;

ssize_t pwritev(int fd, const struct iovec *parts, int n_parts, off_t offset);

ssize_t pwritev(int fd, const struct iovec *parts, int n_parts, off_t offset)
{
    if (fault != FAULT_NONE && writes_left-- <= 0) {
        if (fault == FAULT_PAUSE) {
            fault = FAULT_NONE;
            raise(SIGSTOP);
            return pwritev(fd, parts, n_parts, offset);
        }
        if (fault == FAULT_FULL) {
            errno = ENOSPC;
            return -1;
        }
        if (fault == FAULT_TEAR)
            (void)!pwrite(fd, parts[0].iov_base, parts[0].iov_len / 2 + 1, offset);
        _exit(9);
    }
    return (ssize_t)syscall(SYS_pwritev, fd, parts, n_parts, offset, 0L);
}

/* ---- the process ---- */

struct victim {
    char folder[256], ring_path[300], trace_path[300];
    char dead_ring[300], dead_trace[300]; /* the copies; the trace's header names this ring */
    struct tmk_ring ring;
    struct tmk_writer writer;
    struct tmk_chunk_out out;
    struct tmk_packer *packer;
    struct tmk_drain *drain;
    struct tmk_page *page[N_THREADS + 1];
    uint32_t at[N_THREADS + 1];
    uint64_t n_allocs[N_THREADS + 1]; /* published */
    uint64_t n_events, n_steps;
    struct kit_random random;
    void (*look)(struct victim *v); /* called at every stage */
    bool tears;                     /* look at each chunk half written, too */
    bool is_torn;                   /* a record in the ring is, on purpose */
    uint32_t n_looks;
    bool counter;
};

static void look(struct victim *v)
{
    if (v->look)
        v->look(v);
}

static int reserve(void *arg, size_t payload_bytes, uint64_t *ret_seq)
{
    struct victim *v = arg;
    look(v);
    return v->out.reserve(v->out.arg, payload_bytes, ret_seq);
}

static void look_at_torn(struct victim *v, struct tmk_chunk_header h, const uint8_t *payload);

/* Before it, the pages are marked with a chunk that is not there yet. */
static int append(void *arg, struct tmk_chunk_header *h, const uint8_t *payload)
{
    struct victim *v = arg;
    look(v);
    if (v->tears)
        look_at_torn(v, *h, payload);
    int rc = v->out.append(v->out.arg, h, payload);
    look(v);
    return rc;
}

static void victim_init(struct victim *v, uint64_t seed, uint64_t max_size)
{
    static const uint8_t id[16] = "killed by a test";
    char info[600];
    *v = (struct victim){.random = {seed}, .counter = tmk_clock_has_counter()};
    snprintf(v->folder, sizeof v->folder, "%s", kit_folder_make());
    snprintf(v->ring_path, sizeof v->ring_path, "%s/a.ring", v->folder);
    snprintf(v->trace_path, sizeof v->trace_path, "%s/a.trace", v->folder);
    snprintf(v->dead_ring, sizeof v->dead_ring, "%s/b.ring", v->folder);
    snprintf(v->dead_trace, sizeof v->dead_trace, "%s/b.trace", v->folder);
    snprintf(info, sizeof info, "pid=7\nring=%s\nmax_size=%llu\n", v->dead_ring,
             (unsigned long long)max_size);
    assert_int_equal(
        tmk_ring_create(&v->ring, v->ring_path, N_PAGES, N_PAGES, id, v->trace_path, NULL), 0);
    assert_int_equal(tmk_writer_create(&v->writer, v->trace_path, id, info, max_size, NULL), 0);
    struct tmk_packer_options options =
        tmk_packer_options_for(max_size, &tmk_state_limits_recorder);
    options.max_events = 700; /* several chunks a cycle */
    v->out = tmk_writer_out(&v->writer);
    struct tmk_chunk_out out = {.reserve = reserve, .append = append, .arg = v};
    assert_int_equal(tmk_packer_open(&options, &out, &v->packer), 0);
    assert_int_equal(tmk_drain_open(&v->ring, v->packer, true, &v->drain), 0);
}

static void victim_fini(struct victim *v)
{
    assert_true(v->is_torn || tmk_ring_is_valid(&v->ring));
    tmk_drain_close(v->drain);
    tmk_packer_close(v->packer);
    tmk_writer_close(&v->writer);
    tmk_ring_close(&v->ring);
    kit_folder_remove(v->folder);
}

/* Room for a record of n slots on the thread's page, as record/core/lane.c makes it. */
static struct tmk_record *room_for(struct victim *v, uint32_t thread, uint32_t n_slots)
{
    if (!v->page[thread] || v->at[thread] + n_slots > TMK_PAGE_SLOTS) {
        if (v->page[thread])
            tmk_page_seal(v->page[thread]);
        v->page[thread] = tmk_ring_take(&v->ring, thread);
        assert_non_null(v->page[thread]);
        v->at[thread] = 0;
    }
    struct tmk_record *r = &v->page[thread]->slots[v->at[thread]];
    v->at[thread] += n_slots;
    r->ticks = tmk_clock_ticks(v->counter);
    return r;
}

static void put(struct victim *v, uint32_t thread, uint8_t kind, uint64_t a, uint64_t b)
{
    struct tmk_record *r = room_for(v, thread, 1);
    r->a = a;
    r->b = b;
    tmk_record_publish(r, (union tmk_record_head){{.kind = kind, .n_slots = 1, .id = 1}});
    v->n_events++;
}

static void put_string(struct victim *v, uint32_t thread, uint32_t id, const char *text)
{
    uint32_t n_slots = (uint32_t)(24 + strlen(text) + 31) / 32;
    struct tmk_record *r = room_for(v, thread, n_slots);
    r->a = strlen(text);
    memcpy(&r->b, text, strlen(text));
    union tmk_record_head head = {
        {.kind = TMK_KIND_DEF_STRING, .n_slots = (uint8_t)n_slots, .id = id}};
    tmk_record_publish(r, head);
}

/* Thread t's n-th allocation is n bytes at an address of its own. */
static void live_a_little(struct victim *v, uint32_t n)
{
    static const char *const names[] = {"a", "a name of several slots, longer than one of them is"};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t thread = 1 + (uint32_t)kit_random_below(&v->random, N_THREADS);
        if (kit_random_below(&v->random, 50) == 0)
            put_string(v, thread, 1 + (i & 1), names[i & 1]);
        if (kit_random_below(&v->random, STEP_EVERY) == 0)
            put(v, thread, TMK_KIND_STEP, ++v->n_steps, 0);
        put(v, thread, TMK_KIND_ALLOC, (uint64_t)thread << 32 | (v->n_allocs[thread] % 64) * 64,
            v->n_allocs[thread] + 1);
        v->n_allocs[thread]++;
    }
}

static void pack(struct victim *v)
{
    atomic_fetch_add(&v->ring.header->epoch, 1);
    assert_int_equal(tmk_drain_run(v->drain), 0);
    look(v);
    assert_int_equal(tmk_writer_put_status(&v->writer, tmk_packer_state(v->packer)), 0);
    atomic_store(&v->ring.header->last_seq, v->writer.status.last_seq);
    look(v);
    atomic_fetch_add(&v->ring.header->epoch, 1);
}

/* ---- the inquest ---- */

struct count {
    uint64_t next[N_THREADS + 1];
    uint64_t n_wrong, n_steps, last_ns;
};

static void count_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                        struct tmk_block *b)
{
    struct count *c = arg;
    (void)b;
    if (rp->implied)
        return;
    c->n_wrong += ev->time_ns < c->last_ns;
    c->last_ns = ev->time_ns;
    c->n_steps += ev->kind == TMK_KIND_STEP;
    if (ev->kind != TMK_KIND_ALLOC)
        return;
    uint32_t thread = ev->thread <= N_THREADS ? ev->thread : 0;
    c->n_wrong += ev->size_bytes != ++c->next[thread] || ev->address >> 32 != thread;
}

/* The trace has each of the victim's records exactly once, and a row for each finished step. */
static void check_whole(struct victim *v, const char *path)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    bool live = true;
    if (tmk_merge_open(path, &r, &live, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(live);
    struct count c = {0};
    struct tmk_replay rp;
    struct tmk_visitor visitor = {.arg = &c, .event = count_event};
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &visitor, NULL), 0);
    assert_int_equal(c.n_wrong, 0);
    for (uint32_t t = 1; t <= N_THREADS; t++)
        assert_int_equal(c.next[t], v->n_allocs[t]);
    assert_int_equal(c.n_steps, v->n_steps);
    assert_int_equal(rp.state.n_events, v->n_events);
    assert_int_equal(rp.n_gaps + rp.n_bad_chunks, 0);
    assert_int_equal(tmk_reader_damage(r)->n_bytes, 0);
    uint64_t n_rows = tmk_reader_n_step_rows(r);
    assert_int_equal(n_rows, rp.state.n_step_rows + rp.state.n_devices);
    for (uint64_t i = 0; i < n_rows; i++) {
        assert_int_equal(tmk_reader_step_row(r, i)->ordinal, i + 1);
        assert_int_equal(tmk_reader_step_row(r, i)->open, i + rp.state.n_devices >= n_rows);
    }
    const struct tmk_status *status = tmk_reader_status(r);
    assert_int_equal(status->state, TMK_STATE_CLOSED);
    assert_int_equal(status->flags, TMK_STATUS_MERGED);
    assert_int_equal(status->n_events, v->n_events);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    assert_int_equal(access(v->dead_ring, F_OK), -1);
}

static void die(struct victim *v)
{
    kit_file_copy(v->ring_path, v->dead_ring);
    kit_file_copy(v->trace_path, v->dead_trace);
}

static void die_and_merge(struct victim *v)
{
    v->n_looks++;
    die(v);
    check_whole(v, v->dead_trace);
}

/* ---- tests ---- */

static void test_death_at_every_stage(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 1, 0);
    live_a_little(v, 100);
    for (int cycle = 0; cycle < 6; cycle++) {
        v->look = die_and_merge;
        look(v);
        pack(v);
        live_a_little(v, 500 + 900 * (uint32_t)(cycle % 3));
    }
    die_and_merge(v);
    assert_in_range(v->n_looks, 60, 1000);
    victim_fini(v);
    free(v);
}

/* While emptied pages are being zeroed for reuse, some are half zero. */
static void half_recycled(struct victim *v)
{
    die(v);
    struct tmk_ring ring;
    int fd = open(v->dead_ring, O_RDONLY);
    assert_int_equal(tmk_ring_copy(&ring, fd, v->dead_ring, false, 0, NULL), 0);
    close(fd);
    size_t n;
    uint8_t *bytes = kit_file_read(v->dead_ring, &n);
    for (uint32_t i = 0; i < tmk_ring_n_pages(&ring); i++) {
        const struct tmk_page *page = &ring.pages[i];
        uint64_t done = atomic_load(&page->done);
        if (atomic_load(&page->state) != TMK_PAGE_SEALED || (done & 0xffff) < TMK_PAGE_SLOTS - 3 ||
            done >> 16 > v->writer.status.last_seq)
            continue;
        size_t half = kit_random_below(&v->random, sizeof page->slots);
        memset(bytes + TMK_RING_HEADER_BYTES + i * TMK_PAGE_BYTES + 64, 0, half);
        v->n_looks++;
    }
    kit_file_write(v->dead_ring, bytes, n);
    free(bytes);
    tmk_ring_close(&ring);
    check_whole(v, v->dead_trace);
}

static void test_death_while_recycling(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 2, 0);
    v->look = half_recycled;
    for (int cycle = 0; cycle < 6; cycle++) {
        live_a_little(v, 3000);
        pack(v);
    }
    assert_in_range(v->n_looks, 20, 10000);
    victim_fini(v);
    free(v);
}

/* A record whose first word was not yet stored did not happen; those after it on the thread's next
 * page, if the thread was not the one killed in it, did. */
static void test_death_inside_a_record(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 3, 0);
    v->is_torn = true;
    live_a_little(v, 1000);
    pack(v);
    live_a_little(v, 200);
    struct tmk_record *r = room_for(v, 2, 3);
    r->a = 70;
    r->b = UINT64_MAX;
    memset(r + 1, 0xff, sizeof *r); /* text that was being copied */
    die_and_merge(v);
    victim_fini(v);
    free(v);
}

/* Nothing was packed yet; nothing was ever recorded. */
static void test_death_before_the_first_chunk(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 4, 0);
    die_and_merge(v);
    live_a_little(v, 10);
    die_and_merge(v);
    victim_fini(v);
    free(v);
}

/* The merger dies, is torn or finds the disk full at its n-th write, for every n; then another one
 * comes. */
static void merge_again_and_again(struct victim *v, enum fault kind)
{
    int n_dead = 0;
    for (int n = 0;; n++) {
        die(v);
        pid_t pid = fork();
        if (pid == 0) {
            fault = kind;
            writes_left = n;
            _exit(tmk_merge_settle(v->dead_trace, NULL) == 1 ? 0 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status),
                         WEXITSTATUS(status) ? (kind == FAULT_FULL ? 1 : 9) : 0);
        check_whole(v, v->dead_trace);
        n_dead += WEXITSTATUS(status) != 0;
        if (WEXITSTATUS(status) == 0)
            break;
    }
    assert_in_range(n_dead, 2, 1000);
}

static void test_merger_dies(void **unused)
{
    (void)unused;
    for (enum fault kind = FAULT_DIE; kind <= FAULT_FULL; kind++) {
        struct victim *v = malloc(sizeof *v);
        victim_init(v, 10 + kind, 0);
        live_a_little(v, 3000);
        merge_again_and_again(v, kind);
        pack(v);
        live_a_little(v, 4000);
        merge_again_and_again(v, kind);
        victim_fini(v);
        free(v);
    }
}

/* Dies where the pages are marked with a chunk that never came, and the merger dies after it. */
static void merge_after_mark(struct victim *v)
{
    if (v->n_looks++ % 3 == 1)
        merge_again_and_again(v, FAULT_DIE);
}

static void test_merger_dies_after_marks(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 20, 0);
    live_a_little(v, 2000);
    pack(v);
    live_a_little(v, 2500);
    v->look = merge_after_mark;
    pack(v);
    assert_in_range(v->n_looks, 6, 1000);
    victim_fini(v);
    free(v);
}

/* Of several readers that come at once, one merges. */
static void test_many_mergers(void **unused)
{
    (void)unused;
    enum { N = 8 };
    for (uint64_t round = 0; round < 12; round++) {
        struct victim *v = malloc(sizeof *v);
        victim_init(v, 30 + round, 0);
        live_a_little(v, 3000);
        pack(v);
        live_a_little(v, 4000);
        die(v);
        pid_t pids[N];
        for (int i = 0; i < N; i++) {
            pids[i] = fork();
            if (pids[i] == 0)
                _exit(tmk_merge_settle(v->dead_trace, NULL) < 0);
        }
        for (int i = 0; i < N; i++) {
            int status = -1;
            waitpid(pids[i], &status, 0);
            assert_true(WIFEXITED(status));
        }
        check_whole(v, v->dead_trace);
        victim_fini(v);
        free(v);
    }
}

/* One that comes while another is in the middle of it waits, and then has nothing to do. */
static void test_merger_waits(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    int status = -1;
    victim_init(v, 50, 0);
    live_a_little(v, 5000);
    die(v);
    pid_t first = fork();
    if (first == 0) {
        fault = FAULT_PAUSE;
        writes_left = 2;
        _exit(tmk_merge_settle(v->dead_trace, NULL) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(first, &status, WUNTRACED), first);
    assert_true(WIFSTOPPED(status));
    pid_t second = fork();
    if (second == 0)
        _exit(tmk_merge_settle(v->dead_trace, NULL) == 0 ? 0 : 1);
    usleep(100000);
    assert_int_equal(waitpid(second, &status, WNOHANG), 0);
    kill(first, SIGCONT);
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(second, &status, 0), second);
    assert_int_equal(status, 0);
    check_whole(v, v->dead_trace);
    victim_fini(v);
    free(v);
}

/* What a reader sees who cannot merge, because another one is at it. */
static void check_view(struct victim *v)
{
    struct tmk_reader *r = NULL;
    bool live = true;
    assert_int_equal(tmk_merge_open_beside(v->dead_trace, v->dead_ring, &r, &live, NULL), 0);
    assert_false(live);
    struct count c = {0};
    struct tmk_replay rp;
    struct tmk_visitor visitor = {.arg = &c, .event = count_event};
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &visitor, NULL), 0);
    assert_int_equal(c.n_wrong, 0);
    for (uint32_t t = 1; t <= N_THREADS; t++)
        assert_int_equal(c.next[t], v->n_allocs[t]);
    assert_int_equal(rp.state.n_events, v->n_events);
    assert_int_equal(rp.n_gaps + rp.n_bad_chunks, 0);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
}

/* The merger is held up before its nth write. False: it had fewer. */
static bool view_beside_merger(struct victim *v, int n)
{
    int status = -1;
    die(v);
    pid_t merger = fork();
    if (merger == 0) {
        fault = FAULT_PAUSE;
        writes_left = n;
        _exit(tmk_merge_settle(v->dead_trace, NULL) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(merger, &status, WUNTRACED), merger);
    bool is_stopped = WIFSTOPPED(status);
    if (is_stopped) {
        check_view(v);
        kill(merger, SIGCONT);
        assert_int_equal(waitpid(merger, &status, 0), merger);
    }
    assert_int_equal(status, 0);
    check_whole(v, v->dead_trace);
    return is_stopped;
}

/* At every seventh stage of a chunk, of which there are three: at each of them now and then. */
static void view_beside_mergers(struct victim *v)
{
    static unsigned n_stages;
    for (int n = 0; n_stages % 7 == 0 && view_beside_merger(v, n); n++)
        v->n_looks++;
    n_stages++;
}

/* Pages of a process that died in the middle of a cycle are on their way to the trace, and the
 * merger brings the rest: no moment shows a record twice, or not at all. */
static void test_view_beside_merger(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 60, 0);
    live_a_little(v, 2000);
    pack(v);
    live_a_little(v, 3500);
    v->look = view_beside_mergers;
    pack(v);
    assert_in_range(v->n_looks, 20, 1000);
    victim_fini(v);
    free(v);
}

/* A file that was written round, with death at every stage of going round. */
static void round_and_merge(struct victim *v)
{
    if (kit_random_below(&v->random, 400) != 0)
        return;
    v->n_looks++;
    die(v);
    struct tmk_reader *r = NULL;
    assert_int_equal(tmk_merge_open(v->dead_trace, &r, NULL, NULL), 0);
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    uint64_t n_allocs = 0;
    for (uint32_t t = 1; t <= N_THREADS; t++)
        n_allocs += v->n_allocs[t];
    assert_int_equal(rp.state.n_events, v->n_events);
    assert_int_equal(rp.state.n_allocs, n_allocs);
    assert_int_equal(rp.state.n_live, n_allocs < 64 * N_THREADS ? n_allocs : 64 * N_THREADS);
    assert_int_equal(tmk_reader_n_step_rows(r), rp.state.n_step_rows + rp.state.n_devices);
    assert_int_equal(tmk_reader_damage(r)->n_bytes, 0);
    assert_in_range(tmk_reader_file_bytes(r), 1, TMK_MAX_SIZE_LEAST);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
}

static void test_death_in_a_round_file(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 5, TMK_MAX_SIZE_LEAST);
    v->look = round_and_merge;
    for (int cycle = 0; cycle < 220; cycle++) {
        live_a_little(v, 5000);
        pack(v);
    }
    assert_in_range(v->writer.status.n_given_up, 100000, 2000000);
    assert_in_range(v->n_looks, 4, 10000);
    victim_fini(v);
    free(v);
}

/* The dead process's trace is read together with its ring, which stays where it is: nothing is
 * lost, and nothing counts as damage. */
static void check_beside(struct victim *v)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    bool live = true;
    if (tmk_merge_open_beside(v->dead_trace, v->dead_ring, &r, &live, &err) < 0)
        fail_msg("%s", err.text);
    assert_false(live);
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    assert_int_equal(rp.state.n_events, v->n_events);
    assert_int_equal(rp.n_gaps + rp.n_bad_chunks, 0);
    assert_int_equal(tmk_reader_damage(r)->n_bytes, 0);
    assert_int_equal(tmk_reader_damage(r)->n_places, 0);
    assert_int_equal(tmk_reader_damage(r)->n_chunks, 0);
    assert_int_equal(tmk_reader_n_step_rows(r), rp.state.n_step_rows + rp.state.n_devices);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    assert_int_equal(access(v->dead_ring, F_OK), 0);
}

/* The process is killed in the middle of writing the chunk, which the writer has numbered and put
 * checksums on. */
static void look_at_torn(struct victim *v, struct tmk_chunk_header h, const uint8_t *payload)
{
    size_t n_payload = h.payload_bytes;
    const size_t cuts[] = {1, 40, sizeof h, sizeof h + n_payload / 2, sizeof h + n_payload - 1};
    uint8_t *bytes = malloc(sizeof h + n_payload);
    h.seq = v->writer.status.last_seq + 1;
    h.payload_crc = tmk_crc32(0, payload, n_payload);
    h.header_crc = tmk_crc32(0, &h, offsetof(struct tmk_chunk_header, header_crc));
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, payload, n_payload);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        die(v);
        int fd = open(v->dead_trace, O_WRONLY);
        off_t at = (off_t)v->writer.status.head;
        assert_int_equal(pwrite(fd, bytes, cuts[i], at), (ssize_t)cuts[i]);
        close(fd);
        check_beside(v);
        v->n_looks++;
    }
    free(bytes);
}

static void test_torn_chunk(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 8, 0);
    v->tears = true;
    for (int cycle = 0; cycle < 4; cycle++) {
        live_a_little(v, 1500);
        pack(v);
    }
    assert_in_range(v->n_looks, 40, 1000);
    victim_fini(v);
    free(v);
}

/* There the torn chunk has bytes of an older one behind it. */
static void test_torn_chunk_in_a_round_file(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 9, TMK_MAX_SIZE_LEAST);
    for (int cycle = 0; cycle < 200; cycle++) {
        v->tears = cycle % 50 == 49;
        live_a_little(v, 5000);
        pack(v);
    }
    assert_in_range(v->writer.status.n_given_up, 100000, 2000000);
    assert_in_range(v->n_looks, 40, 1000);
    victim_fini(v);
    free(v);
}

/* The ring of another trace under the name that the header has: left alone. */
static void test_foreign_ring(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 6, 0);
    live_a_little(v, 100);
    pack(v);
    die(v);
    size_t n;
    uint8_t *bytes = kit_file_read(v->dead_ring, &n);
    bytes[24] ^= 1;
    kit_file_write(v->dead_ring, bytes, n);
    free(bytes);
    struct tmk_error err = {0};
    assert_int_equal(tmk_merge_settle(v->dead_trace, &err), TMK_EFORMAT);
    assert_non_null(strstr(err.text, "another trace"));
    assert_int_equal(access(v->dead_ring, F_OK), 0);
    struct tmk_reader *r = NULL;
    assert_int_equal(tmk_merge_open(v->dead_trace, &r, NULL, NULL), 0);
    assert_int_equal(tmk_reader_status(r)->n_events, v->n_events);
    tmk_reader_close(r);
    victim_fini(v);
    free(v);
}

static void wait_for_lock(int fd)
{
    struct flock lock;
    do {
        usleep(100);
        lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    } while (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK);
}

/* Beside the living process: everything published so far is seen, and nothing is disturbed. */
static void test_live(void **unused)
{
    (void)unused;
    struct victim *v = malloc(sizeof *v);
    victim_init(v, 7, 0);
    for (int cycle = 0; cycle < 4; cycle++) {
        live_a_little(v, 2000);
        if (cycle % 2)
            pack(v);
        die(v); /* the trace's header names this ring: hold it, as the process would */
        int fd = open(v->dead_ring, O_RDWR);
        pid_t pid = fork();
        if (pid == 0) { /* a lock of one's own process is no obstacle: read from another */
            struct tmk_reader *r = NULL;
            bool live = false;
            struct count c = {0};
            struct tmk_replay rp;
            struct tmk_visitor visitor = {.arg = &c, .event = count_event};
            wait_for_lock(fd);
            if (tmk_merge_open(v->dead_trace, &r, &live, NULL) < 0 || !live ||
                tmk_replay_init(&rp, &tmk_state_limits_tool) < 0 ||
                tmk_replay_run(&rp, r, &visitor, NULL) < 0)
                _exit(2);
            bool same = c.n_wrong == 0 && rp.state.n_events == v->n_events &&
                        tmk_reader_n_step_rows(r) == rp.state.n_step_rows + 1;
            for (uint32_t t = 1; t <= N_THREADS; t++)
                same = same && c.next[t] == v->n_allocs[t];
            _exit(same ? 0 : 3);
        }
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
        assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
        int status = -1;
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        size_t n, m; /* the reader wrote nothing */
        uint8_t *one = kit_file_read(v->trace_path, &n), *two = kit_file_read(v->dead_trace, &m);
        assert_int_equal(n, m);
        assert_memory_equal(one, two, n);
        free(one);
        free(two);
        close(fd);
    }
    victim_fini(v);
    free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death_at_every_stage),
        cmocka_unit_test(test_death_while_recycling),
        cmocka_unit_test(test_death_inside_a_record),
        cmocka_unit_test(test_death_before_the_first_chunk),
        cmocka_unit_test(test_merger_dies),
        cmocka_unit_test(test_merger_dies_after_marks),
        cmocka_unit_test(test_many_mergers),
        cmocka_unit_test(test_merger_waits),
        cmocka_unit_test(test_view_beside_merger),
        cmocka_unit_test(test_death_in_a_round_file),
        cmocka_unit_test(test_torn_chunk),
        cmocka_unit_test(test_torn_chunk_in_a_round_file),
        cmocka_unit_test(test_foreign_ring),
        cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
