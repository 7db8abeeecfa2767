/* SPDX-License-Identifier: MIT */
/* cli/remote/remote.c - see remote.h.
 *
 * One loop waits for everything: signals (by a descriptor, so that none is missed), room in the
 * pipe to ssh, and the end of ssh. ssh's stdin stays open as long as we live: its end tells the
 * other side that nobody listens any more, however we died. */
#include "cli/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/wire.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/remote/endpoint.h"
#include "cli/remote/request.h"
#include "cli/remote/ssh.h"
#include "cli/run/relay.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "model/watched.h"

struct remote_job {
    const struct tmk_args *args;
    struct tmk_arena texts;
    char host[TMK_HOST_BYTES];
    uint32_t pids[2]; /* of the targets */
    struct tmk_request request;
    char *bytes; /* the request, ready to be sent; then signals */
    size_t n_bytes, n_sent;
    int to_ssh; /* -1: closed */
    pid_t ssh;
    int asked_by;  /* the first signal that asked us to end; 0: none */
    bool is_ended; /* and it has ended the command there */
};

/* ---- whom it is about ---- */

/* Returns whether a target is an endpoint; -1 after a message. */
static int read_target(struct remote_job *job, unsigned i)
{
    struct tmk_endpoint endpoint;
    struct tmk_error err = {0};
    int rc = tmk_endpoint_parse(job->args->operands[i], &endpoint, &err);
    if (rc < 0)
        tmk_say("%s", err.text);
    if (rc <= 0)
        return rc < 0 ? -1 : 0;
    if (job->host[0] && strcmp(job->host, endpoint.host) != 0) {
        tmk_say("%s and %s are on different machines; this command needs both on one",
                job->args->operands[0], job->args->operands[i]);
        return -1;
    }
    memcpy(job->host, endpoint.host, sizeof job->host);
    job->pids[i] = endpoint.pid;
    return 1;
}

/* Returns 1 when the targets are on another machine, 0 when they are here, -1 after a message. */
static int read_targets(struct remote_job *job)
{
    unsigned n = job->args->command->n_targets, n_there = 0;
    if (n > job->args->n_operands)
        n = job->args->n_operands;
    for (unsigned i = 0; i < n; i++) {
        int rc = read_target(job, i);
        if (rc < 0)
            return -1;
        n_there += (unsigned)rc;
    }
    if (n_there == 0 || n_there == n)
        return n_there > 0;
    tmk_say("one of %s and %s is on another machine; this command needs both on one",
            job->args->operands[0], job->args->operands[1]);
    return -1;
}

/* ---- the request ---- */

/* Returns the name of the file without its folder. */
static const char *name_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Add one option as it was given: "--name" or "--name=value", several values one by one. */
static unsigned add_option_words(struct remote_job *job, unsigned number, const char **to)
{
    const struct tmk_option *o = &job->args->command->options[number];
    unsigned n = 0;
    for (unsigned i = 0; i < job->args->n_listed; i++)
        if (job->args->listed_for[i] == number)
            to[n++] = tmk_xarena_format(&job->texts, "--%s=%s", o->name, job->args->listed[i]);
    if (n > 0)
        return n;
    if (!o->value)
        to[n++] = tmk_xarena_format(&job->texts, "--%s", o->name);
    else if (job->request.file && strcmp(o->name, "output") == 0)
        to[n++] = tmk_xarena_format(&job->texts, "--%s=%s", o->name, job->request.file);
    else
        to[n++] = tmk_xarena_format(&job->texts, "--%s=%s", o->name, job->args->values[number]);
    return n;
}

/* Write the command line for the other side: everything but what was for us. */
static const char **make_words(struct remote_job *job)
{
    const struct tmk_args *args = job->args;
    size_t most = TMK_MAX_OPTIONS + TMK_MAX_VALUES + args->n_operands + 3;
    const char **words = tmk_xarena_take(&job->texts, most * sizeof *words);
    unsigned n = 0;
    words[n++] = args->command->name;
    for (unsigned i = 0; i < args->command->n_options; i++)
        if (args->values[i] && strcmp(args->command->options[i].name, "remote-path") != 0)
            n += add_option_words(job, i, words + n);
    words[n++] = "--";
    for (unsigned i = 0; i < args->n_operands; i++)
        words[n++] = i < TMK_N(job->pids) && job->pids[i]
                         ? tmk_xarena_format(&job->texts, "%u", job->pids[i])
                         : args->operands[i];
    return words;
}

const char **tmk_remote_settings(struct tmk_arena *arena, const char *host, bool has_screen)
{
    static const char *const passed[] = {"NO_COLOR", "TERM", "COLUMNS", "COLORTERM"};
    const char **list = tmk_xarena_take(arena, (TMK_N(passed) + 5) * sizeof *list);
    struct winsize size = {0};
    unsigned n = 0;
    list[n++] = tmk_xarena_format(arena, TMK_WATCHED_HOST "=%s", host);
    list[n++] = tmk_xarena_format(arena, "TIDEMARK_LANG=%s", tmk_language_name());
    if (has_screen)
        list[n++] = TMK_SCREEN_ELSEWHERE "=1";
    bool has_size = has_screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    for (size_t i = 0; i < TMK_N(passed); i++) {
        const char *value = getenv(passed[i]);
        if (has_size && strcmp(passed[i], "COLUMNS") == 0)
            list[n++] = tmk_xarena_format(arena, "COLUMNS=%u", (unsigned)size.ws_col);
        else if (value && *value)
            list[n++] = tmk_xarena_format(arena, "%s=%s", passed[i], value);
    }
    list[n++] = tmk_shows_utf8() ? TMK_CHARSET "=utf8" : TMK_CHARSET "=ascii";
    return list;
}

/* Read what the command would read from stdin: all of it, or as much as code may have and a byte
 * more. Only where an operand is "-": the stdin of a shell's loop is not ours to empty. */
static void read_input(struct remote_job *job)
{
    bool is_wanted = false;
    for (unsigned i = job->args->command->n_targets; i < job->args->n_operands; i++)
        is_wanted |= strcmp(job->args->operands[i], "-") == 0;
    if (!is_wanted)
        return;
    char *input = tmk_xarena_take(&job->texts, TMK_WIRE_CODE_MAX + 1);
    job->request.n_input = fread(input, 1, TMK_WIRE_CODE_MAX + 1, stdin);
    job->request.input = input;
}

static void make_remote_request(struct remote_job *job, bool has_screen)
{
    job->request.host = job->host;
    job->request.settings = tmk_remote_settings(&job->texts, job->host, has_screen);
    job->request.words = make_words(job);
    FILE *out = tmk_xmemstream(&job->bytes, &job->n_bytes);
    tmk_request_write(out, &job->request);
    if (fclose(out) != 0)
        tmk_die("out of memory");
}

/* ---- while it runs ---- */

static void close_pipe(struct remote_job *job)
{
    if (job->to_ssh >= 0)
        close(job->to_ssh);
    job->to_ssh = -1;
}

/* Send what there is room for. */
static void send_bytes(struct remote_job *job)
{
    ssize_t n = write(job->to_ssh, job->bytes + job->n_sent, job->n_bytes - job->n_sent);
    if (n > 0)
        job->n_sent += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_pipe(job); /* it has ended: its status says why */
}

/* Let the other side have ^C. The second one, and every other request to end, ends ssh. */
static void pass_signal(struct remote_job *job, int number)
{
    bool is_first = job->asked_by == 0;
    if (is_first)
        job->asked_by = number;
    if (is_first && number == SIGINT && job->to_ssh >= 0) {
        char *longer = realloc(job->bytes, job->n_bytes + 1);
        if (!longer)
            tmk_die("out of memory");
        job->bytes = longer;
        job->bytes[job->n_bytes++] = (char)number;
        return;
    }
    close_pipe(job);
    kill(job->ssh, SIGTERM);
}

/* Take a signal. Returns whether ssh has ended. */
static bool take_remote_signal(struct remote_job *job, int signals, int *ret_wait_status)
{
    struct signalfd_siginfo info;
    if (read(signals, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    if (info.ssi_signo == SIGCHLD)
        return waitpid(job->ssh, ret_wait_status, WNOHANG) == job->ssh;
    if (info.ssi_signo != SIGPIPE)
        pass_signal(job, (int)info.ssi_signo);
    return false;
}

/* Send the request and wait for the end of ssh. */
static int talk(struct remote_job *job, int signals)
{
    int wait_status = 0;
    for (;;) {
        bool has_more = job->n_sent < job->n_bytes;
        struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
                               {.fd = job->to_ssh, .events = has_more ? POLLOUT : 0}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents & POLLERR)
            close_pipe(job);
        else if (fds[1].revents & POLLOUT)
            send_bytes(job);
        if ((fds[0].revents & POLLIN) && take_remote_signal(job, signals, &wait_status))
            return wait_status;
    }
}

/* Block the signals that the loop takes. Returns a descriptor for them. */
static int hold_remote_signals(void)
{
    static const int taken[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < TMK_N(taken); i++)
        sigaddset(&set, taken[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Returns the status of the command there. *job keeps whether a signal has ended it. */
static int finish_job(struct remote_job *job, struct tmk_ssh *s, int wait_status)
{
    const char *reason;
    int status = tmk_ssh_status(s, wait_status, &reason);
    job->is_ended = job->asked_by && (reason || status == 128 + job->asked_by);
    if (reason && !job->is_ended)
        tmk_say("%s", reason);
    return status;
}

/* Run ssh with the request, and its output going to `out`. */
static int run_there(struct remote_job *job, struct tmk_ssh *s, int out)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[1], F_SETFL, O_NONBLOCK) < 0)
        tmk_die("cannot make a pipe: %s", strerror(errno));
    int signals = hold_remote_signals();
    if (signals < 0)
        tmk_die("cannot wait for signals: %s", strerror(errno));
    const struct tmk_ssh_files files = {
        .in = pipes[0], .out = out, .err = STDERR_FILENO, .holds_signals = true};
    job->to_ssh = pipes[1];
    job->ssh = tmk_ssh_start(s, &files);
    close(pipes[0]);
    int status = TMK_EXIT_FINDING;
    if (job->ssh > 0)
        status = finish_job(job, s, talk(job, signals));
    close_pipe(job);
    close(signals);
    return status;
}

/* Run it with its file written here. */
static int run_into_file(struct remote_job *job, struct tmk_ssh *s, const char *path)
{
    struct tmk_output_file file;
    int status = tmk_output_file_open(&file, path);
    if (status != 0)
        return status;
    status = run_there(job, s, file.fd);
    int closed = tmk_output_file_close(&file, status == TMK_EXIT_OK);
    return status ? status : closed;
}

/* Returns the file of the command that belongs here; NULL: there is none. */
static const char *file_of_job(const struct remote_job *job)
{
    for (unsigned i = 0; i < job->args->command->n_options; i++) {
        const struct tmk_option *o = &job->args->command->options[i];
        const char *path = job->args->values[i];
        if (path && strcmp(o->name, "output") == 0 && strcmp(o->value, "FILE") == 0)
            return strcmp(path, "-") == 0 ? NULL : path;
    }
    return NULL;
}

/* Returns whether the command asks for a second file; says that it cannot have one. */
static bool wants_second_file(const struct remote_job *job)
{
    for (unsigned i = 0; i < job->args->command->n_options; i++) {
        const struct tmk_option *o = &job->args->command->options[i];
        if (!job->args->values[i] || strcmp(o->name, "output") == 0 || !o->value ||
            strcmp(o->value, "FILE") != 0)
            continue;
        tmk_say("--%s cannot be had of a process on another machine", o->name);
        return true;
    }
    return false;
}

static int run_remote_job(struct remote_job *job)
{
    struct tmk_ssh s;
    const char *path = file_of_job(job), *reason = NULL;
    if (wants_second_file(job))
        return TMK_EXIT_USAGE;
    job->request.file = path ? name_of_file(path) : NULL;
    if (path && !*job->request.file) {
        tmk_say("--output: '%s' is no name of a file", path);
        return TMK_EXIT_USAGE;
    }
    int status = tmk_ssh_init(&s, job->host, tmk_args_get(job->args, "remote-path"), TMK_SSH_ASKS);
    if (status == 0)
        status = path ? tmk_output_file_check(path) : 0;
    if (status == 0)
        status = tmk_ssh_connect(&s, &reason);
    if (reason)
        tmk_say("%s", reason);
    if (status == 0) {
        read_input(job);
        make_remote_request(job, !path && isatty(STDOUT_FILENO) == 1);
        fflush(stdout);
        status = path ? run_into_file(job, &s, path) : run_there(job, &s, STDOUT_FILENO);
    }
    tmk_ssh_fini(&s);
    if (job->is_ended)
        tmk_relay_die(job->asked_by);
    return status;
}

bool tmk_remote_run(const struct tmk_args *args, int *ret_status)
{
    struct remote_job job = {.args = args, .to_ssh = -1};
    int is_there = args->command->n_targets > 0 ? read_targets(&job) : 0;
    if (is_there != 0)
        *ret_status = is_there < 0 ? TMK_EXIT_USAGE : run_remote_job(&job);
    free(job.bytes);
    tmk_arena_fini(&job.texts);
    return is_there != 0;
}
