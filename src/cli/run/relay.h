/* SPDX-License-Identifier: MIT */
/* cli/run/relay.h - signals sent to us belong to the program that we run.
 *
 * From tmk_relay_hold() on every signal waits, blocked. Those that come before the program is there
 * are sent to it when it is; those that come while it runs at once; those that come after its end
 * can no longer change its status, which is ours. What others sent with sigqueue() keeps its value
 * and its sender. */
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
/* In the child that becomes the program: give them back. */
void tmk_relay_restore(void);

/* Let all signals wait from now on; false when they do already. */
bool tmk_relay_hold(void);

/* `program` is a child of ours that waits with all signals blocked: give it what has come so far.
 * Call before it goes on. */
void tmk_relay_start(struct tmk_relay *r, pid_t program);
/* Hand signals on, stop and continue with the program, until it ends: what waitpid() says. */
int tmk_relay_wait(struct tmk_relay *r);

/* The program was ended by a signal that the terminal sent to the whole group, us included: end by
 * the same, since a shell asks who of its children died of ^C before it ends its own loop. */
_Noreturn void tmk_relay_die(int number);

/* Drop what has come since, and let signals act on us as before. */
void tmk_relay_let_go(void);
/* The same, but for those that ask a program to end: they call `leave`, which must be safe in a
 * handler, and end us with `status`. All others stay blocked. */
void tmk_relay_finish(int status, void (*leave)(void));

#endif
