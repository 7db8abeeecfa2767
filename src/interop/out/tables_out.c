/* SPDX-License-Identifier: MIT */
/* interop/out/tables_out.c - see tables_out.h.
 *
 * SQLite does the copying: the file is attached to the database of virtual tables, and each table
 * is an INSERT from a SELECT. After each table everything is closed, which frees its columns. */
#include "interop/out/tables_out.h"

#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "interop/out/result_out.h"
#include "model/run.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

/* ---- names ---- */

/* "python.torch_trace" is torch_trace in the file. */
static const char *short_name(const struct tmk_sql_table *table)
{
    const char *dot = strchr(table->name, '.');
    return dot ? dot + 1 : table->name;
}

static bool wants_argument(const struct tmk_sql_table *table)
{
    return strchr(table->name, '(') != NULL;
}

/* True for "" or "(12)": what may follow a name. */
static bool is_argument(const char *text, bool is_wanted)
{
    size_t n = text[0] == '(' ? strspn(text + 1, "0123456789") : 0;
    return text[0] == '\0' || (is_wanted && n > 0 && strcmp(text + 1 + n, ")") == 0);
}

static bool is_table_named(const struct tmk_sql_table *table, const char *known, const char *name)
{
    size_t n = strcspn(known, "(");
    return strncmp(name, known, n) == 0 && is_argument(name + n, wants_argument(table));
}

const struct tmk_sql_table *tmk_export_find_table(const char *name)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    for (size_t i = 0; i < n; i++)
        if (is_table_named(&tables[i], tables[i].name, name) ||
            is_table_named(&tables[i], short_name(&tables[i]), name))
            return &tables[i];
    return NULL;
}

bool tmk_export_has_column(const struct tmk_sql_table *table, const char *column)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i].name, column) == 0)
            return true;
    return false;
}

static int fail_with_database(sqlite3 *db, struct tmk_error *err)
{
    return tmk_fail(err, TMK_ESQL, "%s", db ? sqlite3_errmsg(db) : "out of memory");
}

/* ---- CSV and JSON ---- */

/* The SELECT for a request; sqlite3_free() it. NULL without memory. */
static char *select_text(const struct tmk_export *x, const struct tmk_export_table *t)
{
    char device[24];
    const struct tmk_sql_table *table = tmk_export_find_table(t->name);
    const char *argument = strchr(t->name, '(');
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendf(s, "SELECT * FROM %.*s%s", (int)strcspn(table->name, "("), table->name,
                        argument ? argument : "");
    const char *joint = " WHERE";
    if (t->rank >= 0) {
        sqlite3_str_appendf(s, "%s rank = %lld", joint, (long long)t->rank);
        joint = " AND";
    }
    if (!x->any_device)
        sqlite3_str_appendf(s, "%s device = %Q", joint, tmk_device_name(x->device, device));
    return sqlite3_str_finish(s);
}

static int write_rows(sqlite3_stmt *statement, const struct tmk_export_table *t, FILE *out,
                      uint64_t *ret_n)
{
    struct tmk_result_out r;
    int rc = sqlite3_step(statement);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    tmk_result_out_begin(&r, statement, t->is_json, t->is_safe, out);
    for (*ret_n = 0; rc == SQLITE_ROW; rc = sqlite3_step(statement), ++*ret_n)
        tmk_result_out_row(&r);
    tmk_result_out_end(&r);
    return rc;
}

int tmk_export_table(const struct tmk_export *x, const struct tmk_export_table *t, FILE *out,
                     struct tmk_export_notes *ret, struct tmk_error *err)
{
    struct tmk_sql *sql = NULL;
    sqlite3_stmt *statement = NULL;
    *ret = (struct tmk_export_notes){0};
    int rc = tmk_sql_open(x->run, &sql, err);
    if (rc < 0)
        return rc;
    sqlite3 *db = tmk_sql_handle(sql);
    char *text = select_text(x, t);
    int code = text ? sqlite3_prepare_v2(db, text, -1, &statement, NULL) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = write_rows(statement, t, out, &ret->n_events);
    rc = code == SQLITE_DONE ? 0 : fail_with_database(db, err);
    sqlite3_finalize(statement);
    sqlite3_free(text);
    tmk_sql_close(sql);
    return rc;
}

/* ---- SQLite ---- */

/* True for columns that are used to look rows up. */
static bool wants_index(const char *table, const char *column)
{
    static const char *const everywhere[] = {"step", "alloc_ns", "time_ns", "start_ns"};
    for (size_t i = 0; i < TMK_N(everywhere); i++)
        if (strcmp(column, everywhere[i]) == 0)
            return true;
    return (strcmp(table, "frames") == 0 && strcmp(column, "stack_id") == 0) ||
           (strcmp(table, "stacks") == 0 && strcmp(column, "id") == 0);
}

/* A script that makes a table of the file; sqlite3_free() it. The table gets its name when it is
 * full: before that the name must mean the virtual table. */
static char *copy_text(const struct tmk_sql_table *table)
{
    const char *name = short_name(table);
    sqlite3_str *s = sqlite3_str_new(NULL);
    sqlite3_str_appendall(s, "BEGIN; CREATE TABLE file.copied(");
    for (size_t i = 0; i < table->n_columns; i++)
        sqlite3_str_appendf(s, "%s\"%w\" %s", i ? ", " : "", table->columns[i].name,
                            table->columns[i].type);
    sqlite3_str_appendf(s,
                        "); INSERT INTO file.copied SELECT * FROM %s;"
                        "ALTER TABLE file.copied RENAME TO \"%w\";",
                        table->name, name);
    for (size_t i = 0; i < table->n_columns; i++)
        if (wants_index(name, table->columns[i].name))
            sqlite3_str_appendf(s, "CREATE INDEX file.\"%w_%w\" ON \"%w\"(\"%w\");", name,
                                table->columns[i].name, name, table->columns[i].name);
    sqlite3_str_appendall(s, "COMMIT;");
    return sqlite3_str_finish(s);
}

/* The file has no journal: if something fails, all of it is thrown away anyway. */
static int attach_database(sqlite3 *db, const char *path)
{
    char *text = sqlite3_mprintf("ATTACH %Q AS file; PRAGMA file.journal_mode = OFF;"
                                 "PRAGMA file.synchronous = OFF; PRAGMA file.cache_size = -65536;",
                                 path);
    int code = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

static int copy_table(const struct tmk_export *x, const struct tmk_sql_table *table,
                      const char *path, uint64_t *n_rows, struct tmk_error *err)
{
    struct tmk_sql *sql = NULL;
    int rc = tmk_sql_open(x->run, &sql, err);
    if (rc < 0)
        return rc;
    sqlite3 *db = tmk_sql_handle(sql);
    int code = attach_database(db, path);
    char *text = code == SQLITE_OK ? copy_text(table) : NULL;
    if (code == SQLITE_OK)
        code = text ? sqlite3_exec(db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    rc = code == SQLITE_OK ? 0 : fail_with_database(db, err);
    *n_rows += (uint64_t)sqlite3_total_changes(db);
    sqlite3_free(text);
    tmk_sql_close(sql);
    return rc;
}

int tmk_export_sqlite(const struct tmk_export *x, const char *path, struct tmk_export_notes *ret,
                      struct tmk_error *err)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    int rc = 0;
    *ret = (struct tmk_export_notes){0};
    for (size_t i = 0; i < n && rc == 0; i++)
        if (!wants_argument(&tables[i]))
            rc = copy_table(x, &tables[i], path, &ret->n_events, err);
    return rc;
}
