/* SPDX-License-Identifier: MIT */
/* cli/output/say.c - see say.h. */
#include "cli/output/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"

enum { LEAST_WIDTH = 40, LEAST_HEIGHT = 4, MOST_SIZE = 500 };

static void say_line(const char *format, va_list args)
{
    fflush(stdout); /* where both go to one place, keep the order */
    fputs("tidemark: ", stderr);
    tmk_vprint(stderr, tmk_translated_for_people(format), args);
    fputc('\n', stderr);
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

bool tmk_is_screen(FILE *out)
{
    return isatty(fileno(out)) == 1 || (out == stdout && getenv(TMK_SCREEN_ELSEWHERE));
}

bool tmk_wants_colour(FILE *out)
{
    const char *no_colour = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    if ((no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0)
        return false;
    return tmk_is_screen(out);
}

static unsigned screen_size(bool of_width, const char *name, unsigned usual)
{
    struct winsize size = {0};
    const char *said = getenv(name);
    int64_t n = 0, least = of_width ? LEAST_WIDTH : LEAST_HEIGHT;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        n = of_width ? size.ws_col : size.ws_row;
    if (n == 0 && (!said || tmk_integer_parse(said, &n) < 0))
        n = usual;
    return (unsigned)(n < least ? least : n > MOST_SIZE ? MOST_SIZE : n);
}

unsigned tmk_screen_width(void)
{
    return screen_size(true, "COLUMNS", 80);
}

unsigned tmk_screen_height(void)
{
    return screen_size(false, "LINES", 24);
}

int tmk_close_output(FILE *out, const char *name, int status)
{
    bool failed = ferror(out) != 0;
    if (out == stdout)
        failed |= fflush(out) != 0;
    else
        failed |= fclose(out) != 0;
    if (!failed || errno == EPIPE)
        return failed ? TMK_EXIT_FINDING : status;
    tmk_say("cannot write %s: %s", tmk_translated_for_people(name), strerror(errno));
    return TMK_EXIT_FINDING;
}
