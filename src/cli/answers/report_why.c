/* SPDX-License-Identifier: MIT */
/* cli/answers/report_why.c - see report.h: the first time it ran out, in short. */
#include <stdlib.h>

#include "cli/answers/explain_text.h"
#include "cli/answers/report.h"
#include "cli/output/xalloc.h"

enum { SHOWN_FIXES = 3 };

void tmk_report_why_sheet(const struct tmk_report *r, struct tmk_sheet *sheet)
{
    if (!r->explanation || tmk_explanation_n(r->explanation) == 0)
        return;
    const struct tmk_case *c = tmk_explanation_get(r->explanation, 0);
    char *title = tmk_xformat("WHY IT RAN OUT%s: %s",
                              tmk_explanation_n_ooms(r->explanation) > 1 ? ", THE FIRST TIME" : "",
                              tmk_cause_name(c->verdict.rows[0].cause));
    tmk_sheet_heading(sheet, title);
    free(title);
    tmk_explain_story(c, sheet);
    if (c->n_fixes > 0) {
        tmk_sheet_text(sheet, "What would have helped (tidemark explain has all of it):");
        if (sheet->markdown)
            fputc('\n', sheet->out);
        tmk_explain_fixes(c, SHOWN_FIXES, sheet);
    }
}
