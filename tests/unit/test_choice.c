/* SPDX-License-Identifier: MIT */
/* What keys and clicks of `top` do, without a terminal. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "passes/forecast.h"
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

/* ---- runs ---- */

/* Two runs of two ranks each and another process; `used` sorts them 5 2 1 4 3. */
static struct tmk_top_process ranks[] = {
    {.pid = 1, .used_bytes = 30, .is_watched = true, .job = {.rank = 0, .run = "/r/a.tmk"}},
    {.pid = 2, .used_bytes = 40, .is_watched = true, .job = {.rank = 0, .run = "/r/b.tmk"}},
    {.pid = 3, .used_bytes = 10, .is_watched = true, .job = {.rank = 1, .run = "/r/b.tmk"}},
    {.pid = 4, .used_bytes = 20, .is_watched = true, .job = {.rank = 1, .run = "/r/a.tmk"}},
    {.pid = 5, .used_bytes = 50, .start_ticks = 77, .command = "serve"},
};
static const struct tmk_top_model run_model = {.processes = ranks, .n_processes = 5};

static void press_in_runs(struct tmk_choice *v, enum tmk_key_kind kind, uint32_t c)
{
    struct tmk_key key = {.kind = kind, .c = c};
    tmk_choice_key(v, &key, &run_model, &hits);
}

/* Lines as "5 2:2 2 3 1:2 1 4": PIDs; of a run the PID of its first process and how many it has. */
static void check_rows(const struct tmk_choice *v, const char *wanted)
{
    struct tmk_top_row rows[10];
    char text[100] = "", *end = text;
    uint32_t n = tmk_choice_rows(v, &run_model, rows);
    for (uint32_t i = 0; i < n; i++) {
        end += sprintf(end, "%s%u", i ? " " : "", ranks[rows[i].process].pid);
        if (rows[i].n)
            end += sprintf(end, ":%u", rows[i].n);
        assert_false(rows[i].n && rows[i].is_member);
    }
    assert_string_equal(text, wanted);
}

static void test_runs(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    check_rows(&v, "5 2:2 2 3 1:2 1 4");
    v.sort = TMK_SORT_RANK;
    check_rows(&v, "5 1:2 1 4 2:2 2 3");
    v.sort = TMK_SORT_USED;
    v.is_reversed = true;
    check_rows(&v, "3:2 3 2 4:2 4 1 5");
    v.is_reversed = false;
    strcpy(v.filter, "b.tmk"); /* the name of a run */
    check_rows(&v, "2:2 2 3");
    strcpy(v.filter, "4"); /* one that is left of a run needs no line of the run */
    check_rows(&v, "4");
    v.filter[0] = '\0';
    press_in_runs(&v, TMK_KEY_CHARACTER, 't');
    check_rows(&v, "5 2 1 4 3");
}

static void test_folding(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    press_in_runs(&v, TMK_KEY_TAB, 0); /* 5 is in no run */
    check_rows(&v, "5 2:2 2 3 1:2 1 4");
    for (int i = 0; i < 3; i++)
        press_in_runs(&v, TMK_KEY_DOWN, 0);
    assert_true(v.pid == 3 && v.run == 0);
    press_in_runs(&v, TMK_KEY_TAB, 0);
    check_rows(&v, "5 2:2 1:2 1 4");
    assert_int_equal(v.run, tmk_choice_run_key(&ranks[1])); /* its line is chosen then */
    press_in_runs(&v, TMK_KEY_DOWN, 0);
    assert_int_equal(v.run, tmk_choice_run_key(&ranks[0]));
    press_in_runs(&v, TMK_KEY_ENTER, 0); /* folds too */
    check_rows(&v, "5 2:2 1:2");
    assert_int_equal(v.shown, TMK_SHOWN_LIST);
    press_in_runs(&v, TMK_KEY_UP, 0);
    press_in_runs(&v, TMK_KEY_ENTER, 0);
    check_rows(&v, "5 2:2 2 3 1:2");
    press_in_runs(&v, TMK_KEY_DOWN, 0);
    press_in_runs(&v, TMK_KEY_ENTER, 0);
    assert_true(v.shown == TMK_SHOWN_DETAILS && v.pid == 2);
}

static void test_commands(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    press_in_runs(&v, TMK_KEY_CHARACTER, 'r');
    assert_int_equal(v.wish.kind, TMK_WISH_NONE);
    assert_string_equal(v.message, "5 is not watched; to watch it: tidemark attach 5");
    press_in_runs(&v, TMK_KEY_DOWN, 0);
    assert_string_equal(v.message, "");
    press_in_runs(&v, TMK_KEY_CHARACTER, 'l');
    assert_true(v.wish.kind == TMK_WISH_COMMAND);
    assert_string_equal(v.wish.command, "leak");
    assert_string_equal(v.wish.target, "/r/b.tmk"); /* of a run's line */
    press_in_runs(&v, TMK_KEY_DOWN, 0);
    press_in_runs(&v, TMK_KEY_CHARACTER, 'e');
    assert_string_equal(v.wish.command, "explain");
    assert_string_equal(v.wish.target, "2");
    press_in_runs(&v, TMK_KEY_ENTER, 0); /* the details have the keys too */
    press_in_runs(&v, TMK_KEY_CHARACTER, 'r');
    assert_string_equal(v.wish.command, "report");
}

static void test_signals(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    press_in_runs(&v, TMK_KEY_CHARACTER, 'k');
    assert_int_equal(v.asks, TMK_ASKS_SIGNAL);
    press_in_runs(&v, TMK_KEY_UP, 0);
    assert_string_equal(tmk_signal_names[v.signal].name, "SIGTERM");
    press_in_runs(&v, TMK_KEY_CHARACTER, 'j');
    press_in_runs(&v, TMK_KEY_DOWN, 0);
    press_in_runs(&v, TMK_KEY_ENTER, 0);
    assert_true(v.asks == TMK_ASKS_YES && v.wish.kind == TMK_WISH_NONE);
    press_in_runs(&v, TMK_KEY_RESIZE, 0); /* is no answer */
    assert_int_equal(v.asks, TMK_ASKS_YES);
    press_in_runs(&v, TMK_KEY_ENTER, 0); /* anything but y is no */
    assert_true(v.asks == TMK_ASKS_NOTHING && v.wish.kind == TMK_WISH_NONE);
    assert_string_equal(v.message, "no signal was sent");
    press_in_runs(&v, TMK_KEY_CHARACTER, 'k');
    press_in_runs(&v, TMK_KEY_ENTER, 0);
    press_in_runs(&v, TMK_KEY_CHARACTER, 'y');
    assert_true(v.wish.kind == TMK_WISH_SIGNAL && v.wish.pid == 5 && v.wish.start_ticks == 77 &&
                v.wish.signal == SIGTERM);
    v.wish = (struct tmk_wish){0};
    press_in_runs(&v, TMK_KEY_CHARACTER, 'k');
    press_in_runs(&v, TMK_KEY_ESCAPE, 0);
    assert_true(v.asks == TMK_ASKS_NOTHING && v.wish.kind == TMK_WISH_NONE);
    press_in_runs(&v, TMK_KEY_DOWN, 0); /* a run */
    press_in_runs(&v, TMK_KEY_CHARACTER, 'k');
    assert_string_equal(v.message, "a signal goes to one process: choose it below its run");
    press_in_runs(&v, TMK_KEY_DOWN, 0); /* not in our /proc */
    press_in_runs(&v, TMK_KEY_CHARACTER, 'k');
    assert_string_equal(v.message, "2 cannot be seen from here, so it gets no signal");
    assert_int_equal(v.asks, TMK_ASKS_NOTHING);
}

static void test_intervals(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    type(&v, "-");
    assert_true(v.interval_s == 2);
    type(&v, "++");
    assert_true(v.interval_s == 0.5);
    assert_string_equal(v.message, "a look every 0.5 s");
    type(&v, "+++++");
    assert_true(v.interval_s == 0.1);
    v.interval_s = 3600; /* more than any that a key chooses */
    type(&v, "-");
    assert_true(v.interval_s == 3600);
    type(&v, "+p");
    assert_true(v.interval_s == 60 && v.is_paused);
}

static void test_sort_keys(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        enum tmk_sort sort;
        bool is_reversed;
    } cases[] = {
        {"P", TMK_SORT_PID, false},    {"R", TMK_SORT_RANK, false},
        {"G", TMK_SORT_GROWTH, false}, {"O", TMK_SORT_FORECAST, false},
        {"M", TMK_SORT_USED, false},   {"M", TMK_SORT_USED, true}, /* again: reversed */
        {"GI", TMK_SORT_GROWTH, true},
    };
    struct tmk_choice v = tmk_choice_start(false, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        type(&v, cases[i].keys);
        assert_true(v.sort == cases[i].sort && v.is_reversed == cases[i].is_reversed);
    }
}

/* Sorted by growth and forecast: what is not known comes last, the soonest OOM first. */
static void test_order_by_forecast(void **state)
{
    (void)state;
    struct tmk_choice v = tmk_choice_start(false, NULL);
    struct tmk_top_process four[4] = {
        {.pid = 1, .is_watched = true, .job = {.has_memory = true}},
        {.pid = 2, .is_watched = true, .job = {.has_memory = true, .has_growth = true}},
        {.pid = 3, .is_watched = true},
        {.pid = 4,
         .is_watched = true,
         .job = {.has_memory = true, .has_growth = true, .bytes_per_step = 5}}};
    const struct tmk_top_model m = {.processes = four, .n_processes = 4};
    static const uint32_t by_growth[] = {3, 1, 0, 2}, by_oom[] = {1, 3, 0, 2};
    uint32_t order[4];
    four[0].job.forecast = (struct tmk_forecast){.risk = TMK_RISK_LOW};
    four[1].job.forecast =
        (struct tmk_forecast){.risk = TMK_RISK_HIGH, .has_time = true, .seconds_to_oom = 60};
    four[3].job.forecast =
        (struct tmk_forecast){.risk = TMK_RISK_HIGH, .has_time = true, .seconds_to_oom = 600};
    v.sort = TMK_SORT_GROWTH;
    assert_int_equal(tmk_choice_order(&v, &m, order), 4);
    assert_memory_equal(order, by_growth, sizeof order);
    v.sort = TMK_SORT_FORECAST;
    assert_int_equal(tmk_choice_order(&v, &m, order), 4);
    assert_memory_equal(order, by_oom, sizeof order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_filter),
        cmocka_unit_test(test_moving),    cmocka_unit_test(test_pages),
        cmocka_unit_test(test_sorting),   cmocka_unit_test(test_clicks),
        cmocka_unit_test(test_graphs),    cmocka_unit_test(test_runs),
        cmocka_unit_test(test_folding),   cmocka_unit_test(test_commands),
        cmocka_unit_test(test_signals),   cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_sort_keys), cmocka_unit_test(test_order_by_forecast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
