/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_cause.h - the cause of a forecast where the leak pass has judged, so that both
 * say the same. */
#ifndef TMK_PASSES_LEAK_LEAK_CAUSE_H
#define TMK_PASSES_LEAK_LEAK_CAUSE_H

#include "passes/forecast.h"

struct tmk_leakage;

/* The steps alone tell growth of what is kept from growth of what a step needs, but not why
 * something is kept: a forecast's cause is "leak" only if the leak pass found one on its device. */
void tmk_leak_settle_cause(const struct tmk_leakage *l, struct tmk_forecast *f);

#endif
