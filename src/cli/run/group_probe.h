/* SPDX-License-Identifier: MIT */
/* cli/run/group_probe.h - was a signal sent to our whole process group, or to us alone?
 *
 * A program that we run is in our group. What is sent to the group (^C, kill -- -PGID) it gets by
 * itself, and must not get a second time from us. A signal does not say to whom it was sent, so a
 * process of ours sits in the group, with every signal blocked, and is asked: has it got one too?
 *
 * The kernel signals the members of a group one by one while it reads the list of processes. Who
 * changes that list, as the asking side does first, waits for the reader: all members have the
 * signal by then. */
#ifndef TMK_CLI_RUN_GROUP_PROBE_H
#define TMK_CLI_RUN_GROUP_PROBE_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct tmk_group_probe {
    pid_t pid; /* 0: there is none */
    int ask, answer;
    pthread_t starter;
    int starter_end; /* closed: the starter ends */
};

/* Start the process; every signal must be blocked. When that fails, nothing is ever reported as
 * sent to the group. It ends when stopped, or when we die.
 *
 * A thread starts it, and stays. So it is none of the main thread's children, among which others
 * look for the program (/proc/PID/task/PID/children). */
void tmk_group_probe_start(struct tmk_group_probe *ret);
void tmk_group_probe_stop(struct tmk_group_probe *p);

/* Take one signal of that number from it: true when it had one. */
bool tmk_group_probe_take(struct tmk_group_probe *p, int number);

#endif
