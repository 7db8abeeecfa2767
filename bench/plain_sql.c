/* SPDX-License-Identifier: MIT */
/* plain_sql.c - the same rows in a table of SQLite's own, and the same queries over it.
 *
 *     plain_sql build RUN.tmk FILE.db      copy python.torch_trace and make an index on step
 *     plain_sql query FILE.db QUERY.sql    run one query, rows as CSV
 *     plain_sql version                    of the library
 *
 * This is what `tidemark query` is held against: the same library with its default settings, an
 * ordinary table, the index that one would make. Only stddev() is added, because SQLite has none
 * and one of the queries asks for it. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/run.h"
#include "sql/sql.h"

enum { QUERY_MAX_BYTES = 65536 };

static const char *const build_sql =
    "CREATE TABLE plain.torch_trace(step INTEGER, seq INTEGER, module TEXT, stage TEXT,"
    "  allocated REAL, max_allocated REAL, cached REAL, max_cached REAL, time_offset REAL,"
    "  duration REAL);"
    "INSERT INTO plain.torch_trace SELECT step, seq, module, stage, allocated, max_allocated,"
    "  cached, max_cached, time_offset, duration FROM python.torch_trace;"
    "CREATE INDEX plain.torch_trace_step ON torch_trace(step);";

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "plain_sql: %s: %s\n", what, why);
    return 1;
}

/* ---- stddev: of a sample, by Welford's running mean ---- */

struct spread {
    uint64_t n;
    double mean, sum_of_squares;
};

static void spread_step(sqlite3_context *context, int n_values, sqlite3_value **values)
{
    (void)n_values;
    struct spread *s = sqlite3_aggregate_context(context, sizeof *s);
    if (!s || sqlite3_value_type(values[0]) == SQLITE_NULL)
        return;
    double x = sqlite3_value_double(values[0]);
    double distance = x - s->mean;
    s->n++;
    s->mean += distance / (double)s->n;
    s->sum_of_squares += distance * (x - s->mean);
}

static void spread_final(sqlite3_context *context)
{
    const struct spread *s = sqlite3_aggregate_context(context, 0);
    if (s && s->n > 1)
        sqlite3_result_double(context, sqrt(s->sum_of_squares / (double)(s->n - 1)));
}

/* ---- building ---- */

/* The name as a quoted literal: ATTACH is the one statement that needs a path. */
static int attach(sqlite3 *db, const char *path, const char *as)
{
    char *sql = sqlite3_mprintf("ATTACH %Q AS %s", path, as);
    int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc;
}

static int fill(struct tmk_sql *sql, const char *path)
{
    sqlite3 *db = tmk_sql_handle(sql);
    if (attach(db, path, "plain") != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA plain.journal_mode=OFF; PRAGMA plain.synchronous=OFF", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(db, build_sql, NULL, NULL, NULL) != SQLITE_OK)
        return complain(path, sqlite3_errmsg(db));
    return 0;
}

static int build(const char *run_path, const char *path)
{
    struct tmk_error err = {0};
    struct tmk_run *run = NULL;
    struct tmk_sql *sql = NULL;
    int rc = tmk_run_open(run_path, &run, &err);
    if (rc == 0)
        rc = tmk_sql_open(run, &sql, &err);
    int status = rc < 0 ? complain(run_path, err.text) : fill(sql, path);
    tmk_sql_close(sql);
    tmk_run_close(run);
    return status;
}

/* ---- querying ---- */

static int read_query(const char *path, char *ret_text)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return complain(path, strerror(errno));
    size_t n = fread(ret_text, 1, QUERY_MAX_BYTES - 1, file);
    ret_text[n] = '\0';
    fclose(file);
    return 0;
}

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_value(sqlite3_stmt *statement, int i)
{
    switch (sqlite3_column_type(statement, i)) {
    case SQLITE_INTEGER:
        printf("%lld", (long long)sqlite3_column_int64(statement, i));
        break;
    case SQLITE_FLOAT:
        printf("%.17g", sqlite3_column_double(statement, i));
        break;
    case SQLITE_TEXT:
        print_text((const char *)sqlite3_column_text(statement, i));
        break;
    default:
        break;
    }
}

static void print_row(sqlite3_stmt *statement)
{
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        if (i > 0)
            putchar(',');
        print_value(statement, i);
    }
    putchar('\n');
}

static int run_query(sqlite3 *db, const char *text)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
    while (rc == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        print_row(statement);
    if (rc == SQLITE_OK)
        rc = sqlite3_finalize(statement);
    return rc;
}

static int query(const char *path, const char *query_path)
{
    char text[QUERY_MAX_BYTES];
    if (read_query(query_path, text) != 0)
        return 1;
    sqlite3 *db = NULL;
    int rc = sqlite3_open(":memory:", &db);
    if (rc == SQLITE_OK)
        rc = attach(db, path, "python");
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(db, "stddev", 1, SQLITE_UTF8, NULL, NULL, spread_step,
                                     spread_final);
    if (rc == SQLITE_OK)
        rc = run_query(db, text);
    int status = rc == SQLITE_OK ? 0 : complain(query_path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "build") == 0)
        return build(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "query") == 0)
        return query(argv[2], argv[3]);
    if (argc == 2 && strcmp(argv[1], "version") == 0)
        return puts(sqlite3_libversion()) < 0;
    fputs("usage: plain_sql build RUN.tmk FILE.db\n       plain_sql query FILE.db QUERY.sql\n"
          "       plain_sql version\n",
          stderr);
    return 2;
}
