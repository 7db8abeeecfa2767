/* SPDX-License-Identifier: MIT */
/* sweep_kit.h - make up results of sweeps in a test, without a folder.
 *
 *     const char *params[] = {"seq=128,256", "attention=plain,flash"};
 *     struct tmk_results *r = kit_sweep_open(params, 2, 1);
 *     kit_sweep_done(r, 0, 1000, 200);    cell 0: 1000 bytes of parameters, 200 of activations
 *     kit_sweep_close(r); */
#ifndef TMK_TESTS_SWEEP_KIT_H
#define TMK_TESTS_SWEEP_KIT_H

#include "sweep/results.h"

/* Make the whole grid, all cells pending. The last parameter changes fastest, repeats of a
 * configuration are beside each other. Values that are all numbers are numbers. */
struct tmk_results *kit_sweep_open(const char *const *params, uint32_t n_params,
                                   uint32_t n_repeats);
void kit_sweep_close(struct tmk_results *r);

/* The number of parameter p in cell c. */
double kit_sweep_number(const struct tmk_results *r, uint32_t c, uint32_t p);
/* Let cell c end well, with a peak of two categories; reserved is the same. */
void kit_sweep_done(struct tmk_results *r, uint32_t c, double parameter, double activation);
/* The same with any shares; `keys` ends in NULL. */
struct tmk_shares kit_sweep_shares(struct tmk_results *r, const char *const *keys,
                                   const uint64_t *bytes);

#endif
