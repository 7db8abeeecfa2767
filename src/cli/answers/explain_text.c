/* SPDX-License-Identifier: MIT */
/* cli/answers/explain_text.c - see explain_answer.h: the words. */
#include "cli/answers/explain_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/health.h"
#include "cli/answers/ranks_answer.h"
#include "cli/front/target.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"
#include "passes/oom/explain.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_scene.h"
#include "passes/oom/ooms.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/layout.h"

struct size {
    char text[TMK_AMOUNT_BYTES];
};

static const char *size_or_dash(uint64_t bytes, struct size *buffer)
{
    return bytes == TMK_BYTES_UNKNOWN ? "-" : tmk_size_text(bytes, buffer->text);
}

/* ---- what happened ---- */

/* Tell the event in the words of the verdict on the run, and the place of the request. */
static void tell_request(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_scene *s = &c->scene;
    char source[TMK_SOURCE_LINE_BYTES];
    const char *line = s->has_site ? tmk_source_text(c->p, &s->site, source) : NULL;
    char *text = s->kind == TMK_SCENE_OOM
                     ? tmk_failed_request_text(&(struct tmk_failed_request){
                           .p = c->p,
                           .device = s->device,
                           .step = s->step,
                           .request_bytes = s->request_bytes,
                           .allocated_bytes = s->allocated_bytes,
                           .reserved_bytes = s->reserved_bytes,
                           .limit_bytes = s->stated_bytes,
                           .is_of_driver = s->is_of_driver,
                           .site = s->has_site ? &s->site : NULL,
                       })
                     : tmk_near_miss_text(&(struct tmk_near_miss){
                           .device = s->device,
                           .n_retries = s->kind == TMK_SCENE_RETRY ? s->times : 0,
                           .requested_bytes = s->request_bytes,
                           .used_bytes = s->card_used_bytes,
                           .total_bytes = s->card_total_bytes,
                       });
    tmk_sheet_verdict(sheet, s->kind == TMK_SCENE_OOM ? TMK_ROLE_BAD : TMK_ROLE_WARN, "%s.", text);
    if (line)
        tmk_sheet_code(sheet, line);
    free(text);
}

/* Tell when it was, and where in the program. */
static void tell_place(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_scene *s = &c->scene;
    char time[TMK_AMOUNT_BYTES];
    bool is_oom = s->kind == TMK_SCENE_OOM;
    const char *stage = is_oom ? s->stage : NULL, *module = is_oom ? s->module : NULL;
    tmk_sheet_text(sheet, "It happened after %s%s%s%s%s.",
                   tmk_time_text(s->time_ns + c->p->offset_ns, time), stage ? _(", in ") : "",
                   stage ? stage : "", module ? (stage ? _(" of module ") : _(", in module ")) : "",
                   module ? module : "");
    if (s->kind == TMK_SCENE_RETRY)
        tmk_sheet_text(sheet, "Each such retry stops the GPU for a moment.");
}

static void tell_fragmentation(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_inquiry *q = &c->inquiry;
    struct size a, b, d, e;
    char site[TMK_FRAME_TEXT_BYTES];
    if (c->scene.is_of_driver) {
        tmk_sheet_text(sheet,
                       "Torch's cache left no room for it: %s reserved were cached, not allocated.",
                       size_or_dash(c->verdict.free_bytes, &a));
        return;
    }
    tmk_sheet_text(sheet,
                   "There was room, but in pieces: %s reserved were free%s%s. Allocated memory "
                   "plus this request (%s) is below the %s limit.",
                   size_or_dash(c->verdict.free_bytes, &a),
                   q->has_gaps ? _(", no piece larger than ") : "",
                   q->has_gaps ? size_or_dash(q->largest_bytes, &b) : "",
                   size_or_dash(c->scene.allocated_bytes + c->scene.request_bytes, &d),
                   size_or_dash(c->verdict.limit_bytes, &e));
    if (q->has_pin && q->pinned_bytes >= c->verdict.free_bytes / 2)
        tmk_sheet_text(sheet,
                       "A few blocks keep %" PRIu64 " segment%s with %s free from being released. "
                       "Most of these blocks were allocated at %s.",
                       q->n_pinned, q->n_pinned == 1 ? "" : "s", size_or_dash(q->pinned_bytes, &a),
                       tmk_frame_text(&q->pin, true, site));
}

/* The line that leaks: its text, and the library's line that it called. */
static void tell_leak_line(const struct tmk_case *c, const struct tmk_leak *leak,
                           struct tmk_sheet *sheet)
{
    char source[TMK_SOURCE_LINE_BYTES], site[TMK_FRAME_TEXT_BYTES], made[TMK_FRAME_TEXT_BYTES];
    struct tmk_frame library;
    const char *line = leak->has_site ? tmk_source_text(c->p, &leak->site, source) : NULL;
    if (line)
        tmk_sheet_code(sheet, line);
    if (leak->has_site && tmk_stack_library_line(c->p, leak->stack, &library))
        tmk_sheet_text(sheet, "Made in %s, called from %s.", tmk_frame_text(&library, true, made),
                       tmk_frame_text(&leak->site, true, site));
}

static void tell_leak(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_leak *leak = c->inquiry.leak;
    struct size a, b, d;
    char site[TMK_FRAME_TEXT_BYTES], since[48] = "", words[TMK_LEAK_WORDS_BYTES];
    bool has_steps = leak->first_step != TMK_NO_STEP;
    if (has_steps)
        snprintf(since, sizeof since, _(" since step %" PRId64), leak->first_step);
    tmk_sheet_text(
        sheet,
        "Memory leaks: memory kept at %s grew by %s a %s%s and had reached %s. "
        "Without it, %s would have been allocated.",
        tmk_frame_text(leak->has_site ? &leak->site : NULL, true, site),
        size_or_dash(tmk_size_whole(has_steps ? leak->bytes_per_step : leak->bytes_per_second), &a),
        has_steps ? _("step") : _("second"), since, size_or_dash(c->inquiry.leaked_bytes, &b),
        size_or_dash(c->scene.allocated_bytes - c->inquiry.leaked_bytes, &d));
    tell_leak_line(c, leak, sheet);
    if (leak->n_rises > 0)
        tmk_sheet_text(sheet, "Evidence: %s%s.", leak->is_faster ? _("faster and faster; ") : "",
                       tmk_leak_evidence_text(leak, words));
}

static void tell_outlier(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_inquiry *q = &c->inquiry;
    struct size a, b, d;
    tmk_sheet_text(
        sheet,
        "This step needed %s %s. The %" PRIu64 " steps before it peaked at %s, and none above %s.",
        c->need.is_estimate ? _("about") : _("at least"), size_or_dash(c->need.bytes, &a),
        q->n_steps, size_or_dash(q->median_bytes, &b), size_or_dash(q->most_bytes, &d));
}

static void tell_others(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_scene *s = &c->scene;
    struct size a, b, d;
    bool grew = s->others_first_bytes != TMK_BYTES_UNKNOWN &&
                s->others_bytes > s->others_first_bytes + s->others_first_bytes / 20;
    tmk_sheet_text(sheet, "Other processes used %s of the GPU's %s, which left torch %s.",
                   size_or_dash(s->others_bytes, &a), size_or_dash(s->card_total_bytes, &b),
                   size_or_dash(c->verdict.limit_bytes, &d));
    if (grew)
        tmk_sheet_text(sheet, "They used %s when this process began.",
                       size_or_dash(s->others_first_bytes, &a));
}

static void tell_settings(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    struct size a;
    tmk_sheet_text(sheet,
                   "The allocator settings (%s) caused it: replayed with torch's defaults, the "
                   "request succeeds. %s reserved were cached, not allocated.",
                   c->inquiry.alloc_conf ? c->inquiry.alloc_conf : "-",
                   size_or_dash(c->verdict.free_bytes, &a));
}

/* Tell the three categories with most: "activation 2.1 GiB, parameter ...". */
static void tell_holders(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const uint64_t *of = c->scene.category_bytes;
    bool told[TMK_SCENE_CATEGORIES] = {false};
    char text[256] = "";
    for (int n = 0; n < 3; n++) {
        int best = -1;
        for (int i = 0; i < TMK_SCENE_CATEGORIES; i++)
            if (!told[i] && of[i] > 0 && (best < 0 || of[i] > of[best]))
                best = i;
        if (best < 0)
            break;
        struct size a;
        told[best] = true;
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s %s", n ? _(", ") : "",
                 _(tmk_category_name((uint8_t)best)), size_or_dash(of[best], &a));
    }
    if (text[0] && of[TIDEMARK_UNKNOWN] < c->scene.allocated_bytes / 2)
        tmk_sheet_text(sheet, "Allocated then: %s.", text);
}

/* "The limit is 16.0 GiB." A limit of which nothing was seen is not 0. */
static const char *limit_text(const struct tmk_oom_verdict *v, struct size *buffer)
{
    return v->limit_bytes == 0 ? _("not known") : size_or_dash(v->limit_bytes, buffer);
}

/* Tell that allocated memory and the request would fit, but reserved memory and the segment for the
 * request do not. */
static void tell_segment(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_oom_verdict *v = &c->verdict;
    struct size a, b, d, e;
    tmk_sheet_text(sheet,
                   "The job needs more memory: %s reserved plus a segment of %s for the request "
                   "is %s, above the limit of %s%s.",
                   size_or_dash(v->held_bytes, &a), size_or_dash(v->asked_bytes, &b),
                   size_or_dash(v->held_bytes + v->asked_bytes, &d),
                   size_or_dash(v->limit_bytes, &e),
                   v->limit == TMK_LIMIT_STATED ? "" : _(" (at least; not known exactly)"));
}

static void tell_graphs(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    const struct tmk_scene *s = &c->scene;
    struct size a, b;
    tmk_sheet_text(sheet,
                   "An evaluation keeps its autograd graphs: %" PRIu32 " forward passes began "
                   "since the last backward or step, and %s of activations were kept for a "
                   "backward that does not come. Earlier steps peaked at %s.",
                   s->n_forwards, size_or_dash(s->category_bytes[TIDEMARK_ACTIVATION], &a),
                   c->inquiry.n_steps ? size_or_dash(c->inquiry.most_bytes, &b) : "-");
}

static void tell_demand(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    if (tmk_scene_keeps_graphs(&c->scene)) {
        tell_graphs(c, sheet);
        return;
    }
    struct size a, b;
    char of[80] = "";
    if (c->scene.card_total_bytes != TMK_BYTES_UNKNOWN &&
        c->scene.request_bytes > c->scene.card_total_bytes) {
        tmk_sheet_text(sheet, "The GPU has %s in total: no request of that size can succeed.",
                       size_or_dash(c->scene.card_total_bytes, &a));
        return;
    }
    uint64_t asked_for = c->verdict.held_bytes + c->verdict.asked_bytes;
    if (c->need.is_estimate)
        snprintf(of, sizeof of,
                 _(" (estimated: forward had reached module %" PRIu32 " of %" PRIu32 ")"),
                 c->need.n_done + 1, c->need.n_all);
    if (c->scene.kind == TMK_SCENE_OOM && c->need.bytes <= c->verdict.limit_bytes &&
        asked_for > c->verdict.limit_bytes)
        tell_segment(c, sheet);
    else if (c->scene.kind == TMK_SCENE_OOM)
        tmk_sheet_text(sheet, "The job needs more memory: %s %s%s. The limit is %s.",
                       c->need.is_estimate ? _("about") : _("at least"),
                       size_or_dash(c->need.bytes, &a), of, limit_text(&c->verdict, &b));
    else
        tmk_sheet_text(sheet, "The job needs that much: %s were allocated.",
                       size_or_dash(c->scene.allocated_bytes, &a));
    tell_holders(c, sheet);
}

const char *tmk_cause_text(enum tmk_cause cause)
{
    return cause == TMK_CAUSE_OTHER_PROCESS ? _("other processes") : _(tmk_cause_name(cause));
}

void tmk_explain_reason_text(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    static void (*const tell[])(const struct tmk_case *, struct tmk_sheet *) = {
        [TMK_CAUSE_DEMAND] = tell_demand,
        [TMK_CAUSE_FRAGMENTATION] = tell_fragmentation,
        [TMK_CAUSE_LEAK] = tell_leak,
        [TMK_CAUSE_OUTLIER] = tell_outlier,
        [TMK_CAUSE_OTHER_PROCESS] = tell_others,
        [TMK_CAUSE_SETTINGS] = tell_settings,
    };
    enum tmk_cause cause = c->verdict.rows[0].cause;
    tell_place(c, sheet);
    tell[cause](c, sheet);
    struct size a;
    if (c->inquiry.growth_bytes > 0 && cause != TMK_CAUSE_LEAK)
        tmk_sheet_text(sheet,
                       "Steps also need more and more, about %s each time. While that goes on, the "
                       "job runs out again, whatever else changes.",
                       size_or_dash(c->inquiry.growth_bytes, &a));
}

/* ---- the evidence ---- */

static void add_fact(struct tmk_table *t, const char *what, uint64_t bytes, const char *note)
{
    struct size a;
    if (bytes == TMK_BYTES_UNKNOWN)
        return;
    tmk_table_cell(t, _(what));
    tmk_table_cell(t, size_or_dash(bytes, &a));
    tmk_table_cell(t, note[0] ? _(note) : note);
}

static void add_limit_fact(struct tmk_table *t, const struct tmk_case *c)
{
    static const char *const notes[] = {
        [TMK_LIMIT_UNKNOWN] = N_("at least: this much was reserved"),
        [TMK_LIMIT_CARD] = N_("what the GPU left to torch"),
        [TMK_LIMIT_SETTING] = N_("at least; a limit that was set, below the GPU's"),
        [TMK_LIMIT_STATED] = N_("stated by the error"),
    };
    if (c->verdict.limit_bytes > 0)
        add_fact(t, N_("limit"), c->verdict.limit_bytes, notes[c->verdict.limit]);
}

static void add_cause_facts(struct tmk_table *t, const struct tmk_case *c)
{
    static const char *const notes[] = {
        [TMK_CAUSE_FRAGMENTATION] = N_("gaps: reserved, free, in pieces too small"),
        [TMK_CAUSE_LEAK] = N_("leak: kept, and growing with each step"),
        [TMK_CAUSE_OUTLIER] = N_("this step: above the usual step"),
        [TMK_CAUSE_OTHER_PROCESS] = N_("other processes on the GPU"),
        [TMK_CAUSE_SETTINGS] = N_("lost to the allocator settings"),
    };
    for (int i = 0; i < TMK_N_CAUSES; i++) {
        const struct tmk_cause_row *row = &c->verdict.rows[i];
        const char *note = notes[row->cause];
        if (row->cause == TMK_CAUSE_FRAGMENTATION && c->scene.is_of_driver)
            note = N_("cache: reserved by torch, not allocated");
        if (row->bytes > 0 && row->cause != TMK_CAUSE_DEMAND)
            add_fact(t,
                     i == 0        ? _("the cause")
                     : row->counts ? _("a cause too")
                                   : _("not the cause"),
                     row->bytes, note);
    }
}

static void write_evidence(const struct tmk_case *c, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {{"evidence", TMK_LEFT, TMK_FIXED},
                                                {"bytes", TMK_RIGHT, TMK_FIXED},
                                                {"", TMK_LEFT, TMK_SHRINK}};
    const struct tmk_scene *s = &c->scene;
    const struct tmk_oom_verdict *v = &c->verdict;
    struct size a;
    char asked[96] = "", steps[96];
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    if (v->asked_bytes / 10 > s->request_bytes / 9)
        snprintf(asked, sizeof asked, _("torch requests a segment of %s"),
                 size_or_dash(v->asked_bytes, &a));
    if (s->kind != TMK_SCENE_FULL)
        add_fact(t, N_("request"), s->request_bytes, asked);
    add_fact(t, N_("allocated"), s->allocated_bytes, "");
    add_fact(t, N_("reserved"), s->reserved_bytes, "");
    if (v->free_bytes != TMK_BYTES_UNKNOWN)
        add_fact(t, N_("cached"), v->free_bytes, _("reserved, not allocated"));
    add_limit_fact(t, c);
    if (v->missing_bytes > 0)
        add_fact(t, N_("missing"), v->missing_bytes,
                 v->limit == TMK_LIMIT_STATED ? "" : _("at most"));
    if (s->card_total_bytes == TMK_BYTES_UNKNOWN)
        add_fact(t, N_("GPU, free"), s->card_free_bytes, _("stated by the error"));
    add_fact(t, N_("GPU"), s->card_total_bytes, "");
    add_fact(t, N_("GPU, in use"), s->card_used_bytes, _("as last seen"));
    if (c->inquiry.n_steps > 0) {
        snprintf(steps, sizeof steps, _("median peak of the %" PRIu64 " step%s before"),
                 c->inquiry.n_steps, c->inquiry.n_steps == 1 ? "" : "s");
        add_fact(t, N_("usual step"), c->inquiry.median_bytes, steps);
    }
    add_cause_facts(t, c);
    if (sheet->is_begun && !sheet->markdown)
        fputc('\n', sheet->out);
    tmk_sheet_table(sheet, t);
}

/* ---- fixes ---- */

/* Returns "Replayed: gets past this request and saves 2.0 MiB.": how the worth of a fix is known,
 * and what it is. Only a replay to the end of the job says "enough". */
static char *worth_text(const struct tmk_case *c, const struct tmk_fix *fix)
{
    static const char *const proofs[] = {[TMK_PROOF_REPLAY] = N_("Replayed"),
                                         [TMK_PROOF_MEASURED] = N_("Measured"),
                                         [TMK_PROOF_ESTIMATE] = N_("Estimated")};
    struct size a;
    bool is_known = fix->saves_bytes != TMK_BYTES_UNKNOWN;
    bool saves = is_known && fix->saves_bytes > 0, is_oom = c->scene.kind == TMK_SCENE_OOM;
    if (!is_known && fix->proof == TMK_PROOF_ESTIMATE)
        return tmk_xstrdup(_("Saving: not known."));
    if (is_oom && fix->avoids && fix->is_enough && fix->proof == TMK_PROOF_MEASURED)
        return tmk_xformat(_("Measured: saves %s, so that steps like those before fit."),
                           size_or_dash(fix->saves_bytes, &a));
    const char *outcome = !is_oom          ? ""
                          : !fix->avoids   ? _("not enough alone")
                          : fix->is_enough ? _("enough, the job runs to its end")
                                           : _("gets past this request");
    return tmk_xformat(_("%s: %s%s%s%s."), _(proofs[fix->proof]), outcome,
                       outcome[0] && saves ? _("; ") : "", saves ? _("saves ") : "",
                       saves        ? size_or_dash(fix->saves_bytes, &a)
                       : outcome[0] ? ""
                                    : _("helps"));
}

/* A fix's first sentence is what to do. Its proof follows, and then the details. */
static void write_fix(const struct tmk_case *c, const struct tmk_fix *fix, uint32_t number,
                      struct tmk_sheet *sheet)
{
    char *worth = worth_text(c, fix);
    const char *stop = _(". "), *end = strstr(fix->text, stop);
    size_t n = end ? (size_t)(end - fix->text) + strcspn(stop, " ") : strlen(fix->text);
    char *title = tmk_xformat("%.*s", (int)n, fix->text);
    char *body = tmk_xformat("%s%s", worth, fix->text + n);
    tmk_sheet_numbered(sheet, number, title);
    tmk_sheet_more(sheet, body);
    free(title);
    free(body);
    free(worth);
}

void tmk_explain_fixes_text(const struct tmk_case *c, uint32_t max, struct tmk_sheet *sheet)
{
    for (uint32_t i = 0; i < c->n_fixes && i < max; i++)
        write_fix(c, &c->fixes[i], i + 1, sheet);
}

static void write_explain_case(const struct tmk_case *c, const char *process,
                               struct tmk_sheet *sheet)
{
    if (process)
        tmk_sheet_heading(sheet, process);
    else if (sheet->is_begun && !sheet->markdown)
        fputc('\n', sheet->out);
    tell_request(c, sheet);
    char *heading = tmk_xformat(c->scene.kind == TMK_SCENE_OOM ? _("WHY IT RAN OUT: %s")
                                                               : _("WHY IT NEARLY RAN OUT: %s"),
                                tmk_cause_text(c->verdict.rows[0].cause));
    tmk_sheet_heading(sheet, heading);
    free(heading);
    tmk_explain_reason_text(c, sheet);
    write_evidence(c, sheet);
    if (c->n_fixes > 0) {
        tmk_sheet_heading(sheet, c->scene.kind == TMK_SCENE_OOM ? "WHAT WOULD HAVE HELPED"
                                                                : "WHAT WOULD HELP");
        tmk_explain_fixes_text(c, c->n_fixes, sheet);
    }
}

/* ---- all cases ---- */

uint64_t tmk_explain_n_ooms(const struct tmk_explain_answer *a)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < a->n; i++)
        n += tmk_explanation_n_ooms(a->processes[i].explanation);
    return n;
}

/* Returns whether the same line of code ran out again for the same reason, which is said once. */
static bool is_again(const struct tmk_case *c, const struct tmk_case *before)
{
    return before && c->scene.kind == TMK_SCENE_OOM && before->scene.kind == TMK_SCENE_OOM &&
           c->scene.device == before->scene.device && c->scene.has_site == before->scene.has_site &&
           c->scene.site.line == before->scene.site.line &&
           c->scene.site.file == before->scene.site.file &&
           c->verdict.rows[0].cause == before->verdict.rows[0].cause;
}

static void write_explain_process(const struct tmk_explain_answer *a, uint32_t i,
                                  struct tmk_sheet *sheet)
{
    const struct tmk_explanation *x = a->processes[i].explanation;
    const struct tmk_case *last = NULL;
    char label[40], count[TMK_AMOUNT_BYTES];
    uint64_t n_shown = 0;
    const char *process = a->n > 1 ? tmk_process_label(a->processes[i].p, label) : NULL;
    for (uint64_t k = 0; k < tmk_explanation_n(x); k++) {
        const struct tmk_case *c = tmk_explanation_get(x, k);
        if (is_again(c, last))
            continue;
        write_explain_case(c, process, sheet);
        n_shown += c->scene.kind == TMK_SCENE_OOM;
        last = c;
    }
    uint64_t more = tmk_explanation_n_ooms(x) - n_shown;
    if (more > 0) {
        fputc('\n', sheet->out);
        tmk_sheet_text(sheet, "%s more like %s came later; --json has the first and the last.",
                       tmk_count_text(more, count), n_shown == 1 ? _("this") : _("these"));
    }
}

/* Say that a run has more processes than are explained. */
static void write_left_out(const struct tmk_explain_answer *a, struct tmk_sheet *sheet)
{
    uint32_t n_all = tmk_run_n_processes(a->run);
    if (a->n < n_all)
        tmk_sheet_text(sheet,
                       "%" PRIu32 " of %" PRIu32 " processes are explained: those that ran out of "
                       "memory, the first ones first, or else the one with the largest peak. "
                       "Another: --rank N.",
                       a->n, n_all);
}

/* The verdict on the run says what else there is. */
static void write_no_case(const struct tmk_explain_answer *a, struct tmk_sheet *sheet)
{
    struct tmk_arena words = {0};
    tmk_sheet_verdict(sheet, TMK_ROLE_PLAIN, "%s never ran out of memory, nor came near it.",
                      tmk_run_path(a->run));
    char *command =
        tmk_xformat("tidemark report %s", tmk_xshell_word(&words, tmk_run_path(a->run)));
    tmk_sheet_command(sheet, _("next: "), command);
    free(command);
    tmk_arena_fini(&words);
}

void tmk_explain_text(const struct tmk_explain_answer *a, struct tmk_sheet *sheet)
{
    uint64_t n_cases = 0;
    for (uint32_t i = 0; i < a->n; i++)
        n_cases += tmk_explanation_n(a->processes[i].explanation);
    if (n_cases == 0)
        write_no_case(a, sheet);
    if (a->ranks && a->ranks->n_ranks > 0) {
        tmk_sheet_heading(sheet, "RANKS");
        tmk_ranks_verdict_text(a->ranks, sheet);
        write_left_out(a, sheet);
    }
    for (uint32_t i = 0; i < a->n; i++)
        write_explain_process(a, i, sheet);
}
