/* SPDX-License-Identifier: MIT */
/* cli/answers/report_device_text.c - the report's account of each GPU: what nvidia-smi shows, taken
 * apart. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/output/sheet.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/accounting.h"

static void add_account_row(struct tmk_table *t, const char *what, uint64_t bytes, uint64_t whole,
                            const char *how)
{
    char percent[TMK_AMOUNT_BYTES];
    bool is_known = bytes != TMK_BYTES_UNKNOWN;
    tmk_table_cell(t, what);
    tmk_table_size(t, bytes);
    tmk_table_cell(
        t, is_known && whole != TMK_BYTES_UNKNOWN ? tmk_percent_text(bytes, whole, percent) : NULL);
    tmk_table_cell(t, how);
}

/* Says what is in the segments of torch's allocator. */
static const char *inside_text(const struct tmk_device_account *a,
                               const struct tmk_account_part *part, char *buffer, size_t size)
{
    char blocks[TMK_AMOUNT_BYTES], cached[TMK_AMOUNT_BYTES], count[TMK_AMOUNT_BYTES];
    bool is_torch = strcmp(part->owner, "torch") == 0 && a->has_reserved;
    tmk_count_text(part->n_segments, count);
    if (!is_torch) {
        snprintf(buffer, size, _("%s segment%s"), count, part->n_segments == 1 ? "" : "s");
        return buffer;
    }
    uint64_t unused =
        a->reserved_bytes > a->allocated_bytes ? a->reserved_bytes - a->allocated_bytes : 0;
    snprintf(buffer, size, _("%s segment%s: %s allocated, %s cached"), count,
             part->n_segments == 1 ? "" : "s", tmk_size_text(a->allocated_bytes, blocks),
             tmk_size_text(unused, cached));
    return buffer;
}

static void write_account_table(const struct tmk_device_account *a, struct tmk_sheet *sheet)
{
    static const struct tmk_column columns[] = {
        {"part                        ", TMK_LEFT, TMK_SHRINK},
        {"size", TMK_RIGHT, TMK_FIXED},
        {"share", TMK_RIGHT, TMK_FIXED},
        {"", TMK_LEFT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    char inside[160];
    for (uint64_t i = 0; i < a->n_parts; i++)
        add_account_row(t, a->parts[i].owner, a->parts[i].bytes, a->used_bytes,
                        inside_text(a, &a->parts[i], inside, sizeof inside));
    add_account_row(t, _("context, loaded code"), a->context_bytes, a->used_bytes, "");
    add_account_row(t, _("other processes"), a->others_bytes, a->used_bytes, "");
    add_account_row(t, _("unexplained"), a->unexplained_bytes, a->used_bytes, "");
    tmk_sheet_table(sheet, t);
}

static void write_account(const struct tmk_process_answer *f, const struct tmk_device_account *a,
                          struct tmk_sheet *sheet)
{
    char used[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24];
    tmk_device_name(a->device, device);
    tmk_time_text(a->time_ns + f->p->offset_ns, time);
    if (a->used_bytes == TMK_BYTES_UNKNOWN)
        tmk_sheet_text(
            sheet,
            "The driver says nothing about %s (no NVML). The process had this from it at the end:",
            device);
    else
        tmk_sheet_text(sheet, "%s: %s of %s were in use when this process used most, after %s.",
                       device, tmk_size_text(a->used_bytes, used),
                       tmk_size_text(a->total_bytes, total), time);
    write_account_table(a, sheet);
}

void tmk_report_device_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    uint64_t n = tmk_accounting_n(f->accounting);
    if (n == 0)
        return;
    tmk_sheet_heading(sheet, "DEVICE MEMORY");
    for (uint64_t i = 0; i < n; i++)
        if (tmk_accounting_get(f->accounting, i)->is_peak)
            write_account(f, tmk_accounting_get(f->accounting, i), sheet);
}
