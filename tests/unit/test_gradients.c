/* SPDX-License-Identifier: MIT */
/* Gradients at their nodes: where nodes have their parameters, what is said, tried, and trusted.
 * Torch and the recorder are stand-ins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/loader/import_slots.h"
#include "record/loader/library.h"
#include "record/training/bridge_python.h"
#include "record/training/gradients.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { PLACE = 17, N_PARAMETERS = 6, N_WORDS = 160 };

/* ---- torch ---- */

struct data { /* a tensor: c10::TensorImpl */
    uintptr_t class;
    struct data *grad; /* as an at::Tensor */
    void *address;
};

enum { APPLY = 6 };
static uintptr_t node_class[16];
static struct data undefined = {.class = 99};
static struct data parameters[N_PARAMETERS], computed = {.class = 7, .address = &computed};
static uintptr_t nodes[N_PARAMETERS][N_WORDS];
static bool has_functions;
static unsigned n_addresses, n_applied;

static const void *grad_of(const struct data *data)
{
    return &data->grad;
}

static int32_t address_of(struct data *const *tensor, void **ret)
{
    n_addresses++;
    *ret = (*tensor)->address;
    return 0;
}

static struct list {
    void *words[3];
} apply(const void *node, void *input)
{
    n_applied++;
    return (struct list){{(void *)node, input, &n_applied}};
}

bool tmk_import_word_write(uintptr_t *at, uintptr_t value, bool stays_open)
{
    (void)stays_open;
    *at = value;
    return true;
}

void *tmk_library_symbol(const char *prefix, const char *symbol)
{
    (void)prefix;
    if (!has_functions)
        return NULL;
    if (strstr(symbol, "5apply"))
        return (void *)apply;
    if (strstr(symbol, "AccumulateGrad"))
        return node_class;
    if (strstr(symbol, "_singleton"))
        return &undefined;
    return strstr(symbol, "4grad") ? (void *)grad_of : (void *)address_of;
}

size_t tmk_library_symbol_bytes(const void *symbol)
{
    return symbol == node_class ? sizeof node_class : 0;
}

/* ---- the recorder ---- */

static struct tmk_record page[TMK_PAGE_SLOTS];
union tmk_control_page tmk_control_page = {.control = {.generation = 1, .bridge = 1}};
struct tmk_recorder tmk_recorder = {.control = &tmk_control_page.control};
struct tmk_bridge tmk_bridge;
__thread struct tmk_lane tmk_lane;

bool tmk_lane_open(struct tmk_lane *lane)
{
    lane->generation = 1;
    lane->cursor = page;
    lane->end = page + TMK_PAGE_SLOTS;
    return true;
}

bool tmk_lane_next_page(struct tmk_lane *lane)
{
    (void)lane;
    return false;
}

void tmk_lane_count_lost(uint8_t kind)
{
    (void)kind;
}

void tmk_lane_count_drop(void)
{
}

bool tmk_lane_take_over(const struct tmk_lane *lane, uintptr_t frame)
{
    (void)lane;
    (void)frame;
    return true;
}

/* ---- tests ---- */

static uint64_t cdata_of(unsigned i)
{
    return (uintptr_t)&parameters[i];
}

static void put(unsigned i, enum tmk_gradients_state state, uint64_t said)
{
    tmk_gradients_put(&(struct tmk_gradients_parameter){
        .cdata = cdata_of(i), .state = state, .name = 10 + i, .device = 0x100, .said = said});
}

static enum tmk_gradients_state state_of(unsigned i)
{
    struct tmk_gradients_parameter p;
    return tmk_gradients_find(cdata_of(i), &p) ? p.state : (enum tmk_gradients_state)99;
}

static uint64_t said_of(unsigned i)
{
    struct tmk_gradients_parameter p = {0};
    tmk_gradients_find(cdata_of(i), &p);
    return p.said;
}

/* The node of a parameter runs on what was computed. */
static struct tmk_gradients_found run(unsigned i, struct data *input)
{
    struct data *tensor[] = {input};
    struct data **vector[] = {tensor, tensor + 1};
    return tmk_gradients_look(nodes[i], vector);
}

static int set_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_PARAMETERS; i++) {
        parameters[i] = (struct data){.class = 7, .grad = &undefined};
        nodes[i][0] = (uintptr_t)(node_class + 2);
        nodes[i][PLACE] = cdata_of(i);
        nodes[i][PLACE + 64] = cdata_of((i + 1) % N_PARAMETERS); /* the next node's */
    }
    nodes[N_PARAMETERS - 1][PLACE + 64] = 0;
    n_addresses = 0;
    memset(page, 0, sizeof page);
    tmk_lane = (struct tmk_lane){0};
    tmk_gradients_clear(N_PARAMETERS);
    tmk_gradients_met_listed();
    tmk_gradients_met_stranger();
    return 0;
}

static void test_without_functions(void **state)
{
    (void)state;
    put(0, TMK_GRADIENT_LISTED, 0);
    assert_false(tmk_gradients_watch());
    assert_false(tmk_gradients_are_watched());
    has_functions = true;
    assert_false(tmk_gradients_watch()); /* nor where the class's table has not what it should */
    assert_false(tmk_gradients_switch(true, false));
    node_class[APPLY] = (uintptr_t)apply;
}

static void test_table(void **state)
{
    struct tmk_gradients_parameter p;
    (void)state;
    put(0, TMK_GRADIENT_TRIED, 0x55);
    put(1, TMK_GRADIENT_ODD, 0);
    put(0, TMK_GRADIENT_LISTED, 0); /* tied: the first counts */
    assert_true(tmk_gradients_find(cdata_of(0), &p));
    assert_int_equal(p.state, TMK_GRADIENT_TRIED);
    assert_int_equal(p.said, 0x55);
    assert_int_equal(p.name, 10);
    assert_int_equal(p.device, 0x100);
    assert_int_equal(state_of(1), TMK_GRADIENT_ODD);
    assert_false(tmk_gradients_find(cdata_of(2), &p));
    assert_false(tmk_gradients_find(0, &p));
    tmk_gradients_clear(0);
    assert_false(tmk_gradients_find(cdata_of(0), &p));
}

static void test_many(void **state)
{
    enum { N = 65536 };
    struct tmk_gradients_parameter p;
    (void)state;
    tmk_gradients_clear(N);
    for (uint64_t i = 1; i <= N; i++)
        tmk_gradients_put(&(struct tmk_gradients_parameter){.cdata = i << 4, .name = (uint32_t)i});
    for (uint64_t i = 1; i <= N; i++) {
        assert_true(tmk_gradients_find(i << 4, &p));
        assert_int_equal(p.name, i);
    }
    assert_false(tmk_gradients_find((uint64_t)(N + 1) << 4, &p));
}

/* Two places have parameters; the second belongs to the node behind. */
static void test_place_is_found(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_PARAMETERS; i++)
        put(i, TMK_GRADIENT_LISTED, 0);
    assert_false(tmk_gradients_watch());
    assert_true(tmk_gradients_are_watched());
    assert_false(tmk_gradients_learn(N_PARAMETERS)); /* no node was seen */
    for (unsigned i = 0; i < N_PARAMETERS; i++)
        assert_int_equal(run(i, &computed).address, 0);
    assert_false(tmk_gradients_learn(0));
    assert_true(tmk_gradients_learn(N_PARAMETERS));
    assert_false(tmk_gradients_learn(N_PARAMETERS)); /* it was known */
    assert_true(tmk_gradients_watch());
    assert_false(tmk_gradients_met_listed());
    run(3, &computed);
    assert_true(tmk_gradients_met_listed());
    assert_false(tmk_gradients_met_listed());
    assert_int_equal(said_of(3), TMK_GRADIENT_SOMEWHERE);
    assert_int_equal(said_of(4), 0); /* had the wrong place been found, it would be this one */
}

static void test_strangers(void **state)
{
    (void)state;
    put(0, TMK_GRADIENT_TRUSTED, 0);
    assert_int_equal(run(1, &computed).address, 0);
    assert_true(tmk_gradients_met_stranger());
    assert_int_equal(n_addresses, 0); /* what is not known is not followed */
}

static void test_states(void **state)
{
    uint64_t here = (uintptr_t)&computed;
    (void)state;
    put(0, TMK_GRADIENT_ODD, 0);
    put(1, TMK_GRADIENT_TRIED, 0);
    put(2, TMK_GRADIENT_TRUSTED, 0);
    assert_int_equal(run(0, &computed).address, 0);
    assert_int_equal(n_addresses, 0);
    assert_true(tmk_gradients_met_untrusted());
    assert_int_equal(run(1, &computed).address, 0);
    assert_int_equal(said_of(1), here);
    assert_true(tmk_gradients_met_untrusted());
    assert_int_equal(run(2, &computed).address, here);
    assert_false(tmk_gradients_met_untrusted());
    assert_int_equal(said_of(2), here);
    assert_false(tmk_gradients_met_listed() || tmk_gradients_met_stranger());
}

/* A gradient that is there is not looked at: another thread may be about to take it away. */
static void test_accumulation(void **state)
{
    (void)state;
    put(0, TMK_GRADIENT_TRUSTED, 0x77);
    put(1, TMK_GRADIENT_TRIED, 0x78);
    parameters[0].grad = parameters[1].grad = (struct data *)8;
    assert_int_equal(run(0, &computed).address, 0);
    assert_int_equal(run(1, &computed).address, 0);
    assert_int_equal(said_of(0), 0x77);
    assert_int_equal(said_of(1), 0x78);
}

/* torch.autograd.grad(): what is computed goes to its caller. */
static void test_captures(void **state)
{
    (void)state;
    put(0, TMK_GRADIENT_TRUSTED, 0x77);
    put(1, TMK_GRADIENT_LISTED, 0);
    tmk_gradients_begin_capture();
    assert_int_equal(run(0, &computed).address, 0);
    run(1, &computed);
    run(2, &computed);
    tmk_gradients_end_capture();
    assert_int_equal(said_of(0), 0x77);
    assert_false(tmk_gradients_met_listed() || tmk_gradients_met_stranger());
    assert_int_equal(run(0, &computed).address, (uintptr_t)&computed);
    tmk_gradients_end_capture(); /* one that began before a fork */
    assert_int_equal(run(0, &computed).address, (uintptr_t)&computed);
}

static void test_other_kinds(void **state)
{
    static struct data sparse = {.class = 8}, none = {0};
    struct data *two[] = {&computed, &computed};
    struct data **vector[] = {two, two + 2};
    (void)state;
    put(0, TMK_GRADIENT_TRUSTED, 0);
    put(1, TMK_GRADIENT_TRIED, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(run(i, &sparse).address, 0);
        assert_int_equal(said_of(i), TMK_GRADIENT_SOMEWHERE);
        assert_int_equal(run(i, &undefined).address, 0);
        assert_int_equal(run(i, &none).address, 0);
        assert_int_equal(tmk_gradients_look(nodes[i], vector).address, 0);
        /* Whether the input looks as expected is looked at first, whatever is trusted. */
        assert_int_equal(tmk_gradients_look(nodes[i], (void *)8).address, 0);
    }
    assert_int_equal(n_addresses, 0);
}

static void test_tags(void **state)
{
    (void)state;
    put(2, TMK_GRADIENT_TRUSTED, 0);
    tmk_gradients_tag((struct tmk_gradients_found){0});
    assert_int_equal(page[0].ticks, 0);
    tmk_gradients_tag(run(2, &computed));
    assert_int_equal(page[0].a, (uintptr_t)&computed);
    assert_int_equal(page[0].b, TIDEMARK_GRADIENT);
    atomic_store(&tmk_control_page.control.generation,
                 2); /* another recording, of which the names are not */
    assert_int_equal(run(2, &computed).address, 0);
    tmk_gradients_tag((struct tmk_gradients_found){.what = 1, .address = 1});
    assert_int_equal(page[1].a, 0);
    atomic_store(&tmk_control_page.control.generation, 1);
}

/* As fast_path.c does. */
static void put_block(uint16_t device)
{
    static uint64_t ticks;
    struct tmk_fast_path_device *said = tmk_fast_path_device_of(device);
    tmk_lane_put_at(&tmk_lane, ++ticks, TMK_KIND_ALLOC, device, 1, 8, 512);
    tmk_lane.is_block = true;
    said->thread = tmk_lane.thread;
    said->torch_device = tmk_accelerator_of(device);
}

/* Whether the tag that is written now has the last record's time. */
static bool shares_time(struct tmk_gradients_found found)
{
    const struct tmk_record *tag = tmk_lane.cursor;
    tmk_gradients_tag(found);
    assert_int_equal(tag->a, found.address);
    bool shares = tag->ticks == tag[-1].ticks;
    assert_true(shares || tag->ticks > 1000000); /* now */
    assert_int_equal(tmk_lane.is_block, shares);
    return shares;
}

/* A tag needs no time while nobody but its thread makes blocks on the device. */
static void test_moment(void **state)
{
    (void)state;
    put(2, TMK_GRADIENT_TRUSTED, 0);
    struct tmk_gradients_found found = run(2, &computed);
    uint16_t device = (uint16_t)(found.what >> 32);
    tmk_gradients_tag(found); /* the page's first */
    tmk_lane.thread = 3;
    assert_false(shares_time(found));
    put_block(device);
    assert_true(shares_time(found));
    assert_true(shares_time(found));
    tmk_lane_put(&tmk_lane, TMK_KIND_PUSH, 0, 1, TIDEMARK_STAGE, 0);
    assert_false(shares_time(found));
    put_block(device);
    tmk_fast_path_device_of(device)->thread = 4; /* it may be that one's block */
    assert_false(shares_time(found));
    put_block(device);
    tmk_fast_path_end_all_sharing();
    assert_false(shares_time(found));
    put_block(device);
    put_block(device + TMK_TORCH_DEVICES); /* has the same place */
    assert_false(shares_time(found));
    put_block(device);
    assert_true(shares_time(found));
}

/* A page's first record has its own time. */
static void test_page_turn(void **state)
{
    (void)state;
    put(2, TMK_GRADIENT_TRUSTED, 0);
    struct tmk_gradients_found found = run(2, &computed);
    tmk_gradients_tag(found);
    tmk_lane.thread = 3;
    while (tmk_lane.cursor < tmk_lane.end)
        put_block((uint16_t)(found.what >> 32));
    tmk_gradients_tag(found);
    assert_false(tmk_lane.is_block);
}

/* By the class's table of functions, as torch goes. */
static void test_hook(void **state)
{
    struct data *tensor[] = {&computed};
    struct data **vector[] = {tensor, tensor + 1};
    (void)state;
    put(2, TMK_GRADIENT_TRUSTED, 0);
    tmk_gradients_watch();
    uintptr_t hook = node_class[APPLY];
    assert_true(hook != (uintptr_t)apply);
    struct list (*run_node)(const void *, void *) = (struct list(*)(const void *, void *))hook;
    n_applied = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct list result = run_node(nodes[2], vector);
        assert_int_equal(n_applied, i + 1);
        assert_ptr_equal(result.words[0], nodes[2]);
        assert_ptr_equal(result.words[1], vector);
        assert_ptr_equal(result.words[2], &n_applied);
        assert_int_equal(said_of(2), i == 0 ? (uintptr_t)&computed : 0);
        tmk_gradients_clear(N_PARAMETERS); /* it is in, and does nothing but call on */
        put(2, TMK_GRADIENT_TRUSTED, 0);
    }
    assert_true(tmk_gradients_switch(false, false));
    assert_int_equal(node_class[APPLY], (uintptr_t)apply);
    tmk_gradients_watch();
    assert_int_equal(node_class[APPLY], hook);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_without_functions, set_up),
        cmocka_unit_test_setup(test_table, set_up),
        cmocka_unit_test_setup(test_many, set_up),
        cmocka_unit_test_setup(test_place_is_found, set_up),
        cmocka_unit_test_setup(test_strangers, set_up),
        cmocka_unit_test_setup(test_other_kinds, set_up), /* before inputs are known */
        cmocka_unit_test_setup(test_states, set_up),
        cmocka_unit_test_setup(test_accumulation, set_up),
        cmocka_unit_test_setup(test_captures, set_up),
        cmocka_unit_test_setup(test_tags, set_up),
        cmocka_unit_test_setup(test_moment, set_up),
        cmocka_unit_test_setup(test_page_turn, set_up),
        cmocka_unit_test_setup(test_hook, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
