/* SPDX-License-Identifier: MIT */
/* sql/guard.h - lets a stranger's SQL read the run and do nothing else.
 *
 * SQLite could attach and write files, load libraries and keep tables in memory. A guard on the
 * connection permits statements that read (SELECT, VALUES, WITH, EXPLAIN of these, and pragmas
 * that report) and refuses everything else while a statement is being prepared. */
#ifndef TMK_SQL_GUARD_H
#define TMK_SQL_GUARD_H

#include <sqlite3.h>
#include <stdbool.h>

struct tmk_sql_guard {
    char refused[96]; /* what was refused, as people write it; "": nothing */
};

/* Guard the connection from now on; `g` must outlive it. */
void tmk_sql_guard_set(struct tmk_sql_guard *g, sqlite3 *db);
/* True when a prepared statement may run: what the guard cannot see at prepare is refused here. */
bool tmk_sql_guard_allows(struct tmk_sql_guard *g, sqlite3_stmt *statement);

#endif
