/* SPDX-License-Identifier: MIT */
/* interop/weights/weight_scan.h - look at every number of the tensors: what is no number, extremes,
 * mean, spread.
 *
 * At the speed of the memory: files are mapped and cut into pieces that all cores take in turn, and
 * a piece goes through one of three builds of the same loops (scan_kernels.c), for the widest
 * vectors that this processor has. Results do not depend on the cores: pieces are the same and are
 * added up in their order.
 *
 * A file that becomes shorter meanwhile would kill us by SIGBUS. While a file is scanned, a handler
 * puts zeros in place of what is gone and remembers; the scan then ends with TMK_EDAMAGED. The
 * handler is the process's, so there is one scan at a time. */
#ifndef TMK_INTEROP_WEIGHTS_WEIGHT_SCAN_H
#define TMK_INTEROP_WEIGHTS_WEIGHT_SCAN_H

#include "interop/weights/weights.h"

struct tmk_scan_result {
    bool is_scanned; /* false: no data, a type that is not, or the same as another tensor's */
    uint64_t n_nan, n_inf, n_zero, n_denormal;
    uint64_t first_nan, first_inf; /* index among the elements, row by row; UINT64_MAX: none */
    /* Of the finite elements. NaN when there are none (std: fewer than two). */
    double min, max, mean, std;
};

/* Scan all tensors, `results` has room for one each; tied ones get their first one's result. Now
 * and then `progress(arg, done, total)`, which may be NULL. 0, TMK_EIO, TMK_EDAMAGED, TMK_ENOMEM;
 * *ret_path as in weights.h. */
int tmk_weights_scan(const struct tmk_weights *w, struct tmk_scan_result *results,
                     void (*progress)(void *arg, uint32_t done, uint32_t total), void *arg,
                     const char **ret_path, struct tmk_error *err);

/* Scan `n` elements in memory; for tests and benchmarks. */
void tmk_scan_memory(enum tmk_weight_type type, const void *data, uint64_t n,
                     struct tmk_scan_result *ret);

/* "avx512", "avx2", "plain": what is used here. TIDEMARK_SCAN asks for a lesser one. */
const char *tmk_scan_level(void);

#endif
