/* SPDX-License-Identifier: MIT */
/* model/watched.c - see watched.h. */
#include "model/watched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "kit/grow.h"
#include "trace/layout.h"

enum watched_look { IS_WATCHED, HAS_LIBRARY, HAS_NOTHING, IS_HIDDEN };

uint32_t tmk_watched_parse(const char *text)
{
    size_t n = strlen(text);
    if (n == 0 || n > 9 || text[strspn(text, "0123456789")])
        return 0;
    return (uint32_t)strtoul(text, NULL, 10);
}

const char *tmk_watched_host(void)
{
    const char *host = getenv(TMK_WATCHED_HOST);
    return host && *host ? host : NULL;
}

const char *tmk_watched_name(uint32_t pid, char buffer[TMK_WATCHED_NAME_BYTES])
{
    const char *host = tmk_watched_host();
    const char *user_end = host ? strrchr(host, '@') : NULL;
    const char *machine = user_end ? user_end + 1 : host;
    int n_user = (int)(machine - host);
    if (!host)
        snprintf(buffer, TMK_WATCHED_NAME_BYTES, "%u", pid);
    else if (strchr(machine, ':')) /* an IPv6 address */
        snprintf(buffer, TMK_WATCHED_NAME_BYTES, "%.*s[%s]:%u", n_user, host, machine, pid);
    else
        snprintf(buffer, TMK_WATCHED_NAME_BYTES, "%s:%u", host, pid);
    return buffer;
}

const char *tmk_watched_folder(const struct tmk_watched *w, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", w->trace_path + strlen(w->root));
    char *slash = strrchr(buffer, '/');
    if (slash && slash != buffer)
        *slash = '\0';
    return buffer;
}

/* ---- facts from /proc ---- */

static FILE *open_proc(uint32_t pid, const char *file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/%s", pid, file);
    return fopen(path, "re");
}

/* The process's number in its innermost PID namespace, which is the one that the process itself
 * sees. */
static uint32_t watched_inner_pid(uint32_t pid)
{
    char line[512];
    uint32_t inner = pid;
    FILE *status = open_proc(pid, "status");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        const char *last = strrchr(line, '\t');
        inner = last ? (uint32_t)strtoul(last, NULL, 10) : pid;
        break;
    }
    if (status)
        fclose(status);
    return inner;
}

static bool same_link(uint32_t pid, const char *name)
{
    char own[64], other[64], a[512], b[512];
    snprintf(own, sizeof own, "/proc/self/%s", name);
    snprintf(other, sizeof other, "/proc/%u/%s", pid, name);
    ssize_t n = readlink(own, a, sizeof a), m = readlink(other, b, sizeof b);
    return n >= 0 && n == m && memcmp(a, b, (size_t)n) == 0;
}

/* Set the root to "/proc/PID/root" if the process sees other files than we do. */
static void find_process_root(struct tmk_watched *w)
{
    w->root[0] = '\0';
    if (!same_link(w->pid, "ns/mnt") || !same_link(w->pid, "root"))
        snprintf(w->root, sizeof w->root, "/proc/%u/root", w->pid);
}

static bool path_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool is_ring_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && strncmp(slash, "/tidemark.", 10) == 0 && path_ends_with(path, ".ring");
}

static bool read_watched_header(const char *path, struct tmk_ring_header *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret &&
                memcmp(ret->magic, TMK_RING_MAGIC, sizeof ret->magic) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* Whether recording is just beginning: the ring is made some milliseconds before the trace gets its
 * name. */
static bool is_beginning(const struct tmk_ring_header *header, const char *trace_path)
{
    static const uint64_t limit_ns = 2000000000u;
    return tmk_clock_monotonic_ns() - header->start_monotonic_ns < limit_ns &&
           access(trace_path, F_OK) < 0 && errno == ENOENT;
}

/* Fill in the paths if the ring at `path` (as the process sees it) is the process's own; returns
 * whether it is. */
static bool take_ring(struct tmk_watched *w, uint32_t inner, const char *path)
{
    struct tmk_ring_header header;
    if ((size_t)snprintf(w->ring_path, sizeof w->ring_path, "%s%s", w->root, path) >=
            sizeof w->ring_path ||
        !read_watched_header(w->ring_path, &header) || header.pid != inner)
        return false;
    header.trace_path[sizeof header.trace_path - 1] = '\0';
    snprintf(w->trace_path, sizeof w->trace_path, "%s%s", w->root, header.trace_path);
    return header.trace_path[0] == '/' && !is_beginning(&header, w->trace_path);
}

/* The path in a line of /proc/PID/maps; NULL: it has none. */
static char *mapped_path(char *line)
{
    char *path = strchr(line, '/');
    if (path)
        path[strcspn(path, "\n")] = '\0';
    return path;
}

static enum watched_look look_at_pid(uint32_t pid, struct tmk_watched *ret)
{
    FILE *maps = open_proc(pid, "maps");
    if (!maps)
        return IS_HIDDEN;
    enum watched_look found = HAS_NOTHING;
    struct tmk_watched w = {.pid = pid};
    uint32_t inner = 0;
    char *line = NULL;
    size_t room = 0;
    bool has_memory = false;
    while (found != IS_WATCHED && getline(&line, &room, maps) > 0) {
        has_memory = true;
        const char *path = mapped_path(line);
        if (path && path_ends_with(path, "/libtidemark.so"))
            found = HAS_LIBRARY;
        if (!path || !is_ring_path(path))
            continue;
        if (inner == 0) {
            inner = watched_inner_pid(pid);
            find_process_root(&w);
        }
        if (take_ring(&w, inner, path))
            found = IS_WATCHED;
    }
    free(line);
    fclose(maps);
    if (found == IS_WATCHED)
        *ret = w;
    if (!has_memory) { /* the process has ended, and its parent has not waited for it yet */
        errno = ESRCH;
        return IS_HIDDEN;
    }
    return found;
}

/* ---- one ---- */

static int say_hidden(uint32_t pid, struct tmk_error *err)
{
    int reason = errno;
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (reason == ENOENT || reason == ESRCH || stat(path, &st) < 0)
        return tmk_fail(err, TMK_EPROCESS, "there is no process %u", pid);
    if (st.st_uid != geteuid())
        return tmk_fail(err, TMK_EPROCESS,
                        "process %u belongs to another user (uid %u): only that user or root may "
                        "look into it",
                        pid, (unsigned)st.st_uid);
    return tmk_fail_os(err, TMK_EPROCESS, reason, "cannot look into process %u", pid);
}

int tmk_watched_find(uint32_t pid, struct tmk_watched *ret, struct tmk_error *err)
{
    char name[TMK_WATCHED_NAME_BYTES];
    switch (look_at_pid(pid, ret)) {
    case IS_WATCHED:
        return 0;
    case HAS_LIBRARY:
        return tmk_fail(err, TMK_EPROCESS,
                        "process %u records nothing that can be found: it has not allocated "
                        "anything yet, or only this moment, was detached from, or has no ring file "
                        "(ulimit -f); "
                        "after a detach, to watch it again: tidemark attach %s",
                        pid, tmk_watched_name(pid, name));
    case HAS_NOTHING:
        return tmk_fail(err, TMK_EPROCESS,
                        "process %u is not watched; to watch it: tidemark attach %s", pid,
                        tmk_watched_name(pid, name));
    case IS_HIDDEN:
        break;
    }
    return say_hidden(pid, err);
}

/* ---- all ---- */

static int by_watched_pid(const void *va, const void *vb)
{
    const struct tmk_watched *a = va, *b = vb;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int tmk_watched_list(struct tmk_watched **ret_list, uint32_t *ret_n, struct tmk_error *err)
{
    struct tmk_watched *list = NULL, w;
    uint64_t n = 0, room = 0;
    DIR *proc = opendir("/proc");
    if (!proc)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open /proc");
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        uint32_t pid = tmk_watched_parse(entry->d_name);
        if (pid == 0 || look_at_pid(pid, &w) != IS_WATCHED)
            continue;
        if (TMK_GROW(list, n + 1, room) < 0) {
            free(list);
            closedir(proc);
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        }
        list[n++] = w;
    }
    closedir(proc);
    if (n > 1)
        qsort(list, n, sizeof *list, by_watched_pid);
    *ret_list = list;
    *ret_n = (uint32_t)n;
    return 0;
}
