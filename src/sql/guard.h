/* SPDX-License-Identifier: MIT */
/* sql/guard.h - SQL of a stranger reads the run and does nothing else.
 *
 * SQLite would attach and write files, load libraries and keep tables in memory. A guard on the
 * connection lets through what reads (SELECT, VALUES, WITH, EXPLAIN of these, and pragmas that
 * tell) and refuses everything else while a statement is being prepared. */
#ifndef TMK_SQL_GUARD_H
#define TMK_SQL_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>

struct tmk_sql_guard {
    char refused[96]; /* what was, as people write it; "": nothing */
};

/* From now on; `g` must outlive the connection. */
void tmk_sql_guard_set(struct tmk_sql_guard *g, sqlite3 *db);
/* Whether a prepared statement may run: what the guard cannot see at prepare is refused here. */
bool tmk_sql_guard_allows(struct tmk_sql_guard *g, sqlite3_stmt *statement);

#endif
