/* SPDX-License-Identifier: MIT */
/* What-if: traces made by hand, replayed under settings whose outcome follows from torch's rules.
 */
#include "kit/amount.h"
#include "maker.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/replay.h"
#include "trace/segments.h"

#include "passes/whatif/whatif.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };

static const uint64_t mib = 1ull << 20;
static const uint64_t base = 0x7f0000000000ull;

static struct tmk_whatif *ask(struct tmk_run *run, uint16_t device)
{
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_whatif *w = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_whatif_open(p, device, &w), 0);
    struct tmk_visitor visitor = tmk_whatif_visitor(w);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_whatif_finish(w, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return w;
}

static struct tmk_whatif_result replay(const struct tmk_whatif *w, const char *conf, uint64_t limit)
{
    struct tmk_whatif_setting setting = {.limit_bytes = limit ? limit : TMK_ALLOC_NO_BOUND};
    struct tmk_whatif_result result;
    assert_int_equal(tmk_alloc_conf_parse(conf, &setting.conf, NULL), 0);
    assert_int_equal(tmk_whatif_replay(w, &setting, &result, NULL), 0);
    return result;
}

static void alloc_at(struct maker *m, uint64_t at_mib, uint64_t bytes)
{
    m->ns += 1000;
    maker_alloc(m, CUDA0, base + at_mib * mib, bytes, 0);
}

static void free_at(struct maker *m, uint64_t at_mib)
{
    m->ns += 1000;
    maker_free(m, CUDA0, base + at_mib * mib);
}

static void test_two_devices(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    alloc_at(&m, 0, 12 * mib);
    maker_alloc(&m, CUDA1, base, 700 * mib, 0); /* another card's */
    maker_alloc(&m, TIDEMARK_HOST, 4096, 900 * mib, 0);
    maker_reserved(&m, CUDA0, 12 * mib);
    maker_sample(&m, CUDA0, 1000 * mib, 600 * mib, 112 * mib, 488 * mib);
    free_at(&m, 0);
    alloc_at(&m, 0, 12 * mib);
    alloc_at(&m, 20, 5 * mib);
    maker_reserved(&m, CUDA0, 32 * mib);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    const struct tmk_whatif_recorded *f = tmk_whatif_recorded(w);
    assert_int_equal(f->n_events, 4);
    assert_int_equal(f->n_seeded, 0);
    assert_int_equal(f->peak_allocated_bytes, 17 * mib);
    assert_int_equal(f->peak_reserved_bytes, 32 * mib);
    assert_int_equal(f->card_bytes, 1000 * mib);
    assert_int_equal(f->outside_bytes, 100 * mib);
    assert_int_equal(f->limit_bytes, TMK_BYTES_UNKNOWN);
    assert_null(f->alloc_conf);
    assert_false(f->knows_requests);
    struct tmk_whatif_result r = replay(w, "", 0);
    assert_int_equal(r.peak_allocated_bytes, 17 * mib);
    assert_int_equal(r.peak_reserved_bytes, 32 * mib);
    assert_int_equal(r.wasted_bytes, 15 * mib);
    assert_int_equal(r.n_segments, 2);
    assert_false(r.has_oom);
    r = replay(w, "expandable_segments:True", 0); /* 12 + 5 MiB in one page */
    assert_int_equal(r.peak_reserved_bytes, 20 * mib);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

/* 20 and 30 MiB live, 40 asked for and refused; then 20 go and the program goes on. */
static void make_oom(struct maker *m)
{
    maker_open(m, 0);
    maker_step(m, 7);
    alloc_at(m, 0, 20 * mib);
    alloc_at(m, 100, 30 * mib);
    maker_reserved(m, CUDA0, 50 * mib);
    m->ns += 1000;
    maker_oom(m, CUDA0, 40 * mib, 0, 0);
    free_at(m, 0);
    alloc_at(m, 0, 20 * mib);
}

static void test_recorded_oom(void **state)
{
    (void)state;
    struct maker m;
    make_oom(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    const struct tmk_whatif_recorded *f = tmk_whatif_recorded(w);
    assert_int_equal(f->n_ooms, 1);
    assert_int_equal(f->limit_bytes, 50 * mib); /* it could not get more */
    struct tmk_whatif_result r = replay(w, "", f->limit_bytes);
    assert_true(r.has_oom);
    assert_true(r.oom.is_recorded);
    assert_int_equal(r.oom.event, 2);
    assert_int_equal(r.oom.requested_bytes, 40 * mib);
    assert_int_equal(r.oom.step, 7);
    assert_int_equal(r.n_ooms, 1);
    assert_int_equal(r.n_retries, 1);
    assert_int_equal(r.peak_reserved_bytes, 50 * mib); /* and went on */
    r = replay(w, "", 90 * mib);                       /* the request succeeds, and is given back */
    assert_false(r.has_oom);
    assert_int_equal(r.peak_reserved_bytes, 90 * mib);
    r = replay(w, "", 45 * mib); /* fails before: that ends it */
    assert_true(r.has_oom);
    assert_false(r.oom.is_recorded);
    assert_int_equal(r.oom.event, 1);
    assert_int_equal(r.oom.requested_bytes, 30 * mib);
    assert_int_equal(r.peak_reserved_bytes, 20 * mib);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

static void test_smallest(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_alloc_conf conf;
    uint64_t limit;
    make_oom(&m);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    tmk_alloc_conf_init(&conf);
    assert_int_equal(tmk_whatif_smallest(w, &conf, &limit, NULL), 0);
    assert_int_equal(limit, 90 * mib);
    assert_false(replay(w, "", limit).has_oom);
    assert_true(replay(w, "", limit - 2 * mib).has_oom);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

/* What the program asked for, and a block that another stream holds on to. */
static void test_imported(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    for (unsigned i = 0; i < 3; i++) {
        m.ns += 1000;
        maker_add(&m, (struct tmk_input){.kind = TMK_KIND_ALLOC,
                                         .device = CUDA0,
                                         .a = base + i * 12 * mib,
                                         .b = 12 * mib,
                                         .requested = 11 * mib + mib / 2});
        m.ns += 1000;
        maker_free(&m, CUDA0, base + i * 12 * mib);
        if (i == 0)
            maker_add(&m, (struct tmk_input){
                              .kind = TMK_KIND_HELD, .device = CUDA0, .a = base, .b = 12 * mib});
        if (i == 1)
            maker_add(&m,
                      (struct tmk_input){.kind = TMK_KIND_RELEASED, .device = CUDA0, .a = base});
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    assert_true(tmk_whatif_recorded(w)->knows_requests);
    assert_int_equal(tmk_whatif_recorded(w)->n_events, 6);
    struct tmk_whatif_result r = replay(w, "", 0); /* the second could not have the first's */
    assert_int_equal(r.peak_reserved_bytes, 24 * mib);
    assert_int_equal(r.peak_allocated_bytes, 12 * mib);
    r = replay(w, "", 12 * mib); /* over the limit it is waited for */
    assert_false(r.has_oom);
    assert_int_equal(r.n_retries, 1);
    r = replay(w, "expandable_segments:True", 0);
    assert_int_equal(r.peak_allocated_bytes, 11 * mib + mib / 2);
    assert_int_equal(r.peak_reserved_bytes, 40 * mib);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

/* A trace whose beginning was given up: what was alive then is there from the first. */
static void test_cut_trace(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 1 << 20);
    alloc_at(&m, 1000, 64 * mib);
    for (uint64_t i = 0; i < 400000; i++) {
        alloc_at(&m, 2 * (i * 7 % 101), 512 * (1 + i * 31 % 2000));
        free_at(&m, 2 * (i * 7 % 101));
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    const struct tmk_whatif_recorded *f = tmk_whatif_recorded(w);
    assert_in_range(f->n_seeded, 1, 2); /* the small one may have been alive just then */
    assert_true(f->n_events > 1000 && f->n_events < 800001);
    struct tmk_whatif_result r = replay(w, "", 0);
    assert_int_equal(r.peak_reserved_bytes, 66 * mib); /* and a small segment */
    assert_int_equal(r.n_segments, 2);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Blocks of a pool of the driver's: settings are not recorded, but the backend shows. */
static void test_async(void **state)
{
    (void)state;
    static const char path[] = "/opt/torch/lib/libc10_cuda.so";
    struct maker m;
    maker_open(&m, 0);
    maker_add(&m, (struct tmk_input){.kind = TMK_KIND_DEF_MODULE,
                                     .id = 1,
                                     .text = (const uint8_t *)path,
                                     .text_bytes = sizeof path - 1});
    maker_add(&m,
              (struct tmk_input){.kind = TMK_KIND_DEF_NATIVE_FRAME, .id = 1, .a = 1, .b = 4096});
    maker_stack(&m, 1, (uint32_t[]){1}, 1);
    for (unsigned i = 1; i <= 2; i++) { /* the pool grows: it ends and begins anew */
        m.ns += 1000;
        maker_add(&m, (struct tmk_input){.kind = TMK_KIND_SEGMENT,
                                         .device = CUDA0,
                                         .stream = TMK_SEGMENT_POOL,
                                         .a = base + i,
                                         .b = 32 * mib * i,
                                         .id = 1});
        alloc_at(&m, 40 * i, 30 * mib);
        m.ns += 1000;
        maker_add(&m, (struct tmk_input){.kind = TMK_KIND_SEGMENT_END, .a = base + i});
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_whatif *w = ask(run, CUDA0);
    const struct tmk_whatif_recorded *f = tmk_whatif_recorded(w);
    assert_true(f->is_async);
    assert_true(f->is_conf_inferred);
    assert_string_equal(f->alloc_conf, "backend:cudaMallocAsync");
    assert_string_equal(tmk_whatif_recorded_conf(f), "");
    assert_int_equal(f->n_returns, 0);
    assert_int_equal(replay(w, "", 0).peak_reserved_bytes, 60 * mib);
    tmk_whatif_close(w);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_devices), cmocka_unit_test(test_recorded_oom),
        cmocka_unit_test(test_smallest),    cmocka_unit_test(test_imported),
        cmocka_unit_test(test_cut_trace),   cmocka_unit_test(test_async),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
