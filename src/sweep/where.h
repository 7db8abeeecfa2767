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
 * Values are numbers or texts; texts can only be compared with == and !=. A number by itself is
 * true if it is not 0. Arithmetic is in double precision, "%" is fmod(). A constraint that cannot
 * be judged (a text instead of a number, division by 0) is an error that says where, never
 * false. */
#ifndef TMK_SWEEP_WHERE_H
#define TMK_SWEEP_WHERE_H

#include "sweep/results.h"

struct tmk_where; /* lives as long as the arena */

/* Parse a constraint. 0, TMK_ENOMEM, or TMK_EINVAL: err->offset is the position in `text`. `text`
 * and the parameters are borrowed. */
int tmk_where_parse(const char *text, const struct tmk_sweep_param *params, uint32_t n_params,
                    struct tmk_arena *a, const struct tmk_where **ret, struct tmk_error *err);
/* Whether the constraint holds for these values: 1, 0, or TMK_EINVAL as above. */
int tmk_where_holds(const struct tmk_where *w, const uint32_t *choice, struct tmk_error *err);

#endif
