/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance_tell.c - the verdict about a run's ranks in words; see imbalance.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/language.h"
#include "model/run_clock.h"
#include "passes/forecast.h"
#include "passes/imbalance/imbalance.h"
#include "passes/imbalance/rank_facts.h"
#include "trace/layout.h"

/* ---- lists of ranks ---- */

struct rank_list {
    char *text;
    size_t length;
    bool is_cut;
};

static const char list_cut[] = ", ...";

static void add_range(struct rank_list *l, int64_t from, int64_t to)
{
    char part[48];
    const char *comma = l->length > 0 ? ", " : "";
    if (l->is_cut || from > to)
        return;
    if (from == to)
        snprintf(part, sizeof part, "%s%" PRId64, comma, from);
    else
        snprintf(part, sizeof part, "%s%" PRId64 "%s%" PRId64, comma, from,
                 to == from + 1 ? ", " : "-", to);
    l->is_cut = l->length + strlen(part) + sizeof list_cut > TMK_RANK_LIST_BYTES;
    const char *more = l->is_cut ? list_cut : part;
    strcpy(l->text + l->length, more);
    l->length += strlen(more);
}

const char *tmk_rank_list_text(const struct tmk_imbalance *b,
                               bool (*wanted)(const struct tmk_rank_row *row, uint32_t arg),
                               uint32_t arg, char *buffer)
{
    struct rank_list l = {.text = buffer};
    int64_t from = 0, to = -1;
    buffer[0] = '\0';
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_row *row = &b->rows[i];
        if (!row->is_main || !wanted(row, arg))
            continue;
        if (to >= from && row->facts.rank != to + 1) {
            add_range(&l, from, to);
            from = row->facts.rank;
        } else if (to < from) {
            from = row->facts.rank;
        }
        to = row->facts.rank;
    }
    add_range(&l, from, to);
    return buffer;
}

const char *tmk_rank_missing_text(const struct tmk_imbalance *b, char *buffer)
{
    struct rank_list l = {.text = buffer};
    int64_t next = 0;
    buffer[0] = '\0';
    for (uint32_t i = 0; b->n_missing > 0 && i < b->n_rows; i++) {
        const struct tmk_rank_row *row = &b->rows[i];
        if (!row->is_main || row->facts.rank >= b->world_size)
            continue;
        add_range(&l, next, row->facts.rank - 1);
        next = row->facts.rank + 1;
    }
    if (b->n_missing > 0)
        add_range(&l, next, b->world_size - 1);
    return buffer;
}

bool tmk_rank_is_in_group(const struct tmk_rank_row *row, uint32_t group)
{
    return row->group == group;
}

bool tmk_rank_died_of_it(const struct tmk_rank_row *row, uint32_t unused)
{
    (void)unused;
    return row->died_of_it;
}

bool tmk_rank_ended_early(const struct tmk_rank_row *row, uint32_t unused)
{
    (void)unused;
    return row->ended_early;
}

bool tmk_rank_is_under_half(const struct tmk_rank_row *row, uint32_t unused)
{
    (void)unused;
    return row->is_under_half;
}

/* ---- sentences ---- */

struct rank_teller {
    const struct tmk_imbalance *b;
    void (*sentence)(void *arg, const char *text);
    void *arg;
    unsigned n;
};

__attribute__((format(printf, 2, 3))) static void tell_ranks(struct rank_teller *t,
                                                             const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, _(format), args);
    va_end(args);
    t->sentence(t->arg, text);
    t->n++;
}

/* Write "rank 3 on node7"; the host only where there are several. */
static const char *rank_name(const struct tmk_imbalance *b, uint32_t row, char *buffer)
{
    const struct tmk_rank_facts *f = &b->rows[row].facts;
    if (b->clock.n_hosts > 1 && f->host && f->host[0])
        snprintf(buffer, 100, _("rank %" PRId64 " on %s"), f->rank, f->host);
    else
        snprintf(buffer, 100, _("rank %" PRId64), f->rank);
    return buffer;
}

/* Write ", in step 12", or nothing where no step had begun. */
static const char *step_words(int64_t step, char *buffer)
{
    buffer[0] = '\0';
    if (step != TMK_NO_STEP)
        snprintf(buffer, 40, _(", in step %" PRId64), step);
    return buffer;
}

static uint64_t bytes_over_typical(const struct tmk_imbalance *b)
{
    return b->rows[b->highest].facts.peak_bytes - b->rows[b->typical].facts.peak_bytes;
}

static bool is_nearly_even(const struct tmk_imbalance *b)
{
    return (double)b->rows[b->highest].facts.peak_bytes * 100 <=
           b->median_bytes * TMK_ALIKE_PERCENT;
}

static void tell_verdict(struct rank_teller *t)
{
    const struct tmk_imbalance *b = t->b;
    char peak[TMK_AMOUNT_BYTES], median[TMK_AMOUNT_BYTES], more[TMK_AMOUNT_BYTES];
    char name[100], typical[100];
    const struct tmk_rank_facts *f = &b->rows[b->highest].facts;
    tmk_size_text(f->peak_bytes, peak);
    tmk_size_text((uint64_t)(b->median_bytes + 0.5), median);
    if (is_nearly_even(b))
        tell_ranks(t, "The %" PRIu32 " ranks are balanced: the largest peak is %s, the median %s.",
                   b->n_ranks, peak, median);
    else
        tell_ranks(t,
                   "%s: %s has the largest peak, %s. That is %.2f times the median of %" PRIu32
                   " ranks (%s), and %s more than %s.",
                   b->is_imbalanced ? _("IMBALANCED") : _("Not quite balanced"),
                   rank_name(b, b->highest, name), peak,
                   b->median_bytes > 0 ? (double)f->peak_bytes / b->median_bytes : 0, b->n_ranks,
                   median, tmk_size_text(bytes_over_typical(b), more),
                   rank_name(b, b->typical, typical));
}

static void add_why_part(char *text, size_t room, const char *lead,
                         const struct tmk_imbalance_part *part)
{
    char size[TMK_AMOUNT_BYTES];
    size_t n = strlen(text);
    if (part->key)
        snprintf(text + n, room - n, _("%s%s %.100s, %s more"), n ? _("; ") : "", lead,
                 _(part->key), tmk_size_text(part->more_bytes, size));
}

static void tell_why(struct rank_teller *t)
{
    const struct tmk_imbalance_why *why = &t->b->why;
    char parts[450] = "", name[100];
    if (!why->is_known)
        return;
    add_why_part(parts, sizeof parts, _("category"), &why->category);
    add_why_part(parts, sizeof parts, _("module"), &why->module);
    add_why_part(parts, sizeof parts, _("stage"), &why->stage);
    if (parts[0])
        tell_ranks(t, "Largest differences to %s at the peak: %s.",
                   rank_name(t->b, t->b->typical, name), parts);
    if (why->batch_factor > 0)
        tell_ranks(t,
                   "Its activations and inputs are the same blocks, %.2g times as large: it has "
                   "a larger batch or longer sequences.",
                   why->batch_factor);
}

static void tell_missing(struct rank_teller *t)
{
    char list[TMK_RANK_LIST_BYTES];
    if (t->b->n_missing > 0)
        tell_ranks(t,
                   "MISSING: %" PRId64 " of %" PRId64 " ranks have no trace here: %s. They were "
                   "not watched, wrote into another folder, or used no memory.",
                   t->b->n_missing, t->b->world_size, tmk_rank_missing_text(t->b, list));
}

static void tell_first_oom(struct rank_teller *t)
{
    const struct tmk_imbalance *b = t->b;
    char name[100], time[TMK_AMOUNT_BYTES], list[TMK_RANK_LIST_BYTES], step[40];
    if (b->first_oom == TMK_RANK_NONE)
        return;
    const struct tmk_rank_facts *f = &b->rows[b->first_oom].facts;
    tell_ranks(t, "OUT OF MEMORY: %s was the first, after %s%s.", rank_name(b, b->first_oom, name),
               tmk_time_text(f->oom_ns, time), step_words(f->oom_step, step));
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_rows; i++)
        n += b->rows[i].died_of_it;
    if (n > 0)
        tell_ranks(t, "Rank%s %s only ended because of that: no memory request of %s failed.",
                   n > 1 ? "s" : "", tmk_rank_list_text(b, tmk_rank_died_of_it, 0, list),
                   n > 1 ? "theirs" : "its");
}

static void tell_ended_early(struct rank_teller *t)
{
    const struct tmk_imbalance *b = t->b;
    char name[100], time[TMK_AMOUNT_BYTES], list[TMK_RANK_LIST_BYTES], step[40];
    if (b->first_ended == TMK_RANK_NONE)
        return;
    const struct tmk_rank_facts *f = &b->rows[b->first_ended].facts;
    tell_ranks(t, "ENDED EARLY: %s, after %s%s%s.", rank_name(b, b->first_ended, name),
               tmk_time_text(f->end_ns, time), step_words(f->last_step, step),
               f->end == TMK_RANK_KILLED ? _(": a signal killed it") : "");
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_rows; i++)
        n += b->rows[i].ended_early;
    if (n > 1)
        tell_ranks(t, "In all, ranks %s ended early; that one was the first.",
                   tmk_rank_list_text(b, tmk_rank_ended_early, 0, list));
}

static void tell_next_oom(struct rank_teller *t)
{
    const struct tmk_imbalance *b = t->b;
    char name[100], text[TMK_FORECAST_TEXT_BYTES];
    if (b->next_oom == TMK_RANK_NONE)
        return;
    const struct tmk_rank_facts *f = &b->rows[b->next_oom].facts;
    tell_ranks(t, "%s %s runs out of memory first; risk %s.",
               f->end == TMK_RANK_RUNNING ? _("Forecast:") : _("Had it gone on,"),
               rank_name(b, b->next_oom, name), tmk_forecast_text(&f->forecast, false, text));
}

static void tell_clocks(struct rank_teller *t)
{
    const struct tmk_clock_match *c = &t->b->clock;
    char within[TMK_AMOUNT_BYTES], moved[TMK_AMOUNT_BYTES];
    if (c->n_hosts < 2)
        return;
    if (c->n_measured < c->n_hosts) {
        tell_ranks(t,
                   "Times of %" PRIu32 " hosts are compared by their own clocks: they are as exact "
                   "as NTP keeps those.",
                   c->n_hosts);
        return;
    }
    tmk_time_text(c->within_ns, within);
    if (c->moved_ns > 0)
        tell_ranks(t,
                   "The clocks of %" PRIu32 " hosts were up to %s apart and are aligned to within "
                   "%s, by %" PRIu32 " steps that they began together.",
                   c->n_hosts, tmk_time_text(c->moved_ns, moved), within, c->n_steps);
    else
        tell_ranks(t,
                   "The clocks of %" PRIu32 " hosts agree to within %s, by %" PRIu32
                   " steps that they began together.",
                   c->n_hosts, within, c->n_steps);
}

unsigned tmk_imbalance_tell(const struct tmk_imbalance *b,
                            void (*sentence)(void *arg, const char *text), void *arg)
{
    struct rank_teller t = {.b = b, .sentence = sentence, .arg = arg};
    if (b->n_ranks == 0 || (b->n_ranks == 1 && b->n_missing == 0))
        return 0;
    if (b->is_judged) {
        tell_verdict(&t);
        tell_why(&t);
    }
    tell_first_oom(&t);
    tell_ended_early(&t);
    tell_missing(&t);
    tell_next_oom(&t);
    if (b->is_judged)
        tell_clocks(&t);
    return t.n;
}
