/* SPDX-License-Identifier: MIT */
/* device/device.c - see device.h. It asks one source after the other and keeps one list of
 * devices. */
#include "device/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/signals.h"
#include "device/device_source.h"
#include "device/pids.h"

static const struct tmk_device_source *const sources[TMK_DEVICE_N_KINDS] = {
    [TMK_DEVICE_NVIDIA] = &tmk_source_nvml,
    [TMK_DEVICE_AMD] = &tmk_source_amdgpu,
    [TMK_DEVICE_HOST] = &tmk_source_host,
};

static const char *device_setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

struct tmk_device_roots tmk_device_roots_get(void)
{
    return (struct tmk_device_roots){
        .proc = device_setting("TIDEMARK_PROC_DIR", "/proc"),
        .sys = device_setting("TIDEMARK_SYS_DIR", "/sys"),
        .nvml = "libnvidia-ml.so.1",
    };
}

/* A driver's library may start a thread (NVML does). Block all signals in that thread: signals that
 * our own threads block and wait for would otherwise end the process there. */
static int open_device_sources(struct tmk_devices *d, struct tmk_error *err)
{
    sigset_t before;
    int rc = 0;
    tmk_signals_hold(&before);
    for (unsigned kind = 0; kind < TMK_DEVICE_N_KINDS && rc == 0; kind++)
        rc = sources[kind]->open(d, err);
    tmk_signals_release(&before);
    return rc;
}

int tmk_devices_open(const struct tmk_device_roots *roots, struct tmk_devices **ret_devices,
                     struct tmk_error *err)
{
    struct tmk_devices *d = calloc(1, sizeof *d);
    if (!d)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the list of devices");
    d->roots = *roots;
    int rc = open_device_sources(d, err);
    if (rc < 0)
        tmk_devices_close(d);
    else
        *ret_devices = d;
    return rc;
}

struct tmk_devices *tmk_devices_close(struct tmk_devices *d)
{
    for (unsigned kind = 0; d && kind < TMK_DEVICE_N_KINDS; kind++)
        if (sources[kind]->close)
            sources[kind]->close(d);
    free(d);
    return NULL;
}

struct tmk_device *tmk_devices_add(struct tmk_devices *d, enum tmk_device_kind kind,
                                   unsigned number)
{
    if (d->n + (kind == TMK_DEVICE_HOST ? 0 : 1) >= TMK_DEVICES_MOST)
        return NULL;
    struct tmk_device *device = &d->list[d->n];
    *device = (struct tmk_device){.kind = kind, .number = number, .card = d->n};
    d->n++;
    return device;
}

const char *tmk_device_kind_text(enum tmk_device_kind kind)
{
    static const char *const texts[TMK_DEVICE_N_KINDS] = {
        [TMK_DEVICE_NVIDIA] = "nvidia", [TMK_DEVICE_AMD] = "amd", [TMK_DEVICE_HOST] = "host"};
    return texts[kind];
}

unsigned tmk_devices_count(const struct tmk_devices *d)
{
    return d->n;
}

const struct tmk_device *tmk_devices_get(const struct tmk_devices *d, unsigned index)
{
    return &d->list[index];
}

const struct tmk_driver *tmk_devices_driver(const struct tmk_devices *d, enum tmk_device_kind kind)
{
    return &d->drivers[kind];
}

int tmk_devices_memory(struct tmk_devices *d, unsigned index, struct tmk_device_memory *ret,
                       struct tmk_error *err)
{
    const struct tmk_device *device = &d->list[index];
    if (device->reason[0])
        return tmk_fail(err, TMK_EIO, "%s", device->reason);
    return sources[device->kind]->memory(d, device, ret, err);
}

/* ---- processes ---- */

/* Whether a < b; an unknown value is less than any known one. */
static bool is_less_known(uint64_t a, uint64_t b)
{
    return b != TMK_BYTES_UNKNOWN && (a == TMK_BYTES_UNKNOWN || a < b);
}

static struct tmk_device_process *smallest_process(struct tmk_device_processes *list)
{
    struct tmk_device_process *least = &list->items[0];
    for (unsigned i = 1; i < list->n; i++)
        if (is_less_known(list->items[i].used_bytes, least->used_bytes))
            least = &list->items[i];
    return least;
}

void tmk_processes_add(struct tmk_device_processes *list, pid_t pid, uint64_t used_bytes)
{
    for (unsigned i = 0; i < list->n; i++) {
        struct tmk_device_process *p = &list->items[i];
        if (p->pid != pid)
            continue;
        if (is_less_known(p->used_bytes, used_bytes))
            p->used_bytes = used_bytes;
        return;
    }
    struct tmk_device_process *place = &list->items[list->n];
    if (list->n < TMK_DEVICE_PROCESSES_MOST) {
        list->n++;
    } else {
        list->n_left_out++;
        place = smallest_process(list);
        if (!is_less_known(place->used_bytes, used_bytes))
            return;
    }
    *place = (struct tmk_device_process){.pid = pid, .used_bytes = used_bytes};
}

static int by_process_pid(const void *a, const void *b)
{
    const struct tmk_device_process *p = a, *q = b;
    return (p->pid > q->pid) - (p->pid < q->pid);
}

int tmk_devices_processes(struct tmk_devices *d, unsigned index, struct tmk_device_processes *ret,
                          struct tmk_error *err)
{
    const struct tmk_device *device = &d->list[index];
    ret->n = ret->n_left_out = 0;
    if (device->reason[0])
        return tmk_fail(err, TMK_EIO, "%s", device->reason);
    if (!sources[device->kind]->processes)
        return 0;
    int rc = sources[device->kind]->processes(d, device, ret, err);
    if (rc < 0) {
        ret->n = ret->n_left_out = 0;
        return rc;
    }
    tmk_pids_resolve(d->roots.proc, sources[device->kind]->has_own_pids, ret);
    qsort(ret->items, ret->n, sizeof ret->items[0], by_process_pid);
    return 0;
}
