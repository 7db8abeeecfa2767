/* SPDX-License-Identifier: MIT */
/* cli/output/unfinished.c - see unfinished.h.
 *
 * The handler may run at any moment and on any thread, so the names are in places of fixed size
 * that are never given back, and it calls nothing but what POSIX allows there. */
#include "cli/output/unfinished.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

enum { MOST_PATHS = 4 };

static struct {
    atomic_bool is_taken;
    char path[PATH_MAX];
} paths[MOST_PATHS];

/* Signals that end a program. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ};

static void remove_all(void)
{
    for (int i = MOST_PATHS - 1; i >= 0; i--)
        if (atomic_exchange(&paths[i].is_taken, false) && unlink(paths[i].path) < 0)
            rmdir(paths[i].path);
}

/* Clean up and send the signal again. The standard action is back already (SA_RESETHAND). */
static void on_end_signal(int number)
{
    remove_all();
    raise(number);
}

static void catch_signals(void)
{
    static bool is_done;
    struct sigaction action = {.sa_handler = on_end_signal, .sa_flags = (int)SA_RESETHAND}, before;
    if (is_done)
        return;
    is_done = true;
    atexit(remove_all);
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < TMK_N(ending); i++)
        if (sigaction(ending[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(ending[i], &action, NULL);
}

int tmk_unfinished_add(const char *path)
{
    catch_signals();
    if (strlen(path) >= sizeof paths[0].path)
        return -1;
    for (int i = 0; i < MOST_PATHS; i++)
        if (!atomic_load(&paths[i].is_taken)) {
            memcpy(paths[i].path, path, strlen(path) + 1);
            atomic_store(&paths[i].is_taken, true);
            return i;
        }
    return -1;
}

void tmk_unfinished_drop(int number)
{
    if (number >= 0)
        atomic_store(&paths[number].is_taken, false);
}

void tmk_unfinished_hold(sigset_t *ret_before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < TMK_N(ending); i++)
        sigaddset(&set, ending[i]);
    sigprocmask(SIG_BLOCK, &set, ret_before);
}

void tmk_unfinished_release(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}
