/* SPDX-License-Identifier: MIT */
/* inject/subject.h - the process to attach to, as /proc shows it, and why attaching is not
 * possible.
 *
 * Reading facts and drawing conclusions are separate: conclusions are functions from facts to a
 * sentence that says what to do, so each refusal is tested on machines that never refuse. */
#ifndef TMK_INJECT_SUBJECT_H
#define TMK_INJECT_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct tmk_subject {
    pid_t pid;
    pid_t process;   /* the process that the thread pid belongs to; pid itself for a process */
    pid_t inner_pid; /* its number in its own PID namespace */
    pid_t tracer;    /* the process that traces it already; 0: none */
    char tracer_name[32];
    uid_t uid;      /* real, effective and saved, when those are one */
    bool mixed_uid; /* the three differ: set-user-ID */
    char state;     /* as ps shows it: R, S, D, T, t, Z, X */
    bool is_kernel; /* it is a kernel thread */
    bool has_seccomp;
    uint64_t n_unknown_filters; /* its seccomp filters if they are not its container's, else 0 */
    bool is_elf64;              /* its program is a 64-bit ELF file */
    uint16_t machine;           /* e_machine; 0: unknown */
    bool same_root;             /* it sees the same files under / as we do */
    char name[64];              /* of the program, for the run's folder */
};

/* The process that asks: our own. */
struct tmk_asker {
    pid_t pid;
    uid_t uid;
    bool may_trace;      /* has CAP_SYS_PTRACE */
    int ptrace_scope;    /* Yama's setting; 0 without Yama */
    uint64_t n_filters;  /* seccomp filters around our own process */
    bool trusts_filters; /* TIDEMARK_SECCOMP=trust */
};

/* Read the facts about `pid`. 0, or TMK_ENOENT with the reason. */
int tmk_subject_read(pid_t pid, struct tmk_subject *ret, struct tmk_error *err);
/* Read only a thread's state and its number in its own namespace; false: it has ended. */
bool tmk_subject_read_thread(pid_t tid, char *ret_state, pid_t *ret_inner);
/* List the threads of the process, at most `max`; returns how many. */
size_t tmk_subject_threads(pid_t pid, pid_t *ret, size_t max);
void tmk_asker_read(struct tmk_asker *ret);

/* Check whether `us` can attach to `s`: 0 when nothing is known to prevent it, else TMK_EINVAL with
 * what to do. */
int tmk_subject_check(const struct tmk_subject *s, const struct tmk_asker *us,
                      struct tmk_error *err);

/* Explain why the kernel said no with errno `os_error`: returns TMK_EINVAL with the likely
 * reason. */
int tmk_subject_explain(const struct tmk_subject *s, const struct tmk_asker *us, int os_error,
                        struct tmk_error *err);

/* Whether `path` is the same file for the process as for us. */
bool tmk_subject_sees(const struct tmk_subject *s, const char *path);

#endif
