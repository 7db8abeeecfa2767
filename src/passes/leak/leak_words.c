/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_words.c - see leak_words.h. */
#include "passes/leak/leak_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kit/amount.h"
#include "trace/layout.h"

__attribute__((format(printf, 2, 3))) static void append(char *buffer, const char *format, ...)
{
    size_t n = strlen(buffer);
    va_list args;
    va_start(args, format);
    vsnprintf(buffer + n, TMK_LEAK_WORDS_BYTES - n, format, args);
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
    buffer[0] = 0;
    if (leak->first_step == TMK_NO_STEP)
        append(buffer, "%" PRIu32 " times", leak->n_rises);
    else if (leak->every == 1)
        append(buffer, "every step");
    else if (leak->every > 1)
        append(buffer, "every %" PRIu32 "%s step", leak->every, ordinal_end(leak->every));
    else
        append(buffer, "%" PRIu32 " times in %" PRId64 " steps", leak->n_rises,
               leak->at_step - leak->first_step + 1);
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
        append(buffer, "one block, made anew and larger %" PRIu32 " times, by %s in all; what the "
                       "model is given did not grow",
               leak->n_rises, tmk_size_text(leak->bytes, first));
        return buffer;
    }
    if (leak->first_step == TMK_NO_STEP) {
        append(buffer, "in %" PRIu32 " parts of the time blocks were made that stay", leak->n_rises);
        return buffer;
    }
    append_steps(leak, buffer);
    append(buffer, "; all %" PRIu32 " of them %s alive at the end of step %" PRId64, leak->n_rises,
           leak->is_let_go ? "were" : "are still", leak->at_step);
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
               doubt->n_rises, doubt->first_step == TMK_NO_STEP ? "parts of the time" : "steps");
        break;
    case TMK_DOUBT_SLOWING:
        append(buffer, "it grows slower and slower, as a cache does that fills");
        break;
    case TMK_DOUBT_JOINED:
        append(buffer, "it was gathered: after the last step one block was made that is as large "
                       "as all of it");
        break;
    case TMK_DOUBT_RESULT:
        append(buffer, "it is the output of each call of the model, kept as a result is gathered; "
                       "a service that keeps all its answers looks the same");
        break;
    case TMK_DOUBT_WORK:
        append(buffer, "one block is made anew and larger each time, ");
        if (doubt->input_from && doubt->input_to)
            append(buffer, "and what the model is given grows too, from %s to %s a step",
                   tmk_size_text(doubt->input_from, from), tmk_size_text(doubt->input_to, to));
        else
            append(buffer, "and it is not known whether what it is made of grows too");
        break;
    case TMK_DOUBT_LOADING:
        append(buffer, "without steps, a process that keeps most of what it makes loads something");
        break;
    case TMK_DOUBT_NONE:
        break;
    }
    return buffer;
}
