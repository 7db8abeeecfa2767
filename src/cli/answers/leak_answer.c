/* SPDX-License-Identifier: MIT */
/* cli/answers/leak_answer.c - see leak_answer.h. */
#include "cli/answers/leak_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/progress.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/leak/leak.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

#define LIVE_NS 5000000000u

/* ---- what the devices have ---- */

/* Returns the place of a device, made when new; TMK_MAX_DEVICES: there is none left. */
static uint32_t place_of_device(struct tmk_leak_process *item, uint16_t device)
{
    uint32_t i = 0;
    while (i < item->n_devices && item->devices[i] != device)
        i++;
    if (i < TMK_MAX_DEVICES && i == item->n_devices) {
        item->devices[item->n_devices++] = device;
        item->total_bytes[i] = UINT64_MAX;
    }
    return i;
}

static void on_device_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    struct tmk_leak_process *item = arg;
    (void)b;
    bool is_oom = ev->kind == TMK_KIND_OOM && !ev->is_of_driver;
    if (ev->kind != TMK_KIND_SAMPLE && !is_oom)
        return;
    uint32_t i = place_of_device(item, ev->device);
    if (i == TMK_MAX_DEVICES)
        return;
    if (is_oom) {
        item->has_oom[i] = true;
        item->oom_step[i] = rp->state.step;
    } else {
        item->total_bytes[i] = ev->sample.total_bytes;
        item->used_bytes[i] = ev->sample.used_bytes;
    }
}

bool tmk_leak_has_run_out(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                          int64_t *ret_step)
{
    for (uint32_t i = 0; i < item->n_devices; i++)
        if (item->devices[i] == leak->device && item->has_oom[i]) {
            *ret_step = item->oom_step[i];
            return true;
        }
    return false;
}

/* Find how many steps or seconds are left, at `rate` bytes per step or second. */
static bool left_at(const struct tmk_leak_process *item, const struct tmk_leak *leak, double rate,
                    double *ret)
{
    int64_t step;
    if (tmk_leak_has_run_out(item, leak, &step)) {
        *ret = 0;
        return true;
    }
    for (uint32_t i = 0; i < item->n_devices; i++) {
        uint64_t total = item->total_bytes[i], used = item->used_bytes[i];
        if (item->devices[i] != leak->device || total == UINT64_MAX || used > total || rate <= 0)
            continue;
        *ret = (double)(total - used) / rate;
        return true;
    }
    return false;
}

bool tmk_leak_steps_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                         double *ret_steps)
{
    return tmk_leakage_n_steps(item->leakage) > 0 &&
           left_at(item, leak, leak->bytes_per_step, ret_steps);
}

bool tmk_leak_seconds_left(const struct tmk_leak_process *item, const struct tmk_leak *leak,
                           double *ret_seconds)
{
    return left_at(item, leak, leak->bytes_per_second, ret_seconds);
}

uint32_t tmk_leak_n_with_steps(const struct tmk_leak_answer *f)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        n += tmk_leakage_n_steps(f->items[i].leakage) > 0;
    return n;
}

/* ---- the sweeps ---- */

static int sweep_for_leaks(struct tmk_leak_process *item, uint64_t threshold_bytes,
                           struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_leakage_open(item->p, threshold_bytes, &item->leakage);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, item->p->file);
    struct tmk_visitor visitors[] = {tmk_leakage_visitor(item->leakage),
                                     {.arg = item, .event = on_device_event},
                                     {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(item->p, visitors, TMK_N(visitors), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = tmk_leakage_finish(item->leakage, &rp, err);
    for (uint32_t i = 0; i < rp.state.n_devices; i++)
        place_of_device(item, rp.state.devices[i].device);
    tmk_replay_fini(&rp);
    return rc;
}

static int sweep_all(struct tmk_leak_answer *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        struct tmk_error err = {0};
        int rc = sweep_for_leaks(&f->items[i], f->threshold_bytes, &err);
        if (rc == 0)
            continue;
        tmk_say("%s: %s", f->items[i].p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    return 0;
}

bool tmk_leak_is_wanted(const struct tmk_leak_answer *f, const struct tmk_leak *leak)
{
    for (unsigned i = 0; i < f->n_devices; i++)
        if (f->devices[i] == leak->device)
            return true;
    return f->n_devices == 0;
}

/* Returns the verdict. It is "too short" only when no process was long enough. */
enum tmk_leak_verdict tmk_leak_verdict_of(const struct tmk_leak_answer *f)
{
    enum tmk_leak_verdict verdict = TMK_LEAK_TOO_SHORT;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct tmk_leakage *l = f->items[i].leakage;
        if (tmk_leakage_verdict(l) != TMK_LEAK_TOO_SHORT && verdict == TMK_LEAK_TOO_SHORT)
            verdict = TMK_LEAK_CLEAN;
        for (uint64_t k = 0; k < tmk_leakage_n(l); k++)
            if (tmk_leak_is_wanted(f, tmk_leakage_get(l, k)))
                verdict = TMK_LEAK_FOUND;
    }
    return verdict;
}

/* ---- the command ---- */

/* Add a device that was asked for: "0" or "cuda:0" is a GPU, "cpu" or "host" the host. False after
 * a message. */
static bool add_told_device(struct tmk_leak_answer *f, const char *word)
{
    char name[24];
    int64_t number;
    if (strcmp(word, "cpu") == 0 || strcmp(word, "host") == 0) {
        f->devices[f->n_devices++] = TMK_DEVICE_TYPE_CPU << 8;
        return true;
    }
    if (tmk_integer_parse(word, &number) == 0 && number >= 0 && number < 256) {
        f->devices[f->n_devices++] = tmk_cuda_device((unsigned)number);
        return true;
    }
    for (unsigned device = 0; device <= UINT16_MAX; device++)
        if (strcmp(tmk_device_name((uint16_t)device, name), word) == 0) {
            f->devices[f->n_devices++] = (uint16_t)device;
            return true;
        }
    tmk_say("--devices: '%s' is no device of a run: 0, cuda:0, cpu ...", word);
    return false;
}

/* Add all devices of a list such as "0,1". */
static bool add_devices(struct tmk_leak_answer *f, const char *list)
{
    char *copy = tmk_xstrdup(list), *rest = NULL;
    bool good = true;
    for (char *word = strtok_r(copy, ",", &rest); word && good; word = strtok_r(NULL, ",", &rest))
        good =
            strcmp(word, "all") == 0 || (f->n_devices < TMK_MAX_VALUES && add_told_device(f, word));
    free(copy);
    return good;
}

static int choose_processes(struct tmk_leak_answer *f, const struct tmk_args *args)
{
    const char *words[TMK_MAX_VALUES], *rank = tmk_args_get(args, "rank");
    unsigned n_words = tmk_args_list(args, "devices", words);
    for (unsigned i = 0; i < n_words; i++)
        if (!add_devices(f, words[i]))
            return TMK_EXIT_USAGE;
    f->n = rank ? 1 : tmk_run_n_processes(f->run);
    f->items = tmk_xcalloc(f->n, sizeof *f->items);
    for (uint32_t i = 0; i < f->n; i++)
        f->items[i].p = rank ? tmk_target_pick(f->run, rank) : tmk_run_process(f->run, i);
    return f->n > 0 && !f->items[0].p ? TMK_EXIT_USAGE : 0;
}

static bool uses_device(const struct tmk_leak_process *item, uint16_t device)
{
    for (uint32_t i = 0; i < item->n_devices; i++)
        if (item->devices[i] == device)
            return true;
    return false;
}

/* Returns the devices that the processes used, "cpu, cuda:0"; the caller's. */
static char *used_devices(const struct tmk_leak_answer *f)
{
    char *list = tmk_xstrdup(""), name[24];
    for (unsigned device = 0; device <= UINT16_MAX; device++) {
        bool is_used = false;
        for (uint32_t i = 0; i < f->n; i++)
            is_used |= uses_device(&f->items[i], (uint16_t)device);
        if (!is_used)
            continue;
        char *more = tmk_xformat("%s%s%s", list, list[0] ? ", " : "",
                                 tmk_device_name((uint16_t)device, name));
        free(list);
        list = more;
    }
    return list;
}

/* A device that no process used is a mistake and not clean. */
static int check_devices(const struct tmk_leak_answer *f)
{
    char name[24];
    for (unsigned d = 0; d < f->n_devices; d++) {
        bool is_used = false;
        for (uint32_t i = 0; i < f->n; i++)
            is_used |= uses_device(&f->items[i], f->devices[d]);
        if (is_used)
            continue;
        char *list = used_devices(f);
        tmk_say("--devices: no process of this run used %s; it used %s",
                tmk_device_name(f->devices[d], name), list[0] ? list : _("no device"));
        free(list);
        return TMK_EXIT_USAGE;
    }
    return 0;
}

static bool is_pid(const char *target)
{
    return tmk_watched_parse(target) != 0 && access(target, F_OK) != 0;
}

static int look_at_life(const struct tmk_args *args, struct tmk_leak_live *live)
{
    const char *text = tmk_args_get(args, "duration");
    uint64_t ns = LIVE_NS;
    if (text && tmk_seconds_parse(text, &ns) < 0) {
        tmk_say("--duration: '%s' is not a time, such as 10 (seconds) or 500ms", text);
        return TMK_EXIT_USAGE;
    }
    tmk_leak_live_look(args->operands[0], (double)ns / 1e9, !tmk_args_get(args, "no-python"), live);
    return 0;
}

static int answer_leak(struct tmk_leak_answer *f, const struct tmk_args *args)
{
    int status = choose_processes(f, args);
    if (status == 0)
        status = sweep_all(f);
    if (status == 0)
        status = check_devices(f);
    if (status != 0)
        return status;
    if (tmk_args_get(args, "json"))
        tmk_leak_json(f);
    else
        tmk_leak_text(f);
    return tmk_leak_verdict_of(f) == TMK_LEAK_CLEAN ? TMK_EXIT_OK : TMK_EXIT_FINDING;
}

int tmk_leak_run(const struct tmk_args *args, double threshold_mb)
{
    struct tmk_leak_answer f = {.threshold_bytes = threshold_mb < 0
                                                       ? TMK_LEAK_DEFAULT_BYTES
                                                       : (uint64_t)(threshold_mb * TMK_MB)};
    struct tmk_leak_live live = {0};
    bool is_live = is_pid(args->operands[0]);
    int status = tmk_target_open(args->operands[0], &f.run);
    if (status == 0 && is_live) { /* that it can be opened is known: now as of after the looks */
        f.run = tmk_run_close(f.run);
        f.live = &live;
        status = look_at_life(args, &live);
        if (status == 0)
            status = tmk_target_open(args->operands[0], &f.run);
    }
    if (status == 0)
        status = answer_leak(&f, args);
    for (uint32_t i = 0; f.items && i < f.n; i++)
        tmk_leakage_close(f.items[i].leakage);
    free(f.items);
    tmk_leak_live_fini(&live);
    tmk_run_close(f.run);
    return status;
}
