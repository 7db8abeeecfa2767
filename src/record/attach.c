/* SPDX-License-Identifier: MIT */
/* record/attach.c - see attach.h.
 *
 * A preloaded library cannot be taken out of a process: some thread may be in it at any moment. It
 * stays, off, and its functions return at once. */
#include "record/attach.h"

#include "base/error.h"
#include "base/text.h"
#include "record/recorder.h"

int tmk_attach_end(char *message, size_t n)
{
    struct tmk_text text;
    tmk_text_init(&text, message, n);
    if (tmk_recorder_stop()) {
        tmk_text_string(&text, "detached; the trace is closed");
        return 0;
    }
    tmk_text_string(&text, tmk_recorder_is_off()
                               ? "nothing is being recorded"
                               : "the trace is still being written; look again in a minute");
    return TMK_EBUSY;
}
