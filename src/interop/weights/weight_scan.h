/* SPDX-License-Identifier: MIT */
/* interop/weights/weight_scan.h - a scan of every number in the tensors: NaNs and infinities,
 * extremes, mean, spread.
 *
 * It runs at the speed of the memory: files are mapped and cut into pieces that all cores take in
 * turn, and each piece goes through one of three builds of the same loops (scan_kernels.c), for
 * the widest vectors that this processor has. Results do not depend on the cores: the pieces are
 * always the same and are summed in their order.
 *
 * A file that is truncated meanwhile would kill us by SIGBUS. While a file is scanned, a handler
 * puts zeros in place of what is gone and remembers it; the scan then ends with TMK_EDAMAGED. The
 * handler belongs to the process, so only one scan can run at a time. */
#ifndef TMK_INTEROP_WEIGHTS_WEIGHT_SCAN_H
#define TMK_INTEROP_WEIGHTS_WEIGHT_SCAN_H

#include "interop/weights/weights.h"

struct tmk_scan_result {
    bool is_scanned; /* false: it has no data, an unsupported type, or the same data as another
                        tensor */
    uint64_t n_nan, n_inf, n_zero, n_denormal;
    uint64_t first_nan, first_inf; /* index of the element, in row-major order; UINT64_MAX: none */
    /* Figures of the finite elements. NaN when there are none (std: when there are fewer than
     * two). */
    double min, max, mean, std;
};

/* Scan all tensors; `results` has room for one each, and tied tensors get the result of the
 * first. `progress(arg, done, total)`, which may be NULL, is called now and then. Returns 0,
 * TMK_EIO, TMK_EDAMAGED or TMK_ENOMEM; *ret_path as in weights.h. */
int tmk_weights_scan(const struct tmk_weights *w, struct tmk_scan_result *results,
                     void (*progress)(void *arg, uint32_t done, uint32_t total), void *arg,
                     const char **ret_path, struct tmk_error *err);

/* Scan `n` elements in memory; for tests and benchmarks. */
void tmk_scan_memory(enum tmk_weight_type type, const void *data, uint64_t n,
                     struct tmk_scan_result *ret);

/* The build in use: "avx512", "avx2" or "plain". TIDEMARK_SCAN asks for a lesser one. */
const char *tmk_scan_level(void);

#endif
