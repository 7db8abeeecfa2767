/* SPDX-License-Identifier: MIT */
/* trace/account.h - the count of the memory that all rings of a run take.
 *
 * The account is one page in a file that all processes of the run on one machine map,
 * `tidemark.UID.HASH.account`: the hash covers the kernel's boot id and the run folder. It lies
 * where rings lie, or in the run folder where there is no tmpfs. A process asks here before it
 * takes memory for a ring; counting is an atomic addition, so a thread of the program may ask.
 * Together they get a tenth of what the tmpfs had free when the run began, at most 256 MiB. A ring
 * counts until it is removed, whoever removes it. disk_share.h counts the disk space of the run.
 *
 * Every process that has the account open holds a shared lock on it, kept by the mapping as a
 * ring's is (ring_file.h), or by a descriptor where it does not lie on a tmpfs. A process that is
 * alone with it begins a new count, and the last to leave removes the file. The memory that a
 * killed process had counted for its ring comes back when that ring is removed; memory lost between
 * two steps comes back with the new count. */
#ifndef TMK_TRACE_ACCOUNT_H
#define TMK_TRACE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/layout.h"

#define TMK_ACCOUNT_MAGIC "TMKACCT1"

enum {
    TMK_ACCOUNT_BYTES = 128,
    TMK_ACCOUNT_NAME_BYTES = 64,
    TMK_ACCOUNT_PATH_BYTES = 3584,
    TMK_ACCOUNT_REASONS = 16,
};

/* The page. Only processes of one machine and one user share it, so it is not part of the trace's
 * format. */
struct tmk_account_page {
    char magic[8];
    uint64_t memory_limit; /* bytes */
    _Atomic uint64_t memory_used;
    _Atomic uint64_t n_rings;  /* made since the count began */
    _Atomic uint64_t swept_ns; /* CLOCK_MONOTONIC when somebody last looked for dead processes */
    /* Processes that are not recorded and could not write a line that says so, by enum tmk_stop. */
    _Atomic uint32_t n_refused[TMK_ACCOUNT_REASONS];
};

struct tmk_account {
    struct tmk_account_page *page; /* NULL: not open */
    bool on_tmpfs;                 /* where it lies, and rings with it */
    bool has_lock_fd;              /* not on a tmpfs */
    int lock_fd;                   /* the descriptor that keeps the lock */
    char folder[TMK_ACCOUNT_PATH_BYTES];
    char name[TMK_ACCOUNT_NAME_BYTES];
};

/* Open the account of `run_folder`, making it if there is none: in the first of the folders (NULL
 * and "" are passed over) that is a tmpfs with 40 MiB free, else in the first that is a tmpfs, else
 * in the run folder. */
int tmk_account_open(struct tmk_account *ret, const char *const *folders, unsigned n_folders,
                     const char *run_folder, struct tmk_error *err);
/* Close the descriptor that keeps the lock, if there is one, because the program would inherit it.
 * On some file systems the next process then begins a new count; no memory counts there, since
 * rings lie elsewhere. */
void tmk_account_leave_unlocked(struct tmk_account *a);
/* Leave the account; the last process to leave removes the file. An account that is not open is
 * accepted. */
void tmk_account_close(struct tmk_account *a);

/* Take memory for a ring that has `held` bytes already: no ring may have more than half of the
 * run's limit. False when not enough is left. Any thread may call it; it makes no system call. */
bool tmk_account_take_memory(struct tmk_account *a, uint64_t held, uint64_t bytes);
void tmk_account_give_memory(struct tmk_account *a, uint64_t bytes);

/* Count a process that is not recorded, for a process that reads the count. False when there is no
 * account. */
bool tmk_account_count_refusal(struct tmk_account *a, enum tmk_stop reason);
/* The same in the run's account in one of the folders, if there is one. */
bool tmk_account_count_refusal_in(const char *const *folders, unsigned n_folders,
                                  const char *run_folder, enum tmk_stop reason);
/* How many such processes were counted since the last call. */
uint32_t tmk_account_take_refusals(struct tmk_account *a, enum tmk_stop reason);

/* Whether it is time to look for rings of dead processes, and nobody else has just begun to. */
bool tmk_account_may_sweep(struct tmk_account *a, uint64_t every_ns);

/* Give back the memory of a trace's ring that was removed. */
void tmk_account_return(const char *trace_path, uint64_t bytes);

/* Remove the account of `run_folder` if no process has it open any more: the last one was killed.
 */
void tmk_account_drop_idle(const char *run_folder);

/* Remove the account `name` in the open folder `folder` if it is the caller's and no process has it
 * open. */
bool tmk_account_remove_idle(int folder, const char *name);
/* Whether tmk_account_remove_idle() would remove it. */
bool tmk_account_is_idle(int folder, const char *name);

/* Whether a file name is an account's. */
bool tmk_account_is_name(const char *name);

#endif
