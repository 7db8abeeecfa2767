/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_words.h - findings of the leak pass in words. Every view that speaks of a leak
 * takes its sentences from here, so that all say the same. */
#ifndef TMK_PASSES_LEAK_LEAK_WORDS_H
#define TMK_PASSES_LEAK_LEAK_WORDS_H

#include "passes/leak/leak.h"

enum { TMK_LEAK_WORDS_BYTES = 512 };

/* Write to the caller's buffer of TMK_LEAK_WORDS_BYTES; each returns it. */

/* The evidence for a leak: "made in steps 3, 7, 11, ...; all 30 of them are still alive in step
 * 119". */
const char *tmk_leak_evidence_text(const struct tmk_leak *leak, char *buffer);

/* How often it grows: "every step", "every 8th step", "30 times in 119 steps". */
const char *tmk_leak_cadence_text(const struct tmk_leak *leak, char *buffer);

/* Why growth was not judged, to follow "not judged a leak:". */
const char *tmk_doubt_text(const struct tmk_leak *doubt, char *buffer);

#endif
