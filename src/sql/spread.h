/* SPDX-License-Identifier: MIT */
/* sql/spread.h - decodes many varints at once into an array.
 *
 * Decoding varints one by one costs the time to find each one's end before the next can be looked
 * at, and the program does something else in between. Decoding a whole section is one loop that
 * the processor predicts and pipelines well: two to four times as quick. Bytes may be hostile:
 * nothing is read beyond `end`, numbers that are too long are truncated, and a number cut off at
 * the end does not count. */
#ifndef TMK_SQL_SPREAD_H
#define TMK_SQL_SPREAD_H

#include <stdint.h>

#include "base/bytes.h"

/* Store the low 32 bits of at most `max` numbers. Returns how many there were. */
uint64_t tmk_spread_u32(struct tmk_view in, uint32_t *out, uint64_t max);

/* Store the low three bits of at most `max` numbers. `out` needs room for 8 more. */
uint64_t tmk_spread_low3(struct tmk_view in, uint8_t *out, uint64_t max);

#endif
