/* SPDX-License-Identifier: MIT */
/* cli/answers/explain_answer.h - why processes ran out of memory, or nearly did: what `explain`
 * found, for people and for machines. The report tells of it by the same functions. */
#ifndef TMK_CLI_ANSWERS_EXPLAIN_ANSWER_H
#define TMK_CLI_ANSWERS_EXPLAIN_ANSWER_H

#include "cli/output/sheet.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/imbalance/imbalance.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"

/* The cases of one process. */
struct tmk_explain_process {
    struct tmk_process *p;
    struct tmk_explanation *explanation;
};

struct tmk_explain_answer {
    struct tmk_run *run;
    struct tmk_explain_process *processes; /* those asked for */
    uint32_t n;
    struct tmk_imbalance *ranks; /* all processes side by side; NULL: there is one, or --rank */
};

/* OOMs that happened in all of them. */
uint64_t tmk_explain_n_ooms(const struct tmk_explain_answer *a);

/* Every case, or that there is none. */
void tmk_explain_text(const struct tmk_explain_answer *a, struct tmk_sheet *sheet);
/* Say in a few sentences what happened in one case. */
/* "leak", "other processes": the cause in a title. */
const char *tmk_cause_text(enum tmk_cause cause);
void tmk_explain_reason_text(const struct tmk_case *c, struct tmk_sheet *sheet);
/* The best fixes, numbered. */
void tmk_explain_fixes_text(const struct tmk_case *c, uint32_t max, struct tmk_sheet *sheet);

/* One object: "ooms" and "near_misses", lists of cases, and "n_ooms". */
void tmk_explain_json(const struct tmk_explain_answer *a, struct tmk_tree *t, const char *key);

#endif
