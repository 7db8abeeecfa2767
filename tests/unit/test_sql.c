/* SPDX-License-Identifier: MIT */
/* test_sql.c - the tables, row for row.
 *
 * A trace made by hand has known rows in every table. Two large pseudo-random ones have known rows
 * too: python.torch_trace is held against a replay of the same events, and every table against a
 * plain SQLite table with the same rows, under queries that make the planner order, group, bound,
 * merge and join in all the ways there are. */
#include "maker.h"

#include <fcntl.h>

#include "sql/sql.h"
#include "sql/store.h"

#define CUDA0 TIDEMARK_CUDA(0)
#define CUDA1 TIDEMARK_CUDA(1)
#define MIB (UINT64_C(1) << 20)

/* ---- results as text ---- */

struct text {
    char *bytes;
    size_t n, room;
};

static void text_add(struct text *t, const char *bytes)
{
    size_t n = strlen(bytes);
    if (t->n + n + 1 > t->room) {
        t->room = 2 * (t->n + n + 1);
        t->bytes = realloc(t->bytes, t->room);
        assert_non_null(t->bytes);
    }
    memcpy(t->bytes + t->n, bytes, n + 1);
    t->n += n;
}

static void text_add_value(struct text *t, sqlite3_stmt *s, int i)
{
    char number[40];
    if (sqlite3_column_type(s, i) == SQLITE_NULL) {
        text_add(t, "-");
    } else if (sqlite3_column_type(s, i) == SQLITE_FLOAT) { /* all digits: exact or not at all */
        snprintf(number, sizeof number, "%.17g", sqlite3_column_double(s, i));
        text_add(t, number);
    } else {
        text_add(t, (const char *)sqlite3_column_text(s, i));
    }
}

/* All rows, a line each, values separated by '|'. The caller frees it. */
static char *ask(sqlite3 *db, const char *query)
{
    struct text t = {0};
    sqlite3_stmt *s = NULL;
    int rc;
    text_add(&t, "");
    if (sqlite3_prepare_v2(db, query, -1, &s, NULL) != SQLITE_OK)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            text_add(&t, i ? "|" : "");
            text_add_value(&t, s, i);
        }
        text_add(&t, "\n");
    }
    if (rc != SQLITE_DONE)
        fail_msg("%s: %s", query, sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return t.bytes;
}

/* Equal, or say where they part. */
static void same(const char *query, const char *found, const char *expected)
{
    size_t i = 0;
    if (strcmp(found, expected) == 0)
        return;
    while (found[i] == expected[i])
        i++;
    while (i > 0 && found[i - 1] != '\n')
        i--;
    fail_msg("%s\ngave, from byte %zu of %zu:\n%.300s\ninstead of %zu:\n%.300s", query, i,
             strlen(found), found + i, strlen(expected), expected + i);
}

static void expect(struct tmk_sql *sql, const char *query, const char *expected)
{
    char *found = ask(tmk_sql_handle(sql), query);
    same(query, found, expected);
    free(found);
}

static void must_run(struct tmk_sql *sql, const char *query)
{
    free(ask(tmk_sql_handle(sql), query));
}

static struct tmk_sql *open_sql(struct tmk_run *run)
{
    struct tmk_sql *sql = NULL;
    struct tmk_error err = {0};
    if (tmk_sql_open(run, &sql, &err) < 0)
        fail_msg("%s", err.text);
    return sql;
}

/* ---- traces ---- */

/* A trace in a folder that may hold others. */
static void open_trace(struct maker *m, const char *folder, const char *name, const char *info,
                       uint64_t max_size)
{
    static uint8_t id[16] = {7};
    id[1]++;
    *m = (struct maker){.thread = 1};
    snprintf(m->folder, sizeof m->folder, "%s", folder);
    assert_true(snprintf(m->path, sizeof m->path, "%s/%s.trace", folder, name) <
                (int)sizeof m->path);
    assert_int_equal(tmk_writer_create(&m->writer, m->path, id, info, max_size, NULL), 0);
    struct tmk_packer_options options =
        tmk_packer_options_for(max_size, &tmk_state_limits_recorder);
    struct tmk_chunk_out out = tmk_writer_out(&m->writer);
    assert_int_equal(tmk_packer_open(&options, &out, &m->packer), 0);
}

static void make_folder(char *folder)
{
    strcpy(folder, "/tmp/tidemark-test.XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static void define_thread(struct maker *m, uint32_t id, uint64_t system_id)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_THREAD,
                                    .id = id,
                                    .a = system_id,
                                    .text = (const uint8_t *)"main",
                                    .text_bytes = 4});
}

enum {
    S_FORWARD = 1,
    S_BACKWARD,
    S_OPTIMIZER,
    S_LOSS,
    S_MODEL,
    S_FC1,
    S_FC2,
    S_WEIGHT,
    S_FILE,
    S_MAIN,
    S_INNER,
    S_MARK,
    S_USER,
    S_FC1_AGAIN,
    N_STRINGS,
};

static void define_strings(struct maker *m)
{
    static const char *const texts[] = {
        [S_FORWARD] = "forward", [S_BACKWARD] = "backward",   [S_OPTIMIZER] = "optimizer",
        [S_LOSS] = "loss",       [S_MODEL] = "model",         [S_FC1] = "model.fc1",
        [S_FC2] = "model.fc2",   [S_WEIGHT] = "fc1.weight",   [S_FILE] = "train.c",
        [S_MAIN] = "main",       [S_INNER] = "step",          [S_MARK] = "saved",
        [S_USER] = "batch",      [S_FC1_AGAIN] = "model.fc1",
    };
    for (uint32_t i = 1; i < N_STRINGS; i++)
        maker_string(m, i, texts[i]);
    maker_frame(m, 1, S_FILE, S_INNER, 10);
    maker_frame(m, 2, S_FILE, S_MAIN, 20);
    maker_stack(m, 1, (uint32_t[]){1, 2}, 2);
    maker_stack(m, 2, (uint32_t[]){2, 99}, 2); /* frame 99 is not defined */
    define_thread(m, 1, 1001);
}

static void at(struct maker *m, uint64_t ns)
{
    m->ns = ns;
}

/* Before the first step, then steps 5 and 6; in step 5 a chunk ends inside model.fc1. */
static void make_hand(struct maker *m)
{
    define_strings(m);
    at(m, 100);
    maker_alloc(m, CUDA0, 0x1000, 4 * MIB, 1);
    maker_tag(m, CUDA0, 0x1000, TIDEMARK_PARAMETER, S_WEIGHT);
    at(m, 150);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_MODEL); /* no step yet */
    at(m, 180);
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);

    at(m, 1000);
    maker_step(m, 5);
    maker_push(m, TIDEMARK_MODULE, S_MODEL); /* in no stage: no row, but counted by seq */
    maker_pop(m, TIDEMARK_MODULE);
    at(m, 1100);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_FC1);
    at(m, 1200);
    maker_alloc(m, CUDA0, 0x2000, 2 * MIB, 2);
    maker_flush(m);
    at(m, 1300);
    maker_alloc(m, TIDEMARK_HOST, 0x2000, 64 * MIB, 0); /* the same address elsewhere */
    maker_alloc(m, CUDA0, 0x3000, MIB, 0);
    at(m, 1400);
    maker_free(m, CUDA0, 0x3000);
    at(m, 1500);
    maker_pop(m, TIDEMARK_MODULE);
    maker_push(m, TIDEMARK_STAGE, S_LOSS); /* a stage of another name inside forward */
    maker_push(m, TIDEMARK_MODULE, S_FC2);
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
    at(m, 1600);
    maker_push(m, TIDEMARK_MODULE, S_FC2); /* left open: closed with its stage */
    maker_pop(m, TIDEMARK_STAGE);

    m->thread = 2; /* not defined */
    at(m, 1700);
    maker_push(m, TIDEMARK_STAGE, S_BACKWARD);
    maker_push(m, TIDEMARK_MODULE, S_FC1_AGAIN);
    at(m, 1800);
    maker_free(m, CUDA0, 0x2000);
    maker_pop(m, TIDEMARK_MODULE);
    maker_pop(m, TIDEMARK_STAGE);
    m->thread = 1;
    at(m, 1900);
    maker_mark(m, S_MARK, "checkpoint 1");
    maker_mark(m, 0, "");

    at(m, 2000);
    maker_step(m, 6);
    maker_push(m, TIDEMARK_STAGE, S_OPTIMIZER);
    maker_push(m, TIDEMARK_MODULE, S_MODEL);
    at(m, 2100);
    maker_push(m, TIDEMARK_USER, S_USER);
    maker_oom(m, CUDA0, 100 * MIB, 80 * MIB, 1);
    maker_oom(m, CUDA1, 7, 0, 0);
    maker_pop(m, TIDEMARK_USER);
    at(m, 2200);
    maker_pop(m, TIDEMARK_MODULE);
    maker_free(m, CUDA0, 0x9999); /* nothing there */
    at(m, 2300);
}

static const char hand_info[] = "host=test\npid=42\nrank=3\nworld_size=8\ncommand=made by hand\n"
                                "start_realtime_ns=1700000000000000000\n";

struct fixture {
    char folder[64];
    char paths[4][128];
    uint32_t n_paths;
    struct tmk_run *run;
    struct tmk_sql *sql;
};

static void close_trace(struct fixture *f, struct maker *m)
{
    maker_flush(m);
    assert_int_equal(tmk_packer_finish(m->packer), 0);
    m->writer.status.state = TMK_STATE_CLOSED;
    assert_int_equal(tmk_writer_put_status(&m->writer, tmk_packer_state(m->packer)), 0);
    m->packer = tmk_packer_close(m->packer);
    tmk_writer_close(&m->writer);
    strcpy(f->paths[f->n_paths++], m->path);
}

static void open_fixture(struct fixture *f)
{
    struct tmk_error err = {0};
    if (tmk_run_open(f->folder, &f->run, &err) < 0)
        fail_msg("%s", err.text);
    f->sql = open_sql(f->run);
}

static void close_fixture(struct fixture *f)
{
    f->sql = tmk_sql_close(f->sql);
    f->run = tmk_run_close(f->run);
    for (uint32_t i = 0; i < f->n_paths; i++)
        unlink(f->paths[i]);
    rmdir(f->folder);
}

static void open_hand(struct fixture *f)
{
    struct maker m;
    *f = (struct fixture){0};
    make_folder(f->folder);
    open_trace(&m, f->folder, "hand", hand_info, 0);
    make_hand(&m);
    close_trace(f, &m);
    open_fixture(f);
}

/* ---- by hand ---- */

static void torch_trace_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(
        f.sql,
        "SELECT step, seq, module, stage, allocated, max_allocated, cached, max_cached,"
        " time_offset, duration, local_step, rank, world_size, role FROM python.torch_trace",
        "-|0|model|pre forward|4|4|-|-|-|-|-|3|8|-\n"
        "-|1|model|post forward|4|4|-|-|-|2.9999999999999997e-08|-|3|8|-\n"
        "5|2|model.fc1|pre forward|4|4|-|-|9.9999999999999995e-08|-|0|3|8|-\n"
        "5|3|model.fc1|post forward|6|7|-|-|4.9999999999999998e-07|3.9999999999999998e-07|0|3|8|-\n"
        "5|6|model.fc2|pre forward|6|7|-|-|5.9999999999999997e-07|-|0|3|8|-\n"
        "5|7|model.fc1|pre backward|6|7|-|-|6.9999999999999997e-07|-|0|3|8|-\n"
        "5|8|model.fc1|post "
        "backward|4|7|-|-|7.9999999999999996e-07|9.9999999999999995e-08|0|3|8|-\n"
        "6|0|model|pre step|4|7|-|-|0|-|1|3|8|-\n"
        "6|1|model|post step|4|7|-|-|1.9999999999999999e-07|1.9999999999999999e-07|1|3|8|-\n");
    expect(f.sql,
           "SELECT stage, allocated_delta, max_allocated_delta FROM python.torch_trace"
           " WHERE step = 5",
           "pre forward|-|-\npost forward|2|3\npre forward|-|-\npre backward|-|-\n"
           "post backward|-2|0\n");
    /* the opening of fc1 lies in the chunk before, which nobody has asked for yet */
    expect(f.sql, "SELECT max(allocated_delta) FROM python.torch_trace WHERE step > 4", "2\n");
    close_fixture(&f);
}

static void blocks_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(f.sql,
           "SELECT id, pid, rank, device, address, size, alloc_ns, free_ns, thread, stack_id, step,"
           " stage, module, component, category, tensor FROM allocations",
           "1|42|3|cuda:0|4096|4194304|100|-|1001|1|-|-|-|-|parameter|fc1.weight\n"
           "2|42|3|cuda:0|8192|2097152|1200|1800|1001|2|5|forward|model.fc1|-|unknown|-\n"
           "3|42|3|cpu|8192|67108864|1300|-|1001|-|5|forward|model.fc1|-|unknown|-\n"
           "4|42|3|cuda:0|12288|1048576|1300|1400|1001|-|5|forward|model.fc1|-|unknown|-\n");
    expect(f.sql, "SELECT * FROM tensors",
           "1|42|3|cuda:0|4096|4194304|100|-|1001|1|-|-|-|-|parameter|fc1.weight\n");
    /* cpu has the largest peak */
    expect(f.sql, "SELECT id, free_ns, category FROM peak ORDER BY id", "3|-|unknown\n");
    expect(f.sql, "SELECT id, free_ns FROM live_at(1399) ORDER BY id",
           "1|-\n2|1800\n3|-\n4|1400\n");
    expect(f.sql, "SELECT id FROM live_at(1400) ORDER BY id", "1\n2\n3\n");
    expect(f.sql, "SELECT count(*) FROM live_at(99)", "0\n");
    expect(f.sql, "SELECT count(*) FROM live_at(-5)", "0\n");
    expect(f.sql, "SELECT id FROM live_at ORDER BY id", "1\n3\n");
    expect(f.sql,
           "SELECT s.step, (SELECT sum(size) FROM live_at(s.end_ns)) FROM steps s"
           " WHERE device = 'cuda:0'",
           "-|4194304\n5|71303168\n6|71303168\n");
    close_fixture(&f);
}

static void history_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(f.sql, "SELECT * FROM steps",
           "3|-|0|1000|4194304|-|1|4194304|cuda:0|42|0|0|4194304|100|1\n"
           "3|5|1000|2000|7340032|-|2|3145728|cuda:0|42|2|3145728|4194304|1300|1\n"
           "3|5|1000|2000|67108864|-|1|67108864|cpu|42|0|0|67108864|1300|1\n"
           "3|6|2000|2200|4194304|-|0|0|cuda:0|42|1|0|4194304|2000|0\n"
           "3|6|2000|2200|67108864|-|0|0|cpu|42|0|0|67108864|2000|0\n");
    expect(f.sql, "SELECT * FROM devices",
           "42|3|cuda:0|4194304|7340032|1300|3|3|7340032\n"
           "42|3|cpu|67108864|67108864|1300|1|0|67108864\n");
    expect(
        f.sql,
        "SELECT pid, rank, world_size, host, command, file, start_ns, end_ns, start_realtime_ns,"
        " state, reason, events, allocations, frees, dropped, given_up, untracked FROM processes",
        "42|3|8|test|made by hand|hand.trace|0|2200|1700000000000000000|closed|-|38|4|3|0|0|0\n");
    expect(f.sql,
           "SELECT part, device, start_ns, end_ns, max_allocated, min_allocated,"
           " end_allocated, step FROM timeline(2)",
           "0|cuda:0|0|1100|4194304|0|4194304|5\n1|cuda:0|1100|2200|7340032|4194304|4194304|6\n"
           "0|cpu|0|1100|0|0|0|5\n1|cpu|1100|2200|67108864|0|67108864|6\n");
    expect(f.sql, "SELECT count(*), count(DISTINCT device) FROM timeline", "200|2\n");
    close_fixture(&f);
}

static void names_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(f.sql, "SELECT * FROM stacks",
           "1|2|train.c:10 step < train.c:20 main|42|3\n2|2|train.c:20 main < ?:? ?|42|3\n");
    expect(f.sql, "SELECT * FROM frames",
           "1|0|train.c|step|10|42|3\n1|1|train.c|main|20|42|3\n"
           "2|0|train.c|main|20|42|3\n2|1|-|-|-|42|3\n");
    expect(f.sql, "SELECT * FROM ranges",
           "42|3|1001|stage|forward|150|180|0|-|forward|-\n"
           "42|3|1001|module|model|150|180|1|-|forward|model\n"
           "42|3|1001|module|model|1000|1000|0|5|-|model\n"
           "42|3|1001|stage|forward|1100|1600|0|5|forward|-\n"
           "42|3|1001|module|model.fc1|1100|1500|1|5|forward|model.fc1\n"
           "42|3|1001|stage|loss|1500|1500|1|5|loss|-\n"
           "42|3|1001|module|model.fc2|1500|1500|2|5|loss|model.fc2\n"
           "42|3|1001|module|model.fc2|1600|1600|1|5|forward|model.fc2\n"
           "42|3|-|stage|backward|1700|1800|0|5|backward|-\n"
           "42|3|-|module|model.fc1|1700|1800|1|5|backward|model.fc1\n"
           "42|3|1001|stage|optimizer|2000|-|0|6|optimizer|-\n"
           "42|3|1001|module|model|2000|2200|1|6|optimizer|model\n"
           "42|3|1001|user|batch|2100|2100|2|6|optimizer|model\n");
    expect(f.sql, "SELECT * FROM modules",
           "42|3|model|3|230|0|0|0|0\n"
           "42|3|model.fc1|2|500|3|70254592|70254592|67108864\n"
           "42|3|model.fc2|2|0|0|0|0|0\n");
    close_fixture(&f);
}

static void moments_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(f.sql, "SELECT * FROM marks",
           "42|3|1900|5|1001|saved|checkpoint 1\n"
           "42|3|1900|5|1001|-|-\n");
    expect(f.sql, "SELECT * FROM ooms",
           "42|3|2100|6|cuda:0|104857600|83886080|4194304|1001|1|optimizer|model\n"
           "42|3|2100|6|cuda:1|7|-|0|1001|-|optimizer|model\n");
    expect(f.sql,
           "SELECT time_ns, step, thread, kind, device, address, size, stack_id, stage, module,"
           " category, name, range, info FROM events WHERE time_ns IN (100, 1300, 1400, 1800, 1900,"
           " 2000, 2100, 2200)",
           "100|-|1001|allocate|cuda:0|4096|4194304|1|-|-|-|-|-|-\n"
           "100|-|1001|tag|cuda:0|4096|-|-|-|-|parameter|fc1.weight|-|-\n"
           "1300|5|1001|allocate|cpu|8192|67108864|-|forward|model.fc1|-|-|-|-\n"
           "1300|5|1001|allocate|cuda:0|12288|1048576|-|forward|model.fc1|-|-|-|-\n"
           "1400|5|1001|free|cuda:0|12288|1048576|-|forward|model.fc1|-|-|-|-\n"
           "1800|5|-|free|cuda:0|8192|2097152|-|backward|model.fc1|-|-|-|-\n"
           "1800|5|-|close|-|-|-|-|backward|model.fc1|-|model.fc1|module|-\n"
           "1800|5|-|close|-|-|-|-|backward|-|-|backward|stage|-\n"
           "1900|5|1001|mark|-|-|-|-|-|-|-|saved|-|checkpoint 1\n"
           "1900|5|1001|mark|-|-|-|-|-|-|-|-|-|-\n"
           "2000|6|1001|step|-|-|-|-|-|-|-|-|-|-\n"
           "2000|6|1001|open|-|-|-|-|optimizer|-|-|optimizer|stage|-\n"
           "2000|6|1001|open|-|-|-|-|optimizer|model|-|model|module|-\n"
           "2100|6|1001|open|-|-|-|-|optimizer|model|-|batch|user|-\n"
           "2100|6|1001|oom|cuda:0|-|104857600|1|optimizer|model|-|-|-|-\n"
           "2100|6|1001|oom|cuda:1|-|7|-|optimizer|model|-|-|-|-\n"
           "2100|6|1001|close|-|-|-|-|optimizer|model|-|batch|user|-\n"
           "2200|6|1001|close|-|-|-|-|optimizer|model|-|model|module|-\n"
           "2200|6|1001|free|cuda:0|39321|-|-|optimizer|-|-|-|-|-\n");
    expect(f.sql, "SELECT kind, count(*) FROM events GROUP BY kind",
           "allocate|4\nclose|11\nfree|3\nmark|2\noom|2\nopen|13\nstep|2\ntag|1\n");
    close_fixture(&f);
}

/* A trace of nothing but ranges: what is allocated is not known, the rest is. */
static void no_blocks(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct maker m;
    make_folder(f.folder);
    open_trace(&m, f.folder, "bare", "", 0);
    define_strings(&m);
    at(&m, 10);
    maker_push(&m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(&m, TIDEMARK_MODULE, 77); /* no such string */
    maker_pop(&m, TIDEMARK_MODULE);
    close_trace(&f, &m);
    open_fixture(&f);
    expect(f.sql, "SELECT * FROM python.torch_trace",
           "-|0|-|pre forward|-|-|-|-|-|-|-|-1|-|-|-|-\n"
           "-|1|-|post forward|-|-|-|-|-|0|-|-1|-|-|-|-\n");
    expect(f.sql, "SELECT pid, rank, world_size, host, start_realtime_ns FROM processes",
           "-|-|-|-|-\n");
    expect(f.sql, "SELECT count(*) FROM peak", "0\n");
    expect(f.sql, "SELECT count(*) FROM timeline(3)", "0\n");
    expect(f.sql, "SELECT max(step) FROM python.torch_trace", "-\n");
    close_fixture(&f);
}

/* ---- aggregates ---- */

static void aggregates(void **state)
{
    (void)state;
    struct fixture f;
    open_hand(&f);
    expect(f.sql,
           "WITH v(x) AS (VALUES (2), (4), (4), (4), (5), (5), (7), (9), (NULL))"
           " SELECT stddev(x) * stddev(x) * 7, median(x) FROM v",
           "32.000000000000007|4.5\n");
    expect(f.sql,
           "WITH v(x) AS (VALUES (3), (1), (2))"
           " SELECT percentile(x, 0), percentile(x, 25), percentile(x, 50),"
           " percentile(x, 90.0), percentile(x, 100) FROM v",
           "1|1.5|2|2.7999999999999998|3\n");
    expect(f.sql, "SELECT stddev(x), median(x), percentile(x, 99) FROM (SELECT 1 AS x WHERE 0)",
           "-|-|-\n");
    expect(f.sql, "SELECT stddev(x), median(x) FROM (SELECT 7 AS x)", "-|7\n");
    expect(f.sql,
           "SELECT stddev(x) FROM (SELECT 1e9 + (value % 2) AS x FROM"
           " (WITH RECURSIVE n(value) AS (VALUES (0) UNION ALL SELECT value + 1 FROM n"
           " WHERE value < 999) SELECT value FROM n))",
           "0.50025018765638685\n");
    /* every percentile of a shuffled range is where it belongs */
    expect(f.sql,
           "WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n WHERE i < 1000),"
           " v(x) AS (SELECT i * 379 % 1001 FROM n)"
           " SELECT percentile(x, 0), percentile(x, 10), percentile(x, 99.9),"
           " percentile(x, 100), median(x), median(x % 3) FROM v",
           "0|100|999|1000|500|1\n");
    char *error = NULL;
    assert_int_not_equal(sqlite3_exec(tmk_sql_handle(f.sql),
                                      "SELECT percentile(x, 101) FROM (SELECT 1 AS x)", NULL, NULL,
                                      &error),
                         SQLITE_OK);
    assert_non_null(strstr(error, "from 0 to 100"));
    sqlite3_free(error);
    close_fixture(&f);
}

/* ---- pseudo-random traces ---- */

enum { N_EVENTS = 3000, CHUNK_EVENTS = 50, N_BOUNDED_EVENTS = 800000 };

struct dice {
    uint64_t state;
    uint64_t odd_bytes; /* on top of multiples of 512 */
};

static uint32_t roll(struct dice *d, uint32_t n)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(d->state >> 33) % n;
}

static void random_push(struct maker *m, struct dice *d)
{
    static const uint32_t stages[] = {S_FORWARD, S_BACKWARD, S_OPTIMIZER, S_LOSS};
    static const uint32_t modules[] = {S_MODEL, S_FC1, S_FC2, S_FC1_AGAIN,
                                       N_STRINGS}; /* undefined */
    uint32_t what = roll(d, 10);
    if (what < 3)
        maker_push(m, TIDEMARK_STAGE, stages[roll(d, 4)]);
    else if (what < 9)
        maker_push(m, TIDEMARK_MODULE, modules[roll(d, 5)]);
    else
        maker_push(m, TIDEMARK_USER, S_USER);
}

static void random_event(struct maker *m, struct dice *d, int64_t *step)
{
    unsigned device = roll(d, 8) ? CUDA0 : roll(d, 2) ? CUDA1 : TIDEMARK_HOST;
    uint64_t address = 4096 * (1 + (uint64_t)roll(d, 40));
    uint32_t what = roll(d, 200);
    m->thread = 1 + roll(d, 3);
    m->ns += roll(d, 50);
    if (what < 50)
        maker_alloc(m, device, address, 512 * (uint64_t)roll(d, 400000) + d->odd_bytes, roll(d, 3));
    else if (what < 90)
        maker_free(m, device, address); /* perhaps nothing is there */
    else if (what < 100)
        maker_tag(m, device, address, roll(d, 10), roll(d, 2) ? S_WEIGHT : 0);
    else if (what < 145)
        random_push(m, d);
    else if (what < 192)
        maker_pop(m, roll(d, 10) < 8 ? TIDEMARK_MODULE : 1 + 2 * roll(d, 2));
    else if (what < 194)
        maker_mark(m, roll(d, 2) * S_MARK, "said");
    else if (what < 195)
        maker_oom(m, device, roll(d, 1000000), roll(d, 2) * 5000000, roll(d, 3));
    else
        maker_step(m, *step += 1 + roll(d, 3) / 2);
}

/* Events in chunks of about CHUNK_EVENTS. `fall_at`: there the step numbers begin anew. */
static void make_random(struct maker *m, uint64_t seed, uint32_t n_events, uint32_t fall_at)
{
    struct dice d = {.state = seed, .odd_bytes = seed % 2 ? 0 : 3};
    int64_t step = -1;
    define_strings(m);
    define_thread(m, 3, 1003);
    for (uint32_t i = 0; i < n_events; i++) {
        if (i == fall_at)
            step = -1;
        random_event(m, &d, &step);
        if (roll(&d, CHUNK_EVENTS) == 0)
            maker_flush(m);
    }
}

static void open_random(struct fixture *f, uint32_t n_processes, uint32_t fall_at)
{
    *f = (struct fixture){0};
    make_folder(f->folder);
    for (uint32_t i = 0; i < n_processes; i++) {
        struct maker m;
        char info[200], name[16];
        snprintf(info, sizeof info,
                 "host=h\npid=%u\nrank=%u\nworld_size=%u\nstart_realtime_ns=%llu\n", 100 + i, i,
                 n_processes, 1700000000000000000ull + 5000 * (n_processes - i));
        snprintf(name, sizeof name, "r%u", i);
        open_trace(&m, f->folder, name, info, 0);
        make_random(&m, 7 + i, N_EVENTS, fall_at);
        close_trace(f, &m);
    }
    open_fixture(f);
}

/* ---- torch_trace against a replay ---- */

struct opened { /* by thread and depth: what a post row needs of its pre row */
    uint64_t allocated, max;
    bool has_row;
};

struct oracle {
    struct tmk_process *p;
    struct text *out;
    struct opened opened[4][4096];
    uint64_t n_module_events; /* of the step */
    uint64_t n_steps;
    uint16_t device;
};

/* The accelerator that ever had the most. */
static uint16_t main_device(struct tmk_process *p)
{
    struct tmk_replay rp;
    uint64_t most = 0;
    uint16_t device = TIDEMARK_HOST;
    assert_int_equal(tmk_process_sweep(p, &(struct tmk_visitor){0}, 1, &rp, NULL), 0);
    for (uint32_t i = 0; i < rp.state.n_devices; i++) {
        const struct tmk_device_use *d = &rp.state.devices[i];
        if (d->device != TIDEMARK_HOST && d->max_bytes > most) {
            most = d->max_bytes;
            device = d->device;
        }
    }
    tmk_replay_fini(&rp);
    return device;
}

static uint32_t depth_of(const struct tmk_state *s, uint32_t thread)
{
    uint32_t n = 0;
    for (uint32_t r = thread < s->n_threads ? s->thread_top[thread] : 0; r;
         r = s->ranges[r - 1].outer)
        n++;
    return n;
}

static const char *stage_word(const char *stage)
{
    if (stage && strcmp(stage, "optimizer") == 0)
        return "step";
    return stage && (strcmp(stage, "forward") == 0 || strcmp(stage, "backward") == 0) ? stage
                                                                                      : NULL;
}

static void oracle_row(struct oracle *o, const struct tmk_replay *rp, const struct tmk_event *ev,
                       const char *module, const char *stage, uint64_t seq)
{
    const struct tmk_state *s = &rp->state;
    bool post = ev->kind == TMK_KIND_POP, has_step = s->step != TMK_NO_STEP;
    uint64_t allocated = 0, max = 0;
    char line[400], step[64] = "-|", offset[40] = "-", duration[40] = "-", deltas[80] = "-|-";
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (s->devices[i].device != o->device)
            continue;
        allocated = s->devices[i].allocated_bytes;
        max = s->devices[i].max_bytes;
    }
    struct opened *open = &o->opened[ev->thread][depth_of(s, ev->thread) - !post];
    if (!post)
        *open = (struct opened){allocated, max, true};
    if (has_step) {
        snprintf(step, sizeof step, "%lld|", (long long)s->step);
        snprintf(offset, sizeof offset, "%.17g", (double)(ev->time_ns - s->step_start_ns) / 1e9);
    }
    if (post) {
        snprintf(duration, sizeof duration, "%.17g",
                 (double)(ev->time_ns - rp->closed.start_ns) / 1e9);
        snprintf(deltas, sizeof deltas, "%.17g|%.17g",
                 (double)(int64_t)(allocated - open->allocated) / 1048576.0,
                 (double)(int64_t)(max - open->max) / 1048576.0);
    }
    snprintf(line, sizeof line, "%s%llu|%s|%s %s|%.17g|%.17g|-|-|%s|%s|", step,
             (unsigned long long)seq, module ? module : "-", post ? "post" : "pre",
             stage_word(stage), (double)allocated / 1048576.0, (double)max / 1048576.0, offset,
             duration);
    text_add(o->out, line);
    snprintf(line, sizeof line, "%llu|%lld|%lld|-|%s\n", (unsigned long long)(o->n_steps - 1),
             (long long)o->p->rank, (long long)o->p->world_size, deltas);
    text_add(o->out, has_step ? line : strcat(strcpy(offset, "-|"), strchr(line, '|') + 1));
}

static void on_oracle_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    (void)b;
    struct oracle *o = arg;
    const struct tmk_state *s = &rp->state;
    if (ev->kind == TMK_KIND_STEP) {
        o->n_module_events = 0;
        o->n_steps++;
        return;
    }
    bool is_push = ev->kind == TMK_KIND_PUSH && ev->range_kind == TIDEMARK_MODULE;
    bool is_pop = ev->kind == TMK_KIND_POP && rp->closed.kind == TIDEMARK_MODULE;
    if (!is_push && !is_pop)
        return;
    uint32_t context = is_push ? tmk_state_thread_context(s, ev->thread) : rp->closed.context;
    const char *stage = tmk_context_stage(o->p, s, context);
    uint64_t seq = o->n_module_events++;
    if (stage_word(stage))
        oracle_row(o, rp, ev, tmk_context_module(o->p, s, context), stage, seq);
}

static char *oracle_rows(struct tmk_run *run)
{
    struct text t = {0};
    struct oracle *o = calloc(1, sizeof *o);
    assert_non_null(o);
    text_add(&t, "");
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        *o = (struct oracle){.p = tmk_run_process(run, i), .out = &t};
        o->device = main_device(o->p);
        struct tmk_visitor visitor = {.arg = o, .event = on_oracle_event};
        assert_int_equal(tmk_process_sweep(o->p, &visitor, 1, NULL, NULL), 0);
    }
    free(o);
    return t.bytes;
}

static void torch_trace_against_replay(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 2, 0);
    char *expected = oracle_rows(f.run);
    assert_true(strlen(expected) > 25000);
    expect(f.sql, "SELECT * FROM python.torch_trace", expected);
    free(expected);
    close_fixture(&f);
}

/* ---- every table against a plain one ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same lines, sorted. */
static char *sorted(char *text)
{
    struct text out = {0};
    size_t n = 0, room = 1024;
    char **lines = malloc(room * sizeof *lines), *next = NULL;
    assert_non_null(lines);
    for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
        if (n == room) {
            lines = realloc(lines, (room *= 2) * sizeof *lines);
            assert_non_null(lines);
        }
        lines[n++] = line;
    }
    qsort(lines, n, sizeof *lines, compare_lines);
    text_add(&out, "");
    for (size_t i = 0; i < n; i++) {
        text_add(&out, lines[i]);
        text_add(&out, "\n");
    }
    free(lines);
    free(text);
    return out.bytes;
}

/* Ask the table and its copy the same, %s being the table, and compare. */
static void compare(struct tmk_sql *sql, const char *table, bool in_order, const char *query)
{
    char *ours = sqlite3_mprintf(query, table, table),
         *plain = sqlite3_mprintf(query, "copy", "copy");
    char *a = ask(tmk_sql_handle(sql), ours), *b = ask(tmk_sql_handle(sql), plain);
    if (!in_order) {
        a = sorted(a);
        b = sorted(b);
    }
    same(ours, a, b);
    free(a);
    free(b);
    sqlite3_free(ours);
    sqlite3_free(plain);
}

static void copy_table(struct tmk_sql *sql, const char *table)
{
    char *query = sqlite3_mprintf("CREATE TEMP TABLE copy AS SELECT * FROM %s", table);
    must_run(sql, "DROP TABLE IF EXISTS temp.copy");
    must_run(sql, query);
    sqlite3_free(query);
}

/* A column by itself: in order up and down, grouped, compared with one of its own values. */
static void compare_column(struct tmk_sql *sql, const char *table, const char *column)
{
    static const struct {
        bool in_order;
        const char *query; /* %s: column; %%s: table */
    } forms[] = {
        {true, "SELECT %s FROM %%s ORDER BY 1"},
        {true, "SELECT %s FROM %%s ORDER BY 1 DESC"},
        {true, "SELECT %s, count(*) FROM %%s GROUP BY 1 ORDER BY 1"},
        {false, "SELECT %s, count(*) FROM %%s GROUP BY 1"},
        {true, "SELECT max(\"%s\") FROM %%s"},
        {true, "SELECT min(\"%s\") FROM %%s"},
        {false, "SELECT * FROM %%s WHERE %s IS NOT NULL"},
        {false, "SELECT * FROM %%s WHERE %s IS NULL"},
        {false, "SELECT * FROM %%s WHERE %s = (SELECT \"%s\" FROM copy LIMIT 1 OFFSET 7)"},
        {false, "SELECT * FROM %%s WHERE %s > (SELECT \"%s\" FROM copy LIMIT 1 OFFSET 9)"},
        {false, "SELECT * FROM %%s WHERE %s <= (SELECT \"%s\" FROM copy LIMIT 1 OFFSET 5)"},
        {true, "SELECT count(DISTINCT \"%s\") FROM %%s"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char quoted[64];
        snprintf(quoted, sizeof quoted,
                 strstr(forms[i].query, "\"%s\" FROM copy") ? "%s" : "\"%s\"", column);
        bool is_quoted = strstr(forms[i].query, "(\"%s\")") || strstr(forms[i].query, "T \"%s\"");
        char *query = sqlite3_mprintf(forms[i].query, is_quoted ? column : quoted, column);
        compare(sql, table, forms[i].in_order, query);
        sqlite3_free(query);
    }
}

static void compare_table(struct tmk_sql *sql, const struct tmk_sql_table *t, const char *table)
{
    copy_table(sql, table);
    compare(sql, table, true, "SELECT * FROM %s");
    compare(sql, table, true, "SELECT count(*) FROM %s");
    for (size_t i = 0; i < t->n_columns; i++)
        compare_column(sql, table, t->columns[i].name);
}

static void compare_all(struct fixture *f)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    for (size_t i = 0; i < n; i++) {
        const char *name = tables[i].name;
        name = strcmp(name, "timeline(n)") == 0  ? "timeline(50)"
               : strcmp(name, "live_at(t)") == 0 ? "live_at(300000)"
                                                 : name;
        compare_table(f->sql, &tables[i], name);
    }
}

static void tables_against_plain(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, 0);
    compare_all(&f);
    close_fixture(&f);
}

static void tables_of_two_processes_against_plain(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 2, 0);
    compare_all(&f);
    close_fixture(&f);
}

/* Queries about more than one column. In order where the order is the query's. */
static const struct {
    bool in_order;
    const char *query;
} mixed[] = {
    {true, "SELECT module, stage, count(*), min(step) FROM %s GROUP BY 1, 2 ORDER BY 1, 2"},
    {true, "SELECT module, stage, count(*) FROM %s GROUP BY 1, 2 ORDER BY 1 DESC, 2"},
    {true, "SELECT module, step FROM %s ORDER BY module, step"},
    {true, "SELECT module, step FROM %s ORDER BY module DESC, step DESC"},
    {true, "SELECT step, stage, count(*) FROM %s GROUP BY step, stage ORDER BY step, stage"},
    {true, "SELECT step, seq, rank FROM %s WHERE rank = 0 ORDER BY step, seq"},
    {true, "SELECT step, seq, module FROM %s WHERE rank = 0 ORDER BY step DESC, seq DESC"},
    {true, "SELECT step, max(seq) FROM %s WHERE module = 'model.fc1' GROUP BY step ORDER BY step"},
    {true, "SELECT stage, sum(seq) FROM %s WHERE step > 50 AND step <= 90 GROUP BY 1 ORDER BY 1"},
    {true, "SELECT stage, sum(seq) FROM %s WHERE step BETWEEN 50 AND 50 GROUP BY 1 ORDER BY 1"},
    {true, "SELECT step, count(*) FROM %s WHERE step >= 100.5 GROUP BY 1 ORDER BY 1"},
    {true, "SELECT step, count(*) FROM %s WHERE step < 9.5 AND step > 2 GROUP BY 1 ORDER BY 1"},
    {true, "SELECT count(*) FROM %s WHERE step > '12'"},
    {true, "SELECT count(*) FROM %s WHERE step < 'twelve'"},
    {true, "SELECT count(*) FROM %s WHERE step > 'twelve'"},
    {true, "SELECT count(*) FROM %s WHERE step = 12.0"},
    {true, "SELECT count(*) FROM %s WHERE step = 12.5"},
    {true, "SELECT count(*) FROM %s WHERE step > NULL"},
    {true, "SELECT count(*) FROM %s WHERE step > 9e18"},
    {true, "SELECT count(*) FROM %s WHERE step > -9.3e18"},
    {true, "SELECT count(*) FROM %s WHERE step >= 9223372036854775807"},
    {true, "SELECT count(*) FROM %s WHERE step > 9223372036854775807"},
    {true, "SELECT count(*) FROM %s WHERE step < -9223372036854775808"},
    {true, "SELECT count(*) FROM %s WHERE step > 10 AND step < 5"},
    {true, "SELECT count(*) FROM %s WHERE module = 5"},
    {true, "SELECT count(*) FROM %s WHERE module = 'MODEL' COLLATE NOCASE"},
    {true, "SELECT count(*) FROM %s WHERE rank = '0'"},
    {true, "SELECT count(*) FROM %s WHERE rank = 0.5"},
    {false, "SELECT * FROM %s WHERE module = 'model.fc2' OR stage = 'pre step'"},
    {false, "SELECT * FROM %s WHERE module = 'model.fc2' OR step = 3"},
    {false, "SELECT * FROM %s WHERE stage IN ('pre step', 'post step', 'nothing')"},
    {false, "SELECT DISTINCT module, stage FROM %s"},
    {false, "SELECT DISTINCT step FROM %s"},
    {false, "SELECT a.step, b.stage FROM %s a JOIN (SELECT DISTINCT stage FROM %s) b"
            " ON b.stage = a.stage WHERE a.step < 20"},
    {false,
     "SELECT a.step, a.seq, b.seq FROM %s a JOIN %s b ON b.step = a.step AND b.seq = a.seq + 1"
     " AND b.rank = a.rank WHERE a.module = 'model' AND a.step < 30"},
    {false, "SELECT a.module, count(*) FROM %s a, (SELECT DISTINCT module FROM %s) b"
            " WHERE a.module = b.module GROUP BY 1"},
    {true, "SELECT step FROM %s ORDER BY step LIMIT 5 OFFSET 3"},
    {true, "SELECT step FROM %s ORDER BY step DESC LIMIT 5"},
    {true, "SELECT step, median(allocated), percentile(allocated, 90), stddev(allocated) FROM %s"
           " GROUP BY step ORDER BY step"},
    {true, "SELECT module, stddev(duration), median(allocated_delta) FROM %s GROUP BY module"
           " ORDER BY module"},
    {true, "SELECT count(*), sum(seq) FROM %s WHERE module IS NOT NULL AND stage = 'pre forward'"
           " AND role IS NULL"},
    {true, "SELECT rank, step, count(*) FROM %s GROUP BY rank, step ORDER BY rank, step"},
    {true, "SELECT local_step, count(*) FROM %s GROUP BY local_step ORDER BY local_step"},
};

/* S5's five, as its page has them. */
static const char *const s5[] = {
    "SELECT\n  step,\n  avg(allocated) as avg_memory_mb,\n  max(allocated) as peak_memory_mb,\n"
    "  min(allocated) as min_memory_mb\nFROM %s\nWHERE step IS NOT NULL\nGROUP BY step\n"
    "ORDER BY step;",
    "SELECT\n  step,\n  max(allocated) - min(allocated) as memory_growth_mb\nFROM %s\n"
    "WHERE step > (SELECT max(step) - 10 FROM %s)\nGROUP BY step\n"
    "HAVING max(allocated) - min(allocated) > 50\nORDER BY step;",
    "SELECT\n  module,\n  stage,\n  avg(allocated) as avg_memory,\n  count(*) as execution_count\n"
    "FROM %s\nWHERE module IS NOT NULL\nGROUP BY module, stage\nORDER BY avg_memory DESC\nLIMIT "
    "10;",
    "WITH memory_trend AS (\n  SELECT\n    step,\n    max(allocated) as peak_memory,\n"
    "    LAG(max(allocated)) OVER (ORDER BY step) as prev_peak\n  FROM %s\n  GROUP BY step\n)\n"
    "SELECT step, peak_memory, prev_peak,\n       peak_memory - prev_peak as growth\n"
    "FROM memory_trend\nWHERE peak_memory > prev_peak\nORDER BY step;",
    "SELECT\n  module,\n  stage,\n  stddev(allocated) as memory_variance,\n"
    "  max(allocated) - min(allocated) as memory_range\nFROM %s\nGROUP BY module, stage\n"
    "HAVING stddev(allocated) > 10\nORDER BY memory_variance DESC;",
};

static void compare_mixed(struct fixture *f)
{
    copy_table(f->sql, "python.torch_trace");
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
        compare(f->sql, "python.torch_trace", mixed[i].in_order, mixed[i].query);
    for (size_t i = 0; i < sizeof s5 / sizeof s5[0]; i++) {
        char *query = sqlite3_mprintf(s5[i], "python.torch_trace", "python.torch_trace");
        char *rows = ask(tmk_sql_handle(f->sql), query);
        assert_true(strlen(rows) > 0); /* or it proves nothing */
        free(rows);
        sqlite3_free(query);
        compare(f->sql, "python.torch_trace", true, s5[i]);
    }
}

static void mixed_queries(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, 0);
    compare_mixed(&f);
    close_fixture(&f);
}

static void mixed_queries_of_two_processes(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 2, 0);
    compare_mixed(&f);
    close_fixture(&f);
}

static void mixed_queries_with_falling_steps(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, N_EVENTS / 2);
    compare_mixed(&f);
    close_fixture(&f);
}

/* ---- plans ---- */

static void expect_plan(struct tmk_sql *sql, const char *query, const char *how, bool sorts)
{
    char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", query);
    char *plan = ask(tmk_sql_handle(sql), explain);
    if (!strstr(plan, how) || sorts != (strstr(plan, "TEMP B-TREE") != NULL))
        fail_msg("%s\nis planned as\n%s", query, plan);
    free(plan);
    sqlite3_free(explain);
}

/* What is slow when the planner does otherwise. */
static void plans(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, 0);
    expect_plan(f.sql, "SELECT step, max(seq) FROM python.torch_trace GROUP BY step ORDER BY step",
                "from the start", false);
    expect_plan(f.sql, "SELECT max(step) FROM python.torch_trace", "from the end", false);
    expect_plan(f.sql, "SELECT module, stage, max(seq) FROM python.torch_trace GROUP BY 1, 2",
                "grouped", false);
    expect_plan(f.sql, "SELECT category, sum(size) FROM allocations GROUP BY category", "grouped",
                false);
    expect_plan(f.sql, "SELECT * FROM python.torch_trace ORDER BY step, seq", "from the start",
                false);
    expect_plan(f.sql, "SELECT * FROM events ORDER BY time_ns DESC LIMIT 3", "from the end", false);
    expect_plan(f.sql, "SELECT * FROM allocations ORDER BY size", "from the start", true);
    close_fixture(&f);
    open_random(&f, 2, 0);
    expect_plan(f.sql, "SELECT step, max(seq) FROM python.torch_trace GROUP BY step",
                "merged in order", false);
    close_fixture(&f);
    open_random(&f, 1, N_EVENTS / 2); /* natural order is not that of steps: bins are */
    expect_plan(f.sql, "SELECT step, max(seq) FROM python.torch_trace GROUP BY step", "grouped",
                false);
    close_fixture(&f);
}

/* ---- the rest ---- */

static void two_processes(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 2, 0);
    expect(f.sql, "SELECT rank, pid, start_ns FROM processes", "0|100|5000\n1|101|0\n");
    expect(f.sql, "SELECT count(*) = count(DISTINCT id) FROM allocations", "1\n");
    expect(f.sql,
           "SELECT count(*) = (SELECT count(*) FROM allocations WHERE stack_id IS NOT NULL)"
           " FROM allocations a JOIN stacks s ON s.id = a.stack_id AND s.pid = a.pid",
           "1\n");
    expect(f.sql, "SELECT sum(events) = (SELECT count(*) FROM events) FROM processes", "1\n");
    expect(f.sql, "SELECT sum(allocations) = (SELECT count(*) FROM allocations) FROM processes",
           "1\n");
    close_fixture(&f);
}

static void documentation(void **state)
{
    (void)state;
    struct fixture f;
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    open_hand(&f);
    assert_int_equal(n, 16);
    for (size_t i = 0; i < n; i++) {
        char name[64], query[128];
        sqlite3_stmt *s = NULL;
        snprintf(name, sizeof name, "%s", tables[i].name);
        if (strchr(name, '('))
            *strchr(name, '(') = '\0';
        must_run(f.sql, tables[i].example);
        assert_true(strlen(tables[i].meaning) > 0);
        snprintf(query, sizeof query, "SELECT * FROM %s", name);
        assert_int_equal(sqlite3_prepare_v2(tmk_sql_handle(f.sql), query, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_column_count(s), tables[i].n_columns);
        for (int c = 0; c < sqlite3_column_count(s); c++) {
            assert_string_equal(sqlite3_column_name(s, c), tables[i].columns[c].name);
            assert_string_equal(sqlite3_column_decltype(s, c), tables[i].columns[c].type);
        }
        sqlite3_finalize(s);
    }
    close_fixture(&f);
}

/* Rows do not depend on what is held: forget everything at once, decode again. */
static void store_forgets(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, 0);
    struct tmk_textpool pool = {0};
    struct tmk_source source;
    struct tmk_store store;
    uint64_t wanted = 0xffff, sum[2] = {0, 0}, n_rows = 0;
    assert_int_equal(tmk_source_init(&source, tmk_run_process(f.run, 0), 0, &pool), 0);
    assert_int_equal(tmk_store_init(&store, &tmk_vtab_torch_trace, &source, 1, &pool, NULL), 0);
    assert_true(store.n_segments > 40);
    for (int round = 0; round < 2; round++) {
        store.limit_bytes = round ? 0 : UINT64_MAX;
        for (uint32_t i = 0; i < store.n_segments; i++) {
            struct tmk_segment *segment = &store.segments[i];
            struct tmk_cell cells[TMK_MAX_COLUMNS];
            assert_int_equal(tmk_store_pin(&store, segment, round ? wanted : wanted & 0x0f, NULL),
                             0);
            assert_int_equal(tmk_store_pin(&store, segment, wanted, NULL), 0);
            tmk_store_cells(&store, segment, wanted, cells);
            for (uint64_t row = 0; row < segment->n_rows; row++)
                sum[round] += (uint64_t)((const int64_t *)cells[4].data)[row] * (row + i);
            n_rows += segment->n_rows;
            tmk_store_unpin(&store, segment);
            tmk_store_unpin(&store, segment);
            assert_true(round == 0 || segment->held == 0);
        }
    }
    assert_true(n_rows > 200);
    assert_int_equal(sum[0], sum[1]);
    assert_int_equal(store.slabs.n_bytes, 0);
    tmk_store_fini(&store);
    tmk_source_fini(&source);
    tmk_textpool_fini(&pool);
    close_fixture(&f);
}

/* Turn a byte of the n-th events chunk's payload. */
static void damage_chunk(const char *path, uint32_t n)
{
    struct tmk_reader *r = NULL;
    assert_int_equal(tmk_reader_open(path, &r, NULL), 0);
    uint64_t offset = 0;
    for (uint32_t i = 0, k = 0; i < tmk_reader_n_chunks(r) && !offset; i++)
        if (tmk_reader_chunk(r, i)->header.kind == TMK_CHUNK_EVENTS && k++ == n)
            offset = tmk_reader_chunk(r, i)->offset + TMK_CHUNK_HEADER_BYTES + 5;
    tmk_reader_close(r);
    assert_true(offset > 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    close(fd);
}

/* One chunk is lost: every table still answers, with the rows of the others. */
static void damage(void **state)
{
    (void)state;
    struct fixture f;
    open_random(&f, 1, 0);
    char *all = ask(tmk_sql_handle(f.sql), "SELECT count(*) FROM events WHERE step < 20");
    f.sql = tmk_sql_close(f.sql);
    f.run = tmk_run_close(f.run);
    damage_chunk(f.paths[0], 30);
    open_fixture(&f);
    expect(f.sql, "SELECT count(*) FROM events WHERE step < 20", all);
    expect(f.sql, "SELECT count(*) < 3000 AND count(*) > 2500 FROM events", "1\n");
    /* what one chunk hid: blocks that went, and came, unseen; nothing is there twice */
    expect(f.sql,
           "SELECT count(*) FROM (SELECT id FROM allocations WHERE id IS NOT NULL GROUP BY id"
           " HAVING count(*) > 1)",
           "0\n");
    expect(f.sql,
           "SELECT count(*) FROM (SELECT thread, start_ns, name, kind, depth FROM ranges"
           " GROUP BY 1, 2, 3, 4, 5 HAVING count(*) > 3)",
           "0\n");
    compare_mixed(&f);
    free(all);
    close_fixture(&f);
}

static void count_events(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                         struct tmk_block *b)
{
    (void)rp, (void)ev, (void)b;
    ++*(uint64_t *)arg;
}

/* Old detail was given up: the tables begin where replay does, the history is whole. */
static void bounded_trace(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct maker m;
    uint64_t n_events = 0;
    char expected[64];
    make_folder(f.folder);
    open_trace(&m, f.folder, "ring", hand_info, TMK_MAX_SIZE_LEAST);
    make_random(&m, 3, N_BOUNDED_EVENTS, 0);
    close_trace(&f, &m);
    open_fixture(&f);
    struct tmk_visitor visitor = {.arg = &n_events, .event = count_events};
    assert_int_equal(tmk_process_sweep(tmk_run_process(f.run, 0), &visitor, 1, NULL, NULL), 0);
    expect(f.sql, "SELECT given_up > 0, events FROM processes", "1|800000\n");
    expect(f.sql, "SELECT sum(allocations) = (SELECT allocations FROM processes) FROM steps",
           "1\n");
    /* implied frees are visited but were not recorded */
    snprintf(expected, sizeof expected, "1|1\n");
    char query[256];
    snprintf(query, sizeof query, "SELECT count(*) <= %llu, count(*) > %llu / 2 FROM events",
             (unsigned long long)n_events, (unsigned long long)n_events);
    expect(f.sql, query, expected);
    expect(f.sql, "SELECT (SELECT sum(size) FROM live_at) = (SELECT sum(allocated) FROM devices)",
           "1\n");
    expect(f.sql,
           "SELECT (SELECT sum(size) FROM allocations WHERE free_ns IS NULL)"
           " = (SELECT sum(allocated) FROM devices)",
           "1\n");
    expect(f.sql, "SELECT min(step) > 0, count(local_step) = count(*) FROM python.torch_trace",
           "1|1\n");
    expect(f.sql,
           "SELECT max(max_allocated) = (SELECT max(max_allocated) FROM devices"
           " WHERE device = 'cuda:0') / 1048576.0 FROM python.torch_trace",
           "1\n");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_trace_by_hand),
        cmocka_unit_test(blocks_by_hand),
        cmocka_unit_test(history_by_hand),
        cmocka_unit_test(names_by_hand),
        cmocka_unit_test(moments_by_hand),
        cmocka_unit_test(no_blocks),
        cmocka_unit_test(aggregates),
        cmocka_unit_test(torch_trace_against_replay),
        cmocka_unit_test(tables_against_plain),
        cmocka_unit_test(tables_of_two_processes_against_plain),
        cmocka_unit_test(mixed_queries),
        cmocka_unit_test(mixed_queries_of_two_processes),
        cmocka_unit_test(mixed_queries_with_falling_steps),
        cmocka_unit_test(plans),
        cmocka_unit_test(two_processes),
        cmocka_unit_test(documentation),
        cmocka_unit_test(store_forgets),
        cmocka_unit_test(damage),
        cmocka_unit_test(bounded_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
