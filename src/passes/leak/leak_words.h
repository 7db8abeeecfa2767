/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_words.h - findings of the leak pass in words. Every view that speaks of a leak
 * takes its sentences from here, so that all say the same. */
#ifndef TMK_PASSES_LEAK_LEAK_WORDS_H
#define TMK_PASSES_LEAK_LEAK_WORDS_H

#include "passes/leak/leak.h"
#include "passes/steps.h"

struct tmk_leakage;

enum { TMK_LEAK_WORDS_BYTES = 512 };

/* Write to the caller's buffer of TMK_LEAK_WORDS_BYTES; each returns it. */

/* The evidence for a leak: "made in steps 3, 7, 11, ...; all 30 of them are still alive in step
 * 119". */
const char *tmk_leak_evidence_text(const struct tmk_leak *leak, char *buffer);

/* How often it grows, to follow a rate a step: ", 545.0 KiB every 8th step", ", 545.0 KiB at once,
 * 30 times in 119 steps"; "" when it is every step. */
const char *tmk_leak_cadence_text(const struct tmk_leak *leak, char *buffer);

/* Why growth was not judged, to follow "not judged a leak:". */
const char *tmk_doubt_text(const struct tmk_leak *doubt, char *buffer);

/* The verdict on a process, a clause: "memory kept after a step GROWS by 384.0 KiB at train.py:41",
 * "... grew by 107.9 MiB in 59 rises; not judged a leak: ...", "... is steady". The trend of what
 * is kept is said only where nothing grew by the threshold. */
const char *tmk_leakage_text(const struct tmk_leakage *l, enum tmk_steps_trend trend, char *buffer);

#endif
