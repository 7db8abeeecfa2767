/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_query.c - SQL over a run: one text of it, what stdin has, or a shell. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/pager.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/query/query_output.h"
#include "cli/query/query_session.h"
#include "cli/query/query_shell.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/remote.h"
#include "cli/run/relay.h"
#include "kit/amount.h"

enum { SCREEN_LIMIT = 100 }; /* rows that a terminal gets unless more are asked for */

static enum tmk_query_format format_of_result(const struct tmk_args *args)
{
    const char *name = tmk_args_get(args, "format");
    if (!name)
        return tmk_args_get(args, "json") ? TMK_QUERY_JSON : TMK_QUERY_TABLE;
    return strcmp(name, "json") == 0  ? TMK_QUERY_JSON
           : strcmp(name, "csv") == 0 ? TMK_QUERY_CSV
                                      : TMK_QUERY_TABLE;
}

static int read_query_options(const struct tmk_args *args, struct tmk_query *q)
{
    const char *limit = tmk_args_get(args, "limit");
    int64_t n = 0;
    q->style.format = format_of_result(args);
    q->style.is_safe = tmk_args_get(args, "csv-safe") != NULL;
    if (q->style.is_safe && q->style.format != TMK_QUERY_CSV) {
        tmk_say("--csv-safe needs --format csv");
        return TMK_EXIT_USAGE;
    }
    if (limit && (tmk_integer_parse(limit, &n) < 0 || n < 0)) {
        tmk_say("--limit: '%s' is not a number of rows; 0 shows all", limit);
        return TMK_EXIT_USAGE;
    }
    if (!limit && q->style.format == TMK_QUERY_TABLE && tmk_is_screen(stdout))
        n = SCREEN_LIMIT;
    q->style.limit = (uint64_t)n;
    q->fixed_width = -1;
    return 0;
}

/* Returns whether the target is HOST:PID; -1 after a message. */
static int is_elsewhere(const struct tmk_args *args)
{
    struct tmk_endpoint endpoint;
    struct tmk_error err = {0};
    int rc = tmk_endpoint_parse(args->operands[0], &endpoint, &err);
    if (rc < 0)
        tmk_say("%s", err.text);
    return rc < 0 ? -1 : rc > 0;
}

/* Let the command over there read our stdin, or have the statement. */
static int ask_there(const struct tmk_args *args)
{
    char *operands[] = {args->operands[0], (char[]){"-"}, NULL};
    struct tmk_args there = *args;
    int status = TMK_EXIT_FINDING;
    if (args->n_operands < 2) {
        there.operands = operands;
        there.n_operands = 2;
    }
    tmk_remote_run(&there, &status);
    return status;
}

static int run_text(struct tmk_query *q, const char *text)
{
    int status = tmk_query_open(q);
    if (status == 0)
        status = tmk_query_run(q, text);
    tmk_query_close(q);
    return status;
}

static int run_input(struct tmk_query *q)
{
    char *text = tmk_query_read_all(stdin);
    if (!text) {
        tmk_say("cannot read stdin: %s", strerror(errno));
        return TMK_EXIT_FINDING;
    }
    int status = run_text(q, text);
    free(text);
    return status;
}

static int run_shell(struct tmk_query *q)
{
    int status = tmk_query_open(q);
    q->is_shell = true;
    if (status == 0)
        status = tmk_query_shell(q);
    tmk_query_close(q);
    return status;
}

static int run_query(const struct tmk_args *args)
{
    struct tmk_query q = {.args = args};
    const char *text = args->n_operands > 1 ? args->operands[1] : NULL;
    bool has_shell = !text && isatty(STDIN_FILENO) == 1;
    int status = read_query_options(args, &q), elsewhere = is_elsewhere(args);
    if (status != 0 || elsewhere < 0)
        return status ? status : TMK_EXIT_USAGE;
    q.is_remote = elsewhere > 0;
    if (q.is_remote && !has_shell)
        return ask_there(args);
    if (has_shell)
        status = run_shell(&q);
    else if (text && strcmp(text, "-") != 0) {
        tmk_pager_begin();
        status = run_text(&q, text);
    } else
        status = run_input(&q);
    if (status == TMK_QUERY_INTERRUPTED) {
        tmk_pager_end(); /* the rows that it holds */
        tmk_relay_die(SIGINT);
    }
    return status;
}

static const struct tmk_option options[] = {
    {"format", 0, "FORMAT", "table|json|csv", "table (default), json or csv"},
    {"limit", 0, "N", NULL, "show N rows of each result; 0 shows all (a terminal: 100)"},
    {"csv-safe", 0, NULL, NULL, "csv: put an apostrophe before cells that begin a formula"},
    {"json", 0, NULL, NULL, "the same as --format json"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "Without SQL, a terminal gets a shell with history, completion by TAB and .help. Elsewhere, "
    "and "
    "with - for SQL, statements are read from stdin. They end in ; and run one after the other, up "
    "to the first that fails.",
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
    "tidemark query train.tmk",
    "a shell",
    "tidemark query train.tmk \"SELECT * FROM peak\"",
    "the peak of memory",
    "tidemark query train.tmk \"SELECT * FROM steps\" --format csv >steps.csv",
    "the history of steps, for a spreadsheet",
    "tidemark query train.tmk \"SELECT sum(size) FROM live_at(1000000000)\"",
    "bytes that were live after one second",
    "tidemark query 4711 \"SELECT sum(size) FROM allocations WHERE free_ns IS NULL\"",
    "what a running process has allocated now",
    "tidemark query train.tmk <queries.sql",
    "all statements of a file",
    NULL,
};

const struct tmk_command tmk_cmd_query = {
    .name = "query",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Query a run in SQL",
    .usage = "RUN|[HOST:]PID [SQL|-] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 2,
    .n_targets = 1,
    .asks_there = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .examples = examples,
    .writes_data = true,
    .run = run_query,
};
