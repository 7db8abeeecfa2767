/* SPDX-License-Identifier: MIT */
/* What keys and clicks of `top` do, without a terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kit/amount.h"
#include "tui/choice.h"
#include "tui/top_model.h"

/* Five processes: PID, used, user, command; of them 30 is watched. */
static struct tmk_top_process processes[] = {
    {.pid = 10, .used_bytes = 5, .host_bytes = 1, .user = "ana", .command = "b"},
    {.pid = 20, .used_bytes = TMK_BYTES_UNKNOWN, .host_bytes = 2, .user = "bo", .command = "C"},
    {.pid = 30,
     .used_bytes = 7,
     .host_bytes = TMK_BYTES_UNKNOWN,
     .user = "ana",
     .command = "a",
     .devices = "10",
     .is_watched = true,
     .job = {.has_memory = true, .rank = 1, .step = 3, .peak_bytes = 9, .reserved_bytes = 8}},
    {.pid = 40, .used_bytes = 7, .host_bytes = 4, .user = "cy", .command = "d", .devices = "2"},
    {.pid = 50, .used_bytes = 0, .host_bytes = 5, .user = "cy", .command = "e"},
};
static const struct tmk_top_model model = {.processes = processes, .n_processes = 5};
static const struct tmk_hits hits = {
    .table_y = 11,
    .n_rows = 3,
    .top = 1,
    .head_y = 10,
    .n_heads = 3,
    .heads = {{0, 7, TMK_SORT_PID}, {8, 7, TMK_SORT_USED}, {16, 20, TMK_SORT_COMMAND}},
    .scroll_most = 5,
};

static void press(struct tmk_choice *v, enum tmk_key_kind kind, uint32_t c)
{
    struct tmk_key key = {.kind = kind, .c = c};
    tmk_choice_key(v, &key, &model, &hits);
}

static void type(struct tmk_choice *v, const char *text)
{
    for (; *text; text++)
        press(v, TMK_KEY_CHARACTER, (unsigned char)*text);
}

static void click(struct tmk_choice *v, unsigned x, unsigned y)
{
    struct tmk_key key = {.kind = TMK_KEY_CLICK, .x = x, .y = y};
    tmk_choice_key(v, &key, &model, &hits);
}

static void check_order(const struct tmk_choice *v, uint32_t n, const uint32_t *pids)
{
    uint32_t order[5];
    assert_int_equal(tmk_choice_order(v, &model, order), n);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(processes[order[i]].pid, pids[i]);
}

static void test_order(void **state)
{
    (void)state;
    static const struct {
        enum tmk_sort sort;
        uint32_t pids[5];
    } cases[] = {
        {TMK_SORT_PID, {10, 20, 30, 40, 50}},       {TMK_SORT_USED, {30, 40, 10, 50, 20}},
        {TMK_SORT_HOST, {50, 40, 20, 10, 30}},      {TMK_SORT_USER, {10, 30, 20, 40, 50}},
        {TMK_SORT_COMMAND, {20, 30, 10, 40, 50}},   {TMK_SORT_DEVICES, {10, 20, 50, 40, 30}},
        {TMK_SORT_RANK, {10, 20, 40, 50, 30}},      {TMK_SORT_PEAK, {30, 10, 20, 40, 50}},
        {TMK_SORT_RESERVED, {30, 10, 20, 40, 50}},  {TMK_SORT_STEP, {30, 10, 20, 40, 50}},
        {TMK_SORT_ALLOCATED, {30, 10, 20, 40, 50}},
    };
    struct tmk_choice v = tmk_choice_start(false, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        v.sort = cases[i].sort;
        check_order(&v, 5, cases[i].pids);
    }
    v.sort = TMK_SORT_USED;
    v.is_reversed = true; /* those that are equal stay by PID */
    check_order(&v, 5, (uint32_t[]){20, 50, 10, 30, 40});
}

static void test_filter(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, "ANA");
    check_order(&v, 2, (uint32_t[]){30, 10});
    press(&v, TMK_KEY_ESCAPE, 0);
    assert_string_equal(v.filter, "");
    type(&v, "/cyq");
    assert_true((v.asks == TMK_ASKS_FILTER) && !v.ends);
    check_order(&v, 0, NULL);
    press(&v, TMK_KEY_BACKSPACE, 0);
    press(&v, TMK_KEY_ENTER, 0);
    assert_false((v.asks == TMK_ASKS_FILTER));
    assert_string_equal(v.filter, "cy");
    check_order(&v, 2, (uint32_t[]){40, 50});
    type(&v, "/");
    press(&v, TMK_KEY_CHARACTER, 0x4e2d);
    assert_string_equal(v.filter, "cy中");
    press(&v, TMK_KEY_BACKSPACE, 0);
    assert_string_equal(v.filter, "cy");
    for (int i = 0; i < 100; i++)
        press(&v, TMK_KEY_CHARACTER, 0x4e2d);
    assert_int_equal(strlen(v.filter), 62);
    press(&v, TMK_KEY_ESCAPE, 0);
    assert_true(!(v.asks == TMK_ASKS_FILTER) && v.filter[0] == '\0');
    v = tmk_choice_start(false, "40");
    check_order(&v, 1, (uint32_t[]){40});
}

static void test_moving(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL); /* 30 40 10 50 20 */
    press(&v, TMK_KEY_DOWN, 0);
    assert_int_equal(v.pid, 40);
    press(&v, TMK_KEY_PAGE_DOWN, 0);
    assert_int_equal(v.pid, 50);
    press(&v, TMK_KEY_PAGE_DOWN, 0);
    assert_int_equal(v.pid, 20);
    type(&v, "j");
    press(&v, TMK_KEY_UP, 0);
    press(&v, TMK_KEY_HOME, 0);
    assert_int_equal(v.pid, 30);
    press(&v, TMK_KEY_UP, 0);
    assert_int_equal(v.pid, 30);
    press(&v, TMK_KEY_END, 0);
    assert_int_equal(v.pid, 20);
    type(&v, "I"); /* the selection stays with the process */
    press(&v, TMK_KEY_DOWN, 0);
    assert_int_equal(v.pid, 50);
    v.pid = 77; /* one that has ended */
    press(&v, TMK_KEY_UP, 0);
    assert_int_equal(v.pid, 20);
}

static void test_graphs(void **state)
{
    (void)state;
    static const struct {
        unsigned first, most;
        enum tmk_key_kind key;
        unsigned graph;
    } cases[] = {
        {0, 2, TMK_KEY_RIGHT, 1}, {1, 2, TMK_KEY_RIGHT, 2}, {2, 2, TMK_KEY_RIGHT, 2},
        {2, 2, TMK_KEY_LEFT, 1},  {0, 2, TMK_KEY_LEFT, 0},
    };
    struct tmk_choice v = tmk_choice_start(false, NULL);
    assert_int_equal(v.graph, TMK_GRAPH_OF_SELECTED);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_hits shown = {.graph_first = cases[i].first, .graph_most = cases[i].most};
        struct tmk_key key = {.kind = cases[i].key};
        tmk_choice_key(&v, &key, &model, &shown);
        assert_int_equal(v.graph, cases[i].graph);
    }
    type(&v, "g");
    assert_int_equal(v.graph, TMK_GRAPH_OF_SELECTED);
}

static void test_pages(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    press(&v, TMK_KEY_ENTER, 0);
    assert_true(v.shown == TMK_SHOWN_DETAILS && v.pid == 30);
    for (int i = 0; i < 9; i++)
        press(&v, TMK_KEY_DOWN, 0);
    assert_true(v.scroll == 5 && v.pid == 30);
    type(&v, "?");
    assert_int_equal(v.shown, TMK_SHOWN_HELP);
    type(&v, "?q");
    assert_true(v.shown == TMK_SHOWN_DETAILS && !v.ends);
    type(&v, "s/r"); /* of the list only */
    assert_true(v.sort == TMK_SORT_USED && !(v.asks == TMK_ASKS_FILTER) && !v.is_reversed);
    press(&v, TMK_KEY_ESCAPE, 0);
    assert_int_equal(v.shown, TMK_SHOWN_LIST);
    press(&v, TMK_KEY_ESCAPE, 0);
    assert_false(v.ends);
    type(&v, " ");
    assert_true(v.is_paused);
    type(&v, " q");
    assert_true(!v.is_paused && v.ends);
    strcpy(v.filter, "no such");
    press(&v, TMK_KEY_ENTER, 0);
    assert_int_equal(v.shown, TMK_SHOWN_LIST);
}

static void test_sorting(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    type(&v, "s");
    assert_int_equal(v.sort, TMK_SORT_COMMAND);
    type(&v, ">");
    assert_int_equal(v.sort, TMK_SORT_PID);
    type(&v, "<S");
    assert_int_equal(v.sort, TMK_SORT_USED);
    v.sort = TMK_SORT_HOST; /* not on the screen */
    type(&v, "s");
    assert_int_equal(v.sort, TMK_SORT_PID);
    click(&v, 17, 10);
    assert_true(v.sort == TMK_SORT_COMMAND && !v.is_reversed);
    click(&v, 35, 10);
    assert_true(v.sort == TMK_SORT_COMMAND && v.is_reversed);
    click(&v, 7, 10); /* between two titles */
    assert_int_equal(v.sort, TMK_SORT_COMMAND);
}

static void test_clicks(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL); /* 30 40 10 50 20, from 40 on */
    click(&v, 3, 12);
    assert_true(v.pid == 10 && v.shown == TMK_SHOWN_LIST);
    click(&v, 3, 14); /* below */
    assert_int_equal(v.pid, 10);
    click(&v, 3, 12);
    assert_int_equal(v.shown, TMK_SHOWN_DETAILS);
    click(&v, 3, 11);
    assert_int_equal(v.pid, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_filter),
        cmocka_unit_test(test_moving),  cmocka_unit_test(test_pages),
        cmocka_unit_test(test_sorting), cmocka_unit_test(test_clicks),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
