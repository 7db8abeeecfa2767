/* SPDX-License-Identifier: MIT */
/* test_state.c - what events mean, against a model that does it the simplest way.
 *
 * The model has arrays and linear searches, and is written from docs/format.md ("What the events
 * mean" and 2.3). Random events go to both; after each one all invariants of the state hold and
 * both say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/state.h"
#include "trace_kit.h"

enum { N_ADDRESSES = 60, N_THREADS = 3, MAX_DEPTH = 4000, N_DEVICES = KIT_DEVICES };

static const struct tmk_state_limits limits = {.max_blocks = 1 << 12,
                                               .max_contexts = 1 << 16,
                                               .max_ranges = 1 << 14,
                                               .max_threads = 64,
                                               .max_segments = 64};

/* ---- the model ---- */

struct range {
    uint8_t kind;
    uint32_t name;
};

struct block {
    bool live;
    uint64_t size, alloc_ns, serial;
    int64_t step;
    uint32_t stack, thread, name, module, stage; /* names of ranges, 0: none */
    uint8_t category;
};

struct row {
    uint64_t start_ns, peak, peak_ns, n_allocs, n_frees, alloc_bytes, free_bytes;
};

struct model {
    struct block blocks[N_DEVICES][N_ADDRESSES];
    struct range open[N_THREADS + 1][MAX_DEPTH];
    uint32_t depth[N_THREADS + 1];
    bool known[N_DEVICES]; /* has ever had a block or a free */
    uint64_t bytes[N_DEVICES], most[N_DEVICES];
    struct row rows[N_DEVICES];
    int64_t step;
    uint64_t step_start_ns, n_events, n_allocs, n_frees, n_replaced, n_unknown, n_rows, n_modules;
    uint32_t n_given;
};

static void model_know(struct model *m, uint32_t device)
{
    if (m->known[device])
        return;
    m->known[device] = true;
    m->rows[device] = (struct row){.start_ns = m->step_start_ns, .peak_ns = m->step_start_ns};
}

static void model_retire(struct model *m, uint32_t device, struct block *b)
{
    m->bytes[device] -= b->size;
    m->rows[device].free_bytes += b->size;
    b->live = false;
}

static uint32_t innermost(const struct model *m, uint32_t thread, uint8_t kind)
{
    for (uint32_t i = m->depth[thread]; i > 0; i--)
        if (m->open[thread][i - 1].kind == kind)
            return m->open[thread][i - 1].name;
    return 0;
}

static void model_alloc(struct model *m, const struct tmk_input *in, uint32_t device,
                        struct block *b)
{
    model_know(m, device);
    if (b->live) {
        m->n_replaced++;
        model_retire(m, device, b);
    }
    struct row *row = &m->rows[device];
    m->n_allocs++;
    m->bytes[device] += in->b;
    if (m->bytes[device] > m->most[device])
        m->most[device] = m->bytes[device];
    if (m->bytes[device] > row->peak) {
        row->peak = m->bytes[device];
        row->peak_ns = in->ns;
    }
    row->n_allocs++;
    row->alloc_bytes += in->b;
    *b = (struct block){.live = true,
                        .size = in->b,
                        .alloc_ns = in->ns,
                        .serial = m->n_allocs,
                        .step = m->step,
                        .stack = in->id,
                        .thread = in->thread,
                        .module = innermost(m, in->thread, TIDEMARK_MODULE),
                        .stage = innermost(m, in->thread, TIDEMARK_STAGE)};
}

static void model_free(struct model *m, uint32_t device, struct block *b)
{
    model_know(m, device);
    m->n_frees++;
    m->rows[device].n_frees++;
    if (b->live)
        model_retire(m, device, b);
    else
        m->n_unknown++;
}

static void model_pop(struct model *m, uint32_t thread, uint8_t kind)
{
    uint32_t i = m->depth[thread];
    while (i > 0 && m->open[thread][i - 1].kind != kind)
        i--;
    if (i == 0)
        return;
    m->depth[thread] = i - 1;
    m->n_modules += kind == TIDEMARK_MODULE;
}

static void model_step(struct model *m, uint64_t ns, int64_t step)
{
    for (uint32_t d = 0; d < N_DEVICES; d++) {
        if (!m->known[d])
            continue;
        m->rows[d] = (struct row){.start_ns = ns, .peak = m->bytes[d], .peak_ns = ns};
        m->n_rows++;
    }
    m->step = step;
    m->step_start_ns = ns;
    m->n_modules = 0;
}

static void model_apply(struct model *m, const struct tmk_input *in, uint32_t device,
                        uint32_t place)
{
    struct block *b = &m->blocks[device][place];
    m->n_events++;
    switch (in->kind) {
    case TMK_KIND_ALLOC:
        model_alloc(m, in, device, b);
        break;
    case TMK_KIND_FREE:
        model_free(m, device, b);
        break;
    case TMK_KIND_TAG:
        if (b->live && ((in->b != TIDEMARK_INPUT && in->b != TIDEMARK_KV_CACHE) ||
                        b->category == TIDEMARK_UNKNOWN || b->category == TIDEMARK_INPUT)) {
            b->category = (uint8_t)in->b;
            b->name = in->id;
        }
        break;
    case TMK_KIND_PUSH:
        assert_in_range(m->depth[in->thread], 0, MAX_DEPTH - 1);
        m->open[in->thread][m->depth[in->thread]++] = (struct range){(uint8_t)in->a, in->id};
        m->n_modules += in->a == TIDEMARK_MODULE;
        break;
    case TMK_KIND_POP:
        model_pop(m, in->thread, (uint8_t)in->a);
        break;
    default:
        model_step(m, in->ns, (int64_t)in->a);
        break;
    }
}

/* ---- comparing ---- */

static uint32_t name_of(const struct tmk_state *s, uint32_t context)
{
    return context ? s->contexts[context].name : 0;
}

static void compare_blocks(const struct model *m, struct tmk_state *s)
{
    uint32_t n_live = 0;
    for (uint32_t d = 0; d < N_DEVICES; d++) {
        for (uint32_t i = 0; i < N_ADDRESSES; i++) {
            const struct block *want = &m->blocks[d][i];
            const struct tmk_block *b = tmk_state_find(s, kit_devices[d], i * 64);
            n_live += want->live;
            assert_int_equal(b && b->live, want->live);
            if (!want->live)
                continue;
            assert_int_equal(b->size_bytes, want->size);
            assert_int_equal(b->alloc_ns, want->alloc_ns);
            assert_int_equal(b->serial, want->serial);
            assert_true(b->step == want->step);
            assert_int_equal(b->stack, want->stack);
            assert_int_equal(b->thread, want->thread);
            assert_int_equal(b->category, want->category);
            assert_int_equal(b->name, want->name);
            assert_int_equal(name_of(s, s->contexts[b->context].module), want->module);
            assert_int_equal(name_of(s, s->contexts[b->context].stage), want->stage);
        }
    }
    assert_int_equal(s->n_live, n_live);
}

static void compare_rows(const struct model *m, struct tmk_state *s)
{
    uint32_t n = 0;
    for (uint32_t d = 0; d < N_DEVICES; d++) {
        if (!m->known[d])
            continue;
        n++;
        const struct tmk_device_use *use = tmk_state_device(s, kit_devices[d]);
        struct tmk_step_row row = tmk_state_open_row(s, (uint32_t)(use - s->devices));
        assert_int_equal(use->allocated_bytes, m->bytes[d]);
        assert_int_equal(use->max_bytes, m->most[d]);
        assert_int_equal(row.start_ns, m->rows[d].start_ns);
        assert_int_equal(row.peak_bytes, m->rows[d].peak);
        assert_int_equal(row.peak_ns, m->rows[d].peak_ns);
        assert_int_equal(row.n_allocs, m->rows[d].n_allocs);
        assert_int_equal(row.n_frees, m->rows[d].n_frees);
        assert_int_equal(row.alloc_bytes, m->rows[d].alloc_bytes);
        assert_int_equal(row.free_bytes, m->rows[d].free_bytes);
        assert_int_equal(row.end_bytes, m->bytes[d]);
        assert_true(row.open);
        assert_true(row.step == m->step);
    }
    assert_int_equal(s->n_devices, n);
}

static void compare_ranges(const struct model *m, const struct tmk_state *s)
{
    for (uint32_t t = 1; t <= N_THREADS; t++) {
        uint32_t i = m->depth[t];
        uint32_t r = t < s->n_threads ? s->thread_top[t] : 0;
        for (; r && i; r = s->ranges[r - 1].outer, i--) {
            assert_int_equal(s->ranges[r - 1].kind, m->open[t][i - 1].kind);
            assert_int_equal(s->ranges[r - 1].name, m->open[t][i - 1].name);
        }
        assert_int_equal(r, 0);
        assert_int_equal(i, 0);
    }
}

static void compare(const struct model *m, struct tmk_state *s)
{
    assert_int_equal(s->n_events, m->n_events);
    assert_int_equal(s->n_allocs, m->n_allocs);
    assert_int_equal(s->n_frees, m->n_frees);
    assert_int_equal(s->n_replaced, m->n_replaced);
    assert_int_equal(s->n_unknown_free, m->n_unknown);
    assert_int_equal(s->n_step_rows, m->n_rows);
    assert_int_equal(s->n_step_module_events, m->n_modules);
    assert_true(s->step == m->step);
    compare_blocks(m, s);
    compare_rows(m, s);
    compare_ranges(m, s);
    assert_true(tmk_state_is_valid(s));
    assert_true(tmk_state_adds_up(s));
}

/* A finished row says what the model's open row said just before the step. */
static void hear_row(void *arg, const struct tmk_step_row *row)
{
    struct model *m = arg;
    uint32_t d = 0;
    while (kit_devices[d] != row->device)
        d++;
    assert_int_equal(row->ordinal, m->n_rows + m->n_given + 1);
    assert_false(row->open);
    assert_true(row->step == m->step);
    assert_int_equal(row->peak_bytes, m->rows[d].peak);
    assert_int_equal(row->n_allocs, m->rows[d].n_allocs);
    assert_int_equal(row->n_frees, m->rows[d].n_frees);
    assert_int_equal(row->end_bytes, m->bytes[d]);
    m->n_given++;
}

static void test_against_model(void **unused)
{
    (void)unused;
    static const uint8_t kinds[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 5, 5, 5, 6};
    static struct model m;
    struct tmk_state s;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct kit_random random = {seed};
        m = (struct model){.step = TMK_NO_STEP};
        assert_int_equal(tmk_state_init(&s, &limits), 0);
        s.on_step_row = hear_row;
        s.on_step_row_arg = &m;
        for (uint64_t i = 0; i < 6000; i++) {
            uint32_t device = (uint32_t)kit_random_below(&random, N_DEVICES);
            uint32_t place = (uint32_t)kit_random_below(&random, N_ADDRESSES);
            uint8_t kind = kinds[kit_random_below(&random, sizeof kinds)];
            struct tmk_input in = {.kind = kind,
                                   .ns = i * 10 + kit_random_below(&random, 10),
                                   .device = kit_devices[device],
                                   .thread = 1 + (uint32_t)kit_random_below(&random, N_THREADS),
                                   .a = place * 64,
                                   .b = kit_random_below(&random, 10) * (kind == 3 ? 1 : 1000),
                                   .id = (uint32_t)kit_random_below(&random, 5)};
            if (kind == TMK_KIND_PUSH || kind == TMK_KIND_POP)
                in.a = 1 + kit_random_below(&random, 3);
            if (kind == TMK_KIND_STEP)
                in.a = i;
            kit_apply(&s, &in);
            m.n_given = 0;
            model_apply(&m, &in, device, place);
            compare(&m, &s);
            if (i % 97 == 0)
                tmk_state_compact(&s);
        }
        tmk_state_fini(&s);
    }
}

/* ---- single things ---- */

static void test_mismatched_pops(void **unused)
{
    (void)unused;
    struct tmk_state s;
    struct tmk_open_range closed;
    assert_int_equal(tmk_state_init(&s, &limits), 0);
    assert_false(tmk_state_pop(&s, 1, 1, TIDEMARK_STAGE, NULL));
    tmk_state_push(&s, 2, 1, TIDEMARK_STAGE, 10);
    tmk_state_push(&s, 3, 1, TIDEMARK_MODULE, 11);
    uint32_t inner = tmk_state_push(&s, 4, 1, TIDEMARK_USER, 12);
    assert_int_equal(tmk_state_thread_context(&s, 1), inner);
    assert_false(tmk_state_pop(&s, 5, 2, TIDEMARK_STAGE, NULL));    /* another thread's */
    assert_true(tmk_state_pop(&s, 6, 1, TIDEMARK_MODULE, &closed)); /* and the one inside */
    assert_int_equal(closed.name, 11);
    assert_int_equal(closed.start_ns, 3);
    assert_int_equal(name_of(&s, tmk_state_thread_context(&s, 1)), 10);
    assert_true(tmk_state_pop(&s, 7, 1, TIDEMARK_STAGE, &closed));
    assert_int_equal(closed.name, 10);
    assert_int_equal(tmk_state_thread_context(&s, 1), 0);
    assert_true(tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

/* Ranges are used again: opening and closing for ever stays within the bound. */
static void test_ranges_are_recycled(void **unused)
{
    (void)unused;
    struct tmk_state_limits few = limits;
    struct tmk_state s;
    few.max_ranges = 6;
    assert_int_equal(tmk_state_init(&s, &few), 0);
    for (uint64_t i = 0; i < 1000; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            tmk_state_push(&s, i, 1, TIDEMARK_USER, k);
            tmk_state_push(&s, i, 2, TIDEMARK_MODULE, k);
        }
        tmk_state_push(&s, i, 3, TIDEMARK_USER, 9); /* one too many: not opened */
        assert_int_equal(tmk_state_thread_context(&s, 3), 0);
        for (uint32_t k = 0; k < 3; k++) {
            assert_true(tmk_state_pop(&s, i, 1, TIDEMARK_USER, NULL));
            assert_true(tmk_state_pop(&s, i, 2, TIDEMARK_MODULE, NULL));
        }
        assert_false(tmk_state_pop(&s, i, 3, TIDEMARK_USER, NULL));
    }
    assert_int_equal(s.n_contexts, 6);
    assert_int_equal(s.n_unplaced, 1000);
    tmk_state_fini(&s);
}

/* More blocks than there is room for: counted, and the rest stays right. */
static void test_block_limit(void **unused)
{
    (void)unused;
    struct tmk_state_limits few = limits;
    struct tmk_state s;
    few.max_blocks = 100;
    assert_int_equal(tmk_state_init(&s, &few), 0);
    for (uint64_t i = 0; i < 150; i++) {
        struct tmk_block *b = tmk_state_entry(&s, 0, i * 64);
        assert_int_equal(b != NULL, i < 100);
        tmk_state_alloc(&s, b, i, 0, 1, &(struct tmk_shape){.size_bytes = 10});
    }
    assert_int_equal(s.n_live, 100);
    assert_int_equal(s.n_untracked, 50);
    assert_int_equal(s.n_outside, 50);
    assert_int_equal(tmk_state_n_without_details(&s), 50);
    assert_int_equal(s.n_allocs, 150);
    assert_int_equal(s.devices[0].allocated_bytes, 1500);
    assert_true(tmk_state_is_valid(&s));
    for (uint64_t i = 0; i < 60; i++)
        assert_true(tmk_state_free(&s, tmk_state_find(&s, 0, i * 64), 200, 0, 1));
    assert_false(tmk_state_free(&s, NULL, 200, 0, 1)); /* one that was not followed */
    assert_int_equal(s.n_outside, 49);
    assert_int_equal(s.n_unknown_free, 0);
    tmk_state_compact(&s);
    assert_int_equal(s.n_entries, 40);
    assert_true(tmk_state_is_valid(&s));
    assert_non_null(tmk_state_entry(&s, 0, 1));
    for (uint64_t i = 60; i < 100; i++) /* those that were kept are found where they are now */
        assert_true(tmk_state_find(&s, 0, i * 64)->live);
    tmk_state_fini(&s);
}

static void test_other_limits(void **unused)
{
    (void)unused;
    struct tmk_state_limits few = limits;
    struct tmk_state s;
    few.max_contexts = 3;
    few.max_threads = 4;
    assert_int_equal(tmk_state_init(&s, &few), 0);
    for (uint32_t i = 1; i <= 5; i++)
        tmk_state_push(&s, i, 1, TIDEMARK_USER, i);
    assert_int_equal(s.n_contexts, 3);
    assert_int_equal(tmk_state_thread_context(&s, 1), 3); /* deeper ones count as their parent */
    tmk_state_push(&s, 6, 4, TIDEMARK_USER, 1);           /* a thread beyond the bound */
    assert_int_equal(tmk_state_thread_context(&s, 4), 0);
    for (uint32_t d = 0; d < TMK_MAX_DEVICES + 10; d++)
        tmk_state_alloc(&s, tmk_state_entry(&s, (uint16_t)d, 64), 7, (uint16_t)d, 1,
                        &(struct tmk_shape){.size_bytes = 5});
    assert_int_equal(s.n_devices, TMK_MAX_DEVICES);
    assert_int_equal(s.n_live, TMK_MAX_DEVICES + 10);
    assert_true(tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

/* Many addresses: the table grows, drops what is dead, and finds the rest. */
static void test_growth(void **unused)
{
    (void)unused;
    struct tmk_state_limits many = limits;
    struct tmk_state s;
    many.max_blocks = 1 << 20;
    assert_int_equal(tmk_state_init(&s, &many), 0);
    for (uint64_t i = 0; i < 200000; i++) {
        tmk_state_alloc(&s, tmk_state_entry(&s, 0, i << 9), i, 0, 1,
                        &(struct tmk_shape){.size_bytes = i});
        if (i % 10)
            tmk_state_free(&s, tmk_state_find(&s, 0, i << 9), i, 0, 1);
    }
    assert_int_equal(s.n_entries, 200000);
    tmk_state_compact(&s);
    assert_int_equal(s.n_entries, 20000);
    for (uint64_t i = 0; i < 200000; i++) {
        const struct tmk_block *b = tmk_state_find(&s, 0, i << 9);
        assert_int_equal(b != NULL, i % 10 == 0);
        if (b)
            assert_int_equal(b->size_bytes, i);
    }
    assert_true(tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static struct tmk_step_row last_row[8];
static uint32_t n_last_rows;

static void keep_last_row(void *arg, const struct tmk_step_row *row)
{
    (void)arg;
    last_row[n_last_rows++] = *row;
}

/* What is reserved, step by step, and what the end of a device takes with it. */
static void test_reserved_and_device_end(void **unused)
{
    (void)unused;
    struct tmk_state s;
    assert_int_equal(tmk_state_init(&s, &limits), 0);
    s.on_step_row = keep_last_row;
    n_last_rows = 0;
    tmk_state_device_end(&s, 1, 5); /* of a device that never was: only an event */
    assert_int_equal(s.n_devices, 0);
    tmk_state_alloc(&s, tmk_state_entry(&s, 1, 64), 2, 1, 1,
                    &(struct tmk_shape){.size_bytes = 100, .stack = 3, .stream = 4});
    assert_int_equal(tmk_state_find(&s, 1, 64)->stream, 4);
    tmk_state_step(&s, 3, 0);
    assert_false(last_row[0].has_reserved);
    tmk_state_reserved(&s, 4, 1, 1000);
    tmk_state_reserved(&s, 5, 1, 0);
    tmk_state_reserved(&s, 5, 2, 7); /* makes the device known */
    tmk_state_step(&s, 6, 1);
    assert_int_equal(n_last_rows, 3);
    assert_true(last_row[1].has_reserved);
    assert_int_equal(last_row[1].peak_reserved_bytes, 1000);
    assert_int_equal(last_row[1].end_reserved_bytes, 0);
    assert_int_equal(last_row[2].device, 2);
    assert_int_equal(last_row[2].peak_reserved_bytes, 7);
    tmk_state_alloc(&s, tmk_state_entry(&s, 2, 64), 7, 2, 1, &(struct tmk_shape){.size_bytes = 11});
    tmk_state_alloc(&s, NULL, 7, 1, 1, &(struct tmk_shape){.size_bytes = 50}); /* not followed */
    tmk_state_device_end(&s, 8, 1);
    assert_int_equal(s.n_live, 1);
    assert_int_equal(s.n_frees, 0);
    assert_int_equal(s.devices[0].allocated_bytes, 0);
    assert_int_equal(s.devices[0].max_bytes, 150);
    assert_int_equal(s.devices[1].allocated_bytes, 11);
    tmk_state_step(&s, 9, 2);
    assert_int_equal(last_row[3].free_bytes, 150);
    assert_int_equal(last_row[3].n_frees, 0);
    assert_int_equal(last_row[3].peak_bytes, 150);
    assert_int_equal(last_row[3].peak_reserved_bytes, 0); /* known to be none */
    assert_true(last_row[3].has_reserved);
    assert_int_equal(s.devices[0].max_reserved_bytes, 1000);
    assert_true(tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static void test_fini_takes_anything(void **unused)
{
    (void)unused;
    struct tmk_state s = {0};
    struct tmk_state_limits absurd = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    tmk_state_fini(&s);
    if (tmk_state_init(&s, &absurd) == 0)
        tmk_state_fini(&s);
    tmk_state_fini(&s);
}

/* ---- what blocks are for ---- */

enum { FORWARD = 1, BACKWARD, OPTIMIZER, EVAL, DATA, WRAP, OWN, BATCH };

static void learn(struct tmk_state *s)
{
    static const char *const names[] = {
        [FORWARD] = "forward", [BACKWARD] = "backward", [OPTIMIZER] = "optimizer", [EVAL] = "eval",
        [DATA] = "data",       [WRAP] = "wrap",         [OWN] = "validation"};
    assert_int_equal(tmk_state_init(s, &limits), 0);
    for (uint32_t i = FORWARD; i <= OWN; i++)
        tmk_state_learn_stage(s, i, tmk_stage_of(names[i]));
}

static void make(struct tmk_state *s, uint64_t address, uint64_t ns, uint32_t thread)
{
    tmk_state_alloc(s, tmk_state_entry(s, 0, address), ns, 0, thread,
                    &(struct tmk_shape){.size_bytes = 8});
}

static const struct tmk_block *lose(struct tmk_state *s, uint64_t address, uint64_t ns,
                                    uint32_t thread)
{
    assert_true(tmk_state_free(s, tmk_state_find(s, 0, address), ns, 0, thread));
    return tmk_state_find(s, 0, address);
}

/* A block made in stage `birth` (0: in none) and freed: in the same range; after it, in a stage
 * `death` (0: in none); never. */
static void check_lives(uint32_t birth, uint32_t death, uint8_t same, uint8_t later, uint8_t never)
{
    struct tmk_state s;
    learn(&s);
    if (birth)
        tmk_state_push(&s, 10, 1, TIDEMARK_STAGE, birth);
    tmk_state_push(&s, 11, 1, TIDEMARK_MODULE, 99);
    make(&s, 64, 12, 1);
    make(&s, 128, 13, 1);
    make(&s, 192, 14, 1);
    assert_int_equal(lose(&s, 64, 15, 1)->category, same);
    tmk_state_pop(&s, 16, 1, TIDEMARK_MODULE, NULL);
    tmk_state_pop(&s, 17, 1, TIDEMARK_STAGE, NULL);
    if (death)
        tmk_state_push(&s, 18, 1, TIDEMARK_STAGE, death);
    assert_int_equal(lose(&s, 128, 19, 1)->category, later);
    tmk_state_pop(&s, 20, 1, TIDEMARK_STAGE, NULL);
    assert_int_equal(tmk_state_category(&s, tmk_state_find(&s, 0, 192)), never);
    assert_int_equal(tmk_state_find(&s, 0, 192)->category, TIDEMARK_UNKNOWN); /* as tagged */
    assert_true(tmk_state_is_valid(&s));
    tmk_state_fini(&s);
}

static void test_lives(void **unused)
{
    (void)unused;
    const uint8_t activation = TIDEMARK_ACTIVATION, temporary = TIDEMARK_TEMPORARY,
                  other = TIDEMARK_OTHER, unknown = TIDEMARK_UNKNOWN, state = 3;
    check_lives(FORWARD, 0, temporary, activation, activation);
    check_lives(FORWARD, FORWARD, temporary, activation, activation); /* the next one */
    check_lives(FORWARD, BACKWARD, temporary, activation, activation);
    check_lives(EVAL, 0, temporary, activation, activation);
    check_lives(EVAL, OPTIMIZER, temporary, activation, activation);
    check_lives(OPTIMIZER, 0, temporary, state, state);
    check_lives(OPTIMIZER, BACKWARD, temporary, state, state);
    check_lives(BACKWARD, 0, TIDEMARK_AUTOGRAD_DETAIL, TIDEMARK_GRADIENT, TIDEMARK_GRADIENT);
    check_lives(BACKWARD, BACKWARD, TIDEMARK_AUTOGRAD_DETAIL, TIDEMARK_GRADIENT, TIDEMARK_GRADIENT);
    check_lives(DATA, 0, temporary, TIDEMARK_INPUT, TIDEMARK_INPUT);
    check_lives(DATA, BACKWARD, temporary, TIDEMARK_INPUT, TIDEMARK_INPUT);
    check_lives(OWN, 0, temporary, other, other);
    check_lives(OWN, BACKWARD, temporary, activation, other);
    check_lives(WRAP, 0, temporary, other, other);
    check_lives(WRAP, BACKWARD, temporary, activation, other);
    check_lives(0, 0, unknown, unknown, unknown);
    check_lives(0, BACKWARD, unknown, activation, unknown);
    check_lives(0, FORWARD, unknown, unknown, unknown);
}

/* Autograd's threads free each other's blocks; a recomputed forward lies inside backward. */
static void test_backward(void **unused)
{
    (void)unused;
    struct tmk_state s;
    learn(&s);
    tmk_state_push(&s, 10, 1, TIDEMARK_STAGE, BACKWARD);
    make(&s, 64, 11, 1);
    tmk_state_push(&s, 20, 2, TIDEMARK_STAGE, BACKWARD);
    make(&s, 128, 21, 2);
    make(&s, 192, 22, 2);
    assert_int_equal(lose(&s, 64, 23, 2)->category, TIDEMARK_AUTOGRAD_DETAIL);
    assert_int_equal(tmk_state_category(&s, tmk_state_find(&s, 0, 192)), TIDEMARK_AUTOGRAD_DETAIL);
    tmk_state_push(&s, 24, 2, TIDEMARK_STAGE, FORWARD);
    make(&s, 64, 25, 2);
    make(&s, 256, 26, 2);
    assert_int_equal(lose(&s, 64, 27, 2)->category, TIDEMARK_TEMPORARY);
    assert_int_equal(lose(&s, 128, 28, 2)->category, TIDEMARK_AUTOGRAD_DETAIL);
    tmk_state_pop(&s, 29, 2, TIDEMARK_STAGE, NULL);
    assert_int_equal(lose(&s, 256, 30, 2)->category, TIDEMARK_ACTIVATION);
    make(&s, 320, 31, 2);
    tmk_state_pop(&s, 32, 2, TIDEMARK_STAGE, NULL);
    assert_int_equal(lose(&s, 320, 33, 1)->category, TIDEMARK_AUTOGRAD_DETAIL);
    make(&s, 384, 34, 3); /* of a thread that is in no stage */
    assert_int_equal(lose(&s, 384, 35, 3)->category, TIDEMARK_UNKNOWN);
    tmk_state_pop(&s, 36, 1, TIDEMARK_STAGE, NULL);
    assert_int_equal(s.n_backward, 0);
    assert_int_equal(tmk_state_category(&s, tmk_state_find(&s, 0, 192)), TIDEMARK_GRADIENT);
    tmk_state_push(&s, 40, 1, TIDEMARK_STAGE, BACKWARD); /* zeroed in the next one, or replaced */
    assert_int_equal(lose(&s, 192, 41, 1)->category, TIDEMARK_GRADIENT);
    tmk_state_push(&s, 42, 2, TIDEMARK_STAGE, BACKWARD);
    tmk_state_pop(&s, 43, 1, TIDEMARK_STAGE, NULL); /* the first goes, the second goes on */
    assert_int_equal(s.n_backward, 1);
    assert_int_equal(s.backward_start_ns, 42);
    tmk_state_push(&s, 44, 2, TIDEMARK_USER, OWN);
    tmk_state_push(&s, 45, 2, TIDEMARK_STAGE, BACKWARD);
    tmk_state_pop(&s, 46, 2, TIDEMARK_USER, NULL); /* and what is in it */
    assert_int_equal(s.n_backward, 1);
    tmk_state_forget_ranges(&s);
    assert_int_equal(s.n_backward, 0);
    tmk_state_fini(&s);
}

static uint32_t tag(struct tmk_state *s, uint64_t address, uint8_t category, uint32_t name)
{
    struct tmk_block *b = tmk_state_find(s, 0, address);
    return tmk_state_tag(s, b, s->now_ns, category, name);
}

/* A tag wins; "input" is a hint that counts for what was made outside training alone. */
static void test_hints(void **unused)
{
    (void)unused;
    struct tmk_state s;
    learn(&s);
    make(&s, 64, 10, 1);
    assert_true(tag(&s, 64, TIDEMARK_INPUT, BATCH));
    assert_int_equal(tmk_state_name(&s, tmk_state_find(&s, 0, 64)), BATCH);
    make(&s, 128, 11, 1);
    assert_true(tag(&s, 128, TIDEMARK_PARAMETER, 7));
    assert_false(tag(&s, 128, TIDEMARK_INPUT, BATCH)); /* it is a parameter */
    tmk_state_push(&s, 12, 1, TIDEMARK_STAGE, FORWARD);
    make(&s, 192, 13, 1);
    assert_true(tag(&s, 192, TIDEMARK_INPUT, BATCH)); /* the output of a layer */
    assert_int_equal(tmk_state_category(&s, tmk_state_find(&s, 0, 192)), TIDEMARK_ACTIVATION);
    assert_int_equal(tmk_state_name(&s, tmk_state_find(&s, 0, 192)), 0);
    assert_int_equal(tmk_state_find(&s, 0, 192)->name, BATCH); /* as the trace has it */
    make(&s, 256, 14, 1);
    assert_true(tag(&s, 256, TIDEMARK_BUFFER, 0));
    tmk_state_pop(&s, 15, 1, TIDEMARK_STAGE, NULL);
    struct tmk_block settled = tmk_state_settled(&s, tmk_state_find(&s, 0, 192));
    assert_int_equal(settled.category, TIDEMARK_ACTIVATION);
    assert_int_equal(settled.name, 0);
    const struct tmk_block *b = lose(&s, 64, 16, 1);
    assert_int_equal(b->category, TIDEMARK_INPUT);
    assert_int_equal(b->name, BATCH);
    b = lose(&s, 128, 17, 1);
    assert_int_equal(b->category, TIDEMARK_PARAMETER);
    assert_int_equal(b->name, 7);
    b = lose(&s, 192, 18, 1);
    assert_int_equal(b->category, TIDEMARK_ACTIVATION);
    assert_int_equal(b->name, 0);
    assert_false(tag(&s, 256, TIDEMARK_KV_CACHE, 9)); /* a registered buffer */
    tmk_state_give_up(&s, tmk_state_find(&s, 0, 256));
    assert_int_equal(tmk_state_find(&s, 0, 256)->category, TIDEMARK_BUFFER);
    make(&s, 320, 19, 1);
    assert_true(tag(&s, 320, TIDEMARK_INPUT, BATCH));
    assert_true(tag(&s, 320, TIDEMARK_KV_CACHE, 9)); /* an input that turns out to be one */
    assert_false(tag(&s, 320, TIDEMARK_INPUT, BATCH));
    b = lose(&s, 320, 20, 1);
    assert_int_equal(b->category, TIDEMARK_KV_CACHE);
    assert_int_equal(b->name, 9);
    tmk_state_fini(&s);
}

/* The last step was none: its event begins nothing, and its number stands for the one before. */
static void test_tail(void **unused)
{
    (void)unused;
    struct tmk_state s;
    assert_int_equal(tmk_state_init(&s, &limits), 0);
    s.on_step_row = keep_last_row;
    n_last_rows = 0;
    assert_int_equal(tmk_state_step_of(&s, TMK_NO_STEP), TMK_NO_STEP);
    s.tail_step = 2;
    make(&s, 64, 1, 1);
    tmk_state_step(&s, 2, 0);
    tmk_state_step(&s, 3, 1);
    tmk_state_step(&s, 4, 2);
    make(&s, 128, 5, 1);
    assert_int_equal(n_last_rows, 2);
    assert_int_equal(tmk_state_find(&s, 0, 128)->step, 1);
    assert_int_equal(s.n_events, 5);
    struct tmk_step_row row = tmk_state_open_row(&s, 0);
    assert_int_equal(row.step, 1);
    assert_int_equal(row.start_ns, 3);
    assert_int_equal(row.n_allocs, 1);
    tmk_state_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_mismatched_pops),
        cmocka_unit_test(test_ranges_are_recycled),
        cmocka_unit_test(test_block_limit),
        cmocka_unit_test(test_other_limits),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_fini_takes_anything),
        cmocka_unit_test(test_reserved_and_device_end),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_backward),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
