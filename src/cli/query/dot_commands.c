/* SPDX-License-Identifier: MIT */
/* cli/query/dot_commands.c - see dot_commands.h. */
#include "cli/query/dot_commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/query/query_output.h"
#include "cli/query/sql_words.h"
#include "cli/query/tables_text.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

/* Say what is wrong, to somebody who has just typed it. */
static enum tmk_dot_result refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static enum tmk_dot_result refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    tmk_vprint(stderr, P_(format), args);
    fputc('\n', stderr);
    va_end(args);
    return TMK_DOT_FAILED;
}

static enum tmk_dot_result refuse_table(const char *name)
{
    const char *nearest = tmk_tables_nearest(name);
    if (nearest)
        return refuse("there is no table '%s'; did you mean %s?", name, nearest);
    return refuse("there is no table '%s'; see .tables", name);
}

/* ---- tables ---- */

static enum tmk_dot_result run_dot_tables(struct tmk_query *q, const char *argument)
{
    (void)q;
    if (tmk_tables_write_names(stdout, *argument ? argument : NULL) == 0)
        return refuse("no table has '%s' in its name", argument);
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_schema(struct tmk_query *q, const char *argument)
{
    const struct tmk_sql_table *table = *argument ? tmk_sql_find_table(argument) : NULL;
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    (void)q;
    if (*argument && !table)
        return refuse_table(argument);
    for (size_t i = 0; i < n; i++)
        if (!table || table == &tables[i])
            tmk_tables_write_schema(stdout, &tables[i]);
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_columns(struct tmk_query *q, const char *argument)
{
    const struct tmk_sql_table *table = *argument ? tmk_sql_find_table(argument) : NULL;
    (void)q;
    if (!*argument)
        return refuse("columns of which table? For example: .columns allocations");
    if (!table)
        return refuse_table(argument);
    tmk_tables_write_one(stdout, table);
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_examples(struct tmk_query *q, const char *argument)
{
    const struct tmk_sql_table *table = *argument ? tmk_sql_find_table(argument) : NULL;
    (void)q;
    if (*argument && !table)
        return refuse_table(argument);
    tmk_tables_write_examples(stdout, table);
    return TMK_DOT_DONE;
}

/* ---- settings ---- */

static enum tmk_dot_result run_dot_mode(struct tmk_query *q, const char *argument)
{
    static const char *const names[] = {
        [TMK_QUERY_TABLE] = "table", [TMK_QUERY_JSON] = "json", [TMK_QUERY_CSV] = "csv"};
    for (size_t i = 0; *argument && i < TMK_N(names); i++) {
        if (strcmp(names[i], argument) == 0) {
            q->style.format = (enum tmk_query_format)i;
            return TMK_DOT_DONE;
        }
    }
    if (*argument)
        return refuse(".mode is table, json or csv, not '%s'", argument);
    printf("%s\n", names[q->style.format]);
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_limit(struct tmk_query *q, const char *argument)
{
    int64_t n;
    if (!*argument) {
        if (q->style.limit)
            printf(P_("%" PRIu64 " rows\n"), q->style.limit);
        else
            printf(P_("all rows\n"));
        return TMK_DOT_DONE;
    }
    if (tmk_integer_parse(argument, &n) < 0 || n < 0)
        return refuse(".limit is a number of rows; 0 shows all");
    q->style.limit = (uint64_t)n;
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_width(struct tmk_query *q, const char *argument)
{
    int64_t n;
    if (strcmp(argument, "auto") == 0) {
        q->fixed_width = -1;
    } else if (!*argument) {
        if (q->fixed_width < 0)
            printf(P_("auto: %u columns\n"), tmk_screen_width());
        else if (q->fixed_width == 0)
            printf(P_("as wide as the table\n"));
        else
            printf(P_("%" PRId64 " columns\n"), q->fixed_width);
    } else if (tmk_integer_parse(argument, &n) < 0 || n < 0 || n > 10000) {
        return refuse(".width is a number of columns, auto, or 0 for as many as a table needs");
    } else {
        q->fixed_width = n;
    }
    return TMK_DOT_DONE;
}

static enum tmk_dot_result run_dot_timer(struct tmk_query *q, const char *argument)
{
    if (*argument && strcmp(argument, "on") != 0 && strcmp(argument, "off") != 0)
        return refuse(".timer is on or off, not '%s'", argument);
    if (*argument)
        q->times = strcmp(argument, "on") == 0;
    else
        printf("%s\n", q->times ? "on" : "off");
    return TMK_DOT_DONE;
}

/* ---- the rest ---- */

/* Run the statements of a file; lines of it are not dot commands. */
static enum tmk_dot_result run_dot_read(struct tmk_query *q, const char *argument)
{
    if (!*argument)
        return refuse("read which file? For example: .read queries.sql");
    FILE *in = fopen(argument, "re");
    char *text = in ? tmk_query_read_all(in) : NULL;
    int error = errno;
    if (in)
        fclose(in);
    if (!text)
        return refuse("cannot read %s: %s", argument, strerror(error));
    int status = tmk_query_run(q, text);
    free(text);
    return status == 0 ? TMK_DOT_DONE : TMK_DOT_FAILED;
}

static enum tmk_dot_result run_dot_quit(struct tmk_query *q, const char *argument)
{
    (void)q, (void)argument;
    return TMK_DOT_QUIT;
}

static enum tmk_dot_result run_dot_help(struct tmk_query *q, const char *argument)
{
    size_t n;
    const struct tmk_dot_command *commands = tmk_dot_commands(&n);
    (void)q, (void)argument;
    printf(P_(
        "A statement ends with ; and may have several lines. TAB completes names, the arrow keys\n"
        "bring back earlier statements, ^C drops the line or stops the query, ^D leaves.\n\n"));
    for (size_t i = 0; i < n; i++) {
        int at = printf("%s%s%s", commands[i].name, commands[i].argument ? " " : "",
                        commands[i].argument ? commands[i].argument : "");
        printf("%*s%s\n", at < 24 ? 24 - at : 1, "", P_(commands[i].help));
    }
    return TMK_DOT_DONE;
}

const struct tmk_dot_command *tmk_dot_commands(size_t *ret_n)
{
    static const struct tmk_dot_command commands[] = {
        {".columns", "TABLE", NULL, true, N_("its columns, with their meaning"), run_dot_columns},
        {".examples", "[TABLE]", NULL, true, N_("queries to try"), run_dot_examples},
        {".exit", NULL, NULL, false, N_("leave; so does ^D"), run_dot_quit},
        {".help", NULL, NULL, false, N_("this"), run_dot_help},
        {".limit", "[N]", NULL, false, N_("show N rows of each result; 0: all"), run_dot_limit},
        {".mode", "[table|json|csv]", "table|json|csv", false, N_("how rows are written"),
         run_dot_mode},
        {".quit", NULL, NULL, false, N_("leave"), run_dot_quit},
        {".read", "FILE", NULL, false, N_("run the statements in FILE"), run_dot_read},
        {".schema", "[TABLE]", NULL, true, N_("the tables as SQL declares them"), run_dot_schema},
        {".tables", "[PART]", NULL, true, N_("all tables, or those with PART in the name"),
         run_dot_tables},
        {".timer", "[on|off]", "on|off", false, N_("say how long each statement took"),
         run_dot_timer},
        {".width", "[N|auto]", "auto", false,
         N_("columns that a table may take; 0: as many as it needs"), run_dot_width},
    };
    *ret_n = TMK_N(commands);
    return commands;
}

static enum tmk_dot_result refuse_command(const char *name)
{
    size_t n;
    const struct tmk_dot_command *commands = tmk_dot_commands(&n);
    for (size_t i = 0; i < n; i++)
        if (tmk_name_distance(name, commands[i].name) <= 2)
            return refuse("there is no command %s; did you mean %s?", name, commands[i].name);
    return refuse("there is no command %s; see .help", name);
}

/* Returns the one command that `name` begins; NULL when there is none, or more. */
static const struct tmk_dot_command *find_dot_command(const char *name)
{
    size_t n_commands, n = strlen(name);
    const struct tmk_dot_command *commands = tmk_dot_commands(&n_commands), *found = NULL;
    for (size_t i = 0; i < n_commands; i++) {
        if (strncmp(commands[i].name, name, n) != 0)
            continue;
        if (!commands[i].name[n])
            return &commands[i];
        if (found || n < 2)
            return NULL;
        found = &commands[i];
    }
    return found;
}

enum tmk_dot_result tmk_dot_run(struct tmk_query *q, const char *line)
{
    size_t n = strcspn(line, " \t;\r\n");
    const char *from = line + n + strspn(line + n, " \t");
    size_t n_argument = strlen(from);
    while (n_argument > 0 && strchr(" \t;\r\n", from[n_argument - 1]))
        n_argument--;
    char *name = tmk_xformat("%.*s", (int)n, line);
    char *argument = tmk_xformat("%.*s", (int)n_argument, from);
    const struct tmk_dot_command *command = find_dot_command(name);
    enum tmk_dot_result result = TMK_DOT_FAILED;
    if (!command)
        refuse_command(name);
    else if (*argument && !command->argument)
        refuse("%s takes no argument", command->name);
    else
        result = command->run(q, argument);
    free(name);
    free(argument);
    return result;
}
