/* SPDX-License-Identifier: MIT */
/* cli/output/say.c - see say.h. */
#include "cli/output/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/pager.h"
#include "kit/language.h"
#include "kit/print.h"

static void say_line(const char *format, va_list args)
{
    FILE *out = tmk_pager_talk();
    fflush(stdout); /* where both go to one place, keep the order */
    fputs("tidemark: ", out);
    tmk_vprint(out, tmk_translated_for_people(format), args);
    fputc('\n', out);
}

void tmk_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_line(format, args);
    va_end(args);
}

void tmk_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_line(format, args);
    va_end(args);
    exit(TMK_EXIT_FINDING);
}

int tmk_close_output(FILE *out, const char *name, int status)
{
    bool is_stdout = out == stdout;
    if (is_stdout && tmk_pager_end())
        return status;
    out = is_stdout ? stdout : out; /* it was another stream while it was held */
    bool failed = ferror(out) != 0;
    if (is_stdout)
        failed |= fflush(out) != 0;
    else
        failed |= fclose(out) != 0;
    if (!failed || errno == EPIPE)
        return failed ? TMK_EXIT_FINDING : status;
    tmk_say("cannot write %s: %s", tmk_translated_for_people(name), strerror(errno));
    return TMK_EXIT_FINDING;
}
