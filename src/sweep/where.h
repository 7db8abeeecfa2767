/* SPDX-License-Identifier: MIT */
/* sweep/where.h - constraints on a sweep's configurations: 'physical<=batch'.
 *
 *     or     = and { ("or" | "||") and }
 *     and    = not { ("and" | "&&") not }
 *     not    = ("not" | "!") not | chain
 *     chain  = sum { ("<" | "<=" | ">" | ">=" | "==" | "=" | "!=") sum }     1 <= a < b: both hold
 *     sum    = term { ("+" | "-") term }
 *     term   = factor { ("*" | "/" | "%") factor }
 *     factor = "-" factor | number | parameter | 'text' | "text" | "(" or ")"
 *
 * Values are numbers or texts; texts can only be compared with == and !=. A number by itself holds
 * when it is not 0. Multiplying is done in double precision, "%" as fmod(). What cannot be judged
 * (a text where a number must be, division by 0) is an error that says where, never false. */
#ifndef TMK_SWEEP_WHERE_H
#define TMK_SWEEP_WHERE_H

#include "sweep/results.h"

struct tmk_where; /* lives as long as the arena */

/* 0, TMK_ENOMEM, or TMK_EINVAL: err->offset is the byte of `text` that it is about. `text` is
 * borrowed, like the parameters. */
int tmk_where_parse(const char *text, const struct tmk_sweep_param *params, uint32_t n_params,
                    struct tmk_arena *a, const struct tmk_where **ret, struct tmk_error *err);
/* 1: it holds for these values, 0: it does not, TMK_EINVAL as above. */
int tmk_where_holds(const struct tmk_where *w, const uint32_t *choice, struct tmk_error *err);

#endif
