/* SPDX-License-Identifier: MIT */
/* device/host.c - see host.h; it is also the source that makes the host a device.
 *
 * Used memory is the total less MemAvailable: memory that a new program could have without swapping
 * is not used. */
#include "device/host.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/error.h"
#include "base/lines.h"
#include "device/device_source.h"
#include "kit/amount.h"
#include "kit/kernel_files.h"

enum { TEXT_BYTES = 8192, LEAST_TICKS = 10 };

/* Parse the line "NAME:  1234 kB"; returns bytes, unknown if it is not there. */
static uint64_t kilobytes(const char *text, const char *name)
{
    char *end;
    const char *field = tmk_lines_field(text, name);
    uint64_t value = strtoull(field, &end, 10);
    return end == field ? TMK_BYTES_UNKNOWN : value * 1024;
}

/* ---- the device ---- */

static int host_open(struct tmk_devices *d, struct tmk_error *err)
{
    (void)err;
    struct utsname name;
    struct tmk_device *device = tmk_devices_add(d, TMK_DEVICE_HOST, 0);
    if (device && uname(&name) == 0)
        snprintf(device->name, sizeof device->name, "host (%.80s)", name.machine);
    d->drivers[TMK_DEVICE_HOST].state = TMK_DRIVER_READY;
    return 0;
}

static int host_memory(struct tmk_devices *d, const struct tmk_device *device,
                       struct tmk_device_memory *ret, struct tmk_error *err)
{
    (void)device;
    char text[TEXT_BYTES];
    tmk_kernel_file_read(text, sizeof text, "%s/meminfo", d->roots.proc);
    uint64_t total = kilobytes(text, "MemTotal:"), available = kilobytes(text, "MemAvailable:");
    if (total == TMK_BYTES_UNKNOWN || available == TMK_BYTES_UNKNOWN || available > total)
        return tmk_fail(err, TMK_EIO, "%s/meminfo does not tell how much memory there is",
                        d->roots.proc);
    *ret = (struct tmk_device_memory){
        .total_bytes = total, .used_bytes = total - available, .reserved_bytes = TMK_BYTES_UNKNOWN};
    return 0;
}

/* Read the ticks of all processors together, and how many of these they were idle or waited for a
 * disk, from "cpu  user nice system idle iowait irq softirq steal guest ...". Guests are in user.
 */
static bool read_processor_ticks(const char *proc, uint64_t *ret_all, uint64_t *ret_idle)
{
    enum { IDLE = 3, IOWAIT = 4, STEAL = 7 };
    char text[512];
    long ticks[STEAL + 1];
    tmk_kernel_file_read(text, sizeof text, "%s/stat", proc);
    if (strncmp(text, "cpu ", 4) != 0 ||
        tmk_kernel_numbers(text + 4, ticks, STEAL + 1) != STEAL + 1)
        return false;
    *ret_all = 0;
    for (unsigned i = 0; i <= STEAL; i++)
        *ret_all += (uint64_t)ticks[i];
    *ret_idle = (uint64_t)ticks[IDLE] + (uint64_t)ticks[IOWAIT];
    return true;
}

/* A share needs two readings, and some time between them: a tick is 10 ms, so of a few ticks it
 * would be noise, and the share of before stays. iowait may fall, and then idle time seems to. */
static void host_load(struct tmk_devices *d, const struct tmk_device *device,
                      struct tmk_device_load *ret)
{
    (void)device;
    uint64_t all, idle;
    if (!read_processor_ticks(d->roots.proc, &all, &idle))
        return;
    bool is_first = d->host_ticks == 0;
    uint64_t passed = all > d->host_ticks ? all - d->host_ticks : 0;
    uint64_t rested = idle > d->host_idle_ticks ? idle - d->host_idle_ticks : 0;
    if (is_first || passed >= LEAST_TICKS) {
        bool is_known = !is_first && rested <= passed;
        d->host_ticks = all;
        d->host_idle_ticks = idle;
        d->host_busy_percent = is_known
                                   ? (uint32_t)(((passed - rested) * 100 + passed / 2) / passed)
                                   : TMK_LOAD_UNKNOWN;
    }
    ret->busy_percent = d->host_busy_percent;
}

/* ---- processes ---- */

/* Read the resident bytes from statm's second number, which counts pages. 0: there is no such
 * process, or it is a kernel thread. */
static uint64_t resident_bytes_of_process(const char *proc, const char *pid)
{
    char text[128];
    long numbers[2] = {0};
    tmk_kernel_file_read(text, sizeof text, "%s/%s/statm", proc, pid);
    if (tmk_kernel_numbers(text, numbers, 2) < 2 || numbers[1] < 0)
        return 0;
    return (uint64_t)numbers[1] * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Small processes are left out: there are hundreds, and none of them fills a machine. */
static int host_processes(struct tmk_devices *d, const struct tmk_device *device,
                          struct tmk_device_processes *ret, struct tmk_error *err)
{
    (void)device;
    DIR *folder = opendir(d->roots.proc);
    const struct dirent *entry;
    if (!folder)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot list %s", d->roots.proc);
    while ((entry = readdir(folder))) {
        long pid = strtol(entry->d_name, NULL, 10);
        uint64_t bytes = pid > 0 ? resident_bytes_of_process(d->roots.proc, entry->d_name) : 0;
        if (bytes >= TMK_HOST_PROCESS_LEAST)
            tmk_processes_add(ret, (pid_t)pid, bytes);
    }
    closedir(folder);
    return 0;
}

const struct tmk_device_source tmk_source_host = {
    .open = host_open,
    .memory = host_memory,
    .load = host_load,
    .processes = host_processes,
    .has_own_pids = true,
};

/* ---- control groups ---- */

static void take_tightest(void *arg, uint64_t limit_bytes, uint64_t used_bytes)
{
    struct tmk_host_limit *tightest = arg;
    if (limit_bytes < tightest->limit_bytes)
        *tightest = (struct tmk_host_limit){limit_bytes, used_bytes};
}

int tmk_host_limit_read(const struct tmk_device_roots *roots, struct tmk_host_limit *ret,
                        struct tmk_error *err)
{
    struct tmk_host_limit found = {TMK_BYTES_UNKNOWN, TMK_BYTES_UNKNOWN};
    if (!tmk_cgroup_limits(roots->proc, roots->sys, take_tightest, &found))
        return tmk_fail(err, TMK_ENOENT, "%s/self/cgroup names no control group for memory",
                        roots->proc);
    *ret = found;
    return 0;
}

/* ---- pressure ---- */

int tmk_host_pressure_read(const struct tmk_device_roots *roots, unsigned *ret_some_avg10,
                           struct tmk_error *err)
{
    char text[256];
    tmk_kernel_file_read(text, sizeof text, "%s/pressure/memory", roots->proc);
    const char *some = tmk_lines_field(text, "some avg10=");
    char *dot;
    unsigned long whole = strtoul(some, &dot, 10);
    if (dot == some || *dot != '.')
        return tmk_fail(err, TMK_ENOENT, "this kernel keeps no %s/pressure/memory", roots->proc);
    *ret_some_avg10 = (unsigned)(whole * 100 + strtoul(dot + 1, NULL, 10)); /* two digits always */
    return 0;
}

/* ---- a process ---- */

uint64_t tmk_host_resident_bytes(const struct tmk_device_roots *roots, pid_t pid)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)pid);
    return resident_bytes_of_process(roots->proc, text);
}

int tmk_host_process_read(const struct tmk_device_roots *roots, pid_t pid,
                          struct tmk_host_process *ret, struct tmk_error *err)
{
    char status[TEXT_BYTES], rollup[TEXT_BYTES];
    if (tmk_kernel_file_read(status, sizeof status, "%s/%d/status", roots->proc, (int)pid) <= 0)
        return tmk_fail(err, TMK_ENOENT, "there is no process %d; see: ps -e", (int)pid);
    /* For other users' processes this fails and leaves "". */
    tmk_kernel_file_read(rollup, sizeof rollup, "%s/%d/smaps_rollup", roots->proc, (int)pid);
    uint64_t exact = kilobytes(rollup, "Rss:");
    *ret = (struct tmk_host_process){
        .rss_bytes = exact != TMK_BYTES_UNKNOWN ? exact : kilobytes(status, "VmRSS:"),
        .pss_bytes = kilobytes(rollup, "Pss:"),
        .locked_bytes = kilobytes(status, "VmLck:"),
        .pinned_bytes = kilobytes(status, "VmPin:"),
    };
    return 0;
}
