/* SPDX-License-Identifier: MIT */
/* test_damage.c - damaged traces and rings: a clear error or a partial read, and exactly the part
 * that was not hit.
 *
 * A small trace with chunks of all kinds is made; then, one after the other, every byte of it is
 * changed, it is cut at every length, and its payloads are changed with their checksums made right
 * again, which is what a hostile file looks like. Each time it is opened, merged, replayed and its
 * definitions are asked for, in this process: the sanitizers watch. What must be left is known:
 * each events chunk's events have a fingerprint, and those of all chunks but the one hit must be
 * there, no more and no less. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32.h"
#include "base/error.h"
#include "base/hash.h"
#include "trace/defs.h"
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

enum { MAX_CHUNKS = 64, N_RING_PAGES = 3, N_RING_EVENTS = 90 };

static const struct tmk_state_limits limits = {.max_blocks = 1 << 16,
                                               .max_contexts = 1 << 16,
                                               .max_ranges = 1 << 16,
                                               .max_threads = 1 << 10,
                                               .max_segments = 1 << 10};
static const uint8_t trace_id[16] = "to be broken now";

static char folder[256], path[300], ring_path[300];
static uint8_t *whole; /* the trace before the damage */
static size_t whole_bytes;
static int fd; /* of the trace, which is damaged in place */

static struct chunk {
    uint64_t offset, end, payload_end;
    struct tmk_chunk_header header;
    uint64_t fingerprint;
} chunks[MAX_CHUNKS];
static uint32_t n_chunks;

/* ---- what a reader gets ---- */

struct outcome {
    int rc;
    uint64_t n_events, fingerprint; /* the sum over events: order is checked by their time */
    uint64_t n_strings, n_rows;
    uint32_t n_bad_chunks, n_gaps;
    uint64_t last_ns;
    bool falls; /* time fell */
    struct tmk_damage damage;
};

static uint64_t fingerprint_of(const struct tmk_event *ev)
{
    uint64_t h = tmk_hash_mix(ev->time_ns, (uint64_t)ev->kind << 32 | ev->thread);
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
        return tmk_hash_mix(tmk_hash_mix(h, ev->address),
                            ev->size_bytes ^ ev->stack ^ (uint64_t)ev->stream << 40);
    case TMK_KIND_FREE:
        return tmk_hash_mix(h, ev->address ^ ev->device);
    case TMK_KIND_TAG:
        return tmk_hash_mix(tmk_hash_mix(h, ev->address), ev->category + 256u * ev->name);
    case TMK_KIND_PUSH:
    case TMK_KIND_POP:
        return tmk_hash_mix(h, ev->range_kind);
    case TMK_KIND_STEP:
        return tmk_hash_mix(h, (uint64_t)ev->step);
    case TMK_KIND_MARK:
        return tmk_hash_mix(h, tmk_hash_bytes(ev->text, ev->text_bytes));
    case TMK_KIND_DEVICE_END:
        return tmk_hash_mix(h, ev->device);
    case TMK_KIND_HELD:
    case TMK_KIND_RELEASED:
        return tmk_hash_mix(tmk_hash_mix(h, ev->address ^ ev->device), ev->size_bytes);
    case TMK_KIND_SEGMENT:
        h = tmk_hash_mix(h, ev->size_bytes ^ (uint64_t)ev->stack << 40);
        __attribute__((fallthrough));
    case TMK_KIND_SEGMENT_END:
        return tmk_hash_mix(h, ev->address ^ ev->device ^ (uint64_t)ev->segment_kind << 56);
    case TMK_KIND_SAMPLE:
        return tmk_hash_mix(h, tmk_hash_bytes(&ev->sample, sizeof ev->sample) ^ ev->device);
    default:
        return tmk_hash_mix(h, ev->size_bytes);
    }
}

static void see_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                      struct tmk_block *b)
{
    struct outcome *o = arg;
    (void)b;
    if (rp->implied)
        return;
    o->n_events++;
    o->fingerprint += fingerprint_of(ev);
    o->falls |= ev->time_ns < o->last_ns;
    o->last_ns = ev->time_ns;
}

static void ask_definitions(const struct tmk_reader *r, struct outcome *o)
{
    struct tmk_stack stack;
    struct tmk_frame frame;
    struct tmk_thread_info thread;
    for (uint32_t i = 0; i < tmk_reader_n_strings(r) && i < 1000; i++) {
        const char *text = tmk_reader_string(r, i);
        o->n_strings += text && strlen(text) <= 4096;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < tmk_reader_n_stacks(r) && i < 1000; i++)
        for (uint32_t k = 0; tmk_reader_stack(r, i, &stack) && k < stack.n_frames; k++)
            sum += tmk_reader_frame(r, stack.frames[k], &frame) ? frame.line : 0;
    for (uint32_t i = 0; i < 1000; i++)
        sum += tmk_reader_thread(r, i, &thread) ? strlen(thread.name) : 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++)
        sum += tmk_reader_step_row(r, i)->peak_bytes;
    o->n_rows = tmk_reader_n_step_rows(r) + (sum == UINT64_MAX);
}

/* Everything that a command does with a trace. An error must come with a sentence. */
static struct outcome read_all(void)
{
    struct outcome o = {0};
    struct tmk_error err = {0};
    struct tmk_reader *r = NULL;
    o.rc = tmk_merge_open(path, &r, NULL, &err);
    if (o.rc < 0) {
        assert_null(r);
        assert_in_range(strlen(err.text), 10, sizeof err.text - 1);
        return o;
    }
    struct tmk_replay rp;
    struct tmk_visitor visitor = {.arg = &o, .event = see_event};
    assert_int_equal(tmk_replay_init(&rp, &limits), 0);
    assert_int_equal(tmk_replay_run(&rp, r, &visitor, &err), 0);
    assert_true(tmk_state_is_valid(&rp.state));
    if (rp.n_bad_chunks)
        assert_in_range(strlen(rp.damage.text), 10, sizeof rp.damage.text - 1);
    ask_definitions(r, &o);
    tmk_reader_info(r, "pid");
    o.n_bad_chunks = rp.n_bad_chunks;
    o.n_gaps = rp.n_gaps;
    o.damage = *tmk_reader_damage(r);
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    return o;
}

/* ---- the trace to be damaged ---- */

static void list_chunks(void)
{
    struct tmk_reader *r = NULL;
    struct tmk_cursor cursor = {0};
    assert_int_equal(tmk_reader_open(path, &r, NULL), 0);
    n_chunks = tmk_reader_n_chunks(r);
    assert_in_range(n_chunks, 10, MAX_CHUNKS);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct tmk_chunk_ref *ref = tmk_reader_chunk(r, i);
        struct chunk *c = &chunks[i];
        *c = (struct chunk){.offset = ref->offset, .header = ref->header};
        c->payload_end = ref->offset + TMK_CHUNK_HEADER_BYTES + ref->header.payload_bytes;
        c->end = (c->payload_end + 7) & ~(uint64_t)7;
        struct tmk_view payload;
        struct tmk_event ev = {0};
        assert_int_equal(tmk_reader_payload(r, i, &payload, NULL), 0);
        if (ref->header.kind != TMK_CHUNK_EVENTS)
            continue;
        assert_int_equal(tmk_cursor_begin(&cursor, &ref->header, payload, NULL), 0);
        while (tmk_cursor_next(&cursor, &ev) > 0)
            c->fingerprint += fingerprint_of(&ev);
    }
    tmk_cursor_fini(&cursor);
    tmk_reader_close(r);
}

static bool has_kind(uint16_t kind)
{
    for (uint32_t i = 0; i < n_chunks; i++)
        if (chunks[i].header.kind == kind)
            return true;
    return false;
}

static int set_up(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/a.trace", folder);
    snprintf(ring_path, sizeof ring_path, "%s/a.ring", folder);
    char info[600];
    snprintf(info, sizeof info, "pid=7\nring=%s\ncommand=a b\\nc\n", ring_path);
    struct tmk_writer writer;
    struct tmk_packer *packer = NULL;
    struct tmk_packer_options options = {
        .limits = limits, .max_events = 45, .checkpoint_bytes = 1800};
    assert_int_equal(tmk_writer_create(&writer, path, trace_id, info, 0, NULL), 0);
    struct tmk_chunk_out out = tmk_writer_out(&writer);
    assert_int_equal(tmk_packer_open(&options, &out, &packer), 0);
    struct kit_source *source = calloc(1, sizeof *source);
    kit_source_init(source, 12);
    for (int i = 0; i < 260; i++) {
        struct tmk_input in;
        kit_source_next(source, &in);
        if (in.text_bytes > 80)
            continue;
        if (tmk_packer_add(packer, &in) > 0)
            assert_int_equal(tmk_packer_flush(packer), 0);
    }
    assert_int_equal(tmk_packer_finish(packer), 0);
    assert_int_equal(tmk_writer_put_status(&writer, tmk_packer_state(packer)), 0);
    free(source);
    tmk_packer_close(packer);
    tmk_writer_close(&writer);
    whole = kit_file_read(path, &whole_bytes);
    assert_in_range(whole_bytes, 6000, 14000);
    list_chunks();
    for (uint16_t kind = 1; kind <= 4; kind++)
        assert_true(has_kind(kind));
    fd = open(path, O_RDWR);
    return fd < 0;
}

static int tear_down(void **unused)
{
    (void)unused;
    close(fd);
    free(whole);
    kit_folder_remove(folder);
    return 0;
}

static void poke(uint64_t offset, const void *bytes, size_t n)
{
    assert_int_equal(pwrite(fd, bytes, n, (off_t)offset), n);
}

/* What is left of the events when chunk `hit` is lost (n_chunks: none). */
static void check_left(const struct outcome *o, uint32_t hit)
{
    uint64_t n = 0, fingerprint = 0;
    for (uint32_t i = 0; i < n_chunks; i++) {
        if (i == hit || chunks[i].header.kind != TMK_CHUNK_EVENTS)
            continue;
        n += chunks[i].header.n_items;
        fingerprint += chunks[i].fingerprint;
    }
    assert_int_equal(o->n_events, n);
    assert_true(o->fingerprint == fingerprint);
    assert_false(o->falls);
}

/* ---- tests ---- */

/* Bytes that nothing reads: reserved, padding, behind the info text. */
static bool is_idle_byte(uint64_t at)
{
    uint32_t info_bytes = tmk_load_u32(whole + 32);
    if (at < chunks[0].offset)
        return (at >= 40 && at < 64) || at >= 320 + info_bytes;
    for (uint32_t i = 0; i < n_chunks; i++)
        if (at >= chunks[i].payload_end && at < chunks[i].end)
            return true;
    return false;
}

static uint32_t chunk_at(uint64_t at)
{
    uint32_t i = 0;
    while (i < n_chunks && !(at >= chunks[i].offset && at < chunks[i].end))
        i++;
    return i;
}

static void check_header_flip(const struct outcome *o, uint64_t at, uint8_t value)
{
    if (at < 8) {
        assert_int_equal(o->rc, TMK_EFORMAT);
    } else if (at < 12 && (at > 8 || value > TMK_FORMAT_VERSION)) {
        assert_int_equal(o->rc, TMK_EVERSION);
    } else {
        bool in_info = at >= 320 || at < 40;
        assert_int_equal(o->rc, 0);
        assert_int_equal(o->damage.info_lost, in_info);
        assert_false(o->damage.status_lost); /* there are two */
        check_left(o, n_chunks);
    }
}

static void check_chunk_flip(const struct outcome *o, const struct outcome *before, uint64_t at)
{
    uint32_t hit = chunk_at(at);
    const struct chunk *c = &chunks[hit];
    bool is_defs = c->header.kind == TMK_CHUNK_DEFS, is_rows = c->header.kind == TMK_CHUNK_STEPS;
    assert_int_equal(o->rc, 0);
    assert_in_range(hit, 0, n_chunks - 1);
    check_left(o, c->header.kind == TMK_CHUNK_EVENTS ? hit : n_chunks);
    assert_true(is_defs ? o->n_strings <= before->n_strings : o->n_strings == before->n_strings);
    assert_true(is_rows ? o->n_rows < before->n_rows : o->n_rows == before->n_rows);
    if (at < c->offset + TMK_CHUNK_HEADER_BYTES) {
        assert_int_equal(o->damage.n_places, 1);
        assert_int_equal(o->damage.first_offset, c->offset);
        assert_int_equal(o->damage.n_bytes, c->end - c->offset);
    } else {
        assert_int_equal(o->damage.n_places, 0);
        assert_int_equal(o->n_bad_chunks, c->header.kind == TMK_CHUNK_EVENTS);
    }
}

static void test_every_byte(void **unused)
{
    (void)unused;
    static const uint8_t xors[] = {0x01, 0xff};
    struct outcome before = read_all();
    assert_int_equal(before.rc, 0);
    check_left(&before, n_chunks);
    assert_int_equal(before.damage.n_bytes + before.n_bad_chunks + before.n_gaps, 0);
    for (uint64_t at = 0; at < whole_bytes; at++) {
        for (size_t k = 0; k < sizeof xors; k++) {
            uint8_t value = whole[at] ^ xors[k];
            poke(at, &value, 1);
            struct outcome o = read_all();
            if (is_idle_byte(at))
                assert_memory_equal(&o, &before, sizeof o);
            else if (at < chunks[0].offset)
                check_header_flip(&o, at, value);
            else
                check_chunk_flip(&o, &before, at);
        }
        poke(at, whole + at, 1);
    }
}

static void test_every_length(void **unused)
{
    (void)unused;
    for (uint64_t n = 0; n < whole_bytes; n++) {
        assert_int_equal(ftruncate(fd, (off_t)n), 0);
        struct outcome o = read_all();
        if (n < chunks[0].offset) {
            assert_int_equal(o.rc, n < 8 ? TMK_EFORMAT : TMK_EDAMAGED);
        } else {
            uint64_t n_left = 0;
            for (uint32_t i = 0; i < n_chunks; i++)
                if (chunks[i].header.kind == TMK_CHUNK_EVENTS && chunks[i].end <= n)
                    n_left += chunks[i].header.n_items;
            assert_int_equal(o.rc, 0);
            assert_int_equal(o.n_events, n_left);
        }
        poke(0, whole, whole_bytes);
    }
    struct outcome o = read_all();
    check_left(&o, n_chunks);
}

/* Change a payload and make its checksums right: the decoders themselves must hold. */
static void poke_payload(const struct chunk *c, uint8_t *bytes)
{
    uint8_t *payload = bytes + c->offset + TMK_CHUNK_HEADER_BYTES;
    struct tmk_chunk_header h = c->header;
    h.payload_crc = tmk_crc32(0, payload, h.payload_bytes);
    h.header_crc = tmk_crc32(0, &h, offsetof(struct tmk_chunk_header, header_crc));
    memcpy(bytes + c->offset, &h, sizeof h);
    poke(c->offset, bytes + c->offset, c->end - c->offset);
}

static void restore(const struct chunk *c, uint8_t *bytes)
{
    memcpy(bytes + c->offset, whole + c->offset, c->end - c->offset);
    poke(c->offset, whole + c->offset, c->end - c->offset);
}

/* Chunks that were not touched give all their events; the touched one gives what it may. */
static void check_others(const struct outcome *o, uint32_t hit)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < n_chunks; i++)
        if (i != hit && chunks[i].header.kind == TMK_CHUNK_EVENTS)
            n += chunks[i].header.n_items;
    assert_int_equal(o->rc, 0);
    assert_in_range(o->n_events, n, n + chunks[hit].header.n_items);
}

static void test_hostile_payloads(void **unused)
{
    (void)unused;
    uint8_t *bytes = malloc(whole_bytes);
    memcpy(bytes, whole, whole_bytes);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct chunk *c = &chunks[i];
        for (uint64_t at = c->offset + TMK_CHUNK_HEADER_BYTES; at < c->payload_end; at++) {
            static const uint8_t xors[] = {0x01, 0xff};
            for (size_t k = 0; k < sizeof xors; k++) {
                bytes[at] = whole[at] ^ xors[k];
                poke_payload(c, bytes);
                struct outcome o = read_all();
                check_others(&o, i);
                restore(c, bytes);
            }
        }
    }
    free(bytes);
}

/* A number that `./dev test fuzz` gives: how often, from where. Without it all rounds are the same
 * each time, so that a failure can be seen again. */
static uint64_t given(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    if (!text)
        return usual;
    print_message("%s=%s\n", name, text);
    return strtoull(text, NULL, 10);
}

/* Several bytes of a chunk, or all of it, or its header's numbers. */
static void test_hostile_at_random(void **unused)
{
    (void)unused;
    struct kit_random random = {given("FUZZ_SEED", 99)};
    uint64_t n_rounds = given("FUZZ_ROUNDS", 6000);
    uint8_t *bytes = malloc(whole_bytes);
    memcpy(bytes, whole, whole_bytes);
    for (uint64_t round = 0; round < n_rounds; round++) {
        uint32_t i = (uint32_t)kit_random_below(&random, n_chunks);
        struct chunk c = chunks[i];
        uint8_t *payload = bytes + c.offset + TMK_CHUNK_HEADER_BYTES;
        uint64_t n = 1 + kit_random_below(&random, kit_random_below(&random, 4) ? 8 : 200);
        for (uint64_t k = 0; k < n; k++)
            payload[kit_random_below(&random, c.header.payload_bytes)] =
                (uint8_t)kit_random_next(&random);
        if (round % 5 == 0)
            c.header.n_items = (uint32_t)kit_random_next(&random);
        if (round % 7 == 0)
            c.header.kind = (uint16_t)kit_random_below(&random, 6);
        if (round % 11 == 0)
            c.header.start_ns = kit_random_next(&random);
        if (round % 13 == 0)
            c.header.codec = (uint8_t)kit_random_below(&random, 2);
        poke_payload(&c, bytes);
        struct outcome o = read_all();
        assert_int_equal(o.rc, 0);
        uint64_t n_others = 0;
        for (uint32_t k = 0; k < n_chunks; k++)
            if (k != i && chunks[k].header.kind == TMK_CHUNK_EVENTS)
                n_others += chunks[k].header.n_items;
        assert_in_range(o.n_events, n_others, UINT64_MAX);
        restore(&chunks[i], bytes);
    }
    free(bytes);
}

/* Numbers of chunks: swapped, equal, far away. Each is read once. */
static void test_sequence_numbers(void **unused)
{
    (void)unused;
    struct kit_random random = {given("FUZZ_SEED", 7)};
    uint64_t n_rounds = given("FUZZ_ROUNDS", 6000) / 12;
    uint8_t *bytes = malloc(whole_bytes);
    memcpy(bytes, whole, whole_bytes);
    for (uint64_t round = 0; round < n_rounds; round++) {
        uint32_t i = (uint32_t)kit_random_below(&random, n_chunks);
        struct chunk c = chunks[i];
        c.header.seq =
            round % 3 ? kit_random_below(&random, n_chunks + 2) : kit_random_next(&random);
        poke_payload(&c, bytes);
        struct outcome o = read_all();
        assert_int_equal(o.rc, 0);
        assert_in_range(o.n_events, 1, 1000);
        restore(&chunks[i], bytes);
    }
    free(bytes);
}

/* ---- the ring ---- */

/* A ring of the same trace with N_RING_EVENTS records of all kinds on two pages. */
static uint8_t *make_ring(size_t *ret_n)
{
    struct tmk_ring ring;
    bool counter = tmk_clock_has_counter();
    assert_int_equal(
        tmk_ring_create(&ring, ring_path, N_RING_PAGES, N_RING_PAGES, trace_id, path, NULL), 0);
    ring.header->pid = 0;
    for (uint32_t thread = 1; thread <= 2; thread++) {
        struct tmk_page *page = tmk_ring_take(&ring, thread);
        uint32_t at = 0;
        for (uint32_t i = 0; i < N_RING_EVENTS / 2; i++) {
            static const uint8_t kinds[] = {1, 2, 3, 4, 5, 6, 16, 17, 1};
            uint8_t kind = kinds[i % sizeof kinds];
            struct tmk_record *r = &page->slots[at];
            r->ticks = tmk_clock_ticks(counter);
            r->a = kind == 4 || kind == 5 ? 1 + i % 3 : kind == 16 ? 40 : 0x1000 + 64 * (i % 7);
            r->b = i;
            uint8_t n_slots = kind == 16 ? 2 : 1;
            if (kind == 16)
                memset((uint8_t *)r + 24, 'm', 40);
            tmk_record_publish(
                r, (union tmk_record_head){{.kind = kind, .n_slots = n_slots, .id = i % 5}});
            at += n_slots;
        }
        struct tmk_record *def = &page->slots[at];
        def->a = 5;
        memcpy(&def->b, "hello", 5);
        tmk_record_publish(def,
                           (union tmk_record_head){
                               {.kind = TMK_KIND_DEF_STRING, .n_slots = 1, .id = 900 + thread}});
        if (thread == 1)
            tmk_page_seal(page);
    }
    tmk_ring_close(&ring);
    return kit_file_read(ring_path, ret_n);
}

static uint64_t n_whole_events(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < n_chunks; i++)
        n += chunks[i].header.kind == TMK_CHUNK_EVENTS ? chunks[i].header.n_items : 0;
    return n;
}

static void lay_out(const uint8_t *ring, size_t n)
{
    kit_file_write(ring_path, ring, n);
    assert_int_equal(ftruncate(fd, (off_t)whole_bytes), 0);
    poke(0, whole, whole_bytes);
}

/* What is in the trace stays; of the ring comes what makes sense. A byte of a record's times or
 * numbers costs no record. */
static void check_ring_flip(const struct outcome *o, size_t at)
{
    uint64_t n = n_whole_events();
    assert_int_equal(o->rc, 0);
    assert_in_range(o->n_events, n, n + N_RING_EVENTS * 4);
    assert_false(o->falls);
    if (at < TMK_RING_HEADER_BYTES || (at - TMK_RING_HEADER_BYTES) % TMK_PAGE_BYTES < 64)
        return;
    size_t in_slot = (at - TMK_RING_HEADER_BYTES) % TMK_PAGE_BYTES % TMK_SLOT_BYTES;
    if (in_slot >= 4 && in_slot < 16)
        assert_int_equal(o->n_events, n + N_RING_EVENTS);
}

static void test_every_byte_of_ring(void **unused)
{
    (void)unused;
    size_t n;
    uint8_t *ring = make_ring(&n);
    struct outcome o = read_all();

    assert_int_equal(o.n_events, n_whole_events() + N_RING_EVENTS);
    assert_int_equal(access(ring_path, F_OK), -1);
    for (size_t at = 0; at < n; at++) {
        size_t in_page =
            at < TMK_RING_HEADER_BYTES ? 0 : (at - TMK_RING_HEADER_BYTES) % TMK_PAGE_BYTES;
        bool is_dull = (at > 290 && at < TMK_RING_HEADER_BYTES) || in_page > 64 + 32 * 54;
        if (is_dull && at % 509)
            continue;
        static const uint8_t xors[] = {0x01, 0x82};
        for (size_t k = 0; k < sizeof xors; k++) {
            ring[at] ^= xors[k];
            lay_out(ring, n);
            o = read_all();
            check_ring_flip(&o, at);
            ring[at] ^= xors[k];
        }
    }
    unlink(ring_path);
    lay_out(ring, n);
    o = read_all();
    assert_int_equal(o.n_events, n_whole_events() + N_RING_EVENTS);
    free(ring);
    assert_int_equal(ftruncate(fd, (off_t)whole_bytes), 0);
    poke(0, whole, whole_bytes);
}

static void test_cut_ring(void **unused)
{
    (void)unused;
    size_t n;
    uint8_t *ring = make_ring(&n);
    for (size_t length = 0; length < n; length += length < 600 ? 1 : 97) {
        lay_out(ring, length);
        struct outcome o = read_all();
        assert_int_equal(o.rc, 0);
        assert_int_equal(o.n_events, n_whole_events()); /* not a ring: left alone */
        assert_int_equal(access(ring_path, F_OK), 0);
    }
    unlink(ring_path);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),       cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_hostile_payloads), cmocka_unit_test(test_hostile_at_random),
        cmocka_unit_test(test_sequence_numbers), cmocka_unit_test(test_every_byte_of_ring),
        cmocka_unit_test(test_cut_ring),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
