/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_how.c - the options that say how to run a sweep: see sweep_plan.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/watch_options.h"
#include "cli/sweep/sweep_plan.h"
#include "device/device.h"
#include "kit/amount.h"
#include "monitor/selection.h"
#include "monitor/visible.h"

int tmk_sweep_read_count(const struct tmk_args *args, const char *name, unsigned most,
                         unsigned *value)
{
    const char *text = tmk_args_get(args, name);
    int64_t number;
    if (!text)
        return 0;
    if (tmk_integer_parse(text, &number) < 0 || number < 1 || number > most) {
        tmk_say("--%s: '%s' is not a number from 1 to %u", name, text, most);
        return TMK_EXIT_USAGE;
    }
    *value = (unsigned)number;
    return 0;
}

/* ---- devices ---- */

static const char *variable_of(enum tmk_device_kind kind)
{
    return kind == TMK_DEVICE_AMD ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

/* Whether a device may be used. If the environment variable is set, as a cluster does for a job,
 * only the devices in it may. */
static bool is_device_allowed(const struct tmk_devices *d, unsigned index)
{
    const struct tmk_device *device = tmk_devices_get(d, index);
    struct tmk_selection named;
    tmk_visible_named(d, device->kind, &named);
    for (unsigned i = 0; i < named.n; i++)
        if (named.items[i] == index ||
            (device->mig == TMK_MIG_PART && named.items[i] == device->card))
            return true;
    return false;
}

/* Choose all GPUs that may be used, and parts of a GPU if they are named one by one. */
static void choose_allowed_devices(const struct tmk_devices *d, struct tmk_selection *s)
{
    unsigned n = 0;
    const enum tmk_device_kind kinds[] = {TMK_DEVICE_NVIDIA, TMK_DEVICE_AMD};
    for (size_t k = 0; k < TMK_N(kinds); k++) {
        struct tmk_selection named;
        tmk_visible_named(d, kinds[k], &named);
        for (unsigned i = 0; i < named.n; i++)
            s->items[n++] = named.items[i];
    }
    s->n = n ? n : s->n;
}

static int refuse_other(const struct tmk_devices *d, unsigned index)
{
    char label[TMK_LABEL_BYTES];
    const char *name = tmk_visible_variable(tmk_devices_get(d, index)->kind);
    tmk_say("--devices: %s is not among those of %s=%s; name those, or all",
            tmk_device_label(d, index, label), name, getenv(name));
    return TMK_EXIT_USAGE;
}

/* Give each GPU one configuration at a time. GPUs are named by the driver's id, which does not
 * depend on CUDA's order. */
static int take_sweep_devices(struct tmk_sweep_plan *p, const struct tmk_devices *d,
                              const struct tmk_selection *s)
{
    p->devices = tmk_xcalloc(s->n + 1, sizeof *p->devices);
    p->n_jobs = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const struct tmk_device *device = tmk_devices_get(d, s->items[i]);
        bool is_amd = device->kind == TMK_DEVICE_AMD;
        if (device->kind == TMK_DEVICE_HOST) {
            tmk_say("--devices: there is no GPU here; for several at once on the CPU: --jobs N");
            return TMK_EXIT_USAGE;
        }
        if (!is_device_allowed(d, s->items[i]))
            return refuse_other(d, s->items[i]);
        p->devices_name = variable_of(device->kind);
        p->devices[p->n_jobs++] =
            is_amd || !device->id[0] ? tmk_xformat("%u", device->number) : tmk_xstrdup(device->id);
    }
    return 0;
}

static int read_devices(struct tmk_sweep_plan *p, const char *text)
{
    struct tmk_devices *d = NULL;
    struct tmk_device_roots roots = tmk_device_roots_get();
    struct tmk_selection s;
    struct tmk_error err = {0};
    if (tmk_devices_open(&roots, &d, &err) < 0)
        tmk_die("%s", err.text);
    int status = 0;
    if (tmk_selection_parse(d, &text, 1, &s, &err) < 0) {
        tmk_say("--devices: %s", err.text);
        status = TMK_EXIT_USAGE;
    } else {
        if (strcmp(text, "all") == 0)
            choose_allowed_devices(d, &s);
        status = take_sweep_devices(p, d, &s);
    }
    tmk_devices_close(d);
    return status;
}

static int read_at_once(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    const char *devices = tmk_args_get(args, "devices");
    p->n_jobs = 1;
    if (devices && tmk_args_get(args, "jobs")) {
        tmk_say("--devices runs one configuration on each; --jobs is for sweeps without it");
        return TMK_EXIT_USAGE;
    }
    return devices ? read_devices(p, devices)
                   : tmk_sweep_read_count(args, "jobs", TMK_SWEEP_MAX_JOBS, &p->n_jobs);
}

static int read_limits(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    const char *timeout = tmk_args_get(args, "timeout"), *size = tmk_args_get(args, "capacity");
    if (timeout && (tmk_seconds_parse(timeout, &p->timeout_ns) < 0 || p->timeout_ns == 0)) {
        tmk_say("--timeout: '%s' is not a time, such as 90s or 10min", timeout);
        return TMK_EXIT_USAGE;
    }
    if (size && (tmk_size_parse(size, &p->capacity) < 0 || p->capacity == 0)) {
        tmk_say("--capacity: '%s' is not a size, such as 24GiB", size);
        return TMK_EXIT_USAGE;
    }
    return 0;
}

int tmk_sweep_read_how(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    const char *keep = tmk_args_get(args, "keep-traces");
    p->keep = keep && strcmp(keep, "none") == 0     ? TMK_KEEP_NONE
              : keep && strcmp(keep, "failed") == 0 ? TMK_KEEP_FAILED
                                                    : TMK_KEEP_ALL;
    p->skip_hopeless = tmk_args_get(args, "skip-hopeless") != NULL;
    p->detailed = tmk_args_get(args, "detailed") != NULL;
    p->no_pictures = tmk_args_get(args, "no-pictures") != NULL;
    p->dry_run = tmk_args_get(args, "dry-run") != NULL;
    int status = read_limits(p, args);
    if (status == 0 && !p->dry_run)
        status = read_at_once(p, args);
    if (status == 0 && !p->dry_run)
        status = tmk_watch_options_read(args, &p->watch);
    return status;
}
