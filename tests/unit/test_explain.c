/* SPDX-License-Identifier: MIT */
/* Why it ran out: the rules on figures, and scenes of traces made by hand. */
#include "base/error.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_scene.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/packer.h"
#include "trace/segments.h"

#include "maker.h"

enum { CUDA0 = 0x100, TORCH = 1, NCCL = 2, LINE = 3 };
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define UNKNOWN TMK_BYTES_UNKNOWN

/* ---- the rules ---- */

/* Torch on a card, at a limit that was set: 900 of 1000 MiB in blocks, 20 asked for. */
static struct tmk_scene at_a_limit(void)
{
    return (struct tmk_scene){.kind = TMK_SCENE_OOM,
                              .device = CUDA0,
                              .step = 50,
                              .is_first = true,
                              .request_bytes = 20 * MIB,
                              .sees_driver = true,
                              .stated_bytes = UNKNOWN,
                              .allocated_bytes = 985 * MIB,
                              .reserved_bytes = 990 * MIB,
                              .max_reserved_bytes = 1000 * MIB,
                              .segment_bytes = 990 * MIB,
                              .card_free_bytes = UNKNOWN,
                              .card_total_bytes = UNKNOWN,
                              .card_used_bytes = UNKNOWN,
                              .own_bytes = UNKNOWN,
                              .others_bytes = UNKNOWN,
                              .others_first_bytes = UNKNOWN,
                              .outside_bytes = UNKNOWN};
}

static struct tmk_oom_verdict judge(const struct tmk_scene *scene,
                                    const struct tmk_inquiry *inquiry, uint64_t need)
{
    static const struct tmk_inquiry nothing;
    struct tmk_oom_verdict v;
    tmk_causes_judge(scene, inquiry ? inquiry : &nothing, need, &v);
    return v;
}

static void expect_cause(struct tmk_oom_verdict v, enum tmk_cause cause, uint64_t bytes)
{
    assert_string_equal(tmk_cause_name(v.rows[0].cause), tmk_cause_name(cause));
    assert_int_equal(v.rows[0].bytes, bytes);
    assert_true(v.rows[0].counts);
}

static void limits(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    struct tmk_oom_verdict v = judge(&scene, NULL, 0);
    assert_int_equal(v.limit, TMK_LIMIT_SETTING);
    assert_int_equal(v.limit_bytes, 1000 * MIB);
    assert_int_equal(v.limit_below_bytes, 1010 * MIB);
    assert_int_equal(v.missing_bytes, 10 * MIB);
    expect_cause(v, TMK_CAUSE_DEMAND, 50 * MIB);

    scene.request_bytes = 3 * MIB; /* for that torch takes 20 of the driver */
    assert_int_equal(judge(&scene, NULL, 0).asked_bytes, 20 * MIB);
    scene.request_bytes = 31 * MIB;
    assert_int_equal(judge(&scene, NULL, 0).asked_bytes, 32 * MIB);

    scene.driver_refused = true; /* the card: what it held before others came says nothing */
    v = judge(&scene, NULL, 0);
    assert_int_equal(v.limit, TMK_LIMIT_CARD);
    assert_int_equal(v.limit_bytes, 990 * MIB);
    scene.card_total_bytes = 2000 * MIB;
    scene.others_bytes = 500 * MIB;
    scene.outside_bytes = 495 * MIB;
    v = judge(&scene, NULL, 0);
    assert_int_equal(v.limit_bytes, 1005 * MIB);
    assert_int_equal(v.missing_bytes, 17 * MIB);
    scene.others_bytes = 0; /* seen too early: it was refused all the same */
    assert_int_equal(judge(&scene, NULL, 0).missing_bytes, 1);

    struct tmk_scene told = at_a_limit(); /* a snapshot's event says what the card had free */
    told.tells_free = true;
    told.card_free_bytes = 19 * MIB;
    v = judge(&told, NULL, 0);
    assert_int_equal(v.limit, TMK_LIMIT_CARD);
    assert_int_equal(v.limit_bytes, 1009 * MIB);
    assert_int_equal(v.missing_bytes, 1 * MIB);
    told.card_free_bytes = 20 * MIB;
    assert_int_equal(judge(&told, NULL, 0).limit, TMK_LIMIT_SETTING);

    scene.stated_bytes = 1001 * MIB;
    v = judge(&scene, NULL, 0);
    assert_int_equal(v.limit, TMK_LIMIT_STATED);
    assert_int_equal(v.limit_below_bytes, 1001 * MIB);
    scene.stated_bytes = UNKNOWN;
    scene.device = TIDEMARK_HOST;
    assert_int_equal(judge(&scene, NULL, 0).limit, TMK_LIMIT_UNKNOWN);
}

/* A replay that runs out as the job did, and others that `serve` or do not. */
static struct tmk_inquiry replayed(const char *recorded, const char *conf, bool serves)
{
    return (struct tmk_inquiry){
        .alloc_conf = recorded,
        .n_trials = 2,
        .trials = {{.conf = recorded, .runs_out = true}, {.conf = conf, .runs_out = !serves}}};
}

static void gaps(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    scene.allocated_bytes = 965 * MIB; /* 25 are free, of a size that was asked for */
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    scene.allocated_bytes = 964 * MIB; /* twice 26 is more than the twentieth */
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_FRAGMENTATION, 26 * MIB);
    expect_cause(judge(&scene, NULL, 1010 * MIB), TMK_CAUSE_FRAGMENTATION, 26 * MIB);
    expect_cause(judge(&scene, NULL, 1011 * MIB), TMK_CAUSE_DEMAND, 50 * MIB);

    struct tmk_inquiry q = replayed("", "max_split_size_mb:32", true);
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_FRAGMENTATION, 26 * MIB);
    q.trials[1].runs_out = true; /* no settings serve it */
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    q.trials[0].runs_out_before = true; /* a witness that saw something else */
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_FRAGMENTATION, 26 * MIB);

    q = replayed("max_split_size_mb:32", "", true);
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_SETTINGS, 26 * MIB + 1);
    q.leaked_bytes = 53 * MIB; /* more than twice as much: it comes first */
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_LEAK, 53 * MIB);
    q.leaked_bytes = 52 * MIB;
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_SETTINGS, 26 * MIB + 1);
}

static void leaks_and_large_steps(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    struct tmk_inquiry q = {.leaked_bytes = 49 * MIB};
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    q.leaked_bytes = 60 * MIB;
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_LEAK, 60 * MIB);
    q = (struct tmk_inquiry){.n_steps = 3, .median_bytes = 600 * MIB, .deviation_bytes = 10 * MIB};
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_OUTLIER, 405 * MIB);
    q.n_steps = 2;
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    q.n_steps = 32;
    q.deviation_bytes = 60 * MIB; /* they go up and down */
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    q.deviation_bytes = 0;
    q.median_bytes = 810 * MIB; /* not a quarter above */
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_DEMAND, 50 * MIB);
    q.median_bytes = 600 * MIB;
    q.leaked_bytes = 500 * MIB;
    expect_cause(judge(&scene, &q, 0), TMK_CAUSE_LEAK, 500 * MIB);
    assert_int_equal(judge(&scene, &q, 0).rows[1].cause, TMK_CAUSE_OUTLIER);
}

static void neighbours(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    scene.card_total_bytes = 4000 * MIB;
    scene.others_bytes = 2500 * MIB;
    scene.outside_bytes = 495 * MIB;
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_DEMAND, 50 * MIB); /* a limit that was set */
    scene.driver_refused = true;
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_OTHER_PROCESS, 2500 * MIB);
    scene.others_bytes = 50 * MIB; /* a desktop's */
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_DEMAND, (1010 * MIB - 1) / 20);
}

/* NCCL asks, and torch has more in its cache than that. */
static void cache_in_the_way(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    scene.is_of_driver = scene.driver_refused = true;
    scene.allocated_bytes = 700 * MIB;
    scene.request_bytes = 64 * MIB;
    expect_cause(judge(&scene, NULL, 0), TMK_CAUSE_FRAGMENTATION, 290 * MIB);
    scene.allocated_bytes = 989 * MIB;
    assert_int_equal(judge(&scene, NULL, 0).rows[0].cause, TMK_CAUSE_DEMAND);
}

/* Figures of a hostile file. */
static void figures_without_end(void **state)
{
    (void)state;
    struct tmk_scene scene = at_a_limit();
    scene.allocated_bytes = scene.request_bytes = scene.max_reserved_bytes = UINT64_MAX - 1;
    struct tmk_inquiry q = {.n_steps = 9,
                            .median_bytes = UINT64_MAX - 1,
                            .deviation_bytes = UINT64_MAX / 2,
                            .leaked_bytes = UINT64_MAX - 1};
    assert_int_equal(judge(&scene, &q, UINT64_MAX).rows[0].cause, TMK_CAUSE_LEAK);
    scene.reserved_bytes = UINT64_MAX - 1;
    scene.driver_refused = true;
    scene.card_total_bytes = scene.others_bytes = scene.outside_bytes = UINT64_MAX - 1;
    judge(&scene, &q, 0);
}

/* ---- traces ---- */

static void make_stacks(struct maker *m)
{
    static const char *const paths[] = {"/opt/torch/lib/libc10_cuda.so", "/opt/lib/libnccl.so.2"};
    for (uint32_t i = 0; i < 2; i++) {
        maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_MODULE,
                                        .id = i + 1,
                                        .text = (const uint8_t *)paths[i],
                                        .text_bytes = (uint32_t)strlen(paths[i])});
        maker_add(m, (struct tmk_input){
                         .kind = TMK_KIND_DEF_NATIVE_FRAME, .id = i + 1, .a = i + 1, .b = 4096});
        maker_stack(m, i + 1, (uint32_t[]){i + 1}, 1);
    }
    maker_string(m, 1, "/home/me/train.py");
    maker_string(m, 2, "main");
    maker_frame(m, 3, 1, 2, 7);
    maker_stack(m, LINE, (uint32_t[]){3}, 1);
}

static void torch_takes(struct maker *m, uint64_t address, uint64_t size)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SEGMENT,
                                    .device = CUDA0,
                                    .stream = TMK_SEGMENT_DEVICE,
                                    .a = address,
                                    .b = size,
                                    .id = TORCH});
}

static struct tmk_explanation *explain(struct tmk_run *run)
{
    struct tmk_explanation *x = NULL;
    struct tmk_error err = {0};
    if (tmk_explanation_open(tmk_run_process(run, 0), NULL, &x, &err) < 0)
        fail_msg("%s", err.text);
    return x;
}

/* Nothing happened: nothing is told, and there is no second sweep. */
static void nothing_to_tell(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 4096, MIB, 0);
    maker_sample(&m, CUDA0, 100 * GIB, 94 * GIB, 94 * GIB, 0);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    assert_int_equal(tmk_explanation_n(x), 0);
    assert_int_equal(tmk_explanation_n_ooms(x), 0);
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

/* The driver refuses torch twice; the first time its cache makes room. */
static void near_miss_by_retry(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    torch_takes(&m, 1 << 30, 40 * MIB);
    maker_alloc(&m, CUDA0, 1 << 30, 40 * MIB, LINE);
    maker_reserved(&m, CUDA0, 40 * MIB);
    for (int i = 1; i <= 2; i++) {
        m.ns += 10;
        maker_driver_oom(&m, CUDA0, (uint64_t)i * 30 * MIB, TORCH);
        m.ns += 10;
        maker_alloc(&m, CUDA0, (uint64_t)(i + 4) << 30, (uint64_t)i * 30 * MIB, LINE);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    assert_int_equal(tmk_explanation_n_ooms(x), 0);
    assert_int_equal(tmk_explanation_n(x), 1);
    const struct tmk_scene *scene = &tmk_explanation_get(x, 0)->scene;
    assert_int_equal(scene->kind, TMK_SCENE_RETRY);
    assert_int_equal(scene->times, 2);
    assert_int_equal(scene->request_bytes, 60 * MIB);
    assert_int_equal(scene->time_ns, 50);
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

/* The fullest look of a card of which more than 95 % is used, mostly by others. */
static void near_miss_by_others(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    m.ns = 10;
    maker_alloc(&m, CUDA0, 4096, 5 * GIB, 0);
    maker_reserved(&m, CUDA0, 5 * GIB);
    maker_sample(&m, CUDA0, 100 * GIB, 96 * GIB, 6 * GIB, 90 * GIB);
    m.ns = 20;
    maker_sample(&m, CUDA0, 100 * GIB, 98 * GIB, 6 * GIB, 92 * GIB);
    m.ns = 30;
    maker_sample(&m, CUDA0, 100 * GIB, 50 * GIB, 6 * GIB, 44 * GIB);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    assert_int_equal(tmk_explanation_n(x), 1);
    const struct tmk_case *c = tmk_explanation_get(x, 0);
    assert_int_equal(c->scene.kind, TMK_SCENE_FULL);
    assert_int_equal(c->scene.time_ns, 20);
    assert_int_equal(c->scene.others_first_bytes, 90 * GIB);
    assert_int_equal(c->verdict.missing_bytes, 0);
    expect_cause(c->verdict, TMK_CAUSE_OTHER_PROCESS, 92 * GIB);
    assert_string_equal(c->fixes[0].kind, "other_process");
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Torch keeps 500 MiB unused; NCCL is refused 64. */
static void driver_refuses_nccl(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    m.ns = 10;
    torch_takes(&m, 1 << 30, 600 * MIB);
    maker_alloc(&m, CUDA0, 1 << 30, 100 * MIB, LINE);
    maker_reserved(&m, CUDA0, 600 * MIB);
    maker_sample(&m, CUDA0, 1 * GIB, 1000 * MIB, 1000 * MIB, 0);
    m.ns = 20;
    maker_driver_oom(&m, CUDA0, 64 * MIB, NCCL);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    assert_int_equal(tmk_explanation_n_ooms(x), 1);
    const struct tmk_case *c = tmk_explanation_get(x, 0);
    assert_string_equal(c->scene.owner, "nccl");
    expect_cause(c->verdict, TMK_CAUSE_FRAGMENTATION, 500 * MIB);
    assert_int_equal(c->verdict.missing_bytes, 40 * MIB);
    assert_string_equal(c->fixes[0].kind, "empty_cache");
    assert_int_equal(c->fixes[0].saves_bytes, 500 * MIB);
    assert_true(c->fixes[0].avoids);
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Six steps, each of which keeps 100 MiB: too few for the pass that finds leaks. */
static void short_leak(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    for (int64_t step = 0; step < 7; step++) {
        m.ns += 10;
        maker_step(&m, step);
        maker_alloc(&m, TIDEMARK_HOST, (uint64_t)(step + 1) << 30, 100 * MIB, LINE);
    }
    maker_oom(&m, TIDEMARK_HOST, 100 * MIB, 750 * MIB, LINE);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    const struct tmk_case *c = tmk_explanation_get(x, 0);
    assert_int_equal(c->inquiry.n_steps, 6);
    assert_int_equal(c->inquiry.rise_bytes, 100 * MIB);
    expect_cause(c->verdict, TMK_CAUSE_LEAK, 500 * MIB); /* of steps 0 to 4 */
    assert_true(c->inquiry.leak->has_site);
    assert_int_equal(c->inquiry.leak->site.line, 7);
    assert_string_equal(c->fixes[0].kind, "leak");
    assert_true(c->fixes[0].is_enough);
    assert_null(strstr(c->fixes[0].text, "to the host")); /* it is the host's already */
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

/* Steps of 100 MiB, then one that asks for 300 more of the host's memory. */
static void host_runs_out_in_a_large_step(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    for (int64_t step = 0; step < 12; step++) {
        m.ns += 10;
        maker_step(&m, step);
        maker_alloc(&m, TIDEMARK_HOST, 1 << 30, 100 * MIB, LINE);
        maker_free(&m, TIDEMARK_HOST, 1 << 30);
    }
    m.ns += 10;
    maker_step(&m, 12);
    maker_alloc(&m, TIDEMARK_HOST, 1 << 30, 200 * MIB, LINE);
    maker_oom(&m, TIDEMARK_HOST, 100 * MIB, 0, LINE);
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    const struct tmk_case *c = tmk_explanation_get(x, 0);
    assert_int_equal(c->scene.step, 12);
    assert_int_equal(c->inquiry.n_steps, 12);
    assert_int_equal(c->inquiry.median_bytes, 100 * MIB);
    assert_int_equal(c->verdict.limit, TMK_LIMIT_UNKNOWN);
    expect_cause(c->verdict, TMK_CAUSE_OUTLIER, 200 * MIB);
    assert_string_equal(c->fixes[0].kind, "outlier");
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

enum { S_FORWARD = 100, S_EVAL, S_BACKWARD, S_NET, FORWARD_MIB = 40 };

static void make_stages(struct maker *m)
{
    maker_string(m, S_FORWARD, "forward");
    maker_string(m, S_EVAL, "eval");
    maker_string(m, S_BACKWARD, "backward");
    maker_string(m, S_NET, "net");
}

/* A forward that keeps an activation. */
static void run_forward(struct maker *m, uint32_t stage, uint64_t address)
{
    m->ns += 10;
    maker_push(m, TIDEMARK_STAGE, stage);
    maker_push(m, TIDEMARK_MODULE, S_NET);
    maker_alloc(m, TIDEMARK_HOST, address, FORWARD_MIB * MIB, LINE);
    maker_tag(m, TIDEMARK_HOST, address, TIDEMARK_ACTIVATION, 0);
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
}

static void run_training_step(struct maker *m, int64_t step, unsigned n_forwards)
{
    maker_step(m, step);
    for (unsigned i = 0; i < n_forwards; i++)
        run_forward(m, S_FORWARD, (uint64_t)(i + 1) << 30);
    m->ns += 10;
    maker_push(m, TIDEMARK_STAGE, S_BACKWARD);
    for (unsigned i = 0; i < n_forwards; i++)
        maker_free(m, TIDEMARK_HOST, (uint64_t)(i + 1) << 30);
    maker_pop(m, TIDEMARK_STAGE);
}

/* Runs out while forwards go on without a backward: in evaluation mode, or in training mode but
 * more of them than training has for one backward. Each would be an outlier by its bytes. */
static void evaluation_keeps_graphs(void **state)
{
    (void)state;
    static const struct {
        uint32_t stage;
        unsigned n_usual, n;
        bool keeps;
    } programs[] = {{S_EVAL, 1, 4, true}, {S_FORWARD, 1, 4, true}, {S_FORWARD, 3, 6, false}};
    for (unsigned i = 0; i < 3; i++) {
        struct maker m;
        maker_open(&m, 0);
        make_stacks(&m);
        make_stages(&m);
        for (int64_t step = 0; step < 8; step++)
            run_training_step(&m, step, programs[i].n_usual);
        m.ns += 10;
        maker_step(&m, 8);
        for (unsigned k = 0; k < programs[i].n; k++)
            run_forward(&m, programs[i].stage, (uint64_t)(k + 1) << 30);
        maker_oom(&m, TIDEMARK_HOST, FORWARD_MIB * MIB, 0, LINE);
        struct tmk_run *run = maker_finish(&m);
        struct tmk_explanation *x = explain(run);
        const struct tmk_case *c = tmk_explanation_get(x, 0);
        assert_int_equal(c->scene.n_forwards, programs[i].n);
        assert_int_equal(c->scene.most_forwards, programs[i].n_usual);
        assert_int_equal(tmk_scene_keeps_graphs(&c->scene), programs[i].keeps);
        if (programs[i].keeps) {
            assert_string_equal(tmk_cause_name(c->verdict.rows[0].cause), "demand");
            assert_string_equal(c->fixes[0].kind, "no_grad");
            assert_int_equal(c->fixes[0].saves_bytes, 4 * FORWARD_MIB * MIB);
            assert_true(c->fixes[0].is_enough);
            assert_int_equal(c->n_fixes, 1);
        } else {
            assert_string_equal(c->fixes[0].kind, "outlier");
        }
        tmk_explanation_close(x);
        tmk_run_close(run);
        maker_remove(&m);
    }
}

/* A program that catches the error each time: all are counted, a few explained. */
static void storm(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct maker m;
    maker_open(&m, 0);
    make_stacks(&m);
    for (int i = 0; i < N; i++) {
        m.ns += 10;
        maker_alloc(&m, CUDA0, (uint64_t)(i + 1) << 21, MIB, LINE);
        maker_oom(&m, CUDA0, 3000 * MIB, 2 * GIB, LINE);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_explanation *x = explain(run);
    assert_int_equal(tmk_explanation_n_ooms(x), N);
    assert_int_equal(tmk_explanation_n(x), TMK_MAX_SCENES);
    assert_true(tmk_explanation_get(x, 0)->scene.is_first);
    const struct tmk_case *last = tmk_explanation_get(x, TMK_MAX_SCENES - 1);
    assert_false(last->scene.is_first);
    assert_int_equal(last->scene.allocated_bytes, N * MIB);
    assert_int_equal(last->verdict.missing_bytes, (N + 3000 - 2048) * MIB);
    tmk_explanation_close(x);
    tmk_run_close(run);
    maker_remove(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(gaps),
        cmocka_unit_test(leaks_and_large_steps),
        cmocka_unit_test(neighbours),
        cmocka_unit_test(cache_in_the_way),
        cmocka_unit_test(figures_without_end),
        cmocka_unit_test(nothing_to_tell),
        cmocka_unit_test(near_miss_by_retry),
        cmocka_unit_test(near_miss_by_others),
        cmocka_unit_test(driver_refuses_nccl),
        cmocka_unit_test(short_leak),
        cmocka_unit_test(host_runs_out_in_a_large_step),
        cmocka_unit_test(evaluation_keeps_graphs),
        cmocka_unit_test(storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
