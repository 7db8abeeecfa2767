/* SPDX-License-Identifier: MIT */
/* cli/answers/answer_json.h - values that several answers write, under the same keys and in the
 * same form in all of them. */
#ifndef TMK_CLI_ANSWERS_ANSWER_JSON_H
#define TMK_CLI_ANSWERS_ANSWER_JSON_H

#include "kit/tree.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/group.h"
#include "passes/leak/leak.h"

/* A step; unknown: TMK_NO_STEP. */
void tmk_answer_put_step(struct tmk_tree *t, const char *key, int64_t step);
/* The key "device", such as "cuda:0". */
void tmk_answer_put_device(struct tmk_tree *t, uint16_t device);
/* The keys "rank" and "pid". An imported snapshot has no pid. */
void tmk_answer_put_rank(struct tmk_tree *t, const struct tmk_process *p);
void tmk_answer_put_pid(struct tmk_tree *t, const struct tmk_process *p);
/* The keys "file", "line" and "function". A line 0 is not known. */
void tmk_answer_put_site(struct tmk_tree *t, bool is_known, const struct tmk_frame *site);
/* A list of frames as texts, the innermost first. Of a stack that is not known, the first function
 * writes an empty list, the second the unknown value. */
void tmk_answer_put_stack(struct tmk_tree *t, const char *key, const struct tmk_process *p,
                          uint32_t stack);
void tmk_answer_put_stack_if(struct tmk_tree *t, const char *key, const struct tmk_process *p,
                             uint32_t stack);
/* What a leak's verdict rests on: "pace" ("even", "faster"), "every_steps", "kept_steps",
 * "last_step", "let_go", "evidence"; and of its line "source" and "made_in". */
void tmk_answer_put_evidence(struct tmk_tree *t, const struct tmk_process *p,
                             const struct tmk_leak *leak);
/* Growth that was not judged: "file", "line", "function", "category", "module", "reason", "text",
 * "growth_bytes", "rises". */
void tmk_answer_put_doubt(struct tmk_tree *t, const struct tmk_leak *doubt);
/* A list of the first `most` rows: "key", "bytes", "blocks". */
void tmk_answer_put_rows(struct tmk_tree *t, const char *key, const struct tmk_peak_row *rows,
                         uint64_t n, uint64_t most);
/* A forecast, with the names of the columns of the table `forecast`. NULL: not known. */
void tmk_answer_put_forecast(struct tmk_tree *t, const char *key, const struct tmk_forecast *f);

#endif
