/* SPDX-License-Identifier: MIT */
/* record/helper.h - threads of our own in the watched process.
 *
 * Detached, since nobody may have to wait for them, and with all signals blocked: the program's
 * handlers run on the program's threads. */
#ifndef TMK_RECORD_HELPER_H
#define TMK_RECORD_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/* False when there is no thread to be had. */
bool tmk_helper_start(void *(*main)(void *arg), void *arg, size_t stack_bytes);

#endif
