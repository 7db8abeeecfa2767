/* SPDX-License-Identifier: MIT */
/* sql/spread.c - see spread.h. */
#include "sql/spread.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

uint64_t tmk_spread_u32(struct tmk_view in, uint32_t *out, uint64_t max)
{
    const uint8_t *at = in.at, *end = in.end;
    uint64_t n = 0;
    while (n < max && end - at >= 4) {
        uint32_t word = tmk_load_u32(at);
        if (!(word & 0x80)) {
            out[n++] = word & 0x7f;
            at++;
        } else if (!(word & 0x8000)) {
            out[n++] = (word & 0x7f) | (word >> 1 & 0x3f80);
            at += 2;
        } else {
            struct tmk_view rest = {.at = at, .end = end};
            out[n] = (uint32_t)tmk_view_varint(&rest);
            if (rest.bad)
                return n;
            n++;
            at = rest.at;
        }
    }
    for (in.at = at; n < max && in.at < in.end; n++) {
        out[n] = (uint32_t)tmk_view_varint(&in);
        if (in.bad)
            break;
    }
    return n;
}

/* The number that `starts` marks first in the word at `at`, if any; clears the mark. */
static inline uint8_t next_low3(const uint8_t *at, uint64_t *starts)
{
    uint8_t value = at[(unsigned)__builtin_ctzll(*starts | UINT64_C(1) << 63) >> 3] & 7;
    *starts &= *starts - 1;
    return value;
}

/* Decode eight bytes at a time: a number begins after each byte without its high bit. The first
 * four are written whether they are there or not, which is quicker than testing. */
uint64_t tmk_spread_low3(struct tmk_view in, uint8_t *out, uint64_t max)
{
    uint64_t n = 0, begins = 0x80; /* mark of a number that begins with the next word */
    for (; n < max && in.end - in.at >= 8; in.at += 8) {
        uint64_t stops = ~tmk_load_u64(in.at) & HIGH_BITS;
        uint64_t starts = stops << 8 | begins;
        unsigned n_starts = (unsigned)(((starts >> 7) * UINT64_C(0x0101010101010101)) >> 56);
        begins = stops >> 56;
        for (unsigned i = 0; i < 4; i++)
            out[n + i] = next_low3(in.at, &starts);
        for (unsigned i = 4; i < n_starts; i++)
            out[n + i] = next_low3(in.at, &starts);
        n += n_starts;
    }
    for (; n < max && in.at < in.end; in.at++) {
        if (begins)
            out[n++] = *in.at & 7;
        begins = *in.at & 0x80 ? 0 : 0x80;
    }
    return n < max ? n : max;
}
