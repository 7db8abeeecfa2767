/* SPDX-License-Identifier: MIT */
/* cli/run/refusal_watch.h - count the programs that may not even say that they are not recorded.
 *
 * Under an unknown seccomp filter the recorder makes only calls that the loader has made before
 * (record/control/sandbox.h), so it cannot write anywhere. It opens a file of `run` for reading and
 * closes it, and the kernel tells `run` of that (inotify).
 *
 * The file is empty and lies in a folder of this user's, where nobody else can put a FIFO or a
 * link in its place, even after it is gone. Its maker holds a lock on it. A file without a lock
 * was left by a command that was killed, and the next command removes it (leftovers.h). */
#ifndef TMK_CLI_RUN_REFUSAL_WATCH_H
#define TMK_CLI_RUN_REFUSAL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_refusal_watch {
    int folder, file, events; /* -1: none */
    char name[64];
    char path[512]; /* for the programs (TIDEMARK_REFUSALS); "": nobody looks */
};

/* Start counting. When it cannot start, such programs are not counted. */
void tmk_refusal_watch_start(struct tmk_refusal_watch *w);

/* Stop, and return how many there were. Programs that come within the same few microseconds may
 * count as one: the kernel joins equal events that follow each other. */
uint32_t tmk_refusal_watch_stop(struct tmk_refusal_watch *w);

/* Returns whether `name` is the name of such a file. */
bool tmk_refusal_watch_is_name(const char *name);

#endif
