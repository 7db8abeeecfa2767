/* SPDX-License-Identifier: MIT */
/* cli/answers/whatif_text.c - see whatif_answer.h. */
#include "cli/answers/whatif_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/target.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/whatif/whatif.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

/* Savings below this are not worth a setting. */
static const double least_saving = 0.01;

const struct tmk_whatif_row *tmk_whatif_best(const struct tmk_whatif_answer *v)
{
    const struct tmk_whatif_row *best = NULL;
    for (unsigned i = 0; i < v->n_rows; i++) {
        const struct tmk_whatif_row *row = &v->rows[i];
        if (!row->result.has_oom &&
            (!best || row->result.peak_reserved_bytes < best->result.peak_reserved_bytes))
            best = row;
    }
    return best;
}

/* ---- for people ---- */

static const char *conf_text(const char *conf)
{
    return conf && *conf ? conf : _("torch's defaults");
}

static void add_change_cell(struct tmk_table *t, uint64_t bytes, uint64_t from)
{
    double change = from ? 100.0 * ((double)bytes - (double)from) / (double)from : 0;
    if (bytes == from)
        tmk_table_cell(t, _("same"));
    else if (!from)
        tmk_table_cell(t, NULL);
    else
        tmk_table_cellf(t, "%+.1f %%", change);
}

static void add_fits(struct tmk_table *t, const struct tmk_whatif_result *r)
{
    if (!r->has_oom)
        tmk_table_cell(t, _("yes"));
    else if (r->oom.step == TMK_NO_STEP)
        tmk_table_cell(t, _("no"));
    else
        tmk_table_cellf(t, _("no, step %" PRId64), r->oom.step);
}

/* The columns that are shown. Columns with the same value in all rows are left out: settings need
 * the room. */
struct shown {
    bool retries, fits;
};

static struct shown shown_of(const struct tmk_whatif_answer *v)
{
    struct shown shown = {.fits = v->is_asked};
    for (unsigned i = 0; i < v->n_rows; i++) {
        shown.retries |= v->rows[i].result.n_retries > 0;
        shown.fits |= v->rows[i].result.has_oom;
    }
    return shown;
}

static void add_setting_row(struct tmk_table *t, const struct tmk_whatif_answer *v,
                            const struct tmk_whatif_row *row, const struct shown *shown)
{
    const struct tmk_whatif_result *r = &row->result;
    bool is_as_recorded = row == v->rows && !v->recorded->is_async;
    tmk_table_cell(t, is_as_recorded ? _("as recorded") : conf_text(row->conf));
    tmk_table_size(t, r->peak_reserved_bytes);
    add_change_cell(t, r->peak_reserved_bytes, v->rows[0].result.peak_reserved_bytes);
    tmk_table_size(t, r->wasted_bytes);
    if (shown->retries)
        tmk_table_count(t, r->n_retries);
    if (shown->fits)
        add_fits(t, r);
}

static void add_measured(struct tmk_table *t, const struct tmk_whatif_answer *v,
                         const struct shown *shown)
{
    uint64_t bytes = v->recorded->peak_reserved_bytes;
    if (bytes == TMK_BYTES_UNKNOWN)
        return;
    tmk_table_cell(t, _("  measured then"));
    tmk_table_size(t, bytes);
    add_change_cell(t, bytes, v->rows[0].result.peak_reserved_bytes);
    tmk_table_cell(t, NULL);
    if (shown->retries)
        tmk_table_cell(t, NULL);
    if (shown->fits) /* not in what is asked about */
        tmk_table_cell(t, v->is_asked ? NULL : v->recorded->n_ooms ? _("no") : _("yes"));
}

static void print_setting_table(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    static const struct tmk_column all[] = {
        {"setting", TMK_LEFT, TMK_SHRINK}, {"reserved", TMK_RIGHT, TMK_FIXED},
        {"change", TMK_RIGHT, TMK_FIXED},  {"wasted", TMK_RIGHT, TMK_FIXED},
        {"retries", TMK_RIGHT, TMK_FIXED}, {"fits", TMK_LEFT, TMK_FIXED},
    };
    struct tmk_column columns[TMK_N(all)];
    struct shown shown = shown_of(v);
    uint32_t n = 4;
    memcpy(columns, all, sizeof all);
    if (shown.retries)
        columns[n++] = all[4];
    if (shown.fits)
        columns[n++] = all[5];
    struct tmk_table *t = tmk_table_open(columns, n);
    add_setting_row(t, v, &v->rows[0], &shown);
    add_measured(t, v, &shown);
    for (unsigned i = 1; i < v->n_rows; i++)
        add_setting_row(t, v, &v->rows[i], &shown);
    tmk_sheet_table(sheet, t);
}

static void print_head(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    char device[24], count[TMK_AMOUNT_BYTES], peak[TMK_AMOUNT_BYTES];
    const struct tmk_whatif_recorded *f = v->recorded;
    tmk_sheet_text(sheet,
                   "%s allocations and frees on %s through a model of PyTorch's caching allocator; "
                   "at most %s allocated. Recorded with %s.",
                   tmk_count_text(f->n_events, count), tmk_device_name(v->device, device),
                   tmk_size_text(f->peak_allocated_bytes, peak),
                   f->is_async ? _("backend:cudaMallocAsync") : conf_text(v->rows[0].conf));
}

/* Print the limit, and how it is known. */
static void print_limit(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    char limit[TMK_AMOUNT_BYTES], card[TMK_AMOUNT_BYTES], outside[TMK_AMOUNT_BYTES];
    const struct tmk_whatif_recorded *f = v->recorded;
    if (!v->limit_from || !(v->is_asked || f->n_ooms))
        return;
    if (v->capacity_bytes == TMK_BYTES_UNKNOWN)
        tmk_sheet_text(sheet, "Limit of torch: %s (%s).", tmk_size_text(v->limit_bytes, limit),
                       _(v->limit_from));
    else if (f->outside_bytes == TMK_BYTES_UNKNOWN)
        tmk_sheet_text(sheet,
                       "A GPU of %s, all of it for torch: what the process uses beside torch "
                       "(context, libraries; often 0.5 to 2 GiB) was not recorded.",
                       tmk_size_text(v->capacity_bytes, card));
    else if (v->capacity_bytes <= f->outside_bytes)
        tmk_sheet_text(sheet,
                       "A GPU of %s leaves nothing for torch: the process uses %s beside torch "
                       "(context, libraries), as recorded.",
                       tmk_size_text(v->capacity_bytes, card),
                       tmk_size_text(f->outside_bytes, outside));
    else
        tmk_sheet_text(
            sheet,
            "A GPU of %s leaves %s for torch: the process uses %s beside torch (context, "
            "libraries), as recorded.",
            tmk_size_text(v->capacity_bytes, card), tmk_size_text(v->limit_bytes, limit),
            tmk_size_text(f->outside_bytes, outside));
}

/* Print what a reader must know to trust the figures. */
static void print_returns(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    char count[TMK_AMOUNT_BYTES], least[TMK_AMOUNT_BYTES], below[TMK_AMOUNT_BYTES];
    const struct tmk_whatif_recorded *f = v->recorded;
    if (!f->n_returns || v->is_asked)
        return;
    char *text = tmk_xformat(
        _("Torch released its cache and took new memory at once %s time%s: it met a limit that is "
          "not known, or the program empties the cache. The limit would be %s or more, and less "
          "than %s: --allowed %" PRIu64 " replays with it."),
        tmk_count_text(f->n_returns, count), f->n_returns == 1 ? "" : "s",
        tmk_size_text(f->peak_reserved_bytes, least), tmk_size_text(f->limit_below_bytes, below),
        f->peak_reserved_bytes);
    tmk_sheet_item(sheet, text);
    free(text);
}

/* Returns whether a trace with expandable segments was replayed, under a limit, with settings
 * without them. */
static bool has_unplaced(const struct tmk_whatif_answer *v)
{
    bool is_unplaced = false;
    for (unsigned i = 1; i < v->n_rows; i++)
        is_unplaced |= !v->rows[i].setting.conf.expandable_segments;
    return is_unplaced && v->rows[0].setting.conf.expandable_segments &&
           (v->is_asked || v->recorded->n_ooms);
}

static void print_caveats(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    char count[TMK_AMOUNT_BYTES];
    const struct tmk_whatif_recorded *f = v->recorded;
    print_returns(sheet, v);
    if (v->ignores_fraction)
        tmk_sheet_item(sheet,
                       _("per_process_memory_fraction of the recorded settings has no effect "
                         "here: the GPU's size was not recorded. --capacity tells it."));
    if (f->is_conf_inferred && f->is_async)
        tmk_sheet_item(
            sheet, _("The settings were not recorded. The driver's pool shows that the backend was "
                     "cudaMallocAsync."));
    else if (f->is_conf_inferred)
        tmk_sheet_item(sheet, _("The settings were not recorded. The segments show that they were "
                                "expandable."));
    else if (!f->alloc_conf)
        tmk_sheet_item(sheet, _("The settings were not recorded; torch's defaults are used."));
    if (f->is_conf_wrong)
        tmk_sheet_item(sheet,
                       _("Torch 2.11 would not accept the recorded settings; its defaults are "
                         "used."));
    if (f->is_async)
        tmk_sheet_item(sheet, _("cudaMallocAsync is not modelled: this is what the native backend "
                                "would have reserved."));
    if (f->n_seeded) {
        char *text =
            tmk_xformat(_("%s blocks are older than the trace: the replay allocates them at its "
                          "start."),
                        tmk_count_text(f->n_seeded, count));
        tmk_sheet_item(sheet, text);
        free(text);
    }
    if (v->device == TIDEMARK_HOST)
        tmk_sheet_item(sheet, _("These are host blocks, replayed as if they were on a GPU."));
    else if (!f->knows_requests && !v->rows[0].setting.conf.expandable_segments)
        tmk_sheet_item(
            sheet,
            _("The trace has block sizes, not requested sizes: figures are good to 1 % with the "
              "recorded settings, to a few percent with others."));
    else if (has_unplaced(v))
        tmk_sheet_item(
            sheet, _("Recorded with expandable segments: where the driver would put others is not "
                     "known. Near a limit that can be some percent."));
}

/* ---- what to do ---- */

static void print_oom(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v,
                      const struct tmk_whatif_row *row)
{
    char time[TMK_AMOUNT_BYTES], request[TMK_AMOUNT_BYTES], need[TMK_AMOUNT_BYTES];
    char step[TMK_STEP_TEXT_BYTES];
    const struct tmk_whatif_oom *oom = &row->result.oom;
    if (!row->result.has_oom)
        return;
    char *least = row->has_smallest ? tmk_xformat(_(" It needs %s for torch."),
                                                  tmk_size_text(row->smallest_bytes, need))
                                    : tmk_xstrdup("");
    tmk_sheet_text(
        sheet,
        "With %s it runs out of memory%s, about %s after the start, at a request for %s%s.%s",
        row == v->rows ? _("the recorded settings") : row->conf,
        tmk_step_text(v->p, oom->step, " ", step),
        tmk_time_text(oom->time_ns + v->p->offset_ns, time),
        tmk_size_text(oom->requested_bytes, request),
        oom->is_recorded ? _(", as it did when recorded") : "", least);
    free(least);
}

static void print_least(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v,
                        const struct tmk_whatif_row *row)
{
    char need[TMK_AMOUNT_BYTES], card[TMK_AMOUNT_BYTES];
    uint64_t outside = v->recorded->outside_bytes;
    const char *name = row == v->rows ? _("the recorded settings") : conf_text(row->conf);
    if (!row->has_smallest || row->result.has_oom)
        return;
    tmk_size_text(row->smallest_bytes, need);
    if (outside == TMK_BYTES_UNKNOWN)
        tmk_sheet_text(sheet, "The smallest limit that works with %s: %s for torch.", name, need);
    else
        tmk_sheet_text(sheet, "The smallest GPU that works with %s: %s, %s of it for torch.", name,
                       tmk_size_text(row->smallest_bytes + outside, card), need);
}

static void print_advice(struct tmk_sheet *sheet, const struct tmk_whatif_answer *v)
{
    char saved[TMK_AMOUNT_BYTES];
    const struct tmk_whatif_row *now = &v->rows[0], *best = tmk_whatif_best(v);
    if (!best) {
        tmk_sheet_text(sheet,
                       "None of these settings makes it fit. It needs a larger GPU, or less memory "
                       "(tidemark peak shows what it uses).");
        return;
    }
    uint64_t before = now->result.peak_reserved_bytes, after = best->result.peak_reserved_bytes;
    double saving = before > after ? (double)(before - after) / (double)before : 0;
    if (best == now || (saving < least_saving && !now->result.has_oom))
        tmk_sheet_text(sheet, "No setting is worth a change: none saves more than %.0f %%.",
                       100 * least_saving);
    else if (now->result.has_oom && now->result.oom.is_recorded)
        tmk_sheet_text(
            sheet,
            "Set PYTORCH_CUDA_ALLOC_CONF=%s. Replayed: it gets past the request that failed. "
            "What comes after that is not in the trace.",
            conf_text(best->conf));
    else if (now->result.has_oom)
        tmk_sheet_text(sheet, "Set PYTORCH_CUDA_ALLOC_CONF=%s. Replayed: it does not run out.",
                       conf_text(best->conf));
    else
        tmk_sheet_text(sheet, "Set PYTORCH_CUDA_ALLOC_CONF=%s. Replayed: it saves %s (%.0f %%).",
                       conf_text(best->conf), tmk_size_text(before - after, saved), 100 * saving);
}

void tmk_whatif_text(const struct tmk_whatif_answer *v)
{
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    print_head(&sheet, v);
    print_limit(&sheet, v);
    fputc('\n', stdout);
    print_setting_table(&sheet, v);
    fputc('\n', stdout);
    print_oom(&sheet, v, &v->rows[0]);
    if (v->n_rows == 2)
        print_oom(&sheet, v, &v->rows[1]);
    for (unsigned i = 0; i < v->n_rows; i++)
        print_least(&sheet, v, &v->rows[i]);
    print_advice(&sheet, v);
    print_caveats(&sheet, v);
}
