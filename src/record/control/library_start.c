/* SPDX-License-Identifier: MIT */
/* record/control/library_start.c - what runs when the library is loaded, and when the process ends.
 *
 * Under `tidemark run` the environment says how to record. It is read here, before the program has
 * threads that might change it. Without that nothing begins until somebody attaches. */
#include <stdlib.h>
#include <string.h>

#include "base/region.h"
#include "record/control/copies.h"
#include "record/control/sandbox.h"
#include "record/control/seccomp.h"
#include "record/control/session.h"
#include "record/core/recorder.h"
#include "record/torch/torch_slots.h"

static void copy_setting(char *to, size_t size, const char *name)
{
    const char *value = getenv(name);
    if (value && strlen(value) < size)
        strcpy(to, value);
}

/* Hook what was loaded before us: `import torch, tidemark`. */
static void hook_late(void)
{
    tmk_torch_slots_put_in();
    tmk_seccomp_hook_calls();
}

/* Reads the environment before the program has threads that might change it. */
__attribute__((constructor)) static void start_library(void)
{
    tmk_sandbox_prepare();
    tmk_region_use_small_pages();
    copy_setting(tmk_recorder.ring_folders[0], sizeof tmk_recorder.ring_folders[0],
                 "TIDEMARK_RING_DIR");
    copy_setting(tmk_recorder.runtime_folder, sizeof tmk_recorder.runtime_folder,
                 "XDG_RUNTIME_DIR");
    strcpy(tmk_recorder.ring_folders[1], tmk_recorder.runtime_folder);
    copy_setting(tmk_recorder.rank_list, sizeof tmk_recorder.rank_list, "TIDEMARK_RANKS");
    const char *folder = getenv("TIDEMARK_RUN");
    struct tmk_settings settings = {
        .max_size_bytes = tmk_settings_number(getenv("TIDEMARK_MAX_SIZE")),
        .cpu_tensors = tmk_settings_number(getenv("TIDEMARK_CPU_TENSORS")) != 0,
        .native = tmk_settings_number(getenv("TIDEMARK_NATIVE")) != 0,
        .no_stacks = tmk_settings_number(getenv("TIDEMARK_NO_STACKS")) != 0,
        .no_modules = tmk_settings_number(getenv("TIDEMARK_NO_MODULES")) != 0,
        .no_categories = tmk_settings_number(getenv("TIDEMARK_NO_CATEGORIES")) != 0,
    };
    copy_setting(settings.step_at, sizeof settings.step_at, "TIDEMARK_STEP_AT");
    if (!folder || folder[0] != '/' || strlen(folder) >= sizeof settings.run_folder)
        return;
    strcpy(settings.run_folder, folder);
    if (tmk_copies_is_first() && tmk_session_begin(&settings))
        hook_late();
}

/* Called by exit() and by return from main. */
__attribute__((destructor)) static void finish_at_exit(void)
{
    tmk_session_finish(true);
}
