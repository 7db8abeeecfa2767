/* SPDX-License-Identifier: MIT */
/* record/attach.h - leaving a process that goes on. */
#ifndef TMK_RECORD_ATTACH_H
#define TMK_RECORD_ATTACH_H

#include <stddef.h>

/* End the recording, for good: the trace is closed and the ring removed. A sentence that says so,
 * or why not, goes to `message`. 0 or TMK_E*. Called on the door's thread. */
int tmk_attach_end(char *message, size_t n);

#endif
