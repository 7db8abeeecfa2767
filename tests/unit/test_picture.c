/* SPDX-License-Identifier: MIT */
/* The screens of `top`, drawn from made-up models and compared with the files of tests/tui/golden.
 * TIDEMARK_GOLDEN=write writes these anew: then look at them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "device/device.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "passes/forecast.h"
#include "trace/layout.h"
#include "tui/choice.h"
#include "tui/details.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/picture.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* ---- models ---- */

static struct tmk_top_model model;

static void add_history(struct tmk_top_device *d, unsigned kind)
{
    d->n_history = 300;
    for (unsigned i = 0; i < d->n_history; i++) {
        double wave = kind % 3 == 0   ? 0.5 + 0.4 * sin(i / 9.0)
                      : kind % 3 == 1 ? (double)(i % 60) / 60
                                      : (double)i / 300;
        d->history[i] = (uint64_t)((double)d->memory.used_bytes * wave);
    }
    d->history[d->n_history - 1] = d->memory.used_bytes;
}

static void make_device(unsigned i, uint64_t total_gib, double used_gib)
{
    struct tmk_top_device *d = &model.devices[i];
    d->about = (struct tmk_device){.kind = TMK_DEVICE_NVIDIA, .number = i, .card = i};
    snprintf(d->label, sizeof d->label, "%u", i);
    snprintf(d->about.name, sizeof d->about.name, "NVIDIA H100 80GB HBM3");
    d->memory.total_bytes = total_gib * GIB;
    d->memory.used_bytes = (uint64_t)(used_gib * (double)GIB);
    d->memory.reserved_bytes = GIB / 2;
    d->load = (struct tmk_device_load){97 - i * 10, 512345 + i * 1000, 700000, 61 + i};
    d->stalled = TMK_LOAD_UNKNOWN;
    add_history(d, i);
}

/* `n` cards and the host; of more than three the last card cannot be asked. */
static void make_devices(unsigned n)
{
    static const double used[] = {41.5, 78.9, 66.25, 12.5, 0, 0.75, 33.3, 80};
    model.n_devices = n + 1;
    model.devices = calloc(n + 1, sizeof *model.devices);
    for (unsigned i = 0; i < n; i++)
        make_device(i, 80, used[i % 8]);
    if (n > 3) {
        struct tmk_top_device *lost = &model.devices[n - 1];
        lost->memory =
            (struct tmk_device_memory){TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN};
        strcpy(lost->reason, "the card has fallen off the bus");
        for (unsigned i = 0; i < lost->n_history; i++)
            lost->history[i] = TMK_BYTES_UNKNOWN;
    }
    make_device(n, 512, 64);
    strcpy(model.devices[n].label, "host");
    model.devices[n].about.kind = TMK_DEVICE_HOST;
    model.devices[n].memory.reserved_bytes = TMK_BYTES_UNKNOWN;
    model.devices[n].load =
        (struct tmk_device_load){37, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN};
    if (n > 2) /* one tells less, one nothing */
        model.devices[2].load.power_limit_mw = TMK_LOAD_UNKNOWN;
    if (n > 4)
        model.devices[4].load = (struct tmk_device_load){TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN,
                                                         TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN};
}

static struct tmk_top_process *add_process(uint32_t pid, const char *user, const char *devices,
                                           uint64_t used_bytes, const char *command)
{
    struct tmk_top_process *p = &model.processes[model.n_processes++];
    *p = (struct tmk_top_process){
        .pid = pid, .used_bytes = used_bytes, .host_bytes = 3 * GIB + pid * MIB};
    strcpy(p->user, user);
    strcpy(p->devices, devices);
    strcpy(p->command, command);
    return p;
}

static void watch(struct tmk_top_process *p, int64_t rank, uint64_t allocated, uint64_t reserved,
                  uint64_t peak, int64_t step)
{
    p->is_watched = true;
    p->job = (struct tmk_job){.pid = p->pid,
                              .has_memory = true,
                              .device = 256,
                              .rank = rank,
                              .step = step,
                              .allocated_bytes = allocated,
                              .reserved_bytes = reserved,
                              .peak_bytes = peak};
    strcpy(p->job.run, "/home/ana/runs/long-name-of-an-experiment.tmk");
}

static const struct tmk_forecast runs_out = {.risk = TMK_RISK_HIGH,
                                             .cause = TMK_GROWTH_LEAK,
                                             .has_time = true,
                                             .by_step = true,
                                             .seconds_to_oom = 2835.5,
                                             .steps_to_oom = 8203,
                                             .has_confidence = true,
                                             .confidence = 0.87};

static void make_processes(void)
{
    model.processes = calloc(64, sizeof *model.processes);
    model.n_processes = 0;
    watch(add_process(3977, "ana", "0", 41 * GIB + GIB / 2, "python3 train.py --lr 3e-4"), 0,
          38 * GIB, 40 * GIB, 39 * GIB + 512 * MIB, 12345);
    watch(add_process(3978, "ana", "1-2,5", 145 * GIB, "python3 train.py --lr 3e-4"), 1, 38 * GIB,
          TMK_BYTES_UNKNOWN, 40 * GIB, 12345);
    watch(add_process(4100, "bo", "", TMK_BYTES_UNKNOWN, "python3 on_the_cpu.py"), -1, 300 * MIB,
          TMK_BYTES_UNKNOWN, 812 * MIB, TMK_NO_STEP);
    model.processes[2].job.device = 0;
    strcpy(model.processes[2].job.run, "/home/bo/cpu.tmk");
    model.processes[0].job.forecast = runs_out;
    model.processes[0].job.has_growth = model.processes[1].job.has_growth = true;
    model.processes[0].job.bytes_per_step = 393216;
    model.processes[0].job.step_ns = 345678901;
    model.processes[1].job.forecast.risk = TMK_RISK_LOW;
    add_process(120, "root", "3", 12 * GIB, "训练任务 --配置 超长的名字.yaml --另一个参数 值");
    add_process(99, "", "3", TMK_BYTES_UNKNOWN, "");
    add_process(5120, "a-very-long-user", "6", 512 * MIB, "serve\x1b[31m --port 80");
    watch(add_process(6000, "cy", "7", 33 * GIB, "python3 new.py"), -1, 0, 0, 0, 0);
    strcpy(model.processes[6].job.run, "/home/cy/new.tmk");
    model.processes[6].job.has_memory = false;
}

static struct tmk_details details;

static void add_row(enum tmk_details_list list, const char *key, uint64_t now, uint64_t peak)
{
    struct tmk_details_row *row = &details.rows[list][details.n_rows[list]++];
    snprintf(row->key, sizeof row->key, "%s", key);
    row->now_bytes = now;
    row->peak_bytes = peak;
}

static void make_details(void)
{
    details = (struct tmk_details){.pid = 3977,
                                   .has_memory = true,
                                   .has_peak = true,
                                   .device = 256,
                                   .now_bytes = 38 * GIB,
                                   .peak_bytes = 39 * GIB + 512 * MIB,
                                   .peak_ns = 123456789012,
                                   .peak_step = 12001,
                                   .reserved_bytes = 40 * GIB,
                                   .card = "torch 40.00 GiB, nccl 1.00 GiB, context 512.0 MiB, "
                                           "others 0 B",
                                   .n_steps = 12345,
                                   .step_ns = 345678901,
                                   .bytes_per_step = 393216,
                                   .forecast = runs_out};
    char key[64];
    add_row(TMK_DETAILS_CATEGORIES, "activation", 20 * GIB, 21 * GIB);
    add_row(TMK_DETAILS_CATEGORIES, "parameter", 12 * GIB, 12 * GIB);
    add_row(TMK_DETAILS_CATEGORIES, "optimizer_state", 6 * GIB, 6 * GIB);
    add_row(TMK_DETAILS_CATEGORIES, "temporary", 0, 512 * MIB);
    for (unsigned i = 0; i < TMK_DETAILS_ROWS; i++) {
        snprintf(key, sizeof key, "model.decoder.layers.%u.self_attn.q_proj", i);
        add_row(TMK_DETAILS_MODULES, key, (40 - i) * 40 * MIB, (41 - i) * 40 * MIB);
    }
    details.n_more[TMK_DETAILS_MODULES] = 17;
    add_row(TMK_DETAILS_LINES, "/home/ana/src/project/models/attention.py:123 forward", 9 * GIB,
            10 * GIB);
    add_row(TMK_DETAILS_LINES, "train.py:34 <module>", 512 * MIB, 512 * MIB);
    add_row(TMK_DETAILS_LINES, "", 77, 0);
    model.details = &details;
}

/* Histories of the ranks of a run and of another process, which began later. */
static struct tmk_top_series series[3];
static struct tmk_top_series *all_series[] = {&series[0], &series[1], &series[2]};

static void make_series(void)
{
    static const struct {
        uint32_t pid;
        bool is_watched;
        unsigned n;
        uint64_t from, to;
    } each[] = {{3977, true, 300, 30 * GIB, 38 * GIB},
                {3978, true, 20, 1 * GIB, 38 * GIB},
                {120, false, 9, 12 * GIB, 12 * GIB}};
    for (unsigned i = 0; i < 3; i++) {
        series[i] = (struct tmk_top_series){
            .pid = each[i].pid, .is_watched = each[i].is_watched, .n = each[i].n};
        for (unsigned k = 0; k < each[i].n; k++)
            series[i].bytes[k] = each[i].from + (each[i].to - each[i].from) * k / (each[i].n - 1);
    }
    series[0].bytes[290] = TMK_BYTES_UNKNOWN;
    model.series = all_series;
    model.n_series = 3;
}

static void make_model(unsigned n_cards)
{
    model = (struct tmk_top_model){.n_looks = 300};
    for (unsigned i = 0; i < model.n_looks; i++)
        model.look_ns[i] = (uint64_t)i * 1000000000;
    strcpy(model.host, "node7");
    strcpy(model.clock, "12:31:05");
    strcpy(model.driver, "driver 580.95.05, CUDA 13.0");
    make_devices(n_cards);
    make_processes();
}

static void free_model(void)
{
    free(model.devices);
    free(model.processes);
}

/* ---- comparing ---- */

static char *read_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t n = 0;
    if (in && getdelim(&text, &n, EOF, in) < 0)
        fail_msg("%s is empty", path);
    if (in)
        fclose(in);
    return text;
}

static void compare(const char *name, const char *text)
{
    char path[200];
    const char *mode = getenv("TIDEMARK_GOLDEN");
    snprintf(path, sizeof path, "tests/tui/golden/%s.txt", name);
    if (mode && strcmp(mode, "write") == 0) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(text, out);
        fclose(out);
        return;
    }
    char *wanted = read_file(path);
    if (!wanted || strcmp(wanted, text) != 0)
        fail_msg("not as %s:\n%s", path, text);
    free(wanted);
}

static struct tmk_hits draw(struct tmk_grid *g, unsigned width, unsigned height,
                            const struct tmk_choice *choice)
{
    struct tmk_hits hits;
    assert_int_equal(tmk_grid_init(g, width, height, choice->ascii), 0);
    assert_int_equal(tmk_picture_draw(g, &model, choice, &hits), 0);
    return hits;
}

static void check(const char *name, unsigned width, unsigned height,
                  const struct tmk_choice *choice)
{
    struct tmk_grid g;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    draw(&g, width, height, choice);
    tmk_grid_write(&g, out);
    fclose(out);
    compare(name, text);
    tmk_grid_fini(&g);
    free(text);
}

static void check_page(const char *name, unsigned width, const struct tmk_choice *choice)
{
    struct tmk_grid g;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(tmk_picture_page(&g, width, &model, choice), 0);
    tmk_grid_write(&g, out);
    fclose(out);
    compare(name, text);
    tmk_grid_fini(&g);
    free(text);
}

/* ---- screens ---- */

static void test_list(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(8);
    check("list_80x24", 80, 24, &choice);
    check("list_120x40", 120, 40, &choice);
    check("list_200x60", 200, 60, &choice);
    check("list_40x10", 40, 10, &choice);
    check("list_20x5", 20, 5, &choice);
    choice.ascii = true;
    check("list_ascii_80x24", 80, 24, &choice);
    free_model();
}

static void test_other_lists(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(1);
    check("one_card_80x24", 80, 24, &choice);
    choice.sort = TMK_SORT_COMMAND;
    choice.is_reversed = true;
    choice.is_paused = true;
    strcpy(choice.filter, "PYTHON");
    check("filter_80x24", 80, 24, &choice);
    choice.asks = TMK_ASKS_FILTER;
    strcpy(choice.filter, "no such");
    check("filter_none_80x24", 80, 24, &choice);
    free_model();
    make_model(20);
    check("many_cards_80x24", 80, 24, &choice);
    free_model();
    choice = tmk_choice_start(false, NULL);
    make_model(0);
    model.n_processes = 0;
    model.driver[0] = '\0';
    strcpy(model.problem, "NVML was not found (libnvidia-ml.so.1); see: tidemark doctor");
    check("no_card_80x24", 80, 24, &choice);
    free_model();
}

/* The selected line has a graph: a run the sum of its processes, of which one began later; near the
 * capacity that is marked. */
static void test_graphs(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(2);
    make_series();
    choice.run = tmk_choice_run_key(&model.processes[0]);
    check("graph_run_120x40", 120, 40, &choice);
    choice.run = 0;
    choice.pid = 3977;
    model.processes[0].job.forecast.capacity_bytes = 40 * GIB;
    check("graph_process_80x24", 80, 24, &choice);
    choice.pid = 120;
    choice.graph = 1;
    check("graph_unwatched_100x30", 100, 30, &choice);
    free_model();
}

/* The host says when its processes wait for memory; a GPU that is divided says nothing of its load.
 */
static void test_stalled_host(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(1);
    model.n_processes = 0;
    model.devices[1].stalled = 1234;
    check_page("stalled_page_80", 80, &choice);
    free_model();
}

/* What the last line and the list of signals look like, from a wide screen to a narrow one. */
static void test_questions(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(8);
    choice.pid = 3977;
    choice.wish.pid = 3977;
    strcpy(choice.asked_command, "python3 train.py --lr 3e-4");
    choice.asks = TMK_ASKS_SIGNAL;
    choice.signal = 2;
    check("signals_80x24", 80, 24, &choice);
    choice.signal = 8;
    check("signals_40x10", 40, 10, &choice);
    choice.asks = TMK_ASKS_YES;
    choice.signal = 0;
    check("question_80x24", 80, 24, &choice);
    check("question_40x10", 40, 10, &choice);
    choice.asks = TMK_ASKS_NOTHING;
    strcpy(choice.message, "SIGTERM was sent to 3977");
    choice.folded[choice.n_folded++] = tmk_choice_run_key(&model.processes[0]);
    check("message_folded_80x24", 80, 24, &choice);
    free_model();
}

static void test_short_texts(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } times[] = {{0, "0s"},         {59.4, "59s"},     {59.6, "1m00s"},    {3599, "59m59s"},
                 {3600, "1h00m"},   {86399, "23h59m"}, {86400, "1d00h"},   {864000, "10d00h"},
                 {86400e2, "100d"}, {-5, "0s"},        {1e11, "1157407d"}, {1e13, ">9999d"}};
    static const struct {
        uint64_t bytes, end;
    } ends[] = {{0, 1024},
                {1025, 2048},
                {3 * GIB, 3 * GIB},
                {3 * GIB + 1, 4 * GIB},
                {40 * GIB, 48 * GIB},
                {49 * GIB, 64 * GIB},
                {100 * GIB, 128 * GIB}};
    char buffer[TMK_FORECAST_CELL_BYTES];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_string_equal(tmk_short_time(times[i].seconds, buffer), times[i].text);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        assert_int_equal(tmk_picture_axis_end(ends[i].bytes), ends[i].end);
}

static void test_forecasts(void **state)
{
    (void)state;
    struct tmk_forecast f = {0};
    char buffer[TMK_FORECAST_CELL_BYTES];
    assert_string_equal(tmk_picture_forecast(&f, 40, buffer), "-");
    f.risk = TMK_RISK_LOW;
    assert_string_equal(tmk_picture_forecast(&f, 9, buffer), "low");
    f = runs_out;
    assert_string_equal(tmk_picture_forecast(&f, 9, buffer), "47m16s");
    assert_string_equal(tmk_picture_forecast(&f, 23, buffer), "high 47m16s (0.87)");
    assert_string_equal(tmk_picture_forecast(&f, 40, buffer), "high: 47m16s, 8,203 steps (0.87)");
    f.has_confidence = f.by_step = false;
    assert_string_equal(tmk_picture_forecast(&f, 40, buffer), "high: 47m16s");
    f.has_run_out = true;
    assert_string_equal(tmk_picture_forecast(&f, 9, buffer), "OOM");
}

/* Red is an OOM to come, yellow is growth: of the rank that has them and of its run. */
static void test_inks(void **state)
{
    (void)state;
    enum { TABLE_Y = 13, GROWTH_X = 56, FORECAST_X = 66 }; /* the last columns of both */
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    struct tmk_grid g;
    make_model(8);
    choice.pid = 120;
    draw(&g, 80, 24, &choice);
    static const struct {
        unsigned row;
        enum tmk_ink growth, forecast;
    } rows[] = {{0, TMK_INK_WARN, TMK_INK_BAD},    /* the run */
                {1, TMK_INK_PLAIN, TMK_INK_PLAIN}, /* "0", "low" */
                {2, TMK_INK_WARN, TMK_INK_BAD},
                {3, TMK_INK_DIM, TMK_INK_DIM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned y = TABLE_Y + rows[i].row;
        assert_int_equal(tmk_grid_cell(&g, GROWTH_X, y)->ink, rows[i].growth);
        assert_int_equal(tmk_grid_cell(&g, FORECAST_X, y)->ink, rows[i].forecast);
    }
    tmk_grid_fini(&g);
    free_model();
}

/* That nobody is listed does not mean that nobody is there. */
static void test_unlisted(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(4); /* the last is lost, and says so in its line */
    strcpy(model.devices[1].users_reason, "NVML, card 1: Insufficient Permissions (4)");
    check("unlisted_80x24", 80, 24, &choice);
    strcpy(model.devices[2].users_reason, "NVML, card 2: Insufficient Permissions (4)");
    strcpy(model.devices[3].users_reason, "the card has fallen off the bus");
    model.devices[0].n_left_out = 1488;
    model.n_processes = 0;
    check("unlisted_all_80x24", 80, 24, &choice);
    check_page("unlisted_page_80", 80, &choice);
    free_model();
}

static void test_details(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(8);
    choice.shown = TMK_SHOWN_DETAILS;
    choice.pid = 3977;
    model.details_percent = 42;
    check("details_reading_80x24", 80, 24, &choice);
    make_details();
    check("details_80x24", 80, 24, &choice);
    check("details_120x40", 120, 40, &choice);
    check("details_200x60", 200, 60, &choice);
    check("details_40x10", 40, 10, &choice);
    choice.scroll = 40;
    check("details_scrolled_80x24", 80, 24, &choice);
    details.has_peak = false;
    details.reserved_bytes = UINT64_MAX;
    details.card[0] = '\0';
    choice.scroll = 0;
    choice.pid = 3978;
    check("details_no_peak_80x24", 80, 24, &choice);
    tmk_fail(&details.problem, TMK_EPROCESS,
             "process 120 is not watched; to watch it: tidemark "
             "attach 120");
    choice.pid = 120;
    check("details_not_watched_80x24", 80, 24, &choice);
    choice.shown = TMK_SHOWN_HELP;
    check("help_80x24", 80, 24, &choice);
    free_model();
}

static void test_page(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(8);
    check_page("page_100", 100, &choice);
    free_model();
}

/* Whatever the size, nothing is drawn outside (the sanitizers look on) and every row is as wide as
 * the screen. */
static void test_any_size(void **state)
{
    (void)state;
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(8);
    make_details();
    choice.pid = 3977;
    for (unsigned width = 0; width < 130; width += width < 24 ? 1 : 7)
        for (unsigned height = 0; height < 50; height++)
            for (unsigned shown = 0; shown < 3; shown++) {
                struct tmk_grid g;
                choice.shown = (enum tmk_shown)shown;
                choice.asks = (enum tmk_asking)(height % 4);
                draw(&g, width, height, &choice);
                for (unsigned y = 0; y < height; y++)
                    for (unsigned x = 0; x < width; x++)
                        if (tmk_grid_cell(&g, x, y)->c == 0) /* half of a wide one */
                            assert_true(x > 0 && tmk_grid_cell(&g, x - 1, y)->c > 0x1100);
                tmk_grid_fini(&g);
            }
    free_model();
}

/* What a driver keeps for itself cannot be had: a card is full without it. */
static void test_full_card(void **state)
{
    (void)state;
    enum { BAR_X = 46, BAR_Y = 2, GRAPH_X = 38, GRAPH_Y = 11 }; /* of the last sample */
    struct tmk_choice choice = tmk_choice_start(false, NULL);
    make_model(1);
    make_device(0, 8, 7.5);
    for (unsigned is_known = 0; is_known < 2; is_known++) {
        struct tmk_grid g;
        char *text = NULL;
        size_t n = 0;
        model.devices[0].memory.reserved_bytes = is_known ? GIB / 2 : TMK_BYTES_UNKNOWN;
        draw(&g, 80, 24, &choice);
        FILE *out = open_memstream(&text, &n);
        tmk_grid_write(&g, out);
        fclose(out);
        assert_non_null(strstr(text, is_known ? "7.50/8.00G 100 %" : "7.50/8.00G  94 %"));
        enum tmk_ink ink = is_known ? TMK_INK_BAD : TMK_INK_WARN;
        assert_int_equal(tmk_grid_cell(&g, BAR_X, BAR_Y)->ink, ink);
        assert_int_equal(tmk_grid_cell(&g, GRAPH_X, GRAPH_Y)->ink, ink);
        free(text);
        tmk_grid_fini(&g);
    }
    free_model();
}

/* ---- cells ---- */

static void test_grid_cuts(void **state)
{
    (void)state;
    struct tmk_grid g;
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(tmk_grid_init(&g, 8, 7, false), 0);
    assert_int_equal(tmk_grid_put(&g, 0, 0, 8, TMK_INK_PLAIN, "12345678"), 8);
    assert_int_equal(tmk_grid_put(&g, 0, 1, 8, TMK_INK_PLAIN, "123456789"), 8);
    assert_int_equal(tmk_grid_put(&g, 0, 2, 4, TMK_INK_PLAIN, "中文字"), 3);
    assert_int_equal(tmk_grid_put_end(&g, 0, 3, 4, TMK_INK_PLAIN, "a.b.tail"), 4);
    assert_int_equal(tmk_grid_put_end(&g, 0, 4, 4, TMK_INK_PLAIN, "中文字"), 3);
    tmk_grid_put(&g, 7, 5, 8, TMK_INK_PLAIN, "中");
    tmk_grid_put(&g, 0, 5, 8, TMK_INK_PLAIN, "\x1b[m");
    tmk_grid_right(&g, 0, 6, 8, TMK_INK_PLAIN, "e\xcc\x81nd");
    tmk_grid_put(&g, 0, 99, 8, TMK_INK_PLAIN, "outside");
    tmk_grid_write(&g, out);
    fclose(out);
    assert_string_equal(text, "12345678\n1234567…\n中…\n…ail\n…字\n\xef\xbf\xbd[m\n     end\n");
    free(text);
    tmk_grid_fini(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),        cmocka_unit_test(test_other_lists),
        cmocka_unit_test(test_details),     cmocka_unit_test(test_page),
        cmocka_unit_test(test_any_size),    cmocka_unit_test(test_grid_cuts),
        cmocka_unit_test(test_unlisted),    cmocka_unit_test(test_full_card),
        cmocka_unit_test(test_graphs),      cmocka_unit_test(test_questions),
        cmocka_unit_test(test_short_texts), cmocka_unit_test(test_forecasts),
        cmocka_unit_test(test_inks),        cmocka_unit_test(test_stalled_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
