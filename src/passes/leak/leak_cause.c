/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_cause.c - see leak_cause.h. */
#include "passes/leak/leak_cause.h"

#include "forecast/oom_forecast.h"
#include "passes/leak/leak.h"
#include "passes/leak/leaks.h"

static bool has_leak_on(const struct tmk_leakage *l, uint16_t device)
{
    for (uint64_t i = 0; i < tmk_leakage_n(l); i++)
        if (tmk_leakage_get(l, i)->device == device)
            return true;
    return false;
}

/* Why what is kept grows though it is no leak: work, or not known. */
static enum tmk_growth_cause cause_of_doubts(const struct tmk_leakage *l, uint16_t device)
{
    for (uint64_t i = 0; i < tmk_leakage_n_doubts(l); i++) {
        const struct tmk_leak *doubt = tmk_leakage_doubt(l, i);
        if (doubt->device == device && doubt->doubt == TMK_DOUBT_WORK)
            return TMK_GROWTH_BATCH;
    }
    return TMK_GROWTH_STEADY;
}

void tmk_leak_settle_cause(const struct tmk_leakage *l, struct tmk_forecast *f)
{
    bool grows = f->cause == TMK_GROWTH_STEADY || f->cause == TMK_GROWTH_BATCH;
    if (tmk_leakage_verdict(l) == TMK_LEAK_TOO_SHORT)
        return;
    if (has_leak_on(l, f->device))
        f->cause = grows ? TMK_GROWTH_LEAK : f->cause;
    else if (f->cause == TMK_GROWTH_LEAK)
        f->cause = cause_of_doubts(l, f->device);
}
