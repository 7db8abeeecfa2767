/* SPDX-License-Identifier: MIT */
/* cli/run/group_probe.h - was a signal sent to our whole process group, or to us alone?
 *
 * A program that we run is in our group. It gets by itself what is sent to the group (^C, kill --
 * -PGID), and must not get it a second time from us. A signal does not say to whom it was sent, so
 * we keep a process in the group with every signal blocked, and ask it: did it get one too?
 *
 * The kernel signals the members of a group one by one while it reads the list of processes. A
 * change of that list waits for its readers. The asking side makes such a change first, so all
 * members have the signal by then. */
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
 * A thread starts it, and stays. So it is no child of the main thread: others look for the
 * program among these (/proc/PID/task/PID/children). */
void tmk_group_probe_start(struct tmk_group_probe *ret);
void tmk_group_probe_stop(struct tmk_group_probe *p);

/* Take one signal of that number from it: true when it had one. */
bool tmk_group_probe_take(struct tmk_group_probe *p, int number);

#endif
