/* SPDX-License-Identifier: MIT */
/* base/bytes.c - the slow half of bytes.h: it reads byte by byte and checks every bound. */
#include "base/bytes.h"

uint64_t tmk_view_varint_slow(struct tmk_view *v)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (v->at == v->end)
            return tmk_view_fail(v);
        uint8_t byte = *v->at++;
        uint64_t bits = byte & 0x7fu;
        if (shift == 63 && bits > 1)
            return tmk_view_fail(v);
        value |= bits << shift;
        if (!(byte & 0x80))
            return value;
    }
    return tmk_view_fail(v);
}
