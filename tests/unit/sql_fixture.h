/* SPDX-License-Identifier: MIT */
/* sql_fixture.h - runs made by hand or by dice, opened as databases, and their answers as text. */
#ifndef TMK_TESTS_SQL_FIXTURE_H
#define TMK_TESTS_SQL_FIXTURE_H

#include "base/error.h"
#include "maker.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/state.h"
#include "trace/writer.h"

#include "sql/sql.h"

#define CUDA0 TIDEMARK_CUDA(0)
#define CUDA1 TIDEMARK_CUDA(1)
#define MIB (UINT64_C(1) << 20)

/* ---- results as text ---- */

struct text {
    char *bytes;
    size_t n, room;
};

static inline void text_add(struct text *t, const char *bytes)
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

static inline void text_add_value(struct text *t, sqlite3_stmt *s, int i)
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
static inline char *ask(sqlite3 *db, const char *query)
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
static inline void same(const char *query, const char *found, const char *expected)
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

static inline void expect(struct tmk_sql *sql, const char *query, const char *expected)
{
    char *found = ask(tmk_sql_handle(sql), query);
    same(query, found, expected);
    free(found);
}

static inline void must_run(struct tmk_sql *sql, const char *query)
{
    free(ask(tmk_sql_handle(sql), query));
}

static inline struct tmk_sql *open_sql(struct tmk_run *run)
{
    struct tmk_sql *sql = NULL;
    struct tmk_error err = {0};
    if (tmk_sql_open(run, &sql, &err) < 0)
        fail_msg("%s", err.text);
    return sql;
}

/* ---- traces ---- */

/* A trace in a folder that may hold others. */
static inline void open_trace(struct maker *m, const char *folder, const char *name,
                              const char *info, uint64_t max_size)
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

static inline void make_folder(char *folder)
{
    strcpy(folder, "/tmp/tidemark-test.XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void define_thread(struct maker *m, uint32_t id, uint64_t system_id)
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

static inline void define_strings(struct maker *m)
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

static const char hand_info[] = "host=test\npid=42\nrank=3\nworld_size=8\ncommand=made by hand\n"
                                "start_realtime_ns=1700000000000000000\n";

struct fixture {
    char folder[64];
    char paths[4][128];
    uint32_t n_paths;
    struct tmk_run *run;
    struct tmk_sql *sql;
};

static inline void close_trace(struct fixture *f, struct maker *m)
{
    maker_flush(m);
    assert_int_equal(tmk_packer_finish(m->packer), 0);
    m->writer.status.state = TMK_STATE_CLOSED;
    assert_int_equal(tmk_writer_put_status(&m->writer, tmk_packer_state(m->packer)), 0);
    m->packer = tmk_packer_close(m->packer);
    tmk_writer_close(&m->writer);
    strcpy(f->paths[f->n_paths++], m->path);
}

static inline void open_fixture(struct fixture *f)
{
    struct tmk_error err = {0};
    if (tmk_run_open(f->folder, &f->run, &err) < 0)
        fail_msg("%s", err.text);
    f->sql = open_sql(f->run);
}

static inline void close_fixture(struct fixture *f)
{
    f->sql = tmk_sql_close(f->sql);
    f->run = tmk_run_close(f->run);
    for (uint32_t i = 0; i < f->n_paths; i++)
        unlink(f->paths[i]);
    rmdir(f->folder);
}

/* ---- pseudo-random traces ---- */

enum { N_EVENTS = 3000, CHUNK_EVENTS = 50, N_BOUNDED_EVENTS = 800000 };

struct dice {
    uint64_t state;
    uint64_t odd_bytes; /* on top of multiples of 512 */
};

static inline uint32_t roll(struct dice *d, uint32_t n)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(d->state >> 33) % n;
}

static inline void random_push(struct maker *m, struct dice *d)
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

static inline void random_event(struct maker *m, struct dice *d, int64_t *step)
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
static inline void make_random(struct maker *m, uint64_t seed, uint32_t n_events, uint32_t fall_at)
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

static inline void open_random(struct fixture *f, uint32_t n_processes, uint32_t fall_at)
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

#endif
