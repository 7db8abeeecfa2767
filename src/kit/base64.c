/* SPDX-License-Identifier: MIT */
/* kit/base64.c - see base64.h. */
#include "kit/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void tmk_base64_encode(const void *bytes, size_t n, char *to)
{
    const uint8_t *from = bytes;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)from[i] << 16;
        three |= i + 1 < n ? (uint32_t)from[i + 1] << 8 : 0;
        three |= i + 2 < n ? from[i + 2] : 0;
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
        *to++ = i + 2 < n ? digits[three & 63] : '=';
    }
    *to = '\0';
}
