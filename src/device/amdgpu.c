/* SPDX-License-Identifier: MIT */
/* device/amdgpu.c - AMD's GPUs, as the amdgpu module shows them in /sys and /proc.
 *
 * A GPU is a /sys/class/drm/cardN with a device/mem_info_vram_total. A process that uses it has
 * files under /dev/dri open; their fdinfo says how much memory they use:
 *
 *     drm-driver:       amdgpu
 *     drm-pdev:         0000:c1:00.0
 *     drm-client-id:    42
 *     drm-memory-vram:  1048576 KiB
 *
 * Several files of one client report the same figure, so each client counts once. Only root can
 * look at other users' processes; those that cannot be read are not listed. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lines.h"
#include "device/device.h"
#include "device/device_source.h"
#include "kit/amount.h"
#include "kit/kernel_files.h"

enum { CARDS_MOST = 64, CLIENTS_MOST = 64, FDINFO_BYTES = 2048 };

/* ---- GPUs ---- */

/* Read a file of a GPU's device, without the newline; false: it is not there. */
static bool read_card_file(const struct tmk_devices *d, unsigned card, const char *name, char *to,
                           size_t size)
{
    bool good = tmk_kernel_file_read(to, size, "%s/class/drm/card%u/device/%s", d->roots.sys, card,
                                     name) > 0;
    to[strcspn(to, "\n")] = '\0';
    return good;
}

static bool read_card_bytes(const struct tmk_devices *d, unsigned card, const char *name,
                            uint64_t *ret)
{
    char text[32], *end;
    if (!read_card_file(d, card, name, text, sizeof text))
        return false;
    uint64_t bytes = strtoull(text, &end, 10);
    if (end == text || *end)
        return false;
    *ret = bytes;
    return true;
}

/* Read the PCI address: the name of the folder that cardN/device leads to. */
static void read_card_address(const struct tmk_devices *d, struct tmk_device *device)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/class/drm/card%u/device", d->roots.sys, device->number);
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    if (slash)
        snprintf(device->id, sizeof device->id, "%.95s", slash + 1);
    free(real);
}

static void read_card_name(const struct tmk_devices *d, struct tmk_device *device)
{
    char id[32];
    if (read_card_file(d, device->number, "product_name", device->name, sizeof device->name) &&
        device->name[0])
        return;
    if (read_card_file(d, device->number, "device", id, sizeof id))
        snprintf(device->name, sizeof device->name, "AMD %s", id);
}

static void add_amd_card(struct tmk_devices *d, unsigned number)
{
    uint64_t total_bytes;
    if (!read_card_bytes(d, number, "mem_info_vram_total", &total_bytes))
        return;
    struct tmk_device *device = tmk_devices_add(d, TMK_DEVICE_AMD, number);
    if (!device)
        return;
    read_card_address(d, device);
    read_card_name(d, device);
    d->drivers[TMK_DEVICE_AMD].state = TMK_DRIVER_READY;
}

/* Whether `name` is like "card7", with nothing behind: card7-DP-1 is a connector. */
static bool is_drm_card(const char *name)
{
    size_t n = strlen(name);
    return strncmp(name, "card", 4) == 0 && n > 4 && n < 8 &&
           strspn(name + 4, "0123456789") == n - 4;
}

static int amdgpu_open(struct tmk_devices *d, struct tmk_error *err)
{
    (void)err;
    char path[PATH_MAX];
    bool there[CARDS_MOST] = {false};
    snprintf(path, sizeof path, "%s/class/drm", d->roots.sys);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        unsigned long number =
            is_drm_card(entry->d_name) ? strtoul(entry->d_name + 4, NULL, 10) : CARDS_MOST;
        if (number < CARDS_MOST)
            there[number] = true;
    }
    if (folder)
        closedir(folder);
    for (unsigned i = 0; i < CARDS_MOST; i++)
        if (there[i])
            add_amd_card(d, i);
    return 0;
}

static int amdgpu_memory(struct tmk_devices *d, const struct tmk_device *device,
                         struct tmk_device_memory *ret, struct tmk_error *err)
{
    struct tmk_device_memory m = {.reserved_bytes = TMK_BYTES_UNKNOWN};
    if (!read_card_bytes(d, device->number, "mem_info_vram_total", &m.total_bytes) ||
        !read_card_bytes(d, device->number, "mem_info_vram_used", &m.used_bytes))
        return tmk_fail(err, TMK_EIO, "amdgpu does not tell the memory of card%u", device->number);
    *ret = m;
    return 0;
}

/* ---- load ---- */

/* The first number of a file of the card's sensors (hwmon), which is in a folder with a number that
 * differs. */
static bool read_sensor(const struct tmk_devices *d, unsigned card, const char *name, uint64_t *ret)
{
    char path[PATH_MAX], file[64];
    snprintf(path, sizeof path, "%s/class/drm/card%u/device/hwmon", d->roots.sys, card);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while (folder && !found && (entry = readdir(folder))) {
        snprintf(file, sizeof file, "hwmon/%.24s/%s", entry->d_name, name);
        found = entry->d_name[0] != '.' && read_card_bytes(d, card, file, ret);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Newer cards tell the power of the moment (power1_input) instead of its average, in microwatts;
 * temperatures are in thousandths of a degree. */
static void amdgpu_load(struct tmk_devices *d, const struct tmk_device *device,
                        struct tmk_device_load *ret)
{
    uint64_t value;
    if (read_card_bytes(d, device->number, "gpu_busy_percent", &value) && value <= 100)
        ret->busy_percent = (uint32_t)value;
    if (read_sensor(d, device->number, "power1_average", &value) ||
        read_sensor(d, device->number, "power1_input", &value))
        ret->power_mw = (uint32_t)(value / 1000);
    if (read_sensor(d, device->number, "power1_cap", &value))
        ret->power_limit_mw = (uint32_t)(value / 1000);
    if (read_sensor(d, device->number, "temp1_input", &value))
        ret->temperature_c = (uint32_t)(value / 1000);
}

/* ---- processes ---- */

/* Whether the rest of the line at `field` equals `text`. */
static bool is_fdinfo_line(const char *field, const char *text)
{
    size_t n = strlen(text);
    return strncmp(field, text, n) == 0 && (field[n] == '\n' || field[n] == '\0');
}

/* Parse "1048576 KiB"; returns bytes. */
static uint64_t fdinfo_bytes_of(const char *field)
{
    char *end;
    uint64_t value = strtoull(field, &end, 10);
    end += strspn(end, " \t");
    return value << (strncmp(end, "KiB", 3) == 0 ? 10 : strncmp(end, "MiB", 3) == 0 ? 20 : 0);
}

/* The memory that one process uses on one GPU. */
struct drm_use {
    const char *address;
    unsigned long clients[CLIENTS_MOST];
    unsigned n_clients;
    uint64_t used_bytes;
};

static void take_fdinfo(struct drm_use *h, const char *text)
{
    if (!is_fdinfo_line(tmk_lines_field(text, "drm-driver:"), "amdgpu") ||
        !is_fdinfo_line(tmk_lines_field(text, "drm-pdev:"), h->address))
        return;
    unsigned long client = strtoul(tmk_lines_field(text, "drm-client-id:"), NULL, 10);
    for (unsigned i = 0; i < h->n_clients; i++)
        if (h->clients[i] == client)
            return;
    if (h->n_clients == CLIENTS_MOST)
        return;
    h->clients[h->n_clients++] = client;
    h->used_bytes += fdinfo_bytes_of(tmk_lines_field(text, "drm-memory-vram:"));
}

/* Only files under /dev/dri are worth their fdinfo: a process has hundreds of others. */
static bool is_dri(const char *process, const char *fd)
{
    char path[PATH_MAX], target[16];
    snprintf(path, sizeof path, "%s/fd/%s", process, fd);
    ssize_t n = readlink(path, target, sizeof target);
    return n > 9 && memcmp(target, "/dev/dri/", 9) == 0;
}

static void take_drm_process(struct drm_use *h, const char *process)
{
    char path[PATH_MAX], text[FDINFO_BYTES];
    snprintf(path, sizeof path, "%.*s/fd", PATH_MAX - 8, process);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !is_dri(process, entry->d_name))
            continue;
        tmk_kernel_file_read(text, sizeof text, "%s/fdinfo/%s", process, entry->d_name);
        take_fdinfo(h, text);
    }
    if (folder)
        closedir(folder);
}

static int amdgpu_processes(struct tmk_devices *d, const struct tmk_device *device,
                            struct tmk_device_processes *ret, struct tmk_error *err)
{
    char process[PATH_MAX / 2];
    DIR *folder = opendir(d->roots.proc);
    const struct dirent *entry;
    if (!folder)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot list %s", d->roots.proc);
    while ((entry = readdir(folder))) {
        long pid = strtol(entry->d_name, NULL, 10);
        struct drm_use h = {.address = device->id};
        if (pid <= 0)
            continue;
        snprintf(process, sizeof process, "%s/%ld", d->roots.proc, pid);
        take_drm_process(&h, process);
        if (h.n_clients)
            tmk_processes_add(ret, (pid_t)pid, h.used_bytes);
    }
    closedir(folder);
    return 0;
}

const struct tmk_device_source tmk_source_amdgpu = {
    .open = amdgpu_open,
    .memory = amdgpu_memory,
    .load = amdgpu_load,
    .processes = amdgpu_processes,
    .has_own_pids = true,
};
