/* SPDX-License-Identifier: MIT */
/* cli/answers/report_growth_text.c - the report's sections on leaks and fragmentation. Both are
 * short: the commands of that name tell more. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/frag/fragmentation.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_words.h"
#include "passes/leak/leaks.h"
#include "trace/defs.h"
#include "trace/layout.h"

enum { SHOWN_LEAKS = 5, WORTH_A_WORD = 16 << 20, WORTH_PART = 10 };

/* ---- leaks ---- */

static void add_leak_row(struct tmk_table *t, const struct tmk_leak *leak)
{
    char site[TMK_FRAME_TEXT_BYTES];
    tmk_table_cell(t, leak->has_site ? tmk_frame_text(&leak->site, true, site) : NULL);
    bool has_steps = leak->first_step != TMK_NO_STEP;
    double rate = has_steps ? leak->bytes_per_step : 60 * leak->bytes_per_second;
    tmk_table_size(t, tmk_size_whole(rate));
    tmk_table_size(t, leak->bytes);
    if (has_steps)
        tmk_table_cellf(t, "%" PRId64, leak->first_step);
    else
        tmk_table_cell(t, NULL);
    tmk_table_cellf(t, "%.2f", leak->confidence);
    tmk_table_cell(t, _(tmk_keeper_name(leak->keeper)));
}

/* "train.py:41: made in steps 3, 7, 11, ...", and the line's text. */
static void write_growth_evidence(const struct tmk_process *p, const struct tmk_leak *leak,
                                  struct tmk_sheet *sheet)
{
    char site[TMK_FRAME_TEXT_BYTES], words[TMK_LEAK_WORDS_BYTES], source[TMK_SOURCE_LINE_BYTES];
    char library[TMK_FRAME_TEXT_BYTES];
    struct tmk_frame f;
    const char *text = leak->has_site ? tmk_source_line(p, &leak->site, source) : NULL;
    bool is_called = leak->has_site && tmk_stack_library_line(p, leak->stack, &f);
    tmk_frame_text(leak->has_site ? &leak->site : NULL, true, site);
    char *item = tmk_xformat(_("%s%s%s%s%s%s: %s."), site, text ? ", `" : "", text ? text : "",
                             text ? "`" : "", is_called ? _(", made in ") : "",
                             is_called ? tmk_frame_text(&f, true, library) : "",
                             tmk_leak_evidence_text(leak, words));
    tmk_sheet_item(sheet, item);
    free(item);
}

/* What grew and was not judged, if the verdict speaks of it. */
static void write_doubts(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_leakage_n_doubts(f->leakage);
    if (n == 0)
        return;
    tmk_sheet_heading(sheet, "GROWTH THAT IS NOT JUDGED A LEAK");
    for (uint64_t i = 0; i < n && i < SHOWN_LEAKS; i++) {
        const struct tmk_leak *doubt = tmk_leakage_doubt(f->leakage, i);
        char site[TMK_FRAME_TEXT_BYTES], words[TMK_LEAK_WORDS_BYTES], size[TMK_AMOUNT_BYTES];
        char *item = tmk_xformat(_("%s grew by %s: %s."),
                                 tmk_frame_text(doubt->has_site ? &doubt->site : NULL, true, site),
                                 tmk_size_text(doubt->bytes, size), tmk_doubt_text(doubt, words));
        tmk_sheet_item(sheet, item);
        free(item);
    }
}

void tmk_report_leak_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    bool has_steps = tmk_leakage_n_steps(f->leakage) > 0;
    const struct tmk_column columns[] = {
        {"line", TMK_LEFT, TMK_SHRINK},   {has_steps ? "a step" : "a minute", TMK_RIGHT, TMK_FIXED},
        {"so far", TMK_RIGHT, TMK_FIXED}, {"since", TMK_RIGHT, TMK_FIXED},
        {"sure", TMK_RIGHT, TMK_FIXED},   {"kept by", TMK_LEFT, TMK_FIXED},
    };
    uint64_t n = tmk_leakage_n(f->leakage);
    if (n == 0) {
        write_doubts(f, sheet);
        return;
    }
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < n && i < SHOWN_LEAKS; i++)
        add_leak_row(t, tmk_leakage_get(f->leakage, i));
    tmk_sheet_heading(sheet, "LEAKS");
    tmk_sheet_text(sheet, "%s more with every %s; `tidemark leak` says what to do.",
                   n == 1 ? _("This line keeps") : _("These lines keep"),
                   has_steps ? _("step") : _("minute"));
    tmk_sheet_table(sheet, t);
    if (n > SHOWN_LEAKS)
        tmk_sheet_text(sheet, "%" PRIu64 " more", n - SHOWN_LEAKS);
    if (sheet->markdown)
        fputc('\n', sheet->out);
    for (uint64_t i = 0; i < n && i < SHOWN_LEAKS; i++)
        write_growth_evidence(f->p, tmk_leakage_get(f->leakage, i), sheet);
}

/* ---- fragmentation ---- */

/* Returns whether a tenth of what is reserved, and not little, is not allocated. */
static bool is_worth_a_word(const struct tmk_frag_sum *s)
{
    return s->free_bytes != TMK_BYTES_UNKNOWN && s->free_bytes >= WORTH_A_WORD &&
           s->free_bytes >= s->reserved_bytes / WORTH_PART;
}

static void write_device(const struct tmk_process_answer *f, uint64_t i, struct tmk_sheet *sheet)
{
    const struct tmk_frag_device *d = tmk_fragmentation_get(f->frag, i);
    char device[24], held[TMK_AMOUNT_BYTES], unused[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    char largest[TMK_AMOUNT_BYTES], whole_text[TMK_AMOUNT_BYTES], pieces[TMK_AMOUNT_BYTES];
    tmk_sheet_text(sheet, "%s: %s were reserved %s, after %s; %s of it was not allocated.",
                   tmk_device_name(d->device, device), tmk_size_text(d->sum.reserved_bytes, held),
                   d->is_oom ? _("when memory ran out") : _("at most"),
                   tmk_time_text(d->time_ns + f->p->offset_ns, time),
                   tmk_size_text(d->sum.free_bytes, unused));
    if (!d->has_segments)
        return;
    uint64_t n_pinned = tmk_fragmentation_pinned(f->frag, i, NULL, 0);
    tmk_sheet_text(
        sheet,
        "It was in %s free piece%s, the largest of %s; empty_cache() would have released %s. "
        "Blocks kept %" PRIu64
        " segment%s that were half free or more: `tidemark frag` lists them.",
        tmk_count_text(d->sum.n_free, pieces), d->sum.n_free == 1 ? "" : "s",
        tmk_size_text(d->sum.largest_bytes, largest), tmk_size_text(d->sum.whole_bytes, whole_text),
        n_pinned, n_pinned == 1 ? "" : "s");
}

void tmk_report_frag_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    bool has_heading = false;
    for (uint64_t i = 0; i < tmk_fragmentation_n(f->frag); i++) {
        if (!is_worth_a_word(&tmk_fragmentation_get(f->frag, i)->sum))
            continue;
        if (!has_heading)
            tmk_sheet_heading(sheet, "CACHED MEMORY");
        has_heading = true;
        write_device(f, i, sheet);
    }
}
