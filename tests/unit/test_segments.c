/* SPDX-License-Identifier: MIT */
/* Segments: the table of those alive, whose they are, and the accounts of a card. */
#include "base/bytes.h"
#include "base/error.h"
#include "kit/amount.h"
#include "model/holders.h"
#include "model/run.h"
#include "passes/accounting.h"
#include "passes/holdings.h"
#include "passes/oom/ooms.h"
#include "passes/quality.h"
#include "passes/segment_rows.h"
#include "passes/timeline.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/snapshot.h"
#include "trace/state.h"

#include "maker.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* ---- the table ---- */

enum { N_ADDRESSES = 64, N_TURNS = 20000, ROOM = 100 };

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Against an array that has a place for each kind and address. */
static void table_as_an_array(void **state)
{
    (void)state;
    static uint64_t sizes[TMK_N_SEGMENT_KINDS][N_ADDRESSES];
    struct tmk_segments table;
    uint32_t seed = 7, n = 0;
    uint64_t n_lost = 0;
    assert_int_equal(tmk_segments_init(&table, ROOM), 0);
    for (int turn = 0; turn < N_TURNS; turn++) {
        unsigned kind = 1 + next_random(&seed) % (TMK_N_SEGMENT_KINDS - 1);
        unsigned place = next_random(&seed) % N_ADDRESSES;
        uint64_t address = (uint64_t)place << 21, *size = &sizes[kind][place];
        struct tmk_driver_segment gone;
        if (next_random(&seed) % 2) {
            struct tmk_driver_segment item = {
                .kind = (uint8_t)kind, .address = address, .size_bytes = 1 + (uint64_t)turn};
            tmk_segments_begin(&table, &item);
            if (!*size && n == ROOM) {
                n_lost++;
                continue;
            }
            n += !*size;
            *size = item.size_bytes;
        } else {
            assert_int_equal(tmk_segments_end(&table, kind, address, &gone), *size != 0);
            if (*size)
                assert_int_equal(gone.size_bytes, *size);
            n -= *size != 0;
            *size = 0;
        }
        assert_int_equal(table.n, n);
        assert_true(tmk_segments_is_valid(&table));
    }
    for (unsigned kind = 1; kind < TMK_N_SEGMENT_KINDS; kind++) {
        for (unsigned place = 0; place < N_ADDRESSES; place++) {
            const struct tmk_driver_segment *found =
                tmk_segments_find(&table, kind, (uint64_t)place << 21);
            assert_int_equal(found ? found->size_bytes : 0, sizes[kind][place]);
        }
    }
    assert_true(n_lost > 0);
    assert_int_equal(table.n_lost, n_lost);
    tmk_segments_forget(&table);
    assert_int_equal(table.n, 0);
    assert_null(tmk_segments_find(&table, 1, 0));
    tmk_segments_fini(&table);
}

/* ---- traces made by hand ---- */

static void make_module(struct maker *m, uint32_t id, const char *path)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_MODULE,
                                    .id = id,
                                    .text = (const uint8_t *)path,
                                    .text_bytes = (uint32_t)strlen(path)});
}

static void make_native(struct maker *m, uint32_t id, uint32_t module)
{
    maker_add(m, (struct tmk_input){
                     .kind = TMK_KIND_DEF_NATIVE_FRAME, .id = id, .a = module, .b = 0x1000});
}

static void make_segment(struct maker *m, unsigned device, unsigned kind, uint64_t address,
                         uint64_t size, uint32_t stack)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SEGMENT,
                                    .device = (uint16_t)device,
                                    .stream = (uint16_t)kind,
                                    .a = address,
                                    .b = size,
                                    .id = stack});
}

static void end_segment(struct maker *m, unsigned device, unsigned kind, uint64_t address)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SEGMENT_END,
                                    .device = (uint16_t)device,
                                    .stream = (uint16_t)kind,
                                    .a = address});
}

enum {
    TORCH = 1,
    NCCL,
    PROGRAM,
    BETWEEN,
    CTYPES,
    LONELY,
    TO_THE_END,  /* go-betweens, down to the interpreter, without Python's frames */
    IN_PACKAGE,  /* a library that no rule knows, of an installed package */
    LIKE_PYTHON, /* a program whose name merely begins so */
    UCX,
    SINGLE_FILE, /* a package that is one file */
    N_STACKS = SINGLE_FILE,
};

/* Innermost first, as they are recorded. */
static void make_stacks(struct maker *m)
{
    static const char *const paths[] = {"/usr/lib/libcudart.so.12",
                                        "/opt/torch/lib/libc10_cuda.so",
                                        "/opt/lib/libnccl.so.2.21",
                                        "/home/me/bin/simulate",
                                        "/usr/lib/python3/lib-dynload/_ctypes.cpython-311.so",
                                        "/usr/lib/x86_64-linux-gnu/libffi.so.8",
                                        "/usr/bin/python3.11",
                                        "/opt/site-packages/flash_attn/lib/libflash.so",
                                        "/home/me/bin/pythonic-server",
                                        "/usr/lib/libucs.so.0",
                                        "/opt/dist-packages/fused.cpython-311.so"};
    for (uint32_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        make_module(m, i + 1, paths[i]);
        make_native(m, i + 1, i + 1);
    }
    maker_stack(m, TO_THE_END, (uint32_t[]){1, 6, 5, 7}, 4);
    maker_stack(m, IN_PACKAGE, (uint32_t[]){1, 8, 7}, 3);
    maker_stack(m, LIKE_PYTHON, (uint32_t[]){1, 9}, 2);
    maker_stack(m, UCX, (uint32_t[]){1, 10, 3}, 3);
    maker_stack(m, SINGLE_FILE, (uint32_t[]){1, 11, 7}, 3);
    maker_string(m, 1, "/opt/site-packages/numba/cuda/driver.py");
    maker_string(m, 2, "alloc");
    maker_string(m, 3, "/home/me/train.py");
    maker_frame(m, 20, 1, 2, 7);
    maker_frame(m, 21, 3, 2, 8);
    maker_stack(m, TORCH, (uint32_t[]){1, 2, 21}, 3);
    maker_stack(m, NCCL, (uint32_t[]){1, 3, 2, 21}, 4);
    maker_stack(m, PROGRAM, (uint32_t[]){4}, 1);
    maker_stack(m, BETWEEN, (uint32_t[]){6, 5, 20, 21}, 4);
    maker_stack(m, CTYPES, (uint32_t[]){6, 5, 21}, 3);
    maker_stack(m, LONELY, (uint32_t[]){1}, 1);
}

/* ---- whose ---- */

static void holders_by_stack(void **state)
{
    (void)state;
    static const struct {
        const char *owner, *library;
    } expected[N_STACKS + 1] = {
        {"", ""},
        {"torch", "libc10_cuda.so"},
        {"nccl", "libnccl.so.2.21"},
        {"user", "simulate"},
        {"numba", ""},
        {"user", ""},
        {"", ""},
        {"user", ""},
        {"flash_attn", "libflash.so"},
        {"user", "pythonic-server"},
        {"ucx", "libucs.so.0"},
        {"fused", "fused.cpython-311.so"},
    };
    struct maker m;
    struct tmk_holders *h = NULL;
    maker_open(&m, 0);
    make_stacks(&m);
    maker_step(&m, 0);
    struct tmk_run *run = maker_finish(&m);
    assert_int_equal(tmk_holders_open(tmk_run_process(run, 0), &h), 0);
    for (int twice = 0; twice < 2; twice++) {
        for (uint32_t i = 0; i <= N_STACKS; i++) {
            assert_string_equal(tmk_holders_get(h, i)->owner, expected[i].owner);
            assert_string_equal(tmk_holders_get(h, i)->library, expected[i].library);
        }
    }
    assert_string_equal(tmk_holders_get(h, UINT32_MAX)->owner, "");
    h = tmk_holders_close(h);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- rows ---- */

static struct tmk_segment_rows *sweep_rows(struct tmk_run *run)
{
    struct tmk_segment_rows *rows = NULL;
    struct tmk_error err = {0};
    assert_int_equal(tmk_segment_rows_open(tmk_run_process(run, 0), &rows), 0);
    struct tmk_visitor visitor = tmk_segment_rows_visitor(rows);
    assert_int_equal(tmk_process_sweep(tmk_run_process(run, 0), &visitor, 1, NULL, &err), 0);
    assert_int_equal(tmk_segment_rows_finish(rows, &err), 0);
    return rows;
}

static void expect_row(const struct tmk_segment_rows *rows, uint64_t i, unsigned kind,
                       uint64_t size, uint64_t alloc_ns, uint64_t end_ns, const char *owner)
{
    const struct tmk_segment_row *row = tmk_segment_rows_get(rows, i);
    assert_int_equal(row->segment.serial, i + 1);
    assert_int_equal(row->segment.kind, kind);
    assert_int_equal(row->segment.size_bytes, size);
    assert_int_equal(row->segment.alloc_ns, alloc_ns);
    assert_int_equal(row->end_ns, end_ns);
    if (owner)
        assert_string_equal(row->owner, owner);
    else
        assert_null(row->owner);
}

/* An address is a device's and a handle's at once; one that is given again has ended. */
static void rows_by_hand(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    maker_string(&m, 5, "forward");
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096, 2 * MIB, TORCH);
    m.ns = 20;
    maker_step(&m, 3);
    maker_push(&m, TIDEMARK_STAGE, 5);
    make_segment(&m, CUDA0, TMK_SEGMENT_PHYSICAL, 4096, 20 * MIB, 0);
    m.ns = 30;
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096);
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096);
    m.ns = 40;
    make_segment(&m, CUDA0, TMK_SEGMENT_PHYSICAL, 4096, 22 * MIB, NCCL);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_segment_rows *rows = sweep_rows(run);
    assert_int_equal(tmk_segment_rows_n(rows), 3);
    expect_row(rows, 0, TMK_SEGMENT_DEVICE, 2 * MIB, 10, 30, "torch");
    expect_row(rows, 1, TMK_SEGMENT_PHYSICAL, 20 * MIB, 20, 40, NULL);
    expect_row(rows, 2, TMK_SEGMENT_PHYSICAL, 22 * MIB, 40, UINT64_MAX, "nccl");
    assert_null(tmk_segment_rows_get(rows, 0)->stage);
    assert_string_equal(tmk_segment_rows_get(rows, 1)->stage, "forward");
    assert_int_equal(tmk_segment_rows_get(rows, 1)->segment.step, 3);
    tmk_segment_rows_close(rows);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Where old detail was given up, those alive then are known from a checkpoint, with their numbers.
 */
static void rows_after_a_cut(void **state)
{
    (void)state;
    enum { N_BLOCKS = 400000 };
    struct maker m;
    maker_open(&m, 4 << 20);
    make_stacks(&m);
    m.ns = 5;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096, MIB, TORCH);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 8192, 3 * MIB, PROGRAM);
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096);
    for (uint64_t i = 0; i < N_BLOCKS; i++) {
        m.ns += 1000;
        maker_alloc(&m, CUDA0, (1 + i % 5000) * 65536 + i % 7 * 512, i, 0);
    }
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 12288, 5 * MIB, NCCL);
    struct tmk_run *run = maker_finish(&m);
    assert_true(tmk_reader_status(tmk_run_process(run, 0)->reader)->n_given_up > 0);
    struct tmk_segment_rows *rows = sweep_rows(run);
    assert_int_equal(tmk_segment_rows_n(rows), 2);
    const struct tmk_segment_row *old = tmk_segment_rows_get(rows, 0);
    assert_int_equal(old->segment.serial, 2);
    assert_int_equal(old->segment.alloc_ns, 5);
    assert_string_equal(old->owner, "user");
    assert_int_equal(tmk_segment_rows_get(rows, 1)->segment.serial, 3);
    tmk_segment_rows_close(rows);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- accounts ---- */

static struct tmk_accounting *sweep_accounts(struct tmk_run *run)
{
    struct tmk_accounting *a = NULL;
    struct tmk_error err = {0};
    struct tmk_replay rp;
    assert_int_equal(tmk_accounting_open(tmk_run_process(run, 0), &a), 0);
    struct tmk_visitor visitor = tmk_accounting_visitor(a);
    assert_int_equal(tmk_process_sweep(tmk_run_process(run, 0), &visitor, 1, &rp, &err), 0);
    assert_int_equal(tmk_accounting_finish(a, &rp, &err), 0);
    tmk_replay_fini(&rp);
    return a;
}

static void expect_part(const struct tmk_device_account *a, uint64_t i, const char *owner,
                        uint64_t bytes, uint64_t n)
{
    assert_true(i < a->n_parts);
    assert_string_equal(a->parts[i].owner, owner);
    assert_int_equal(a->parts[i].bytes, bytes);
    assert_int_equal(a->parts[i].n_segments, n);
}

/* What the driver says is used is the sum of its parts. */
static void expect_sum(const struct tmk_device_account *a)
{
    uint64_t sum = a->context_bytes + a->others_bytes + a->unexplained_bytes;
    for (uint64_t i = 0; i < a->n_parts; i++)
        sum += a->parts[i].bytes;
    assert_int_equal(sum, a->used_bytes);
}

static void accounts_by_hand(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21, 20 * MIB, TORCH);
    make_segment(&m, CUDA0, TMK_SEGMENT_PHYSICAL, 77, 40 * MIB, TORCH);
    make_segment(&m, CUDA0, TMK_SEGMENT_MAPPING, 1 << 30, 40 * MIB, TORCH); /* of the same memory */
    make_segment(&m, CUDA0, TMK_SEGMENT_PINNED, 1 << 22, 500 * MIB, TORCH);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 23, 64 * MIB, NCCL);
    make_segment(&m, CUDA1, TMK_SEGMENT_DEVICE, 1 << 24, 1 * MIB, 0);
    maker_alloc(&m, CUDA0, 1 << 21, 50 * MIB, 0);
    maker_reserved(&m, CUDA0, 60 * MIB);
    maker_sample(&m, CUDA0, 80 * GIB, 1000 * MIB, 424 * MIB, 500 * MIB);
    m.ns = 20;
    maker_sample(&m, CUDA0, 80 * GIB, 5000 * MIB, UINT64_MAX,
                 UINT64_MAX); /* tells less: of no use */
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 23);
    m.ns = 30;
    maker_sample(&m, CUDA0, 80 * GIB, 860 * MIB, 360 * MIB, 500 * MIB);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    assert_int_equal(tmk_accounting_n(a), 4);
    const struct tmk_device_account *peak = tmk_accounting_get(a, 0),
                                    *last = tmk_accounting_get(a, 1);
    assert_true(peak->is_peak && !last->is_peak);
    assert_int_equal(peak->time_ns, 10);
    expect_part(peak, 0, "nccl", 64 * MIB, 1);
    expect_part(peak, 1, "torch", 60 * MIB, 2);
    assert_int_equal(peak->context_bytes, 300 * MIB);
    assert_int_equal(peak->unexplained_bytes, 76 * MIB);
    assert_int_equal(peak->allocated_bytes, 50 * MIB);
    assert_int_equal(peak->reserved_bytes, 60 * MIB);
    expect_sum(peak);
    assert_int_equal(last->time_ns, 30);
    assert_int_equal(last->n_parts, 1);
    expect_part(last, 0, "torch", 60 * MIB, 2);
    assert_int_equal(last->context_bytes, 300 * MIB);
    expect_sum(last);
    const struct tmk_device_account *other = tmk_accounting_get(a, 3);
    assert_int_equal(other->device, CUDA1);
    expect_part(other, 0, "unknown", MIB, 1);
    assert_int_equal(other->used_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(other->context_bytes, TMK_BYTES_UNKNOWN);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* A process that was attached to: torch says what it holds, the rest was there before. */
static void accounts_without_segments(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 4096, 5 * MIB, 0);
    maker_reserved(&m, CUDA0, 20 * MIB);
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    const struct tmk_device_account *peak = tmk_accounting_get(a, 0);
    expect_part(peak, 0, "torch", 20 * MIB, 0);
    assert_int_equal(peak->context_bytes, 380 * MIB);
    expect_sum(peak);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* What was there before the recording began has no stack: torch's figure is of the same memory. */
static void accounts_of_segments_without_stacks(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21, 30 * MIB, 0);
    maker_reserved(&m, CUDA0, 20 * MIB);
    maker_sample(&m, CUDA0, 80 * GIB, 500 * MIB, 500 * MIB, 0);
    m.ns = 20;
    maker_reserved(&m, CUDA0, 36 * MIB); /* 6 of it in none of the segments */
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    const struct tmk_device_account *peak = tmk_accounting_get(a, 0),
                                    *last = tmk_accounting_get(a, 1);
    assert_int_equal(peak->n_parts, 1);
    expect_part(peak, 0, "unknown", 30 * MIB, 1);
    expect_sum(peak);
    assert_int_equal(last->n_parts, 2);
    expect_part(last, 0, "unknown", 30 * MIB, 1);
    expect_part(last, 1, "torch", 6 * MIB, 0);
    expect_sum(last);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* A pool holds the blocks that torch says are reserved, whoever made it. */
static void accounts_of_pools(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_POOL, 77, 32 * MIB, PROGRAM);
    maker_reserved(&m, CUDA0, 32 * MIB);
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    const struct tmk_device_account *last = tmk_accounting_get(a, 1);
    assert_int_equal(last->n_parts, 1);
    expect_part(last, 0, "user", 32 * MIB, 1);
    expect_sum(last);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Where the driver's figure is from before a segment, what is left over is not known; another look
 * is better, however little it has. */
static void accounts_at_odds(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    maker_sample(&m, CUDA0, 80 * GIB, 300 * MIB, 300 * MIB, 0);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21, 600 * MIB, TORCH);
    m.ns = 20;
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0); /* less than the segment */
    make_segment(&m, CUDA1, TMK_SEGMENT_DEVICE, 1 << 22, 2 * MIB, TORCH);
    m.ns = 30;
    maker_sample(&m, CUDA1, 80 * GIB, 500 * MIB, 300 * MIB, 250 * MIB); /* more than is used */
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    assert_int_equal(tmk_accounting_n(a), 4);
    for (uint64_t i = 0; i < 2; i++) {
        const struct tmk_device_account *good = tmk_accounting_get(a, i);
        assert_int_equal(good->time_ns, 10);
        assert_int_equal(good->n_parts, 0);
        assert_int_equal(good->context_bytes, 300 * MIB);
        expect_sum(good);
    }
    const struct tmk_device_account *only = tmk_accounting_get(a, 2);
    assert_int_equal(only->time_ns, 30);
    assert_int_equal(only->context_bytes, 298 * MIB);
    assert_int_equal(only->unexplained_bytes, TMK_BYTES_UNKNOWN);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

static void accounts_at_odds_alone(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21, 600 * MIB, TORCH);
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    const struct tmk_device_account *last = tmk_accounting_get(a, 1);
    expect_part(last, 0, "torch", 600 * MIB, 1);
    assert_int_equal(last->used_bytes, 400 * MIB);
    assert_int_equal(last->context_bytes, TMK_BYTES_UNKNOWN);
    assert_int_equal(last->unexplained_bytes, 0);
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Many of each: time that grew with segments times looks would be minutes here. */
static void accounts_of_many(void **state)
{
    (void)state;
    enum { N_SEGMENTS = 60000, N_LOOKS = 60000, N_DEVICES = 2 * TMK_MAX_DEVICES };
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    for (uint32_t i = 0; i < N_SEGMENTS; i++)
        make_segment(&m, CUDA0 + i % N_DEVICES, TMK_SEGMENT_DEVICE, 4096 * ((uint64_t)i + 1), 4096,
                     i % 2 ? TORCH : NCCL);
    for (uint32_t i = 0; i < N_LOOKS; i++)
        maker_sample(&m, CUDA0 + i % N_DEVICES, GIB, GIB / 2, GIB / 2, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_accounting *a = sweep_accounts(run);
    assert_int_equal(tmk_accounting_n(a), 2 * TMK_MAX_DEVICES); /* those beyond are not counted */
    for (uint64_t i = 0; i < tmk_accounting_n(a); i++) {
        const struct tmk_device_account *account = tmk_accounting_get(a, i);
        uint64_t n = N_SEGMENTS / N_DEVICES + (i / 2 < N_SEGMENTS % N_DEVICES);
        assert_int_equal(account->device, CUDA0 + i / 2);
        assert_int_equal(account->n_parts, 1);
        expect_part(account, 0, i / 2 % 2 ? "torch" : "nccl", 4096 * n, n);
        expect_sum(account);
    }
    tmk_accounting_close(a);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- a gap ---- */

/* As a checkpoint has it behind a gap in which the second of three ended and two more began, the
 * later of them at the address of the first, which has ended as well. */
static void change_unseen(struct tmk_state *s)
{
    s->now_ns = 90;
    assert_true(tmk_segments_end(&s->segments, TMK_SEGMENT_DEVICE, 8192, NULL));
    for (uint64_t i = 2; i > 0; i--) { /* the later first: they have no order */
        struct tmk_driver_segment g = {.kind = TMK_SEGMENT_DEVICE,
                                       .device = CUDA0,
                                       .serial = 3 + i,
                                       .address = i == 2 ? 4096 : 65536,
                                       .size_bytes = i * 100 * MIB,
                                       .alloc_ns = 40 + i,
                                       .stack = NCCL};
        tmk_segments_begin(&s->segments, &g);
    }
    s->segments.n_begun = 5;
}

static void after_a_gap(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_segment_rows *rows = NULL;
    struct tmk_accounting *a = NULL;
    struct tmk_replay rp;
    maker_open(&m, 0);
    make_stacks(&m);
    for (uint64_t i = 1; i <= 3; i++) {
        m.ns = 10 * i;
        make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096 * i, i * MIB, TORCH);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    assert_int_equal(tmk_segment_rows_open(p, &rows), 0);
    assert_int_equal(tmk_accounting_open(p, &a), 0);
    struct tmk_visitor visitors[] = {tmk_segment_rows_visitor(rows), tmk_accounting_visitor(a)};
    assert_int_equal(tmk_process_sweep(p, visitors, 2, &rp, NULL), 0);
    for (int twice = 0; twice < 2; twice++) { /* the second time nothing is new */
        if (!twice)
            change_unseen(&rp.state);
        for (int i = 0; i < 2; i++)
            visitors[i].restored(visitors[i].arg, &rp);
    }
    assert_int_equal(tmk_segment_rows_finish(rows, NULL), 0);
    assert_int_equal(tmk_segment_rows_n(rows), 5);
    expect_row(rows, 0, TMK_SEGMENT_DEVICE, MIB, 10, 90, "torch");
    expect_row(rows, 1, TMK_SEGMENT_DEVICE, 2 * MIB, 20, 90, "torch");
    expect_row(rows, 2, TMK_SEGMENT_DEVICE, 3 * MIB, 30, UINT64_MAX, "torch");
    expect_row(rows, 3, TMK_SEGMENT_DEVICE, 100 * MIB, 41, UINT64_MAX, "nccl");
    expect_row(rows, 4, TMK_SEGMENT_DEVICE, 200 * MIB, 42, UINT64_MAX, "nccl");
    assert_int_equal(tmk_accounting_finish(a, &rp, NULL), 0);
    const struct tmk_device_account *last = tmk_accounting_get(a, 1);
    assert_int_equal(last->n_parts, 2);
    expect_part(last, 0, "nccl", 300 * MIB, 2);
    expect_part(last, 1, "torch", 3 * MIB, 1);
    tmk_segment_rows_close(rows);
    tmk_accounting_close(a);
    tmk_replay_fini(&rp);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- what found no room ---- */

static void lost_segments(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_error err = {0};
    struct tmk_replay rp;
    maker_open(&m, 0);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096, MIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    assert_int_equal(tmk_process_sweep(p, NULL, 0, &rp, &err), 0);
    struct tmk_quality q = tmk_quality_of(p, &rp);
    assert_int_equal(q.n_lost_segments, 0);
    assert_true(tmk_quality_is_good(&q));
    rp.state.segments.n_lost = 3;
    q = tmk_quality_of(p, &rp);
    assert_int_equal(q.n_lost_segments, 3);
    assert_false(tmk_quality_is_good(&q));
    tmk_replay_fini(&rp);
    tmk_run_close(run);
    maker_remove(&m);
}

static struct tmk_state_limits limits_for(uint32_t max_segments)
{
    struct tmk_state_limits limits = tmk_state_limits_recorder;
    limits.max_segments = max_segments;
    return limits;
}

/* Those that a checkpoint brings again are lost once. */
static void lost_segments_of_a_checkpoint(void **state)
{
    (void)state;
    enum { N_HELD = 6, ROOM_FOR = 4 };
    struct tmk_state_limits many = limits_for(N_HELD), few = limits_for(ROOM_FOR);
    struct tmk_state whole, small;
    assert_int_equal(tmk_state_init(&whole, &many), 0);
    assert_int_equal(tmk_state_init(&small, &few), 0);
    for (uint64_t i = 0; i < N_HELD; i++) {
        struct tmk_driver_segment g = {
            .address = 4096 * (i + 1), .size_bytes = MIB, .kind = TMK_SEGMENT_DEVICE};
        tmk_state_segment(&whole, i, 1, &g);
        tmk_state_segment(&small, i, 1, &g);
    }
    assert_int_equal(small.segments.n_lost, N_HELD - ROOM_FOR);
    size_t bound = tmk_checkpoint_bound(&whole);
    uint8_t *bytes = malloc(bound), *scratch = malloc(bound);
    assert_true(bytes && scratch);
    struct tmk_sink out = tmk_sink_of(bytes, bound);
    assert_true(tmk_checkpoint_write(&out, &whole, N_HELD, scratch, bound, NULL));
    struct tmk_view payload = tmk_view_of(bytes, (size_t)(out.at - bytes));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tmk_checkpoint_restore(payload, N_HELD, TMK_NO_STEP, &small), 0);
        assert_int_equal(small.segments.n, ROOM_FOR);
        assert_int_equal(small.segments.n_lost, N_HELD - ROOM_FOR);
        assert_int_equal(small.segments.n_begun, N_HELD);
    }
    free(bytes);
    free(scratch);
    tmk_state_fini(&whole);
    tmk_state_fini(&small);
}

/* ---- what was refused ---- */

static void ooms_of_the_driver(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_ooms *o = NULL;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096, 20 * MIB, TORCH);
    make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 8192, 5 * MIB, NCCL);
    make_segment(&m, CUDA0, TMK_SEGMENT_PINNED, 4096, MIB, NCCL);
    maker_sample(&m, CUDA0, 80 * GIB, 400 * MIB, 400 * MIB, 0);
    maker_driver_oom(&m, CUDA0, 90 * GIB, TORCH); /* it gives back what it has, and asks again */
    maker_driver_oom(&m, CUDA0, 91 * GIB, NCCL);
    end_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, 4096);
    maker_driver_oom(&m, CUDA0, 92 * GIB, NCCL);
    maker_driver_oom(&m, TIDEMARK_HOST, 64 * 1024 * GIB, TORCH); /* host memory: no card's matter */
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    assert_int_equal(tmk_ooms_open(p, &o), 0);
    struct tmk_visitor visitor = tmk_ooms_visitor(o);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, NULL, NULL), 0);
    assert_int_equal(tmk_ooms_finish(o, NULL), 0);
    assert_int_equal(tmk_ooms_n(o), 3);
    assert_int_equal(tmk_ooms_get(o, 0)->requested_bytes, 91 * GIB);
    assert_int_equal(tmk_ooms_get(o, 0)->segment_bytes, 25 * MIB);
    assert_int_equal(tmk_ooms_get(o, 0)->used_bytes, 400 * MIB);
    assert_int_equal(tmk_ooms_get(o, 1)->segment_bytes, 5 * MIB);
    const struct tmk_oom *host = tmk_ooms_get(o, 2);
    assert_true(host->is_of_driver);
    assert_int_equal(host->device, TIDEMARK_HOST);
    assert_int_equal(host->used_bytes, UINT64_MAX);
    assert_int_equal(host->total_bytes, UINT64_MAX);
    tmk_ooms_close(o);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- holdings ---- */

static uint64_t held(const struct tmk_holdings *h, const char *owner, uint32_t part)
{
    for (uint32_t k = 0; k < tmk_holdings_n(h); k++) {
        const char *name = tmk_holdings_owner(h, k);
        if (name && owner ? strcmp(name, owner) == 0 : name == owner)
            return tmk_holdings_bytes(h, k)[part];
    }
    return 0;
}

static void make_holdings(struct maker *m)
{
    make_stacks(m);
    m->ns = 5;
    make_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21, 30 * MIB, TORCH);
    make_segment(m, CUDA0 + 1, TMK_SEGMENT_DEVICE, 1 << 22, 99 * MIB, TORCH);
    m->ns = 8;
    make_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 26, 10 * MIB, NCCL);
    m->ns = 9;
    end_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 26);
    maker_sample(m, CUDA0, 80 * GIB, 500 * MIB, 500 * MIB, 0);
    m->ns = 25;
    end_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 21);
    m->ns = 30;
    make_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 23, 5 * MIB, 0);
    m->ns = 35;
    maker_sample(m, CUDA0, 80 * GIB, 300 * MIB, 300 * MIB, 0);
    m->ns = 60;
    make_segment(m, CUDA0, TMK_SEGMENT_DEVICE, 1 << 24, 70 * MIB, TORCH); /* behind the last part */
}

/* Of each part the moment with the most, with what came before it. */
static void holdings_by_hand(void **state)
{
    (void)state;
    static const uint64_t times[] = {0, 10, 20, 28, 50};
    static const struct {
        uint64_t ns, torch, nccl, unknown, used;
    } expected[] = {{8, 30 * MIB, 10 * MIB, 0, 500 * MIB},
                    {10, 30 * MIB, 0, 0, 500 * MIB},
                    {20, 30 * MIB, 0, 0, 500 * MIB},
                    {30, 0, 0, 5 * MIB, 500 * MIB}};
    struct maker m;
    struct tmk_holdings *h = NULL;
    maker_open(&m, 0);
    make_holdings(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    assert_int_equal(tmk_holdings_open(p, CUDA0, times, 4, &h), 0);
    struct tmk_visitor visitor = tmk_holdings_visitor(h);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, NULL, NULL), 0);
    assert_int_equal(tmk_holdings_finish(h, NULL), 0);
    assert_int_equal(tmk_holdings_n(h), 3);
    for (uint32_t i = 0; i < 4; i++) {
        const struct tmk_timeline_part *part = &tmk_holdings_parts(h)[i];
        assert_int_equal(part->max_ns, expected[i].ns);
        assert_int_equal(part->max_bytes,
                         expected[i].torch + expected[i].nccl + expected[i].unknown);
        assert_int_equal(held(h, "torch", i), expected[i].torch);
        assert_int_equal(held(h, "nccl", i), expected[i].nccl);
        assert_int_equal(held(h, NULL, i), expected[i].unknown);
        assert_true(part->has_used);
        assert_int_equal(part->max_used_bytes, expected[i].used);
    }
    tmk_holdings_close(h);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_as_an_array),
        cmocka_unit_test(holders_by_stack),
        cmocka_unit_test(rows_by_hand),
        cmocka_unit_test(rows_after_a_cut),
        cmocka_unit_test(accounts_by_hand),
        cmocka_unit_test(accounts_without_segments),
        cmocka_unit_test(accounts_of_segments_without_stacks),
        cmocka_unit_test(accounts_of_pools),
        cmocka_unit_test(accounts_at_odds),
        cmocka_unit_test(accounts_at_odds_alone),
        cmocka_unit_test(accounts_of_many),
        cmocka_unit_test(after_a_gap),
        cmocka_unit_test(lost_segments),
        cmocka_unit_test(lost_segments_of_a_checkpoint),
        cmocka_unit_test(ooms_of_the_driver),
        cmocka_unit_test(holdings_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
