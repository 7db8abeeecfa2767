/* SPDX-License-Identifier: MIT */
/* cli/output/pager.c - see pager.h.
 *
 * stdout becomes a stream of ours (fopencookie). Descriptor 1 stays the terminal, so that whoever
 * asks about it gets the true answer. Rejected: to start the pager at once and let `less -F` leave
 * again, as git does: then every command needs a pager that can do that, and messages and progress
 * on stderr are drawn over. */
#include "cli/output/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/output/terminal.h"

enum { MOST_HELD = 4 << 20 };

static bool is_forbidden;

static struct pager {
    FILE *terminal; /* stdout as it was; NULL: nothing is held or paged */
    char *held;
    size_t n_held, room;
    unsigned lines, columns; /* of the screen, filled so far */
    bool is_straight;        /* there is no pager after all: written to the terminal */
    pid_t pid;               /* 0: not started */
    int fd;                  /* leads to it; -1: it has gone */
} pager = {.fd = -1};

static const char usual_command[] =
    "if command -v less >/dev/null 2>&1; then exec less; else exec cat; fi";

/* Returns the command; NULL: none is wanted. */
static const char *pager_command(void)
{
    const char *command = getenv("TIDEMARK_PAGER");
    if (!command)
        command = getenv("PAGER");
    if (!command)
        command = usual_command;
    return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

/* In the child: become the pager. Where the shell does not find it, the output is shown all the
 * same. */
static _Noreturn void exec_pager(int from, const char *command)
{
    char *line = NULL;
    if (asprintf(&line, "%s\n[ $? -ne 127 ] || exec cat", command) < 0)
        _exit(127);
    dup2(from, STDIN_FILENO);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

/* Start the pager; false: it cannot be. */
static bool start_pager(void)
{
    int ends[2];
    const char *command = pager_command();
    if (!command || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    fflush(stderr);
    pager.pid = fork();
    if (pager.pid == 0)
        exec_pager(ends[0], command);
    close(ends[0]);
    if (pager.pid < 0) {
        pager.pid = 0;
        close(ends[1]);
        return false;
    }
    pager.fd = ends[1];
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN); /* the pager's */
    signal(SIGQUIT, SIG_IGN);
    return true;
}

/* Count the lines that the text fills on the screen. Sequences of colour take none of it; what
 * begins with a byte from 0xe3 on is Chinese, Japanese, Korean or a picture, and wide. */
static void count_lines(const char *text, size_t n)
{
    unsigned width = tmk_screen_width();
    for (size_t i = 0; i < n; i++) {
        bool is_sequence = text[i] == '\033';
        while (is_sequence && i + 1 < n && text[i] != 'm')
            i++;
        if (is_sequence || ((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        bool is_end = text[i] == '\n', is_wide = (unsigned char)text[i] >= 0xe3;
        pager.columns += is_end ? 0 : 1 + is_wide;
        if (is_end || pager.columns > width) {
            pager.lines++;
            pager.columns = is_end ? 0 : 1 + is_wide;
        }
    }
}

static bool hold(const char *text, size_t n)
{
    if (pager.n_held + n > pager.room) {
        size_t room = 2 * (pager.n_held + n) + 4096;
        char *more = realloc(pager.held, room);
        if (!more)
            return false;
        pager.held = more;
        pager.room = room;
    }
    memcpy(pager.held + pager.n_held, text, n);
    pager.n_held += n;
    count_lines(text, n);
    return true;
}

/* Pass text on: to the pager, to nobody when it has gone, or to the terminal. */
static void pass_on(const char *text, size_t n)
{
    if (pager.is_straight)
        write_all(STDOUT_FILENO, text, n);
    else if (pager.fd >= 0 && !write_all(pager.fd, text, n)) {
        close(pager.fd);
        pager.fd = -1;
    }
}

static void pass_held(void)
{
    pass_on(pager.held, pager.n_held);
    free(pager.held);
    pager.held = NULL;
    pager.n_held = pager.room = 0;
}

static ssize_t write_page(void *cookie, const char *text, size_t n)
{
    (void)cookie;
    bool is_holding = pager.pid == 0 && !pager.is_straight;
    bool is_held = is_holding && hold(text, n);
    if (is_held && pager.lines < tmk_screen_height() && pager.n_held < MOST_HELD)
        return (ssize_t)n;
    if (is_holding) {
        pager.is_straight = !start_pager();
        pass_held();
    }
    if (!is_held)
        pass_on(text, n);
    return (ssize_t)n;
}

static void end_at_exit(void)
{
    (void)tmk_pager_end();
}

void tmk_pager_forbid(void)
{
    is_forbidden = true;
}

void tmk_pager_begin(void)
{
    static bool has_exit;
    if (is_forbidden || pager.terminal || isatty(STDOUT_FILENO) != 1 || !pager_command())
        return;
    FILE *page = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_page});
    if (!page)
        return;
    if (!has_exit && atexit(end_at_exit) == 0)
        has_exit = true;
    fflush(stdout);
    pager.terminal = stdout;
    stdout = page;
}

bool tmk_pager_end(void)
{
    if (!pager.terminal)
        return false;
    fflush(stdout);
    pager.is_straight |= pager.pid == 0;
    pass_held();
    fclose(stdout);
    stdout = pager.terminal;
    if (pager.fd >= 0)
        close(pager.fd);
    while (pager.pid > 0 && waitpid(pager.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    bool had_pager = pager.pid > 0;
    if (had_pager) {
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
    }
    pager = (struct pager){.fd = -1};
    return had_pager;
}

FILE *tmk_pager_talk(void)
{
    if (!pager.terminal)
        return stderr;
    fflush(stdout);
    bool is_among = pager.pid > 0 || pager.n_held > 0;
    return is_among && isatty(STDERR_FILENO) == 1 ? stdout : stderr;
}
