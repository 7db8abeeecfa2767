/* SPDX-License-Identifier: MIT */
/* cli/remote/remote_end.c - see remote_end.h.
 *
 * The command runs in a child, so that a signal can end it and its status still be known. Its file,
 * if it writes one, is made in a folder of its own and copied to stdout when all went well. */
#include "cli/remote/remote_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/unfinished.h"
#include "cli/output/xalloc.h"
#include "cli/remote/request.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "model/watched.h"

struct serving {
    struct tmk_request_line line;
    struct tmk_request request;
    struct tmk_arena lists;
    char *bytes;     /* text and input */
    char folder[64]; /* of the file; "": there is none */
    char *file;      /* its path */
};

/* ---- reading ---- */

/* Read `n` bytes from stdin, straight: what follows is signals. False: they do not come. */
static bool read_stdin_bytes(char *to, size_t n)
{
    while (n > 0) {
        ssize_t got = read(STDIN_FILENO, to, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        n -= (size_t)got;
    }
    return true;
}

static bool read_first_line(char line[TMK_REQUEST_LINE_MAX])
{
    for (size_t n = 0; n < TMK_REQUEST_LINE_MAX; n++) {
        if (!read_stdin_bytes(line + n, 1))
            return false;
        if (line[n] == '\n') {
            line[n] = '\0';
            return true;
        }
    }
    return false;
}

/* Returns whether the request is one that may be asked from elsewhere. */
static bool is_allowed(const struct tmk_request *request)
{
    const struct tmk_command *c = tmk_command_find(request->words[0]);
    const char *file = request->file;
    return c && (c->n_targets > 0 || c->takes_hosts) &&
           !(file && (strchr(file, '/') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0));
}

/* Read the request. 0, or an exit status after a message. */
static int read_request(struct serving *s)
{
    char first[TMK_REQUEST_LINE_MAX];
    struct tmk_error err = {0};
    if (!read_first_line(first)) {
        tmk_say("remote-end is started over ssh by: tidemark COMMAND HOST:PID");
        return TMK_EXIT_USAGE;
    }
    int rc = tmk_request_parse_line(first, &s->line, &err);
    if (rc == 0) {
        s->bytes = tmk_xcalloc(s->line.n_text + s->line.n_input + 1, 1);
        if (!read_stdin_bytes(s->bytes, s->line.n_text + s->line.n_input))
            return TMK_EXIT_FINDING; /* whoever asked is gone */
        rc = tmk_request_parse_text(s->bytes, s->line.n_text, &s->lists, &s->request, &err);
    }
    if (rc < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_USAGE;
    }
    s->request.input = s->bytes + s->line.n_text;
    s->request.n_input = s->line.n_input;
    if (is_allowed(&s->request))
        return 0;
    tmk_say("'%s' is not a command on a process of another machine", s->request.words[0]);
    return TMK_EXIT_USAGE;
}

/* ---- the command ---- */

/* Take settings into the environment, those that a request may make. */
static void take_settings(const struct tmk_request *request)
{
    static const char *const allowed[] = {"NO_COLOR",  "TERM",           "COLUMNS",
                                          "COLORTERM", TMK_WATCHED_HOST, TMK_SCREEN_ELSEWHERE,
                                          TMK_CHARSET};
    for (const char **at = request->settings; *at; at++)
        for (size_t i = 0; i < TMK_N(allowed); i++) {
            size_t n = strlen(allowed[i]);
            if (strncmp(*at, allowed[i], n) == 0 && (*at)[n] == '=')
                setenv(allowed[i], *at + n + 1, 1);
        }
}

/* Give the command the input as its stdin. */
static bool place_input(const struct tmk_request *request)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    bool good = fd >= 0 && write(fd, request->input, request->n_input) == (ssize_t)request->n_input;
    good = good && lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO;
    if (fd >= 0)
        close(fd);
    return good;
}

_Noreturn static void become_command(const struct serving *s, int dispatch(char **words),
                                     pid_t parent, const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || (s->folder[0] && chdir(s->folder) < 0) || !place_input(&s->request))
        _exit(TMK_EXIT_FINDING);
    take_settings(&s->request);
    tmk_terminal_init();
    exit(tmk_close_output(stdout, N_("the output"), dispatch((char **)(void *)s->request.words)));
}

/* Hand a signal on. At the end of stdin nobody waits for an answer. False at the end. */
static bool hand_on(pid_t command)
{
    static const unsigned char allowed[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    unsigned char number = 0;
    ssize_t got = read(STDIN_FILENO, &number, 1);
    if (got < 0 && errno == EINTR)
        return true;
    if (got == 1 && memchr(allowed, number, sizeof allowed))
        kill(command, number);
    if (got <= 0)
        kill(command, SIGTERM);
    return got > 0;
}

/* Wait for the end of the command. Returns its exit status, 128 + N after signal N. */
static int wait_for_command(pid_t command, int children)
{
    struct signalfd_siginfo info;
    int status = 0;
    struct pollfd fds[] = {{.fd = children, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};
    while (waitpid(command, &status, WNOHANG) != command) {
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents && !hand_on(command))
            fds[1].fd = -1;
        if (fds[0].revents)
            (void)!read(children, &info, sizeof info);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- its file ---- */

static int copy_to_stdout(const char *path)
{
    char bytes[65536];
    size_t n;
    FILE *in = fopen(path, "re");
    if (!in) {
        tmk_say("cannot read %s: %s", path, strerror(errno));
        return TMK_EXIT_FINDING;
    }
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0 && fwrite(bytes, 1, n, stdout) == n)
        ;
    fclose(in);
    return TMK_EXIT_OK;
}

/* Run the command. Its file, if it has one, goes to stdout. */
static int run_command_here(struct serving *s, int dispatch(char **words))
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* sshd may ignore it; then there would be no status */
    sigprocmask(SIG_BLOCK, &set, &before);
    int children = signalfd(-1, &set, SFD_CLOEXEC);
    pid_t parent = getpid(), command = children < 0 ? -1 : fork();
    if (command == 0)
        become_command(s, dispatch, parent, &before);
    int status = TMK_EXIT_FINDING;
    if (command > 0) {
        int folder = s->folder[0] ? tmk_unfinished_add(s->folder) : -1; /* ours, not the child's */
        int file = s->folder[0] ? tmk_unfinished_add(s->file) : -1;
        status = wait_for_command(command, children);
        if (s->folder[0] && status == TMK_EXIT_OK)
            status = copy_to_stdout(s->file);
        tmk_unfinished_drop(file);
        tmk_unfinished_drop(folder);
    } else {
        tmk_say("cannot start a process: %s", strerror(errno));
    }
    if (children >= 0)
        close(children);
    return status;
}

/* Run a command that writes a file, in a folder for it. */
static int run_with_file(struct serving *s, int dispatch(char **words))
{
    snprintf(s->folder, sizeof s->folder, "/tmp/tidemark-remote.XXXXXX");
    if (!mkdtemp(s->folder)) {
        tmk_say("cannot make a folder in /tmp: %s", strerror(errno));
        return TMK_EXIT_FINDING;
    }
    s->file = tmk_xformat("%s/%s", s->folder, s->request.file);
    int status = run_command_here(s, dispatch);
    unlink(s->file);
    rmdir(s->folder);
    return status;
}

int tmk_remote_end(int dispatch(char **words))
{
    struct serving s = {0};
    int status = read_request(&s);
    if (status == 0) {
        status = s.request.file ? run_with_file(&s, dispatch) : run_command_here(&s, dispatch);
        if (status == TMK_EXIT_USAGE && strcmp(s.line.version, TMK_VERSION) != 0)
            tmk_say("%s has tidemark %s, this machine %s", s.line.host, TMK_VERSION,
                    s.line.version);
    }
    free(s.file);
    free(s.bytes);
    tmk_arena_fini(&s.lists);
    return status;
}
