/* SPDX-License-Identifier: MIT */
/* cli/run/refusal_watch.c - see refusal_watch.h.
 *
 * Each look is two events, an opening and a closing, so that looks which do not overlap are counted
 * one by one however late we read. Everybody else opens the file for writing, too, and closing that
 * is another event. */
#include "cli/run/refusal_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_lock.h"
#include "cli/run/private_folder.h"

static const char name_end[] = ".refusals";

bool tmk_refusal_watch_is_name(const char *name)
{
    size_t n = strlen(name), k = sizeof name_end - 1;
    return strncmp(name, "tidemark.", 9) == 0 && n > 9 + k && strcmp(name + n - k, name_end) == 0;
}

/* ---- the file ---- */

/* Make the file and lock it. False when that fails, also because a command that cleans up found it
 * before it was locked. */
static bool make_refusal_file(struct tmk_refusal_watch *w)
{
    uint64_t number = 0;
    struct stat st;
    (void)!getrandom(&number, sizeof number, GRND_NONBLOCK);
    snprintf(w->name, sizeof w->name, "tidemark.%d.%016" PRIx64 "%s", (int)getpid(), number,
             name_end);
    w->file = openat(w->folder, w->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return w->file >= 0 && tmk_file_lock(w->file, TMK_LOCK_SHARED, 0) == 0 &&
           fstat(w->file, &st) == 0 && st.st_nlink == 1;
}

static void close_all(struct tmk_refusal_watch *w)
{
    if (w->file >= 0)
        unlinkat(w->folder, w->name, 0);
    int all[] = {w->events, w->file, w->folder};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] >= 0)
            close(all[i]);
    *w = (struct tmk_refusal_watch){.folder = -1, .file = -1, .events = -1};
}

void tmk_refusal_watch_start(struct tmk_refusal_watch *w)
{
    char folder[sizeof w->path - sizeof w->name];
    *w = (struct tmk_refusal_watch){.folder = -1, .file = -1, .events = -1};
    w->folder = tmk_private_folder_open(folder, sizeof folder);
    bool is_made = w->folder >= 0 && make_refusal_file(w);
    if (is_made)
        w->events = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(w->path, sizeof w->path, "%s/%s", is_made ? folder : "", w->name);
    if (w->events < 0 || inotify_add_watch(w->events, w->path, IN_OPEN | IN_CLOSE_NOWRITE) < 0)
        close_all(w);
}

/* ---- counting ---- */

static uint32_t count_refusals(int events)
{
    _Alignas(struct inotify_event) char bytes[4096];
    uint32_t n = 0;
    for (ssize_t got; (got = read(events, bytes, sizeof bytes)) > 0;)
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            n += (event->mask & IN_CLOSE_NOWRITE) != 0;
            at += sizeof *event + event->len;
        }
    return n;
}

uint32_t tmk_refusal_watch_stop(struct tmk_refusal_watch *w)
{
    uint32_t n = w->events >= 0 ? count_refusals(w->events) : 0;
    close_all(w);
    return n;
}
