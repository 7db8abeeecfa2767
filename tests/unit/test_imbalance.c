/* SPDX-License-Identifier: MIT */
/* The verdict about a run's ranks: judged from facts in a table, and from traces made by hand; and
 * the clocks of the hosts that they ran on. */
#include "maker.h"

#include <dirent.h>

#include "base/array.h"
#include "base/error.h"
#include "forecast/oom_forecast.h"
#include "model/run.h"
#include "model/run_clock.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

enum { CUDA0 = 0x100, MOST_ROWS = 300 };
#define NONE TMK_RANK_NONE
#define MS 1000000u

/* ---- facts in a table ---- */

struct row {
    int64_t rank;
    uint64_t peak; /* 0: no block ever */
    uint64_t n_steps, end_ms, oom_ms;
    enum tmk_rank_end end;
    double seconds_to_oom; /* 0: it does not grow */
};

struct judged {
    const char *name;
    int64_t world;
    struct row rows[6]; /* up to the first with end_ms 0 */
    bool is_judged, is_imbalanced;
    uint32_t highest, typical, first_oom, first_ended, next_oom, n_groups;
    const char *missing, *died, *early;
};

#define CLOSED TMK_RANK_CLOSED
#define KILLED TMK_RANK_KILLED
#define RUNNING TMK_RANK_RUNNING

static const struct judged judged[] = {
    {"alike",
     4,
     {{0, 100, 9, 50, 0, CLOSED, 0},
      {1, 104, 9, 50, 0, CLOSED, 0},
      {2, 101, 9, 50, 0, CLOSED, 0},
      {3, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     1,
     0,
     NONE,
     NONE,
     NONE,
     1,
     "",
     "",
     ""},
    {"at the bound",
     3,
     {{0, 100, 9, 50, 0, CLOSED, 0}, {1, 125, 9, 50, 0, CLOSED, 0}, {2, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     1,
     0,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"above the bound",
     3,
     {{0, 100, 9, 50, 0, CLOSED, 0}, {1, 126, 9, 50, 0, CLOSED, 0}, {2, 100, 9, 50, 0, CLOSED, 0}},
     true,
     true,
     1,
     0,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"two ranks: half of both",
     2,
     {{0, 100, 9, 50, 0, CLOSED, 0}, {1, 200, 9, 50, 0, CLOSED, 0}},
     true,
     true,
     1,
     0,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"missing ones",
     9,
     {{1, 100, 9, 50, 0, CLOSED, 0}, {2, 100, 9, 50, 0, CLOSED, 0}, {5, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     0,
     1,
     NONE,
     NONE,
     NONE,
     1,
     "0, 3, 4, 6-8",
     "",
     ""},
    {"a world of a hostile trace",
     INT64_MAX,
     {{0, 100, 9, 50, 0, CLOSED, 0}, {1, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     0,
     1,
     NONE,
     NONE,
     NONE,
     1,
     "2-9223372036854775806",
     "",
     ""},
    {"one of three has no blocks",
     3,
     {{0, 100, 9, 50, 0, CLOSED, 0}, {1, 0, 0, 50, 0, CLOSED, 0}, {2, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     0,
     2,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"no ranks",
     -1,
     {{-1, 100, 9, 50, 0, CLOSED, 0}, {-1, 500, 9, 50, 0, CLOSED, 0}},
     false,
     false,
     0,
     0,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"a data loader has its rank too",
     2,
     {{0, 10, 0, 50, 0, CLOSED, 0},
      {0, 100, 9, 50, 0, CLOSED, 0},
      {0, 10, 0, 50, 0, CLOSED, 0},
      {1, 100, 9, 50, 0, CLOSED, 0}},
     true,
     false,
     1,
     3,
     NONE,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"the first of two OOMs, and who died of it",
     5,
     {{0, 100, 9, 61, 0, CLOSED, 0},
      {1, 150, 9, 62, 60, CLOSED, 0},
      {2, 150, 9, 62, 59, CLOSED, 0},
      {3, 100, 10, 70, 0, KILLED, 0},
      {4, 100, 9, 40, 0, KILLED, 0}},
     true,
     true,
     1,
     0,
     2,
     4,
     NONE,
     4,
     "",
     "0, 3",
     "4"},
    {"it went on after another's OOM",
     2,
     {{0, 100, 9, 62, 60, CLOSED, 0}, {1, 100, 30, 200, 0, CLOSED, 0}},
     true,
     false,
     0,
     1,
     0,
     NONE,
     NONE,
     2,
     "",
     "",
     ""},
    {"one was killed",
     3,
     {{0, 100, 5, 61, 0, CLOSED, 0}, {1, 100, 4, 50, 0, KILLED, 0}, {2, 100, 5, 61, 0, CLOSED, 0}},
     true,
     false,
     0,
     1,
     NONE,
     1,
     NONE,
     2,
     "",
     "",
     "1"},
    {"one made fewer steps",
     3,
     {{0, 100, 20, 61, 0, CLOSED, 0},
      {1, 100, 12, 50, 0, CLOSED, 0},
      {2, 100, 19, 61, 0, CLOSED, 0}},
     true,
     false,
     0,
     1,
     NONE,
     1,
     NONE,
     2,
     "",
     "",
     "1"},
    {"who runs out first",
     3,
     {{0, 100, 20, 61, 0, RUNNING, 0},
      {1, 100, 20, 61, 0, RUNNING, 300},
      {2, 100, 20, 61, 0, RUNNING, 200}},
     true,
     false,
     0,
     1,
     NONE,
     NONE,
     2,
     1,
     "",
     "",
     ""},
};

static void fill_rows(struct tmk_imbalance *b, const struct row *rows, uint32_t n, int64_t world)
{
    *b = (struct tmk_imbalance){.n_rows = n};
    b->rows = calloc(n, sizeof *b->rows);
    assert_non_null(b->rows);
    for (uint32_t i = 0; i < n; i++)
        b->rows[i].facts = (struct tmk_rank_facts){
            .rank = rows[i].rank,
            .world_size = world,
            .host = "",
            .pid = 4242 + i,
            .device = CUDA0,
            .has_peak = rows[i].peak > 0,
            .peak_bytes = rows[i].peak,
            .peak_step = TMK_NO_STEP,
            .n_steps = rows[i].n_steps,
            .last_step = (int64_t)rows[i].n_steps,
            .end_ns = rows[i].end_ms * MS,
            .end = rows[i].end,
            .has_oom = rows[i].oom_ms > 0,
            .oom_ns = rows[i].oom_ms * MS,
            .oom_step = TMK_NO_STEP,
            .forecast = {.risk = TMK_RISK_HIGH,
                         .has_time = rows[i].seconds_to_oom > 0,
                         .seconds_to_oom = rows[i].seconds_to_oom},
        };
}

static void free_rows(struct tmk_imbalance *b)
{
    free(b->rows);
    free(b->groups);
}

static void check_case(const struct judged *c)
{
    struct tmk_imbalance b;
    char list[TMK_RANK_LIST_BYTES];
    uint32_t n = 0;
    while (n < TMK_N(c->rows) && c->rows[n].end_ms > 0)
        n++;
    print_message("%s\n", c->name);
    fill_rows(&b, c->rows, n, c->world);
    assert_int_equal(tmk_imbalance_judge(&b), 0);
    assert_int_equal(b.is_judged, c->is_judged);
    assert_int_equal(b.is_imbalanced, c->is_imbalanced);
    if (c->is_judged) {
        assert_int_equal(b.highest, c->highest);
        assert_int_equal(b.typical, c->typical);
    }
    assert_int_equal(b.first_oom, c->first_oom);
    assert_int_equal(b.first_ended, c->first_ended);
    assert_int_equal(b.next_oom, c->next_oom);
    assert_int_equal(b.n_groups, c->n_groups);
    assert_string_equal(tmk_rank_missing_text(&b, list), c->missing);
    assert_string_equal(tmk_rank_list_text(&b, tmk_rank_died_of_it, 0, list), c->died);
    assert_string_equal(tmk_rank_list_text(&b, tmk_rank_ended_early, 0, list), c->early);
    free_rows(&b);
}

static void test_judge(void **state)
{
    (void)state;
    for (size_t i = 0; i < TMK_N(judged); i++)
        check_case(&judged[i]);
}

/* ---- the line ---- */

#define GIB ((uint64_t)1 << 30)

struct line_case {
    const char *line;
    int64_t world;
    uint64_t limit;
    struct row rows[4]; /* up to the first with end_ms 0 */
};

static const struct line_case lines[] = {
    {"peak 72.00 of 80.00 GiB on rank 3; IMBALANCED, 1.44 times the median; 2 ranks used less than "
     "half of the peak: 0, 1",
     4,
     80 * GIB,
     {{0, 30 * GIB, 9, 50, 0, CLOSED, 0},
      {1, 30 * GIB, 9, 50, 0, CLOSED, 0},
      {2, 70 * GIB, 9, 50, 0, CLOSED, 0},
      {3, 72 * GIB, 9, 50, 0, CLOSED, 0}}},
    {"peak 1000 B on rank 1; IMBALANCED, 1.33 times the median",
     2,
     0,
     {{0, 500, 9, 50, 0, CLOSED, 0}, {1, 1000, 9, 50, 0, CLOSED, 0}, {1, 10, 0, 50, 0, CLOSED, 0}}},
    {"peak 1001 B of 1.00 GiB on rank 2; 1 rank used less than half of the peak: 0",
     3,
     GIB,
     {{0, 500, 9, 50, 0, CLOSED, 0},
      {1, 1000, 9, 50, 0, CLOSED, 0},
      {2, 1001, 9, 50, 0, CLOSED, 0}}},
    {"peak 500 B in process 4243; OUT OF MEMORY in process 4243",
     -1,
     0,
     {{-1, 100, 9, 50, 0, CLOSED, 0}, {-1, 500, 9, 50, 49, CLOSED, 0}}},
    {"peak 150 B on rank 1; OUT OF MEMORY on rank 1; IMBALANCED, 1.50 times the median; ENDED "
     "EARLY: "
     "3; 2 of 6 ranks MISSING: 4, 5",
     6,
     0,
     {{0, 100, 9, 61, 0, CLOSED, 0},
      {1, 150, 9, 62, 60, CLOSED, 0},
      {2, 100, 9, 61, 0, KILLED, 0},
      {3, 100, 9, 40, 0, KILLED, 0}}},
    {"peak unknown: no memory was recorded; 1 of 2 ranks MISSING: 1",
     2,
     GIB,
     {{0, 0, 0, 50, 0, CLOSED, 0}}},
};

static void check_line(const struct line_case *c)
{
    struct tmk_imbalance b;
    char line[TMK_IMBALANCE_LINE_BYTES];
    uint32_t n = 0;
    while (n < TMK_N(c->rows) && c->rows[n].end_ms > 0)
        n++;
    fill_rows(&b, c->rows, n, c->world);
    for (uint32_t i = 0; i < n; i++)
        b.rows[i].facts.forecast.capacity_bytes = c->limit;
    assert_int_equal(tmk_imbalance_judge(&b), 0);
    assert_string_equal(tmk_imbalance_line(&b, line), c->line);
    free_rows(&b);
}

/* Names of hosts are told where there are several, and the step of an OOM where one had begun. */
static void check_line_of_hosts(void)
{
    static const struct row rows[] = {{0, 100, 9, 50, 49, CLOSED, 0}, {1, 90, 9, 50, 0, CLOSED, 0}};
    struct tmk_imbalance b;
    char line[TMK_IMBALANCE_LINE_BYTES];
    fill_rows(&b, rows, 2, 2);
    b.clock.n_hosts = 2;
    b.rows[0].facts.host = "node7";
    b.rows[0].facts.device = TIDEMARK_HOST;
    b.rows[0].facts.oom_step = 10;
    assert_int_equal(tmk_imbalance_judge(&b), 0);
    assert_string_equal(tmk_imbalance_line(&b, line),
                        "peak 100 B of CPU memory on rank 0 (node7); OUT OF MEMORY on rank 0 "
                        "(node7) in step 10");
    free_rows(&b);
}

static void test_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < TMK_N(lines); i++)
        check_line(&lines[i]);
    check_line_of_hosts();
}

/* 300 ranks that are alike are one group; one that differs is another, and so are those that were
 * killed. A list of ranks ends in "..." where it is too long. */
static void test_groups(void **state)
{
    (void)state;
    static struct row rows[MOST_ROWS];
    struct tmk_imbalance b;
    char list[TMK_RANK_LIST_BYTES];
    for (int i = 0; i < MOST_ROWS; i++)
        rows[i] = (struct row){i, (uint64_t)(1000 + i % 7), 9, 50, 0, i % 10 ? CLOSED : KILLED, 0};
    rows[150].peak = 2000;
    rows[150].end = CLOSED;
    fill_rows(&b, rows, MOST_ROWS, MOST_ROWS);
    assert_int_equal(tmk_imbalance_judge(&b), 0);
    assert_int_equal(b.n_groups, 3);
    assert_int_equal(b.groups[0].first, 0);
    assert_int_equal(b.groups[0].n, 29);
    assert_int_equal(b.groups[1].n, 270);
    assert_int_equal(b.groups[1].least_bytes, 1000);
    assert_int_equal(b.groups[1].most_bytes, 1006);
    assert_int_equal(b.groups[2].first, 150);
    assert_string_equal(tmk_rank_list_text(&b, tmk_rank_is_in_group, 2, list), "150");
    assert_string_equal(
        tmk_rank_list_text(&b, tmk_rank_is_in_group, 0, list),
        "0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 160, 170, ...");
    free_rows(&b);
}

/* ---- traces made by hand ---- */

struct rank_trace {
    int rank, world;
    const char *boot;
    uint64_t realtime_ms, monotonic_ms; /* when it began */
    uint64_t batch;                     /* bytes of an activation */
    uint64_t step_ms[32];               /* when steps began, by its own time */
    int n_steps;
    int oom_step; /* -1: none */
    bool killed;
};

static void make_rank_trace(const char *folder, const struct rank_trace *r)
{
    struct maker m;
    char info[400], name[40];
    snprintf(info, sizeof info,
             "host=%s\npid=%d\nrank=%d\nworld_size=%d\nboot_id=%s\nstart_realtime_ns=%llu\n"
             "start_monotonic_ns=%llu\n",
             r->boot, 100 + r->rank, r->rank, r->world, r->boot,
             (unsigned long long)(1700000000000000000u + r->realtime_ms * MS),
             (unsigned long long)(r->monotonic_ms * MS));
    snprintf(name, sizeof name, "h.r%d.x", r->rank);
    maker_open_as(&m, folder, name, info, 0);
    maker_string(&m, 1, "mlp");
    maker_string(&m, 2, "forward");
    maker_alloc(&m, CUDA0, 0x1000, 5000, 0);
    maker_tag(&m, CUDA0, 0x1000, TIDEMARK_PARAMETER, 0);
    for (int i = 0; i < r->n_steps; i++) {
        m.ns = r->step_ms[i] * MS;
        maker_step(&m, i + 1);
        maker_push(&m, TIDEMARK_STAGE, 2);
        maker_push(&m, TIDEMARK_MODULE, 1);
        for (uint64_t k = 0; k < 3; k++) {
            maker_alloc(&m, CUDA0, 0x2000 + k, r->batch, 0);
            maker_tag(&m, CUDA0, 0x2000 + k, TIDEMARK_ACTIVATION, 0);
        }
        maker_pop(&m, TIDEMARK_MODULE);
        maker_pop(&m, TIDEMARK_STAGE);
        m.ns += MS;
        if (i + 1 == r->oom_step)
            maker_oom(&m, CUDA0, 1 << 20, 8 << 20, 0);
        for (uint64_t k = 0; k < 3; k++)
            maker_free(&m, CUDA0, 0x2000 + k);
    }
    maker_end(&m, !r->killed);
}

static void steps_every(struct rank_trace *r, int n, uint64_t first_ms, uint64_t every_ms)
{
    r->n_steps = n;
    for (int i = 0; i < n; i++)
        r->step_ms[i] = first_ms + (uint64_t)i * every_ms;
}

static struct tmk_run *open_made(const char *folder)
{
    struct tmk_run *run = NULL;
    struct tmk_error err = {0};
    if (tmk_run_open(folder, &run, &err) < 0)
        fail_msg("%s", err.text);
    return run;
}

static void remove_made(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[400];
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

struct said {
    char text[4000];
};

static void note_sentence(void *arg, const char *text)
{
    struct said *s = arg;
    strcat(strcat(s->text, text), "\n");
}

/* Four ranks, one with twice the batch, which runs out of memory: the others end after it. */
static void test_traces(void **state)
{
    (void)state;
    char folder[] = "/tmp/tidemark-ranks.XXXXXX";
    struct tmk_imbalance *b = NULL;
    struct said said = {""};
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 4; i++) {
        struct rank_trace r = {i, 4, "boot", 100, 100, i == 2 ? 2000 : 1000, .oom_step = -1};
        steps_every(&r, i == 2 ? 5 : 6, 10, 10);
        r.oom_step = i == 2 ? 5 : -1;
        make_rank_trace(folder, &r);
    }
    struct tmk_run *run = open_made(folder);
    assert_int_equal(tmk_imbalance_open(run, &b, NULL), 0);
    assert_true(b->is_imbalanced); /* 11,000 of 8,000 is 1.375 */
    assert_int_equal(b->highest, 2);
    assert_int_equal(b->rows[2].facts.peak_bytes, 11000);
    assert_int_equal(b->rows[0].facts.peak_bytes, 8000);
    assert_int_equal(b->rows[2].facts.n_steps, 4);
    assert_int_equal(b->rows[2].facts.oom_ns, 51 * MS);
    assert_int_equal(b->rows[2].facts.oom_step, 5);
    assert_int_equal(b->rows[0].facts.end_ns, 61 * MS);
    assert_true(b->why.is_known);
    assert_string_equal(b->why.category.key, "activation");
    assert_int_equal(b->why.category.more_bytes, 3000);
    assert_string_equal(b->why.module.key, "mlp");
    assert_string_equal(b->why.stage.key, "forward");
    assert_true(b->why.batch_factor == 2);
    assert_int_equal(tmk_imbalance_tell(b, note_sentence, &said), 5);
    assert_string_equal(
        said.text,
        "IMBALANCED: rank 2 has the largest peak, 10.7 KiB. That is 1.38 times the median of 4 "
        "ranks (7.8 KiB), and 2.9 KiB more than rank 0.\n"
        "Largest differences to rank 0 at the peak: category activation, 2.9 KiB more; module "
        "mlp, 2.9 KiB more; stage forward, 2.9 KiB more.\n"
        "Its activations and inputs are the same blocks, 2 times as large: it has a larger batch "
        "or longer sequences.\n"
        "OUT OF MEMORY: rank 2 was the first, after 51.00 ms, in step 5.\n"
        "Ranks 0, 1, 3 only ended because of that: no memory request of theirs failed.\n");
    tmk_imbalance_close(b);
    tmk_run_close(run);
    remove_made(folder);
}

/* ---- clocks ---- */

struct clock_case {
    const char *name;
    int n;
    struct rank_trace ranks[3]; /* a step each 10 ms from the first on, or irregular ones */
    bool is_irregular;          /* the last rank's steps are */
    struct tmk_clock_match match;
    uint64_t offset_ms[3];
};

static const struct clock_case clock_cases[] = {
    {.name = "one boot: the time of day jumped between two starts",
     .n = 2,
     .ranks = {{0, 2, "a", 100, 1000, .n_steps = 20}, {1, 2, "a", 90000, 1005, .n_steps = 20}},
     .match = {.n_hosts = 1},
     .offset_ms = {0, 5}},
    {.name = "two hosts in step: the clock of one is 2 s ahead",
     .n = 3,
     .ranks = {{0, 3, "a", 100, 1000, .n_steps = 20},
               {1, 3, "b", 2100, 7000, .n_steps = 20},
               {2, 3, "b", 9999, 7003, .n_steps = 0}},
     .match = {.n_hosts = 2, .n_measured = 2, .n_steps = 20, .moved_ns = 2000 * (uint64_t)MS},
     .offset_ms = {0, 0, 3}},
    {.name = "two hosts in step: a millisecond is left alone",
     .n = 2,
     .ranks = {{0, 2, "a", 100, 1000, .n_steps = 20}, {1, 2, "b", 101, 7000, .n_steps = 20}},
     .match = {.n_hosts = 2, .n_measured = 2, .n_steps = 20, .within_ns = MS},
     .offset_ms = {0, 1}},
    {.name = "two hosts that each go their own way",
     .n = 2,
     .ranks = {{0, 2, "a", 100, 1000, .n_steps = 20}, {1, 2, "b", 105, 7000, .n_steps = 20}},
     .is_irregular = true,
     .match = {.n_hosts = 2, .n_measured = 2, .n_steps = 20, .within_ns = 787 * (uint64_t)MS},
     .offset_ms = {0, 5}},
    {.name = "too few steps to tell",
     .n = 2,
     .ranks = {{0, 2, "a", 100, 1000, .n_steps = 9}, {1, 2, "b", 2100, 7000, .n_steps = 20}},
     .match = {.n_hosts = 2},
     .offset_ms = {0, 2000}},
};

static void check_clock_case(const struct clock_case *c)
{
    char folder[] = "/tmp/tidemark-clocks.XXXXXX";
    assert_non_null(mkdtemp(folder));
    print_message("%s\n", c->name);
    for (int i = 0; i < c->n; i++) {
        struct rank_trace r = c->ranks[i];
        r.batch = 1000;
        steps_every(&r, r.n_steps, 10, 10);
        for (int k = 0; c->is_irregular && i == c->n - 1 && k < r.n_steps; k++)
            r.step_ms[k] = 3 * (uint64_t)(k * k);
        make_rank_trace(folder, &r);
    }
    struct tmk_run *run = open_made(folder);
    const struct tmk_clock_match *match = tmk_run_clock(run);
    assert_int_equal(match->n_hosts, c->match.n_hosts);
    assert_int_equal(match->n_measured, c->match.n_measured);
    assert_int_equal(match->n_steps, c->match.n_steps);
    assert_int_equal(match->within_ns, c->match.within_ns);
    assert_int_equal(match->moved_ns, c->match.moved_ns);
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++)
        assert_int_equal(tmk_run_process(run, i)->offset_ns, c->offset_ms[i] * MS);
    tmk_run_close(run);
    remove_made(folder);
}

static void test_clocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < TMK_N(clock_cases); i++)
        check_clock_case(&clock_cases[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_judge),  cmocka_unit_test(test_line),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_traces), cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
