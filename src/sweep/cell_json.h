/* SPDX-License-Identifier: MIT */
/* sweep/cell_json.h - parts of a cell as JSON: the journal and the files of a sweep have them
 * alike.
 */
#ifndef TMK_SWEEP_CELL_JSON_H
#define TMK_SWEEP_CELL_JSON_H

#include "kit/tree.h"
#include "sweep/results.h"

/* {"activation": 123, ...} */
void tmk_cell_json_shares(struct tmk_tree *t, const char *key, const struct tmk_shares *s);
/* "peak_allocated", "peak_reserved", "peak_device". */
void tmk_cell_json_peaks(struct tmk_tree *t, const struct tmk_cell *c);
/* "stages": [...]; how long they were open as "ns", or for people as "seconds". */
void tmk_cell_json_stages(struct tmk_tree *t, const struct tmk_cell *c, bool in_seconds);
/* "ranks": [...] */
void tmk_cell_json_ranks(struct tmk_tree *t, const struct tmk_cell *c);

#endif
