/* SPDX-License-Identifier: MIT */
/* cli/gnuplot.c - see gnuplot.h.
 *
 * gnuplot reads the script from a temporary file and writes the picture to its stdout, which is the
 * output file: so its name never stands in the script, and that it cannot be written is our
 * message. A pipe would let a gnuplot that hangs hold us while we write; like this only its end is
 * waited for, and not for ever. What it complains about goes to another temporary file, of which
 * the first line is shown. It is started with -d: settings that people have for themselves are not
 * ours. */
#include "cli/gnuplot.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "cli/output_file.h"
#include "cli/xalloc.h"

extern char **environ;

enum { MOST_SECONDS = 60 }; /* for a picture */

static const struct format {
    const char *suffix, *terminal;
} formats[] = {
    {".png", "pngcairo size 1280,640 font 'sans,12' background '#ffffff' noenhanced"},
    {".svg", "svg size 1000,500 font 'sans,13' background '#ffffff' noenhanced dynamic"},
    {".pdf", "pdfcairo size 10in,5in font 'sans,12' background '#ffffff' noenhanced"},
};

static const char look[] =
    "set encoding utf8\n"
    "set border 3 linecolor rgb '#aaaaaa'\n"
    "set tics nomirror textcolor rgb '#333333'\n"
    "set grid y linetype 1 linewidth 1 linecolor rgb '#e4e4e4'\n"
    "set key tmargin left horizontal Left reverse samplen 2 width 2 textcolor rgb '#333333'\n"
    "set xlabel textcolor rgb '#555555'\n"
    "set ylabel textcolor rgb '#555555'\n"
    "set style fill transparent solid 0.25 noborder\n";

const char *tmk_gnuplot_colour(unsigned i)
{
    static const char *const colours[] = {"#4393c3", "#e08214", "#1b7837", "#d6604d",
                                          "#9970ab", "#878787", "#35978f", "#c51b7d"};
    return colours[i % TMK_N(colours)];
}

void tmk_gnuplot_text(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

/* Above the key, which stands above the picture: gnuplot's own title would come between them. */
void tmk_gnuplot_title(FILE *script, const char *text)
{
    fputs("set key title ", script);
    tmk_gnuplot_text(script, text);
    fputs(" left font ',15'\n", script);
}

/* ---- what is needed ---- */

static const struct format *format_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < TMK_N(formats); i++) {
        size_t length = strlen(formats[i].suffix);
        if (n > length && strcasecmp(path + n - length, formats[i].suffix) == 0)
            return &formats[i];
    }
    return NULL;
}

int tmk_gnuplot_check(const char *path)
{
    if (!format_of(path)) {
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
    FILE *script, *complaints;
};

static void discard(struct tmk_gnuplot *g)
{
    if (g->script)
        fclose(g->script);
    if (g->complaints)
        fclose(g->complaints);
    free(g);
}

int tmk_gnuplot_open(const char *path, struct tmk_gnuplot **ret)
{
    int status = tmk_gnuplot_check(path);
    if (status != 0)
        return status;
    struct tmk_gnuplot *g = tmk_xcalloc(1, sizeof *g);
    g->path = path;
    g->script = tmpfile();
    g->complaints = tmpfile();
    if (!g->script || !g->complaints) {
        tmk_say("cannot make a temporary file: %s", strerror(errno));
        discard(g);
        return TMK_EXIT_FINDING;
    }
    fprintf(g->script, "set terminal %s\n%s", format_of(path)->terminal, look);
    *ret = g;
    return 0;
}

FILE *tmk_gnuplot_script(struct tmk_gnuplot *g)
{
    return g->script;
}

/* Start it with these as stdin and stdout: 0 or errno. In a group of its own, so that a ^C for us
 * does not end it, and with no signal held back. */
static int spawn(struct tmk_gnuplot *g, int in, int out, pid_t *ret)
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

/* Its status; false when it had to be ended. */
static bool wait_for(pid_t pid, int *ret_status)
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

/* It may repeat texts of the script, which are others'. */
static void make_harmless(char *line)
{
    for (; *line; line++)
        if ((unsigned char)*line < ' ' || *line == 127)
            *line = ' ';
}

/* Its first complaint; of a script, gnuplot shows the line and an arrow before it. */
static void say_complaint(struct tmk_gnuplot *g)
{
    char line[256];
    const char *shown = "it says nothing";
    rewind(g->complaints);
    while (fgets(line, sizeof line, g->complaints)) {
        line[strcspn(line, "\n")] = '\0';
        make_harmless(line);
        if (strstr(line, "line ") || strstr(line, "rror")) {
            shown = line + strspn(line, " \t");
            break;
        }
    }
    tmk_say("gnuplot could not draw %s: %s", g->path, shown);
}

/* It does not look whether its writes succeed. */
static bool is_empty(int out)
{
    struct stat picture;
    return fstat(out, &picture) == 0 && S_ISREG(picture.st_mode) && picture.st_size == 0;
}

/* With the whole script: is the picture written? Says why not. */
static bool draw(struct tmk_gnuplot *g, int out)
{
    pid_t pid;
    int status = -1, in = fileno(g->script);
    int reason =
        ferror(g->script) || fflush(g->script) != 0 || lseek(in, 0, SEEK_SET) < 0 ? EIO : 0;
    if (reason == 0)
        reason = spawn(g, in, out, &pid);
    if (reason != 0) {
        tmk_say("gnuplot could not be started for %s: %s", g->path, strerror(reason));
        return false;
    }
    if (!wait_for(pid, &status)) {
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
        bool good = draw(g, o.fd);
        status = tmk_output_file_close(&o, good);
        status = good ? status : TMK_EXIT_FINDING;
    }
    discard(g);
    return status;
}
