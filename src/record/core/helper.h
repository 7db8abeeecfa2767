/* SPDX-License-Identifier: MIT */
/* record/core/helper.h - our own threads in the watched process.
 *
 * They are detached, because nobody may have to wait for them, and block all signals, because the
 * program's handlers run on the program's threads. Their thread numbers are kept in the page that a
 * fork wipes, for whoever must know that they are gone. */
#ifndef TMK_RECORD_HELPER_H
#define TMK_RECORD_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start one. False: there is no thread to be had; errno has the reason. */
bool tmk_helper_start(void *(*main)(void *arg), void *arg, size_t stack_bytes);

/* Count the calling thread as one of ours: the injector made it, and it ends soon. */
void tmk_helper_adopt(void);

/* Wait until all but the calling thread are gone, as the kernel sees it: a thread that ends still
 * makes system calls. False when end_ns (CLOCK_MONOTONIC) comes first. */
bool tmk_helper_wait(uint64_t end_ns);

#endif
