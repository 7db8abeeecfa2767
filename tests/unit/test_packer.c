/* SPDX-License-Identifier: MIT */
/* test_packer.c - what goes into the packer comes out of the reader: every field of every event, in
 * order, and the state after any of it.
 *
 * Random records go through packer and writer into a file, and beside that into a state that
 * forgets nothing. Then the file is read: by cursor, event for event; by replay, whose state must
 * be the other one; and from each checkpoint, as after a cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/snapshot.h"
#include "trace/state.h"
#include "trace/writer.h"
#include "trace_kit.h"

static const struct tmk_state_limits limits = {.max_blocks = 1 << 16,
                                               .max_contexts = 1 << 20,
                                               .max_ranges = 1 << 16,
                                               .max_threads = 1 << 10,
                                               .max_segments = 1 << 10};

struct row_list { /* the step rows that the oracle gave */
    struct tmk_step_row *rows;
    uint64_t n, room;
};

struct trip { /* a trace made from random records, and its oracle */
    char folder[256], path[300];
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct tmk_state oracle;
    struct row_list rows;
    struct kit_source source;
    uint64_t seed, n_events;
};

static void keep_row(void *arg, const struct tmk_step_row *row)
{
    struct row_list *list = arg;
    if (list->n == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->rows = realloc(list->rows, list->room * sizeof *list->rows);
        assert_non_null(list->rows);
    }
    list->rows[list->n++] = *row;
}

static void trip_init(struct trip *t, uint64_t seed, const struct tmk_packer_options *options)
{
    static const uint8_t id[16] = "sixteen bytes..";
    *t = (struct trip){.seed = seed};
    snprintf(t->folder, sizeof t->folder, "%s", kit_folder_make());
    snprintf(t->path, sizeof t->path, "%s/a.trace", t->folder);
    assert_int_equal(tmk_writer_create(&t->writer, t->path, id, "pid=7\n", 0, NULL), 0);
    struct tmk_chunk_out out = tmk_writer_out(&t->writer);
    assert_int_equal(tmk_packer_open(options, &out, &t->packer), 0);
    assert_int_equal(tmk_state_init(&t->oracle, &options->limits), 0);
    t->oracle.on_step_row = keep_row;
    t->oracle.on_step_row_arg = &t->rows;
    kit_source_init(&t->source, seed);
}

static void trip_fini(struct trip *t)
{
    tmk_packer_close(t->packer);
    tmk_writer_close(&t->writer);
    tmk_state_fini(&t->oracle);
    free(t->rows.rows);
    kit_folder_remove(t->folder);
}

static void add(struct trip *t, const struct tmk_input *in)
{
    int rc = tmk_packer_add(t->packer, in);
    assert_in_range(rc, 0, 1);
    if (rc > 0)
        assert_int_equal(tmk_packer_flush(t->packer), 0);
    kit_apply(&t->oracle, in);
    t->n_events += kit_is_event(in);
}

/* Add `n` random records; flush at random places too. */
static void trip_fill(struct trip *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_input in;
        kit_source_next(&t->source, &in);
        add(t, &in);
        if (kit_random_below(&t->source.random, 700) == 0)
            assert_int_equal(tmk_packer_flush(t->packer), 0);
    }
}

static struct tmk_reader *trip_read(struct trip *t)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    assert_int_equal(tmk_packer_finish(t->packer), 0);
    assert_int_equal(tmk_writer_put_status(&t->writer, tmk_packer_state(t->packer)), 0);
    if (tmk_reader_open(t->path, &r, &err) < 0)
        fail_msg("%s", err.text);
    const struct tmk_damage *damage = tmk_reader_damage(r);
    assert_int_equal(damage->n_bytes, 0);
    assert_false(damage->status_lost || damage->info_lost);
    return r;
}

/* ---- comparing ---- */

/* Walk all events beside the source, begun again. */
static void check_events(const struct trip *t, struct tmk_reader *r)
{
    struct kit_source *again = calloc(1, sizeof *again);
    kit_source_init(again, t->seed);
    struct tmk_cursor cursor = {0};
    uint64_t n = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        struct tmk_view payload;
        if (h->kind != TMK_CHUNK_EVENTS)
            continue;
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        assert_int_equal(tmk_cursor_begin(&cursor, h, payload, NULL), 0);
        struct tmk_event ev = {0};
        int rc;
        while ((rc = tmk_cursor_next(&cursor, &ev)) > 0) {
            struct tmk_input in;
            do {
                kit_source_next(again, &in);
                if (kit_random_below(&again->random, 700) == 0)
                    (void)0; /* the draw that decides on a flush in trip_fill() */
            } while (!kit_is_event(&in));
            if (!kit_is_same_event(&in, &ev))
                fail_msg("event %llu (kind %d) is another (kind %d)", (unsigned long long)n,
                         ev.kind, in.kind);
            n++;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(cursor.now_ns, h->end_ns);
    }
    assert_int_equal(n, t->n_events);
    tmk_cursor_fini(&cursor);
    free(again);
}

static void check_replay(struct trip *t, struct tmk_reader *r)
{
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    const char *found = kit_state_difference(&rp.state, &t->oracle);
    if (found)
        fail_msg("replay and oracle differ: %s", found);
    assert_true(tmk_state_is_valid(&rp.state));
    assert_true(tmk_state_adds_up(&rp.state));
    assert_int_equal(rp.n_gaps + rp.n_bad_chunks, 0);
    found = kit_state_difference(tmk_packer_state(t->packer), &t->oracle);
    if (found)
        fail_msg("packer and oracle differ: %s", found);
    tmk_replay_fini(&rp);
}

static void check_row(const struct tmk_step_row *a, const struct tmk_step_row *b)
{
    assert_int_equal(a->ordinal, b->ordinal);
    assert_true(a->step == b->step);
    assert_int_equal(a->open, b->open);
    assert_int_equal(a->device, b->device);
    assert_int_equal(a->start_ns, b->start_ns);
    assert_int_equal(a->end_ns, b->end_ns);
    assert_int_equal(a->peak_bytes, b->peak_bytes);
    assert_int_equal(a->peak_ns, b->peak_ns);
    assert_int_equal(a->end_bytes, b->end_bytes);
    assert_int_equal(a->n_allocs, b->n_allocs);
    assert_int_equal(a->n_frees, b->n_frees);
    assert_int_equal(a->alloc_bytes, b->alloc_bytes);
    assert_int_equal(a->free_bytes, b->free_bytes);
    assert_int_equal(a->has_reserved, b->has_reserved);
    assert_int_equal(a->peak_reserved_bytes, b->peak_reserved_bytes);
    assert_int_equal(a->end_reserved_bytes, b->has_reserved ? b->end_reserved_bytes : 0);
}

/* All finished rows and, after them, the open one of each device. */
static void check_rows(struct trip *t, const struct tmk_reader *r)
{
    uint64_t n = t->rows.n;
    assert_int_equal(tmk_reader_n_step_rows(r), n + t->oracle.n_devices);
    for (uint64_t i = 0; i < n; i++)
        check_row(tmk_reader_step_row(r, i), &t->rows.rows[i]);
    for (uint32_t i = 0; i < t->oracle.n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(&t->oracle, i);
        check_row(tmk_reader_step_row(r, n + i), &row);
    }
}

static void check_parameter(const struct tmk_reader *r, const struct tmk_input *in)
{
    struct tmk_parameter_head head;
    struct tmk_parameter p;
    memcpy(&head, in->text, sizeof head);
    assert_true(tmk_reader_parameter(r, in->id, &p));
    assert_ptr_equal(p.name, tmk_reader_string(r, head.name));
    assert_int_equal(p.address, head.address);
    assert_int_equal(p.size_bytes, head.size_bytes);
    assert_int_equal(p.flags, in->a >> 16);
    assert_int_equal(p.device, in->a & 0xffff);
    assert_int_equal(strlen(p.shape), in->text_bytes - sizeof head);
    assert_memory_equal(p.shape, in->text + sizeof head, strlen(p.shape));
}

static void check_definition(const struct tmk_reader *r, const struct tmk_input *in)
{
    struct tmk_frame frame;
    struct tmk_stack stack;
    if (in->kind == TMK_KIND_DEF_STRING) {
        const char *text = tmk_reader_string(r, in->id);
        assert_non_null(text);
        assert_int_equal(strlen(text), in->text_bytes);
        assert_memory_equal(text, in->text, in->text_bytes);
    } else if (in->kind == TMK_KIND_DEF_FRAME) {
        assert_true(tmk_reader_frame(r, in->id, &frame));
        assert_ptr_equal(frame.file, tmk_reader_string(r, (uint32_t)(in->a >> 32)));
        assert_ptr_equal(frame.function, tmk_reader_string(r, (uint32_t)in->a));
        assert_int_equal(frame.line, in->b);
    } else if (in->kind == TMK_KIND_DEF_STACK) {
        assert_true(tmk_reader_stack(r, in->id, &stack));
        assert_int_equal(stack.n_frames, in->text_bytes / 4);
        for (uint32_t i = 0; i < stack.n_frames; i++)
            assert_int_equal(stack.frames[i], tmk_load_u32(in->text + 4 * i));
    } else if (in->kind == TMK_KIND_DEF_NATIVE_FRAME) {
        assert_true(tmk_reader_frame(r, in->id, &frame));
        assert_int_equal(frame.address, in->b);
        assert_null(frame.function);
    } else if (in->kind == TMK_KIND_DEF_STREAM) {
        struct tmk_stream stream;
        assert_true(tmk_reader_stream(r, in->id, &stream));
        assert_int_equal(stream.device, in->device);
        assert_int_equal(stream.handle, in->a);
    } else if (in->kind == TMK_KIND_DEF_TORCH_MODULE) {
        assert_ptr_equal(tmk_reader_class(r, in->id), tmk_reader_string(r, (uint32_t)in->a));
    } else if (in->kind == TMK_KIND_DEF_PARAMETER) {
        check_parameter(r, in);
    }
}

/* Definitions of strings, frames and stacks are made once each; threads again and again, and the
 * last one counts. */
static void check_definitions(const struct trip *t, const struct tmk_reader *r, uint32_t n)
{
    struct kit_source *again = calloc(1, sizeof *again);
    struct tmk_thread_info last[KIT_THREADS + 1] = {{0}};
    char names[KIT_THREADS + 1][32];
    kit_source_init(again, t->seed);
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_input in;
        kit_source_next(again, &in);
        if (in.kind == TMK_KIND_DEF_THREAD) {
            memcpy(names[in.id], in.text, in.text_bytes);
            names[in.id][in.text_bytes] = '\0';
            last[in.id] = (struct tmk_thread_info){.system_id = in.a, .name = names[in.id]};
        } else {
            check_definition(r, &in);
        }
        (void)kit_random_below(&again->random, 700);
    }
    for (uint32_t i = 1; i <= KIT_THREADS; i++) {
        struct tmk_thread_info info;
        assert_int_equal(tmk_reader_thread(r, i, &info), last[i].name != NULL);
        if (!last[i].name)
            continue;
        assert_int_equal(info.system_id, last[i].system_id);
        assert_string_equal(info.name, last[i].name);
    }
    free(again);
}

/* ---- tests ---- */

static void test_round_trip(void **unused)
{
    (void)unused;
    static const uint32_t sizes[] = {1, 3, 64, 1000, 32768};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct trip *t = malloc(sizeof *t);
        struct tmk_packer_options options = {.limits = limits, .max_events = sizes[i]};
        uint32_t n = sizes[i] < 64 ? 2000 : 60000;
        trip_init(t, 1 + i, &options);
        trip_fill(t, n);
        struct tmk_reader *r = trip_read(t);
        check_events(t, r);
        check_replay(t, r);
        check_rows(t, r);
        check_definitions(t, r, n);
        tmk_reader_close(r);
        trip_fini(t);
        free(t);
    }
}

/* Each checkpoint, loaded into an empty state, is the state that a replay up to there has. */
static void test_checkpoints(void **unused)
{
    (void)unused;
    struct tmk_packer_options options = {
        .limits = limits, .max_events = 500, .checkpoint_bytes = 20000};
    struct trip *t = malloc(sizeof *t);
    trip_init(t, 77, &options);
    trip_fill(t, 60000);
    struct tmk_reader *r = trip_read(t);
    check_events(t, r);
    check_replay(t, r);

    struct tmk_state *full = calloc(2, sizeof *full), *restored = full + 1;
    struct tmk_cursor cursor = {0};
    struct kit_source *again = calloc(1, sizeof *again);
    uint32_t n_checkpoints = 0;
    kit_source_init(again, t->seed);
    assert_int_equal(tmk_state_init(full, &limits), 0);
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        struct tmk_view payload;
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        for (uint32_t k = 0; h->kind == TMK_CHUNK_EVENTS && k < h->n_items;) {
            struct tmk_input in;
            kit_source_next(again, &in);
            (void)kit_random_below(&again->random, 700);
            kit_apply(full, &in);
            k += kit_is_event(&in);
        }
        if (h->kind != TMK_CHUNK_CHECKPOINT)
            continue;
        n_checkpoints++;
        assert_int_equal(h->n_items, full->n_live);
        assert_int_equal(tmk_state_init(restored, &limits), 0);
        assert_int_equal(tmk_checkpoint_restore(payload, h->start_ns, h->first_step, restored), 0);
        assert_true(tmk_state_is_valid(restored));
        assert_true(tmk_state_adds_up(restored));
        const char *found = kit_state_difference(restored, full);
        if (found)
            fail_msg("checkpoint %u differs: %s", n_checkpoints, found);
        tmk_state_fini(restored);
    }
    assert_in_range(n_checkpoints, 8, 100);
    tmk_state_fini(full);
    tmk_cursor_fini(&cursor);
    free(full);
    free(again);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* `live` of the dictionary says what was at an address before the chunk. */
static void test_dictionary_live(void **unused)
{
    (void)unused;
    struct tmk_packer_options options = {.limits = limits, .max_events = 300};
    struct trip *t = malloc(sizeof *t);
    trip_init(t, 5, &options);
    trip_fill(t, 20000);
    struct tmk_reader *r = trip_read(t);
    struct tmk_replay rp;
    struct tmk_cursor cursor = {0};
    struct tmk_state *s = &rp.state;
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    uint32_t n_live = 0, n_dead = 0;
    struct kit_source *again = calloc(1, sizeof *again);
    kit_source_init(again, t->seed);
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        struct tmk_view payload;
        if (h->kind != TMK_CHUNK_EVENTS)
            continue;
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        assert_int_equal(tmk_cursor_begin(&cursor, h, payload, NULL), 0);
        for (uint32_t k = 0; k < cursor.n_addresses; k++) {
            const struct tmk_address *a = &cursor.addresses[k];
            const struct tmk_block *b = tmk_state_find(s, a->device, a->address);
            assert_int_equal(a->live, b && b->live ? b->size_bytes + 1 : 0);
            *(a->live ? &n_live : &n_dead) += 1;
        }
        for (uint32_t k = 0; k < h->n_items;) {
            struct tmk_input in;
            kit_source_next(again, &in);
            (void)kit_random_below(&again->random, 700);
            kit_apply(s, &in);
            k += kit_is_event(&in);
        }
    }
    assert_in_range(n_live, 1000, 20000);
    assert_in_range(n_dead, 1000, 20000);
    free(again);
    tmk_cursor_fini(&cursor);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* A chunk can be read without the others: with one missing, all events of the rest are there, and
 * devices, ranges and step are right again from the next chunk on. */
static void test_missing_chunk(void **unused)
{
    (void)unused;
    struct tmk_packer_options options = {.limits = limits, .max_events = 400};
    struct trip *t = malloc(sizeof *t);
    trip_init(t, 9, &options);
    trip_fill(t, 8000);
    struct tmk_reader *r = trip_read(t);
    uint32_t victim = 0, n_lost = 0;
    for (uint32_t i = tmk_reader_n_chunks(r) / 2; !n_lost; i++) {
        victim = i;
        if (tmk_reader_chunk(r, i)->header.kind == TMK_CHUNK_EVENTS)
            n_lost = tmk_reader_chunk(r, i)->header.n_items;
    }
    size_t n;
    uint8_t *bytes = kit_file_read(t->path, &n);
    bytes[tmk_reader_chunk(r, victim)->offset + TMK_CHUNK_HEADER_BYTES + 10] ^= 0x40;
    kit_file_write(t->path, bytes, n);
    free(bytes);
    tmk_reader_close(r);

    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    assert_int_equal(tmk_reader_open(t->path, &r, NULL), 0);
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &nobody, NULL), 0);
    assert_int_equal(rp.n_bad_chunks, 1);
    assert_int_equal(rp.n_gaps, 1);
    assert_int_equal(rp.n_replayed, t->n_events - n_lost);
    assert_true(rp.state.step == t->oracle.step);
    assert_int_equal(rp.state.n_devices, t->oracle.n_devices);
    for (uint32_t i = 0; i < rp.state.n_devices; i++) {
        struct tmk_device_use *d = tmk_state_device(&t->oracle, rp.state.devices[i].device);
        assert_int_equal(rp.state.devices[i].allocated_bytes, d->allocated_bytes);
        assert_int_equal(rp.state.devices[i].max_bytes, d->max_bytes);
    }
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* The largest numbers that every field can have, in chunks that are full of them. */
static void test_extremes(void **unused)
{
    (void)unused;
    enum { N = 64 };
    struct tmk_packer_options options = {.limits = limits, .max_events = 8};
    struct trip *t = malloc(sizeof *t);
    struct tmk_input all[N];
    trip_init(t, 0, &options);
    for (uint32_t i = 0; i < N; i++) {
        all[i] = (struct tmk_input){.kind = TMK_KIND_ALLOC,
                                    .ns = i < N / 2 ? 0 : UINT64_MAX >> 4,
                                    .a = i % 2 ? i : UINT64_MAX - i,
                                    .b = UINT64_MAX / 2 + 1 + i,
                                    .id = UINT32_MAX - i,
                                    .thread = 1 + i % 2,
                                    .device = (uint16_t)(i < 40 ? UINT16_MAX - i : 0)};
        add(t, &all[i]);
    }
    struct tmk_reader *r = trip_read(t);
    struct tmk_cursor cursor = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        struct tmk_view payload;
        if (h->kind != TMK_CHUNK_EVENTS)
            continue;
        assert_int_equal(h->n_items, 8);
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        assert_int_equal(tmk_cursor_begin(&cursor, h, payload, NULL), 0);
        struct tmk_event ev = {0};
        while (tmk_cursor_next(&cursor, &ev) > 0)
            assert_true(kit_is_same_event(&all[n++], &ev));
    }
    assert_int_equal(n, N);
    tmk_cursor_fini(&cursor);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* A record stamped earlier than the one before gets that one's time. */
static void test_time_never_falls(void **unused)
{
    (void)unused;
    static const uint64_t given[] = {100, 50, 0, 101, 99}, wanted[] = {100, 100, 100, 101, 101};
    struct tmk_packer_options options = {.limits = limits, .max_events = 2};
    struct trip *t = malloc(sizeof *t);
    trip_init(t, 0, &options);
    for (size_t i = 0; i < 5; i++) {
        struct tmk_input in = {.kind = TMK_KIND_MARK, .ns = given[i], .thread = 1};
        if (tmk_packer_add(t->packer, &in) > 0)
            assert_int_equal(tmk_packer_flush(t->packer), 0);
    }
    struct tmk_reader *r = trip_read(t);
    struct tmk_cursor cursor = {0};
    uint32_t n = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        struct tmk_view payload;
        struct tmk_event ev = {0};
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        assert_int_equal(tmk_cursor_begin(&cursor, &tmk_reader_chunk(r, i)->header, payload, NULL),
                         0);
        while (tmk_cursor_next(&cursor, &ev) > 0)
            assert_int_equal(ev.time_ns, wanted[n++]);
    }
    assert_int_equal(n, 5);
    tmk_cursor_fini(&cursor);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* The size that recorded traces have: SPEC's figure is 8 bytes an event. */
static void test_bytes_an_event(void **unused)
{
    (void)unused;
    struct tmk_packer_options options = {.limits = limits, .max_events = 32768};
    struct trip *t = malloc(sizeof *t);
    trip_init(t, 0, &options);
    struct kit_random random = {1};
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t place = kit_random_below(&random, 1000);
        struct tmk_input in = {.kind = i % 2 ? TMK_KIND_FREE : TMK_KIND_ALLOC,
                               .ns = i * 700 + kit_random_below(&random, 500),
                               .a = 0x7f3200000000u + place * 512,
                               .b = 512 * (1 + place % 40),
                               .id = (uint32_t)(1 + place % 60),
                               .thread = 1};
        add(t, &in);
    }
    struct tmk_reader *r = trip_read(t);
    assert_in_range(tmk_reader_file_bytes(r), 200000 * 3, 200000 * 6);
    tmk_reader_close(r);
    trip_fini(t);
    free(t);
}

/* ---- checkpoints of a given size ---- */

enum { N_CROWD = 20000 };

static void make_crowd(struct tmk_state *s)
{
    static const struct tmk_state_limits many = {.max_blocks = 1 << 16,
                                                 .max_contexts = 1 << 10,
                                                 .max_ranges = 1 << 10,
                                                 .max_threads = 1 << 10,
                                                 .max_segments = 1 << 10};
    struct kit_random random = {5};
    assert_int_equal(tmk_state_init(s, &many), 0);
    for (uint64_t i = 0; i < N_CROWD; i++) {
        struct tmk_shape shape = {.size_bytes = 1 + kit_random_below(&random, 1 << (1 + i % 20)),
                                  .stack = (uint32_t)i % 100,
                                  .stream = i % 7 == 0};
        struct tmk_block *b = tmk_state_entry(s, (uint16_t)(i % 3), 0x7f0000000000 + i * 512);
        tmk_state_alloc(s, b, i * 50, b->device, 1, &shape);
    }
}

/* Bytes of the smallest block with details, and of the largest that has none. */
static void compare_sizes(const struct tmk_state *s, uint64_t *ret_least, uint64_t *ret_most)
{
    *ret_least = UINT64_MAX;
    *ret_most = 0;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (b->serial && b->size_bytes < *ret_least)
            *ret_least = b->size_bytes;
        if (!b->serial && b->size_bytes > *ret_most)
            *ret_most = b->size_bytes;
    }
}

/* In any size that it is given it says how many are alive, and lists the largest. */
static void test_checkpoint_sizes(void **unused)
{
    (void)unused;
    struct tmk_state s, back;
    make_crowd(&s);
    size_t bound = tmk_checkpoint_bound(&s);
    uint8_t *buffer = malloc(bound), *scratch = malloc(bound);
    for (size_t max = bound; max > 1000; max = max * 3 / 4) {
        struct tmk_sink out = tmk_sink_of(buffer, bound);
        uint32_t n_detailed = 0;
        assert_true(tmk_checkpoint_write(&out, &s, s.now_ns, scratch, max, &n_detailed));
        size_t used = tmk_sink_length(&out);
        assert_in_range(used, n_detailed < N_CROWD ? max / 4 * 3 : 1, max); /* what there is */
        assert_int_equal(tmk_state_init(&back, &s.limits), 0);
        assert_int_equal(tmk_checkpoint_restore(tmk_view_of(buffer, used), s.now_ns, s.step, &back),
                         0);
        assert_int_equal(back.n_live + back.n_outside, N_CROWD);
        assert_int_equal(tmk_state_n_without_details(&back), N_CROWD - n_detailed);
        assert_int_equal(back.n_allocs, N_CROWD);
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(back.devices[i].allocated_bytes, s.devices[i].allocated_bytes);
        for (uint32_t i = 1; i <= back.n_entries; i++) {
            const struct tmk_block *b = &back.entries[i];
            const struct tmk_block *whole = tmk_state_find(&s, b->device, b->address);
            assert_int_equal(b->size_bytes, whole->size_bytes);
            if (b->serial)
                assert_memory_equal(b, whole, sizeof *b);
        }
        uint64_t least, most;
        compare_sizes(&back, &least, &most);
        if (n_detailed > 0)
            assert_true(most < 2 * least);
        tmk_state_fini(&back);
    }
    struct tmk_sink out = tmk_sink_of(buffer, bound);
    assert_false(tmk_checkpoint_write(&out, &s, s.now_ns, scratch, 60, NULL));
    assert_int_equal(tmk_sink_length(&out), 0);
    free(buffer);
    free(scratch);
    tmk_state_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_sizes), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_checkpoints),      cmocka_unit_test(test_dictionary_live),
        cmocka_unit_test(test_missing_chunk),    cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_time_never_falls), cmocka_unit_test(test_bytes_an_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
