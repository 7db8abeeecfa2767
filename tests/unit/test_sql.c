/* SPDX-License-Identifier: MIT */
/* test_sql.c - a trace made by hand has known rows in every table; the aggregates have known
 * values; what the documentation says of tables and columns is so. */
#include "maker.h"
#include "sql/sql.h"
#include "sql/table_doc.h"
#include "sql_fixture.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/packer.h"

/* ---- the trace ---- */

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
        "5|4|model.fc2|pre forward|6|7|-|-|4.9999999999999998e-07|-|0|3|8|-\n"
        "5|5|model.fc2|post forward|6|7|-|-|4.9999999999999998e-07|0|0|3|8|-\n"
        "5|6|model.fc2|pre forward|6|7|-|-|5.9999999999999997e-07|-|0|3|8|-\n"
        "5|7|model.fc1|pre backward|6|7|-|-|6.9999999999999997e-07|-|0|3|8|-\n"
        "5|8|model.fc1|post "
        "backward|4|7|-|-|7.9999999999999996e-07|9.9999999999999995e-08|0|3|8|-\n"
        "6|0|model|pre step|4|7|-|-|0|-|1|3|8|-\n"
        "6|1|model|post step|4|7|-|-|1.9999999999999999e-07|1.9999999999999999e-07|1|3|8|-\n");
    expect(f.sql,
           "SELECT stage, allocated_delta, max_allocated_delta FROM python.torch_trace"
           " WHERE step = 5",
           "pre forward|-|-\npost forward|2|3\npre forward|-|-\npost forward|0|0\n"
           "pre forward|-|-\npre backward|-|-\n"
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
           "1|42|3|cuda:0|4096|4194304|100|-|1001|1|-|model_load|-|other|parameter|fc1.weight\n"
           "2|42|3|cuda:0|8192|2097152|1200|1800|1001|2|5|forward|model.fc1|mlp|activation|-\n"
           "3|42|3|cpu|8192|67108864|1300|-|1001|-|5|forward|model.fc1|mlp|activation|-\n"
           "4|42|3|cuda:0|12288|1048576|1300|1400|1001|-|5|forward|model.fc1|mlp|temporary|-\n");
    expect(
        f.sql, "SELECT * FROM tensors",
        "1|42|3|cuda:0|4096|4194304|100|-|1001|1|-|model_load|-|other|parameter|fc1.weight|0|-\n");
    expect(f.sql, "SELECT id, stream FROM allocations", "1|0\n2|0\n3|-\n4|0\n");
    /* cpu has the largest peak */
    expect(f.sql, "SELECT id, free_ns, category FROM peak ORDER BY id", "3|-|activation\n");
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
           "3|-|0|1000|4194304|-|1|4194304|cuda:0|42|0|0|4194304|100|1|-|0\n"
           "3|5|1000|2000|7340032|-|2|3145728|cuda:0|42|2|3145728|4194304|1300|1|-|1\n"
           "3|5|1000|2000|67108864|-|1|67108864|cpu|42|0|0|67108864|1300|1|-|1\n"
           "3|6|2000|2200|4194304|-|0|0|cuda:0|42|1|0|4194304|2000|0|-|0\n"
           "3|6|2000|2200|67108864|-|0|0|cpu|42|0|0|67108864|2000|0|-|0\n");
    expect(f.sql, "SELECT * FROM devices",
           "42|3|cuda:0|4194304|7340032|1300|3|3|7340032|-|-\n"
           "42|3|cpu|67108864|67108864|1300|1|0|67108864|-|-\n");
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
           "1|0|train.c|step|10|42|3|-\n1|1|train.c|main|20|42|3|-\n"
           "2|0|train.c|main|20|42|3|-\n2|1|-|-|-|42|3|-\n");
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
           "42|3|model|3|230|0|0|0|0|-|other|0|30|0|0|0\n"
           "42|3|model.fc1|2|500|3|70254592|70254592|67108864|-|mlp|0|400|100|70254592|0\n"
           "42|3|model.fc2|2|0|0|0|0|0|-|mlp|0|0|0|0|0\n");
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
           "42|3|2100|6|cuda:0|104857600|83886080|4194304|1001|1|optimizer|model|allocator|-\n"
           "42|3|2100|6|cuda:1|7|-|0|1001|-|optimizer|model|allocator|-\n");
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
           "-|0|-|pre forward|-|-|-|-|-|-|-|-1|-|-|-|-|-\n"
           "-|1|-|post forward|-|-|-|-|-|0|-|-1|-|-|-|-|-\n");
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

/* ---- as torch on an accelerator is recorded ---- */

static void put_text(struct maker *m, enum tmk_kind kind, uint32_t id, uint64_t a, const char *text,
                     uint32_t n)
{
    maker_add(m, (struct tmk_input){.kind = (uint8_t)kind,
                                    .id = id,
                                    .a = a,
                                    .text = (const uint8_t *)text,
                                    .text_bytes = n});
}

/* Stack 3: a Python line under a native frame; 4: a thread without lines. */
static void define_further(struct maker *m)
{
    static const uint8_t lines[] = "\2\1\2\x80\2\4";
    maker_string(m, N_STRINGS, "[thread pt_autograd_0]");
    maker_string(m, N_STRINGS + 1, "");
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_CODE,
                                    .id = 1,
                                    .a = (uint64_t)S_FILE << 32 | S_INNER,
                                    .b = 310ull << 32 | 7});
    put_text(m, TMK_KIND_DEF_LINES, 1, 0, (const char *)lines, sizeof lines - 1);
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_CODE_FRAME, .id = 3, .a = 1, .b = 4});
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_CODE_FRAME, .id = 4, .a = 1, .b = 2});
    put_text(m, TMK_KIND_DEF_MODULE, 1, 0, "/lib/libc10.so", 14);
    maker_add(m,
              (struct tmk_input){.kind = TMK_KIND_DEF_NATIVE_FRAME, .id = 5, .a = 1, .b = 0x1f0});
    maker_frame(m, 6, N_STRINGS + 1, N_STRINGS, 0);
    maker_stack(m, 3, (uint32_t[]){5, 3, 4}, 3);
    maker_stack(m, 4, (uint32_t[]){6}, 1);
    maker_add(
        m, (struct tmk_input){.kind = TMK_KIND_DEF_STREAM, .id = 9, .device = CUDA0, .a = 0x55aa});
}

static void alloc_on(struct maker *m, unsigned device, uint64_t address, uint64_t size,
                     uint32_t stack, uint16_t stream)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_ALLOC,
                                    .device = (uint16_t)device,
                                    .a = address,
                                    .b = size,
                                    .id = stack,
                                    .stream = stream});
}

static void make_accelerator(struct maker *m)
{
    define_strings(m);
    define_further(m);
    at(m, 10);
    alloc_on(m, TIDEMARK_HOST, 0x10, 5 * MIB, 4, 0);
    at(m, 20);
    maker_device_end(m, TIDEMARK_HOST);
    at(m, 100);
    maker_step(m, 1);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_MODEL); /* nothing reserved yet */
    alloc_on(m, CUDA0, 0x1000, MIB, 3, 9);
    maker_reserved(m, CUDA0, 20 * MIB);
    maker_reserved(m, CUDA1, 2 * MIB);
    maker_mark(m, S_MARK, "between");
    maker_pop(m, TIDEMARK_MODULE);
    at(m, 200);
    maker_step(m, 2);
    maker_flush(m);
    maker_push(m, TIDEMARK_MODULE, S_FC1);
    alloc_on(m, CUDA0, 0x2000, MIB, 3, 0);
    alloc_on(m, CUDA0, 0x3000, MIB, 0, 77); /* a stream that is not defined */
    maker_reserved(m, CUDA0, 8 * MIB);
    maker_pop(m, TIDEMARK_MODULE);
    at(m, 300);
    maker_step(m, 3);
    at(m, 400);
    maker_mark(m, S_MARK, "end");
}

static void accelerator_by_hand(void **state)
{
    (void)state;
    struct maker m;
    struct fixture f = {0};
    make_folder(f.folder);
    open_trace(&m, f.folder, "gpu", hand_info, 0);
    make_accelerator(&m);
    close_trace(&f, &m);
    open_fixture(&f);
    expect(f.sql, "SELECT id, device, size, free_ns, stream FROM allocations",
           "1|cpu|5242880|20|-\n2|cuda:0|1048576|-|21930\n3|cuda:0|1048576|-|0\n"
           "4|cuda:0|1048576|-|-\n");
    expect(f.sql, "SELECT count(*) FROM allocations WHERE requested IS NOT NULL", "0\n");
    expect(f.sql,
           "SELECT stack_id, depth, file, function, line, address FROM frames"
           " WHERE stack_id > 2",
           "3|0|/lib/libc10.so|-|-|496\n3|1|train.c|step|12|-\n3|2|train.c|step|-|-\n"
           "4|0|-|[thread pt_autograd_0]|-|-\n");
    expect(f.sql, "SELECT text FROM stacks WHERE id > 2",
           "/lib/libc10.so+0x1f0 < train.c:12 step < train.c:? step\n[thread pt_autograd_0]\n");
    expect(f.sql,
           "SELECT step, module, stage, allocated, max_allocated, cached, max_cached"
           " FROM python.torch_trace",
           "1|model|pre forward|0|0|-|-\n1|model|post forward|1|1|20|20\n"
           "2|model.fc1|pre forward|1|1|20|20\n2|model.fc1|post forward|3|3|8|20\n");
    expect(f.sql, "SELECT cached FROM python.torch_trace WHERE step = 2", "20\n8\n");
    expect(f.sql, "SELECT stage, max(cached) FROM python.torch_trace GROUP BY stage",
           "post forward|20\npre forward|20\n");
    expect(f.sql, "SELECT step, device, peak_reserved, end_reserved, freed_bytes, frees FROM steps",
           "-|cpu|-|-|5242880|0\n1|cpu|-|-|0|0\n"
           "1|cuda:0|20971520|20971520|0|0\n1|cuda:1|2097152|2097152|0|0\n2|cpu|-|-|0|0\n"
           "2|cuda:0|20971520|8388608|0|0\n2|cuda:1|2097152|2097152|0|0\n3|cpu|-|-|0|0\n"
           "3|cuda:0|8388608|8388608|0|0\n3|cuda:1|2097152|2097152|0|0\n");
    expect(f.sql, "SELECT device, allocated, max_allocated, reserved, max_reserved FROM devices",
           "cpu|0|5242880|-|-\ncuda:0|3145728|3145728|8388608|20971520\n"
           "cuda:1|0|0|2097152|2097152\n");
    expect(f.sql, "SELECT device, part, max_reserved, end_allocated FROM timeline(2)",
           "cpu|0|-|0\ncpu|1|-|0\ncuda:0|0|20971520|1048576\ncuda:0|1|20971520|3145728\n"
           "cuda:1|0|2097152|0\ncuda:1|1|2097152|0\n");
    expect(f.sql,
           "SELECT time_ns, kind, device, size FROM events"
           " WHERE kind IN ('reserved', 'device_end') AND device <> 'cuda:1'",
           "20|device_end|cpu|-\n100|reserved|cuda:0|20971520\n200|reserved|cuda:0|8388608\n");
    expect(f.sql, "SELECT count(*) FROM live_at(15)", "1\n");
    expect(f.sql, "SELECT count(*) FROM live_at(20)", "0\n");
    close_fixture(&f);
}

/* ---- several devices ---- */

/* cuda:1 gets 1 MiB in a chunk before the module opens, and gives it back inside; cuda:0 gets 2 and
 * 3 inside; the host has most. */
static void make_two_devices(struct maker *m)
{
    define_strings(m);
    maker_step(m, 1);
    alloc_on(m, TIDEMARK_HOST, 0x1000, 64 * MIB, 0, 0);
    alloc_on(m, CUDA1, 0x2000, MIB, 0, 0);
    maker_flush(m);
    at(m, 100);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_MODEL);
    alloc_on(m, CUDA0, 0x3000, 2 * MIB, 0, 0);
    maker_reserved(m, CUDA0, 20 * MIB);
    maker_reserved(m, CUDA1, 4 * MIB);
    maker_flush(m); /* a range that is open across chunks */
    alloc_on(m, CUDA0, 0x4000, 3 * MIB, 0, 0);
    maker_free(m, CUDA1, 0x2000);
    at(m, 200);
    maker_pop(m, TIDEMARK_MODULE);
    maker_step(m, 2);
    maker_push(m, TIDEMARK_STAGE, S_FORWARD);
    maker_push(m, TIDEMARK_MODULE, S_FC1);
}

static void test_two_devices(void **state)
{
    (void)state;
    struct maker m;
    struct fixture f = {0};
    make_folder(f.folder);
    open_trace(&m, f.folder, "gpus", "host=test\npid=42\nrank=1\nworld_size=2\nrole=dp=0,tp=1\n",
               0);
    make_two_devices(&m);
    close_trace(&f, &m);
    open_fixture(&f);
    expect(f.sql,
           "SELECT step, seq, module, stage, allocated, max_allocated, cached, max_cached,"
           " allocated_delta, max_allocated_delta, role, device FROM python.torch_trace",
           "1|0|model|pre forward|0|0|-|-|-|-|dp=0,tp=1|cuda:0\n"
           "1|0|model|pre forward|1|1|-|-|-|-|dp=0,tp=1|cuda:1\n"
           "1|1|model|post forward|5|5|20|20|5|5|dp=0,tp=1|cuda:0\n"
           "1|1|model|post forward|0|1|4|4|-1|0|dp=0,tp=1|cuda:1\n"
           "2|0|model.fc1|pre forward|5|5|20|20|-|-|dp=0,tp=1|cuda:0\n"
           "2|0|model.fc1|pre forward|0|1|4|4|-|-|dp=0,tp=1|cuda:1\n");
    /* other columns, other orders, and chunks that are read alone */
    expect(f.sql, "SELECT device, max(allocated) FROM python.torch_trace GROUP BY device",
           "cuda:0|5\ncuda:1|1\n");
    expect(f.sql, "SELECT seq, device FROM python.torch_trace WHERE step = 2",
           "0|cuda:0\n0|cuda:1\n");
    expect(f.sql,
           "SELECT step, seq, allocated FROM python.torch_trace WHERE device = 'cuda:1'"
           " ORDER BY step DESC, seq DESC",
           "2|0|0\n1|1|0\n1|0|1\n");
    expect(f.sql, "SELECT count(*), count(DISTINCT seq) FROM python.torch_trace", "6|2\n");
    expect(f.sql, "SELECT rank, role FROM processes", "1|dp=0,tp=1\n");
    close_fixture(&f);
}

/* ---- documentation ---- */

static void documentation(void **state)
{
    (void)state;
    struct fixture f;
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    open_hand(&f);
    assert_int_equal(n, 25);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torch_trace_by_hand), cmocka_unit_test(blocks_by_hand),
        cmocka_unit_test(history_by_hand),     cmocka_unit_test(names_by_hand),
        cmocka_unit_test(moments_by_hand),     cmocka_unit_test(no_blocks),
        cmocka_unit_test(accelerator_by_hand), cmocka_unit_test(test_two_devices),
        cmocka_unit_test(aggregates),          cmocka_unit_test(documentation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
