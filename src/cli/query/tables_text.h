/* SPDX-License-Identifier: MIT */
/* cli/query/tables_text.h - the tables that SQL can name, for people: `tidemark tables` and the
 * shell's dot commands. */
#ifndef TMK_CLI_QUERY_TABLES_TEXT_H
#define TMK_CLI_QUERY_TABLES_TEXT_H

#include <stdio.h>

#include "sql/table_doc.h"

/* Writes a line for each table, or for those with `part` in their name: name and meaning. Returns
 * how many. */
unsigned tmk_tables_write_names(FILE *out, const char *part);
/* Writes the same and the names of the columns. */
void tmk_tables_write_all(FILE *out);
/* Writes a table: each column with type and meaning, and queries to try. */
void tmk_tables_write_one(FILE *out, const struct tmk_sql_table *table);
/* Writes a table as CREATE TABLE with comments. */
void tmk_tables_write_schema(FILE *out, const struct tmk_sql_table *table);
/* Writes queries to try; without a table a few of general use. */
void tmk_tables_write_examples(FILE *out, const struct tmk_sql_table *table);

/* Returns the table that `name` was most likely meant to be; NULL when none is near. */
const char *tmk_tables_nearest(const char *name);

#endif
