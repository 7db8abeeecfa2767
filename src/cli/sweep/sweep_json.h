/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_json.h - parts of a cell that several files of a sweep have. */
#ifndef TMK_CLI_SWEEP_SWEEP_JSON_H
#define TMK_CLI_SWEEP_SWEEP_JSON_H

#include "cli/sweep/sweep_answer.h"
#include "sweep/cell_json.h"

/* "config": the value of each parameter. */
void tmk_sweep_json_config(struct tmk_tree *t, const struct tmk_results *r,
                           const struct tmk_cell *c);
/* The peaks in bytes and in GB, "peak_step" and "steps". */
void tmk_sweep_put_peaks(struct tmk_tree *t, const struct tmk_cell *c);

#endif
