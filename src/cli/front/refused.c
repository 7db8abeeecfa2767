/* SPDX-License-Identifier: MIT */
/* cli/front/refused.c - see refused.h. */
#include "cli/front/refused.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/output/xalloc.h"
#include "kit/language.h"
#include "trace/refusals.h"
#include "trace/stops.h"

enum { MOST_REFUSALS = 4096, MOST_KEPT = 1000 };

static bool is_refused_alike(const struct tmk_refusal *a, const struct tmk_refusal *b)
{
    return a->reason == b->reason && a->os_error == b->os_error;
}

/* Says how many processes without a number were refused. Under an unknown filter programs are
 * counted: a process may come again after an exec, or not at all (refusal_watch.h). */
static char *nameless_sentence(const struct tmk_refusal *r, size_t n)
{
    if (r->reason == TMK_STOP_SANDBOX)
        return tmk_xformat(_("at least %zu program%s"), n, n == 1 ? "" : "s");
    return tmk_xformat(_("%zu process%s"), n, n == 1 ? "" : "es");
}

static char *sentence_of_refusal(const struct tmk_refusal *r, size_t n_others)
{
    char *others = n_others ? tmk_xformat(_(" and %zu other%s"), n_others, n_others == 1 ? "" : "s")
                            : tmk_xstrdup("");
    char *error = r->os_error ? tmk_xformat(" (%s)", strerror(r->os_error)) : tmk_xstrdup("");
    const char *advice =
        r->reason == TMK_STOP_SANDBOX ? _("; to record all the same: TIDEMARK_SECCOMP=trust") : "";
    char *who = r->pid ? tmk_xformat(_("process %u%s"), (unsigned)r->pid, others)
                       : nameless_sentence(r, n_others + 1);
    char *text = tmk_xformat("%s: %s%s%s", who, tmk_stop_text(r->reason), error, advice);
    free(who);
    free(others);
    free(error);
    return text;
}

static bool has_trace(struct tmk_run *run, uint32_t pid)
{
    for (uint32_t i = 0; run && i < tmk_run_n_processes(run); i++)
        if (tmk_run_process(run, i)->pid == pid)
            return true;
    return false;
}

static bool is_nameless_sandbox(const struct tmk_refusal *r)
{
    return r->pid == 0 && r->reason == TMK_STOP_SANDBOX;
}

/* Keep the refusals that count: the last one of a process, since an exec may be refused for another
 * reason, and none of a process that was recorded. A launcher that restricts itself usually becomes
 * the program that is refused because of that, which cannot say that it is the same process. So
 * each such program stands for a launcher, too. */
static size_t keep_last(struct tmk_refusal *all, size_t n, struct tmk_run *run)
{
    size_t kept = 0, n_launched = 0;
    for (size_t i = 0; i < n; i++)
        n_launched += is_nameless_sandbox(&all[i]);
    for (size_t i = 0; i < n; i++) {
        bool is_last = true;
        for (size_t k = i + 1; k < n && is_last; k++)
            is_last = all[k].pid != all[i].pid || all[i].pid == 0;
        if (!is_last || has_trace(run, all[i].pid))
            continue;
        if (all[i].reason == TMK_STOP_SECCOMP && n_launched > 0)
            n_launched--;
        else
            all[kept++] = all[i];
    }
    return kept;
}

/* Refusals for which a full disk had no room. The caretaker's thread and the main thread both find
 * them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tmk_refusal kept[MOST_KEPT];
static size_t n_kept;

void tmk_refused_add(const char *folder, uint32_t pid, enum tmk_stop reason)
{
    struct tmk_refusal refusal = {.pid = pid, .reason = reason};
    if (tmk_refusals_append(folder, &refusal) == 0)
        return;
    pthread_mutex_lock(&lock);
    if (n_kept < MOST_KEPT)
        kept[n_kept++] = refusal;
    pthread_mutex_unlock(&lock);
}

static size_t read_refusals(const char *folder, struct tmk_refusal *ret, struct tmk_run *run)
{
    size_t n = tmk_refusals_read(folder, ret, MOST_REFUSALS - MOST_KEPT);
    pthread_mutex_lock(&lock);
    memcpy(ret + n, kept, n_kept * sizeof *kept);
    n += n_kept;
    pthread_mutex_unlock(&lock);
    return keep_last(ret, n, run);
}

/* The first of each kind speaks for the others. */
size_t tmk_refused_each(const char *folder, struct tmk_run *run,
                        void (*sentence)(void *arg, const char *text), void *arg)
{
    struct tmk_refusal *all = tmk_xcalloc(MOST_REFUSALS, sizeof *all);
    size_t n = read_refusals(folder, all, run), n_said = 0;
    for (size_t i = 0; i < n; i++) {
        size_t n_others = 0, first = 0;
        while (!is_refused_alike(&all[first], &all[i]))
            first++;
        if (first < i)
            continue;
        for (size_t k = i + 1; k < n; k++)
            n_others += is_refused_alike(&all[k], &all[i]);
        char *text = sentence_of_refusal(&all[i], n_others);
        sentence(arg, text);
        free(text);
        n_said++;
    }
    free(all);
    return n_said;
}

static char *path_of(const char *folder, bool is_inside)
{
    char *path = tmk_xcalloc(strlen(folder) + 16, 1);
    struct tmk_text text;
    tmk_text_init(&text, path, strlen(folder) + 16);
    tmk_refusals_path(folder, is_inside, &text);
    return path;
}

void tmk_refused_clear(const char *folder)
{
    char *beside = path_of(folder, false);
    if (tmk_refusals_are_own(folder, false))
        unlink(beside);
    free(beside);
}

/* Append one file's text to another's. */
static bool append_refusal(const char *from, const char *to)
{
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    char *text = tmk_xcalloc(TMK_REFUSALS_MAX_BYTES, 1);
    int source = open(from, O_RDONLY | flags), target = open(to, O_WRONLY | O_APPEND | flags);
    ssize_t n = source >= 0 ? read(source, text, TMK_REFUSALS_MAX_BYTES) : -1;
    bool done = n >= 0 && target >= 0 && write(target, text, (size_t)n) == n;
    if (source >= 0)
        close(source);
    if (target >= 0)
        close(target);
    free(text);
    return done;
}

/* Move a file into the folder. A file that cannot move stays where it is, and is read from there.
 */
static void move_in(const char *folder, const char *beside, const char *inside)
{
    if (access(inside, F_OK) != 0)
        (void)rename(beside, inside);
    else if (tmk_refusals_are_own(folder, true) && append_refusal(beside, inside))
        unlink(beside);
}

void tmk_refused_settle(const char *folder)
{
    char *beside = path_of(folder, false), *inside = path_of(folder, true);
    bool is_own = tmk_refusals_are_own(folder, false);
    if (is_own && access(folder, F_OK) == 0)
        move_in(folder, beside, inside);
    else if (is_own)
        unlink(beside);
    free(beside);
    free(inside);
}
