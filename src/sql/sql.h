/* SPDX-License-Identifier: MIT */
/* sql/sql.h - a run as a SQLite database.
 *
 * Every table is a virtual table over the trace: rows are decoded when a query asks for them,
 * only the columns it names, only the part its constraints leave, and where possible in the order
 * it wants. Nothing is written; what was decoded is kept until close, so that a second query is
 * quick. */
#ifndef TMK_SQL_SQL_H
#define TMK_SQL_SQL_H

#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

#include "model/run.h"
#include "sql/table_doc.h"

struct tmk_sql;

/* The run stays the caller's and must outlive the database. */
int tmk_sql_open(struct tmk_run *run, struct tmk_sql **ret_sql, struct tmk_error *err);
struct tmk_sql *tmk_sql_close(struct tmk_sql *sql);

/* The handle for sqlite3_prepare_v2() and the like. */
sqlite3 *tmk_sql_handle(struct tmk_sql *sql);

/* From now on SQL can only read (sql/guard.h). refusal returns what was refused since then (NULL:
 * nothing), allows whether a prepared statement may run. */
void tmk_sql_read_only(struct tmk_sql *sql);
const char *tmk_sql_refusal(const struct tmk_sql *sql);
bool tmk_sql_allows(struct tmk_sql *sql, sqlite3_stmt *statement);

/* Decoding for a query ends with an error once *flag is set, by a signal's handler. The flag must
 * outlive the database. */
void tmk_sql_stop_by(struct tmk_sql *sql, const volatile sig_atomic_t *flag);

/* All tables, for `tidemark tables` and the docs. */
const struct tmk_sql_table *tmk_sql_tables(size_t *ret_n);

#endif
