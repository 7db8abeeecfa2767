/* SPDX-License-Identifier: MIT */
/* cli/run/relay.h - signals sent to us belong to the program that we run.
 *
 * From tmk_relay_hold() on every signal is blocked and waits. A signal that comes before the
 * program is there is sent to it when it is; one that comes while it runs is sent at once; one
 * that comes after its end can no longer change the status, which is ours too. A signal sent
 * with sigqueue() keeps its value and its sender. */
#ifndef TMK_CLI_RUN_RELAY_H
#define TMK_CLI_RUN_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/run/group_probe.h"

struct tmk_relay {
    pid_t program;
    struct tmk_group_probe probe;
    uint64_t group_sent; /* of those that wait: known to have reached the group */
    uint64_t reached;    /* signals that the program has got as one of the group */
    int fd;              /* readable when there is something to do */
    uint64_t stops;      /* stop signals that wait for the program to stop */
    uint64_t survived;   /* stop signals that the program has got, and has not stopped */
    bool is_stopped;     /* the program is */
    int wait_status;     /* when it has ended */
};

/* Remember blocked signals as they were when we were started. Call first. */
void tmk_relay_prepare(void);
/* Restore them, in the child that becomes the program. */
void tmk_relay_restore(void);

/* Block all signals from now on; false when they are blocked already. */
bool tmk_relay_hold(void);

/* Send `program` the signals that have come so far. It is our child and waits with all signals
 * blocked; call this before it goes on. */
void tmk_relay_start(struct tmk_relay *r, pid_t program);
/* Hand signals on, and stop and continue with the program, until it ends. Returns what waitpid()
 * says. */
int tmk_relay_wait(struct tmk_relay *r);

/* End by the signal that ended the program, because the terminal sent it to the whole group, us
 * included. A shell asks which of its children died of ^C before it ends its own loop. */
_Noreturn void tmk_relay_die(int number);

/* Drop the signals that have come since, and let signals act on us as before. */
void tmk_relay_let_go(void);
/* Drop them likewise, but let a signal that asks a program to end call `leave`, which must be safe
 * in a handler, and end us with `status`. All other signals stay blocked. */
void tmk_relay_finish(int status, void (*leave)(void));

#endif
