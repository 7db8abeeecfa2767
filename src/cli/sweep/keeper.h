/* SPDX-License-Identifier: MIT */
/* cli/sweep/keeper.h - run a watched program that leaves nothing behind: none of its processes
 * outlives it, or us, whichever process is killed.
 *
 *     us ── keeper ── program ── its children ...
 *
 * The keeper is a process of tidemark between the two. Orphans of the program become its children
 * (it is a subreaper). So when the program ends, the keeper finds and ends the processes that are
 * left, because GPU memory of a dead configuration would spoil the next one. When we die, even of
 * SIGKILL, the kernel tells the keeper (PR_SET_PDEATHSIG), which ends everything. When the keeper
 * is killed, the kernel kills the program. */
#ifndef TMK_CLI_SWEEP_KEEPER_H
#define TMK_CLI_SWEEP_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/watch.h"

struct tmk_keeper {
    pid_t pid;
    int report; /* a pipe with the keeper's report */
};

/* How to start a keeper. */
struct tmk_keeping {
    const struct tmk_watch *watch;
    const struct tmk_setting *settings; /* environment variables besides the recorder's */
    unsigned n_settings;
    int output; /* for the program's stdout and stderr */
};

/* Start a keeper. 0, or errno. SIGCHLD comes when it has ended. */
int tmk_keeper_start(const struct tmk_keeping *how, struct tmk_keeper *ret);

/* End the program: send SIGTERM, and kill the rest ten seconds later. */
void tmk_keeper_stop(const struct tmk_keeper *k);
/* Kill everything now. */
void tmk_keeper_kill(const struct tmk_keeper *k);

struct tmk_kept {
    int failure; /* errno: the program could not be started; 0: it was */
    int wait_status;
    bool left_some; /* processes of the program were left after its end */
};

/* Whether the program has ended, without waiting. Once true, the keeper is gone. */
bool tmk_keeper_ended(struct tmk_keeper *k, struct tmk_kept *ret);

#endif
