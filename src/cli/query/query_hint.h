/* SPDX-License-Identifier: MIT */
/* cli/query/query_hint.h - what to say about SQL that SQLite refuses: where it is wrong, and what
 * was probably meant. */
#ifndef TMK_CLI_QUERY_QUERY_HINT_H
#define TMK_CLI_QUERY_QUERY_HINT_H

#include <sqlite3.h>
#include <stdio.h>

/* Writes to `out` SQLite's message, the line of `sql` that it is about with a caret below, and what
 * was probably meant: the nearest table, column, function or keyword. `offset` is that of the
 * mistake in bytes; -1: it is looked for. `lead` begins each sentence. */
void tmk_query_hint(FILE *out, const char *lead, sqlite3 *db, const char *sql, const char *message,
                    int offset);

#endif
