/* SPDX-License-Identifier: MIT */
/* tui/details.c - see details.h.
 *
 * One sweep feeds several passes: the blocks allocated at its end, those at the peak, and the
 * account of the GPU's memory. Rows of the first two are joined by their keys. */
#include "tui/details.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "kit/amount.h"
#include "kit/errand.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/accounting.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "passes/steps.h"
#include "trace/replay.h"
#include "trace/state.h"

#define LEAST_PAUSE_NS 3000000000u
enum { REST = 100 }; /* at most 1 % of a core while the details are on the screen */

static const enum tmk_by keys_of[] = {
    [TMK_DETAILS_CATEGORIES] = TMK_BY_CATEGORY,
    [TMK_DETAILS_MODULES] = TMK_BY_MODULE,
    [TMK_DETAILS_LINES] = TMK_BY_SITE,
};

struct tmk_details_reader {
    struct tmk_errand errand;
    struct tmk_details next; /* belongs to the errand while that runs */
    atomic_uint percent;
    uint64_t cost_ns;
    struct tmk_details shown;
    uint64_t due_ns;
};

/* ---- rows of two moments ---- */

struct detail_pair { /* the figures the figures of one key */
    uint64_t now_bytes, peak_bytes;
};

struct detail_pairs {
    struct tmk_textmap keys;
    struct detail_pair *items;
    uint64_t room;
};

static int take_peak_rows(struct detail_pairs *pairs, struct tmk_peak *pass, enum tmk_by by,
                          bool is_now)
{
    const struct tmk_peak_row *rows = NULL;
    uint64_t n = 0;
    int rc = tmk_peak_found(pass) ? tmk_peak_group(pass, by, &rows, &n, NULL) : 0;
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        uint32_t number;
        uint64_t known = pairs->keys.n;
        if ((rc = tmk_textmap_put(&pairs->keys, rows[i].key, &number)) < 0)
            break;
        if (TMK_GROW(pairs->items, pairs->keys.n, pairs->room) < 0)
            return TMK_ENOMEM;
        if (number == known)
            pairs->items[number] = (struct detail_pair){0};
        *(is_now ? &pairs->items[number].now_bytes : &pairs->items[number].peak_bytes) =
            rows[i].bytes;
    }
    return rc;
}

static int by_pair_bytes(const void *va, const void *vb)
{
    const struct tmk_details_row *a = va, *b = vb;
    if (a->now_bytes != b->now_bytes)
        return a->now_bytes > b->now_bytes ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes > b->peak_bytes ? -1 : 1;
    return strcmp(a->key, b->key);
}

/* List the pairs, sorted, as many as there is room for. */
static int list_pairs(const struct detail_pairs *pairs, struct tmk_details *d,
                      enum tmk_details_list list)
{
    uint64_t n = pairs->keys.n;
    struct tmk_details_row *all = calloc(n + 1, sizeof *all);
    if (!all)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        const char *key = pairs->keys.texts[i];
        snprintf(all[i].key, sizeof all[i].key, "%s", key ? key : "");
        all[i].now_bytes = pairs->items[i].now_bytes;
        all[i].peak_bytes = pairs->items[i].peak_bytes;
    }
    qsort(all, n, sizeof *all, by_pair_bytes);
    d->n_rows[list] = n < TMK_DETAILS_ROWS ? (uint32_t)n : TMK_DETAILS_ROWS;
    d->n_more[list] = (uint32_t)n - d->n_rows[list];
    memcpy(d->rows[list], all, d->n_rows[list] * sizeof *all);
    free(all);
    return 0;
}

static int take_lists(struct tmk_details *d, struct tmk_peak *now, struct tmk_peak *peak)
{
    int rc = 0;
    for (enum tmk_details_list list = 0; rc == 0 && list < TMK_DETAILS_N_LISTS; list++) {
        struct detail_pairs pairs = {0};
        rc = take_peak_rows(&pairs, now, keys_of[list], true);
        if (rc == 0 && d->has_peak)
            rc = take_peak_rows(&pairs, peak, keys_of[list], false);
        if (rc == 0)
            rc = list_pairs(&pairs, d, list);
        tmk_textmap_fini(&pairs.keys);
        free(pairs.items);
    }
    return rc;
}

/* ---- reading ---- */

static void tell_details_progress(void *arg, uint32_t done, uint32_t total)
{
    struct tmk_details_reader *r = arg;
    atomic_store(&r->percent, total ? (unsigned)((uint64_t)done * 100 / total) : 0);
}

/* Write "torch 40.00 GiB, nccl 1.00 GiB, context 512 MiB, others 0 B", as of the driver's last
 * sample. */
static void take_card(struct tmk_details *d, const struct tmk_device_account *a)
{
    char size[TMK_AMOUNT_BYTES];
    size_t n = 0;
    for (uint64_t i = 0; i < a->n_parts && n < sizeof d->card; i++)
        n += (size_t)snprintf(d->card + n, sizeof d->card - n, "%s %s, ", a->parts[i].owner,
                              tmk_size_text(a->parts[i].bytes, size));
    const struct {
        const char *name;
        uint64_t bytes;
    } rest[] = {{"context", a->context_bytes},
                {"others", a->others_bytes},
                {"unexplained", a->unexplained_bytes}};
    size_t n_shown = TMK_N(rest) - (a->unexplained_bytes == 0);
    for (size_t i = 0; i < n_shown && n < sizeof d->card; i++) {
        bool is_known = rest[i].bytes != TMK_BYTES_UNKNOWN;
        n += (size_t)snprintf(d->card + n, sizeof d->card - n, "%s%s %s", i ? ", " : "",
                              rest[i].name, is_known ? tmk_size_text(rest[i].bytes, size) : "-");
    }
}

static void take_accounts(struct tmk_details *d, const struct tmk_accounting *all)
{
    for (uint64_t i = 0; i < tmk_accounting_n(all); i++) {
        const struct tmk_device_account *a = tmk_accounting_get(all, i);
        if (!a->is_peak && (a->device == d->device || !d->has_memory) && !d->card[0])
            take_card(d, a);
    }
}

static int sweep_details(struct tmk_details_reader *r, struct tmk_process *p, struct tmk_peak *now,
                         struct tmk_peak *peak, struct tmk_accounting *accounting)
{
    struct tmk_details *d = &r->next;
    struct tmk_replay rp;
    struct tmk_visitor visitors[] = {
        {.arg = r, .progress = tell_details_progress},
        tmk_accounting_visitor(accounting),
        now ? tmk_peak_visitor(now) : (struct tmk_visitor){0},
        peak ? tmk_peak_visitor(peak) : (struct tmk_visitor){0},
    };
    int rc = tmk_process_sweep(p, visitors, now && peak ? 4 : 2, &rp, &d->problem);
    if (rc < 0)
        return rc;
    rc = tmk_accounting_finish(accounting, &rp, &d->problem);
    if (rc == 0 && now)
        rc = tmk_peak_finish(now, &rp, &d->problem);
    if (rc == 0 && peak)
        rc = tmk_peak_finish(peak, &rp, &d->problem);
    tmk_replay_fini(&rp);
    return rc;
}

/* Take the figures of the per-step history: they are exact, whatever the sweep found. */
static void take_history(struct tmk_details *d, struct tmk_process *p,
                         const struct tmk_step_row *peak)
{
    struct tmk_steps *steps = NULL;
    const struct tmk_step_row *last = tmk_steps_last(p, peak->device);
    d->has_memory = true;
    d->device = peak->device;
    d->peak_bytes = peak->peak_bytes;
    d->peak_ns = peak->peak_ns;
    d->peak_step = peak->step;
    d->now_bytes = last->end_bytes;
    d->reserved_bytes = last->has_reserved ? last->end_reserved_bytes : UINT64_MAX;
    (void)tmk_forecast_of(p, peak->device, NULL, &d->forecast);
    if (tmk_steps_open(p, peak->device, &steps) < 0)
        return;
    struct tmk_steps_digest digest = tmk_steps_digest(steps);
    d->n_steps = digest.n_steps;
    d->step_ns = digest.mean_ns;
    d->bytes_per_step = digest.trend == TMK_STEPS_TREND_GROWING ? digest.bytes_per_step : 0;
    tmk_steps_close(steps);
}

/* Read the blocks allocated now and at the peak, on the device with the highest peak. */
static int read_block_lists(struct tmk_details_reader *r, struct tmk_process *p,
                            const struct tmk_step_row *row, struct tmk_accounting *accounting)
{
    struct tmk_details *d = &r->next;
    struct tmk_peak *now = NULL, *peak = NULL;
    struct tmk_moment last = {
        .kind = TMK_MOMENT_TIME, .time_ns = UINT64_MAX, .device = row->device};
    struct tmk_moment highest = {.kind = TMK_MOMENT_PEAK, .device = row->device};
    int rc = tmk_peak_open(p, &last, &now);
    if (rc == 0)
        rc = tmk_peak_open(p, &highest, &peak);
    if (rc == 0)
        rc = sweep_details(r, p, now, peak, accounting);
    d->has_peak = rc == 0 && tmk_peak_found(peak) && tmk_peak_bytes(peak) == row->peak_bytes;
    if (rc == 0)
        rc = take_lists(d, now, peak);
    tmk_peak_close(now);
    tmk_peak_close(peak);
    return rc;
}

static int read_process(struct tmk_details_reader *r, struct tmk_process *p)
{
    struct tmk_details *d = &r->next;
    const struct tmk_step_row *row = tmk_steps_peak(p, true, 0);
    struct tmk_accounting *accounting = NULL;
    d->is_over = !p->live;
    if (row)
        take_history(d, p, row);
    int rc = tmk_accounting_open(p, &accounting);
    if (rc == 0)
        rc = row ? read_block_lists(r, p, row, accounting)
                 : sweep_details(r, p, NULL, NULL, accounting);
    if (rc == 0)
        take_accounts(d, accounting);
    tmk_accounting_close(accounting);
    return rc;
}

static void work_on_details(void *arg)
{
    struct tmk_details_reader *r = arg;
    struct tmk_details *d = &r->next;
    uint64_t cpu = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    struct tmk_watched where;
    struct tmk_run *run = NULL;
    int rc = tmk_watched_find(d->pid, &where, &d->problem);
    if (rc == 0)
        rc = tmk_run_open_watched(&where, &run, &d->problem);
    if (rc == 0)
        rc = read_process(r, tmk_run_process(run, 0));
    if (rc < 0 && !d->problem.text[0])
        tmk_fail(&d->problem, rc, "%s", tmk_result_text(rc));
    tmk_run_close(run);
    r->cost_ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

/* ---- for the screen ---- */

struct tmk_details_reader *tmk_details_open(void)
{
    return calloc(1, sizeof(struct tmk_details_reader));
}

struct tmk_details_reader *tmk_details_close(struct tmk_details_reader *r)
{
    if (r && tmk_errand_is_idle(&r->errand))
        free(r);
    return NULL;
}

bool tmk_details_look(struct tmk_details_reader *r, uint32_t pid)
{
    uint64_t now = tmk_clock_monotonic_ns();
    bool is_new = tmk_errand_take(&r->errand);
    if (is_new) {
        uint64_t pause = r->cost_ns * REST;
        r->shown = r->next;
        r->due_ns = now + (pause > LEAST_PAUSE_NS ? pause : LEAST_PAUSE_NS);
    }
    if (tmk_errand_is_idle(&r->errand) && (r->shown.pid != pid || r->due_ns <= now)) {
        memset(&r->next, 0, sizeof r->next);
        r->next.pid = pid;
        atomic_store(&r->percent, 0);
        tmk_errand_begin(&r->errand, work_on_details, r);
    }
    return is_new;
}

const struct tmk_details *tmk_details_get(const struct tmk_details_reader *r, uint32_t pid,
                                          unsigned *ret_percent)
{
    *ret_percent = atomic_load(&r->percent);
    return r->shown.pid == pid ? &r->shown : NULL;
}

bool tmk_details_is_busy(const struct tmk_details_reader *r)
{
    return !tmk_errand_is_idle(&r->errand);
}
