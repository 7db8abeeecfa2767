/* SPDX-License-Identifier: MIT */
/* sql/spread.h - decode many varints at once, into an array.
 *
 * A varint after the other costs the time to find its end before the next can be looked at, and in
 * between the program does something else. A section of them at once is a loop that stays in the
 * processor's good graces: two to four times as quick. Bytes may be hostile: nothing is read beyond
 * `end`, numbers too long are cut, a number that is cut off at the end does not count. */
#ifndef TMK_SQL_SPREAD_H
#define TMK_SQL_SPREAD_H

#include <stdint.h>

#include "base/bytes.h"

/* Low 32 bits of at most `max` numbers; how many there were. */
uint64_t tmk_spread_u32(struct tmk_view in, uint32_t *out, uint64_t max);

/* Low three bits of at most `max` numbers. `out` needs room for 8 more. */
uint64_t tmk_spread_low3(struct tmk_view in, uint8_t *out, uint64_t max);

#endif
