/* SPDX-License-Identifier: MIT */
/* cli/run/watch_options.c - see watch_options.h. */
#include "cli/run/watch_options.h"

#include <string.h>

#include "cli/output/say.h"
#include "cli/run/recording.h"

enum { MAX_RANKS_BYTES = 1024, MAX_PLACE_BYTES = 512 }; /* what the recorder takes */

/* Returns whether a text is a list of numbers and ranges, separated by commas. */
static bool is_rank_list(const char *text)
{
    for (;;) {
        size_t n = strspn(text, "0123456789");
        if (n == 0)
            return false;
        text += n;
        if (*text == '-') {
            n = strspn(++text, "0123456789");
            if (n == 0)
                return false;
            text += n;
        }
        if (*text == '\0')
            return true;
        if (*text++ != ',')
            return false;
    }
}

bool tmk_watch_step_at(const struct tmk_args *args, const char **ret)
{
    const char *place = tmk_args_get(args, "step-at");
    const char *colon = place ? strrchr(place, ':') : NULL;
    size_t n_digits = colon ? strspn(colon + 1, "0123456789") : 0;
    bool is_line = colon && colon > place && n_digits > 0 && n_digits < 10 && !colon[1 + n_digits];
    if (place && (!is_line || strlen(place) >= MAX_PLACE_BYTES || strchr(place, '\n'))) {
        tmk_say("--step-at: '%s' is not a file and a line, such as train.py:41", place);
        return false;
    }
    *ret = place;
    return true;
}

int tmk_watch_options_read(const struct tmk_args *args, struct tmk_watch *ret)
{
    struct tmk_watch w = *ret;
    if (!tmk_recording_max_size(args, &w.max_size_bytes))
        return TMK_EXIT_USAGE;
    w.ranks = tmk_args_get(args, "ranks");
    if (w.ranks && (!is_rank_list(w.ranks) || strlen(w.ranks) >= MAX_RANKS_BYTES)) {
        tmk_say("--ranks: '%s' is not a list of ranks, such as 0,8-15", w.ranks);
        return TMK_EXIT_USAGE;
    }
    if (!tmk_watch_step_at(args, &w.step_at))
        return TMK_EXIT_USAGE;
    w.cpu_tensors = tmk_args_get(args, "cpu-tensors") != NULL;
    w.native = tmk_args_get(args, "native") != NULL;
    w.no_stacks = tmk_args_get(args, "no-stacks") != NULL;
    w.no_modules = tmk_args_get(args, "no-modules") != NULL;
    w.no_categories = tmk_args_get(args, "no-categories") != NULL;
    w.library = tmk_recording_library(true);
    if (!w.library)
        return TMK_EXIT_FINDING;
    *ret = w;
    return 0;
}
