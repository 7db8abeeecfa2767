/* SPDX-License-Identifier: MIT */
/* The verifier: silent on good traces, and not fooled by bytes whose checksums were made right
 * again. */
#include "maker.h"

#include <fcntl.h>

#include "base/bytes.h"
#include "base/crc32.h"
#include "model/run.h"
#include "passes/verify.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

enum { CUDA0 = 0x100 };

static void make_training(struct maker *m, uint64_t max_size, int n_steps)
{
    uint64_t random = 1;
    maker_open(m, max_size);
    maker_string(m, 1, "forward");
    maker_string(m, 2, "encoder");
    maker_string(m, 3, "a.c");
    maker_frame(m, 1, 3, 2, 7);
    maker_stack(m, 1, (uint32_t[]){1}, 1);
    maker_push(m, TIDEMARK_USER, 2); /* open all the time */
    for (int i = 0; i < n_steps; i++) {
        maker_step(m, i);
        maker_push(m, TIDEMARK_STAGE, 1);
        for (uint64_t b = 1; b <= 40; b++) {
            m->ns += 1 + plain_random(&random) % 1000;
            maker_push(m, TIDEMARK_MODULE, 2);
            maker_alloc(m, CUDA0, b << 12 | (plain_random(&random) % 8) << 24, 1 + b * 100, 1);
            if (b % 10 == 0)
                maker_flush(m);
            maker_pop(m, TIDEMARK_MODULE);
        }
        maker_pop(m, TIDEMARK_STAGE);
        maker_oom(m, CUDA0, 1, 2, 1);
    }
}

static uint64_t n_findings(struct tmk_run *run, struct tmk_trace_verdict *ret, char *ret_first)
{
    struct tmk_verify *v = NULL;
    assert_int_equal(tmk_verify_open(tmk_run_process(run, 0), NULL, &v, NULL), 0);
    const struct tmk_trace_verdict *d = tmk_verify_verdict(v);
    uint64_t n = d->n_findings;
    if (n > 0)
        snprintf(ret_first, 300, "%s", d->findings[0].text);
    *ret = *d;
    tmk_verify_close(v);
    return n;
}

static void check_good(struct maker *m, struct tmk_run *run, struct tmk_trace_verdict *ret)
{
    char first[300];
    if (n_findings(run, ret, first) > 0)
        fail_msg("%s", first);
    tmk_run_close(run);
    maker_remove(m);
}

static void test_good(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_trace_verdict d;
    make_training(&m, 0, 25);
    check_good(&m, maker_finish(&m), &d);
    assert_int_equal(d.n_allocs, 1000);
    assert_int_equal(d.n_events, 1 + 25 * (1 + 1 + 120 + 1 + 1));
    assert_int_equal(d.n_contexts, 101); /* four flushes a step, and the last */
    assert_int_equal(d.n_step_rows, 25);
    assert_int_equal(d.n_notes, 0);
}

static void test_good_empty(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_trace_verdict d;
    maker_open(&m, 0);
    check_good(&m, maker_finish(&m), &d);
    assert_int_equal(d.n_events, 0);
}

/* Written round: replay starts at a checkpoint, the others are compared. */
static void test_good_given_up(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_trace_verdict d;
    make_training(&m, TMK_MAX_SIZE_LEAST, 12000);
    check_good(&m, maker_finish(&m), &d);
    assert_int_equal(d.n_allocs, 480000);
    assert_true(d.n_checkpoints > 3);
    assert_int_equal(d.n_notes, 1);
}

/* ---- lies with right checksums ---- */

struct file {
    uint8_t *bytes;
    size_t n;
    char path[128];
};

static void file_read(struct file *f, const char *path)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    f->bytes = malloc(1 << 22);
    assert_non_null(f->bytes);
    f->n = fread(f->bytes, 1, 1 << 22, in);
    fclose(in);
    snprintf(f->path, sizeof f->path, "%s", path);
}

static void file_write(const struct file *f)
{
    FILE *out = fopen(f->path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(f->bytes, 1, f->n, out), f->n);
    fclose(out);
}

/* The k-th chunk of a kind. */
static uint8_t *chunk_of(struct file *f, unsigned kind, int k)
{
    for (size_t at = tmk_load_u32(f->bytes + 12); at < f->n;) {
        struct tmk_chunk_header h;
        memcpy(&h, f->bytes + at, sizeof h);
        if (h.kind == kind && k-- == 0)
            return f->bytes + at;
        at += TMK_CHUNK_HEADER_BYTES + ((h.payload_bytes + 7u) & ~7u);
    }
    fail_msg("no such chunk");
    return NULL;
}

static void seal_chunk(uint8_t *chunk)
{
    struct tmk_chunk_header h;
    memcpy(&h, chunk, sizeof h);
    h.payload_crc = tmk_crc32(0, chunk + sizeof h, h.payload_bytes);
    h.header_crc = tmk_crc32(0, &h, offsetof(struct tmk_chunk_header, header_crc));
    memcpy(chunk, &h, sizeof h);
}

static struct tmk_run *run_of(const struct maker *m)
{
    struct tmk_run *run = NULL;
    assert_int_equal(tmk_run_open(m->folder, &run, NULL), 0);
    return run;
}

/* Where section `id` of a payload begins. */
static uint8_t *section_of(uint8_t *chunk, uint64_t id)
{
    struct tmk_chunk_header h;
    memcpy(&h, chunk, sizeof h);
    struct tmk_view in = tmk_view_of(chunk + sizeof h, h.payload_bytes);
    while (tmk_view_left(&in) > 0) {
        uint64_t found = tmk_view_varint(&in);
        uint64_t length = tmk_view_varint(&in);
        struct tmk_view body = tmk_view_take(&in, length);
        if (found == id)
            return chunk + sizeof h + (body.at - (chunk + sizeof h));
    }
    fail_msg("no such section");
    return NULL;
}

/* Of an addresses section (count, shift, then device, address, live): the first `live` that is not
 * 0. Replay itself does not look at it. */
static uint8_t *live_of(uint8_t *section)
{
    struct tmk_view in = tmk_view_of(section, 4096);
    tmk_view_varint(&in);
    tmk_view_varint(&in);
    for (;;) {
        tmk_view_varint(&in);
        tmk_view_varint(&in);
        uint8_t *live = section + (in.at - section);
        if (tmk_view_varint(&in) != 0)
            return live;
    }
}

enum lie {
    LIE_CONTEXT,
    LIE_ADDRESS,
    LIE_STEP,
    LIE_ROW,
    LIE_TOTALS,
    LIE_CHECKPOINT,
    LIE_EVENTS,
    LIE_OPEN_ROW,
    LIE_KIND,
    LIE_CHECKSUM,
    N_LIES
};

static void tell_lie(struct file *f, enum lie lie)
{
    uint8_t *events = chunk_of(f, TMK_CHUNK_EVENTS, 5), *at;
    struct tmk_status status;
    struct tmk_chunk_header h;
    switch (lie) {
    case LIE_CONTEXT: /* number of devices, device, then bytes allocated */
        section_of(events, TMK_SECTION_CONTEXT)[3] ^= 1;
        seal_chunk(events);
        break;
    case LIE_ADDRESS:
        *live_of(section_of(events, TMK_SECTION_ADDRESSES)) ^= 2;
        seal_chunk(events);
        break;
    case LIE_CHECKPOINT: /* the serial number of its last block */
        events = chunk_of(f, TMK_CHUNK_CHECKPOINT, 1);
        memcpy(&h, events, sizeof h);
        events[sizeof h + h.payload_bytes - 1] ^= 1;
        seal_chunk(events);
        break;
    case LIE_STEP:
        memcpy(&h, events, sizeof h);
        h.first_step++;
        memcpy(events, &h, sizeof h);
        seal_chunk(events);
        break;
    case LIE_ROW: /* length, ordinal, flags, step, device, ... : its last byte */
        events = chunk_of(f, TMK_CHUNK_STEPS, 1);
        events[TMK_CHUNK_HEADER_BYTES + events[TMK_CHUNK_HEADER_BYTES]] ^= 1;
        seal_chunk(events);
        break;
    case LIE_TOTALS:
        for (int slot = 0; slot < 2; slot++) {
            at = f->bytes + TMK_STATUS_OFFSET + slot * TMK_STATUS_BYTES;
            memcpy(&status, at, sizeof status);
            status.n_frees += 1;
            status.crc = tmk_crc32(0, &status, offsetof(struct tmk_status, crc));
            memcpy(at, &status, sizeof status);
        }
        break;
    case LIE_EVENTS: /* before the chunk */
        section_of(events, TMK_SECTION_TOTALS)[0] ^= 1;
        seal_chunk(events);
        break;
    case LIE_OPEN_ROW: /* the last byte of the first row */
        at = section_of(events, TMK_SECTION_STEP);
        at[*at] ^= 1;
        seal_chunk(events);
        break;
    case LIE_KIND: /* no events: the chunks after it do not follow */
        memcpy(&h, events, sizeof h);
        h.kind = 77;
        memcpy(events, &h, sizeof h);
        seal_chunk(events);
        break;
    default:
        events[TMK_CHUNK_HEADER_BYTES] ^= 1;
        break;
    }
}

/* What the first finding of each says; the first eight do no further harm and are found alone. */
static const char *const said[N_LIES] = {
    [LIE_CONTEXT] = "bytes allocated on cuda:0",
    [LIE_ADDRESS] = "addresses hold another block",
    [LIE_STEP] = "step in force",
    [LIE_ROW] = "the row of step",
    [LIE_TOTALS] = "frees",
    [LIE_CHECKPOINT] = "blocks of the checkpoint",
    [LIE_EVENTS] = "events before the chunk",
    [LIE_OPEN_ROW] = "the row of step",
    [LIE_KIND] = "events before the chunk",
    [LIE_CHECKSUM] = "wrong checksum",
};

static void test_lies(void **state)
{
    (void)state;
    for (enum lie lie = 0; lie < N_LIES; lie++) {
        struct maker m;
        struct file f;
        struct tmk_trace_verdict d;
        char first[300];
        make_training(&m, TMK_MAX_SIZE_LEAST, 1500); /* two checkpoints, nothing given up */
        tmk_run_close(maker_finish(&m));
        file_read(&f, m.path);
        tell_lie(&f, lie);
        file_write(&f);
        struct tmk_run *run = run_of(&m);
        uint64_t n = n_findings(run, &d, first);
        if (n == 0 || !strstr(first, said[lie]) || (lie <= LIE_OPEN_ROW && n != 1))
            fail_msg("lie %d: %d findings, first: %s", (int)lie, (int)n, n ? first : "none");
        tmk_run_close(run);
        maker_remove(&m);
        free(f.bytes);
    }
}

/* A trace cut anywhere is read as far as it goes, and the cut is found. */
static void test_cut(void **state)
{
    (void)state;
    struct maker m;
    struct file f;
    make_training(&m, 0, 5);
    tmk_run_close(maker_finish(&m));
    file_read(&f, m.path);
    for (size_t n = tmk_load_u32(f.bytes + 12); n < f.n; n += 61) {
        struct tmk_trace_verdict d;
        char first[300];
        assert_int_equal(truncate(m.path, (off_t)f.n), 0);
        file_write(&f);
        assert_int_equal(truncate(m.path, (off_t)n), 0);
        struct tmk_run *run = run_of(&m);
        assert_true(n_findings(run, &d, first) > 0);
        tmk_run_close(run);
    }
    maker_remove(&m);
    free(f.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_good_empty),
        cmocka_unit_test(test_good_given_up), cmocka_unit_test(test_lies),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
