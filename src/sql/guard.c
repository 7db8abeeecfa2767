/* SPDX-License-Identifier: MIT */
/* sql/guard.c - see guard.h.
 *
 * SQLite asks the authorizer about everything that a statement does. The settings after it cover
 * what the authorizer is not asked about: they turn off what could reach outside the database. */
#include "sql/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

/* ---- names ---- */

static bool is_in_names(const char *name, const char *const *names)
{
    for (; name && *names; names++)
        if (sqlite3_stricmp(name, *names) == 0)
            return true;
    return false;
}

/* Pragmas that report; the first list also with an argument, which is a name or a number of rows.
 */
static bool is_telling_pragma(const char *pragma, const char *argument)
{
    static const char *const of_something[] = {
        "foreign_key_list", "function_list",   "index_info",  "index_list",  "index_xinfo",
        "integrity_check",  "quick_check",     "table_info",  "table_list",  "table_xinfo",
        "collation_list",   "compile_options", "module_list", "pragma_list", NULL};
    static const char *const plain[] = {"application_id",
                                        "cache_size",
                                        "data_version",
                                        "database_list",
                                        "encoding",
                                        "freelist_count",
                                        "page_count",
                                        "page_size",
                                        "query_only",
                                        "schema_version",
                                        "trusted_schema",
                                        "user_version",
                                        NULL};
    return is_in_names(pragma, of_something) || (!argument && is_in_names(pragma, plain));
}

/* Functions that read or write files, load code or take pointers. Most of them are not built in. */
static bool is_reaching_function(const char *function)
{
    static const char *const names[] = {"edit",     "fts3_tokenizer", "fsdir", "load_extension",
                                        "readfile", "writefile",      NULL};
    return is_in_names(function, names);
}

/* SQLite's own tables: its schema is a table, and so are the results of ANALYZE. */
static bool is_internal_table(const char *table)
{
    return table && sqlite3_strnicmp(table, "sqlite_", 7) == 0;
}

static bool is_schema_table(const char *table)
{
    static const char *const names[] = {"sqlite_master", "sqlite_temp_master", NULL};
    return is_in_names(table, names);
}

/* The name of the statement for an action. DROP deletes a row of the schema first, ANALYZE makes
 * a table. */
static const char *action_name(int action, const char *table)
{
    switch (action) {
    case SQLITE_DELETE:
        return is_internal_table(table) ? "DROP" : "DELETE";
    case SQLITE_CREATE_TABLE:
        return is_internal_table(table) ? "ANALYZE" : "CREATE";
    case SQLITE_ATTACH:
        return "ATTACH";
    case SQLITE_DETACH:
        return "DETACH";
    case SQLITE_ALTER_TABLE:
        return "ALTER TABLE";
    case SQLITE_REINDEX:
        return "REINDEX";
    case SQLITE_ANALYZE:
        return "ANALYZE";
    case SQLITE_TRANSACTION:
        return "a transaction";
    case SQLITE_SAVEPOINT:
        return "a savepoint";
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_VTABLE:
    case SQLITE_DROP_TEMP_INDEX:
    case SQLITE_DROP_TEMP_TABLE:
    case SQLITE_DROP_TEMP_TRIGGER:
    case SQLITE_DROP_TEMP_VIEW:
        return "DROP";
    default:
        return "CREATE";
    }
}

/* ---- the guard ---- */

static int refuse_statement(struct tmk_sql_guard *g, const char *what, const char *name)
{
    if (!g->refused[0])
        snprintf(g->refused, sizeof g->refused, "%s%s%.60s", what, name ? " " : "",
                 name ? name : "");
    return SQLITE_DENY;
}

static int on_action(void *arg, int action, const char *a, const char *b, const char *database,
                     const char *inside)
{
    struct tmk_sql_guard *g = arg;
    (void)database;
    (void)inside;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_UPDATE: /* a virtual table declares its columns when it is connected */
        return a && strcmp(a, "sqlite_master") == 0 ? SQLITE_OK
                                                    : refuse_statement(g, "UPDATE", NULL);
    case SQLITE_INSERT: /* CREATE and ANALYZE ask this first, then about what they make, which is
                           handled there */
        return is_schema_table(a) ? SQLITE_OK : refuse_statement(g, "INSERT", NULL);
    case SQLITE_FUNCTION:
        return is_reaching_function(b) ? refuse_statement(g, "the function", b) : SQLITE_OK;
    case SQLITE_PRAGMA:
        return is_telling_pragma(a, b) ? SQLITE_OK : refuse_statement(g, "PRAGMA", a);
    default:
        return refuse_statement(g, action_name(action, a), NULL);
    }
}

void tmk_sql_guard_set(struct tmk_sql_guard *g, sqlite3 *db)
{
    static const struct {
        int setting, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    };
    sqlite3_set_authorizer(db, NULL, NULL); /* a second time, the pragma below would be refused */
    g->refused[0] = '\0';
    for (size_t i = 0; i < TMK_N(settings); i++)
        sqlite3_db_config(db, settings[i].setting, settings[i].value, (int *)NULL);
    sqlite3_exec(db, "PRAGMA query_only = ON", NULL, NULL, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_set_authorizer(db, on_action, g);
}

/* VACUUM is only reported when it runs, REINDEX not at all where there is nothing to do. */
bool tmk_sql_guard_allows(struct tmk_sql_guard *g, sqlite3_stmt *statement)
{
    if (sqlite3_stmt_readonly(statement) && sqlite3_column_count(statement) > 0)
        return true;
    const char *text = sqlite3_sql(statement);
    size_t n = text ? strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") : 0;
    char word[16];
    snprintf(word, sizeof word, "%.*s", (int)n, text ? text : "");
    refuse_statement(g, n > 0 && n < sizeof word ? word : "this statement", NULL);
    return false;
}
