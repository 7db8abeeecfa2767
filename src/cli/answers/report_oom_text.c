/* SPDX-License-Identifier: MIT */
/* cli/answers/report_oom_text.c - the report's sections on memory that ran out: why, what was
 * allocated then, and each event. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/answers/explain_answer.h"
#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "passes/group.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/ooms.h"

enum { MAX_OOMS = 4, MAX_FIXES = 3 };

static void write_oom_use(const struct tmk_oom *o, struct tmk_sheet *sheet)
{
    char used[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES], segments[TMK_AMOUNT_BYTES];
    if (o->used_bytes != UINT64_MAX && o->total_bytes != UINT64_MAX)
        tmk_sheet_text(sheet, "The GPU had %s of %s in use, %s by segments of this process.",
                       tmk_size_text(o->used_bytes, used), tmk_size_text(o->total_bytes, total),
                       tmk_size_text(o->segment_bytes, segments));
}

static void write_oom(const struct tmk_process_answer *f, uint64_t i, struct tmk_sheet *sheet)
{
    const struct tmk_oom *o = tmk_ooms_get(f->ooms, i);
    char time[TMK_AMOUNT_BYTES];
    struct tmk_failed_request request = tmk_failed_request_of(f->p, o);
    char *what = tmk_failed_request_text(&request);
    tmk_sheet_text(sheet, "After %s%s%s: %s.",
                   tmk_time_text(tmk_process_answer_run_ns(f, o->time_ns), time),
                   o->module ? _(", in module ") : "", o->module ? o->module : "", what);
    free(what);
    write_oom_use(o, sheet);
}

void tmk_report_ooms_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_ooms_n(f->ooms), kept = tmk_ooms_n_kept(f->ooms);
    if (n == 0)
        return;
    tmk_report_heading_since(f, sheet, _("OUT OF MEMORY"), "");
    if (n > MAX_OOMS)
        tmk_sheet_text(sheet, "It happened %" PRIu64 " times; the first ones and the last:", n);
    for (uint64_t i = 0; i < kept; i++)
        if (i + 1 < MAX_OOMS || i + 1 == kept)
            write_oom(f, i, sheet);
}

bool tmk_report_oom_shares_text(const struct tmk_process_answer *f, bool is_full,
                                struct tmk_sheet *sheet)
{
    static const enum tmk_by by[] = {TMK_BY_CATEGORY, TMK_BY_SITE, TMK_BY_MODULE};
    uint64_t n = tmk_ooms_n(f->ooms), kept = tmk_ooms_n_kept(f->ooms);
    const struct tmk_oom *o = n > 0 ? tmk_ooms_get(f->ooms, kept - 1) : NULL;
    if (!o || o->allocated_bytes == 0)
        return false;
    char size[TMK_AMOUNT_BYTES];
    char *title =
        tmk_xformat(_("WHAT WAS ALLOCATED %s: %s"), n > 1 ? _("THE LAST TIME") : _("THEN"),
                    tmk_size_text(o->allocated_bytes, size));
    tmk_sheet_heading(sheet, title);
    free(title);
    for (size_t i = 0; i < TMK_N(by); i++) {
        const struct tmk_peak_row *rows;
        uint64_t n_rows;
        if (tmk_ooms_holders(f->ooms, kept - 1, by[i], &rows, &n_rows) < 0)
            tmk_die("out of memory");
        tmk_report_shares_text(f, by[i], rows, n_rows, o->allocated_bytes, is_full, sheet);
    }
    return o->device == f->device && o->allocated_bytes >= f->peak_bytes / 10 * 9;
}

/* Write in short why it ran out of memory the first time. */
void tmk_report_why_text(const struct tmk_report_answer *r, struct tmk_sheet *sheet)
{
    if (!r->explanation || tmk_explanation_n(r->explanation) == 0)
        return;
    const struct tmk_case *c = tmk_explanation_get(r->explanation, 0);
    char *title =
        tmk_xformat(_("WHY IT RAN OUT%s: %s"),
                    tmk_explanation_n_ooms(r->explanation) > 1 ? _(", THE FIRST TIME") : "",
                    tmk_cause_text(c->verdict.rows[0].cause));
    tmk_sheet_heading(sheet, title);
    free(title);
    tmk_explain_reason_text(c, sheet);
    if (c->n_fixes == 0)
        return;
    tmk_sheet_heading(sheet, "WHAT WOULD HAVE HELPED");
    if (sheet->markdown)
        fputc('\n', sheet->out);
    tmk_explain_fixes_text(c, MAX_FIXES, sheet);
}
