/* SPDX-License-Identifier: MIT */
/* interop/weights/scan_kernels.h - the loops of weight_scan.h, built several times: see
 * meson.build. */
#ifndef TMK_INTEROP_WEIGHTS_SCAN_KERNELS_H
#define TMK_INTEROP_WEIGHTS_SCAN_KERNELS_H

#include <stdint.h>

#include "interop/weights/weights.h"

/* What is known of so many elements, to be added to. Start with tmk_scan_sums_none. */
struct tmk_scan_sums {
    uint64_t n, n_nan, n_inf, n_zero, n_denormal;
    uint64_t first_nan, first_inf;
    double min, max; /* of finite ones; min > max: none */
    double sum, squares;
};

#define TMK_SCAN_SUMS_NONE                                                                         \
    {                                                                                              \
        .first_nan = UINT64_MAX, .first_inf = UINT64_MAX, .min = __builtin_inf(),                  \
        .max = -__builtin_inf()                                                                    \
    }

/* Add `n` elements at any address. Of complex numbers, nothing. */
void tmk_scan_kernel_plain(enum tmk_weight_type type, const void *data, uint64_t n,
                           struct tmk_scan_sums *s);
void tmk_scan_kernel_avx2(enum tmk_weight_type type, const void *data, uint64_t n,
                          struct tmk_scan_sums *s);
void tmk_scan_kernel_avx512(enum tmk_weight_type type, const void *data, uint64_t n,
                            struct tmk_scan_sums *s);

/* What can be done faster of types of one or two bytes (scan_narrow.c): returns how many elements
 * it has added, from the first on; the rest is for the loops that know everything. */
uint64_t tmk_scan_narrow_avx512(enum tmk_weight_type type, const void *data, uint64_t n,
                                struct tmk_scan_sums *s);

#endif
