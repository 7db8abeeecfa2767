/* SPDX-License-Identifier: MIT */
/* cli/output/terminal.c - see terminal.h.
 *
 * The charset is read from the name of the locale. setlocale() would fail where the locale is not
 * installed, as in most containers, and call every one of them "C". */
#include "cli/output/terminal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kit/amount.h"
#include "kit/glyph.h"
#include "kit/utf8.h"

enum { LEAST_WIDTH = 40, LEAST_HEIGHT = 4, MOST_SIZE = 500 };

static enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } colour_wish;

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- charset ---- */

bool tmk_shows_utf8(void)
{
    const char *locale = setting("LC_ALL"), *said = setting(TMK_CHARSET);
    if (said)
        return strcmp(said, "ascii") != 0;
    locale = locale ? locale : setting("LC_CTYPE");
    locale = locale ? locale : setting("LANG");
    if (!locale)
        return true; /* nobody said: a bare container, whose terminal can */
    const char *charset = strchr(locale, '.');
    return charset &&
           (strncasecmp(charset + 1, "utf-8", 5) == 0 || strncasecmp(charset + 1, "utf8", 4) == 0);
}

void tmk_terminal_init(void)
{
    tmk_glyph_use_ascii(!tmk_shows_utf8());
}

/* ---- width ---- */

/* The number of a stream; that of stdout even while a pager is in between. */
static int number_of(FILE *out)
{
    return out == stdout ? STDOUT_FILENO : out == stderr ? STDERR_FILENO : fileno(out);
}

static unsigned within(int64_t n, int64_t least)
{
    return (unsigned)(n < least ? least : n > MOST_SIZE ? MOST_SIZE : n);
}

/* Ask the terminal behind `fd`, or the environment. */
static unsigned screen_size(int fd, bool of_width, const char *name, unsigned usual)
{
    struct winsize size = {0};
    const char *said = getenv(name);
    int64_t n = 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0)
        n = of_width ? size.ws_col : size.ws_row;
    if (n == 0 && (!said || tmk_integer_parse(said, &n) < 0))
        n = usual;
    return within(n, of_width ? LEAST_WIDTH : LEAST_HEIGHT);
}

unsigned tmk_width_of(FILE *out)
{
    if (out != stdout && out != stderr)
        return TMK_WIDTH_USUAL; /* a file outlives the terminal */
    return screen_size(number_of(out), true, "COLUMNS", TMK_WIDTH_USUAL);
}

unsigned tmk_prose_width_of(FILE *out)
{
    unsigned width = tmk_width_of(out);
    return width < TMK_WIDTH_PROSE ? width : TMK_WIDTH_PROSE;
}

unsigned tmk_screen_width(void)
{
    return tmk_width_of(stdout);
}

unsigned tmk_screen_height(void)
{
    return screen_size(STDOUT_FILENO, false, "LINES", 24);
}

/* ---- colours ---- */

bool tmk_terminal_choose_colour(const char *when)
{
    if (strcmp(when, "always") == 0)
        colour_wish = COLOUR_ALWAYS;
    else if (strcmp(when, "never") == 0)
        colour_wish = COLOUR_NEVER;
    else if (strcmp(when, "auto") == 0)
        colour_wish = COLOUR_AUTO;
    else
        return false;
    return true;
}

bool tmk_is_screen(FILE *out)
{
    return isatty(number_of(out)) == 1 || (out == stdout && getenv(TMK_SCREEN_ELSEWHERE));
}

bool tmk_wants_colour(FILE *out)
{
    const char *term = getenv("TERM"), *force = setting("CLICOLOR_FORCE");
    if (out != stdout && out != stderr)
        return false; /* a file */
    if (colour_wish != COLOUR_AUTO)
        return colour_wish == COLOUR_ALWAYS;
    if (setting("NO_COLOR"))
        return false;
    if (force && strcmp(force, "0") != 0)
        return true;
    return term && strcmp(term, "dumb") != 0 && tmk_is_screen(out);
}

const char *tmk_role_code(bool colour, enum tmk_role role)
{
    static const char *const codes[TMK_N_ROLES] = {
        [TMK_ROLE_PLAIN] = "",        [TMK_ROLE_BAD] = "\033[31m",   [TMK_ROLE_WARN] = "\033[33m",
        [TMK_ROLE_GOOD] = "\033[32m", [TMK_ROLE_DETAIL] = "\033[2m", [TMK_ROLE_STRONG] = "\033[1m",
    };
    return colour ? codes[role] : "";
}

const char *tmk_colour_end(bool colour)
{
    return colour ? "\033[0m" : "";
}

const char *tmk_role_on(FILE *out, enum tmk_role role)
{
    return tmk_role_code(tmk_wants_colour(out), role);
}

const char *tmk_role_off(FILE *out, enum tmk_role role)
{
    return tmk_colour_end(role != TMK_ROLE_PLAIN && tmk_wants_colour(out));
}

void tmk_paint(FILE *out, enum tmk_role role, const char *text)
{
    fputs(tmk_role_on(out, role), out);
    tmk_utf8_write(out, text, SIZE_MAX);
    fputs(tmk_role_off(out, role), out);
}

/* ---- hues ---- */

/* The nearest of the 6x6x6 colours that terminals of 256 colours have. */
static unsigned cube_colour(unsigned red, unsigned green, unsigned blue)
{
    unsigned parts[] = {red, green, blue}, index = 0;
    for (unsigned i = 0; i < 3; i++)
        index = 6 * index + (parts[i] < 48 ? 0 : parts[i] < 115 ? 1 : (parts[i] - 35) / 40);
    return 16 + index;
}

/* The nearest of the eight colours that every terminal has. Black and white are the background of
 * some terminal: they become the usual colour. */
static unsigned basic_colour(unsigned red, unsigned green, unsigned blue)
{
    unsigned most = red > green ? red : green, least = red < green ? red : green;
    most = most > blue ? most : blue;
    least = least < blue ? least : blue;
    if (most - least < 32)
        return 39;
    unsigned middle = (most + least) / 2;
    return 30u + (red > middle) + 2u * (green > middle) + 4u * (blue > middle);
}

const char *tmk_hue_code(bool colour, uint32_t rrggbb, char *buffer)
{
    const char *term = setting("TERM"), *depth = setting("COLORTERM");
    unsigned red = rrggbb >> 16 & 255, green = rrggbb >> 8 & 255, blue = rrggbb & 255;
    if (!colour)
        *buffer = '\0';
    else if (depth && (strcmp(depth, "truecolor") == 0 || strcmp(depth, "24bit") == 0))
        snprintf(buffer, TMK_HUE_BYTES, "\033[38;2;%u;%u;%um", red, green, blue);
    else if (term && strstr(term, "256color"))
        snprintf(buffer, TMK_HUE_BYTES, "\033[38;5;%um", cube_colour(red, green, blue));
    else
        snprintf(buffer, TMK_HUE_BYTES, "\033[%um", basic_colour(red, green, blue));
    return buffer;
}
