/* SPDX-License-Identifier: MIT */
/* cli/plot/gnuplot.c - see gnuplot.h.
 *
 * gnuplot reads the script from a temporary file and writes the picture to its stdout, which is the
 * output file. So the script never contains the file's name, and we report it if the file cannot be
 * written. With a pipe, a gnuplot that hangs would block us while we write; this way we only wait
 * for its end, and not for ever. Its complaints go to another temporary file, and the first line of
 * that is shown. It is started with -d, which leaves out the user's own settings. */
#include "cli/plot/gnuplot.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/front/locate.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/unfinished.h"
#include "cli/output/xalloc.h"
#include "kit/gnuplot_word.h"
#include "kit/utf8.h"

extern char **environ;

enum {
    MOST_SECONDS = 60,   /* for a picture */
    LONGEST_TITLE = 118, /* columns of a title that fit */
};

enum picture_kind { PNG, SVG, PDF };

static const struct picture_format {
    const char *suffix;
    enum picture_kind kind;
} formats[] = {{".png", PNG}, {".svg", SVG}, {".pdf", PDF}};

static const char look[] = "set encoding utf8\n"
                           "set border 3 linecolor rgb '%s'\n"
                           "set tics nomirror textcolor rgb '%s'\n"
                           "set grid y linetype 1 linewidth 1 linecolor rgb '%s'\n"
                           "set key tmargin left horizontal Left reverse samplen 2 width 2 "
                           "textcolor rgb '%s'\n"
                           "set xlabel textcolor rgb '%s'\n"
                           "set ylabel textcolor rgb '%s'\n"
                           "set style textbox opaque fillcolor rgb '%s' noborder\n"
                           "set style fill transparent solid 0.25 noborder\n";

/* ---- texts ---- */

/* The text as a screen would show it, so that an SVG with it is well-formed whatever the bytes are.
 * The caller's to free. */
static char *shown_text(const char *text, unsigned columns)
{
    char *shown = NULL;
    size_t n = 0;
    FILE *out = tmk_xmemstream(&shown, &n);
    tmk_utf8_write(out, text, columns);
    fclose(out);
    return shown;
}

/* The same, but keep the end. */
static char *shown_tail(const char *text, unsigned columns)
{
    if (tmk_utf8_tail(text, columns) == text)
        return shown_text(text, UINT_MAX);
    char *tail = tmk_xformat("…%s", tmk_utf8_tail(text, columns > 0 ? columns - 1 : 0));
    char *shown = shown_text(tail, UINT_MAX);
    free(tail);
    return shown;
}

/* Whether gnuplot would cut the label in the middle of a character. */
static bool is_too_long_for_tic(const char *shown)
{
    return strchr(shown, '%') && strlen(shown) > TMK_GNUPLOT_TIC_BYTES;
}

static void put_tic(FILE *script, const char *text, unsigned columns,
                    char *shorten(const char *text, unsigned columns))
{
    char *shown = shorten(text, columns);
    for (unsigned width = (unsigned)tmk_utf8_width(shown); is_too_long_for_tic(shown);) {
        free(shown);
        shown = width > 1 ? shorten(text, --width) : tmk_xstrdup("…"); /* all accents */
    }
    tmk_gnuplot_tic_word(script, shown);
    free(shown);
}

void tmk_gnuplot_short_text(FILE *script, const char *text, unsigned columns)
{
    char *shown = shown_text(text, columns);
    tmk_gnuplot_word(script, shown);
    free(shown);
}

void tmk_gnuplot_text(FILE *script, const char *text)
{
    tmk_gnuplot_short_text(script, text, UINT_MAX);
}

void tmk_gnuplot_tail_text(FILE *script, const char *text, unsigned columns)
{
    char *shown = shown_tail(text, columns);
    tmk_gnuplot_word(script, shown);
    free(shown);
}

void tmk_gnuplot_tic(FILE *script, const char *text, unsigned columns)
{
    put_tic(script, text, columns, shown_text);
}

void tmk_gnuplot_tail_tic(FILE *script, const char *text, unsigned columns)
{
    put_tic(script, text, columns, shown_tail);
}

/* ---- requirements ---- */

static const struct picture_format *picture_format_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < TMK_N(formats); i++) {
        size_t length = strlen(formats[i].suffix);
        if (n > length && strcasecmp(path + n - length, formats[i].suffix) == 0)
            return &formats[i];
    }
    return NULL;
}

bool tmk_gnuplot_is_vector(const char *path)
{
    const struct picture_format *format = picture_format_of(path);
    return format && format->kind != PNG;
}

int tmk_gnuplot_check(const char *path)
{
    if (!picture_format_of(path)) {
        tmk_say("'%s' is not the name of a picture: it should end in .png, .svg or .pdf", path);
        return TMK_EXIT_USAGE;
    }
    char *program = tmk_locate_on_path("gnuplot");
    bool found = program != NULL;
    free(program);
    if (found)
        return tmk_output_file_check(path);
    tmk_say("pictures are drawn by gnuplot, which is not on the PATH; install it: apt-get install "
            "gnuplot-nox");
    return TMK_EXIT_FINDING;
}

/* ---- the process ---- */

struct tmk_gnuplot {
    const char *path; /* borrowed */
    enum picture_kind kind;
    const char *title; /* the style's title */
    const struct tmk_theme *theme;
    FILE *script, *complaints;
};

double tmk_gnuplot_points(const struct tmk_gnuplot *g, double points)
{
    return g->kind == SVG ? points * 14 / 12 : points;
}

void tmk_gnuplot_heading(struct tmk_gnuplot *g, const char *text, const char *note)
{
    fputs("set label ", g->script);
    tmk_gnuplot_short_text(g->script, g->title ? g->title : text, LONGEST_TITLE);
    fprintf(g->script,
            " at screen 0, screen 1 left offset 2,-1.2 font ',%.4g' textcolor rgb '%s'\n"
            "set tmargin 4\n",
            tmk_gnuplot_points(g, 15), g->theme->text);
    if (!note)
        return;
    fputs("set label ", g->script);
    tmk_gnuplot_text(g->script, note);
    fprintf(g->script, " at screen 0, screen 1 left offset 2,-2.6 textcolor rgb '%s'\n",
            g->theme->faint);
}

/* The key is above the picture and reserves its room there; its own empty title reserves the room
 * for ours. gnuplot's title would come between key and picture. */
void tmk_gnuplot_title(struct tmk_gnuplot *g, const char *text)
{
    tmk_gnuplot_heading(g, text, NULL);
    fprintf(g->script, "set tmargin -1\nset key title ' ' left font ',%.4g'\n",
            tmk_gnuplot_points(g, 25));
}

static void discard_gnuplot(struct tmk_gnuplot *g)
{
    if (g->script)
        fclose(g->script);
    if (g->complaints)
        fclose(g->complaints);
    free(g);
}

/* Write the terminal line. Letters have about the same share of the width in all three formats. In
 * an SVG gnuplot does not know the width of a text and overestimates it; somewhat smaller letters
 * make up for that. */
static void put_terminal(const struct tmk_gnuplot *g, unsigned height)
{
    if (g->kind == PNG)
        fprintf(g->script, "set terminal pngcairo size %d,%u", TMK_PICTURE_WIDTH, height);
    else if (g->kind == SVG)
        fprintf(g->script, "set terminal svg size %d,%u dynamic", TMK_PICTURE_WIDTH, height);
    else
        fprintf(g->script, "set terminal pdfcairo size 10in,%.3fin fontscale 0.56 linewidth 1.3",
                10.0 * height / TMK_PICTURE_WIDTH);
    fprintf(g->script, " font 'sans,%.4g' background '%s' noenhanced\n", tmk_gnuplot_points(g, 12),
            g->theme->background);
}

static void put_theme(const struct tmk_gnuplot *g)
{
    const struct tmk_theme *t = g->theme;
    fprintf(g->script, look, t->axis, t->text, t->grid, t->text, t->faint, t->faint, t->background);
}

int tmk_gnuplot_open(const char *path, const struct tmk_plot_style *style, unsigned height,
                     struct tmk_gnuplot **ret)
{
    int status = tmk_gnuplot_check(path);
    if (status != 0)
        return status;
    struct tmk_gnuplot *g = tmk_xcalloc(1, sizeof *g);
    g->path = path;
    g->kind = picture_format_of(path)->kind;
    g->title = style->title;
    g->theme = tmk_palette_theme(style->dark);
    g->script = tmpfile();
    g->complaints = tmpfile();
    if (!g->script || !g->complaints) {
        tmk_say("cannot make a temporary file: %s", strerror(errno));
        discard_gnuplot(g);
        return TMK_EXIT_FINDING;
    }
    put_terminal(g, height);
    put_theme(g);
    *ret = g;
    return 0;
}

const struct tmk_theme *tmk_gnuplot_theme(const struct tmk_gnuplot *g)
{
    return g->theme;
}

FILE *tmk_gnuplot_script(struct tmk_gnuplot *g)
{
    return g->script;
}

/* Start gnuplot with these as stdin and stdout: 0 or errno. It has a process group of its own, so
 * that ^C for us does not end it, and no signal is blocked. */
static int spawn_gnuplot(struct tmk_gnuplot *g, int in, int out, pid_t *ret)
{
    char *argv[] = {"gnuplot", "-d", NULL};
    sigset_t none;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t files;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, fileno(g->complaints), 2);
    int reason = posix_spawnp(ret, argv[0], &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return reason;
}

/* Wait for its status; false: it had to be killed. */
static bool wait_for_gnuplot(pid_t pid, int *ret_status)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    uint64_t end_ns = tmk_clock_monotonic_ns() + MOST_SECONDS * UINT64_C(1000000000);
    while (waitpid(pid, ret_status, WNOHANG) == 0) {
        if (tmk_clock_monotonic_ns() > end_ns) {
            kill(-pid, SIGKILL);
            waitpid(pid, ret_status, 0);
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* Blank control characters of a complaint: it may repeat foreign texts of the script. */
static void blank_control_bytes(char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 127)
            *line = ' ';
}

/* Print gnuplot's first complaint. For a script, gnuplot shows the line and an arrow before it. */
static void say_complaint(struct tmk_gnuplot *g)
{
    char line[256];
    const char *shown = "it says nothing";
    rewind(g->complaints);
    while (fgets(line, sizeof line, g->complaints)) {
        line[strcspn(line, "\n")] = '\0';
        blank_control_bytes(line);
        if (strstr(line, "line ") || strstr(line, "rror")) {
            shown = line + strspn(line, " \t");
            break;
        }
    }
    tmk_say("gnuplot could not draw %s: %s", g->path, shown);
}

/* Whether the picture is empty: gnuplot does not check that its writes succeed. */
static bool is_empty(int out)
{
    struct stat picture;
    return fstat(out, &picture) == 0 && S_ISREG(picture.st_mode) && picture.st_size == 0;
}

/* Start gnuplot with signals blocked until it is registered to be ended with us. 0 or errno. */
static int start_gnuplot(struct tmk_gnuplot *g, int out, pid_t *ret)
{
    sigset_t before;
    int in = fileno(g->script);
    if (ferror(g->script) || fflush(g->script) != 0 || lseek(in, 0, SEEK_SET) < 0)
        return EIO;
    tmk_unfinished_hold(&before);
    int reason = spawn_gnuplot(g, in, out, ret);
    if (reason == 0)
        tmk_unfinished_group(*ret);
    tmk_unfinished_release(&before);
    return reason;
}

/* Draw, after the whole script is written; false after a message. */
static bool draw_with_gnuplot(struct tmk_gnuplot *g, int out)
{
    pid_t pid;
    int status = -1, reason = start_gnuplot(g, out, &pid);
    if (reason != 0) {
        tmk_say("gnuplot could not be started for %s: %s", g->path, strerror(reason));
        return false;
    }
    bool has_ended = wait_for_gnuplot(pid, &status);
    tmk_unfinished_group(0);
    if (!has_ended) {
        tmk_say("gnuplot did not draw %s within %d s, and was ended", g->path, MOST_SECONDS);
        return false;
    }
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !is_empty(out);
    if (!good)
        say_complaint(g);
    return good;
}

int tmk_gnuplot_close(struct tmk_gnuplot *g)
{
    struct tmk_output_file o;
    int status = tmk_output_file_open(&o, g->path);
    if (status == 0) {
        bool good = draw_with_gnuplot(g, o.fd);
        status = tmk_output_file_close(&o, good);
        status = good ? status : TMK_EXIT_FINDING;
    }
    discard_gnuplot(g);
    return status;
}
