/* SPDX-License-Identifier: MIT */
/* cli/remote/hosts.c - see hosts.h.
 *
 * ssh writes into files in memory: nothing has to be read while it runs, and the ssh that keeps the
 * connection may inherit them without anybody waiting for their end. */
#include "cli/remote/hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "cli/remote/request.h"
#include "cli/remote/ssh.h"
#include "kit/arena.h"
#include "kit/language.h"

enum { MOST_AT_ONCE = 8, MOST_BYTES = 64 << 20, PATIENCE_S = 30 };
#define PATIENCE_NS (PATIENCE_S * 1000000000ull)

struct host_talk { /* with one machine */
    struct tmk_host_answer *answer;
    struct tmk_ssh ssh;
    pid_t pid;      /* 0: not started, or over */
    int request[2]; /* a pipe: its end would end the command */
    int out, err;   /* files in memory */
    uint64_t start_ns;
    bool is_late;
};

/* ---- one of them ---- */

/* Put the request into the pipe. It is small: a pipe takes 64 KiB at once. */
static bool send_request_to(struct host_talk *talk, const char **words)
{
    struct tmk_arena texts = {0};
    struct tmk_request request = {.host = talk->answer->host, .words = words};
    char *bytes = NULL;
    size_t n = 0;
    request.settings = tmk_remote_settings(&texts, talk->answer->host, false);
    FILE *out = tmk_xmemstream(&bytes, &n);
    tmk_request_write(out, &request);
    bool good = fclose(out) == 0 && n < 65536 && write(talk->request[1], bytes, n) == (ssize_t)n;
    free(bytes);
    tmk_arena_fini(&texts);
    return good;
}

static void close_talk(struct host_talk *talk)
{
    int all[] = {talk->request[0], talk->request[1], talk->out, talk->err};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] >= 0)
            close(all[i]);
    tmk_ssh_fini(&talk->ssh);
    talk->request[0] = talk->request[1] = talk->out = talk->err = -1;
}

/* Start to ask. 0, or an exit status after a message. talk->pid stays 0 where nothing was started;
 * then close_talk(). */
static int start_talk(struct host_talk *talk, const char *remote_path, const char **words,
                      bool is_alone)
{
    const char *reason = NULL;
    talk->request[0] = talk->request[1] = talk->out = talk->err = -1;
    int status = tmk_ssh_init(&talk->ssh, talk->answer->host, remote_path,
                              is_alone ? TMK_SSH_ASKS : TMK_SSH_BATCH);
    if (status != 0)
        return status;
    if (is_alone && tmk_ssh_connect(&talk->ssh, &reason) != 0) {
        talk->answer->status = -1;
        talk->answer->reason = tmk_xstrdup(reason);
        return 0;
    }
    talk->out = memfd_create("stdout", MFD_CLOEXEC);
    talk->err = memfd_create("stderr", MFD_CLOEXEC);
    if (talk->out < 0 || talk->err < 0 || pipe2(talk->request, O_CLOEXEC) < 0 ||
        !send_request_to(talk, words)) {
        tmk_say("cannot ask %s: %s", talk->answer->host, strerror(errno));
        return TMK_EXIT_FINDING;
    }
    const struct tmk_ssh_files files = {.in = talk->request[0], .out = talk->out, .err = talk->err};
    pid_t pid = tmk_ssh_start(&talk->ssh, &files);
    if (pid < 0)
        return TMK_EXIT_FINDING;
    prlimit(pid, RLIMIT_FSIZE, &(struct rlimit){MOST_BYTES, MOST_BYTES}, NULL);
    talk->pid = pid;
    talk->start_ns = tmk_clock_monotonic_ns();
    return 0;
}

/* Returns what is in a file in memory, with a zero byte behind; the caller's. */
static char *read_memory_file(int fd, size_t *ret_n)
{
    struct stat st;
    size_t n = fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0, have = 0;
    char *text = tmk_xcalloc(n + 1, 1);
    for (ssize_t got; have < n && (got = pread(fd, text + have, n - have, (off_t)have)) > 0;)
        have += (size_t)got;
    *ret_n = have;
    return text;
}

/* Returns the last line of what was said, without our name before it; the caller's. NULL: nothing
 * was said. */
static char *last_said_line(const char *said)
{
    const char *end = said + strlen(said);
    while (end > said && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    const char *start = end;
    while (start > said && start[-1] != '\n')
        start--;
    if (strncmp(start, "tidemark: ", 10) == 0)
        start += 10;
    return end > start ? tmk_xformat("%.*s", (int)(end - start), start) : NULL;
}

static void finish_talk(struct host_talk *talk, int wait_status)
{
    struct tmk_host_answer *answer = talk->answer;
    const char *sentence = NULL;
    size_t n_said;
    answer->out = read_memory_file(talk->out, &answer->n_out);
    answer->said = read_memory_file(talk->err, &n_said);
    int status = tmk_ssh_status(&talk->ssh, wait_status, &sentence);
    answer->status = sentence ? -1 : status;
    bool has_said_why = !sentence || WEXITSTATUS(wait_status) == 255; /* tidemark there, or ssh */
    if (talk->is_late)
        answer->reason = tmk_xformat(_("it did not answer within %d s"), PATIENCE_S);
    else if (answer->status != 0 && has_said_why)
        answer->reason = last_said_line(answer->said);
    if (answer->status != 0 && !answer->reason)
        answer->reason = sentence ? tmk_xstrdup(sentence)
                                  : tmk_xformat(_("tidemark there ended with status %d"), status);
    talk->pid = 0;
    close_talk(talk);
}

/* ---- all of them ---- */

struct hosts_asked {
    struct host_talk *talks;
    size_t n, n_started, n_running;
    int status;
};

static void start_some(struct hosts_asked *all, const char *remote_path, const char **words)
{
    while (all->status == 0 && all->n_running < MOST_AT_ONCE && all->n_started < all->n) {
        struct host_talk *talk = &all->talks[all->n_started++];
        all->status = start_talk(talk, remote_path, words, all->n == 1);
        if (talk->pid > 0)
            all->n_running++;
        else
            close_talk(talk);
    }
}

/* Take those that have ended, and end those that take too long. */
static void take_ended(struct hosts_asked *all)
{
    uint64_t now = tmk_clock_monotonic_ns();
    for (size_t i = 0; i < all->n_started; i++) {
        struct host_talk *talk = &all->talks[i];
        int wait_status;
        if (talk->pid == 0)
            continue;
        if (waitpid(talk->pid, &wait_status, WNOHANG) == talk->pid) {
            finish_talk(talk, wait_status);
            all->n_running--;
        } else if (now - talk->start_ns > PATIENCE_NS) {
            talk->is_late = true;
            kill(talk->pid, SIGKILL);
        }
    }
}

int tmk_hosts_ask(struct tmk_host_answer *answers, size_t n, const char *remote_path,
                  const char **words)
{
    struct hosts_asked all = {.talks = tmk_xcalloc(n, sizeof *all.talks), .n = n};
    const struct timespec second = {.tv_sec = 1};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (size_t i = 0; i < n; i++)
        all.talks[i].answer = &answers[i];
    do {
        start_some(&all, remote_path, words);
        if (all.n_running > 0)
            (void)sigtimedwait(&set, NULL, &second);
        take_ended(&all);
    } while (all.n_running > 0 || (all.status == 0 && all.n_started < n));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    free(all.talks);
    return all.status;
}

void tmk_hosts_fini(struct tmk_host_answer *answers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(answers[i].out);
        free(answers[i].said);
        free(answers[i].reason);
    }
}
