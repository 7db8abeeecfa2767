/* SPDX-License-Identifier: MIT */
/* sweep/params.h - the parameters of a sweep, as users write them, and the grid they span.
 *
 *     seq=128,256,512          these values
 *     batch=1..8               1, 2, 3 ... 8
 *     seq=128..1024..128       in steps of 128
 *     seq=128..1024*2          each twice the one before
 *     rank=0,8..64*2           0, then 8, 16, 32, 64
 *     optimizer=adam,sgd       words are values too
 *
 * A name consists of letters, digits and _. It becomes {NAME} in the command's words and
 * TIDEMARK_NAME in its environment. So two names that differ only in case, and names that would
 * hide a setting of the recorder (TIDEMARK_RUN), are refused.
 *
 * A configuration has a number: the last parameter changes fastest. A cell is a configuration and a
 * repeat of it: number = configuration * n_repeats + repeat. */
#ifndef TMK_SWEEP_PARAMS_H
#define TMK_SWEEP_PARAMS_H

#include "sweep/results.h"

enum { TMK_SWEEP_MAX_PARAMS = 16, TMK_SWEEP_MAX_VALUES = 4096, TMK_SWEEP_MAX_NAME = 64 };

/* Parse "NAME=VALUES" into *ret, with memory from the arena. 0, TMK_ENOMEM, or TMK_EINVAL with the
 * problem. */
int tmk_param_parse(const char *text, struct tmk_arena *a, struct tmk_sweep_param *ret,
                    struct tmk_error *err);
/* Make one from known values; the texts are copied. Returns the same. */
int tmk_param_make(const char *name, const char *const *values, uint32_t n, struct tmk_arena *a,
                   struct tmk_sweep_param *ret, struct tmk_error *err);
/* Check that the parameters can be combined. 0 or TMK_EINVAL. */
int tmk_params_check(const struct tmk_sweep_param *params, uint32_t n, struct tmk_error *err);

/* Count the cells of the grid: 0 and *ret, or TMK_EINVAL: too many. */
int tmk_params_n_cells(const struct tmk_sweep_param *params, uint32_t n, uint32_t n_repeats,
                       uint32_t *ret, struct tmk_error *err);
/* Get the values of configuration `number`. */
void tmk_params_choice(const struct tmk_sweep_param *params, uint32_t n, uint32_t number,
                       uint32_t *ret_choice);

/* Parse a text that is a finite number, as a whole; false: it is not. */
bool tmk_param_number(const char *text, double *ret);
/* Find a parameter by the `n_name` bytes of its name: its number, -1: there is none. */
int tmk_params_find(const struct tmk_sweep_param *params, uint32_t n, const char *name,
                    size_t n_name);

#endif
