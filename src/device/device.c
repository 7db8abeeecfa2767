/* SPDX-License-Identifier: MIT */
/* device/device.c - see device.h. It asks one source after the other and keeps one list of
 * devices. */
#include "device/device.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/lines.h"
#include "base/signals.h"
#include "device/device_source.h"
#include "kit/amount.h"
#include "kit/kernel_files.h"

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

void tmk_devices_load(struct tmk_devices *d, unsigned index, struct tmk_device_load *ret)
{
    const struct tmk_device *device = &d->list[index];
    *ret = (struct tmk_device_load){TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN, TMK_LOAD_UNKNOWN,
                                    TMK_LOAD_UNKNOWN};
    if (!device->reason[0] && sources[device->kind]->load)
        sources[device->kind]->load(d, device, ret);
}

/* ---- PIDs ----
 *
 * Newer drivers report numbers of the asker's PID namespace, older ones the machine's, and some the
 * number in the process's own namespace. The status of a process lists its numbers in all its
 * namespaces (NSpid), from that of the /proc it is read from to its own:
 *
 *     our own /proc:      the number is there; else it may be somebody's innermost one
 *     one from outside:   it is somebody's number in our namespace; else the number is there
 *
 * A number that could mean several processes is not resolved. */

enum {
    STATUS_BYTES = 4096,  /* NSpid is in the first few hundred */
    NAMESPACES_MOST = 32, /* the kernel's limit */
    NAMESPACE_BYTES = 32,
    INNERMOST = NAMESPACES_MOST,
};

/* The identity that a process's status file states. */
struct pid_identity {
    pid_t pid;
    char name[16];
    long numbers[NAMESPACES_MOST];
    unsigned n_numbers;
};

/* Read the status of `name`, a PID or "self". */
static bool identify_process(const char *proc, const char *name, struct pid_identity *ret)
{
    char status[STATUS_BYTES];
    if (tmk_kernel_file_read(status, sizeof status, "%s/%s/status", proc, name) <= 0)
        return false;
    const char *title = tmk_lines_field(status, "Name:");
    ret->pid = (pid_t)strtol(name, NULL, 10);
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)strcspn(title, "\n"), title);
    ret->n_numbers =
        tmk_kernel_numbers(tmk_lines_field(status, "NSpid:"), ret->numbers, NAMESPACES_MOST);
    return true;
}

static bool identify_pid(const char *proc, pid_t pid, struct pid_identity *ret)
{
    char name[16];
    snprintf(name, sizeof name, "%d", (int)pid);
    return identify_process(proc, name, ret);
}

static void take_identity(struct tmk_device_process *p, const struct pid_identity *id)
{
    p->pid = id->pid;
    p->inner_pid = id->n_numbers ? (pid_t)id->numbers[id->n_numbers - 1] : id->pid;
    memcpy(p->name, id->name, sizeof p->name);
}

/* The process that a number means, and how many it could mean. */
struct pid_match {
    pid_t pid;
    unsigned n;
};

/* Read the name of a PID namespace, like "pid:[4026531836]"; "": it may not be read. */
static void read_namespace(const char *proc, const char *name, char *to)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s/ns/pid", proc, name);
    ssize_t n = readlink(path, to, NAMESPACE_BYTES - 1);
    to[n > 0 ? n : 0] = '\0';
}

/* Whether a process is in another container. A number at the level of our namespace may still
 * belong to one. */
static bool is_in_other_namespace(const char *proc, const char *name, unsigned n_deeper,
                                  const char *ours)
{
    char theirs[NAMESPACE_BYTES];
    if (n_deeper)
        return false; /* its namespace is within ours or another one: not known */
    read_namespace(proc, name, theirs);
    return *ours && *theirs && strcmp(ours, theirs) != 0;
}

/* Walk through /proc once and match all processes that are not resolved yet. `level`: which number
 * of the status counts. */
static void match_processes(const char *proc, unsigned level,
                            const struct tmk_device_processes *list, struct pid_match *matches)
{
    char ours[NAMESPACE_BYTES];
    struct pid_identity id;
    DIR *folder = opendir(proc);
    const struct dirent *entry;
    read_namespace(proc, "self", ours);
    while (folder && (entry = readdir(folder))) {
        if (strtol(entry->d_name, NULL, 10) <= 0 || !identify_process(proc, entry->d_name, &id) ||
            id.n_numbers == 0)
            continue;
        unsigned at = level == INNERMOST ? id.n_numbers - 1 : level;
        if (at >= id.n_numbers ||
            (level != INNERMOST &&
             is_in_other_namespace(proc, entry->d_name, id.n_numbers - 1 - at, ours)))
            continue;
        for (unsigned i = 0; i < list->n; i++) {
            if (list->items[i].inner_pid || list->items[i].pid != id.numbers[at])
                continue;
            matches[i].pid = id.pid;
            matches[i].n++;
        }
    }
    if (folder)
        closedir(folder);
}

static void resolve_numbers(const char *proc, unsigned level, struct tmk_device_processes *list,
                            struct pid_match *matches)
{
    struct pid_identity id;
    match_processes(proc, level, list, matches);
    for (unsigned i = 0; i < list->n; i++)
        if (matches[i].n == 1 && identify_pid(proc, matches[i].pid, &id))
            take_identity(&list->items[i], &id);
}

/* Resolve the processes for which no other match exists. Returns how many are still unresolved. */
static unsigned resolve_directly(const char *proc, struct tmk_device_processes *list,
                                 const struct pid_match *matches)
{
    struct pid_identity id;
    unsigned n_missing = 0;
    for (unsigned i = 0; i < list->n; i++) {
        struct tmk_device_process *p = &list->items[i];
        if (!p->inner_pid && matches[i].n == 0 && identify_pid(proc, p->pid, &id))
            take_identity(p, &id);
        n_missing += !p->inner_pid;
    }
    return n_missing;
}

/* Fill in inner_pid and name of each process, and correct pid. A process that is not found keeps
 * inner_pid 0. `is_own`: the numbers come from this very /proc, so nothing has to be guessed. */
static void resolve_pids(const char *proc, bool is_own, struct tmk_device_processes *list)
{
    struct pid_match matches[TMK_DEVICE_PROCESSES_MOST] = {{0}};
    struct pid_identity us = {0};
    bool from_outside = identify_process(proc, "self", &us) && us.n_numbers > 1;
    if (from_outside && !is_own && list->n)
        resolve_numbers(proc, us.n_numbers - 1, list, matches);
    if (resolve_directly(proc, list, matches) && !from_outside && !is_own)
        resolve_numbers(proc, INNERMOST, list, matches);
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
    resolve_pids(d->roots.proc, sources[device->kind]->has_own_pids, ret);
    qsort(ret->items, ret->n, sizeof ret->items[0], by_process_pid);
    return 0;
}
