/* SPDX-License-Identifier: MIT */
/* record/core/helper.h - threads of our own in the watched process.
 *
 * Detached, since nobody may have to wait for them, and with all signals blocked: the program's
 * handlers run on the program's threads. Their numbers are kept, in the page that a fork wipes, for
 * the one who must know that they are gone. */
#ifndef TMK_RECORD_HELPER_H
#define TMK_RECORD_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False when there is no thread to be had, with the reason in errno. */
bool tmk_helper_start(void *(*main)(void *arg), void *arg, size_t stack_bytes);

/* The injector made the calling thread, which ends soon: wait for it as for the others. */
void tmk_helper_adopt(void);

/* Wait until all but the calling thread are gone, as the kernel sees it: a thread that ends still
 * makes system calls. False when it is end_ns (CLOCK_MONOTONIC) before. */
bool tmk_helper_wait(uint64_t end_ns);

#endif
