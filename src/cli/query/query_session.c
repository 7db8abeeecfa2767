/* SPDX-License-Identifier: MIT */
/* cli/query/query_session.c - see query_session.h.
 *
 * ^C lets SQLite end the statement within a fraction of a millisecond, and decoding of the trace
 * before the next chunk or process. The second ^C ends the program. */
#include "cli/query/query_session.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/heartbeat.h"
#include "cli/output/pager.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/query/query_hint.h"
#include "cli/query/sql_words.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "sql/aggregates.h"

/* ---- the target ---- */

static int open_run(struct tmk_query *q)
{
    struct tmk_run *run = NULL;
    struct tmk_sql *sql = NULL;
    struct tmk_error err = {0};
    int status = tmk_target_open(q->args->operands[0], &run);
    if (status != 0)
        return status;
    if (tmk_sql_open(run, &sql, &err) < 0) {
        tmk_say("%s", err.text);
        tmk_run_close(run);
        return TMK_EXIT_FINDING;
    }
    tmk_sql_close(q->sql);
    tmk_run_close(q->run);
    q->run = run;
    q->sql = sql;
    q->db = tmk_sql_handle(sql);
    return 0;
}

int tmk_query_open(struct tmk_query *q)
{
    const char *target = q->args->operands[0];
    if (q->is_remote) {
        if (sqlite3_open(":memory:", &q->db) != SQLITE_OK ||
            tmk_aggregates_register(q->db) != SQLITE_OK)
            tmk_die("out of memory");
        return 0;
    }
    q->is_live = target[strspn(target, "0123456789")] == '\0' && access(target, F_OK) < 0;
    return open_run(q);
}

void tmk_query_close(struct tmk_query *q)
{
    if (q->is_remote)
        sqlite3_close_v2(q->db);
    q->sql = tmk_sql_close(q->sql);
    tmk_run_close(q->run);
    q->run = NULL;
    q->db = NULL;
}

/* ---- ^C ---- */

static volatile sig_atomic_t n_interrupts;

static void on_interrupt(int number)
{
    if (n_interrupts++ == 0)
        return;
    signal(number, SIG_DFL);
    raise(number);
}

/* SQLite asks this now and then: whether to stop. */
static int is_interrupted(void *arg)
{
    (void)arg;
    return n_interrupts > 0;
}

static void begin_interrupts(struct tmk_query *q, struct sigaction *ret_before)
{
    enum { INSTRUCTIONS = 10000 }; /* of SQLite's machine, between two questions: some 100 us */
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    tmk_sql_stop_by(q->sql, &n_interrupts);
    sqlite3_progress_handler(q->db, INSTRUCTIONS, is_interrupted, NULL);
    sigaction(SIGINT, NULL, ret_before);
    if (ret_before->sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

/* A pager that the rows have started since has ^C, and keeps it. */
static void end_interrupts(sqlite3 *db, const struct sigaction *before)
{
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == on_interrupt)
        sigaction(SIGINT, before, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
}

/* ---- a statement ---- */

static const char *lead_of(const struct tmk_query *q)
{
    return q->is_shell ? "" : "tidemark: ";
}

/* Returns where to say something that belongs behind the rows. */
static FILE *behind_rows(void)
{
    fflush(stdout);
    return tmk_pager_talk();
}

static int offset_of_error(sqlite3 *db)
{
#if SQLITE_VERSION_NUMBER >= 3038000
    return sqlite3_error_offset(db);
#else
    (void)db;
    return -1;
#endif
}

/* Say what went wrong with the statement that `text` begins with. */
static int complain_of_statement(struct tmk_query *q, const char *text)
{
    FILE *out = behind_rows();
    if (tmk_sql_refusal(q->sql)) {
        fprintf(
            out,
            P_("%squery only reads: %s is refused; tidemark export --to sqlite makes a file for "
               "that\n"),
            lead_of(q), tmk_sql_refusal(q->sql));
        return TMK_EXIT_USAGE;
    }
    if (n_interrupts > 0) {
        fprintf(out, P_("%sinterrupted\n"), lead_of(q));
        return TMK_QUERY_INTERRUPTED;
    }
    char *message = tmk_xstrdup(sqlite3_errmsg(q->db)); /* looking for names is a query, too */
    tmk_query_hint(out, lead_of(q), q->db, text, message, offset_of_error(q->db));
    free(message);
    return TMK_EXIT_USAGE;
}

/* Say how many rows were not shown. */
static void say_rest(const struct tmk_query *q, const struct tmk_query_rows *rows)
{
    char all[TMK_AMOUNT_BYTES], shown[TMK_AMOUNT_BYTES];
    const char *option = q->is_shell ? ".limit" : "--limit";
    if (rows->n_more == 0)
        return;
    FILE *out = behind_rows();
    if (rows->has_uncounted)
        fprintf(out, P_("%sthe first %s rows; there are more: %s 0 shows all\n"), lead_of(q),
                tmk_count_text(rows->n_shown, shown), option);
    else
        fprintf(out, P_("%s%s of %s rows; %s 0 shows all\n"), lead_of(q),
                tmk_count_text(rows->n_shown, shown),
                tmk_count_text(rows->n_shown + rows->n_more, all), option);
}

static void say_time(const struct tmk_query *q, uint64_t start_ns)
{
    fflush(stdout);
    if (q->times)
        fprintf(stderr, "%.3f s\n", (double)(tmk_clock_monotonic_ns() - start_ns) / 1e9);
}

static int run_statement(struct tmk_query *q, sqlite3_stmt *statement)
{
    struct tmk_query_rows rows = {0};
    struct tmk_heartbeat heartbeat = {0};
    struct sigaction before;
    uint64_t start_ns = tmk_clock_monotonic_ns();
    begin_interrupts(q, &before);
    if (isatty(STDERR_FILENO))
        tmk_heartbeat_start(&heartbeat, "the query");
    int rc = sqlite3_step(statement);
    tmk_heartbeat_stop(&heartbeat); /* from the first row on, rows are the sign of life */
    if (q->n_results++ > 0 && (rc == SQLITE_ROW || rc == SQLITE_DONE) &&
        q->style.format == TMK_QUERY_TABLE)
        putchar('\n');
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        rc = tmk_query_output(statement, rc, &q->style, &rows);
    end_interrupts(q->db, &before);
    if (rc != SQLITE_DONE)
        return complain_of_statement(q, sqlite3_sql(statement));
    say_rest(q, &rows);
    say_time(q, start_ns);
    return 0;
}

/* Run the statement at *text and move *text to the next. */
static int run_next(struct tmk_query *q, const char **text)
{
    const char *rest = "";
    sqlite3_stmt *statement = NULL;
    n_interrupts = 0;
    tmk_sql_read_only(q->sql);
    int rc = sqlite3_prepare_v2(q->db, *text, -1, &statement, &rest);
    int status = 0;
    if (rc != SQLITE_OK)
        status = complain_of_statement(q, *text);
    else if (statement && !tmk_sql_allows(q->sql, statement))
        status = complain_of_statement(q, *text);
    else if (statement)
        status = run_statement(q, statement);
    sqlite3_finalize(statement);
    *text = tmk_sql_skip_blanks(rest);
    return status;
}

/* ---- elsewhere ---- */

static void set_option(struct tmk_args *args, const char *name, const char *value)
{
    for (unsigned i = 0; i < args->command->n_options; i++)
        if (strcmp(args->command->options[i].name, name) == 0)
            args->values[i] = value;
}

/* Ask the other machine: the command as it was given, with the settings of this moment. */
static int ask_there(const struct tmk_query *q, const char *text)
{
    static const char *const formats[] = {
        [TMK_QUERY_TABLE] = "table", [TMK_QUERY_JSON] = "json", [TMK_QUERY_CSV] = "csv"};
    struct tmk_args args = *q->args;
    char limit[24], *operands[] = {q->args->operands[0], (char *)(uintptr_t)text, NULL};
    int status = TMK_EXIT_FINDING;
    snprintf(limit, sizeof limit, "%" PRIu64, q->style.limit);
    set_option(&args, "json", NULL);
    set_option(&args, "format", formats[q->style.format]);
    set_option(&args, "limit", limit);
    args.operands = operands;
    args.n_operands = 2;
    tmk_remote_run(&args, &status);
    return status;
}

/* Ask there in a process of its own, which ends by the signals that it has passed on. */
static int run_remotely(struct tmk_query *q, const char *text)
{
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    int wait_status = TMK_EXIT_FINDING << 8; /* of a child that could not be made */
    uint64_t start_ns = tmk_clock_monotonic_ns();
    fflush(NULL);
    sigaction(SIGINT, NULL, &before);
    pid_t child = fork();
    if (child == 0) {
        int status = ask_there(q, text);
        fflush(NULL);
        _exit(status);
    }
    sigaction(SIGINT, &ignore, NULL);
    if (child < 0 || waitpid(child, &wait_status, 0) < 0)
        tmk_say("cannot start a process");
    sigaction(SIGINT, &before, NULL);
    say_time(q, start_ns);
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : TMK_QUERY_INTERRUPTED;
}

char *tmk_query_read_all(FILE *in)
{
    char part[4096], *text = NULL;
    size_t n, n_text;
    FILE *to = tmk_xmemstream(&text, &n_text);
    while ((n = fread(part, 1, sizeof part, in)) > 0)
        fwrite(part, 1, n, to);
    int error = errno;
    if (fclose(to) != 0)
        tmk_die("out of memory");
    if (ferror(in)) {
        free(text);
        errno = error;
        return NULL;
    }
    return text;
}

/* Set the width for this moment: a window may have changed. */
static void measure_screen(struct tmk_query *q)
{
    if (q->fixed_width >= 0)
        q->style.width = (size_t)q->fixed_width;
    else
        q->style.width = tmk_is_screen(stdout) ? tmk_screen_width() : 0;
}

int tmk_query_run(struct tmk_query *q, const char *text)
{
    text = tmk_sql_skip_blanks(text);
    if (!*text) {
        if (!q->is_shell)
            tmk_say("that is no query; for example: \"SELECT * FROM peak\"");
        return TMK_EXIT_USAGE;
    }
    if (q->is_remote)
        return run_remotely(q, text);
    if (q->is_live && q->n_texts > 0 && open_run(q) != 0)
        return TMK_EXIT_BAD_TRACE;
    q->n_texts++;
    measure_screen(q);
    q->n_results = 0;
    while (*text) {
        int status = run_next(q, &text);
        if (status != 0)
            return status;
    }
    return 0;
}
