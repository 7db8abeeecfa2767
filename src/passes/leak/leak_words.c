/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_words.c - see leak_words.h. */
#include "passes/leak/leak_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/leak/leaks.h"
#include "trace/layout.h"

__attribute__((format(printf, 2, 3))) static void append(char *buffer, const char *format, ...)
{
    size_t n = strlen(buffer);
    va_list args;
    va_start(args, format);
    vsnprintf(buffer + n, TMK_LEAK_WORDS_BYTES - n, _(format), args);
    va_end(args);
}

static const char *ordinal_end(uint32_t n)
{
    if (n % 100 >= 11 && n % 100 <= 13)
        return "th";
    return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

const char *tmk_leak_cadence_text(const struct tmk_leak *leak, char *buffer)
{
    char size[TMK_AMOUNT_BYTES];
    int64_t n_steps = leak->at_step - leak->first_step + 1;
    buffer[0] = 0;
    if (leak->first_step == TMK_NO_STEP || leak->is_block || leak->every == 1 || n_steps <= 0 ||
        leak->n_rises >= (uint64_t)n_steps)
        return buffer;
    tmk_size_text(leak->bytes / leak->n_rises, size);
    if (leak->every > 1)
        append(buffer, ", %s every %" PRIu32 "%s step", size, leak->every,
               ordinal_end(leak->every));
    else
        append(buffer, ", %s at once, %" PRIu32 " times in %" PRId64 " steps", size, leak->n_rises,
               n_steps);
    return buffer;
}

/* "made in steps 3, 7, 11, ..." */
static void append_steps(const struct tmk_leak *leak, char *buffer)
{
    uint32_t n = 0;
    append(buffer, "made in steps ");
    while (n < TMK_LEAK_SHOWN_STEPS && leak->steps[n] != TMK_NO_STEP) {
        append(buffer, "%s%" PRId64, n ? ", " : "", leak->steps[n]);
        n++;
    }
    if (leak->n_rises > n)
        append(buffer, ", ...");
}

const char *tmk_leak_evidence_text(const struct tmk_leak *leak, char *buffer)
{
    char first[TMK_AMOUNT_BYTES];
    buffer[0] = 0;
    if (leak->is_block) {
        append(buffer,
               "one block, made anew and larger %" PRIu32 " times, by %s in all; the model's "
               "inputs did not grow",
               leak->n_rises, tmk_size_text(leak->bytes, first));
        return buffer;
    }
    if (leak->first_step == TMK_NO_STEP) {
        append(buffer, "blocks made in %" PRIu32 " parts of the time are kept", leak->n_rises);
        return buffer;
    }
    append_steps(leak, buffer);
    append(buffer, "; all %" PRIu32 " of them %s alive at the end of step %" PRId64, leak->n_rises,
           leak->is_let_go ? _("were") : _("are still"), leak->at_step);
    if (leak->is_let_go)
        append(buffer, ", when most of it was let go");
    return buffer;
}

const char *tmk_doubt_text(const struct tmk_leak *doubt, char *buffer)
{
    char from[TMK_AMOUNT_BYTES], to[TMK_AMOUNT_BYTES];
    buffer[0] = 0;
    switch (doubt->doubt) {
    case TMK_DOUBT_FEW:
        append(buffer, "%" PRIu32 " %s kept something, too few to judge: a longer run will tell",
               doubt->n_rises,
               doubt->first_step == TMK_NO_STEP ? _("parts of the time") : _("steps"));
        break;
    case TMK_DOUBT_SLOWING:
        append(buffer, "it grows slower and slower, as a cache does that fills");
        break;
    case TMK_DOUBT_JOINED:
        append(buffer, "its blocks were gathered: after the last step one block as large as all "
                       "of them was allocated");
        break;
    case TMK_DOUBT_RESULT:
        append(buffer, "it is the output of each call of the model, as when results are gathered; "
                       "a service that keeps all its answers looks the same");
        break;
    case TMK_DOUBT_WORK:
        append(buffer, "one block is made anew and larger each time, ");
        if (doubt->input_from && doubt->input_to)
            append(buffer, "and the model's inputs grow too, from %s to %s a step",
                   tmk_size_text(doubt->input_from, from), tmk_size_text(doubt->input_to, to));
        else
            append(buffer, "and it is not known whether what it is made of grows too");
        break;
    case TMK_DOUBT_STATE:
        append(buffer, "it is optimizer state, at most two blocks for each parameter: parameters "
                       "are trained in turns, or unfrozen");
        break;
    case TMK_DOUBT_LOADING:
        append(buffer, "the process has no steps and keeps most of what it allocates, as when it "
                       "loads data");
        break;
    case TMK_DOUBT_NONE:
        break;
    }
    return buffer;
}

/* ---- a process ---- */

/* "at train.py:41", "at train.py:41 and 2 more lines" */
static void append_sites(const struct tmk_leakage *l, char *buffer)
{
    const struct tmk_leak *first = tmk_leakage_get(l, 0);
    uint64_t n = tmk_leakage_n(l);
    const char *file = first->has_site ? first->site.file : NULL;
    char cell[TMK_FRAME_FILE_BYTES];
    if (file && first->site.line)
        append(buffer, " at %.120s:%" PRIu32, tmk_frame_file(file, cell), first->site.line);
    else
        append(buffer, " at a line that is not known");
    if (n > 1)
        append(buffer, " and %" PRIu64 " more line%s", n - 1, n == 2 ? "" : "s");
}

static void append_leaks(const struct tmk_leakage *l, char *buffer)
{
    double per_step = 0, per_second = 0;
    bool is_over = true, is_faster = false, has_steps = tmk_leakage_n_steps(l) > 0;
    char size[TMK_AMOUNT_BYTES];
    for (uint64_t i = 0; i < tmk_leakage_n(l); i++) {
        const struct tmk_leak *leak = tmk_leakage_get(l, i);
        per_step += leak->bytes_per_step;
        per_second += leak->bytes_per_second;
        is_over &= leak->is_let_go;
        is_faster |= leak->is_faster;
    }
    tmk_size_text(tmk_size_whole(has_steps ? per_step : 60 * per_second), size);
    append(buffer, "memory kept after a %s %s by %s", has_steps ? _("step") : _("minute"),
           is_over ? _("GREW") : _("GROWS"), size);
    if (is_over && has_steps)
        append(buffer, " a step until step %" PRId64, tmk_leakage_get(l, 0)->at_step);
    append(buffer, "%s", is_faster ? _(", faster and faster,") : "");
    append_sites(l, buffer);
}

/* It grew, but is no leak. */
static void append_growth(const struct tmk_leakage *l, const struct tmk_leak_floor *floor,
                          char *buffer)
{
    char size[TMK_AMOUNT_BYTES], reason[TMK_LEAK_WORDS_BYTES];
    append(buffer, "memory%s grew by %s in %" PRIu32 " rise%s; not judged a leak: ",
           tmk_leakage_n_steps(l) > 0 ? _(" kept after a step") : "",
           tmk_size_text(floor->bytes, size), floor->n_rises, floor->n_rises == 1 ? "" : "s");
    if (tmk_leakage_n_doubts(l) > 0)
        append(buffer, "%s", tmk_doubt_text(tmk_leakage_doubt(l, 0), reason));
    else if (floor->is_over && floor->last_step == TMK_NO_STEP)
        append(buffer, "nearly all of it early, as what fills or warms up does");
    else if (floor->is_over)
        append(buffer, "nearly all of it by step %" PRId64 ", as what fills or warms up does",
               floor->last_step);
    else
        append(buffer, "no line keeps blocks of older and older steps");
}

const char *tmk_leakage_text(const struct tmk_leakage *l, enum tmk_steps_trend trend, char *buffer)
{
    static const char *const says[] = {
        [TMK_STEPS_TREND_TOO_SHORT] = N_("too few to say whether memory grows"),
        [TMK_STEPS_TREND_STEADY] = N_("memory kept after a step is steady"),
        [TMK_STEPS_TREND_GROWING] = N_("memory kept after a step grows by little"),
        [TMK_STEPS_TREND_SHRINKING] = N_("memory kept after a step shrinks"),
        [TMK_STEPS_TREND_VARYING] = N_("memory kept after a step goes up and down"),
    };
    struct tmk_leak_floor floor = tmk_leakage_floor(l);
    buffer[0] = 0;
    switch (tmk_leakage_verdict(l)) {
    case TMK_LEAK_FOUND:
        append_leaks(l, buffer);
        break;
    case TMK_LEAK_CLEAN:
        if (floor.n_rises > 0 && floor.bytes >= tmk_leakage_threshold(l))
            append_growth(l, &floor, buffer);
        else
            append(buffer, "%s",
                   _(says[trend == TMK_STEPS_TREND_TOO_SHORT ? TMK_STEPS_TREND_STEADY : trend]));
        break;
    case TMK_LEAK_TOO_SHORT:
        append(buffer, "%s", _(says[TMK_STEPS_TREND_TOO_SHORT]));
        break;
    }
    return buffer;
}
