/* SPDX-License-Identifier: MIT */
/* cli/answers/report_growth.c - the report's sections on leaks and fragmentation. Both are short:
 * the commands of that name tell more. */
#include <inttypes.h>

#include "base/array.h"
#include "cli/answers/report.h"
#include "cli/front/command.h"
#include "kit/amount.h"

enum { SHOWN_LEAKS = 5, WORTH_A_WORD = 16 << 20, WORTH_PART = 10 };

/* ---- leaks ---- */

static void add_leak_row(struct tmk_table *t, const struct tmk_leak *leak)
{
    char text[TMK_AMOUNT_BYTES], site[TMK_FRAME_TEXT_BYTES];
    tmk_table_cell(t, leak->has_site ? tmk_frame_text(&leak->site, true, site) : NULL);
    bool has_steps = leak->first_step != TMK_NO_STEP;
    double rate = has_steps ? leak->bytes_per_step : 60 * leak->bytes_per_second;
    tmk_table_cell(t, tmk_size_text(tmk_size_whole(rate), text));
    tmk_table_cell(t, tmk_size_text(leak->bytes, text));
    if (has_steps)
        tmk_table_cellf(t, "%" PRId64, leak->first_step);
    else
        tmk_table_cell(t, NULL);
    tmk_table_cellf(t, "%.2f", leak->confidence);
    tmk_table_cell(t, tmk_keeper_name(leak->keeper));
}

void tmk_report_leak_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet)
{
    bool has_steps = tmk_leakage_n_steps(f->leakage) > 0;
    const struct tmk_column columns[] = {
        {"line", TMK_LEFT, TMK_SHRINK},   {has_steps ? "a step" : "a minute", TMK_RIGHT, TMK_FIXED},
        {"so far", TMK_RIGHT, TMK_FIXED}, {"since", TMK_RIGHT, TMK_FIXED},
        {"sure", TMK_RIGHT, TMK_FIXED},   {"kept by", TMK_LEFT, TMK_FIXED},
    };
    uint64_t n = tmk_leakage_n(f->leakage);
    if (n == 0)
        return;
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    for (uint64_t i = 0; i < n && i < SHOWN_LEAKS; i++)
        add_leak_row(t, tmk_leakage_get(f->leakage, i));
    tmk_sheet_heading(sheet, "LEAKS");
    tmk_sheet_text(sheet, "%s more with every %s; `tidemark leak` says what to do.",
                   n == 1 ? "This line keeps" : "These lines keep", has_steps ? "step" : "minute");
    tmk_sheet_table(sheet, t);
    if (n > SHOWN_LEAKS)
        tmk_sheet_text(sheet, "%" PRIu64 " more", n - SHOWN_LEAKS);
}

void tmk_report_leak_tree(const struct tmk_facts *f, struct tmk_tree *t)
{
    static const char *const verdicts[] = {
        [TMK_LEAK_CLEAN] = "clean", [TMK_LEAK_FOUND] = "leak", [TMK_LEAK_TOO_SHORT] = NULL};
    char device[24];
    tmk_tree_text(t, "leak_verdict", verdicts[tmk_leakage_verdict(f->leakage)]);
    tmk_tree_list(t, "leaks");
    for (uint64_t i = 0; i < tmk_leakage_n(f->leakage); i++) {
        const struct tmk_leak *leak = tmk_leakage_get(f->leakage, i);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "file", leak->has_site ? leak->site.file : NULL);
        if (leak->has_site && leak->site.line)
            tmk_tree_u64(t, "line", leak->site.line);
        else
            tmk_tree_null(t, "line");
        tmk_tree_text(t, "function", leak->has_site ? leak->site.function : NULL);
        tmk_tree_text(t, "category", tmk_category_name(leak->category));
        tmk_tree_text(t, "module", leak->module);
        if (leak->first_step != TMK_NO_STEP) {
            tmk_tree_double(t, "bytes_per_step", leak->bytes_per_step);
            tmk_tree_double(t, "blocks_per_step", leak->blocks_per_step);
            tmk_tree_i64(t, "first_step", leak->first_step);
        } else {
            tmk_tree_null(t, "bytes_per_step");
            tmk_tree_null(t, "blocks_per_step");
            tmk_tree_null(t, "first_step");
        }
        tmk_tree_double(t, "confidence", leak->confidence);
        tmk_tree_u64(t, "growth_bytes", leak->bytes);
        tmk_tree_text(t, "device", tmk_device_name(leak->device, device));
        tmk_tree_text(t, "kept_by", tmk_keeper_name(leak->keeper));
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

/* ---- fragmentation ---- */

/* A tenth of what is held, and not little. */
static bool is_worth_a_word(const struct tmk_frag_sum *s)
{
    return s->free_bytes != TMK_FRAG_UNKNOWN && s->free_bytes >= WORTH_A_WORD &&
           s->free_bytes >= s->reserved_bytes / WORTH_PART;
}

static void write_device(const struct tmk_facts *f, uint64_t i, struct tmk_sheet *sheet)
{
    const struct tmk_frag_device *d = tmk_fragmentation_get(f->frag, i);
    char device[24], held[TMK_AMOUNT_BYTES], unused[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    char largest[TMK_AMOUNT_BYTES], whole_text[TMK_AMOUNT_BYTES], pieces[TMK_AMOUNT_BYTES];
    tmk_sheet_text(sheet, "%s: %s were held %s, after %s, of which %s were not in use.",
                   tmk_device_name(d->device, device), tmk_size_text(d->sum.reserved_bytes, held),
                   d->is_oom ? "when memory was refused" : "at most",
                   tmk_time_text(d->time_ns + f->p->offset_ns, time),
                   tmk_size_text(d->sum.free_bytes, unused));
    if (!d->has_segments)
        return;
    uint64_t n_pinned = tmk_fragmentation_pinned(f->frag, i, NULL, 0);
    tmk_sheet_text(
        sheet,
        "They were in %s pieces, the largest of %s; empty_cache() would have given %s "
        "back. %" PRIu64 " segment%s half free or more and kept by blocks: `tidemark "
        "frag` lists them.",
        tmk_count_text(d->sum.n_free, pieces), tmk_size_text(d->sum.largest_bytes, largest),
        tmk_size_text(d->sum.whole_bytes, whole_text), n_pinned, n_pinned == 1 ? " was" : "s were");
}

void tmk_report_frag_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet)
{
    bool has_heading = false;
    for (uint64_t i = 0; i < tmk_fragmentation_n(f->frag); i++) {
        if (!is_worth_a_word(&tmk_fragmentation_get(f->frag, i)->sum))
            continue;
        if (!has_heading)
            tmk_sheet_heading(sheet, "HELD BUT NOT USED");
        has_heading = true;
        write_device(f, i, sheet);
    }
}

static void add_bytes(struct tmk_tree *t, const char *key, uint64_t bytes)
{
    if (bytes == TMK_FRAG_UNKNOWN)
        tmk_tree_null(t, key);
    else
        tmk_tree_u64(t, key, bytes);
}

void tmk_report_frag_tree(const struct tmk_facts *f, struct tmk_tree *t)
{
    char device[24];
    tmk_tree_list(t, "fragmentation");
    for (uint64_t i = 0; i < tmk_fragmentation_n(f->frag); i++) {
        const struct tmk_frag_device *d = tmk_fragmentation_get(f->frag, i);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "device", tmk_device_name(d->device, device));
        tmk_tree_u64(t, "time_ns", d->time_ns + f->p->offset_ns);
        if (d->step != TMK_NO_STEP)
            tmk_tree_i64(t, "step", d->step);
        else
            tmk_tree_null(t, "step");
        add_bytes(t, "reserved", d->sum.reserved_bytes);
        add_bytes(t, "allocated", d->sum.allocated_bytes);
        add_bytes(t, "free", d->sum.free_bytes);
        add_bytes(t, "largest_free", d->sum.largest_bytes);
        add_bytes(t, "largest_allocatable", d->sum.allocatable_bytes);
        add_bytes(t, "releasable", d->sum.whole_bytes);
        add_bytes(t, "pinned_segments",
                  d->has_segments ? tmk_fragmentation_pinned(f->frag, i, NULL, 0)
                                  : TMK_FRAG_UNKNOWN);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}
