/* SPDX-License-Identifier: MIT */
/* passes/imbalance/imbalance.c - see imbalance.h. */
#include "passes/imbalance/imbalance.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "forecast/oom_forecast.h"
#include "passes/imbalance/imbalance_why.h"
#include "passes/imbalance/rank_facts.h"

/* ---- which process stands for a rank ---- */

static bool is_before_row(const struct tmk_rank_row *a, const struct tmk_rank_row *b)
{
    return a->facts.rank < b->facts.rank;
}

/* Rows of one rank need not be neighbours in a test, but they are in a run, which is ordered. */
static void choose_mains(struct tmk_imbalance *b)
{
    uint32_t main = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        struct tmk_rank_row *row = &b->rows[i];
        row->is_main = false;
        if (row->facts.rank < 0)
            continue;
        bool is_new = main == TMK_RANK_NONE || is_before_row(&b->rows[main], row);
        if (is_new || row->facts.peak_bytes > b->rows[main].facts.peak_bytes) {
            if (!is_new)
                b->rows[main].is_main = false;
            row->is_main = true;
            main = i;
            b->n_ranks += is_new;
        }
        if (row->facts.world_size > b->world_size)
            b->world_size = row->facts.world_size;
    }
}

static void count_missing(struct tmk_imbalance *b)
{
    int64_t n_inside = 0;
    for (uint32_t i = 0; i < b->n_rows; i++)
        n_inside += b->rows[i].is_main && b->rows[i].facts.rank < b->world_size;
    b->n_missing = n_inside > 0 && b->world_size > n_inside ? b->world_size - n_inside : 0;
}

/* ---- peaks ---- */

static bool is_judged_row(const struct tmk_rank_row *row)
{
    return row->is_main && row->facts.has_peak;
}

static int by_peak(const void *va, const void *vb)
{
    const uint64_t *a = va, *b = vb;
    return (*a > *b) - (*a < *b);
}

/* Find the median of the peaks. Returns how many ranks have one, or TMK_ENOMEM. */
static int64_t find_median(struct tmk_imbalance *b)
{
    uint64_t *peaks = malloc(((size_t)b->n_rows + 1) * sizeof *peaks);
    int64_t n = 0;
    if (!peaks)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (is_judged_row(&b->rows[i]))
            peaks[n++] = b->rows[i].facts.peak_bytes;
    qsort(peaks, (size_t)n, sizeof *peaks, by_peak);
    if (n > 0)
        b->median_bytes = ((double)peaks[(n - 1) / 2] + (double)peaks[n / 2]) / 2;
    free(peaks);
    return n;
}

static double distance(double a, double b)
{
    return a < b ? b - a : a - b;
}

/* Find the largest peak, and the rank nearest the median that is not that one. */
static void find_highest(struct tmk_imbalance *b)
{
    b->highest = b->typical = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (is_judged_row(&b->rows[i]) &&
            (b->highest == TMK_RANK_NONE ||
             b->rows[i].facts.peak_bytes > b->rows[b->highest].facts.peak_bytes))
            b->highest = i;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        double off = distance((double)b->rows[i].facts.peak_bytes, b->median_bytes);
        if (!is_judged_row(&b->rows[i]) || i == b->highest)
            continue;
        if (b->typical == TMK_RANK_NONE ||
            off < distance((double)b->rows[b->typical].facts.peak_bytes, b->median_bytes))
            b->typical = i;
    }
}

static int judge_peaks(struct tmk_imbalance *b)
{
    int64_t n = find_median(b);
    if (n < 0)
        return TMK_ENOMEM;
    b->is_judged = n >= 2;
    if (!b->is_judged)
        return 0;
    find_highest(b);
    b->is_imbalanced = (double)b->rows[b->highest].facts.peak_bytes * 100 >
                       b->median_bytes * TMK_IMBALANCE_PERCENT;
    uint64_t highest_bytes = b->rows[b->highest].facts.peak_bytes;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        struct tmk_rank_row *row = &b->rows[i];
        row->is_under_half =
            is_judged_row(row) && row->facts.peak_bytes < highest_bytes - highest_bytes / 2;
        b->n_under_half += row->is_under_half;
    }
    return 0;
}

/* ---- out of memory ---- */

static void judge_ooms(struct tmk_imbalance *b)
{
    b->first_oom = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_row *row = &b->rows[i];
        if (row->is_main && row->facts.has_oom &&
            (b->first_oom == TMK_RANK_NONE ||
             row->facts.oom_ns < b->rows[b->first_oom].facts.oom_ns))
            b->first_oom = i;
    }
    if (b->first_oom == TMK_RANK_NONE)
        return;
    const struct tmk_rank_facts *first = &b->rows[b->first_oom].facts;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_facts *f = &b->rows[i].facts;
        b->rows[i].died_of_it = b->rows[i].is_main && !f->has_oom && f->end != TMK_RANK_RUNNING &&
                                f->end_ns >= first->oom_ns && f->n_steps <= first->n_steps + 1;
    }
}

static bool runs_out_before(const struct tmk_rank_facts *a, const struct tmk_rank_facts *b)
{
    return (double)a->end_ns + a->forecast.seconds_to_oom * 1e9 <
           (double)b->end_ns + b->forecast.seconds_to_oom * 1e9;
}

static void find_next_oom(struct tmk_imbalance *b)
{
    b->next_oom = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_facts *f = &b->rows[i].facts;
        if (!is_judged_row(&b->rows[i]) || f->has_oom || !f->forecast.has_time ||
            f->forecast.risk < TMK_RISK_MEDIUM)
            continue;
        if (b->next_oom == TMK_RANK_NONE || runs_out_before(f, &b->rows[b->next_oom].facts))
            b->next_oom = i;
    }
}

/* ---- ends ---- */

static void judge_ends(struct tmk_imbalance *b)
{
    uint64_t n_most = 0;
    b->first_ended = TMK_RANK_NONE;
    for (uint32_t i = 0; i < b->n_rows; i++)
        if (b->rows[i].is_main && b->rows[i].facts.n_steps > n_most)
            n_most = b->rows[i].facts.n_steps;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        struct tmk_rank_row *row = &b->rows[i];
        const struct tmk_rank_facts *f = &row->facts;
        bool is_short = f->end == TMK_RANK_CLOSED && f->n_steps > 0 && f->n_steps + 1 < n_most;
        row->ended_early = row->is_main && !f->has_oom && !row->died_of_it &&
                           (f->end == TMK_RANK_KILLED || is_short);
        if (row->ended_early &&
            (b->first_ended == TMK_RANK_NONE || f->end_ns < b->rows[b->first_ended].facts.end_ns))
            b->first_ended = i;
    }
}

/* ---- groups ---- */

/* What has to be the same for two processes to be alike. */
static unsigned kind_of_row(const struct tmk_rank_row *row)
{
    const struct tmk_rank_facts *f = &row->facts;
    return (unsigned)f->end << 5 | (unsigned)row->ended_early << 4 | (unsigned)f->has_oom << 3 |
           (unsigned)(f->rank < 0) << 2 | (unsigned)row->is_main << 1 | f->has_peak;
}

struct row_order {
    const struct tmk_rank_row *row;
    uint32_t number;
};

static int by_kind_and_peak(const void *va, const void *vb)
{
    const struct row_order *a = va, *b = vb;
    unsigned kind_a = kind_of_row(a->row), kind_b = kind_of_row(b->row);
    uint64_t peak_a = a->row->facts.peak_bytes, peak_b = b->row->facts.peak_bytes;
    if (kind_a != kind_b)
        return kind_a < kind_b ? -1 : 1;
    if (peak_a != peak_b)
        return peak_a < peak_b ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_first_row(const void *va, const void *vb)
{
    const struct tmk_rank_group *a = va, *b = vb;
    return (a->first > b->first) - (a->first < b->first);
}

static bool is_alike(const struct tmk_rank_group *g, const struct tmk_rank_row *first,
                     const struct tmk_rank_row *row)
{
    return kind_of_row(first) == kind_of_row(row) &&
           (double)row->facts.peak_bytes * 100 <= (double)g->least_bytes * TMK_ALIKE_PERCENT;
}

/* Put rows that are neighbours in the order into one group as long as they are alike. */
static void fill_groups(struct tmk_imbalance *b, const struct row_order *order)
{
    struct tmk_rank_group *g = NULL;
    const struct tmk_rank_row *first = NULL;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const struct tmk_rank_row *row = order[i].row;
        if (!g || !is_alike(g, first, row)) {
            g = &b->groups[b->n_groups++];
            first = row;
            *g = (struct tmk_rank_group){.first = order[i].number,
                                         .least_bytes = row->facts.peak_bytes};
        }
        g->n++;
        g->most_bytes = row->facts.peak_bytes;
        g->first = order[i].number < g->first ? order[i].number : g->first;
        b->rows[order[i].number].group = b->n_groups - 1;
    }
}

/* Order the groups by their first rows, and give the rows their new numbers. */
static void order_groups(struct tmk_imbalance *b, uint32_t *numbers)
{
    for (uint32_t i = 0; i < b->n_rows; i++)
        numbers[i] = b->groups[b->rows[i].group].first; /* the group by its first row */
    qsort(b->groups, b->n_groups, sizeof *b->groups, by_first_row);
    for (uint32_t k = 0; k < b->n_groups; k++)
        b->rows[b->groups[k].first].group = k;
    for (uint32_t i = 0; i < b->n_rows; i++)
        b->rows[i].group = b->rows[numbers[i]].group;
}

static int make_groups(struct tmk_imbalance *b)
{
    struct row_order *order = malloc(((size_t)b->n_rows + 1) * sizeof *order);
    uint32_t *numbers = malloc(((size_t)b->n_rows + 1) * sizeof *numbers);
    b->groups = calloc((size_t)b->n_rows + 1, sizeof *b->groups);
    if (order && numbers && b->groups) {
        for (uint32_t i = 0; i < b->n_rows; i++)
            order[i] = (struct row_order){&b->rows[i], i};
        qsort(order, b->n_rows, sizeof *order, by_kind_and_peak);
        fill_groups(b, order);
        order_groups(b, numbers);
    }
    int rc = order && numbers && b->groups ? 0 : TMK_ENOMEM;
    free(order);
    free(numbers);
    return rc;
}

/* ---- all of it ---- */

int tmk_imbalance_judge(struct tmk_imbalance *b)
{
    b->world_size = -1;
    choose_mains(b);
    count_missing(b);
    if (judge_peaks(b) < 0)
        return TMK_ENOMEM;
    judge_ooms(b);
    find_next_oom(b);
    judge_ends(b);
    return make_groups(b);
}

static int read_all_facts(struct tmk_imbalance *b, struct tmk_run *run)
{
    b->n_rows = tmk_run_n_processes(run);
    b->rows = calloc((size_t)b->n_rows + 1, sizeof *b->rows);
    int rc = b->rows ? 0 : TMK_ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < b->n_rows; i++)
        rc = tmk_rank_facts_read(tmk_run_process(run, i), &b->rows[i].facts);
    return rc;
}

static int open_imbalance(struct tmk_run *run, bool wants_why, struct tmk_imbalance **ret_imbalance,
                          struct tmk_error *err)
{
    struct tmk_imbalance *b = calloc(1, sizeof *b);
    if (!b)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    b->clock = *tmk_run_clock(run);
    int rc = read_all_facts(b, run);
    if (rc == 0)
        rc = tmk_imbalance_judge(b);
    if (rc < 0)
        tmk_fail(err, rc, "out of memory");
    if (rc == 0 && wants_why && b->is_judged && b->n_groups > 1)
        rc = tmk_imbalance_find_why(b, run, err);
    if (rc < 0) {
        tmk_imbalance_close(b);
        return rc;
    }
    *ret_imbalance = b;
    return 0;
}

int tmk_imbalance_open(struct tmk_run *run, struct tmk_imbalance **ret_imbalance,
                       struct tmk_error *err)
{
    return open_imbalance(run, true, ret_imbalance, err);
}

int tmk_imbalance_open_brief(struct tmk_run *run, struct tmk_imbalance **ret_imbalance,
                             struct tmk_error *err)
{
    return open_imbalance(run, false, ret_imbalance, err);
}

struct tmk_imbalance *tmk_imbalance_close(struct tmk_imbalance *b)
{
    if (!b)
        return NULL;
    tmk_arena_fini(&b->words);
    free(b->rows);
    free(b->groups);
    free(b);
    return NULL;
}
