/* SPDX-License-Identifier: MIT */
/* sql/vtab.h - makes SQLite see a table definition as a table. */
#ifndef TMK_SQL_VTAB_H
#define TMK_SQL_VTAB_H

#include <sqlite3.h>

#include "sql/scan.h"

/* Everything a table needs; lives as long as the database. */
struct tmk_vtab_context {
    const struct tmk_vtab_def *def;
    struct tmk_source *sources;
    uint32_t n_sources;
    struct tmk_textpool *pool;
    struct tmk_table_data data; /* rows without arguments; made on first use */
    bool has_data;
};

/* Register the module and, for a table in another schema than main, make the table. Returns an
 * SQLite result code. */
int tmk_vtab_register(sqlite3 *db, struct tmk_vtab_context *context);
void tmk_vtab_context_fini(struct tmk_vtab_context *context);

#endif
