/* SPDX-License-Identifier: MIT */
/* test_job_follower.c - figures of a trace that grows, looked at again and again, are those of a
 * reader that opens it anew each time and sweeps all of it. */
#include "maker.h"

#include <math.h>

#include "base/error.h"
#include "fleet/node.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/forecast.h"
#include "passes/frag/frag_moment.h"
#include "passes/frag/fragmentation.h"
#include "passes/oom/ooms.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/packer.h"
#include "trace/replay.h"
#include "trace/segments.h"
#include "trace/state.h"

#include "fleet/job_follower.h"

#define MIB ((uint64_t)1 << 20)

enum { CUDA = 1 << 8, STEPS = 200, LOOK_EVERY = 7, SEGMENT = 0x10000000 };

static struct tmk_watched watch_made(const struct maker *m)
{
    struct tmk_watched w = {.pid = (uint32_t)getpid()};
    snprintf(w.trace_path, sizeof w.trace_path, "%s", m->path);
    return w;
}

/* A step keeps 64 KiB, needs 3 MiB meanwhile, and reserves as much as the segment has. */
static void put_step(struct maker *m, int i)
{
    maker_step(m, i);
    m->ns += 1000000;
    maker_alloc(m, CUDA, SEGMENT + (uint64_t)i * 65536, 65536, 0);
    maker_tag(m, CUDA, SEGMENT + (uint64_t)i * 65536, TIDEMARK_GRADIENT, 0);
    maker_alloc(m, CUDA, SEGMENT + 30 * MIB, 3 * MIB, 0);
    maker_reserved(m, CUDA, 40 * MIB);
    maker_free(m, CUDA, SEGMENT + 30 * MIB);
    maker_alloc(m, TIDEMARK_HOST, 0x100, 5000, 0);
    maker_free(m, TIDEMARK_HOST, 0x100);
    m->ns += 1000000;
}

/* ---- the oracle ---- */

struct swept {
    struct tmk_run *run;
    struct tmk_replay rp;
    struct tmk_fragmentation *frag;
    struct tmk_ooms *ooms;
};

static void sweep_anew(struct swept *s, const struct maker *m)
{
    struct tmk_frag_moment now = {.kind = TMK_FRAG_TIME, .time_ns = UINT64_MAX};
    assert_int_equal(tmk_run_open(m->path, &s->run, NULL), 0);
    struct tmk_process *p = tmk_run_process(s->run, 0);
    assert_int_equal(tmk_fragmentation_open(p, &now, &s->frag), 0);
    assert_int_equal(tmk_ooms_open(p, &s->ooms), 0);
    struct tmk_visitor visitors[] = {tmk_fragmentation_visitor(s->frag), tmk_ooms_visitor(s->ooms)};
    assert_int_equal(tmk_process_sweep(p, visitors, 2, &s->rp, NULL), 0);
    assert_int_equal(tmk_fragmentation_finish(s->frag, &s->rp, NULL), 0);
    assert_int_equal(tmk_ooms_finish(s->ooms, NULL), 0);
}

static void swept_close(struct swept *s)
{
    tmk_ooms_close(s->ooms);
    tmk_fragmentation_close(s->frag);
    tmk_replay_fini(&s->rp);
    tmk_run_close(s->run);
}

static const struct tmk_node_use *use_named(const struct tmk_node_job *job, const char *name)
{
    for (unsigned i = 0; i < job->n_uses; i++)
        if (strcmp(job->uses[i].torch_name, name) == 0)
            return &job->uses[i];
    fail_msg("no figures for %s", name);
    return NULL;
}

static void check_figures(const struct tmk_node_job *job, const struct maker *m)
{
    struct swept s;
    struct tmk_forecast forecast;
    sweep_anew(&s, m);
    const struct tmk_node_use *u = use_named(job, "cuda:0");
    const struct tmk_device_use *d = tmk_state_find_device(&s.rp.state, CUDA);
    assert_int_equal(u->allocated_bytes, d->allocated_bytes);
    assert_int_equal(u->peak_allocated_bytes, d->max_bytes);
    assert_int_equal(u->reserved_bytes, d->reserved_bytes);
    assert_int_equal(u->peak_reserved_bytes, d->max_reserved_bytes);
    assert_int_equal(u->categories[TIDEMARK_GRADIENT], d->allocated_bytes);
    assert_int_equal(tmk_fragmentation_n(s.frag), 1);
    const struct tmk_frag_sum *sum = &tmk_fragmentation_get(s.frag, 0)->sum;
    assert_int_equal(u->cached_bytes, sum->free_bytes);
    assert_int_equal(u->largest_free_bytes, sum->largest_bytes);
    struct tmk_process *p = tmk_run_process(s.run, 0);
    p->live = true; /* without a ring it looks dead, and its OOM like its end */
    assert_int_equal(tmk_forecast_of(p, CUDA, NULL, &forecast), 0);
    assert_int_equal(u->risk, forecast.risk);
    assert_int_equal(use_named(job, "cpu")->allocated_bytes, 0);
    assert_int_equal(job->n_ooms, tmk_ooms_n(s.ooms));
    swept_close(&s);
}

static void test_followed(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_node_job job = {.rank = -1};
    maker_open(&m, 0);
    maker_add(&m, (struct tmk_input){.kind = TMK_KIND_SEGMENT,
                                     .device = CUDA,
                                     .stream = TMK_SEGMENT_DEVICE,
                                     .a = SEGMENT,
                                     .b = 40 * MIB});
    struct tmk_watched w = watch_made(&m);
    struct tmk_job_follower *f = tmk_job_follower_open(&w);
    for (int i = 0; i < STEPS; i++) {
        put_step(&m, i);
        if (i % 50 == 20)
            maker_oom(&m, CUDA, 90 * MIB, 0, 0);
        if (i % LOOK_EVERY != 0)
            continue;
        maker_flush(&m);
        assert_int_equal(tmk_job_follower_look(f, true, &job, NULL), 0);
        assert_int_equal(job.n_steps, i);
        check_figures(&job, &m);
    }
    assert_int_equal(job.rank, 0);
    assert_true(job.is_readable);
    assert_true(job.start_s == 1700000000.0);
    assert_true(use_named(&job, "cuda:0")->step_growth_bytes == 65536);
    tmk_job_follower_close(f);
    tmk_run_close(maker_finish(&m));
    maker_remove(&m);
}

/* A trace that is not there yet, and one that is taken away, leave no figures and no crash. */
static void test_missing(void **state)
{
    (void)state;
    struct tmk_watched w = {.pid = (uint32_t)getpid(), .trace_path = "/nowhere/x.trace"};
    struct tmk_job_follower *f = tmk_job_follower_open(&w);
    struct tmk_node_job job = {.rank = -1};
    struct tmk_error err = {0};
    assert_true(tmk_job_follower_look(f, true, &job, &err) < 0);
    assert_false(job.is_readable);
    assert_true(err.text[0] != '\0');
    tmk_job_follower_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followed),
        cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
