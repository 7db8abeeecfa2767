/* SPDX-License-Identifier: MIT */
/* cli/run/refusal_watch.h - count the programs that may not even say that they are not recorded.
 *
 * A program under a seccomp filter that nobody knows makes only calls that its loader has made
 * before (record/control/sandbox.h), so it cannot write anywhere. It opens a file of `run` for
 * reading and closes it, and the kernel tells `run` of that (inotify).
 *
 * The file is empty and lies in a folder that is the user's alone, where nobody else can put a FIFO
 * or a link in its place, even after it is gone. Its maker has a lock on it: without one it was
 * left by a command that was killed, and the next one removes it (leftovers.h). */
#ifndef TMK_CLI_RUN_REFUSAL_WATCH_H
#define TMK_CLI_RUN_REFUSAL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_refusal_watch {
    int folder, file, events; /* -1: none */
    char name[64];
    char path[512]; /* for the programs (TIDEMARK_REFUSALS); "": nobody looks */
};

/* Begin. When that cannot be, such programs are not counted. */
void tmk_refusal_watch_start(struct tmk_refusal_watch *w);

/* End, and return how many there were. Of programs that come within the same few microseconds, one
 * may stand for several: the kernel makes one event of equal ones that follow each other. */
uint32_t tmk_refusal_watch_stop(struct tmk_refusal_watch *w);

/* Whether a file is called as such a one. */
bool tmk_refusal_watch_is_name(const char *name);

#endif
