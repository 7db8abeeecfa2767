/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_ps.c - the processes that are being watched now, and how much they have allocated. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/answer_json.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "kit/amount.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/forecast.h"
#include "passes/steps.h"
#include "trace/state.h"

struct row { /* of one process */
    const struct tmk_watched *w;
    struct tmk_run *run; /* NULL: its trace cannot be read */
    const struct tmk_process *p;
    char folder[4096];
    const struct tmk_step_row *peak; /* NULL: nothing allocated yet */
    uint64_t allocated_bytes;        /* on the peak's device, now */
    struct tmk_forecast forecast;    /* of that device */
};

static struct row read_watched(const struct tmk_watched *w)
{
    struct row row = {.w = w};
    struct tmk_error err = {0};
    tmk_watched_folder(w, row.folder, sizeof row.folder);
    if (tmk_run_open_watched(w, &row.run, &err) < 0) {
        tmk_say("process %" PRIu32 ": %s", w->pid, err.text);
        return row;
    }
    row.p = tmk_run_process(row.run, 0);
    row.peak = tmk_steps_peak(row.p, true, 0);
    if (!row.peak)
        return row;
    row.allocated_bytes = tmk_steps_last(row.p, row.peak->device)->end_bytes;
    (void)tmk_forecast_of(row.p, row.peak->device, NULL, &row.forecast);
    return row;
}

static void close_row(struct row *row)
{
    tmk_run_close(row->run);
}

/* ---- printing ---- */

static void print_ps_table(const struct tmk_watched *list, uint32_t n)
{
    static const struct tmk_column columns[] = {
        {"PID", TMK_RIGHT, TMK_FIXED},       {"RANK", TMK_RIGHT, TMK_FIXED},
        {"ALLOCATED", TMK_RIGHT, TMK_FIXED}, {"PEAK", TMK_RIGHT, TMK_FIXED},
        {"DEVICE", TMK_LEFT, TMK_FIXED},     {"FORECAST", TMK_LEFT, TMK_FIXED},
        {"RUN", TMK_LEFT, TMK_FIXED},
    };
    char text[TMK_AMOUNT_BYTES], forecast[TMK_FORECAST_TEXT_BYTES];
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint32_t i = 0; i < n; i++) {
        struct row row = read_watched(&list[i]);
        tmk_table_cellf(t, "%" PRIu32, row.w->pid);
        tmk_table_number(t, row.p ? row.p->rank : -1);
        tmk_table_size(t, row.peak ? row.allocated_bytes : TMK_BYTES_UNKNOWN);
        tmk_table_size(t, row.peak ? row.peak->peak_bytes : TMK_BYTES_UNKNOWN);
        tmk_table_cell(t, row.peak ? tmk_device_name(row.peak->device, text) : NULL);
        tmk_table_cell(t, tmk_forecast_text(&row.forecast, true, forecast));
        tmk_table_cell(t, row.folder);
        close_row(&row);
    }
    struct tmk_table_style style = {.indent = 0};
    if (tmk_table_print(t, stdout, &style) < 0)
        tmk_die("out of memory");
    tmk_table_close(t);
}

static void json_row(struct tmk_tree *t, const struct row *row)
{
    char device[24];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "pid", row->w->pid);
    tmk_tree_number(t, "rank", row->p ? row->p->rank : -1);
    tmk_tree_text(t, "run", row->folder);
    tmk_tree_text(t, "device", row->peak ? tmk_device_name(row->peak->device, device) : NULL);
    tmk_tree_bytes(t, "allocated", row->peak ? row->allocated_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "peak", row->peak ? row->peak->peak_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_text(t, "command", row->p ? row->p->command : NULL);
    tmk_answer_put_forecast(t, "forecast", row->peak ? &row->forecast : NULL);
    tmk_tree_end(t);
}

static void print_ps_json(const struct tmk_watched *list, uint32_t n)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_list(&t, "processes");
    for (uint32_t i = 0; i < n; i++) {
        struct row row = read_watched(&list[i]);
        json_row(&t, &row);
        close_row(&row);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

static int run_ps(const struct tmk_args *args)
{
    struct tmk_watched *list = NULL;
    struct tmk_error err = {0};
    uint32_t n = 0;
    if (tmk_watched_list(&list, &n, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    if (tmk_args_get(args, "json"))
        print_ps_json(list, n);
    else if (n > 0)
        print_ps_table(list, n);
    else
        tmk_say("no process is being watched; to begin: tidemark run -- PROGRAM ...");
    free(list);
    return TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "one object: processes"},
};

static const char notes[] =
    "The processes of this user that record now (root: of all users), with what they\n"
    "have allocated on the device where most was: now, and at most so far. A process\n"
    "is watched from its first allocation on. Nothing is asked of the processes.\n"
    "\n"
    "FORECAST is the risk that it runs out of that device's memory, and in what time\n"
    "if it grows; docs/forecast.md says how that is found.\n"
    "\n"
    "--json: pid rank run device allocated peak command forecast (risk seconds_to_oom\n"
    "seconds_low seconds_high steps_to_oom confidence cause advice; null: not known).\n";

static const char *const examples[] = {
    "tidemark ps",
    "who is watched, and where the traces are",
    "tidemark peak $(tidemark ps --json | jq .processes[0].pid)",
    "the peak of the first of them, so far",
    NULL,
};

const struct tmk_command tmk_cmd_ps = {
    .name = "ps",
    .summary = "List the processes that are being watched",
    .usage = "[--json]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .run = run_ps,
};
