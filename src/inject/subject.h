/* SPDX-License-Identifier: MIT */
/* inject/subject.h - the process to attach to, as /proc shows it, and why it cannot be.
 *
 * What is read is kept apart from what is concluded: the latter are functions from facts to a
 * sentence that says what to do, so that each refusal is tested on machines that never refuse. */
#ifndef TMK_INJECT_SUBJECT_H
#define TMK_INJECT_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct tmk_subject {
    pid_t pid;
    pid_t process;   /* the process of which pid is a thread; pid itself for a process */
    pid_t inner_pid; /* its number for itself, in its own PID namespace */
    pid_t tracer;    /* that has it already, 0: none */
    char tracer_name[32];
    uid_t uid;      /* real, effective and saved, when those are one */
    bool mixed_uid; /* they are not: set-user-ID */
    char state;     /* as ps shows it: R, S, D, T, t, Z, X */
    bool is_kernel; /* a thread of the kernel's */
    bool has_seccomp;
    uint64_t n_unknown_filters; /* seccomp filters when they are not its container's; else 0 */
    bool is_elf64;              /* what it runs */
    uint16_t machine;           /* e_machine; 0: unknown */
    bool same_root;             /* sees the same files under / as we */
    char name[64];              /* of the program, for the run's folder */
};

/* Who asks. */
struct tmk_asker {
    pid_t pid;
    uid_t uid;
    bool may_trace;      /* has CAP_SYS_PTRACE */
    int ptrace_scope;    /* of Yama; 0 where there is none */
    uint64_t n_filters;  /* of seccomp, around us */
    bool trusts_filters; /* TIDEMARK_SECCOMP=trust */
};

/* Facts about `pid`. 0, or TMK_ENOENT with the reason. */
int tmk_subject_read(pid_t pid, struct tmk_subject *ret, struct tmk_error *err);
/* Of a thread only its state and its number in its own namespace; false: it is gone. */
bool tmk_subject_read_thread(pid_t tid, char *ret_state, pid_t *ret_inner);
/* The threads of the process, at most `max`; how many. */
size_t tmk_subject_threads(pid_t pid, pid_t *ret, size_t max);
void tmk_asker_read(struct tmk_asker *ret);

/* 0 when nothing is known to be in the way, else TMK_EINVAL and what to do. */
int tmk_subject_check(const struct tmk_subject *s, const struct tmk_asker *us,
                      struct tmk_error *err);

/* The kernel has said no, with errno `os_error`: TMK_EINVAL and why that may be. */
int tmk_subject_explain(const struct tmk_subject *s, const struct tmk_asker *us, int os_error,
                        struct tmk_error *err);

/* Is `path` the same file for the process as for us? */
bool tmk_subject_sees(const struct tmk_subject *s, const char *path);

#endif
