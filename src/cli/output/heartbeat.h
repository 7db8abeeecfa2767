/* SPDX-License-Identifier: MIT */
/* cli/output/heartbeat.h - a thread that shows a sign of life, a progress line, while something
 * works that cannot say how far it is. Nothing else may write to stderr between start and stop. */
#ifndef TMK_CLI_OUTPUT_HEARTBEAT_H
#define TMK_CLI_OUTPUT_HEARTBEAT_H

#include <pthread.h>
#include <stdbool.h>

#include "kit/progress.h"

struct tmk_heartbeat {
    struct tmk_progress progress;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_running; /* the thread is there */
    bool stop;
};

/* `what` as for tmk_progress_init(). Without a thread there is no line; that is no error. */
void tmk_heartbeat_start(struct tmk_heartbeat *h, const char *what);
/* Wipe the line. May be called again. */
void tmk_heartbeat_stop(struct tmk_heartbeat *h);

#endif
