/* SPDX-License-Identifier: MIT */
/* cli/front/target.c - see target.h. */
#include "cli/front/target.h"

#include "base/error.h"
#include "cli/front/refused.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/arena.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/language.h"
#include "passes/steps.h"

static void say_target_refused(void *arg, const char *text)
{
    (void)arg;
    tmk_say("nothing was recorded: %s", text);
}

static int complain_of_target(const char *target, int rc, const struct tmk_error *err)
{
    if (strstr(err->text, target))
        tmk_say("%s", err->text);
    else
        tmk_say("%s: %s", target, err->text);
    if (rc == TMK_ENOENT && tmk_refused_each(target, NULL, say_target_refused, NULL) == 0)
        tmk_say("a run is a folder made with: tidemark run -o NAME.tmk -- PROGRAM ...");
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

int tmk_target_open(const char *target, struct tmk_run **ret_run)
{
    struct tmk_error err = {0};
    struct tmk_run *run = NULL;
    int rc = tmk_run_open(target, &run, &err);
    if (rc < 0)
        return complain_of_target(target, rc, &err);
    uint32_t n = tmk_run_n_unreadable(run, &err);
    if (n > 0)
        tmk_say("%s: %" PRIu32 " trace%s cannot be read (%s); going on with the others", target, n,
                n == 1 ? "" : "s", err.text);
    if (tmk_run_components_problem(run))
        tmk_say("components: %s; going on without that", tmk_run_components_problem(run));
    *ret_run = run;
    return 0;
}

static bool has_steps(const struct tmk_process *p)
{
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++)
        if (tmk_reader_step_row(p->reader, i)->step != TMK_NO_STEP)
            return true;
    return false;
}

const char *tmk_step_text(const struct tmk_process *p, int64_t step, const char *lead, char *buffer)
{
    if (step != TMK_NO_STEP)
        snprintf(buffer, TMK_STEP_TEXT_BYTES, _("%sin step %" PRId64),
                 strcmp(lead, ", ") == 0 ? _(", ") : lead, step);
    else if (has_steps(p))
        snprintf(buffer, TMK_STEP_TEXT_BYTES, _("%sbefore the first step"),
                 strcmp(lead, ", ") == 0 ? _(", ") : lead);
    else
        buffer[0] = '\0';
    return buffer;
}

const char *tmk_process_label(const struct tmk_process *p, char *buffer)
{
    if (p->rank >= 0)
        snprintf(buffer, 40, "rank %" PRId64, p->rank);
    else if (p->pid)
        snprintf(buffer, 40, "pid %" PRIu64, p->pid);
    else
        snprintf(buffer, 40, _("process"));
    return buffer;
}

uint64_t tmk_process_peak(const struct tmk_process *p)
{
    const struct tmk_step_row *row = tmk_steps_peak(p, true, 0);
    return row ? row->peak_bytes : 0;
}

static struct tmk_process *pick_rank(struct tmk_run *run, const char *text)
{
    int64_t rank;
    if (tmk_integer_parse(text, &rank) < 0 || rank < 0) {
        tmk_say("--rank: '%s' is not a rank: 0, 1, 2 ...", text);
        return NULL;
    }
    struct tmk_process *best = NULL;
    for (uint32_t i = 0; i < tmk_run_n_processes(run); i++) {
        struct tmk_process *p = tmk_run_process(run, i);
        if (p->rank == rank && (!best || tmk_process_peak(p) > tmk_process_peak(best)))
            best = p;
    }
    struct tmk_arena words = {0};
    if (!best)
        tmk_say("%s has no rank %" PRId64
                "; list them: tidemark query %s \"SELECT * FROM processes\"",
                tmk_run_path(run), rank, tmk_xshell_word(&words, tmk_run_path(run)));
    tmk_arena_fini(&words);
    return best;
}

struct tmk_process *tmk_target_pick(struct tmk_run *run, const char *rank)
{
    if (rank)
        return pick_rank(run, rank);
    uint32_t n = tmk_run_n_processes(run);
    struct tmk_process *best = tmk_run_process(run, 0);
    for (uint32_t i = 1; i < n; i++)
        if (tmk_process_peak(tmk_run_process(run, i)) > tmk_process_peak(best))
            best = tmk_run_process(run, i);
    char label[40];
    if (n > 1)
        tmk_say("%" PRIu32 " processes; this is the one with the largest peak: %s (%s)", n,
                tmk_process_label(best, label), best->file);
    return best;
}

int tmk_target_open_one(const struct tmk_args *args, struct tmk_run **ret_run,
                        struct tmk_process **ret_p)
{
    int status = tmk_target_open(args->operands[0], ret_run);
    if (status != 0)
        return status;
    *ret_p = tmk_target_pick(*ret_run, tmk_args_get(args, "rank"));
    return *ret_p ? 0 : TMK_EXIT_USAGE;
}

/* ---- devices ---- */

/* List the devices that a process has used, each once. */
static unsigned list_used_devices(const struct tmk_process *p, uint16_t devices[TMK_MAX_DEVICES])
{
    unsigned n = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        uint16_t device = tmk_reader_step_row(p->reader, i)->device;
        unsigned k = 0;
        while (k < n && devices[k] != device)
            k++;
        if (k == n && n < TMK_MAX_DEVICES)
            devices[n++] = device;
    }
    return n;
}

bool tmk_target_device(const struct tmk_process *p, const char *name, uint16_t *ret_device)
{
    uint16_t devices[TMK_MAX_DEVICES];
    char text[24], all[TMK_MAX_DEVICES * 26] = "";
    unsigned n = list_used_devices(p, devices);
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(tmk_device_name(devices[i], text), name) == 0) {
            *ret_device = devices[i];
            return true;
        }
        strcat(strcat(all, i ? ", " : ""), text);
    }
    tmk_say("--device: nothing was allocated on '%s'; there is: %s", name, n ? all : _("nothing"));
    return false;
}
