/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_fleet.c - the cluster, as Prometheus knows it, in a terminal. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/fleet/fleet_answer.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "fleet/cluster/cluster.h"
#include "fleet/cluster/http_get.h"
#include "fleet/cluster/prometheus.h"
#include "kit/amount.h"
#include "kit/glyph.h"
#include "kit/language.h"

#define NS_PER_S 1000000000u
#define LONGEST_WINDOW_S (30 * 86400u)

enum { SECRET_BYTES = 2048, USUAL_ROWS = 8, LEAST_FOR_NODES = 40 };

struct fleet_wants {
    struct tmk_http_get_settings http;
    struct tmk_cluster_question question;
    struct tmk_fleet_answer answer; /* what is the same each time */
    enum tmk_fleet_sort sort;
    bool json, has_rows;
    uint64_t every_ns; /* 0: once */
    char token[SECRET_BYTES], password[SECRET_BYTES];
};

/* ---- options ---- */

static int take_seconds(const struct tmk_args *args, const char *option, double least, double most,
                        uint64_t *ret_ns)
{
    const char *text = tmk_args_get(args, option);
    uint64_t ns;
    if (!text)
        return 0;
    if (tmk_seconds_parse(text, &ns) == 0 && (double)ns >= least * NS_PER_S &&
        (double)ns <= most * NS_PER_S) {
        *ret_ns = ns;
        return 0;
    }
    tmk_say("--%s: '%s' is not a time from %g s to %g s, such as 5, 500ms or 1h", option, text,
            least, most);
    return TMK_EXIT_USAGE;
}

/* Read a secret: what a file has, without the line's end. */
static int read_secret(const char *path, char secret[SECRET_BYTES])
{
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(secret, 1, SECRET_BYTES, file) : 0;
    bool failed = !file || ferror(file);
    int reason = errno;
    if (file)
        fclose(file);
    if (failed) {
        tmk_say("cannot read %s: %s", path, strerror(reason));
        return TMK_EXIT_USAGE;
    }
    while (n > 0 && n < SECRET_BYTES && (secret[n - 1] == '\n' || secret[n - 1] == '\r'))
        n--;
    if (n == 0 || n == SECRET_BYTES) {
        tmk_say("%s is %s", path, n == 0 ? _("empty") : _("too large for a password or token"));
        return TMK_EXIT_USAGE;
    }
    secret[n] = '\0';
    return 0;
}

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int take_secrets(const struct tmk_args *args, struct fleet_wants *w)
{
    const char *token_file = tmk_args_get(args, "token-file");
    const char *password_file = tmk_args_get(args, "password-file");
    int status = 0;
    w->http.user = tmk_args_get(args, "user");
    if (!w->http.user)
        w->http.user = from_environment("TIDEMARK_PROMETHEUS_USER");
    w->http.token = w->http.user ? NULL : from_environment("TIDEMARK_PROMETHEUS_TOKEN");
    w->http.password = from_environment("TIDEMARK_PROMETHEUS_PASSWORD");
    w->http.headers = from_environment("TIDEMARK_PROMETHEUS_HEADERS");
    if (token_file && (status = read_secret(token_file, w->token)) == 0)
        w->http.token = w->token;
    if (password_file && status == 0 && (status = read_secret(password_file, w->password)) == 0)
        w->http.password = w->password;
    if (status == 0 && password_file && !w->http.user) {
        tmk_say("--password-file: whose? --user NAME says it");
        return TMK_EXIT_USAGE;
    }
    return status;
}

static int take_sort(const struct tmk_args *args, enum tmk_fleet_sort *ret)
{
    static const char choices[] = TMK_FLEET_SORTS;
    const char *word = tmk_args_get(args, "sort");
    if (!word)
        return 0;
    size_t n = strlen(word);
    unsigned number = 0;
    for (const char *at = choices; *at; at += strcspn(at, "|"), at += *at == '|', number++)
        if (strcspn(at, "|") == n && strncmp(at, word, n) == 0)
            *ret = (enum tmk_fleet_sort)number;
    return 0;
}

static int take_rows(const struct tmk_args *args, uint64_t *ret)
{
    int64_t rows;
    const char *text = tmk_args_get(args, "rows");
    if (!text)
        return 0;
    if (tmk_integer_parse(text, &rows) == 0 && rows >= 0) {
        *ret = (uint64_t)rows;
        return 0;
    }
    tmk_say("--rows: '%s' is not a number; 0 shows all", text);
    return TMK_EXIT_USAGE;
}

static int take_wants(const struct tmk_args *args, struct fleet_wants *w)
{
    uint64_t timeout_ns = 10 * (uint64_t)NS_PER_S, window_ns = 3600 * (uint64_t)NS_PER_S;
    const char *url = tmk_args_get(args, "prometheus");
    w->answer.is_url_given = url != NULL;
    w->answer.url = w->http.url = url ? url : from_environment("TIDEMARK_PROMETHEUS");
    w->http.ca_file = tmk_args_get(args, "ca-file");
    w->question.job = tmk_args_get(args, "job");
    w->json = tmk_args_get(args, "json") != NULL;
    w->answer.rows_most = w->question.job ? 0 : USUAL_ROWS;
    w->has_rows = tmk_args_get(args, "rows") != NULL;
    if (!w->http.url) {
        tmk_say("where is Prometheus? --prometheus http://HOST:9090, or TIDEMARK_PROMETHEUS");
        return TMK_EXIT_USAGE;
    }
    int status = take_seconds(args, "timeout", 0.1, 3600, &timeout_ns);
    if (status == 0)
        status = take_seconds(args, "window", 10, LONGEST_WINDOW_S, &window_ns);
    if (status == 0)
        status = take_seconds(args, "watch", 0.1, 86400, &w->every_ns);
    if (status == 0)
        status = take_rows(args, &w->answer.rows_most);
    if (status == 0)
        status = take_sort(args, &w->sort);
    w->http.timeout_s = (double)timeout_ns / NS_PER_S;
    w->question.window_s = floor((double)window_ns / NS_PER_S);
    return status == 0 ? take_secrets(args, w) : status;
}

/* ---- one look ---- */

/* Print the page over the last one, as much of it as the screen has lines for. */
static void print_over(const char *text, unsigned height)
{
    unsigned n = 0;
    fputs("\033[H", stdout);
    while (*text && ++n < height) {
        size_t length = strcspn(text, "\n");
        fwrite(text, 1, length, stdout);
        fputs("\033[K\n", stdout);
        text += length + (text[length] == '\n');
    }
    if (*text)
        printf("%s  %s%s%s\033[K", tmk_role_on(stdout, TMK_ROLE_DETAIL), tmk_glyph("…"),
               _(" the window is too short for the rest"), tmk_role_off(stdout, TMK_ROLE_DETAIL));
    fputs("\033[J", stdout);
}

/* So many rows that all tables fit a screen: a finding takes four lines, a heading three. */
static void fit_rows(struct tmk_fleet_answer *a, unsigned height)
{
    a->leaves_out_nodes = height < LEAST_FOR_NODES;
    unsigned others = a->leaves_out_nodes ? 15 : 23, a_row = a->leaves_out_nodes ? 6 : 8;
    a->rows_most = height < others + a_row ? 1 : (height - others) / a_row;
}

static void print_look(const struct fleet_wants *w, struct tmk_fleet_answer *a)
{
    bool is_over = w->every_ns > 0 && tmk_is_screen(stdout);
    bool colour = tmk_wants_colour(stdout);
    char *text = NULL;
    size_t n;
    if (w->json) {
        tmk_fleet_json(a, stdout, w->every_ns > 0 ? 0 : 2);
        return;
    }
    if (is_over && !w->has_rows)
        fit_rows(a, tmk_screen_height());
    FILE *page = tmk_xmemstream(&text, &n);
    tmk_fleet_text(a, page, tmk_screen_width(), colour);
    fclose(page);
    if (is_over)
        print_over(text, tmk_screen_height());
    else
        fputs(text, stdout);
    if (w->every_ns > 0 && !is_over)
        fputc('\n', stdout);
    free(text);
}

/* Ask and print. Returns the exit status. */
static int look_at_fleet(const struct fleet_wants *w, struct tmk_prometheus *p)
{
    struct tmk_cluster cluster = {.n_agents = 0};
    struct tmk_fleet_answer a = w->answer;
    struct tmk_error err = {0};
    a.cluster = &cluster;
    int rc = tmk_cluster_ask(&cluster, p, &w->question, &err);
    int status = rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_NO_ANSWER;
    if (rc == 0) {
        tmk_fleet_sort_ranks(&a, w->sort);
        print_look(w, &a);
        status =
            tmk_cluster_count(&cluster, TMK_SEVERITY_CRITICAL) > 0 ? TMK_EXIT_FINDING : TMK_EXIT_OK;
        free(a.order);
    } else {
        tmk_say("%s: %s", w->http.url, err.text);
    }
    tmk_cluster_fini(&cluster);
    return status;
}

static void wait_until(struct timespec *next, uint64_t every_ns)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t due = (uint64_t)next->tv_sec * NS_PER_S + (uint64_t)next->tv_nsec + every_ns;
    uint64_t at = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    due = due > at ? due : at;
    *next = (struct timespec){(time_t)(due / NS_PER_S), (long)(due % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

/* Look again and again. A Prometheus that answered once may be away for a while. */
static int watch_fleet(const struct fleet_wants *w, struct tmk_prometheus *p)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    if (!w->json && tmk_is_screen(stdout))
        fputs("\033[2J", stdout);
    int status = look_at_fleet(w, p);
    while (status != TMK_EXIT_NO_ANSWER && fflush(stdout) == 0 && !ferror(stdout)) {
        wait_until(&next, w->every_ns);
        (void)look_at_fleet(w, p);
    }
    return status;
}

static int run_fleet(const struct tmk_args *args)
{
    struct fleet_wants *w = tmk_xcalloc(1, sizeof *w);
    struct tmk_prometheus *p = NULL;
    struct tmk_error err = {0};
    int status = take_wants(args, w);
    if (status == 0) {
        int rc = tmk_prometheus_open(&w->http, &p, &err);
        if (rc < 0) {
            tmk_say("%s", err.text);
            status = rc == TMK_EINVAL ? TMK_EXIT_USAGE : TMK_EXIT_FINDING;
        } else {
            status = w->every_ns > 0 ? watch_fleet(w, p) : look_at_fleet(w, p);
        }
    }
    tmk_prometheus_close(p);
    free(w);
    return status;
}

static const struct tmk_option options[] = {
    {"prometheus", 0, "URL", NULL, "address of Prometheus (TIDEMARK_PROMETHEUS)"},
    {"job", 0, "NAME", NULL, "one job: its ranks side by side"},
    {"sort", 0, "KEY", TMK_FLEET_SORTS, TMK_FLEET_SORTS " (risk)"},
    {"rows", 0, "N", NULL, "rows of each table; 0: all (8; with --job all)"},
    {"window", 0, "S", NULL, "how far back to look for gaps and OOMs (1h)"},
    {"watch", 0, "S", NULL, "refresh every S seconds, until ^C"},
    {"timeout", 0, "S", NULL, "seconds to wait for each answer (10)"},
    {"json", 0, NULL, NULL, "print one JSON object; with --watch one a line"},
    TMK_OPTION_HEADING("access"),
    {"user", 0, "NAME", NULL, "log in as NAME, with --password-file"},
    {"password-file", 0, "FILE", NULL, "the file with the password"},
    {"token-file", 0, "FILE", NULL, "the file with a bearer token"},
    {"ca-file", 0, "FILE", NULL, "certificate authorities for https (the system's)"},
};

static const char *const description[] = {
    "fleet asks a Prometheus that scrapes tidemark agents, or a server with its API "
    "(VictoriaMetrics, Thanos, Mimir), and prints what is wrong, worst first: ranks heading "
    "for an OOM, leaks, jobs with one rank far above the others, missing ranks, GPUs that are "
    "nearly full, silent agents, and times without samples. Each finding comes with the "
    "command that looks closer. Nodes, GPUs, jobs and ranks follow. docs/fleet.md explains the "
    "setup.",
    "The queries are those of the shipped alerts, without their waiting time; no rules have to "
    "be loaded. URL may have a path: https://HOST/prometheus. Passwords never stand on the "
    "command line: they are in a file, or in TIDEMARK_PROMETHEUS_USER, _PASSWORD and _TOKEN. "
    "More headers, such as Mimir's tenant, are in TIDEMARK_PROMETHEUS_HEADERS: "
    "X-Scope-OrgID=team-a. Redirects are not followed.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tnothing is critical",
    "1\tsomething is: an OOM is less than 10 minutes away",
    "2\twrong usage",
    "4\tPrometheus gives no answer, or none that can be read",
    NULL,
};

static const char *const json_keys[] = {
    "prometheus, time\tthe server, and when it was asked",
    "window_seconds\talso rules_loaded critical warnings gaps_not_looked_for",
    "findings\teach: kind severity alert job rank host gpu pid instance value from to text "
    "evidence command",
    "nodes\teach: host instance agent (up silent gone) version answered gpus processes used "
    "total",
    "gpus\teach: host gpu uuid kind model used free total processes risk seconds_to_oom",
    "jobs\teach: job ranks world_size missing nodes allocated peak limit median_peak imbalance "
    "bytes_per_step risk seconds_to_oom",
    "ranks\teach: job rank host pid gpu uuid namespace pod container run ended allocated "
    "reserved peak limit host_allocated bytes_per_step peak_bytes_per_step against_median risk "
    "seconds_to_oom seconds_low seconds_high confidence cause",
    "Sizes are bytes, times are Unix seconds; null: not known.",
    NULL,
};

static const char *const examples[] = {
    "tidemark fleet --prometheus http://prometheus:9090",
    "what is wrong in the cluster, and what to do",
    "tidemark fleet --job llama-7b --sort peak --watch 5",
    "the ranks of a job side by side, every five seconds",
    "tidemark fleet --json | jq -r '.findings[].text'",
    "one line for each finding",
    NULL,
};

const struct tmk_command tmk_cmd_fleet = {
    .name = "fleet",
    .group = TMK_GROUP_CLUSTER,
    .summary = "Show the cluster as Prometheus sees it: OOMs ahead, leaks, gaps",
    .usage = "--prometheus URL [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_fleet,
};
