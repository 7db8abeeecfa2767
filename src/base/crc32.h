/* SPDX-License-Identifier: MIT */
/* base/crc32.h - CRC-32 (IEEE 802.3, as in zlib): the trace's checksum. */
#ifndef TMK_BASE_CRC32_H
#define TMK_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of `n` bytes, which continues from `crc` (0 to begin). */
uint32_t tmk_crc32(uint32_t crc, const void *bytes, size_t n);

#endif
