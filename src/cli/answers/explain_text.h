/* SPDX-License-Identifier: MIT */
/* cli/answers/explain_text.h - what explain found, for people and for machines. */
#ifndef TMK_CLI_ANSWERS_EXPLAIN_TEXT_H
#define TMK_CLI_ANSWERS_EXPLAIN_TEXT_H

#include "cli/output/sheet.h"
#include "kit/json.h"
#include "passes/oom/explain.h"

/* One case: a heading, what happened in a few sentences, the evidence, the fixes. `process` is said
 * where there are several; NULL: there is one. */
void tmk_explain_sheet(const struct tmk_case *c, const char *process, struct tmk_sheet *sheet);
/* The few sentences alone. */
void tmk_explain_story(const struct tmk_case *c, struct tmk_sheet *sheet);
/* The best fixes, numbered. */
void tmk_explain_fixes(const struct tmk_case *c, uint32_t max, struct tmk_sheet *sheet);

/* One case as an object of an array. */
void tmk_explain_json(const struct tmk_case *c, struct tmk_json *j);

#endif
