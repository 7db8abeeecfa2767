/* SPDX-License-Identifier: MIT */
/* Peaks: of traces whose truth is known, by hand and by a model that keeps everything. */
#include "maker.h"

#include "model/run.h"
#include "passes/group.h"
#include "passes/oom/ooms.h"
#include "passes/peak.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };

/* ---- asking ---- */

static void check_row(struct tmk_peak *k, enum tmk_by by, uint64_t i, const char *key,
                      uint64_t bytes, uint64_t n_blocks)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    assert_int_equal(tmk_peak_group(k, by, &rows, &n, NULL), 0);
    assert_true(i < n);
    if (key)
        assert_string_equal(rows[i].key, key);
    else
        assert_null(rows[i].key);
    assert_int_equal(rows[i].bytes, bytes);
    assert_int_equal(rows[i].n_blocks, n_blocks);
}

static uint64_t n_rows(struct tmk_peak *k, enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    assert_int_equal(tmk_peak_group(k, by, &rows, &n, NULL), 0);
    return n;
}

static uint64_t sum_of_blocks(const struct tmk_peak *k)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < tmk_peak_n_blocks(k); i++)
        bytes += tmk_peak_block(k, i)->size_bytes;
    return bytes;
}

static const struct tmk_moment the_peak = {.kind = TMK_MOMENT_PEAK, .any_device = true};

/* What was reserved at the moment, also when it is said right after the block; and blocks that went
 * with their device were alive before. */
static void test_reserved(void **state)
{
    (void)state;
    struct maker m;
    uint64_t reserved = 1;
    maker_open(&m, 0);
    maker_alloc(&m, CUDA1, 0x10, 5, 0);
    m.ns = 1;
    maker_reserved(&m, CUDA0, 1000);
    maker_alloc(&m, CUDA0, 0x10, 600, 0);
    maker_alloc(&m, CUDA0, 0x20, 700, 0);
    maker_reserved(&m, CUDA0, 2000);
    m.ns = 2;
    maker_free(&m, CUDA0, 0x20);
    maker_reserved(&m, CUDA0, 1500);
    m.ns = 3;
    maker_device_end(&m, CUDA0);
    maker_alloc(&m, CUDA0, 0x10, 9, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_peak *k = maker_peak(run, the_peak);
    assert_int_equal(tmk_peak_bytes(k), 1300);
    assert_int_equal(tmk_peak_n_blocks(k), 2);
    assert_int_equal(sum_of_blocks(k), 1300);
    assert_true(tmk_peak_reserved(k, &reserved));
    assert_int_equal(reserved, 2000);
    tmk_peak_close(k);
    k = maker_peak(run,
                   (struct tmk_moment){.kind = TMK_MOMENT_TIME, .time_ns = 2, .device = CUDA0});
    assert_int_equal(tmk_peak_bytes(k), 600);
    assert_int_equal(sum_of_blocks(k), 600);
    assert_true(tmk_peak_reserved(k, &reserved));
    assert_int_equal(reserved, 1500);
    tmk_peak_close(k);
    k = maker_peak(run,
                   (struct tmk_moment){.kind = TMK_MOMENT_TIME, .time_ns = 3, .any_device = true});
    assert_int_equal(tmk_peak_bytes(k), 14);
    assert_int_equal(sum_of_blocks(k), 14);
    tmk_peak_close(k);
    k = maker_peak(run, (struct tmk_moment){.kind = TMK_MOMENT_PEAK, .device = CUDA1});
    assert_int_equal(tmk_peak_bytes(k), 5);
    assert_false(tmk_peak_reserved(k, &reserved)); /* not known there */
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- a trace by hand ---- */

enum { S_FILE = 1, S_F, S_G, S_FORWARD, S_ENCODER, S_W, S_H, S_ENCODER_AGAIN };

static void define_all(struct maker *m)
{
    static const char *const texts[] = {[S_FILE] = "src/train.c",
                                        [S_F] = "f",
                                        [S_G] = "g",
                                        [S_FORWARD] = "forward",
                                        [S_ENCODER] = "encoder",
                                        [S_W] = "weight",
                                        [S_H] = "hidden",
                                        [S_ENCODER_AGAIN] = "encoder"};
    for (uint32_t i = 1; i < sizeof texts / sizeof texts[0]; i++)
        maker_string(m, i, texts[i]);
    maker_frame(m, 1, S_FILE, S_F, 10);
    maker_frame(m, 2, S_FILE, S_G, 20);
    maker_stack(m, 1, (uint32_t[]){1}, 1);
    maker_stack(m, 2, (uint32_t[]){1, 2}, 2);
    maker_stack(m, 3, (uint32_t[]){2}, 1);
}

/* Peak of 700 on cuda:0 at 300: 100 + 200 + 400; then less, and 700 again at 600. */
static void make_by_hand(struct maker *m)
{
    define_all(m);
    m->ns = 100;
    maker_alloc(m, CUDA0, 0x1000, 100, 1);
    maker_tag(m, CUDA0, 0x1000, TIDEMARK_PARAMETER, S_W);
    m->ns = 200;
    maker_step(m, 7);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_ENCODER);
    maker_alloc(m, CUDA0, 0x2000, 200, 2);
    maker_pop(m, TIDEMARK_MODULE);
    maker_push(m, TIDEMARK_MODULE, S_ENCODER_AGAIN);
    m->ns = 300;
    maker_alloc(m, CUDA0, 0x3000, 400, 3);
    m->ns = 350;
    maker_tag(m, CUDA0, 0x3000, TIDEMARK_ACTIVATION, S_H); /* late, but before its end */
    maker_pop(m, TIDEMARK_MODULE);
    m->ns = 400;
    maker_free(m, CUDA0, 0x3000);
    maker_step(m, 8);
    m->ns = 500;
    maker_alloc(m, CUDA0, 0x3000, 50, 0); /* the address again: not the same block */
    maker_alloc(m, CUDA1, 0x1000, 600, 0);
    m->ns = 600;
    maker_alloc(m, CUDA0, 0x4000, 350, 0);
    m->ns = 700;
    maker_free(m, CUDA0, 0x4000);
    maker_free(m, CUDA0, 0x9999); /* never seen */
}

static void test_by_hand(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_by_hand(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_peak *k = maker_peak(run, the_peak);
    assert_true(tmk_peak_found(k));
    assert_int_equal(tmk_peak_bytes(k), 700);
    assert_int_equal(tmk_peak_time_ns(k), 300);
    assert_int_equal(tmk_peak_step(k), 7);
    assert_int_equal(tmk_peak_device(k), CUDA0);
    assert_int_equal(tmk_peak_n_blocks(k), 3);
    check_row(k, TMK_BY_CATEGORY, 0, "activation", 600, 2); /* 200 of them made in forward */
    check_row(k, TMK_BY_CATEGORY, 1, "parameter", 100, 1);
    assert_int_equal(n_rows(k, TMK_BY_CATEGORY), 2);
    check_row(k, TMK_BY_MODULE, 0, "encoder", 600, 2); /* one text under two ids */
    check_row(k, TMK_BY_MODULE, 1, NULL, 100, 1);
    check_row(k, TMK_BY_STAGE, 0, "forward", 600, 2);
    check_row(k, TMK_BY_STACK, 0, "src/train.c:20 g", 400, 1);
    check_row(k, TMK_BY_STACK, 1, "src/train.c:10 f", 200, 1);
    check_row(k, TMK_BY_STACK, 2, "src/train.c:10 f", 100, 1);
    check_row(k, TMK_BY_SITE, 1, "src/train.c:10 f", 300, 2);
    check_row(k, TMK_BY_TENSOR, 0, "hidden", 400, 1);
    check_row(k, TMK_BY_TENSOR, 1, NULL, 200, 1);
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_moments(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_by_hand(&m);
    struct tmk_run *run = maker_finish(&m);
    static const struct {
        struct tmk_moment moment;
        bool found;
        uint64_t bytes, n_blocks, ns;
        int64_t step;
    } cases[] = {
        {{.kind = TMK_MOMENT_PEAK, .device = CUDA1}, true, 600, 1, 500, 8},
        {{.kind = TMK_MOMENT_PEAK, .device = 0}, false, 0, 0, 0, 0},
        {{.kind = TMK_MOMENT_STEP, .step = 7, .any_device = true}, true, 700, 3, 300, 7},
        {{.kind = TMK_MOMENT_STEP, .step = 8, .device = CUDA0}, true, 700, 4, 600, 8},
        {{.kind = TMK_MOMENT_STEP, .step = 9, .any_device = true}, false, 0, 0, 0, 0},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 99, .any_device = true}, true, 0, 0, 99, TMK_NO_STEP},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 100, .device = CUDA0},
         true,
         100,
         1,
         100,
         TMK_NO_STEP},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 399, .device = CUDA0}, true, 700, 3, 399, 7},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 400, .device = CUDA0}, true, 300, 2, 400, 8},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 550, .any_device = true}, true, 950, 4, 550, 8},
        {{.kind = TMK_MOMENT_TIME, .time_ns = 9999, .device = CUDA0}, true, 350, 3, 9999, 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_peak *k = maker_peak(run, cases[i].moment);
        assert_int_equal(tmk_peak_found(k), cases[i].found);
        if (cases[i].found) {
            assert_int_equal(tmk_peak_bytes(k), cases[i].bytes);
            assert_int_equal(tmk_peak_n_blocks(k), cases[i].n_blocks);
            assert_int_equal(tmk_peak_time_ns(k), cases[i].ns);
            assert_int_equal(tmk_peak_step(k), cases[i].step);
            assert_int_equal(sum_of_blocks(k), cases[i].bytes);
        }
        tmk_peak_close(k);
    }
    tmk_run_close(run);
    maker_remove(&m);
}

/* A step that only frees has its peak at its begin. */
static void test_peak_at_begin_of_step(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, 0, 0x10, 64, 0);
    maker_alloc(&m, 0, 0x20, 32, 0);
    m.ns = 20;
    maker_step(&m, 0);
    m.ns = 30;
    maker_free(&m, 0, 0x10);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_peak *k = maker_peak(
        run, (struct tmk_moment){.kind = TMK_MOMENT_STEP, .step = 0, .any_device = true});
    assert_int_equal(tmk_peak_bytes(k), 96);
    assert_int_equal(tmk_peak_time_ns(k), 20);
    assert_int_equal(tmk_peak_n_blocks(k), 2);
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
}

/* An address handed out twice without a free: the first block ended then. */
static void test_lost_free(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, 0, 0x10, 64, 0);
    m.ns = 20;
    maker_alloc(&m, 0, 0x10, 48, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_peak *k = maker_peak(run, the_peak);
    assert_int_equal(tmk_peak_bytes(k), 64);
    assert_int_equal(tmk_peak_time_ns(k), 10);
    assert_int_equal(tmk_peak_n_blocks(k), 1);
    assert_int_equal(tmk_peak_block(k, 0)->size_bytes, 64);
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_nothing(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 5;
    maker_step(&m, 1);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_peak *k = maker_peak(run, the_peak);
    assert_false(tmk_peak_found(k));
    assert_int_equal(tmk_peak_n_blocks(k), 0);
    assert_int_equal(n_rows(k, TMK_BY_CATEGORY), 0);
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
}

/* ---- against the model ---- */

/* n random events on two devices: memory goes up and down, addresses are used again. */
static void make_random(struct maker *m, struct plain *p, uint64_t seed, uint32_t n)
{
    uint64_t random = seed;
    uint32_t alive[512];
    uint32_t n_alive = 0;
    for (uint32_t i = 0; i < n; i++) {
        m->ns += plain_random(&random) % 50;
        if (i % 100 == 99) {
            p->step = i / 100;
            maker_step(m, p->step);
        }
        bool grow = n_alive == 0 || (n_alive < 512 && plain_random(&random) % 100 < 52);
        if (grow) {
            unsigned device = plain_random(&random) % 3 ? CUDA0 : CUDA1;
            uint64_t address = 0x1000 + 64ull * p->n;
            if (p->n > 0 && plain_random(&random) % 2) { /* an address that is free again */
                const struct plain_block *old = &p->blocks[plain_random(&random) % p->n];
                bool taken = false;
                for (uint32_t k = 0; k < n_alive; k++)
                    taken |= p->blocks[alive[k]].address == old->address &&
                             p->blocks[alive[k]].device == device;
                address = taken ? address : old->address;
            }
            uint64_t size = 1 + plain_random(&random) % 5000;
            alive[n_alive++] = p->n;
            plain_alloc(p, m->ns, device, address, size);
            maker_alloc(m, device, address, size, 0);
        } else {
            uint32_t k = plain_random(&random) % n_alive;
            struct plain_block *b = &p->blocks[alive[k]];
            plain_free(p, m->ns, b);
            maker_free(m, b->device, b->address);
            alive[k] = alive[--n_alive];
        }
    }
}

/* The peak of a device among events [from, to] of a step (or of all): number of the event. */
static uint64_t true_peak(const struct plain *p, unsigned device, uint64_t from, int64_t step,
                          bool any_step, uint64_t *ret_bytes)
{
    uint64_t best = 0, best_at = 0;
    for (uint64_t at = from; at <= p->n_events; at++) {
        if (!any_step && p->event_step[at] != step)
            continue;
        uint64_t bytes = plain_bytes(p, device, at);
        if (bytes > best) {
            best = bytes;
            best_at = at;
        }
    }
    *ret_bytes = best;
    return best_at;
}

static bool has_block(const struct tmk_peak *k, const struct plain_block *b)
{
    for (uint64_t i = 0; i < tmk_peak_n_blocks(k); i++) {
        const struct tmk_block *got = tmk_peak_block(k, i);
        if (got->address == b->address && got->device == b->device && got->size_bytes == b->size &&
            got->alloc_ns == b->born_ns)
            return true;
    }
    return false;
}

/* The set is the model's: every block alive after event `at`, and no other. */
static void check_set(const struct tmk_peak *k, const struct plain *p, unsigned device, uint64_t at)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct plain_block *b = &p->blocks[i];
        if (b->device != device || b->born_at > at || b->died_at <= at)
            continue;
        n++;
        assert_true(has_block(k, b));
    }
    assert_int_equal(tmk_peak_n_blocks(k), n);
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct maker m;
        struct plain p;
        plain_init(&p);
        maker_open(&m, 0);
        make_random(&m, &p, seed, 1500);
        struct tmk_run *run = maker_finish(&m);
        static const unsigned devices[] = {CUDA0, CUDA1};
        for (int d = 0; d < 2; d++) {
            uint64_t bytes;
            uint64_t at = true_peak(&p, devices[d], 1, 0, true, &bytes);
            struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .device = (uint16_t)devices[d]};
            struct tmk_peak *k = maker_peak(run, moment);
            assert_int_equal(tmk_peak_bytes(k), bytes);
            assert_int_equal(tmk_peak_time_ns(k), p.event_ns[at]);
            check_set(k, &p, devices[d], at);
            tmk_peak_close(k);
        }
        tmk_run_close(run);
        maker_remove(&m);
        plain_fini(&p);
    }
}

/* Any time: the last event not later decides. */
static void test_random_times(void **state)
{
    (void)state;
    struct maker m;
    struct plain p;
    uint64_t random = 99;
    plain_init(&p);
    maker_open(&m, 0);
    make_random(&m, &p, 5, 1500);
    uint64_t end_ns = m.ns;
    struct tmk_run *run = maker_finish(&m);
    for (int i = 0; i < 100; i++) {
        uint64_t t = plain_random(&random) % (end_ns + 100), at = 0;
        while (at < p.n_events && p.event_ns[at + 1] <= t)
            at++;
        struct tmk_moment moment = {.kind = TMK_MOMENT_TIME, .time_ns = t, .device = CUDA0};
        struct tmk_peak *k = maker_peak(run, moment);
        assert_true(tmk_peak_found(k));
        assert_int_equal(tmk_peak_bytes(k), plain_bytes(&p, CUDA0, at));
        check_set(k, &p, CUDA0, at);
        tmk_peak_close(k);
    }
    tmk_run_close(run);
    maker_remove(&m);
    plain_fini(&p);
}

/* ---- a trace that gave old detail up ---- */

static uint64_t detail_start(const struct tmk_reader *r)
{
    uint32_t i = 0;
    while (tmk_reader_chunk(r, i)->header.kind != TMK_CHUNK_CHECKPOINT)
        i++;
    assert_true(tmk_reader_chunk(r, i)->header.start_ns > 1000);
    return tmk_reader_chunk(r, i)->header.start_ns;
}

/* The largest moment kept is found, with its blocks; what is older is not. */
static void test_given_up(void **state)
{
    (void)state;
    struct maker m;
    struct plain p;
    plain_init(&p);
    maker_open(&m, TMK_MAX_SIZE_LEAST);
    m.ns = 1;
    plain_alloc(&p, m.ns, CUDA0, 0x10, 1 << 30); /* the peak, early */
    maker_alloc(&m, CUDA0, 0x10, 1 << 30, 0);
    m.ns = 2;
    plain_free(&p, m.ns, &p.blocks[0]);
    maker_free(&m, CUDA0, 0x10);
    m.ns = 1000;
    uint64_t random = 3;
    for (uint32_t i = 0; i < 450000; i++) { /* sizes that do not pack well */
        m.ns += 1 + plain_random(&random) % 100000;
        uint64_t size = 1 + plain_random(&random) % 1000000;
        uint64_t address = (uint64_t)plain_random(&random) << 8;
        plain_alloc(&p, m.ns, CUDA0, address, size);
        maker_alloc(&m, CUDA0, address, size, 0);
        m.ns += 1 + plain_random(&random) % 100000;
        plain_free(&p, m.ns, &p.blocks[p.n - 1]);
        maker_free(&m, CUDA0, address);
    }
    struct tmk_run *run = maker_finish(&m);
    const struct tmk_process *process = tmk_run_process(run, 0);
    assert_true(tmk_reader_status(process->reader)->n_given_up > 0);
    struct tmk_peak *k = maker_peak(run, the_peak);
    assert_true(tmk_peak_found(k));
    uint64_t best = 0, best_ns = 0, from_ns = detail_start(process->reader);
    for (uint32_t i = 1; i < p.n; i++) { /* one block at a time: the largest kept is the peak */
        if (p.blocks[i].died_ns > from_ns && p.blocks[i].size > best) {
            best = p.blocks[i].size;
            best_ns = p.blocks[i].born_ns > from_ns ? p.blocks[i].born_ns : from_ns;
        }
    }
    assert_int_equal(tmk_peak_bytes(k), best);
    assert_int_equal(tmk_peak_time_ns(k), best_ns);
    assert_int_equal(tmk_peak_n_blocks(k), 1);
    tmk_peak_close(k);
    k = maker_peak(run,
                   (struct tmk_moment){.kind = TMK_MOMENT_TIME, .time_ns = 1, .any_device = true});
    assert_false(tmk_peak_found(k));
    tmk_peak_close(k);
    tmk_run_close(run);
    maker_remove(&m);
    plain_fini(&p);
}

/* ---- out of memory ---- */

static void test_ooms(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_by_hand(&m);
    m.ns = 800;
    maker_oom(&m, CUDA0, 5000, 4096, 3);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_ooms *o = NULL;
    assert_int_equal(tmk_ooms_open(p, &o), 0);
    struct tmk_visitor visitor = tmk_ooms_visitor(o);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, NULL, NULL), 0);
    assert_int_equal(tmk_ooms_finish(o, NULL), 0);
    assert_int_equal(tmk_ooms_n(o), 1);
    const struct tmk_oom *oom = tmk_ooms_get(o, 0);
    assert_int_equal(oom->requested_bytes, 5000);
    assert_int_equal(oom->capacity_bytes, 4096);
    assert_int_equal(oom->allocated_bytes, 350);
    assert_int_equal(oom->step, 8);
    assert_true(oom->has_site);
    assert_string_equal(oom->site.function, "g");
    assert_string_equal(oom->stage, "forward");
    const struct tmk_peak_row *rows;
    uint64_t n;
    assert_int_equal(tmk_ooms_holders(o, 0, TMK_BY_CATEGORY, &rows, &n), 0);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].key, "activation"); /* made in the forward that is still open */
    assert_int_equal(rows[0].bytes, 250);
    assert_int_equal(rows[1].bytes, 100);
    tmk_ooms_close(o);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reserved),  cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_moments),   cmocka_unit_test(test_peak_at_begin_of_step),
        cmocka_unit_test(test_lost_free), cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_random),    cmocka_unit_test(test_random_times),
        cmocka_unit_test(test_given_up),  cmocka_unit_test(test_ooms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
