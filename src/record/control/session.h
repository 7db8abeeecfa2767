/* SPDX-License-Identifier: MIT */
/* record/control/session.h - begin, arm and end the recorder of this process.
 *
 * begin() takes settings: from the environment when the library is loaded, from options when it is
 * attached. arm() comes with the first event and makes everything. end() closes the trace. The
 * state itself is in core/recorder.h. */
#ifndef TMK_RECORD_SESSION_H
#define TMK_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "record/core/recorder.h"
#include "trace/layout.h"

/* A number at the start of a text, as bytes if K, M, G or T follows; 0 for NULL. */
uint64_t tmk_settings_number(const char *text);

/* Take settings and be ready to arm. False while a recording is under way or has not ended yet. */
bool tmk_session_begin(const struct tmk_settings *settings);

/* Arm if idle. True when armed now. Slow; called once per thread. */
bool tmk_session_arm(void);

/* Wait for arming that has begun, longer than an event may wait. True when armed now. */
bool tmk_session_wait_armed(uint64_t limit_ns);

/* End the recording: the packer thread writes what is left and closes the trace, with this reason
 * unless it is TMK_STOP_NONE. False when that takes longer than limit_ns: the thread goes on, and
 * what it does not write is merged from the ring later. Any thread but the packer's. */
bool tmk_session_end_within(uint64_t limit_ns, enum tmk_stop reason);
/* The same for a detach, which may take half a minute: the program does not wait for it in order to
 * end. */
bool tmk_session_end(void);

/* End the recording within a second, because the process ends. `may_start_thread`: if the disk does
 * not answer, say so from a new thread; not allowed in a signal handler. */
void tmk_session_finish(bool may_start_thread);

#endif
