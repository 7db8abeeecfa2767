/* SPDX-License-Identifier: MIT */
/* record/control/attach.c - see attach.h. */
#include "record/control/attach.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/filters.h"
#include "base/text.h"
#include "record/control/copies.h"
#include "record/control/preexisting.h"
#include "record/control/sandbox.h"
#include "record/control/seccomp.h"
#include "record/control/session.h"
#include "record/core/helper.h"
#include "record/core/recorder.h"
#include "record/core/seal.h"
#include "record/identity/identity.h"
#include "record/torch/torch_slots.h"
#include "record/training/bridge.h"

static const uint64_t arm_more_ns = 4000000000u; /* no event waits for an attach */

static int answer_with(int rc, char *message, size_t size, const char *text)
{
    struct tmk_text out;
    tmk_text_init(&out, message, size);
    tmk_text_string(&out, text);
    return rc;
}

/* Copy the value of a key; false when it is missing or too long. */
static bool option_value(const char *options, const char *key, char *value, size_t size)
{
    size_t n_key = strlen(key);
    for (const char *line = options; *line;) {
        size_t n = strcspn(line, "\n");
        if (n > n_key && strncmp(line, key, n_key) == 0 && line[n_key] == '=') {
            size_t length = n - n_key - 1;
            if (length >= size)
                return false;
            memcpy(value, line + n_key + 1, length);
            value[length] = '\0';
            return true;
        }
        line += n + (line[n] == '\n');
    }
    return false;
}

static bool is_option_set(const char *options, const char *key)
{
    char value[8];
    return option_value(options, key, value, sizeof value) && strcmp(value, "1") == 0;
}

static const char *why_not_begun(void)
{
    if (tmk_seal_is_closed() && !tmk_sandbox_is_refused())
        return "the program has restricted its system calls (seccomp), which may kill it for those "
               "of a recorder";
    if (tmk_seal_is_closed())
        return "it has a seccomp filter that tidemark does not know, which may kill it for the "
               "system calls of a recorder; if you know better: " TMK_FILTERS_VARIABLE
               "=" TMK_FILTERS_TRUST;
    return "it is watched already, or the recording before has not ended yet";
}

static int begin_recording(const char *options, char *message, size_t size)
{
    struct tmk_settings settings = {.cpu_tensors = is_option_set(options, "cpu_tensors"),
                                    .native = is_option_set(options, "native"),
                                    .no_stacks = is_option_set(options, "no_stacks"),
                                    .no_modules = is_option_set(options, "no_modules"),
                                    .no_categories = is_option_set(options, "no_categories")};
    char number[24] = "";
    if (!option_value(options, "run", settings.run_folder, sizeof settings.run_folder) ||
        settings.run_folder[0] != '/')
        return answer_with(-1, message, size, "no absolute path of a run folder was given");
    option_value(options, "max_size", number, sizeof number);
    option_value(options, "step_at", settings.step_at, sizeof settings.step_at);
    settings.max_size_bytes = tmk_settings_number(number);
    if (tmk_copies_record())
        return answer_with(-1, message, size,
                           "another copy of tidemark records this process already; use that one");
    if (!tmk_session_begin(&settings))
        return answer_with(-1, message, size, why_not_begun());
    if (!tmk_ranks_include(tmk_recorder.rank_list, tmk_recorder.ranks.rank)) {
        tmk_session_end();
        return answer_with(-1, message, size, "this rank is not among TIDEMARK_RANKS");
    }
    if (is_option_set(options, "injected"))
        tmk_helper_adopt();
    tmk_seccomp_hook_calls(); /* first, while there is nothing yet that a filter could kill for */
    bool is_later = is_option_set(options, "at_first_event");
    if (!is_later && !tmk_session_arm() && !tmk_session_wait_armed(arm_more_ns))
        return answer_with(-1, message, size, "the run folder or the ring could not be made");
    struct tmk_slot_count count = is_later ? tmk_torch_slots_put_in() : tmk_preexisting_hook();
    struct tmk_text out;
    tmk_text_init(&out, message, size);
    tmk_text_add(&out, "%u import slots patched", count.n_patched);
    if (count.n_failed)
        tmk_text_add(&out, ", %u could not be", count.n_failed);
    return 0;
}

/* A killed `tidemark attach` leaves its thread behind, which soon ends. The calling thread is such
 * a thread too, not one of the program's, so it may wait. */
static bool wait_for_turn(void)
{
    enum { LOOKS = 500 };
    const struct timespec between = {.tv_nsec = 10000000};
    for (int i = 0; i < LOOKS; i++) {
        if (tmk_torch_slots_take_turn())
            return true;
        nanosleep(&between, NULL);
    }
    return false;
}

/* Nothing that could kill is called before this is decided. */
static bool may_begin(const char *options)
{
    char said[TMK_FILTERS_SAID_BYTES] = "";
    if (option_value(options, "seccomp", said, sizeof said))
        tmk_sandbox_hear(said);
    return !tmk_seal_is_closed();
}

int tidemark_attach(const char *options, char *message, size_t size)
{
    if (!may_begin(options))
        return answer_with(-1, message, size, why_not_begun());
    if (!wait_for_turn())
        return answer_with(-1, message, size, "another attach or detach is under way");
    int rc = begin_recording(options, message, size);
    tmk_torch_slots_end_turn();
    return rc;
}

int tidemark_hook(int in)
{
    if (!tmk_torch_slots_take_turn())
        return 0;
    struct tmk_slot_count count = tmk_torch_slots_switch(in != 0);
    tmk_bridge_switch(in == 1);
    tmk_torch_slots_end_turn();
    return (int)count.n_patched;
}

int tmk_attach_end(char *message, size_t size)
{
    if (!tmk_torch_slots_take_turn())
        return answer_with(-1, message, size, "another attach or detach is under way");
    bool was_on = !tmk_recorder_is_off();
    struct tmk_slot_count count = tmk_torch_slots_take_out();
    bool ended = tmk_session_end();
    tmk_bridge_end(); /* last: Python's side is put back only when nothing is recorded */
    tmk_torch_slots_end_turn();
    if (!was_on)
        return answer_with(-1, message, size, "nothing is being recorded");
    if (!ended)
        return answer_with(-1, message, size,
                           "the trace is still being written; look again in a minute");
    struct tmk_text out;
    tmk_text_init(&out, message, size);
    tmk_text_string(&out, "detached; ");
    if (count.n_patched)
        tmk_text_add(&out, "%u import slots restored, ", count.n_patched);
    tmk_text_string(&out, "the trace is closed");
    return 0;
}
