/* SPDX-License-Identifier: MIT */
/* passes/accounting.c - see accounting.h. The segments of a moment are added up while the sweep
 * stands at it: there are few, and moments that are larger than all before are few too. */
#include "passes/accounting.h"

#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"

enum { N_MOMENTS = 2 }; /* of a device: the peak and the last */

struct entry {
    struct tmk_account account;
    struct tmk_account_part *parts;
    uint64_t room;
    uint64_t pool_bytes; /* of all parts */
};

struct tmk_accounting {
    struct tmk_holders *holders;
    struct entry *entries; /* peak and last of each device */
    uint64_t n, room;
    bool failed;
};

static struct tmk_account_part *part_of(struct tmk_accounting *a, struct entry *e,
                                        const char *owner)
{
    for (uint64_t i = 0; i < e->account.n_parts; i++)
        if (strcmp(e->parts[i].owner, owner) == 0)
            return &e->parts[i];
    struct tmk_account_part *more =
        tmk_grow(e->parts, e->account.n_parts + 1, &e->room, sizeof *more);
    if (!more) {
        a->failed = true;
        return NULL;
    }
    e->parts = more;
    e->parts[e->account.n_parts] = (struct tmk_account_part){.owner = owner};
    return &e->parts[e->account.n_parts++];
}

static int by_bytes(const void *va, const void *vb)
{
    const struct tmk_account_part *a = va, *b = vb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->owner, b->owner);
}

static void add_up_segments(struct tmk_accounting *a, struct entry *e, const struct tmk_state *s)
{
    e->account.n_parts = 0;
    e->account.segment_bytes = 0;
    e->pool_bytes = 0;
    for (uint32_t i = 0; i < s->segments.n; i++) {
        const struct tmk_driver_segment *g = &s->segments.items[i];
        if (g->device != e->account.device || !tmk_segment_is_on_device(g->kind))
            continue;
        const char *owner = tmk_holders_get(a->holders, g->stack)->owner;
        struct tmk_account_part *part = part_of(a, e, owner[0] ? owner : "unknown");
        if (!part)
            return;
        part->bytes += g->size_bytes;
        part->n_segments++;
        e->account.segment_bytes += g->size_bytes;
        e->pool_bytes += g->kind == TMK_SEGMENT_POOL ? g->size_bytes : 0;
    }
    if (e->account.n_parts > 0)
        qsort(e->parts, (size_t)e->account.n_parts, sizeof *e->parts, by_bytes);
    e->account.parts = e->parts;
}

/* a - b, unknown when one is; never below zero, where two accounts were not quite of a moment. */
static uint64_t less(uint64_t a, uint64_t b)
{
    if (a == TMK_ACCOUNT_UNKNOWN || b == TMK_ACCOUNT_UNKNOWN)
        return TMK_ACCOUNT_UNKNOWN;
    return a > b ? a - b : 0;
}

/* Of a process that had its memory before we came, torch at least says how much it holds. Where
 * blocks come from the driver's pools, that is how much these hold, and is counted already. */
static void add_unseen(struct tmk_accounting *a, struct entry *e)
{
    struct tmk_account *account = &e->account;
    if (!account->has_reserved || account->reserved_bytes <= e->pool_bytes)
        return;
    struct tmk_account_part *part = part_of(a, e, "torch");
    if (!part || part->n_segments > 0)
        return;
    part->bytes = account->reserved_bytes;
    account->segment_bytes += part->bytes;
    account->parts = e->parts;
}

static void find_blocks(struct tmk_account *account, const struct tmk_state *s)
{
    account->allocated_bytes = 0;
    account->has_reserved = false;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct tmk_device_use *d = &s->devices[i];
        if (d->device != account->device)
            continue;
        account->allocated_bytes = d->allocated_bytes;
        account->has_reserved = d->has_reserved;
        account->reserved_bytes = d->reserved_bytes;
    }
}

static void fill(struct tmk_accounting *a, struct entry *e, const struct tmk_state *s,
                 const struct tmk_sample_body *sample)
{
    struct tmk_account *account = &e->account;
    account->time_ns = s->now_ns;
    account->step = s->step;
    add_up_segments(a, e, s);
    find_blocks(account, s);
    add_unseen(a, e);
    account->used_bytes = sample->used_bytes;
    account->total_bytes = sample->total_bytes;
    account->own_bytes = sample->own_bytes;
    account->others_bytes = sample->others_bytes;
    account->context_bytes = less(sample->own_bytes, account->segment_bytes);
    account->unexplained_bytes =
        less(less(sample->used_bytes, sample->own_bytes), sample->others_bytes);
}

static struct entry *entries_of(struct tmk_accounting *a, uint16_t device)
{
    for (uint64_t i = 0; i < a->n; i += N_MOMENTS)
        if (a->entries[i].account.device == device)
            return &a->entries[i];
    struct entry *more = tmk_grow(a->entries, a->n + N_MOMENTS, &a->room, sizeof *more);
    if (!more) {
        a->failed = true;
        return NULL;
    }
    a->entries = more;
    struct entry *new = &a->entries[a->n];
    a->n += N_MOMENTS;
    new[0] = (struct entry){.account = {.device = device, .is_peak = true}};
    new[1] = (struct entry){.account = {.device = device}};
    return new;
}

/* Looks that tell how much is this process's are worth more than those that do not. */
static bool is_worth_more(const struct tmk_account *old, const struct tmk_sample_body *new)
{
    bool was_told = old->own_bytes != TMK_ACCOUNT_UNKNOWN;
    bool is_told = new->own_bytes != UINT64_MAX;
    if (was_told != is_told)
        return is_told;
    return is_told ? new->own_bytes > old->own_bytes : new->used_bytes > old->used_bytes;
}

static void on_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                     struct tmk_block *b)
{
    struct tmk_accounting *a = arg;
    (void)b;
    if (ev->kind != TMK_KIND_SAMPLE || ev->sample.used_bytes == UINT64_MAX)
        return;
    uint64_t n_before = a->n;
    struct entry *e = entries_of(a, ev->device);
    if (!e)
        return;
    bool is_first = a->n > n_before;
    if (is_first || is_worth_more(&e[0].account, &ev->sample))
        fill(a, &e[0], &rp->state, &ev->sample);
    if (is_first || ev->sample.own_bytes != UINT64_MAX ||
        e[1].account.own_bytes == TMK_ACCOUNT_UNKNOWN)
        fill(a, &e[1], &rp->state, &ev->sample);
}

struct tmk_visitor tmk_accounting_visitor(struct tmk_accounting *a)
{
    return (struct tmk_visitor){.arg = a, .event = on_event};
}

/* Devices that nobody has sampled, as of the end. */
static void add_unsampled(struct tmk_accounting *a, const struct tmk_state *s)
{
    static const struct tmk_sample_body unknown = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (uint32_t i = 0; i < s->segments.n && !a->failed; i++) {
        const struct tmk_driver_segment *g = &s->segments.items[i];
        uint64_t n_before = a->n;
        struct entry *e = tmk_segment_is_on_device(g->kind) ? entries_of(a, g->device) : NULL;
        if (!e || a->n == n_before)
            continue;
        fill(a, &e[0], s, &unknown);
        fill(a, &e[1], s, &unknown);
    }
}

static int by_device(const void *va, const void *vb)
{
    const struct entry *a = va, *b = vb;
    if (a->account.device != b->account.device)
        return a->account.device < b->account.device ? -1 : 1;
    return (int)b->account.is_peak - (int)a->account.is_peak;
}

int tmk_accounting_finish(struct tmk_accounting *a, const struct tmk_replay *rp,
                          struct tmk_error *err)
{
    add_unsampled(a, &rp->state);
    if (a->failed)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the accounts of devices");
    if (a->n > 0)
        qsort(a->entries, (size_t)a->n, sizeof *a->entries, by_device);
    return 0;
}

uint64_t tmk_accounting_n(const struct tmk_accounting *a)
{
    return a->n;
}

const struct tmk_account *tmk_accounting_get(const struct tmk_accounting *a, uint64_t i)
{
    return &a->entries[i].account;
}

int tmk_accounting_open(const struct tmk_process *p, struct tmk_accounting **ret_accounting)
{
    struct tmk_accounting *a = calloc(1, sizeof *a);
    if (!a)
        return TMK_ENOMEM;
    if (tmk_holders_open(p, &a->holders) < 0) {
        free(a);
        return TMK_ENOMEM;
    }
    *ret_accounting = a;
    return 0;
}

struct tmk_accounting *tmk_accounting_close(struct tmk_accounting *a)
{
    if (!a)
        return NULL;
    for (uint64_t i = 0; i < a->n; i++)
        free(a->entries[i].parts);
    free(a->entries);
    tmk_holders_close(a->holders);
    free(a);
    return NULL;
}
