/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance_line.c - a run in one line, as a batch system prints it when a job has
 * ended; see imbalance.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/language.h"
#include "model/run_clock.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

struct line_text {
    char *text; /* of TMK_IMBALANCE_LINE_BYTES */
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add_words(struct line_text *l, const char *format,
                                                            ...)
{
    size_t room = TMK_IMBALANCE_LINE_BYTES - l->length;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->length, room, _(format), args);
    va_end(args);
    if (n > 0)
        l->length += (size_t)n < room ? (size_t)n : room - 1;
}

/* Write " on rank 5", " on rank 5 (node7)" where there are several hosts, or " in process 4242". */
static void add_row_name(struct line_text *l, const struct tmk_imbalance *b, uint32_t row)
{
    const struct tmk_rank_facts *f = &b->rows[row].facts;
    if (f->rank < 0)
        add_words(l, " in process %" PRIu64, f->pid);
    else
        add_words(l, " on rank %" PRId64, f->rank);
    if (b->clock.n_hosts > 1 && f->host && f->host[0])
        add_words(l, " (%.60s)", f->host);
}

/* The row with the largest peak; of processes without a rank only where no rank has one. */
static uint32_t row_of_line(const struct tmk_imbalance *b)
{
    uint32_t best = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_row *row = &b->rows[i];
        if (!row->facts.has_peak)
            continue;
        if (best == TMK_RANK_NONE || (row->is_main && !b->rows[best].is_main) ||
            (row->is_main == b->rows[best].is_main &&
             row->facts.peak_bytes > b->rows[best].facts.peak_bytes))
            best = i;
    }
    return best;
}

/* Write "71.3 of 80.0 GiB", "18.3 MiB of 12.0 GiB", or "71.3 GiB" where the limit is not known. */
static void add_share_words(struct line_text *l, uint64_t bytes, uint64_t limit_bytes)
{
    char used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    tmk_size_text(bytes, used);
    if (limit_bytes == 0) {
        add_words(l, "%s", used);
        return;
    }
    tmk_size_text(limit_bytes, limit);
    char *unit = strchr(used, ' '), *limit_unit = strchr(limit, ' ');
    if (unit && limit_unit && strcmp(unit, limit_unit) == 0)
        *unit = '\0';
    add_words(l, "%s of %s", used, limit);
}

static void add_peak_words(struct line_text *l, const struct tmk_imbalance *b)
{
    uint32_t highest = row_of_line(b);
    if (highest == TMK_RANK_NONE) {
        add_words(l, "peak unknown: no memory was recorded");
        return;
    }
    const struct tmk_rank_facts *f = &b->rows[highest].facts;
    add_words(l, "peak ");
    add_share_words(l, f->peak_bytes, f->forecast.capacity_bytes);
    if (f->device == TIDEMARK_HOST)
        add_words(l, " of CPU memory");
    add_row_name(l, b, highest);
}

/* Ranks are judged; of other processes, the first that ran out. */
static uint32_t first_oom_of_line(const struct tmk_imbalance *b)
{
    uint32_t first = b->first_oom;
    for (uint32_t i = 0; b->first_oom == TMK_RANK_NONE && i < b->n_rows; i++)
        if (b->rows[i].facts.has_oom &&
            (first == TMK_RANK_NONE || b->rows[i].facts.oom_ns < b->rows[first].facts.oom_ns))
            first = i;
    return first;
}

static void add_oom(struct line_text *l, const struct tmk_imbalance *b)
{
    uint32_t first = first_oom_of_line(b);
    if (first == TMK_RANK_NONE)
        return;
    add_words(l, "; OUT OF MEMORY");
    add_row_name(l, b, first);
    if (b->rows[first].facts.oom_step != TMK_NO_STEP)
        add_words(l, " in step %" PRId64, b->rows[first].facts.oom_step);
}

static void add_balance(struct line_text *l, const struct tmk_imbalance *b)
{
    char list[TMK_RANK_LIST_BYTES];
    if (!b->is_judged)
        return;
    if (b->is_imbalanced && b->median_bytes > 0)
        add_words(l, "; IMBALANCED, %.2f times the median",
                  (double)b->rows[b->highest].facts.peak_bytes / b->median_bytes);
    if (b->n_under_half > 0)
        add_words(l, "; %" PRIu32 " rank%s used less than half of the peak: %s", b->n_under_half,
                  b->n_under_half > 1 ? "s" : "",
                  tmk_rank_list_text(b, tmk_rank_is_under_half, 0, list));
}

static void add_lost(struct line_text *l, const struct tmk_imbalance *b)
{
    char list[TMK_RANK_LIST_BYTES];
    if (b->first_ended != TMK_RANK_NONE)
        add_words(l, "; ENDED EARLY: %s", tmk_rank_list_text(b, tmk_rank_ended_early, 0, list));
    if (b->n_missing > 0)
        add_words(l, "; %" PRId64 " of %" PRId64 " ranks MISSING: %s", b->n_missing, b->world_size,
                  tmk_rank_missing_text(b, list));
}

const char *tmk_imbalance_line(const struct tmk_imbalance *b, char *buffer)
{
    struct line_text l = {.text = buffer};
    add_peak_words(&l, b);
    add_oom(&l, b);
    add_balance(&l, b);
    add_lost(&l, b);
    return buffer;
}
