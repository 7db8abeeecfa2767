/* SPDX-License-Identifier: MIT */
/* device/pids.c - see pids.h. */
#include "device/pids.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/lines.h"

enum { STATUS_BYTES = 4096 }; /* NSpid stands in the first few hundred */

static bool read_status(const char *proc, long pid, char *status)
{
    return tmk_lines_read(status, STATUS_BYTES, "%s/%ld/status", proc, pid) > 0;
}

static void take(struct tmk_device_process *p, pid_t pid, const char *status)
{
    long inner = tmk_lines_last_number(tmk_lines_field(status, "NSpid:"));
    const char *name = tmk_lines_field(status, "Name:");
    p->pid = pid;
    p->inner_pid = inner > 0 ? (pid_t)inner : pid; /* kernels before 4.1 do not tell */
    snprintf(p->name, sizeof p->name, "%.*s", (int)strcspn(name, "\n"), name);
}

/* A process and how many have this innermost number. */
struct match {
    pid_t pid;
    unsigned n;
};

/* One walk through /proc for all that were not found directly. */
static void match_inner(const char *proc, const struct tmk_device_processes *list,
                        struct match *matches)
{
    char status[STATUS_BYTES];
    DIR *folder = opendir(proc);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || !read_status(proc, pid, status))
            continue;
        long inner = tmk_lines_last_number(tmk_lines_field(status, "NSpid:"));
        for (unsigned i = 0; i < list->n; i++) {
            if (list->items[i].inner_pid || list->items[i].pid != inner || inner == pid)
                continue;
            matches[i].pid = (pid_t)pid;
            matches[i].n++;
        }
    }
    if (folder)
        closedir(folder);
}

void tmk_pids_resolve(const char *proc, struct tmk_device_processes *list)
{
    char status[STATUS_BYTES];
    struct match matches[TMK_DEVICE_PROCESSES_MOST] = {{0}};
    unsigned n_missing = 0;
    for (unsigned i = 0; i < list->n; i++) {
        if (read_status(proc, list->items[i].pid, status))
            take(&list->items[i], list->items[i].pid, status);
        else
            n_missing++;
    }
    if (n_missing == 0)
        return;
    match_inner(proc, list, matches);
    for (unsigned i = 0; i < list->n; i++)
        if (matches[i].n == 1 && read_status(proc, matches[i].pid, status))
            take(&list->items[i], matches[i].pid, status);
}
