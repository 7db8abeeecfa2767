/* SPDX-License-Identifier: MIT */
/* test_sql_plain.c - pseudo-random runs: python.torch_trace is held against a replay of the same
 * events, and every table against a plain SQLite table with the same rows, under queries that make
 * the planner order, group, bound, merge and join in all the ways there are. */
#include "maker.h"
#include "model/run.h"
#include "sql/rows.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/sql.h"
#include "sql/table_doc.h"
#include "sql/textpool.h"
#include "sql_fixture.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

#include <fcntl.h>

#include "sql/store.h"

/* ---- torch_trace against a replay ---- */

struct opened { /* by thread and depth: what a post row needs of its pre row */
    uint64_t allocated, max;
    bool has_row;
};

struct oracle {
    struct tmk_process *p;
    struct text *out;
    struct opened opened[2][4][4096]; /* by device, too */
    uint64_t n_module_events;         /* of the step */
    uint64_t n_steps;
};

static const uint16_t oracle_devices[2] = {CUDA0, CUDA1};

/* Whether both were used, at some time, so that each has rows. */
static bool has_both_devices(struct tmk_process *p)
{
    struct tmk_replay rp;
    uint32_t n = 0;
    assert_int_equal(tmk_process_sweep(p, &(struct tmk_visitor){0}, 1, &rp, NULL), 0);
    for (uint32_t i = 0; i < rp.state.n_devices; i++)
        n += rp.state.devices[i].device != TIDEMARK_HOST && rp.state.devices[i].max_bytes > 0;
    tmk_replay_fini(&rp);
    return n == 2;
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
    if (!stage || strcmp(stage, "backward") == 0)
        return stage;
    return "forward"; /* those of the user's own names too */
}

static void oracle_row(struct oracle *o, const struct tmk_replay *rp, const struct tmk_event *ev,
                       const char *module, const char *stage, uint64_t seq, int nth)
{
    const struct tmk_state *s = &rp->state;
    bool post = ev->kind == TMK_KIND_POP, has_step = s->step != TMK_NO_STEP;
    uint64_t allocated = 0, max = 0;
    char line[400], step[64] = "-|", offset[40] = "-", duration[40] = "-", deltas[80] = "-|-";
    for (uint32_t i = 0; i < s->n_devices; i++) {
        if (s->devices[i].device != oracle_devices[nth])
            continue;
        allocated = s->devices[i].allocated_bytes;
        max = s->devices[i].max_bytes;
    }
    struct opened *open = &o->opened[nth][ev->thread][depth_of(s, ev->thread) - !post];
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
    snprintf(line, sizeof line, "%llu|%lld|%lld|-|%s|cuda:%d\n",
             (unsigned long long)(o->n_steps - 1), (long long)o->p->rank,
             (long long)o->p->world_size, deltas, nth);
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
    for (int nth = 0; nth < 2 && stage_word(stage); nth++)
        oracle_row(o, rp, ev, tmk_context_module(o->p, s, context), stage, seq, nth);
}

static char *oracle_rows(struct tmk_run *run)
{
    struct text t = {0};
    struct oracle *o = calloc(1, sizeof *o);
    assert_non_null(o);
    text_add(&t, "");
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        *o = (struct oracle){.p = tmk_run_process(run, i), .out = &t};
        assert_true(has_both_devices(o->p));
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
            struct tmk_column_values cells[TMK_MAX_COLUMNS];
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
        cmocka_unit_test(torch_trace_against_replay),
        cmocka_unit_test(tables_against_plain),
        cmocka_unit_test(tables_of_two_processes_against_plain),
        cmocka_unit_test(mixed_queries),
        cmocka_unit_test(mixed_queries_of_two_processes),
        cmocka_unit_test(mixed_queries_with_falling_steps),
        cmocka_unit_test(plans),
        cmocka_unit_test(two_processes),
        cmocka_unit_test(store_forgets),
        cmocka_unit_test(damage),
        cmocka_unit_test(bounded_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
