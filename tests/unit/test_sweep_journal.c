/* SPDX-License-Identifier: MIT */
/* The journal of a sweep: what is written is read, and nothing that stands there does harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "sweep/journal_out.h"
#include "sweep/params.h"
#include "sweep/results.h"
#include "trace_kit.h"

static char folder[256], path[300];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", kit_folder_make());
    snprintf(path, sizeof path, "%s/%s", folder, TMK_SWEEP_JOURNAL);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    kit_folder_remove(folder);
    return 0;
}

static const char *texts[] = {"train", "--seq", "{seq}", "b<=seq", "--timeout=10m"};

static struct tmk_results *make(void)
{
    struct tmk_results *r = tmk_results_new(folder);
    struct tmk_error err = {0};
    r->params = tmk_arena_take(r->arena, 2 * sizeof *r->params);
    assert_int_equal(tmk_param_parse("seq=1,2,4", r->arena, &r->params[0], &err), 0);
    assert_int_equal(tmk_param_parse("b=1..3", r->arena, &r->params[1], &err), 0);
    r->n_params = 2;
    r->n_repeats = 2;
    r->title = "train \"x\"\n";
    r->command = texts;
    r->n_command = 3;
    r->wheres = texts + 3;
    r->n_wheres = 1;
    r->options = texts + 4;
    r->n_options = 1;
    assert_int_equal(tmk_results_lay_out(r, &err), 0);
    return r;
}

static struct tmk_results *load(void)
{
    struct tmk_results *r = NULL;
    struct tmk_error err = {0};
    if (tmk_results_load(folder, &r, &err) != 0)
        fail_msg("%s", err.text);
    return r;
}

static struct tmk_share categories[] = {{"activation", 700}, {"parameter", 300}};
static struct tmk_share whole[] = {{"other", 1000}};
static struct tmk_cell_stage stages[] = {{"forward", 1000, 300, 5000, 3, 77},
                                         {"my \"own\"", 5, 4, 3, 2, 1}};
static struct tmk_cell_rank ranks[] = {{-1, 7, "cpu", 900, TMK_BYTES_UNKNOWN},
                                       {3, 8, "cuda:3", 1000, 2000}};

static void fill(struct tmk_cell *c)
{
    c->outcome = TMK_CELL_OOM;
    c->exit_status = 137;
    c->message = "ran out";
    c->seconds = 1.5;
    c->run = "runs/0000.tmk";
    c->log = "logs/0000.log";
    c->device = "cuda:3";
    c->capacity = 1u << 30;
    c->peak_allocated = 1000;
    c->peak_reserved = 2000;
    c->peak_step = 4;
    c->n_steps = 5;
    c->categories = (struct tmk_shares){categories, 2};
    c->components = c->at_stage = (struct tmk_shares){whole, 1};
    c->stages = stages;
    c->n_stages = 2;
    c->ranks = ranks;
    c->n_ranks = 2;
}

static void expect_filled(const struct tmk_cell *c)
{
    assert_int_equal(c->outcome, TMK_CELL_OOM);
    assert_int_equal(c->exit_status, 137);
    assert_string_equal(c->message, "ran out");
    assert_true(c->seconds == 1.5);
    assert_string_equal(c->run, "runs/0000.tmk");
    assert_string_equal(c->log, "logs/0000.log");
    assert_string_equal(c->device, "cuda:3");
    assert_int_equal(c->capacity, 1u << 30);
    assert_int_equal(c->peak_allocated, 1000);
    assert_int_equal(c->peak_reserved, 2000);
    assert_true(c->peak_device == TMK_BYTES_UNKNOWN);
    assert_int_equal(c->peak_step, 4);
    assert_int_equal(c->n_steps, 5);
    assert_int_equal(c->categories.n, 2);
    assert_string_equal(c->categories.rows[0].key, "activation");
    assert_int_equal(c->categories.rows[1].bytes, 300);
    assert_int_equal(c->at_stage.n, 1);
    assert_int_equal(c->n_stages, 2);
    assert_string_equal(c->stages[1].name, "my \"own\"");
    assert_int_equal(c->stages[0].allocated, 5000);
    assert_int_equal(c->stages[0].n_times, 3);
    assert_int_equal(c->stages[0].ns, 77);
    assert_int_equal(c->n_ranks, 2);
    assert_int_equal(c->ranks[0].rank, -1);
    assert_true(c->ranks[0].peak_reserved == TMK_BYTES_UNKNOWN);
    assert_int_equal(c->ranks[1].rank, 3);
    assert_string_equal(c->ranks[1].device, "cuda:3");
}

/* A journal with cell 0 filled in. */
static void write_one(void)
{
    struct tmk_results *r = make();
    struct tmk_error err = {0};
    int fd = -1;
    unlink(path);
    assert_int_equal(tmk_journal_make(r, &fd, &err), 0);
    fill(&r->cells[0]);
    assert_int_equal(tmk_journal_add(fd, r, 0, &err), 0);
    close(fd);
    tmk_results_close(r);
}

static void test_round(void **state)
{
    (void)state;
    write_one();
    struct tmk_results *r = load();
    assert_string_equal(r->title, "train \"x\"\n");
    assert_int_equal(r->n_params, 2);
    assert_string_equal(r->params[1].values[2], "3");
    assert_true(r->params[0].numbers[2] == 4);
    assert_int_equal(r->n_repeats, 2);
    assert_int_equal(r->n_command, 3);
    assert_string_equal(r->command[2], "{seq}");
    assert_string_equal(r->wheres[0], "b<=seq");
    assert_string_equal(r->options[0], "--timeout=10m");
    assert_int_equal(r->n_cells, 18);
    assert_int_equal(r->n_bad_lines, 0);
    expect_filled(&r->cells[0]);
    assert_int_equal(r->cells[0].repeat, 0);
    assert_int_equal(r->cells[1].outcome, TMK_CELL_PENDING);
    assert_int_equal(r->cells[2].outcome, TMK_CELL_EXCLUDED); /* seq=1 b=2 */
    tmk_results_close(r);
}

static void test_exists(void **state)
{
    (void)state;
    write_one();
    struct tmk_results *r = load();
    struct tmk_error err = {0};
    int fd = -1, second = -1;
    assert_int_equal(tmk_journal_make(r, &fd, &err), TMK_EIO);
    assert_int_equal(tmk_journal_go_on(r, &fd, &err), 0);
    assert_int_equal(tmk_journal_go_on(r, &second, &err), TMK_EBUSY);
    assert_int_equal(second, -1);
    r->cells[1] = r->cells[0];
    assert_int_equal(tmk_journal_add(fd, r, 1, &err), 0);
    close(fd);
    /* What was read before the other one wrote is stale. */
    assert_int_equal(tmk_journal_go_on(r, &fd, &err), TMK_EBUSY);
    tmk_results_close(r);
}

/* Append a cell behind what was torn. */
static void go_on(struct tmk_results *r)
{
    struct tmk_error err = {0};
    int fd = -1;
    assert_int_equal(tmk_journal_go_on(r, &fd, &err), 0);
    fill(&r->cells[1]);
    assert_int_equal(tmk_journal_add(fd, r, 1, &err), 0);
    close(fd);
    struct tmk_results *again = load();
    assert_int_equal(again->n_bad_lines, 0);
    expect_filled(&again->cells[1]);
    tmk_results_close(again);
}

/* Cut anywhere: what is there is read, and the sweep goes on behind it. */
static void test_torn(void **state)
{
    (void)state;
    write_one();
    size_t n;
    uint8_t *bytes = kit_file_read(path, &n);
    size_t head = (size_t)((uint8_t *)memchr(bytes, '\n', n) - bytes) + 1;
    for (size_t cut = 0; cut < n; cut++) {
        struct tmk_results *r = NULL;
        struct tmk_error err = {0};
        int rc = tmk_results_parse(folder, (const char *)bytes, cut, &r, &err);
        assert_int_equal(rc, cut < head ? TMK_ENOENT : 0); /* as if it had not been begun */
        if (rc < 0)
            continue;
        assert_int_equal(r->cells[0].outcome, TMK_CELL_PENDING);
        assert_int_equal(r->n_bad_lines, 0);
        if (cut == head || cut == head + 40 || cut == n - 1) { /* each waits for the disk */
            kit_file_write(path, bytes, cut);
            go_on(r);
        }
        tmk_results_close(r);
    }
    free(bytes);
}

/* Any byte changed to any of a few: never a crash, and shares always add up. */
static void test_flipped(void **state)
{
    (void)state;
    static const char others[] = {'\0', '\n', '"', '9', '}', '[', '-', (char)0xff};
    write_one();
    size_t n;
    uint8_t *bytes = kit_file_read(path, &n);
    for (size_t at = 0; at < n; at++) {
        uint8_t was = bytes[at];
        for (size_t i = 0; i < sizeof others; i++) {
            struct tmk_results *r = NULL;
            bytes[at] = (uint8_t)others[i];
            if (tmk_results_parse(folder, (const char *)bytes, n, &r, NULL) != 0)
                continue;
            for (uint32_t c = 0; c < r->n_cells; c++) {
                uint64_t sum = 0;
                for (uint32_t k = 0; k < r->cells[c].categories.n; k++)
                    sum += r->cells[c].categories.rows[k].bytes;
                assert_true(r->cells[c].categories.n == 0 || sum == r->cells[c].peak_allocated);
            }
            tmk_results_close(r);
        }
        bytes[at] = was;
    }
    free(bytes);
}

static void test_hostile_lines(void **state)
{
    (void)state;
    static const char lines[] =
        "\n"
        "{}\n"
        "[1]\n"
        "{\"cell\":99999999999,\"outcome\":\"done\"}\n"
        "{\"cell\":18,\"outcome\":\"done\"}\n"
        "{\"cell\":2,\"outcome\":\"done\"}\n" /* excluded */
        "{\"cell\":3,\"outcome\":\"excluded\"}\n"
        "{\"cell\":6,\"outcome\":\"splendid\"}\n"
        "{\"cell\":6,\"outcome\":\"done\",\"peak_allocated\":1,\"categories\":{\"a\":2}}\n"
        "{\"cell\":6,\"outcome\":\"done\",\"peak_allocated\":1,"
        "\"categories\":{\"a\":18446744073709551615,\"b\":2}}\n"
        "{\"cell\":8,\"outcome\":\"done\",\"stages\":[{},{}],\"stages\":[{\"name\":\"a\"}],"
        "\"ranks\":[{},{},{}],\"ranks\":[{\"rank\":1}],\"peak_allocated\":2,"
        "\"categories\":{\"a\":1,\"b\":9},\"categories\":{\"c\":2}}\n" /* keys twice */
        "{\"cell\":7,\"outcome\":\"done\",\"new\":[{\"x\":1}],\"peak_allocated\":1}\n"
        "{\"cell\":0,\"outcome\":\"failed\",\"exit_status\":3}\n";
    write_one();
    FILE *f = fopen(path, "a");
    fputs(lines, f);
    fclose(f);
    struct tmk_results *r = load();
    assert_int_equal(r->n_bad_lines, 10);
    assert_int_equal(r->cells[6].outcome, TMK_CELL_PENDING);
    assert_int_equal(r->cells[7].outcome, TMK_CELL_DONE);
    assert_int_equal(r->cells[8].n_stages, 1);
    assert_int_equal(r->cells[8].ranks[0].rank, 1);
    assert_string_equal(r->cells[8].categories.rows[0].key, "c");
    assert_int_equal(r->cells[7].peak_allocated, 1);
    assert_int_equal(r->cells[0].outcome, TMK_CELL_FAILED); /* the later line holds */
    assert_int_equal(r->cells[0].n_stages, 0);
    tmk_results_close(r);
}

static void refuse_head(const char *line, int rc)
{
    struct tmk_results *r = NULL;
    struct tmk_error err = {0};
    kit_file_write(path, line, strlen(line));
    assert_int_equal(tmk_results_load(folder, &r, &err), rc);
    assert_true(err.text[0]);
    assert_null(r);
}

static void test_hostile_heads(void **state)
{
    (void)state;
    unlink(path);
    struct tmk_results *r = NULL;
    assert_int_equal(tmk_results_load(folder, &r, NULL), TMK_ENOENT);
    refuse_head("", TMK_ENOENT); /* killed as it began */
    refuse_head("{\"tidemark_sw", TMK_ENOENT);
    refuse_head("{\"tidemark_sweep\":1,\"tit", TMK_ENOENT);
    refuse_head("no", TMK_EFORMAT);
    refuse_head("no\n", TMK_EFORMAT);
    refuse_head("{}\n", TMK_EFORMAT);
    refuse_head("{\"tidemark_sweep\":1}\n", TMK_EFORMAT);
    refuse_head("{\"tidemark_sweep\":2,\"repeats\":1}\n", TMK_EVERSION);
    refuse_head("{\"tidemark_sweep\":1,\"repeats\":99999999999}\n", TMK_EFORMAT);
    refuse_head("{\"tidemark_sweep\":1,\"repeats\":1,\"params\":[{\"name\":\"a\"}]}\n",
                TMK_EFORMAT);
    refuse_head("{\"tidemark_sweep\":1,\"repeats\":1,\"params\":[{\"values\":[\"a\"]}]}\n",
                TMK_EFORMAT);
    refuse_head(
        "{\"tidemark_sweep\":1,\"repeats\":1,\"params\":[{\"name\":\"a\",\"values\":[\"1\"]}],"
        "\"params\":[{\"name\":\"b\"}]}\n",
        TMK_EFORMAT);
    refuse_head("{\"tidemark_sweep\":1,\"repeats\":1,\"where\":[\"a<1\"]}\n", TMK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),         cmocka_unit_test(test_exists),
        cmocka_unit_test(test_torn),          cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_hostile_lines), cmocka_unit_test(test_hostile_heads),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
