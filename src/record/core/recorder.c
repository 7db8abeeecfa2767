/* SPDX-License-Identifier: MIT */
/* record/core/recorder.c - see recorder.h. */
#include "record/core/recorder.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/futex.h"
#include "record/core/hot.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* Until the page is there (or when there is none): off. */
static struct tmk_control no_control = {.phase = TMK_PHASE_OFF};
union tmk_control_page tmk_control_page __attribute__((aligned(TMK_CONTROL_BYTES)));
struct tmk_recorder tmk_recorder TMK_HOT_LAST = {.control = &no_control};

/* For kernels without MADV_WIPEONFORK (before 4.14): the C library's forks at least. */
static void wipe_control(void)
{
    memset((void *)tmk_recorder.control, 0, sizeof *tmk_recorder.control);
}

bool tmk_recorder_has_page(void)
{
    return tmk_recorder.control != &no_control;
}

struct tmk_control *tmk_recorder_make_page(void)
{
    union tmk_control_page *page = &tmk_control_page;
    if (madvise(page, sizeof *page, MADV_WIPEONFORK) != 0 &&
        pthread_atfork(NULL, NULL, wipe_control) != 0)
        return NULL;
    return &page->control;
}

void tmk_recorder_set_armed(bool ok)
{
    struct tmk_control *c = tmk_recorder.control;
    if (ok) {
        uint32_t next = tmk_recorder.generation + 1;
        tmk_recorder.generation = next == 0 || next >= TMK_NO_GENERATION ? 1 : next;
        atomic_store(&c->generation, tmk_recorder.generation);
    }
    tmk_futex_set(&c->phase, ok ? TMK_PHASE_ARMED : TMK_PHASE_OFF);
}

void tmk_recorder_disarm(void)
{
    atomic_store(&tmk_recorder.control->generation, 0);
    atomic_store(&tmk_fast_path.generation, 0); /* after it: see look_whether_usual() */
    atomic_store(&tmk_recorder.control->phase, TMK_PHASE_OFF);
}

void tmk_recorder_set_finished(void)
{
    atomic_store(&tmk_recorder.control->running, 0);
    tmk_futex_set(&tmk_recorder.control->finished, 1);
}
