/* SPDX-License-Identifier: MIT */
/* cli/run/caretaker.c - see caretaker.h. */
#include "cli/run/caretaker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/signals.h"
#include "cli/front/refused.h"
#include "cli/output/xalloc.h"
#include "cli/run/leftovers.h"
#include "cli/run/raw_signals.h"
#include "trace/account.h"
#include "trace/layout.h"

static const uint64_t look_every_ns = 500000000u;

struct tmk_caretaker {
    char *folder;
    struct tmk_account account;
    pthread_t thread;
    _Atomic uint32_t stop;
};

/* Returns whether there may be rings. They may lie in the run folder, too: memory had no room for
 * them, or a sibling process moved them. */
static bool may_have_rings(const struct tmk_caretaker *c)
{
    const struct tmk_account_page *p = c->account.page;
    return atomic_load(&p->n_rings) > 0 || atomic_load(&p->memory_used) > 0 ||
           access(c->folder, F_OK) == 0;
}

static void *take_care(void *arg)
{
    struct tmk_caretaker *c = arg;
    tmk_raw_signals_mask(SIG_SETMASK, ~0ull); /* the C library's own two, too */
    while (!tmk_futex_wait_while(&c->stop, 0, look_every_ns))
        if (may_have_rings(c)) {
            tmk_account_may_sweep(&c->account, 0); /* the program's processes need not */
            tmk_leftovers_settle(c->folder);
        }
    return NULL;
}

struct tmk_caretaker *tmk_caretaker_start(const char *folder)
{
    const char *folders[] = {getenv("TIDEMARK_RING_DIR"), getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    struct tmk_caretaker *c = tmk_xcalloc(1, sizeof *c);
    sigset_t before;
    if (tmk_account_open(&c->account, folders, 3, folder, NULL) < 0) {
        free(c);
        return NULL;
    }
    c->folder = tmk_xstrdup(folder);
    tmk_signals_hold(&before); /* they are for who waits for the program */
    int rc = pthread_create(&c->thread, NULL, take_care, c);
    tmk_signals_release(&before);
    if (rc == 0)
        return c;
    tmk_account_close(&c->account);
    free(c->folder);
    free(c);
    return NULL;
}

bool tmk_caretaker_stop(struct tmk_caretaker *c)
{
    if (!c)
        return false;
    tmk_futex_set(&c->stop, 1);
    pthread_join(c->thread, NULL);
    for (unsigned i = 0; i < TMK_ACCOUNT_REASONS; i++)
        for (uint32_t n = tmk_account_take_refusals(&c->account, (enum tmk_stop)i); n > 0; n--)
            tmk_refused_add(c->folder, 0, (enum tmk_stop)i);
    bool has_recorded = atomic_load(&c->account.page->n_rings) > 0;
    tmk_account_close(&c->account);
    free(c->folder);
    free(c);
    return has_recorded;
}
