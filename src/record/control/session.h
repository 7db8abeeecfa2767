/* SPDX-License-Identifier: MIT */
/* record/control/session.h - begin, arm and end the recorder of this process.
 *
 * begin() takes settings: from the environment when the library is loaded, from options when it is
 * attached. arm() comes with the first event and makes everything. end() closes the trace. The
 * state itself is core/recorder.h's. */
#ifndef TMK_RECORD_SESSION_H
#define TMK_RECORD_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "record/core/recorder.h"
#include "trace/layout.h"

/* A number at the start of a text, with K, M, G or T behind it if it is a size; 0 for NULL. */
uint64_t tmk_settings_number(const char *text);

/* Take settings and be ready to arm. False when a recording is under way or has not ended yet. */
bool tmk_session_begin(const struct tmk_settings *settings);

/* Arm if idle. True when armed now. Slow; called once per thread. */
bool tmk_session_arm(void);

/* Arming has begun: wait longer for it than an event may. True when armed now. */
bool tmk_session_wait_armed(uint64_t limit_ns);

/* End the recording: the packer thread writes what is left and closes the trace, which says the
 * reason unless that is TMK_STOP_NONE. False when that takes longer than limit_ns: the thread goes
 * on, and what it does not come to is merged from the ring later. Any thread but the packer's. */
bool tmk_session_end_within(uint64_t limit_ns, enum tmk_stop reason);
/* The same for a detach, which may take half a minute: the program does not wait for it to end. */
bool tmk_session_end(void);

/* The process ends: end the recording within a second. `may_start_thread`: if the disk did not
 * answer, say so, on a thread of its own; not in a signal handler. */
void tmk_session_finish(bool may_start_thread);

#endif
