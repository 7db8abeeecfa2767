/* SPDX-License-Identifier: MIT */
/* kit/amount.h - sizes, times and counts: for people, and back from what people type.
 *
 * Each text function writes into the caller's buffer of TMK_AMOUNT_BYTES and returns it. */
#ifndef TMK_KIT_AMOUNT_H
#define TMK_KIT_AMOUNT_H

#include <stdint.h>

enum { TMK_AMOUNT_BYTES = 32 };

/* A size that is not known, which is not zero: null in JSON, an empty cell in CSV, "-" in a table.
 */
#define TMK_BYTES_UNKNOWN UINT64_MAX

/* Writes a size as "0 B", "1.5 KiB", "12.0 MiB", "79.15 GiB": units are powers of 1024. */
const char *tmk_size_text(uint64_t size_bytes, char *buffer);
/* Writes a time as "850 ns", "12.3 us", "4.56 ms", "1.234 s", "2 min 05 s", "3 h 02 min". */
const char *tmk_time_text(uint64_t ns, char *buffer);
/* Writes a count as "1,234,567". */
const char *tmk_count_text(uint64_t n, char *buffer);
/* Writes a share as "12 %"; "<1 %" for a small part that is not zero; "-" when the whole is 0. */
const char *tmk_percent_text(uint64_t part, uint64_t whole, char *buffer);

/* Reads a size such as "4096" (bytes), "512MiB", "1.5 G", "2gb". Units are powers of 1024, case
 * does not matter. Returns 0, or TMK_EINVAL with *ret_bytes untouched. */
int tmk_size_parse(const char *text, uint64_t *ret_bytes);
/* Reads a time such as "1.5s", "300ms", "20us", "7ns", "2min", "2m", "1h"; a unit is needed.
 * Returns 0 or TMK_EINVAL. */
int tmk_time_parse(const char *text, uint64_t *ret_ns);
/* The same, and a number without a unit is seconds. */
int tmk_seconds_parse(const char *text, uint64_t *ret_ns);
/* The nearest whole number of bytes; 0 for a negative number or NAN, the largest for more. */
static inline uint64_t tmk_size_whole(double size_bytes)
{
    return !(size_bytes > 0) ? 0 : size_bytes >= 1.8e19 ? UINT64_MAX : (uint64_t)(size_bytes + 0.5);
}
/* Reads a whole number with an optional sign and nothing else. Returns 0 or TMK_EINVAL. */
int tmk_integer_parse(const char *text, int64_t *ret);

/* A megabyte as torch's documents count it: a power of 1024. */
#define TMK_MB 1048576.0
#define TMK_GB 1073741824.0

#endif
