/* SPDX-License-Identifier: MIT */
/* cli/answers/answer_json.c - see answer_json.h. */
#include "cli/answers/answer_json.h"

#include "cli/output/source_line.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"

#include <math.h>

#include "forecast/oom_forecast.h"
#include "passes/group.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"

void tmk_answer_put_step(struct tmk_tree *t, const char *key, int64_t step)
{
    tmk_tree_i64_if(t, key, step != TMK_NO_STEP, step);
}

void tmk_answer_put_device(struct tmk_tree *t, uint16_t device)
{
    char name[24];
    tmk_tree_text(t, "device", tmk_device_name(device, name));
}

void tmk_answer_put_rank(struct tmk_tree *t, const struct tmk_process *p)
{
    tmk_tree_number(t, "rank", p->rank);
}

void tmk_answer_put_pid(struct tmk_tree *t, const struct tmk_process *p)
{
    tmk_tree_u64_if(t, "pid", p->pid != 0, p->pid);
}

void tmk_answer_put_site(struct tmk_tree *t, bool is_known, const struct tmk_frame *site)
{
    uint32_t line = is_known ? site->line : 0;
    tmk_tree_text(t, "file", is_known ? site->file : NULL);
    tmk_tree_u64_if(t, "line", line != 0, line);
    tmk_tree_text(t, "function", is_known ? site->function : NULL);
}

static void put_frames(struct tmk_tree *t, const struct tmk_process *p, const struct tmk_stack *s)
{
    for (uint32_t i = 0; i < s->n_frames; i++) {
        struct tmk_frame f;
        char text[TMK_FRAME_TEXT_BYTES];
        bool is_known = tmk_process_frame(p, s->frames[i], &f);
        tmk_tree_text(t, NULL, tmk_frame_text(is_known ? &f : NULL, false, text));
    }
}

void tmk_answer_put_stack(struct tmk_tree *t, const char *key, const struct tmk_process *p,
                          uint32_t stack)
{
    struct tmk_stack s;
    tmk_tree_list(t, key);
    if (tmk_reader_stack(p->reader, stack, &s))
        put_frames(t, p, &s);
    tmk_tree_end(t);
}

void tmk_answer_put_stack_if(struct tmk_tree *t, const char *key, const struct tmk_process *p,
                             uint32_t stack)
{
    struct tmk_stack s;
    if (!tmk_tree_list_if(t, key, stack != 0 && tmk_reader_stack(p->reader, stack, &s)))
        return;
    put_frames(t, p, &s);
    tmk_tree_end(t);
}

/* The user's line as its file has it now, and the library's line that it called. */
static void put_source(struct tmk_tree *t, const struct tmk_process *p, const struct tmk_leak *leak)
{
    char source[TMK_SOURCE_LINE_BYTES], text[TMK_FRAME_TEXT_BYTES];
    struct tmk_frame f;
    bool is_called = leak->has_site && tmk_stack_library_line(p, leak->stack, &f);
    tmk_tree_text(t, "source", leak->has_site ? tmk_source_line(p, &leak->site, source) : NULL);
    tmk_tree_text(t, "made_in", is_called ? tmk_frame_text(&f, false, text) : NULL);
}

void tmk_answer_put_evidence(struct tmk_tree *t, const struct tmk_process *p,
                             const struct tmk_leak *leak)
{
    char words[TMK_LEAK_WORDS_BYTES];
    bool has_steps = leak->first_step != TMK_NO_STEP;
    tmk_tree_text(t, "pace", leak->is_faster ? "faster" : "even");
    tmk_tree_u64_if(t, "every_steps", has_steps && leak->every > 0, leak->every);
    tmk_tree_u64_if(t, "kept_steps", has_steps, leak->n_rises);
    tmk_answer_put_step(t, "last_step", leak->at_step);
    tmk_tree_bool(t, "let_go", leak->is_let_go);
    tmk_tree_text(t, "evidence", tmk_leak_evidence_text(leak, words));
    put_source(t, p, leak);
}

void tmk_answer_put_doubt(struct tmk_tree *t, const struct tmk_leak *doubt)
{
    char words[TMK_LEAK_WORDS_BYTES];
    tmk_answer_put_site(t, doubt->has_site, &doubt->site);
    tmk_tree_text(t, "category", tmk_category_name(doubt->category));
    tmk_tree_text(t, "module", doubt->module);
    tmk_tree_text(t, "reason", tmk_doubt_name(doubt->doubt));
    tmk_tree_text(t, "text", tmk_doubt_text(doubt, words));
    tmk_tree_u64(t, "growth_bytes", doubt->bytes);
    tmk_tree_u64(t, "rises", doubt->n_rises);
}

void tmk_answer_put_rows(struct tmk_tree *t, const char *key, const struct tmk_peak_row *rows,
                         uint64_t n, uint64_t most)
{
    tmk_tree_list(t, key);
    for (uint64_t i = 0; i < n && i < most; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "key", rows[i].key);
        tmk_tree_u64(t, "bytes", rows[i].bytes);
        tmk_tree_u64(t, "blocks", rows[i].n_blocks);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_advice(struct tmk_tree *t, const struct tmk_forecast *f)
{
    const char *advice;
    tmk_tree_list(t, "advice");
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(f->cause, f->risk, i)) != NULL; i++)
        tmk_tree_text(t, NULL, advice);
    tmk_tree_end(t);
}

void tmk_answer_put_forecast(struct tmk_tree *t, const char *key, const struct tmk_forecast *f)
{
    if (!tmk_tree_object_if(t, key, f && f->risk != TMK_RISK_UNKNOWN))
        return;
    tmk_tree_text(t, "risk", tmk_risk_text(f->risk));
    tmk_tree_fixed(t, "seconds_to_oom", f->has_time ? f->seconds_to_oom : NAN, 3);
    tmk_tree_fixed(t, "seconds_low", f->has_time ? f->seconds_low : NAN, 3);
    tmk_tree_fixed(t, "seconds_high", f->has_time ? f->seconds_high : NAN, 3);
    bool has_steps = f->has_time && f->by_step;
    tmk_tree_i64_if(t, "steps_to_oom", has_steps,
                    has_steps ? (int64_t)ceil(f->steps_to_oom - 1e-6) : 0);
    tmk_tree_fixed(t, "confidence", f->has_confidence ? f->confidence : NAN, 2);
    tmk_tree_text(t, "cause", tmk_growth_cause_name(f->cause));
    put_advice(t, f);
    tmk_tree_end(t);
}
