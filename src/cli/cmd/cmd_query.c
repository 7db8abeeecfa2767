/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_query.c - SQL over a run, printed as a table, JSON or CSV.
 *
 * Rows are printed as they come; a table holds the first thousand to find its widths. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/heartbeat.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "interop/out/result_out.h"
#include "kit/table.h"
#include "model/run.h"
#include "sql/sql.h"

enum { HELD_ROWS = 1000 };

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };

/* ---- printing ---- */

struct printer {
    enum format format;
    bool is_safe; /* CSV without formulas */
    sqlite3_stmt *statement;
    int n_columns;
    struct tmk_column *columns;
    struct tmk_table *table;
    struct tmk_result_out out;
};

static void flush_table(struct printer *p)
{
    struct tmk_table_style style = {.indent = 0};
    if (tmk_table_print(p->table, stdout, &style) < 0)
        tmk_die("out of memory");
}

static bool is_number_text(int type)
{
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void begin_table(struct printer *p)
{
    p->columns = tmk_xcalloc((size_t)p->n_columns, sizeof *p->columns);
    for (int i = 0; i < p->n_columns; i++)
        p->columns[i].title = sqlite3_column_name(p->statement, i);
    p->table = tmk_table_open(p->columns, (uint32_t)p->n_columns);
}

static void begin_query(struct printer *p)
{
    p->n_columns = sqlite3_column_count(p->statement);
    if (p->format == FORMAT_TABLE)
        begin_table(p);
    else
        tmk_result_out_begin(&p->out, p->statement, p->format == FORMAT_JSON, p->is_safe, stdout);
}

static void print_row(struct printer *p)
{
    if (p->format != FORMAT_TABLE) {
        tmk_result_out_row(&p->out);
        return;
    }
    for (int i = 0; i < p->n_columns; i++) {
        if (is_number_text(sqlite3_column_type(p->statement, i)))
            p->columns[i].align = TMK_RIGHT; /* a column with numbers among the rows held */
        tmk_table_cell(p->table, (const char *)sqlite3_column_text(p->statement, i));
    }
    if (tmk_table_n_rows(p->table) >= HELD_ROWS)
        flush_table(p);
}

static void end_query(struct printer *p)
{
    if (p->format != FORMAT_TABLE) {
        tmk_result_out_end(&p->out);
        return;
    }
    flush_table(p);
    p->table = tmk_table_close(p->table);
    free(p->columns);
}

/* ---- running ---- */

static int complain_of_query(struct tmk_sql *sql)
{
    sqlite3 *db = tmk_sql_handle(sql);
    if (tmk_sql_refusal(sql)) {
        tmk_say(
            "query only reads: %s is refused; tidemark export --to sqlite makes a file for that",
            tmk_sql_refusal(sql));
        return TMK_EXIT_USAGE;
    }
    tmk_say("%s", sqlite3_errmsg(db));
    if (strstr(sqlite3_errmsg(db), "no such table") || strstr(sqlite3_errmsg(db), "no such column"))
        tmk_say("what there is: tidemark tables");
    return TMK_EXIT_USAGE;
}

static int run_statement(struct tmk_sql *sql, struct printer *printer)
{
    sqlite3_stmt *statement = printer->statement;
    struct tmk_heartbeat heartbeat;
    tmk_heartbeat_start(&heartbeat, "the query");
    int rc = sqlite3_step(statement);
    tmk_heartbeat_stop(&heartbeat); /* from the first row on, rows are the sign of life */
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return complain_of_query(sql);
    begin_query(printer);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement))
        print_row(printer);
    end_query(printer);
    return rc == SQLITE_DONE ? TMK_EXIT_OK : complain_of_query(sql);
}

/* Skip blanks, semicolons and comments as SQLite has them: a comment without an end ends the text.
 */
static const char *skip_sql_blanks(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n\f;");
        if (strncmp(text, "--", 2) == 0) {
            text += strcspn(text, "\n");
        } else if (strncmp(text, "/*", 2) == 0) {
            const char *end = strstr(text + 2, "*/");
            text = end ? end + 2 : text + strlen(text);
        } else {
            return text;
        }
    }
}

static int run_sql(struct tmk_sql *sql, const char *text, struct printer *printer)
{
    const char *rest = "";
    sqlite3_stmt *statement = NULL;
    tmk_sql_read_only(sql);
    text = skip_sql_blanks(text);
    if (sqlite3_prepare_v2(tmk_sql_handle(sql), text, -1, &statement, &rest) != SQLITE_OK)
        return complain_of_query(sql);
    int status;
    rest = skip_sql_blanks(rest);
    if (!statement) {
        tmk_say("that is no query; for example: \"SELECT * FROM peak\"");
        status = TMK_EXIT_USAGE;
    } else if (*rest) {
        tmk_say("one query at a time: '%.40s' is left over", rest);
        status = TMK_EXIT_USAGE;
    } else if (!tmk_sql_allows(sql, statement)) {
        status = complain_of_query(sql);
    } else {
        printer->statement = statement;
        status = run_statement(sql, printer);
    }
    sqlite3_finalize(statement);
    return status;
}

static enum format format_of_result(const struct tmk_args *args)
{
    const char *name = tmk_args_get(args, "format");
    if (!name)
        return tmk_args_get(args, "json") ? FORMAT_JSON : FORMAT_TABLE;
    return strcmp(name, "json") == 0  ? FORMAT_JSON
           : strcmp(name, "csv") == 0 ? FORMAT_CSV
                                      : FORMAT_TABLE;
}

static int run_query(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    struct tmk_sql *sql = NULL;
    struct tmk_error err = {0};
    struct printer printer = {.format = format_of_result(args),
                              .is_safe = tmk_args_get(args, "csv-safe") != NULL};
    if (printer.is_safe && printer.format != FORMAT_CSV) {
        tmk_say("--csv-safe needs --format csv");
        return TMK_EXIT_USAGE;
    }
    int status = tmk_target_open(args->operands[0], &target);
    if (status != 0)
        return status;
    if (tmk_sql_open(target, &sql, &err) < 0) {
        tmk_say("%s", err.text);
        status = TMK_EXIT_FINDING;
    } else {
        status = run_sql(sql, args->operands[1], &printer);
    }
    tmk_sql_close(sql);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"format", 0, "FORMAT", "table|json|csv", "table (default), json or csv"},
    {"csv-safe", 0, NULL, NULL, "csv: put an apostrophe before cells that begin a formula"},
    {"json", 0, NULL, NULL, "the same as --format json"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "`tidemark tables` lists the tables and their columns. Sizes are in bytes, times in ns "
    "since the run's start; NULL is not known. SQL can only read: ATTACH, CREATE, VACUUM and "
    "the like are refused.",
    NULL,
};

static const char *const json_keys[] = {
    "columns\ta list of names",
    "rows\ta list of objects, one a row",
    NULL,
};

static const char *const examples[] = {
    "tidemark query train.tmk \"SELECT * FROM peak\"",
    "the peak of memory",
    "tidemark query train.tmk \"SELECT * FROM steps\" --format csv >steps.csv",
    "the history of steps, for a spreadsheet",
    "tidemark query train.tmk \"SELECT sum(size) FROM live_at(1000000000)\"",
    "bytes that were live after one second",
    "tidemark query 4711 \"SELECT sum(size) FROM allocations WHERE free_ns IS NULL\"",
    "what a running process has allocated now",
    NULL,
};

const struct tmk_command tmk_cmd_query = {
    .name = "query",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Query a run in SQL",
    .usage = "RUN|[HOST:]PID SQL [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 2,
    .max_operands = 2,
    .n_targets = 1,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .examples = examples,
    .writes_data = true,
    .run = run_query,
};
