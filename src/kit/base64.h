/* SPDX-License-Identifier: MIT */
/* kit/base64.h - bytes as text, by RFC 4648. */
#ifndef TMK_KIT_BASE64_H
#define TMK_KIT_BASE64_H

#include <stddef.h>

/* The characters that `n` bytes become, without a zero byte. */
static inline size_t tmk_base64_length(size_t n)
{
    return (n + 2) / 3 * 4;
}

/* Write them and a zero byte to `to`, which has room for tmk_base64_length(n) + 1. */
void tmk_base64_encode(const void *bytes, size_t n, char *to);

#endif
