/* SPDX-License-Identifier: MIT */
/* record/core/refusal.c - see refusal.h. */
#include "record/core/refusal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/core/recorder.h"
#include "record/core/ring_space.h"
#include "trace/account.h"
#include "trace/refusals.h"

enum { MOST_LINES = 100 }; /* per reason, at once */

struct refusal_counts { /* a page that forked children share */
    _Atomic uint32_t n[TMK_ACCOUNT_REASONS];
};

static struct refusal_counts *shared_counts; /* NULL: it was not made */

/* Prefers the page to the account: a child that has become another user has an account of its own,
 * which nobody reads. */
static void count_refusal(enum tmk_stop reason)
{
    if (shared_counts && (unsigned)reason < TMK_ACCOUNT_REASONS)
        atomic_fetch_add(&shared_counts->n[reason], 1);
    else if (reason != TMK_STOP_SECCOMP)
        tmk_ring_space_count_refusal(reason);
}

void tmk_refusal_note(enum tmk_stop reason, int os_error)
{
    static _Atomic uint32_t said =
        UINT32_MAX; /* the process that has said it; a forked child has reasons of its own */
    int before = errno;
    uint32_t pid = (uint32_t)getpid();
    const char *folder = tmk_recorder.settings.run_folder;
    struct tmk_refusal refusal = {.pid = pid, .reason = reason, .os_error = os_error};
    if (folder[0] == '/' && atomic_exchange(&said, pid) != pid &&
        tmk_refusals_append(folder, &refusal) < 0)
        count_refusal(reason);
    errno = before;
}

void tmk_refusal_prepare(void)
{
    if (shared_counts)
        return;
    void *page = mmap(NULL, sizeof *shared_counts, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_counts = page == MAP_FAILED ? NULL : page;
}

void tmk_refusal_tell(const char *run_folder)
{
    for (uint32_t i = 0; shared_counts && i < TMK_ACCOUNT_REASONS; i++) {
        struct tmk_refusal refusal = {.reason = (enum tmk_stop)i};
        uint32_t n = atomic_exchange(&shared_counts->n[i], 0);
        for (uint32_t k = 0; k < n && k < MOST_LINES; k++)
            if (tmk_refusals_append(run_folder, &refusal) < 0)
                tmk_ring_space_count_refusal(refusal.reason);
    }
}
