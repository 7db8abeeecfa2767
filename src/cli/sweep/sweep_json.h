/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_json.h - parts of cells that both JSON files of a sweep contain. */
#ifndef TMK_CLI_SWEEP_SWEEP_JSON_H
#define TMK_CLI_SWEEP_SWEEP_JSON_H

#include "kit/tree.h"
#include "sweep/results.h"

/* Write "config": the value of each parameter. */
void tmk_sweep_json_config(struct tmk_tree *t, const struct tmk_results *r,
                           const struct tmk_cell *c);

#endif
