/* SPDX-License-Identifier: MIT */
/* Leaks of traces made by hand: whose they are, how fast, since when. */
#include "maker.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/segments.h"

#include "passes/leak/leaks.h"

enum { CUDA0 = 0x100, CUDA1 = 0x101 };
enum {
    S_TRAIN = 1,
    S_TORCH,
    S_MAIN,
    S_STEP,
    S_FORWARD_F,
    S_CALL,
    S_LINEAR,
    S_FORWARD,
    S_BACKWARD,
    S_NO_GRAD,
    S_LIST
};
enum { LIST = 1, CALL_FIRST, CALL_SECOND, LOSS, HOOK, SECOND_LIST };

static void define_all(struct maker *m)
{
    static const char *const texts[] = {
        [S_TRAIN] = "/home/me/train.py",
        [S_TORCH] = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
        [S_MAIN] = "main",
        [S_STEP] = "one_step",
        [S_FORWARD_F] = "Model.forward",
        [S_CALL] = "Module._call_impl",
        [S_LINEAR] = "remember",
        [S_FORWARD] = "forward",
        [S_BACKWARD] = "backward",
        [S_NO_GRAD] = TMK_RANGE_NO_GRAD,
        [S_LIST] = "list `kept` in train.py",
    };
    for (uint32_t i = 1; i < sizeof texts / sizeof texts[0]; i++)
        maker_string(m, i, texts[i]);
    maker_frame(m, 1, S_TRAIN, S_MAIN, 90);
    maker_frame(m, 2, S_TRAIN, S_STEP, 21); /* out = model(x) */
    maker_frame(m, 3, S_TRAIN, S_STEP, 22); /* loss = out.mean() */
    maker_frame(m, 4, S_TORCH, S_CALL, 1190);
    maker_frame(m, 5, S_TRAIN, S_FORWARD_F, 7); /* self.first(x) */
    maker_frame(m, 6, S_TRAIN, S_FORWARD_F, 8); /* self.second(x) */
    maker_frame(m, 7, S_TRAIN, S_STEP, 30);     /* kept.append(...) */
    maker_frame(m, 8, S_TRAIN, S_LINEAR, 40);
    maker_frame(m, 9, S_TRAIN, S_STEP, 31);
    maker_stack(m, LIST, (uint32_t[]){7, 1}, 2);
    maker_stack(m, CALL_FIRST, (uint32_t[]){5, 4, 2, 1}, 4);
    maker_stack(m, CALL_SECOND, (uint32_t[]){6, 4, 2, 1}, 4);
    maker_stack(m, LOSS, (uint32_t[]){3, 1}, 2);
    maker_stack(m, HOOK, (uint32_t[]){8, 4, 2, 1}, 4);
    maker_stack(m, SECOND_LIST, (uint32_t[]){9, 1}, 2);
}

static struct tmk_leakage *ask(struct tmk_run *run, uint64_t threshold)
{
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_leakage *l = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_leakage_open(p, threshold, &l), 0);
    struct tmk_visitor visitor = tmk_leakage_visitor(l);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_leakage_finish(l, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return l;
}

static void close_all(struct tmk_leakage *l, struct tmk_run *run, struct maker *m)
{
    tmk_leakage_close(l);
    tmk_run_close(run);
    maker_remove(m);
}

static void expect_leak(const struct tmk_leakage *l, uint64_t i, uint32_t line, double bytes,
                        double blocks)
{
    assert_true(i < tmk_leakage_n(l));
    const struct tmk_leak *leak = tmk_leakage_get(l, i);
    assert_true(leak->has_site);
    assert_string_equal(leak->site.file, "/home/me/train.py");
    assert_int_equal(leak->site.line, line);
    assert_true(leak->bytes_per_step > bytes * 0.99 && leak->bytes_per_step < bytes * 1.01);
    assert_true(leak->blocks_per_step > blocks * 0.99 && leak->blocks_per_step < blocks * 1.01);
}

/* What a step allocates and frees again, so that there are frees to look at. */
static void churn(struct maker *m, unsigned device)
{
    maker_alloc(m, device, 0x10, 1 << 20, LOSS);
    m->ns += 10;
    maker_free(m, device, 0x10);
    m->ns += 10;
}

static void begin_step(struct maker *m, int64_t step)
{
    m->ns += 100;
    maker_step(m, step);
    m->ns += 10;
}

/* Two lists, of which one grows on another device too; a cache that is bounded. */
static void test_lists(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 5; step < 45; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x1000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, at, 3000, LIST);
        maker_alloc(&m, CUDA1, at, 100, LIST);
        maker_alloc(&m, CUDA0, at + 0x1000000, 500, SECOND_LIST);
        if (step >= 15)
            maker_free(&m, CUDA0, at - 10 * 0x1000 + 0x1000000);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 1000);
    assert_int_equal(tmk_leakage_verdict(l), TMK_LEAK_FOUND);
    assert_int_equal(tmk_leakage_n(l), 2);
    assert_int_equal(tmk_leakage_n_steps(l), 39);
    expect_leak(l, 0, 30, 3000, 1);
    expect_leak(l, 1, 30, 100, 1);
    const struct tmk_leak *first = tmk_leakage_get(l, 0);
    assert_int_equal(first->device, CUDA0);
    assert_int_equal(tmk_leakage_get(l, 1)->device, CUDA1);
    assert_int_equal(first->first_step, 5);
    assert_int_equal(first->keeper, TMK_KEEPER_CONTAINER);
    assert_int_equal(first->bytes, 39 * 3000);
    assert_int_equal(first->n_parts, 1);
    assert_true(first->confidence > 0.95 && first->confidence < 1);
    assert_int_equal(tmk_leakage_n_small(l), 0);
    tmk_leakage_close(l);
    l = ask(run, 10000);
    assert_int_equal(tmk_leakage_n(l), 1);
    assert_int_equal(tmk_leakage_n_small(l), 1);
    close_all(l, run, &m);
}

/* Layers in forward and a loss outside: one graph, owned by the line in the function that called
 * both, and there by the loss, which was made last. */
static void test_graph(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_push(&m, TIDEMARK_STAGE, S_FORWARD);
        maker_alloc(&m, CUDA0, at, 1000, CALL_FIRST);
        maker_alloc(&m, CUDA0, at + 0x1000, 2000, CALL_SECOND);
        maker_alloc(&m, CUDA0, at + 0x2000, 4, LOSS);
        maker_pop(&m, TIDEMARK_STAGE);
        maker_alloc(&m, CUDA0, at + 0x3000, 700, LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 2);
    expect_leak(l, 0, 22, 3004, 3);
    expect_leak(l, 1, 30, 700, 1);
    const struct tmk_leak *graph = tmk_leakage_get(l, 0);
    assert_int_equal(graph->keeper, TMK_KEEPER_GRAPH);
    assert_int_equal(graph->stack, LOSS);
    assert_int_equal(graph->category, TIDEMARK_ACTIVATION);
    assert_string_equal(graph->stage, "forward");
    assert_int_equal(graph->n_parts, 3);
    assert_int_equal(graph->parts[0].stack, CALL_SECOND);
    assert_int_equal(tmk_leakage_get(l, 1)->keeper, TMK_KEEPER_CONTAINER);
    close_all(l, run, &m);
}

/* What is made under no_grad is not kept by a graph, wherever it was made. */
static void test_no_grad(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_push(&m, TMK_RANGE_GRAD_MODE, S_NO_GRAD);
        maker_push(&m, TIDEMARK_STAGE, S_FORWARD);
        maker_alloc(&m, CUDA0, at, 1000, CALL_FIRST);
        maker_alloc(&m, CUDA0, at + 0x1000, 2000, CALL_SECOND);
        maker_pop(&m, TIDEMARK_STAGE);
        maker_pop(&m, TMK_RANGE_GRAD_MODE);
        maker_push(&m, TIDEMARK_STAGE, S_BACKWARD);
        maker_pop(&m, TIDEMARK_STAGE);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 2);
    expect_leak(l, 0, 8, 2000, 1);
    expect_leak(l, 1, 7, 1000, 1);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_CONTAINER);
    assert_int_equal(tmk_leakage_get(l, 1)->keeper, TMK_KEEPER_CONTAINER);
    close_all(l, run, &m);
}

/* A detached tensor that is kept in forward, with a number beside it, makes no graph. */
static void test_detached(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_push(&m, TIDEMARK_STAGE, S_FORWARD);
        maker_alloc(&m, CUDA0, at, 100000, CALL_FIRST);
        maker_alloc(&m, CUDA0, at + 0x1000, 8, CALL_SECOND);
        maker_pop(&m, TIDEMARK_STAGE);
        maker_push(&m, TIDEMARK_STAGE, S_BACKWARD);
        maker_pop(&m, TIDEMARK_STAGE);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    expect_leak(l, 0, 7, 100008, 2);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_CONTAINER);
    close_all(l, run, &m);
}

enum asked { NOBODY, NOT_ALL, ALL };

/* Two lines outside of all stages rise together. Whether a graph keeps them, only Python knows. */
static struct tmk_leakage *ask_python(struct maker *m, bool are_held, enum asked asked,
                                      struct tmk_run **ret_run)
{
    maker_open(m, 0);
    define_all(m);
    for (int64_t step = 0; step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(m, step);
        churn(m, CUDA0);
        maker_alloc(m, CUDA0, at, 1000, LIST);
        maker_alloc(m, CUDA0, at + 0x1000, 2000, SECOND_LIST);
    }
    for (int64_t step = 0; are_held && step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        maker_holder(m, CUDA0, at, 0, 0);
        maker_holder(m, CUDA0, at, 0, 0); /* two tensors may share a block */
        maker_holder(m, CUDA0, at + 0x1000, 0, 0);
    }
    maker_holder(m, CUDA0, 0x999, TMK_HOLDER_GRAPH, 0); /* no block is known there */
    if (asked != NOBODY)
        maker_holder(m, 0, 0, asked == ALL ? TMK_HOLDER_ALL : 0, 0);
    maker_holder(m, CUDA0, 0x100000, 0, S_LIST);
    *ret_run = maker_finish(m);
    return ask(*ret_run, 0);
}

static void test_python_is_asked(void **state)
{
    (void)state;
    struct maker m;
    struct tmk_run *run;
    struct tmk_leakage *l = ask_python(&m, false, ALL, &run);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 31, 3000, 2);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_GRAPH);
    assert_string_equal(tmk_leakage_get(l, 0)->holder, "list `kept` in train.py");
    close_all(l, run, &m);

    l = ask_python(&m, true, ALL, &run);
    assert_int_equal(tmk_leakage_n(l), 2);
    expect_leak(l, 0, 31, 2000, 1);
    expect_leak(l, 1, 30, 1000, 1);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_CONTAINER);
    assert_null(tmk_leakage_get(l, 0)->holder);
    assert_string_equal(tmk_leakage_get(l, 1)->holder, "list `kept` in train.py");
    close_all(l, run, &m);

    l = ask_python(&m, false, NOT_ALL, &run); /* some tensors were left out: nothing follows */
    assert_int_equal(tmk_leakage_n(l), 2);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_CONTAINER);
    close_all(l, run, &m);

    l = ask_python(&m, false, NOBODY, &run);
    assert_int_equal(tmk_leakage_n(l), 2);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_CONTAINER);
    close_all(l, run, &m);
}

/* Only a hook's own block grows; and work that grows, in a training, is no leak. */
static void test_hook_and_work(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 20; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_push(&m, TIDEMARK_STAGE, S_FORWARD);
        maker_alloc(&m, CUDA0, at, 1000, HOOK);
        maker_alloc(&m, CUDA0, at + 0x1000, 5000 * (uint64_t)(step + 1), CALL_FIRST);
        maker_pop(&m, TIDEMARK_STAGE);
        if (step > 0)
            maker_free(&m, CUDA0, at - 0xf000);
        maker_push(&m, TIDEMARK_STAGE, S_BACKWARD);
        maker_pop(&m, TIDEMARK_STAGE);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 40, 1000, 1);
    assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_HOOK);
    close_all(l, run, &m);
}

/* More steps than are looked at, a leak in every seventh of them. */
static void test_long(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 5000; step++) {
        begin_step(&m, step);
        churn(&m, CUDA0);
        if (step % 7 == 0)
            maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 700, LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, 100, 1.0 / 7);
    close_all(l, run, &m);
}

/* The oldest steps were given up: what is left tells the rate, and blocks from before are no leak
 * that began with it. */
static void test_given_up(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 4 << 20);
    define_all(&m);
    for (int64_t step = 0; step < 4000; step++) {
        begin_step(&m, step);
        for (uint64_t i = 0; i < 400; i++) {
            m.ns += 3 + (i * 7919 + (uint64_t)step * 104729) % 1000;
            maker_alloc(&m, CUDA0, 0x10 + (i * 0x100), 64 + (i ^ (uint64_t)step) % 4096, LOSS);
            maker_free(&m, CUDA0, 0x10 + (i * 0x100));
        }
        maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 900, LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    assert_true(tmk_reader_status(tmk_run_process(run, 0)->reader)->n_given_up > 0);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, 900, 1);
    assert_true(tmk_leakage_get(l, 0)->first_step > 0);
    close_all(l, run, &m);
}

static void test_too_short(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 10; step++) { /* the last one has not ended */
        begin_step(&m, step);
        maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 1 << 20, LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_verdict(l), TMK_LEAK_TOO_SHORT);
    assert_int_equal(tmk_leakage_n(l), 0);
    assert_int_equal(tmk_leakage_n_steps(l), 9);
    close_all(l, run, &m);
}

/* Few steps, the later half of which adds nothing at all, or little. */
static void test_few_but_flat(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct maker m;
        maker_open(&m, 0);
        define_all(&m);
        for (int64_t step = 0; step < 6; step++) { /* the last one has not ended */
            begin_step(&m, step);
            churn(&m, CUDA0);
            if (step < 2 || (i == 1 && step == 4))
                maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 4000, LIST);
        }
        struct tmk_run *run = maker_finish(&m);
        struct tmk_leakage *l = ask(run, 0);
        assert_int_equal(tmk_leakage_verdict(l), i == 0 ? TMK_LEAK_CLEAN : TMK_LEAK_TOO_SHORT);
        assert_int_equal(tmk_leakage_n_steps(l), 5);
        close_all(l, run, &m);
    }
}

/* No steps: equal parts of time, without the end in which all is freed. */
static void test_by_time(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (uint64_t i = 0; i < 600; i++) {
        m.ns += 1000;
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, 0x1000000 + i * 0x1000, 900, LIST);
    }
    for (uint64_t i = 0; i < 600; i++) {
        m.ns += 100;
        maker_free(&m, CUDA0, 0x1000000 + i * 0x1000);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n_steps(l), 0);
    assert_int_equal(tmk_leakage_verdict(l), TMK_LEAK_FOUND);
    assert_int_equal(tmk_leakage_n(l), 1);
    const struct tmk_leak *leak = tmk_leakage_get(l, 0);
    assert_int_equal(leak->site.line, 30);
    assert_int_equal(leak->first_step, TMK_NO_STEP);
    double truth = 900 * 1e9 / 1020; /* each so many ns */
    assert_true(leak->bytes_per_second > truth * 0.99 && leak->bytes_per_second < truth * 1.01);
    close_all(l, run, &m);
}

/* A worker that waits for most of the time, after the first few and whenever it is ahead. */
static void test_waiting(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (uint64_t i = 0; i < 600; i++) {
        m.ns += i == 20 ? 500000 : i % 100 == 99 ? 20000 : 1000;
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, 0x1000000 + i * 0x1000, 900, LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    assert_int_equal(tmk_leakage_get(l, 0)->site.line, 30);
    close_all(l, run, &m);
}

/* A list that is local to a function: forty steps keep a block each, all are freed when the
 * function returns, and other steps follow. */
static void test_let_go(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 60; step++) {
        begin_step(&m, step);
        churn(&m, CUDA0);
        if (step < 40)
            maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 1000, LIST);
        for (uint64_t i = 0; step == 40 && i < 40; i++)
            maker_free(&m, CUDA0, 0x1000000 + i * 0x1000);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, 1000, 1);
    const struct tmk_leak *leak = tmk_leakage_get(l, 0);
    assert_true(leak->is_let_go);
    assert_int_equal(leak->at_step, 39);
    assert_int_equal(leak->bytes, 40 * 1000);
    assert_int_equal(leak->every, 1);
    close_all(l, run, &m);
}

/* Of a list that is emptied every ten steps, the first block of each ten stays for ever. */
static void test_under_a_sawtooth(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 97; step++) {
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 5000, LIST);
        for (int64_t old = step - 8; step % 10 == 9 && old <= step; old++)
            maker_free(&m, CUDA0, 0x1000000 + (uint64_t)old * 0x1000);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, 500, 0.1);
    const struct tmk_leak *leak = tmk_leakage_get(l, 0);
    assert_int_equal(leak->every, 10);
    assert_int_equal(leak->steps[0], 0);
    assert_int_equal(leak->steps[1], 10);
    assert_int_equal(leak->steps[2], 20);
    close_all(l, run, &m);
}

/* Each step keeps a block that is larger than the last one: the rate is today's. */
static void test_faster(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 61; step++) {
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x10000,
                    100 * (uint64_t)(step + 1) * (uint64_t)(step + 1), LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    uint64_t late = 0; /* of steps 46 to 59, the last quarter */
    for (uint64_t i = 47; i <= 60; i++)
        late += 100 * i * i;
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, (double)late / 14, 1);
    assert_true(tmk_leakage_get(l, 0)->is_faster);
    close_all(l, run, &m);
}

/* One block is made of the one before, and larger: a leak, unless what models are given grows too
 * or is not known. */
static struct tmk_leakage *ask_of_cat(struct maker *m, struct tmk_run **ret_run, uint64_t input,
                                      uint64_t more_input)
{
    maker_open(m, 0);
    define_all(m);
    for (int64_t step = 0; step < 40; step++) {
        uint64_t at = 0x1000000 + (uint64_t)step * 0x100000;
        begin_step(m, step);
        if (input) {
            maker_alloc(m, CUDA0, 0x900000, input + more_input * (uint64_t)step, HOOK);
            maker_tag(m, CUDA0, 0x900000, TIDEMARK_INPUT, 0);
            maker_free(m, CUDA0, 0x900000);
        }
        maker_push(m, TIDEMARK_STAGE, S_FORWARD);
        maker_alloc(m, CUDA0, at, 4000 * (uint64_t)(step + 1), LIST);
        if (step > 0)
            maker_free(m, CUDA0, at - 0x100000);
        maker_pop(m, TIDEMARK_STAGE);
        maker_push(m, TIDEMARK_STAGE, S_BACKWARD);
        maker_pop(m, TIDEMARK_STAGE);
    }
    *ret_run = maker_finish(m);
    return ask(*ret_run, 0);
}

static void test_larger(void **state)
{
    (void)state;
    static const uint64_t inputs[][2] = {{5000, 0}, {5000, 500}, {0, 0}};
    for (unsigned i = 0; i < 3; i++) {
        struct maker m;
        struct tmk_run *run;
        struct tmk_leakage *l = ask_of_cat(&m, &run, inputs[i][0], inputs[i][1]);
        assert_int_equal(tmk_leakage_n(l), i == 0);
        assert_int_equal(tmk_leakage_n_doubts(l), i != 0);
        if (i == 0) {
            assert_int_equal(tmk_leakage_get(l, 0)->site.line, 30);
            assert_true(tmk_leakage_get(l, 0)->bytes_per_step == 4000);
            assert_true(tmk_leakage_get(l, 0)->blocks_per_step == 0);
            assert_int_equal(tmk_leakage_get(l, 0)->keeper, TMK_KEEPER_GROWING);
            assert_true(tmk_leakage_get(l, 0)->is_block);
        } else {
            assert_int_equal(tmk_leakage_doubt(l, 0)->doubt, TMK_DOUBT_WORK);
            assert_int_equal(tmk_leakage_doubt(l, 0)->input_from > 0, i == 1);
        }
        close_all(l, run, &m);
    }
}

/* Lines that keep little each leak if together they keep the threshold. */
static void test_together(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 40; step++) {
        uint64_t at = 0x1000000 + (uint64_t)step * 0x1000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, at, 300, LIST);
        maker_alloc(&m, CUDA0, at + 0x10000000, 200, SECOND_LIST);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 39 * 500);
    assert_int_equal(tmk_leakage_n(l), 2);
    assert_int_equal(tmk_leakage_n_small(l), 0);
    tmk_leakage_close(l);
    l = ask(run, 39 * 500 + 1);
    assert_int_equal(tmk_leakage_n(l), 0);
    assert_int_equal(tmk_leakage_n_small(l), 2);
    struct tmk_leak_floor floor = tmk_leakage_floor(l);
    assert_int_equal(floor.n_rises, 38);
    assert_int_equal(floor.bytes, 38 * 500);
    assert_int_equal(floor.last_step, 37);
    assert_false(floor.is_over);
    close_all(l, run, &m);
}

/* The same, kept to the end; a block of as much is made of it, or of somewhat less. */
static void test_joined(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {40000, 38000};
    for (unsigned i = 0; i < 2; i++) {
        struct maker m;
        maker_open(&m, 0);
        define_all(&m);
        for (int64_t step = 0; step < 40; step++) {
            begin_step(&m, step);
            churn(&m, CUDA0);
            maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 1000, LIST);
        }
        begin_step(&m, 40);
        m.ns += 10;
        maker_alloc(&m, CUDA0, 0x2000000, sizes[i], LOSS);
        struct tmk_run *run = maker_finish(&m);
        struct tmk_leakage *l = ask(run, 0);
        assert_int_equal(tmk_leakage_n(l), i);
        assert_int_equal(tmk_leakage_n_doubts(l), 1 - i);
        if (i == 0)
            assert_int_equal(tmk_leakage_doubt(l, 0)->doubt, TMK_DOUBT_JOINED);
        close_all(l, run, &m);
    }
}

/* Ten steps at a time are kept and then dropped. */
static void test_falls_back(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 55; step++) {
        begin_step(&m, step);
        churn(&m, CUDA0);
        maker_alloc(&m, CUDA0, 0x1000000 + (uint64_t)step * 0x1000, 1000, LIST);
        for (int64_t old = step - 9; step % 10 == 9 && old <= step; old++)
            maker_free(&m, CUDA0, 0x1000000 + (uint64_t)old * 0x1000);
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_verdict(l), TMK_LEAK_CLEAN);
    assert_int_equal(tmk_leakage_n_cycles(l), 1);
    assert_int_equal(tmk_leakage_cycle(l, 0)->site.line, 30);
    assert_int_equal(tmk_leakage_cycle(l, 0)->bytes, 9000);
    close_all(l, run, &m);
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

/* Pinned memory that a loader keeps; what is taken and given back; and segments of whose owner
 * nothing is known, on a device with blocks, which are an allocator's. */
static void test_pinned(void **state)
{
    (void)state;
    struct maker m;
    maker_open(&m, 0);
    define_all(&m);
    for (int64_t step = 0; step < 25; step++) {
        uint64_t at = 0x100000 + (uint64_t)step * 0x10000;
        begin_step(&m, step);
        churn(&m, CUDA0);
        make_segment(&m, 0, TMK_SEGMENT_PINNED, at, 4096, LIST);
        make_segment(&m, 0, TMK_SEGMENT_PINNED, at + 0x2000, 8192, SECOND_LIST);
        make_segment(&m, CUDA0, TMK_SEGMENT_DEVICE, at + 0x1000000, 1 << 21, LOSS);
        if (step > 2)
            maker_add(&m, (struct tmk_input){.kind = TMK_KIND_SEGMENT_END,
                                             .stream = TMK_SEGMENT_PINNED,
                                             .a = at + 0x2000 - 2 * 0x10000});
    }
    struct tmk_run *run = maker_finish(&m);
    struct tmk_leakage *l = ask(run, 0);
    assert_int_equal(tmk_leakage_n(l), 1);
    expect_leak(l, 0, 30, 4096, 1);
    assert_int_equal(tmk_leakage_get(l, 0)->device, TIDEMARK_HOST);
    close_all(l, run, &m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_no_grad),
        cmocka_unit_test(test_detached),
        cmocka_unit_test(test_python_is_asked),
        cmocka_unit_test(test_hook_and_work),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_too_short),
        cmocka_unit_test(test_by_time),
        cmocka_unit_test(test_falls_back),
        cmocka_unit_test(test_pinned),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_let_go),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_faster),
        cmocka_unit_test(test_under_a_sawtooth),
        cmocka_unit_test(test_few_but_flat),
        cmocka_unit_test(test_larger),
        cmocka_unit_test(test_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
