/* SPDX-License-Identifier: MIT */
/* cli/query/query_shell.c - see query_shell.h.
 *
 * Lines are put together until SQLite says that they are a complete statement. No error ends the
 * shell. */
#include "cli/query/query_shell.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/query/dot_commands.h"
#include "cli/query/line_editor.h"
#include "cli/query/sql_words.h"
#include "kit/language.h"
#include "model/run.h"

static void greet(const struct tmk_query *q)
{
    const char *target = q->args->operands[0];
    if (q->is_remote || q->is_live)
        printf(P_("%s, as it is at each statement. "), target);
    else
        printf(P_("%s: %" PRIu32 " process%s. "), target, tmk_run_n_processes(q->run),
               tmk_run_n_processes(q->run) == 1 ? "" : "es");
    printf(P_("SQL ends with ;   .tables lists the tables, .help the commands.\n"));
}

/* Append a line to the statement. */
static char *append_line(char *statement, const char *line)
{
    char *longer = tmk_xformat("%s%s", statement, line);
    free(statement);
    return longer;
}

static bool is_blank_line(const char *line)
{
    return !*tmk_sql_skip_blanks(line);
}

/* Take a line. Returns what is still incomplete; *ret_quits says that this was the last line. */
static char *take_line(struct tmk_query *q, struct tmk_line_editor *e, char *statement,
                       const char *line, bool *ret_quits)
{
    const char *command = line + strspn(line, " \t");
    if (!*statement && *command == '.') {
        tmk_line_editor_remember(e, command);
        *ret_quits = tmk_dot_run(q, command) == TMK_DOT_QUIT;
        fflush(stdout);
        return statement;
    }
    if (!*statement && is_blank_line(line))
        return statement;
    statement = append_line(statement, line);
    if (!sqlite3_complete(statement))
        return statement;
    tmk_line_editor_remember(e, statement);
    tmk_query_run(q, statement);
    fflush(stdout);
    *statement = '\0';
    return statement;
}

int tmk_query_shell(struct tmk_query *q)
{
    struct tmk_line_editor *e = tmk_line_editor_open();
    char *statement = tmk_xstrdup("");
    bool quits = false;
    greet(q);
    fflush(stdout);
    while (!quits) {
        const char *line = NULL;
        enum tmk_line kind = tmk_line_editor_read(e, q->db, statement, &line);
        if (kind == TMK_LINE_DROPPED)
            *statement = '\0';
        else if (kind == TMK_LINE_END)
            break;
        else
            statement = take_line(q, e, statement, line, &quits);
    }
    if (!quits)
        putchar('\n'); /* behind the prompt */
    free(statement);
    tmk_line_editor_close(e);
    return TMK_EXIT_OK;
}
