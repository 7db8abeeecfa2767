/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_top.c - devices, processes and watched jobs: on a full screen, or once as text or
 * JSON.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/answer_json.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "device/device.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/tree.h"
#include "model/run.h"
#include "trace/layout.h"
#include "tui/choice.h"
#include "tui/gather.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/live.h"
#include "tui/picture.h"
#include "tui/screen.h"
#include "tui/top_model.h"

#define LEAST_INTERVAL_NS 100000000u
#define MOST_INTERVAL_NS 3600000000000u

/* ---- JSON ---- */

static void put_watts(struct tmk_tree *t, const char *key, uint32_t milliwatts)
{
    tmk_tree_double(t, key, milliwatts == TMK_LOAD_UNKNOWN ? (double)NAN : milliwatts / 1000.0);
}

static void put_load(struct tmk_tree *t, const struct tmk_top_device *d)
{
    const struct tmk_device_load *l = &d->load;
    tmk_tree_u64_if(t, "utilization", l->busy_percent != TMK_LOAD_UNKNOWN, l->busy_percent);
    put_watts(t, "power", l->power_mw);
    put_watts(t, "power_limit", l->power_limit_mw);
    tmk_tree_u64_if(t, "temperature", l->temperature_c != TMK_LOAD_UNKNOWN, l->temperature_c);
}

static void put_device(struct tmk_tree *t, const struct tmk_top_device *d)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "device", d->label);
    tmk_tree_text(t, "kind", tmk_device_kind_text(d->about.kind));
    tmk_tree_label(t, "name", d->about.name);
    tmk_tree_label(t, "id", d->about.id);
    tmk_tree_bytes(t, "total", d->memory.total_bytes);
    tmk_tree_bytes(t, "used", d->memory.used_bytes);
    tmk_tree_bytes(t, "reserved", d->memory.reserved_bytes);
    tmk_tree_label(t, "reason", d->reason);
    tmk_tree_u64_if(t, "processes_left_out", d->has_users, d->n_left_out);
    tmk_tree_label(t, "processes_reason", d->users_reason);
    put_load(t, d);
    tmk_tree_end(t);
}

static void put_top_process(struct tmk_tree *t, const struct tmk_top_model *m,
                            const struct tmk_top_process *p)
{
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "pid", p->pid);
    tmk_tree_label(t, "user", p->user);
    tmk_tree_label(t, "command", p->command);
    tmk_tree_bool(t, "watched", p->is_watched);
    tmk_tree_bytes(t, "used", p->used_bytes);
    tmk_tree_bytes(t, "host", p->host_bytes);
    tmk_tree_list(t, "devices");
    for (uint64_t i = 0; i < m->n_uses; i++) {
        if (m->uses[i].pid != p->pid)
            continue;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "device", m->devices[m->uses[i].device].label);
        tmk_tree_bytes(t, "used", m->uses[i].bytes);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void put_job(struct tmk_tree *t, const struct tmk_job *job)
{
    char device[24];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "pid", job->pid);
    tmk_tree_number(t, "rank", job->rank);
    tmk_tree_text(t, "run", job->run);
    tmk_tree_text(t, "device", job->has_memory ? tmk_device_name(job->device, device) : NULL);
    tmk_tree_bytes(t, "allocated", job->has_memory ? job->allocated_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "reserved", job->has_memory ? job->reserved_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "peak", job->has_memory ? job->peak_bytes : TMK_BYTES_UNKNOWN);
    tmk_answer_put_step(t, "step", job->has_memory ? job->step : TMK_NO_STEP);
    tmk_answer_put_forecast(t, "forecast", job->has_memory ? &job->forecast : NULL);
    tmk_tree_label(t, "command", job->command);
    tmk_tree_u64_if(t, "step_ns", job->has_memory && job->step_ns, job->step_ns);
    tmk_tree_double(t, "bytes_per_step",
                    job->has_memory && job->has_growth ? job->bytes_per_step : (double)NAN);
    tmk_tree_end(t);
}

static void print_top_json(const struct tmk_top_model *m, const struct tmk_choice *choice)
{
    struct tmk_tree t;
    uint32_t *order = tmk_xcalloc(m->n_processes + 1, sizeof *order);
    uint32_t n = tmk_choice_order(choice, m, order);
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "host", m->host);
    tmk_tree_label(&t, "problem", m->problem);
    tmk_tree_list(&t, "devices");
    for (unsigned i = 0; i < m->n_devices; i++)
        put_device(&t, &m->devices[i]);
    tmk_tree_end(&t);
    tmk_tree_list(&t, "processes");
    for (uint32_t i = 0; i < n; i++)
        put_top_process(&t, m, &m->processes[order[i]]);
    tmk_tree_end(&t);
    tmk_tree_list(&t, "jobs");
    for (uint32_t i = 0; i < n; i++)
        if (m->processes[order[i]].is_watched)
            put_job(&t, &m->processes[order[i]].job);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
    free(order);
}

/* ---- text ---- */

static void print_top_text(const struct tmk_top_model *m, const struct tmk_choice *choice)
{
    struct tmk_grid grid;
    if (tmk_picture_page(&grid, tmk_screen_width(), m, choice) < 0)
        tmk_die("out of memory");
    tmk_grid_write(&grid, stdout);
    tmk_grid_fini(&grid);
}

static int print_once(const char *filter, bool json)
{
    struct tmk_choice choice = tmk_choice_start(!tmk_screen_is_utf8(), filter);
    struct tmk_gather *gather = NULL;
    struct tmk_error err = {0};
    int rc = tmk_gather_open(1, &gather, &err);
    if (rc == 0)
        rc = tmk_gather_look(gather, true, &err);
    if (rc < 0)
        tmk_say("%s", err.text);
    else if (json)
        print_top_json(tmk_gather_model(gather), &choice);
    else
        print_top_text(tmk_gather_model(gather), &choice);
    tmk_gather_close(gather);
    return rc < 0 ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

/* ---- the command ---- */

/* Read an interval from 0.1 seconds to an hour: "2", "0.5", "500ms". */
static bool parse_interval(const char *text, double *ret_s)
{
    uint64_t ns = 0; /* of what is no time too */
    (void)tmk_seconds_parse(text, &ns);
    *ret_s = (double)ns / 1e9;
    if (ns >= LEAST_INTERVAL_NS && ns <= MOST_INTERVAL_NS)
        return true;
    tmk_say("--interval: '%s' is no time from 0.1 to 3600 seconds: 1, 0.5, 500ms", text);
    return false;
}

static int run_top(const struct tmk_args *args)
{
    const char *interval = tmk_args_get(args, "interval");
    const char *filter = tmk_args_get(args, "filter");
    bool json = tmk_args_get(args, "json") != NULL;
    struct tmk_error err = {0};
    double interval_s = 1;
    if (interval && !parse_interval(interval, &interval_s))
        return TMK_EXIT_USAGE;
    if (!tmk_screen_is_utf8()) /* a screen in ASCII has '?' for all else */
        tmk_language_begin_data();
    if (tmk_args_get(args, "once"))
        return print_once(filter, json);
    if (json) {
        tmk_say("--json goes with --once: tidemark top --once --json");
        return TMK_EXIT_USAGE;
    }
    int rc = tmk_live_run(interval_s, filter, &err);
    if (rc < 0)
        tmk_say("%s", err.text);
    return rc == 0 ? TMK_EXIT_OK : rc == TMK_EINVAL ? TMK_EXIT_USAGE : TMK_EXIT_FINDING;
}

static const struct tmk_option options[] = {
    {"interval", 'i', "S", NULL, "refresh every S seconds (1)"},
    {"filter", 0, "TEXT", NULL, "only processes whose command, user or PID has TEXT"},
    {"once", 0, NULL, NULL, "print one screen and exit"},
    {"json", 0, NULL, NULL, "with --once: print one JSON object"},
};

static const char *const description[] = {
    "top shows the devices with their utilisation, power, temperature and memory, the processes "
    "on them, and what recorded processes (●) have allocated. The ranks of a run stand below a "
    "line with their sums. Enter opens a process, r shows its report, k sends it a signal after a "
    "question, ? lists the keys. It asks nothing of the processes: it "
    "reads their traces, each as often as that costs little. It works over ssh from 80x24 on, "
    "and without colours (NO_COLOR).",
    "USED\twhat the driver counts for a process",
    "HOST\tthe resident memory of a process",
    "ALLOC, RESERVED, PEAK, STEP\tof recorded processes, on the device where they have most",
    "GROWTH\thow the memory kept after a step changes, per step",
    "FORECAST\twhen the process runs out of that memory, or the risk",
    "-\tnot known",
    NULL,
};

static const char *const json_keys[] = {
    "host, problem\tthis machine, and why devices are missing; null: none are",
    "devices\teach: device kind name id total used reserved reason processes_left_out "
    "processes_reason utilization (%) power power_limit (W) temperature (°C)",
    "processes\teach: pid user command watched used host, devices: device used",
    "jobs\teach: pid rank run device allocated reserved peak step forecast command step_ns "
    "bytes_per_step",
    "forecast\trisk seconds_to_oom seconds_low seconds_high steps_to_oom confidence cause "
    "advice",
    NULL,
};

static const char *const examples[] = {
    "tidemark top",
    "this machine, every second; q quits, ? lists the keys",
    "tidemark top --filter train.py",
    "only the processes that run train.py",
    "tidemark top --once --json | jq '.devices[] | .used / .total'",
    "how full each device is, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_top = {
    .name = "top",
    .group = TMK_GROUP_LIVE,
    .summary = "Show GPUs, processes and recorded jobs live, full screen",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .json = json_keys,
    .examples = examples,
    .run = run_top,
};
