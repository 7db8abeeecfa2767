/* SPDX-License-Identifier: MIT */
/* cli/answers/ranks_answer.h - a run's ranks side by side, for people and for machines. All
 * commands print the verdict of passes/imbalance through these functions. */
#ifndef TMK_CLI_ANSWERS_RANKS_ANSWER_H
#define TMK_CLI_ANSWERS_RANKS_ANSWER_H

#include "cli/output/sheet.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/imbalance/imbalance.h"

/* Compare the ranks. Returns 0, or an exit status after a message; *ret is then NULL. */
int tmk_ranks_answer(struct tmk_run *run, struct tmk_imbalance **ret);

/* Write a table of the processes, a line for all that are alike, with a star at the line that has
 * process `chosen`; and under it, the verdict. */
void tmk_ranks_text(const struct tmk_imbalance *b, struct tmk_run *run, uint32_t chosen,
                    struct tmk_sheet *sheet);
/* Write the verdict alone, a paragraph a sentence. */
void tmk_ranks_verdict_text(const struct tmk_imbalance *b, struct tmk_sheet *sheet);
/* Print the verdict as lines of a summary. */
void tmk_ranks_summary(const struct tmk_imbalance *b, FILE *out);

/* Compare the ranks and print the run in one line. Returns 0, or an exit status after a message. */
int tmk_ranks_line(struct tmk_run *run, FILE *out);

/* The object "ranks"; null where no process of the run has a rank. */
void tmk_ranks_json(const struct tmk_imbalance *b, struct tmk_run *run, struct tmk_tree *t);

#endif
