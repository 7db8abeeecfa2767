/* SPDX-License-Identifier: MIT */
/* sweep/cell_json.h - write parts of a cell as JSON, for the journal and the files of a sweep
 * alike. */
#ifndef TMK_SWEEP_CELL_JSON_H
#define TMK_SWEEP_CELL_JSON_H

#include "kit/tree.h"
#include "sweep/results.h"

/* {"activation": 123, ...} */
void tmk_cell_json_shares(struct tmk_tree *t, const char *key, const struct tmk_shares *s);
/* "peak_allocated", "peak_reserved", "peak_device". */
void tmk_cell_json_peaks(struct tmk_tree *t, const struct tmk_cell *c);
/* "stages": [...]; the time they were open is "ns", or "seconds" in the files for users. */
void tmk_cell_json_stages(struct tmk_tree *t, const struct tmk_cell *c, bool in_seconds);
/* "ranks": [...] */
void tmk_cell_json_ranks(struct tmk_tree *t, const struct tmk_cell *c);

#endif
