/* SPDX-License-Identifier: MIT */
/* cli/gnuplot.c - see gnuplot.h.
 *
 * gnuplot reads the script from a pipe and writes the picture to its stdout, which is the file: so
 * its name never stands in the script, and that it cannot be written is our message. What gnuplot
 * complains about goes to a temporary file, of which the first line is shown. */
#include "cli/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/locate.h"
#include "cli/xalloc.h"

extern char **environ;

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
        return 0;
    tmk_say("pictures are drawn by gnuplot, which is not on the PATH; install it: apt-get install "
            "gnuplot-nox");
    return TMK_EXIT_FINDING;
}

/* ---- the process ---- */

struct tmk_gnuplot {
    const char *path; /* borrowed */
    FILE *script, *complaints;
    pid_t pid;
    struct sigaction before; /* of SIGPIPE: gnuplot may end before it has read all */
};

static int give_up(struct tmk_gnuplot *g, const char *what, int reason)
{
    tmk_say("%s: %s", what, strerror(reason));
    if (g->complaints)
        fclose(g->complaints);
    free(g);
    return TMK_EXIT_FINDING;
}

/* Start it with these as stdin and stdout: 0 or errno. */
static int spawn(struct tmk_gnuplot *g, int in, int out)
{
    char *argv[] = {"gnuplot", NULL};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    posix_spawn_file_actions_adddup2(&files, fileno(g->complaints), 2);
    int reason = posix_spawnp(&g->pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return reason;
}

static int start(struct tmk_gnuplot *g)
{
    int pipe_ends[2] = {-1, -1};
    int out = open(g->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int reason = out < 0 || pipe2(pipe_ends, O_CLOEXEC) < 0 ? errno : 0;
    if (reason == 0)
        reason = spawn(g, pipe_ends[0], out);
    if (out >= 0)
        close(out);
    if (pipe_ends[0] >= 0)
        close(pipe_ends[0]);
    if (reason == 0)
        g->script = fdopen(pipe_ends[1], "w");
    else if (pipe_ends[1] >= 0)
        close(pipe_ends[1]);
    return reason;
}

int tmk_gnuplot_open(const char *path, struct tmk_gnuplot **ret)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int status = tmk_gnuplot_check(path);
    if (status != 0)
        return status;
    struct tmk_gnuplot *g = tmk_xcalloc(1, sizeof *g);
    g->path = path;
    g->complaints = tmpfile();
    if (!g->complaints)
        return give_up(g, "cannot make a temporary file", errno);
    int reason = start(g);
    if (reason != 0)
        return give_up(g, path, reason);
    sigaction(SIGPIPE, &ignore, &g->before);
    fprintf(g->script, "set terminal %s\n%s", format_of(path)->terminal, look);
    *ret = g;
    return 0;
}

FILE *tmk_gnuplot_script(struct tmk_gnuplot *g)
{
    return g->script;
}

/* Its first complaint; of a script, gnuplot shows the line and an arrow before it. */
static void say_complaint(struct tmk_gnuplot *g)
{
    char line[256];
    const char *shown = "it says nothing";
    rewind(g->complaints);
    while (fgets(line, sizeof line, g->complaints)) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "line ") || strstr(line, "rror")) {
            shown = line + strspn(line, " \t");
            break;
        }
    }
    tmk_say("gnuplot could not draw %s: %s", g->path, shown);
}

int tmk_gnuplot_close(struct tmk_gnuplot *g)
{
    int status = 0;
    bool is_written = ferror(g->script) == 0;
    is_written &= fclose(g->script) == 0;
    while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
        ;
    sigaction(SIGPIPE, &g->before, NULL);
    bool good = is_written && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!good) {
        say_complaint(g);
        unlink(g->path);
    }
    fclose(g->complaints);
    free(g);
    return good ? 0 : TMK_EXIT_FINDING;
}
