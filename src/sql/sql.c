/* SPDX-License-Identifier: MIT */
/* sql/sql.c - see sql.h. A new table is a file table_<name>.c and a line here. */
#include "sql/sql.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "sql/aggregates.h"
#include "sql/guard.h"
#include "sql/schema.h"
#include "sql/source.h"
#include "sql/textpool.h"
#include "sql/vtab.h"

static const struct tmk_vtab_def *const defs[] = {
    &tmk_vtab_events,       &tmk_vtab_allocations,   &tmk_vtab_steps,    &tmk_vtab_ranges,
    &tmk_vtab_modules,      &tmk_vtab_stacks,        &tmk_vtab_frames,   &tmk_vtab_tensors,
    &tmk_vtab_devices,      &tmk_vtab_processes,     &tmk_vtab_marks,    &tmk_vtab_ooms,
    &tmk_vtab_torch_trace,  &tmk_vtab_timeline,      &tmk_vtab_live_at,  &tmk_vtab_peak,
    &tmk_vtab_parameters,   &tmk_vtab_segments,      &tmk_vtab_samples,  &tmk_vtab_accounting,
    &tmk_vtab_leaks,        &tmk_vtab_fragmentation, &tmk_vtab_forecast, &tmk_vtab_whatif,
    &tmk_vtab_explanations,
};

enum { N_TABLES = TMK_N(defs) };

struct tmk_sql {
    sqlite3 *db;
    struct tmk_textpool pool;
    struct tmk_source *sources;
    uint32_t n_sources;
    struct tmk_vtab_context tables[N_TABLES];
    struct tmk_sql_guard guard;
};

static int open_table_sources(struct tmk_sql *sql, struct tmk_run *run)
{
    uint32_t n = tmk_run_n_processes(run);
    sql->sources = calloc((size_t)n + 1, sizeof *sql->sources);
    if (!sql->sources)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        int rc = tmk_source_init(&sql->sources[i], tmk_run_process(run, i), i, &sql->pool);
        if (rc < 0)
            return rc;
        sql->n_sources++;
    }
    return 0;
}

static int open_database(struct tmk_sql *sql)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(":memory:", &sql->db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(sql->db, "ATTACH ':memory:' AS python", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = tmk_aggregates_register(sql->db);
    for (size_t i = 0; rc == SQLITE_OK && i < N_TABLES; i++) {
        sql->tables[i] = (struct tmk_vtab_context){.def = defs[i],
                                                   .sources = sql->sources,
                                                   .n_sources = sql->n_sources,
                                                   .pool = &sql->pool};
        rc = tmk_vtab_register(sql->db, &sql->tables[i]);
    }
    return rc;
}

int tmk_sql_open(struct tmk_run *run, struct tmk_sql **ret_sql, struct tmk_error *err)
{
    struct tmk_sql *sql = calloc(1, sizeof *sql);
    if (!sql || open_table_sources(sql, run) < 0) {
        tmk_sql_close(sql);
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    }
    if (open_database(sql) != SQLITE_OK) {
        int rc = tmk_fail(err, TMK_ESQL, "cannot make the database: %s",
                          sql->db ? sqlite3_errmsg(sql->db) : "out of memory");
        tmk_sql_close(sql);
        return rc;
    }
    *ret_sql = sql;
    return 0;
}

struct tmk_sql *tmk_sql_close(struct tmk_sql *sql)
{
    if (!sql)
        return NULL;
    sqlite3_close_v2(sql->db);
    for (size_t i = 0; i < N_TABLES; i++)
        tmk_vtab_context_fini(&sql->tables[i]);
    for (uint32_t i = 0; i < sql->n_sources; i++)
        tmk_source_fini(&sql->sources[i]);
    free(sql->sources);
    tmk_textpool_fini(&sql->pool);
    free(sql);
    return NULL;
}

sqlite3 *tmk_sql_handle(struct tmk_sql *sql)
{
    return sql->db;
}

void tmk_sql_read_only(struct tmk_sql *sql)
{
    tmk_sql_guard_set(&sql->guard, sql->db);
}

const char *tmk_sql_refusal(const struct tmk_sql *sql)
{
    return sql->guard.refused[0] ? sql->guard.refused : NULL;
}

bool tmk_sql_allows(struct tmk_sql *sql, sqlite3_stmt *statement)
{
    return tmk_sql_guard_allows(&sql->guard, statement);
}

void tmk_sql_stop_by(struct tmk_sql *sql, const volatile sig_atomic_t *flag)
{
    for (uint32_t i = 0; i < sql->n_sources; i++)
        sql->sources[i].stop = flag;
}

const struct tmk_sql_table *tmk_sql_tables(size_t *ret_n)
{
    static struct tmk_sql_table docs[N_TABLES];
    for (size_t i = 0; i < N_TABLES; i++)
        docs[i] = defs[i]->doc;
    *ret_n = N_TABLES;
    return docs;
}
