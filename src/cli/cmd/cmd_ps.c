/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_ps.c - the processes that are being watched now, and how much they have allocated. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/ps_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/hosts.h"
#include "cli/remote/remote.h"
#include "forecast/oom_forecast.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "kit/utf8.h"
#include "passes/forecast.h"
#include "trace/layout.h"

/* The machines that were asked; none: this one alone. */
struct asked_hosts {
    size_t n;
    char (*names)[TMK_HOST_BYTES];
    struct tmk_host_answer *answers;
};

/* ---- printing ---- */

enum ps_cell {
    PS_HOST,
    PS_PID,
    PS_RANK,
    PS_DEVICE,
    PS_ALLOCATED,
    PS_RESERVED,
    PS_PEAK,
    PS_STEP,
    PS_FORECAST,
    PS_RUN,
    PS_N_CELLS,
};

/* The columns; those from which on they are shown on a screen. In a pipe all are. */
static const struct {
    struct tmk_column column;
    unsigned from;
} ps_columns[PS_N_CELLS] = {
    [PS_HOST] = {{"HOST", TMK_LEFT, TMK_FIXED}, 0},
    [PS_PID] = {{"PID", TMK_RIGHT, TMK_FIXED}, 0},
    [PS_RANK] = {{"RANK", TMK_RIGHT, TMK_FIXED}, 64},
    [PS_DEVICE] = {{"DEVICE", TMK_LEFT, TMK_FIXED}, 72},
    [PS_ALLOCATED] = {{"ALLOCATED", TMK_RIGHT, TMK_FIXED}, 0},
    [PS_RESERVED] = {{"RESERVED", TMK_RIGHT, TMK_FIXED}, 100},
    [PS_PEAK] = {{"PEAK", TMK_RIGHT, TMK_FIXED}, 0},
    [PS_STEP] = {{"STEP", TMK_RIGHT, TMK_FIXED}, 100},
    [PS_FORECAST] = {{"FORECAST", TMK_LEFT, TMK_FIXED}, 0},
    [PS_RUN] = {{"RUN", TMK_LEFT, TMK_FIXED}, 0},
};

static bool is_ps_cell_shown(enum ps_cell cell, bool has_host, unsigned width)
{
    return cell == PS_HOST ? has_host : width >= ps_columns[cell].from;
}

static const char *risk_colour(enum tmk_risk risk)
{
    return tmk_role_on(stdout, risk >= TMK_RISK_HIGH     ? TMK_ROLE_BAD
                               : risk == TMK_RISK_MEDIUM ? TMK_ROLE_WARN
                                                         : TMK_ROLE_PLAIN);
}

static void add_ps_cell(struct tmk_table *t, enum ps_cell cell, const struct tmk_ps_row *row,
                        const char *run)
{
    char forecast[TMK_FORECAST_TEXT_BYTES];
    switch (cell) {
    case PS_HOST:
        tmk_table_cell(t, row->host);
        break;
    case PS_PID:
        tmk_table_cellf(t, "%" PRIu64, row->pid);
        break;
    case PS_RANK:
        tmk_table_number(t, row->rank);
        break;
    case PS_DEVICE:
        tmk_table_cell(t, row->device);
        break;
    case PS_ALLOCATED:
        tmk_table_size(t, row->allocated_bytes);
        break;
    case PS_RESERVED:
        tmk_table_size(t, row->reserved_bytes);
        break;
    case PS_PEAK:
        tmk_table_size(t, row->peak_bytes);
        break;
    case PS_STEP:
        tmk_table_number(t, row->step == TMK_NO_STEP ? -1 : row->step);
        break;
    case PS_FORECAST:
        tmk_table_cell(t, tmk_forecast_text(&row->forecast, true, forecast));
        tmk_table_paint(t, risk_colour(row->forecast.risk));
        break;
    default:
        tmk_table_cell(t, run);
    }
}

/* Write the end of a folder in at most `width` columns to `buffer`, and return it; the folder
 * itself where that fits. */
static const char *short_folder(const char *folder, size_t width, char *buffer, size_t size)
{
    if (!folder || tmk_utf8_width(folder) <= width)
        return folder;
    snprintf(buffer, size, "…%s", tmk_utf8_tail(folder, width - 1));
    return buffer;
}

/* Whether two folders would look alike in `width` columns. */
static bool has_folder_twins(const struct tmk_ps_answer *a, size_t width)
{
    char one[4096], two[4096];
    for (size_t i = 0; i < a->n_rows; i++)
        for (size_t k = 0; k < i; k++) {
            const char *x = a->rows[i].folder, *y = a->rows[k].folder;
            if (x && y && strcmp(x, y) != 0 &&
                strcmp(short_folder(x, width, one, sizeof one),
                       short_folder(y, width, two, sizeof two)) == 0)
                return true;
        }
    return false;
}

/* Fill a table with runs in at most `run_width` columns. */
static void fill_ps_table(struct tmk_table *t, const struct tmk_ps_answer *a, bool has_host,
                          unsigned width, size_t run_width)
{
    char folder[4096];
    for (size_t i = 0; i < a->n_rows; i++)
        for (enum ps_cell cell = 0; cell < PS_N_CELLS; cell++)
            if (is_ps_cell_shown(cell, has_host, width))
                add_ps_cell(t, cell, &a->rows[i],
                            short_folder(a->rows[i].folder, run_width, folder, sizeof folder));
}

/* The columns that all cells but the run take: measured on a table without it. */
static size_t ps_width_without_run(const struct tmk_ps_answer *a, bool has_host, unsigned width)
{
    struct tmk_column columns[PS_N_CELLS];
    uint32_t n = 0;
    char *text = NULL;
    size_t n_text = 0, widest = 0;
    for (enum ps_cell cell = 0; cell < PS_RUN; cell++)
        if (is_ps_cell_shown(cell, has_host, width))
            columns[n++] = ps_columns[cell].column;
    struct tmk_table *t = tmk_table_open(columns, n);
    for (size_t i = 0; i < a->n_rows; i++)
        for (enum ps_cell cell = 0; cell < PS_RUN; cell++)
            if (is_ps_cell_shown(cell, has_host, width))
                add_ps_cell(t, cell, &a->rows[i], NULL);
    FILE *out = open_memstream(&text, &n_text);
    struct tmk_table_style style = {.indent = 0};
    int rc = out ? tmk_table_print(t, out, &style) : TMK_ENOMEM;
    if (out)
        fclose(out);
    if (rc < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        widest = tmk_utf8_width(line) > widest ? tmk_utf8_width(line) : widest;
    free(text);
    return widest;
}

/* On a screen the beginning of a run's folder gives way, unless two runs would look alike. */
static void print_ps_table(const struct tmk_ps_answer *a, bool has_host)
{
    enum { GAP = 2, LEAST_RUN = 12 };
    bool is_screen = tmk_is_screen(stdout);
    unsigned width = is_screen ? tmk_screen_width() : UINT32_MAX;
    size_t others = ps_width_without_run(a, has_host, width) + GAP;
    size_t run_width = width >= others + LEAST_RUN ? width - others : LEAST_RUN;
    if (!is_screen || has_folder_twins(a, run_width))
        run_width = SIZE_MAX;
    struct tmk_column columns[PS_N_CELLS];
    uint32_t n = 0;
    for (enum ps_cell cell = 0; cell < PS_N_CELLS; cell++)
        if (is_ps_cell_shown(cell, has_host, width))
            columns[n++] = ps_columns[cell].column;
    struct tmk_table *t = tmk_table_open(columns, n);
    fill_ps_table(t, a, has_host, width, run_width);
    struct tmk_table_style style = {.title_on = tmk_role_on(stdout, TMK_ROLE_STRONG),
                                    .title_off = tmk_role_off(stdout, TMK_ROLE_STRONG),
                                    .paint_off = tmk_colour_end(tmk_wants_colour(stdout))};
    if (tmk_table_print(t, stdout, &style) < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
}

static void print_ps_json(const struct tmk_ps_answer *a, const struct asked_hosts *hosts)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_list(&t, "processes");
    for (size_t i = 0; i < a->n_rows; i++)
        tmk_ps_answer_put(&t, &a->rows[i]);
    tmk_tree_end(&t);
    tmk_tree_list(&t, "failed");
    for (size_t i = 0; i < hosts->n; i++) {
        if (!hosts->answers[i].reason)
            continue;
        tmk_tree_object(&t, NULL);
        tmk_tree_text(&t, "host", hosts->answers[i].host);
        tmk_tree_text(&t, "reason", hosts->answers[i].reason);
        tmk_tree_end(&t);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

/* ---- other machines ---- */

/* Say what a machine has said besides its answer, a line at a time. */
static void say_for_host(const struct tmk_host_answer *answer)
{
    char *rest = NULL;
    for (char *line = strtok_r(answer->said, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        tmk_say("%s: %s", answer->host, line + (strncmp(line, "tidemark: ", 10) == 0 ? 10 : 0));
}

/* Take what a machine has answered. Returns 0, or the exit status after a message. */
static int take_host_answer(struct tmk_ps_answer *a, struct tmk_host_answer *answer)
{
    struct tmk_error err = {0};
    if (!answer->reason && tmk_ps_answer_add(a, answer->host, answer->out, answer->n_out, &err) < 0)
        answer->reason = tmk_xstrdup(err.text);
    if (!answer->reason) {
        say_for_host(answer);
        return 0;
    }
    bool has_name = strncmp(answer->reason, answer->host, strlen(answer->host)) == 0;
    tmk_say("%s%s%s", has_name ? "" : answer->host, has_name ? "" : ": ", answer->reason);
    return TMK_EXIT_FINDING;
}

/* Ask the machines that the operands name. Returns 0, or an exit status after messages: 1 also when
 * some of them have answered. */
static int ask_hosts(struct tmk_ps_answer *a, const struct tmk_args *args,
                     struct asked_hosts *hosts)
{
    static const char *words[] = {"ps", "--json", NULL};
    struct tmk_error err = {0};
    size_t n = args->n_operands;
    hosts->names = tmk_xcalloc(n, sizeof *hosts->names);
    hosts->answers = tmk_xcalloc(n, sizeof *hosts->answers);
    for (size_t i = 0; i < n; i++) {
        if (tmk_endpoint_host(args->operands[i], hosts->names[i], &err) < 0) {
            tmk_say("%s", err.text);
            return TMK_EXIT_USAGE;
        }
        hosts->answers[i].host = hosts->names[i];
    }
    int status = tmk_hosts_ask(hosts->answers, n, tmk_args_get(args, "remote-path"), words);
    hosts->n = status == 0 ? n : 0;
    for (size_t i = 0; i < hosts->n; i++) {
        int one = take_host_answer(a, &hosts->answers[i]);
        status = one > status ? one : status;
    }
    return status;
}

/* ---- the command ---- */

static void print_ps(const struct tmk_ps_answer *a, const struct asked_hosts *hosts, bool json,
                     bool has_failed)
{
    if (json)
        print_ps_json(a, hosts);
    else if (a->n_rows > 0)
        print_ps_table(a, hosts->n > 0);
    else if (!has_failed)
        tmk_say("no process is being watched; to begin: tidemark run -- PROGRAM ...");
}

/* The choices of --sort are those names, so any other was refused before. */
static enum tmk_ps_sort ps_sort_of(const char *name)
{
    enum tmk_ps_sort sort = TMK_PS_BY_PID;
    for (enum tmk_ps_sort i = 0; name && i < TMK_PS_N_SORTS; i++)
        if (strcmp(name, tmk_ps_sort_names[i]) == 0)
            sort = i;
    return sort;
}

static int run_ps(const struct tmk_args *args)
{
    struct tmk_ps_answer a = {0};
    struct asked_hosts hosts = {0};
    int status = args->n_operands > 0 ? ask_hosts(&a, args, &hosts) : tmk_ps_answer_here(&a);
    tmk_ps_answer_sort(&a, ps_sort_of(tmk_args_get(args, "sort")));
    if (status == 0 || hosts.n > 0)
        print_ps(&a, &hosts, tmk_args_get(args, "json") != NULL, status != 0);
    if (hosts.answers)
        tmk_hosts_fini(hosts.answers, args->n_operands);
    free(hosts.answers);
    free(hosts.names);
    tmk_ps_answer_fini(&a);
    return status;
}

static const struct tmk_option options[] = {
    {"sort", 0, "KEY", "pid|rank|allocated|reserved|peak|forecast",
     "largest or most urgent first; pid and rank: in order (pid)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "ps lists the processes of this user (root: of all users) that are recorded now, with what "
    "they have allocated on the device where they have most: now, and at their peak so far. A "
    "process is listed from its first allocation on. Nothing is asked of the processes. "
    "FORECAST is the risk that a process runs out of memory, and when; docs/forecast.md has "
    "the rules. A narrow terminal has fewer columns; a pipe has all.",
    "With HOSTs, it asks those machines over your own ssh, eight at a time. HOST is what `ssh "
    "HOST` takes; tidemark must be installed there. One HOST may ask for a password, several "
    "never do: log in first with `tidemark ps HOST`; the connection stays for ten minutes. A "
    "HOST that does not answer is named on stderr.",
    NULL,
};

static const char *const json_keys[] = {
    "processes\teach: host (null: this machine) pid rank run device allocated peak command "
    "forecast reserved step",
    "forecast\trisk seconds_to_oom seconds_low seconds_high steps_to_oom confidence cause "
    "advice; null: not known",
    "failed\teach: host reason",
    NULL,
};

static const char *const exit_status[] = {
    "0\tsuccess",
    "1\ta HOST did not answer",
    "2\twrong usage",
    NULL,
};

static const char *const examples[] = {
    "tidemark ps",
    "who is recorded, how much is allocated, and where the traces are",
    "tidemark ps node7 node8",
    "the same on two other machines; then: tidemark report node7:PID",
    "tidemark peak $(tidemark ps --json | jq .processes[0].pid)",
    "the peak so far of the first process",
    NULL,
};

const struct tmk_command tmk_cmd_ps = {
    .name = "ps",
    .group = TMK_GROUP_LIVE,
    .summary = "List the processes that are being recorded",
    .usage = "[HOST]... [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .max_operands = 1024,
    .takes_hosts = true,
    .operand = TMK_OPERAND_NONE,
    .json = json_keys,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_ps,
};
