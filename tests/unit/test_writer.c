/* SPDX-License-Identifier: MIT */
/* test_writer.c - the trace file as a bounded place: never larger than allowed, nothing permanent
 * lost, readable at every moment.
 *
 * The oracle is a state that saw every record. A file that has gone round several times must, read
 * from its oldest checkpoint, lead to the same state, and still have every definition and every
 * step row. Between any two calls of the writer, and with the chunk being written torn at any
 * place, it must lead to the state of the last whole events chunk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/error.h"
#include "trace/defs.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"
#include "trace/writer.h"
#include "trace_kit.h"

enum { MAX_SIZE = TMK_MAX_SIZE_LEAST };

static const struct tmk_state_limits limits = {.max_blocks = 1 << 16,
                                               .max_contexts = 1 << 20,
                                               .max_ranges = 1 << 16,
                                               .max_threads = 1 << 10,
                                               .max_segments = 1 << 10};
static const uint8_t trace_id[16] = "round and round";

struct bench { /* a writer under test between packer and file */
    char folder[256], path[300], copy[300];
    struct tmk_writer writer;
    struct tmk_chunk_out out; /* the writer's own */
    struct tmk_packer *packer;
    struct kit_source source;

    struct tmk_input *pending; /* records added that no events chunk has yet */
    size_t n_pending;
    struct tmk_state oracle; /* of all records in the file */
    struct tmk_step_row *rows;
    uint64_t n_rows, row_room;

    struct kit_random random;
    uint32_t look_every; /* look at the file about every so many calls; 0: never */
    uint32_t n_looks;
    uint64_t bytes_appended;
};

static void keep_row(void *arg, const struct tmk_step_row *row)
{
    struct bench *b = arg;
    if (b->n_rows == b->row_room) {
        b->row_room = b->row_room ? 2 * b->row_room : 1024;
        b->rows = realloc(b->rows, b->row_room * sizeof *b->rows);
        assert_non_null(b->rows);
    }
    b->rows[b->n_rows++] = *row;
}

/* ---- looking at the file as a reader would ---- */

static struct tmk_reader *open_whole(const char *path)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    if (tmk_reader_open(path, &r, &err) < 0)
        fail_msg("%s", err.text);
    return r;
}

/* The trace at `path` leads to the oracle's state. */
static void check_state(struct bench *b, const char *path)
{
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    struct tmk_reader *r = open_whole(path);
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    const char *found = kit_state_difference(&rp.state, &b->oracle);
    if (found)
        fail_msg("after %llu bytes: %s", (unsigned long long)b->bytes_appended, found);
    assert_int_equal(rp.n_gaps + rp.n_bad_chunks, 0);
    assert_true(tmk_state_is_valid(&rp.state));
    assert_true(tmk_state_adds_up(&rp.state));
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    b->n_looks++;
}

static bool is_look_due(struct bench *b)
{
    return b->look_every && kit_random_below(&b->random, b->look_every) == 0;
}

static int reserve(void *arg, size_t payload_bytes, uint64_t *ret_seq)
{
    struct bench *b = arg;
    int rc = b->out.reserve(b->out.arg, payload_bytes, ret_seq);
    if (rc == 0 && is_look_due(b))
        check_state(b, b->path);
    return rc;
}

/* What a kill in the middle of writing this chunk leaves. */
static void look_at_torn(struct bench *b, const struct tmk_chunk_header *h, const uint8_t *payload)
{
    kit_file_copy(b->path, b->copy);
    size_t n = kit_random_below(&b->random, h->payload_bytes + TMK_CHUNK_HEADER_BYTES);
    int fd = open(b->copy, O_RDWR);
    size_t head = n < sizeof *h ? n : sizeof *h;
    struct tmk_chunk_header sealed = *h;
    sealed.seq = b->writer.status.last_seq + 1;
    sealed.payload_crc = tmk_crc32(0, payload, h->payload_bytes);
    sealed.header_crc = tmk_crc32(0, &sealed, offsetof(struct tmk_chunk_header, header_crc));
    off_t at = (off_t)b->writer.status.head;
    assert_int_equal(pwrite(fd, &sealed, head, at), head);
    assert_int_equal(pwrite(fd, payload, n - head, at + (off_t)head), n - head);
    close(fd);
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    struct tmk_reader *r = open_whole(b->copy);
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    const char *found = kit_state_difference(&rp.state, &b->oracle);
    if (found)
        fail_msg("torn after %zu bytes: %s", n, found);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    b->n_looks++;
}

static int append(void *arg, struct tmk_chunk_header *h, const uint8_t *payload)
{
    struct bench *b = arg;
    if (is_look_due(b))
        look_at_torn(b, h, payload);
    int rc = b->out.append(b->out.arg, h, payload);
    if (rc < 0)
        return rc;
    for (size_t i = 0; h->kind == TMK_CHUNK_EVENTS && i < b->n_pending; i++)
        kit_apply(&b->oracle, &b->pending[i]);
    if (h->kind == TMK_CHUNK_EVENTS)
        b->n_pending = 0;
    b->bytes_appended += h->payload_bytes + TMK_CHUNK_HEADER_BYTES;
    struct stat st;
    assert_int_equal(stat(b->path, &st), 0);
    if (b->writer.max_size)
        assert_in_range(st.st_size, b->writer.first, b->writer.max_size);
    if (is_look_due(b))
        check_state(b, b->path);
    return 0;
}

/* ---- filling ---- */

static void bench_init_with(struct bench *b, uint64_t seed, uint64_t max_size,
                            const struct tmk_state_limits *most)
{
    *b = (struct bench){.random = {seed}};
    snprintf(b->folder, sizeof b->folder, "%s", kit_folder_make());
    snprintf(b->path, sizeof b->path, "%s/a.trace", b->folder);
    snprintf(b->copy, sizeof b->copy, "%s/b.trace", b->folder);
    assert_int_equal(tmk_writer_create(&b->writer, b->path, trace_id, "pid=7\n", max_size, NULL),
                     0);
    b->out = tmk_writer_out(&b->writer);
    struct tmk_packer_options options = tmk_packer_options_for(max_size, most);
    struct tmk_chunk_out out = {.reserve = reserve, .append = append, .arg = b};
    assert_int_equal(tmk_packer_open(&options, &out, &b->packer), 0);
    b->pending = calloc(options.max_events + 64u, sizeof *b->pending);
    assert_int_equal(tmk_state_init(&b->oracle, most), 0);
    b->oracle.on_step_row = keep_row;
    b->oracle.on_step_row_arg = b;
    kit_source_init(&b->source, seed);
    b->source.steps_rarer = 40;
}

static void bench_init(struct bench *b, uint64_t seed, uint64_t max_size)
{
    bench_init_with(b, seed, max_size, &limits);
}

static void bench_fini(struct bench *b)
{
    tmk_packer_close(b->packer);
    tmk_writer_close(&b->writer);
    tmk_state_fini(&b->oracle);
    free(b->pending);
    free(b->rows);
    kit_folder_remove(b->folder);
}

static void flush(struct bench *b)
{
    assert_int_equal(tmk_packer_flush(b->packer), 0);
    assert_int_equal(tmk_writer_put_status(&b->writer, tmk_packer_state(b->packer)), 0);
    tmk_state_compact(&b->oracle);
}

static void add(struct bench *b, const struct tmk_input *in)
{
    if (kit_is_event(in))
        b->pending[b->n_pending++] = *in;
    int rc = tmk_packer_add(b->packer, in);
    assert_in_range(rc, 0, 1);
    if (rc > 0)
        flush(b);
}

static void fill(struct bench *b, uint64_t n_bytes)
{
    uint64_t end = b->bytes_appended + n_bytes;
    while (b->bytes_appended < end) {
        struct tmk_input in;
        kit_source_next(&b->source, &in);
        /* Definitions would in the long run be all there is room for: only the first ones. */
        if (!kit_is_event(&in) && b->bytes_appended > MAX_SIZE / 4)
            continue;
        add(b, &in);
    }
    flush(b);
}

/* Every definition made in the first quarter of MAX_SIZE, and every step row ever. */
static void check_permanent(struct bench *b)
{
    struct tmk_reader *r = open_whole(b->path);
    assert_int_equal(tmk_reader_n_step_rows(r), b->n_rows);
    for (uint64_t i = 0; i < b->n_rows; i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        assert_int_equal(row->ordinal, i + 1);
        assert_true(row->step == b->rows[i].step);
        assert_int_equal(row->device, b->rows[i].device);
        assert_int_equal(row->peak_bytes, b->rows[i].peak_bytes);
        assert_int_equal(row->peak_ns, b->rows[i].peak_ns);
        assert_int_equal(row->n_allocs, b->rows[i].n_allocs);
        assert_int_equal(row->n_frees, b->rows[i].n_frees);
        assert_int_equal(row->end_bytes, b->rows[i].end_bytes);
    }
    struct tmk_stack stack;
    struct tmk_frame frame;
    uint32_t n_strings = tmk_reader_n_strings(r), n_stacks = tmk_reader_n_stacks(r);
    assert_in_range(n_strings, 200, b->source.n_strings + 1);
    for (uint32_t i = 1; i < n_strings; i++)
        assert_non_null(tmk_reader_string(r, i));
    for (uint32_t i = 1; i < n_stacks; i++)
        assert_true(tmk_reader_stack(r, i, &stack));
    for (uint32_t i = 1; i < n_stacks; i++) /* about as many frames as stacks */
        if (i + 100 < n_stacks)
            assert_true(tmk_reader_frame(r, i, &frame));
    tmk_reader_close(r);
}

/* ---- tests ---- */

/* Six times round. After each quarter turn the file is whole, undamaged and says everything. */
static void test_round(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 3, MAX_SIZE);
    for (int quarter = 0; quarter < 24; quarter++) {
        fill(b, MAX_SIZE / 4);
        check_state(b, b->path);
        check_permanent(b);
        struct tmk_reader *r = open_whole(b->path);
        const struct tmk_damage *damage = tmk_reader_damage(r);
        if (damage->n_bytes)
            fail_msg("quarter %d: %llu bytes of a whole file look damaged, from byte %llu", quarter,
                     (unsigned long long)damage->n_bytes, (unsigned long long)damage->first_offset);
        assert_int_equal(tmk_reader_status(r)->n_events, b->oracle.n_events);
        if (quarter > 4)
            assert_in_range(tmk_reader_status(r)->n_given_up, 1, b->oracle.n_events);
        tmk_reader_close(r);
    }
    bench_fini(b);
    free(b);
}

/* ---- following ---- */

enum { KEPT_CHUNKS = 8, KEPT_ROWS = 100 };

struct follower {
    struct tmk_reader *reader;
    struct tmk_replay rp;
};

static void follower_open(struct follower *f, const char *path)
{
    *f = (struct follower){.reader = open_whole(path)};
    assert_int_equal(tmk_replay_init(&f->rp, &limits), 0);
}

static void follower_close(struct follower *f)
{
    tmk_replay_fini(&f->rp);
    tmk_reader_close(f->reader);
}

/* Take in what is new: the state is the oracle's, and the newest rows are there. */
static void follow(struct follower *f, struct bench *b)
{
    struct tmk_visitor nobody = {0};
    struct tmk_error err = {0};
    if (tmk_reader_follow(f->reader, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(tmk_replay_follow(&f->rp, f->reader, &nobody, NULL), 0);
    const char *found = kit_state_difference(&f->rp.state, &b->oracle);
    if (found)
        fail_msg("after %llu bytes: %s", (unsigned long long)b->bytes_appended, found);
    assert_int_equal(f->rp.n_gaps + f->rp.n_bad_chunks, 0);
    assert_int_equal(tmk_reader_status(f->reader)->n_events, b->oracle.n_events);
    tmk_reader_forget(f->reader, KEPT_CHUNKS, KEPT_ROWS);
    tmk_replay_rest(&f->rp);
    found = kit_state_difference(&f->rp.state, &b->oracle);
    if (found)
        fail_msg("after a rest: %s", found);
    assert_int_equal(f->rp.state.n_entries, f->rp.state.n_live);
    assert_in_range(tmk_reader_n_chunks(f->reader), 1, KEPT_CHUNKS);
    uint64_t n = tmk_reader_n_step_rows(f->reader);
    assert_int_equal(n, b->n_rows < KEPT_ROWS ? b->n_rows : KEPT_ROWS);
    for (uint64_t i = 1; i <= n; i++)
        assert_int_equal(tmk_reader_step_row(f->reader, n - i)->ordinal, b->n_rows + 1 - i);
}

/* The beginning of a chunk, as a reader may see it while it is written. */
static void put_torn(struct bench *b)
{
    struct tmk_chunk_header h = {.magic = TMK_CHUNK_MAGIC,
                                 .kind = TMK_CHUNK_EVENTS,
                                 .seq = b->writer.status.last_seq + 1,
                                 .payload_bytes = 4000,
                                 .payload_crc = 1};
    h.header_crc = tmk_crc32(0, &h, offsetof(struct tmk_chunk_header, header_crc));
    int fd = open(b->path, O_RDWR);
    assert_int_equal(pwrite(fd, &h, sizeof h, (off_t)b->writer.status.head), sizeof h);
    close(fd);
}

/* Twice round, read on after each 32nd of the file, also while a chunk is being written. */
static void test_followed(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    struct follower f;
    bench_init(b, 11, MAX_SIZE);
    follower_open(&f, b->path);
    for (int piece = 0; piece < 2 * 32; piece++) {
        fill(b, MAX_SIZE / 32);
        if (piece % 5 == 0)
            put_torn(b);
        follow(&f, b);
        assert_int_equal(tmk_reader_follow(f.reader, NULL), 0); /* nothing is new */
    }
    follower_close(&f);
    bench_fini(b);
    free(b);
}

/* A follower that begins in the middle goes on from the newest checkpoint; one that was overtaken
 * says so. */
static void test_followed_late(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    struct follower f;
    bench_init(b, 12, MAX_SIZE);
    fill(b, 3 * MAX_SIZE / 2);
    follower_open(&f, b->path);
    f.rp.from_newest = true;
    follow(&f, b);
    fill(b, MAX_SIZE / 8);
    follow(&f, b);
    fill(b, 3 * MAX_SIZE / 2);
    assert_int_equal(tmk_reader_follow(f.reader, NULL), TMK_EAGAIN);
    follower_close(&f);
    bench_fini(b);
    free(b);
}

/* Killed between or inside any two writes. */
static void test_killed_anywhere(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 4, MAX_SIZE);
    b->look_every = 7;
    fill(b, 4 * MAX_SIZE);
    assert_in_range(b->n_looks, 30, 10000);
    bench_fini(b);
    free(b);
}

/* ---- more live blocks than a checkpoint has room for ---- */

struct crowd { /* blocks at addresses that rise; the oldest is freed for each new one */
    struct bench *b;
    uint64_t n_allocs, n_frees;
    uint32_t n_live;
};

static uint64_t crowd_size(uint64_t k)
{
    return k % 1000 + 1;
}

static void crowd_add(struct crowd *c)
{
    struct tmk_input in = {.ns = c->n_allocs * 100, .thread = 1};
    if (c->n_allocs % 500 == 0) {
        in.kind = TMK_KIND_STEP;
        in.a = c->n_allocs / 500;
        add(c->b, &in);
    }
    in.kind = TMK_KIND_ALLOC;
    in.a = 0x10000000 + c->n_allocs * 64;
    in.b = crowd_size(c->n_allocs++);
    add(c->b, &in);
    if (c->n_allocs - c->n_frees <= c->n_live)
        return;
    in.kind = TMK_KIND_FREE;
    in.a = 0x10000000 + c->n_frees++ * 64;
    add(c->b, &in);
}

/* Totals, devices and rows are the oracle's; blocks are, or are counted as missing. */
static void check_figures(struct bench *b, const char *path, uint64_t *ret_n_outside)
{
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    struct tmk_reader *r = open_whole(path);
    assert_int_equal(tmk_replay_init(&rp, &tmk_state_limits_tool), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    const struct tmk_state *s = &rp.state, *o = &b->oracle;
    assert_int_equal(s->n_events, o->n_events);
    assert_int_equal(s->n_allocs, o->n_allocs);
    assert_int_equal(s->n_frees, o->n_frees);
    assert_int_equal(s->n_unknown_free, 0);
    assert_int_equal(s->n_step_rows, o->n_step_rows);
    assert_int_equal(s->n_devices, 1);
    assert_int_equal(s->devices[0].allocated_bytes, o->devices[0].allocated_bytes);
    assert_int_equal(s->devices[0].max_bytes, o->devices[0].max_bytes);
    assert_int_equal(s->devices[0].row.n_allocs, o->devices[0].row.n_allocs);
    assert_int_equal(s->devices[0].row.free_bytes, o->devices[0].row.free_bytes);
    assert_int_equal(s->devices[0].row.peak_bytes, o->devices[0].row.peak_bytes);
    assert_int_equal(s->n_live + s->n_outside, o->n_live);
    uint64_t n_wrong = 0;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *block = &s->entries[i];
        n_wrong +=
            block->live && block->size_bytes != crowd_size((block->address - 0x10000000) / 64);
    }
    assert_int_equal(n_wrong, 0);
    assert_true(tmk_state_is_valid(s));
    assert_true(tmk_state_adds_up(s));
    *ret_n_outside = s->n_outside;
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
}

/* Three times round with so many alive. Looks at the file as it is after whole flushes. */
static void go_round_with(uint32_t n_live, uint64_t max_size, bool fits)
{
    static const struct tmk_state_limits many = {.max_blocks = 1 << 18,
                                                 .max_contexts = 1 << 10,
                                                 .max_ranges = 1 << 10,
                                                 .max_threads = 1 << 10,
                                                 .max_segments = 1 << 10};
    struct bench *b = malloc(sizeof *b);
    struct crowd c = {.b = b, .n_live = n_live};
    bench_init_with(b, 9, max_size, &many);
    while (b->bytes_appended < 3 * max_size || c.n_allocs < n_live + 50000) {
        for (int i = 0; i < 100000; i++)
            crowd_add(&c);
        flush(b);
        uint64_t n_outside;
        check_figures(b, b->path, &n_outside);
        if (fits)
            assert_int_equal(n_outside, 0);
    }
    uint64_t n_outside;
    check_figures(b, b->path, &n_outside);
    assert_int_equal(n_outside == 0, fits);
    assert_int_equal(b->writer.status.n_untracked, 0);
    assert_true(b->writer.status.flags & TMK_STATUS_CUT);
    assert_in_range(b->writer.status.n_given_up, 100000, b->oracle.n_events);
    struct tmk_reader *r = open_whole(b->path);
    assert_int_equal(tmk_reader_n_step_rows(r), b->n_rows);
    for (uint64_t i = 0; i < b->n_rows; i++)
        assert_int_equal(tmk_reader_step_row(r, i)->end_bytes, b->rows[i].end_bytes);
    tmk_reader_close(r);
    bench_fini(b);
    free(b);
}

static void test_crowd_without_details(void **unused)
{
    (void)unused;
    go_round_with(100000, MAX_SIZE, true);
}

static void test_crowd_that_does_not_fit(void **unused)
{
    (void)unused;
    go_round_with(200000, MAX_SIZE / 2, false);
}

/* What is kept is most of the file, not a remnant. */
static void test_keeps_much(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 5, MAX_SIZE);
    fill(b, 5 * MAX_SIZE);
    struct tmk_reader *r = open_whole(b->path);
    uint64_t kept = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++)
        kept += tmk_reader_chunk(r, i)->header.payload_bytes;
    assert_in_range(kept, MAX_SIZE / 10 * 8, MAX_SIZE);
    tmk_reader_close(r);
    bench_fini(b);
    free(b);
}

/* Definitions that alone fill the file: an error with its reason, within the size, readable. */
static void test_history_fills_file(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 6, MAX_SIZE);
    uint8_t text[3000];
    memset(text, 'x', sizeof text);
    int rc = 0;
    uint32_t id = 0;
    while (rc == 0 && id < 10000) {
        struct tmk_input def = {
            .kind = TMK_KIND_DEF_STRING, .id = ++id, .text = text, .text_bytes = sizeof text};
        rc = tmk_packer_add(b->packer, &def);
        if (rc > 0)
            rc = tmk_packer_flush(b->packer);
    }
    assert_int_equal(rc, TMK_EFULL);
    assert_int_equal(tmk_writer_stop_reason(b->writer.error.os_error), TMK_STOP_HISTORY);
    assert_in_range(id, MAX_SIZE / 4 / 3000, MAX_SIZE / 3000);
    struct tmk_reader *r = open_whole(b->path);
    uint32_t n = tmk_reader_n_strings(r);
    assert_in_range(n, id - 2 * 65536 / 3000, id);
    for (uint32_t i = 1; i < n; i++)
        assert_non_null(tmk_reader_string(r, i));
    tmk_reader_close(r);
    bench_fini(b);
    free(b);
}

/* Status goes to both slots in turn; the newer valid one counts. */
static void test_status_slots(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 7, 0);
    for (uint32_t i = 1; i <= 5; i++) {
        b->writer.status.reason = i;
        assert_int_equal(tmk_writer_put_status(&b->writer, NULL), 0);
        struct tmk_reader *r = open_whole(b->path);
        assert_int_equal(tmk_reader_status(r)->reason, i);
        assert_int_equal(tmk_reader_status(r)->serial, i + 1);
        tmk_reader_close(r);

        size_t n; /* the newer one torn: the older one counts */
        uint8_t *bytes = kit_file_read(b->path, &n);
        bytes[TMK_STATUS_OFFSET + (i + 1) % 2 * TMK_STATUS_BYTES + 40] ^= 1;
        kit_file_write(b->copy, bytes, n);
        r = open_whole(b->copy);
        assert_int_equal(tmk_reader_status(r)->reason, i - 1);
        assert_false(tmk_reader_damage(r)->status_lost);
        tmk_reader_close(r);
        bytes[TMK_STATUS_OFFSET + i % 2 * TMK_STATUS_BYTES + 127] ^= 0x80;
        kit_file_write(b->copy, bytes, n);
        r = open_whole(b->copy);
        assert_true(tmk_reader_damage(r)->status_lost);
        tmk_reader_close(r);
        free(bytes);
    }
    bench_fini(b);
    free(b);
}

/* A file that ends in half a chunk is taken up again where the last whole one ends. */
static void test_resume(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 8, 0);
    fill(b, 300000);
    struct tmk_status status = b->writer.status;
    uint64_t end = status.head;
    struct tmk_chunk_header torn = {.magic = TMK_CHUNK_MAGIC, .kind = 2, .payload_bytes = 900};
    int fd = open(b->path, O_RDWR);
    assert_int_equal(pwrite(fd, &torn, 50, (off_t)end), 50);
    close(fd);
    tmk_writer_close(&b->writer);

    fd = open(b->path, O_RDWR);
    assert_int_equal(
        tmk_writer_resume(&b->writer, fd, b->path, &status, b->writer.first, end, 0, NULL), 0);
    check_state(b, b->path);
    fill(b, 300000);
    check_state(b, b->path);
    struct tmk_reader *r = open_whole(b->path);
    assert_int_equal(tmk_reader_damage(r)->n_bytes, 0);
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++)
        assert_int_equal(tmk_reader_chunk(r, i)->header.seq, i + 1);
    tmk_reader_close(r);
    bench_fini(b);
    free(b);
}

/* Someone closed our descriptor and opened another file under its number: that file stays as it
 * is, ours goes on, and not under a low number. */
static void test_stolen_descriptor(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    bench_init(b, 9, 0);
    fill(b, 100000);
    int theirs = open(b->copy, O_RDWR | O_CREAT | O_EXCL, 0600);
    int lowest = dup(theirs);
    close(lowest);
    assert_in_range(b->writer.fd, 100, 100000);
    assert_int_equal(dup2(theirs, b->writer.fd), b->writer.fd);
    fill(b, 100000);
    struct stat st;
    assert_int_equal(fstat(theirs, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_in_range(b->writer.fd, 100, 100000);
    int next = dup(theirs);
    assert_int_equal(next, lowest);
    close(next);
    close(theirs);
    check_state(b, b->path);

    assert_int_equal(unlink(b->path), 0); /* and replaced by another: an error, not a mix */
    kit_file_write(b->path, "mine", 4);
    close(b->writer.fd);
    assert_int_equal(tmk_writer_put_status(&b->writer, NULL), TMK_EIO);
    size_t n;
    uint8_t *bytes = kit_file_read(b->path, &n);
    assert_int_equal(n, 4);
    free(bytes);
    bench_fini(b);
    free(b);
}

static int count_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

/* More readers than may keep a descriptor: each reads its chunks, and one whose file was replaced
 * says so. */
static void test_many_readers(void **unused)
{
    (void)unused;
    enum { N_READERS = 300 };
    struct bench *b = malloc(sizeof *b);
    struct tmk_reader *readers[N_READERS];
    struct tmk_view payload;
    struct tmk_error err = {0};
    bench_init(b, 11, 0);
    fill(b, 100000);
    int before = count_descriptors();
    for (int i = 0; i < N_READERS; i++)
        readers[i] = open_whole(b->path);
    assert_int_equal(count_descriptors() - before, 256);
    for (int i = 0; i < N_READERS; i++)
        for (uint32_t k = 0; k < tmk_reader_n_chunks(readers[i]); k++)
            assert_int_equal(tmk_reader_payload(readers[i], k, &payload, NULL), 0);
    assert_int_equal(rename(b->path, b->copy), 0);
    kit_file_write(b->path, "other", 5);
    assert_int_equal(tmk_reader_payload(readers[0], 0, &payload, &err), 0);
    assert_int_equal(tmk_reader_payload(readers[N_READERS - 1], 0, &payload, &err), TMK_EIO);
    assert_non_null(strstr(err.text, "was replaced while it was read"));
    for (int i = 0; i < N_READERS; i++)
        tmk_reader_close(readers[i]);
    struct tmk_reader *last = open_whole(b->copy); /* there is room for descriptors again */
    assert_int_equal(count_descriptors() - before, 1);
    tmk_reader_close(last);
    bench_fini(b);
    free(b);
}

static void test_create_refuses_existing(void **unused)
{
    (void)unused;
    struct bench *b = malloc(sizeof *b);
    struct tmk_writer second;
    struct tmk_error err = {0};
    bench_init(b, 10, 0);
    assert_int_equal(tmk_writer_create(&second, b->path, trace_id, "", 0, &err), TMK_EIO);
    assert_int_equal(err.os_error, EEXIST);
    assert_non_null(strstr(err.text, b->path));
    bench_fini(b);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_followed),
        cmocka_unit_test(test_followed_late),
        cmocka_unit_test(test_killed_anywhere),
        cmocka_unit_test(test_crowd_without_details),
        cmocka_unit_test(test_crowd_that_does_not_fit),
        cmocka_unit_test(test_keeps_much),
        cmocka_unit_test(test_history_fills_file),
        cmocka_unit_test(test_status_slots),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_stolen_descriptor),
        cmocka_unit_test(test_many_readers),
        cmocka_unit_test(test_create_refuses_existing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
