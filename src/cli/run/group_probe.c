/* SPDX-License-Identifier: MIT */
/* cli/run/group_probe.c - see group_probe.h. */
#include "cli/run/group_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/raw_signals.h"

enum { PATIENCE_MS = 250, MAX_CLOSED = 4096 };

/* ---- in the probe ---- */

/* Close all descriptors from `first` on. The probe must hold nothing open that others wait to see
 * closed: pipes, terminals, locks. */
static void close_from(unsigned first)
{
    if (close_range(first, ~0u, 0) == 0)
        return;
    for (int fd = (int)first; fd < MAX_CLOSED; fd++)
        close(fd);
}

_Noreturn static void answer_questions(int ask, int answer)
{
    uint8_t number;
    if (dup2(ask, 0) < 0 || dup2(answer, 1) < 0)
        _exit(1);
    close(2);
    close_from(3);
    prctl(PR_SET_NAME, "tidemark-group");
    while (read(0, &number, 1) == 1) {
        siginfo_t info;
        uint8_t had = tmk_raw_signals_wait(tmk_raw_signal_bit(number), &info, 0) == number;
        if (write(1, &had, 1) != 1)
            break;
    }
    _exit(0);
}

/* ---- the starter ---- */

struct starting {
    int ask, answer; /* the probe's ends */
    int end;
    pid_t pid;
    sem_t done;
};

static void *start_and_stay(void *arg)
{
    struct starting *s = arg;
    char nothing;
    int end = s->end;
    tmk_raw_signals_mask(SIG_SETMASK, ~0ull); /* the C library unblocks 32 and 33 in a thread */
    s->pid = fork();
    if (s->pid == 0)
        answer_questions(s->ask, s->answer);
    sem_post(&s->done); /* `s` is gone from here on */
    while (read(end, &nothing, 1) < 0 && errno == EINTR)
        ;
    close(end);
    return NULL;
}

/* ---- on our side ---- */

static void close_pipes(int pipes[][2], unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
}

/* Start a thread with the smallest stack. The C library gives the rest of a larger one back by
 * madvise(), which a seccomp filter around us may forbid. */
static bool start_probe_thread(pthread_t *ret, struct starting *s)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
    bool started = pthread_create(ret, &attributes, start_and_stay, s) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

void tmk_group_probe_start(struct tmk_group_probe *ret)
{
    enum { ASK, ANSWER, END, N };
    int pipes[N][2];
    *ret = (struct tmk_group_probe){0};
    for (unsigned i = 0; i < N; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0) {
            close_pipes(pipes, i);
            return;
        }
    const uint64_t blocked = tmk_raw_signals_mask(SIG_BLOCK, 0);
    struct starting s = {.ask = pipes[ASK][0], .answer = pipes[ANSWER][1], .end = pipes[END][0]};
    sem_init(&s.done, 0, 0);
    bool started = start_probe_thread(&ret->starter, &s);
    tmk_raw_signals_mask(SIG_SETMASK, blocked); /* it unblocks 32 and 33 here too */
    if (!started) {
        close_pipes(pipes, N);
        return;
    }
    while (sem_wait(&s.done) < 0)
        ;
    close(pipes[ASK][0]);
    close(pipes[ANSWER][1]);
    ret->pid = s.pid;
    ret->ask = pipes[ASK][1];
    ret->answer = pipes[ANSWER][0];
    ret->starter_end = pipes[END][1];
    if (s.pid < 0)
        tmk_group_probe_stop(ret);
}

void tmk_group_probe_stop(struct tmk_group_probe *p)
{
    if (!p->pid)
        return;
    close(p->ask);
    close(p->answer);
    if (p->pid > 0) {
        kill(p->pid, SIGKILL); /* it may have been stopped */
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(p->starter_end);
    pthread_join(p->starter, NULL);
    p->pid = 0;
}

bool tmk_group_probe_take(struct tmk_group_probe *p, int number)
{
    uint8_t asked = (uint8_t)number, had = 0;
    if (!p->pid)
        return false;
    (void)!setpgid(0, getpgrp()); /* changes nothing, but waits for who reads the list */
    struct pollfd answer = {.fd = p->answer, .events = POLLIN};
    bool answered = write(p->ask, &asked, 1) == 1 && poll(&answer, 1, PATIENCE_MS) == 1 &&
                    read(p->answer, &had, 1) == 1;
    if (!answered)
        tmk_group_probe_stop(p); /* somebody killed or stopped it */
    return answered && had;
}
