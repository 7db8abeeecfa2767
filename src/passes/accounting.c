/* SPDX-License-Identifier: MIT */
/* passes/accounting.c - see accounting.h.
 *
 * Sums by owner are carried along (segment_sums.h). They are copied when a sample counts; at the
 * end owners get their names and their order. There may be many segments and samples, but owners
 * and devices are few. */
#include "passes/accounting.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "passes/segment_sums.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { PEAK, LAST, N_MOMENTS };

/* How good a sample is: the larger, the better. */
enum worth {
    NOTHING,       /* there was none */
    AT_ODDS,       /* the driver's figures are not of the same moment as our segments */
    TOLD_AT_ODDS,  /* likewise, but it tells how much is this process's */
    AGREES,        /* the figures agree with our segments */
    TOLD_AND_GOOD, /* likewise, and it tells how much is this process's */
};

struct moment {
    enum worth worth;
    struct tmk_device_account account;
    struct tmk_device_sums sums;
    struct tmk_account_part *parts; /* as of the end */
};

struct found_account {
    const struct moment *moment;
};

struct tmk_accounting {
    struct tmk_segment_sums *sums;
    struct moment moments[TMK_MAX_DEVICES][N_MOMENTS]; /* by index in the sums */
    struct found_account found[TMK_MAX_DEVICES * N_MOMENTS];
    uint64_t n;
};

/* ---- a sample ---- */

/* a - b; unknown when one of them is, and where the two figures are not of one moment. */
static uint64_t account_difference(uint64_t a, uint64_t b)
{
    bool is_known = a != TMK_BYTES_UNKNOWN && b != TMK_BYTES_UNKNOWN && a >= b;
    return is_known ? a - b : TMK_BYTES_UNKNOWN;
}

/* If a process had memory before recording began, torch at least reports how much it has
 * reserved. Two parts of that are counted already: what we know of without knowing its owner, and
 * the driver's pools, since blocks from those are part of what torch reports. */
static void add_unseen_bytes(const struct tmk_device_account *account, struct tmk_device_sums *sums)
{
    uint64_t counted = sums->owners[TMK_SUMS_UNKNOWN].bytes + sums->pool_bytes;
    if (!account->has_reserved || sums->owners[TMK_SUMS_TORCH].n_segments > 0 ||
        account->reserved_bytes <= counted)
        return;
    sums->owners[TMK_SUMS_TORCH].bytes = account->reserved_bytes - counted;
    sums->bytes += sums->owners[TMK_SUMS_TORCH].bytes;
}

static void add_block_bytes(struct tmk_device_account *account, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct tmk_device_use *d = &s->devices[i];
        if (d->device != account->device)
            continue;
        account->allocated_bytes = d->allocated_bytes;
        account->has_reserved = d->has_reserved;
        account->reserved_bytes = d->reserved_bytes;
    }
}

static enum worth worth_of_sample(const struct tmk_device_account *a)
{
    bool is_told = a->own_bytes != TMK_BYTES_UNKNOWN;
    uint64_t own = is_told ? a->own_bytes : a->segment_bytes; /* at least */
    bool agrees = own >= a->segment_bytes && a->used_bytes >= own &&
                  (a->others_bytes == TMK_BYTES_UNKNOWN || a->used_bytes - own >= a->others_bytes);
    if (agrees)
        return is_told ? TOLD_AND_GOOD : AGREES;
    return is_told ? TOLD_AT_ODDS : AT_ODDS;
}

static void take_account(const struct tmk_device_sums *sums, const struct tmk_state *s,
                         const struct tmk_sample_body *sample, struct moment *ret)
{
    struct tmk_device_account *account = &ret->account;
    *account = (struct tmk_device_account){.device = sums->device,
                                           .time_ns = s->now_ns,
                                           .step = s->step,
                                           .used_bytes = sample->used_bytes,
                                           .total_bytes = sample->total_bytes,
                                           .own_bytes = sample->own_bytes,
                                           .others_bytes = sample->others_bytes};
    ret->sums = *sums;
    add_block_bytes(account, s);
    add_unseen_bytes(account, &ret->sums);
    account->segment_bytes = ret->sums.bytes;
    account->context_bytes = account_difference(sample->own_bytes, account->segment_bytes);
    account->unexplained_bytes = account_difference(
        account_difference(sample->used_bytes, sample->own_bytes), sample->others_bytes);
    ret->worth = worth_of_sample(account);
}

/* ---- the sweep ---- */

static bool has_more_bytes(const struct moment *new, const struct moment *old)
{
    if (new->worth != old->worth)
        return new->worth > old->worth;
    const struct tmk_device_account *a = &new->account, *b = &old->account;
    return a->own_bytes != TMK_BYTES_UNKNOWN ? a->own_bytes > b->own_bytes
                                             : a->used_bytes > b->used_bytes;
}

static void on_accounting_sample(struct tmk_accounting *a, const struct tmk_replay *rp,
                                 const struct tmk_event *ev)
{
    uint32_t place = tmk_segment_sums_place(a->sums, ev->device);
    if (place == TMK_MAX_DEVICES)
        return;
    struct moment *m = a->moments[place], new = {0};
    take_account(&a->sums->devices[place], &rp->state, &ev->sample, &new);
    if (has_more_bytes(&new, &m[PEAK]))
        m[PEAK] = new;
    if (new.worth >= m[LAST].worth)
        m[LAST] = new;
}

static void on_accounting_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                                struct tmk_block *b)
{
    struct tmk_accounting *a = arg;
    (void)b;
    tmk_segment_sums_event(a->sums, rp, ev);
    if (ev->kind == TMK_KIND_SAMPLE && ev->sample.used_bytes != UINT64_MAX)
        on_accounting_sample(a, rp, ev);
}

static void on_accounting_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_accounting *a = arg;
    tmk_segment_sums_restored(a->sums, rp);
}

struct tmk_visitor tmk_accounting_visitor(struct tmk_accounting *a)
{
    return (struct tmk_visitor){.arg = a,
                                .kinds = TMK_SEGMENT_SUMS_KINDS | TMK_HEARS(SAMPLE),
                                .event = on_accounting_event,
                                .restored = on_accounting_restored};
}

/* ---- the end ---- */

static int compare_account_parts(const void *va, const void *vb)
{
    const struct tmk_account_part *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->owner, b->owner);
}

static int name_parts(const struct tmk_accounting *a, struct moment *m)
{
    const struct tmk_textmap *names = &a->sums->owners;
    uint64_t n = 0;
    m->parts = calloc(TMK_SUMS_MAX_OWNERS, sizeof *m->parts);
    if (!m->parts)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < names->n; i++) {
        const struct tmk_owner_sum *sum = &m->sums.owners[i];
        if (sum->n_segments > 0 || sum->bytes > 0)
            m->parts[n++] = (struct tmk_account_part){
                .owner = names->texts[i], .bytes = sum->bytes, .n_segments = sum->n_segments};
    }
    qsort(m->parts, (size_t)n, sizeof *m->parts, compare_account_parts);
    m->account.parts = m->parts;
    m->account.n_parts = n;
    return 0;
}

static int finish_device(struct tmk_accounting *a, uint32_t place, const struct tmk_state *s)
{
    static const struct tmk_sample_body unknown = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const struct tmk_device_sums *now = &a->sums->devices[place];
    struct moment *m = a->moments[place];
    if (m[LAST].worth == NOTHING && now->n_segments == 0)
        return 0;
    for (int i = 0; i < N_MOMENTS; i++) {
        if (m[i].worth == NOTHING) /* there was no sample: take the end */
            take_account(now, s, &unknown, &m[i]);
        m[i].account.is_peak = i == PEAK;
        if (name_parts(a, &m[i]) < 0)
            return TMK_ENOMEM;
        a->found[a->n++].moment = &m[i];
    }
    return 0;
}

static int by_device(const void *va, const void *vb)
{
    const struct tmk_device_account *a = &((const struct found_account *)va)->moment->account;
    const struct tmk_device_account *b = &((const struct found_account *)vb)->moment->account;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (int)b->is_peak - (int)a->is_peak;
}

int tmk_accounting_finish(struct tmk_accounting *a, const struct tmk_replay *rp,
                          struct tmk_error *err)
{
    int rc = tmk_segment_sums_check(a->sums);
    for (uint32_t i = 0; i < a->sums->n_devices && rc == 0; i++)
        rc = finish_device(a, i, &rp->state);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory for the accounts of devices");
    qsort(a->found, (size_t)a->n, sizeof a->found[0], by_device);
    return 0;
}

uint64_t tmk_accounting_n(const struct tmk_accounting *a)
{
    return a->n;
}

const struct tmk_device_account *tmk_accounting_get(const struct tmk_accounting *a, uint64_t i)
{
    return &a->found[i].moment->account;
}

int tmk_accounting_open(const struct tmk_process *p, struct tmk_accounting **ret_accounting)
{
    struct tmk_accounting *a = calloc(1, sizeof *a);
    if (!a)
        return TMK_ENOMEM;
    int rc = tmk_segment_sums_open(p, &a->sums);
    if (rc < 0) {
        free(a);
        return rc;
    }
    *ret_accounting = a;
    return 0;
}

struct tmk_accounting *tmk_accounting_close(struct tmk_accounting *a)
{
    if (!a)
        return NULL;
    for (int i = 0; i < TMK_MAX_DEVICES; i++)
        for (int k = 0; k < N_MOMENTS; k++)
            free(a->moments[i][k].parts);
    tmk_segment_sums_close(a->sums);
    free(a);
    return NULL;
}
