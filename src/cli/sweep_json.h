/* SPDX-License-Identifier: MIT */
/* cli/sweep_json.h - parts of cells that both JSON files of a sweep have. */
#ifndef TMK_CLI_SWEEP_JSON_H
#define TMK_CLI_SWEEP_JSON_H

#include "cli/sweep_story.h"
#include "kit/json.h"

void tmk_sweep_json_bytes(struct tmk_json *j, const char *key, uint64_t bytes); /* null: unknown */
void tmk_sweep_json_shares(struct tmk_json *j, const char *key, const struct tmk_shares *s);
/* "config": the value of each parameter. */
void tmk_sweep_json_config(struct tmk_json *j, const struct tmk_results *r,
                           const struct tmk_cell *c);
/* "stages" and "ranks". */
void tmk_sweep_json_stages(struct tmk_json *j, const struct tmk_cell *c);
void tmk_sweep_json_ranks(struct tmk_json *j, const struct tmk_cell *c);

#endif
