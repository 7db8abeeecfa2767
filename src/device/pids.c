/* SPDX-License-Identifier: MIT */
/* device/pids.c - see pids.h. */
#include "device/pids.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/kernel_files.h"

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

/* ---- by numbers of another namespace ---- */

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
static bool is_elsewhere(const char *proc, const char *name, unsigned n_deeper, const char *ours)
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
            (level != INNERMOST && is_elsewhere(proc, entry->d_name, id.n_numbers - 1 - at, ours)))
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

/* ---- all ways ---- */

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

void tmk_pids_resolve(const char *proc, bool is_own, struct tmk_device_processes *list)
{
    struct pid_match matches[TMK_DEVICE_PROCESSES_MOST] = {{0}};
    struct pid_identity us = {0};
    bool from_outside = identify_process(proc, "self", &us) && us.n_numbers > 1;
    if (from_outside && !is_own && list->n)
        resolve_numbers(proc, us.n_numbers - 1, list, matches);
    if (resolve_directly(proc, list, matches) && !from_outside && !is_own)
        resolve_numbers(proc, INNERMOST, list, matches);
}
