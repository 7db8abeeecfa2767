/* SPDX-License-Identifier: MIT */
/* cli/sweep/keeper.h - run a watched program that leaves nothing behind: none of its processes
 * outlives it, or us, whoever is killed and how.
 *
 *     us ── keeper ── program ── its children ...
 *
 * The keeper is a process of ours between the two. Orphans of the program become its children (it
 * is a subreaper), so that when the program ends, the keeper finds and ends what is left; what a
 * dead configuration holds of a device would spoil the next one. When we die, even of SIGKILL, the
 * kernel tells the keeper (PR_SET_PDEATHSIG), which ends everything; when the keeper is killed, the
 * kernel kills the program. */
#ifndef TMK_CLI_SWEEP_KEEPER_H
#define TMK_CLI_SWEEP_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/run/watch.h"

struct tmk_keeper {
    pid_t pid;
    int report; /* the keeper's last words */
};

/* How to start one. */
struct tmk_keeping {
    const struct tmk_watch *watch;
    const struct tmk_setting *settings; /* of the environment, more than the recorder's */
    unsigned n_settings;
    int output; /* for the program's stdout and stderr */
};

/* 0, or the errno of what failed. SIGCHLD comes when it has ended. */
int tmk_keeper_start(const struct tmk_keeping *how, struct tmk_keeper *ret);

/* End the program: ask it to (SIGTERM), and kill what is left of it ten seconds later. */
void tmk_keeper_stop(const struct tmk_keeper *k);
/* Kill it all now. */
void tmk_keeper_kill(const struct tmk_keeper *k);

struct tmk_kept {
    int failure; /* errno: the program could not be started; 0: it was */
    int wait_status;
    bool left_some; /* processes of the program were there after its end */
};

/* Has it ended? Does not wait. Once true, the keeper is gone. */
bool tmk_keeper_ended(struct tmk_keeper *k, struct tmk_kept *ret);

#endif
