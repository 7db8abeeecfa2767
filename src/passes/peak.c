/* SPDX-License-Identifier: MIT */
/* passes/peak.c - see peak.h.
 *
 * Every device has its own candidate moment and its own list of blocks that were alive then and
 * have gone since; which device is asked for is decided at the end. Blocks are told apart by
 * their serial number: alive at the moment means born before it, and not freed before it, which
 * holds because the list is emptied at each new peak. The alternative, a copy of the live set at
 * each peak, is quadratic while memory grows. */
#include "passes/peak.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct candidate {
    bool found;
    uint64_t bytes;
    uint64_t ns;
    uint64_t serial; /* blocks with a larger one were born later */
    int64_t step;
    uint64_t n_block_events; /* before the moment */
    bool has_reserved;
    uint64_t reserved_bytes;
    struct tmk_block *gone;
    uint64_t n_gone, gone_room;
};

struct tmk_peak {
    const struct tmk_process *p;
    struct tmk_moment moment;
    uint32_t last;  /* the device looked up last: mostly the next one too */
    bool failed;    /* out of memory in the sweep */
    bool too_early; /* TIME: the part of the trace with that moment was given up */
    int64_t step;   /* TIME: the step at that time */
    struct candidate devices[TMK_MAX_DEVICES]; /* in the state's order */

    bool found;
    uint16_t device;
    struct candidate result; /* without its list */
    struct tmk_block *blocks;
    uint64_t n_blocks, block_room;
    struct tmk_labels labels;
    struct tmk_group *group;
};

/* ---- during the sweep ---- */

static uint32_t device_number(struct tmk_peak *k, const struct tmk_state *s, uint16_t device)
{
    if (k->last < s->n_devices && s->devices[k->last].device == device)
        return k->last;
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == device)
            return k->last = i;
    return TMK_MAX_DEVICES;
}

static void note_peak_reserved(struct candidate *c, const struct tmk_device_use *d)
{
    c->has_reserved = d->has_reserved;
    c->reserved_bytes = d->reserved_bytes;
}

/* Make now the moment of a device. This is rare, so it is kept out of the path of each event. */
__attribute__((noinline)) static void move_moment(struct candidate *c, const struct tmk_state *s,
                                                  uint32_t i, uint64_t ns)
{
    c->found = true;
    c->bytes = s->devices[i].allocated_bytes;
    c->ns = ns;
    c->serial = s->n_allocs;
    c->step = s->step;
    c->n_gone = 0;
    c->n_block_events = s->n_allocs + s->n_frees;
    note_peak_reserved(c, &s->devices[i]);
}

static inline void consider_peak(struct tmk_peak *k, const struct tmk_state *s, uint32_t i,
                                 uint64_t ns)
{
    struct candidate *c = &k->devices[i];
    uint64_t bytes = s->devices[i].allocated_bytes;
    if (k->moment.kind == TMK_MOMENT_STEP && s->step != k->moment.step)
        return;
    if (bytes > c->bytes || !c->found)
        move_moment(c, s, i, ns);
}

static void consider_all_peaks(struct tmk_peak *k, const struct tmk_state *s, uint64_t ns)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        consider_peak(k, s, i, ns);
}

/* Serial 0: a block that replay met after a gap, known only to be alive from then on. */
static bool was_born_by_peak(const struct candidate *c, const struct tmk_block *b)
{
    return b->serial ? b->serial <= c->serial : b->alloc_ns <= c->ns;
}

static void keep_gone_block(struct tmk_peak *k, struct candidate *c, const struct tmk_block *b)
{
    if (TMK_GROW(c->gone, c->n_gone + 1, c->gone_room) < 0) {
        k->failed = true;
        return;
    }
    c->gone[c->n_gone++] = *b;
}

/* A block's reserved size is reported right after the block: that is the moment too. */
static void on_peak_reserved(struct tmk_peak *k, const struct tmk_state *s, uint16_t device)
{
    uint32_t i = device_number(k, s, device);
    struct candidate *c = i < TMK_MAX_DEVICES ? &k->devices[i] : NULL;
    if (c && c->found && c->n_block_events == s->n_allocs + s->n_frees)
        note_peak_reserved(c, &s->devices[i]);
}

static void on_peak_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct tmk_peak *k = arg;
    const struct tmk_state *s = &rp->state;
    if (ev->kind == TMK_KIND_ALLOC) {
        uint32_t i = device_number(k, s, ev->device);
        if (i < TMK_MAX_DEVICES)
            consider_peak(k, s, i, ev->time_ns);
    } else if (ev->kind == TMK_KIND_FREE && b) {
        uint32_t i = device_number(k, s, ev->device);
        if (i < TMK_MAX_DEVICES && k->devices[i].found && was_born_by_peak(&k->devices[i], b))
            keep_gone_block(k, &k->devices[i], b);
    } else if (ev->kind == TMK_KIND_STEP && k->moment.kind == TMK_MOMENT_STEP) {
        consider_all_peaks(k, s, ev->time_ns);
    } else if (ev->kind == TMK_KIND_RESERVED) {
        on_peak_reserved(k, s, ev->device);
    }
}

static void on_peak_restored(void *arg, const struct tmk_replay *rp)
{
    consider_all_peaks(arg, &rp->state, rp->state.now_ns);
}

/* With TIME the moment is not searched for: the state until then is noted, later frees are kept. */

static void note_current_moment(struct tmk_peak *k, const struct tmk_state *s)
{
    k->step = s->step;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        k->devices[i].found = true;
        k->devices[i].bytes = s->devices[i].allocated_bytes;
        note_peak_reserved(&k->devices[i], &s->devices[i]);
    }
}

static void on_time_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                          struct tmk_block *b)
{
    struct tmk_peak *k = arg;
    if (ev->time_ns <= k->moment.time_ns) {
        note_current_moment(k, &rp->state);
    } else if (ev->kind == TMK_KIND_FREE && b && b->alloc_ns <= k->moment.time_ns) {
        uint32_t i = device_number(k, &rp->state, ev->device);
        if (i < TMK_MAX_DEVICES)
            keep_gone_block(k, &k->devices[i], b);
    }
}

static void on_time_restored(void *arg, const struct tmk_replay *rp)
{
    struct tmk_peak *k = arg;
    if (rp->state.now_ns <= k->moment.time_ns)
        note_current_moment(k, &rp->state);
    else if (rp->n_replayed == 0)
        k->too_early = true;
}

struct tmk_visitor tmk_peak_visitor(struct tmk_peak *k)
{
    if (k->moment.kind == TMK_MOMENT_TIME)
        return (struct tmk_visitor){.arg = k,
                                    .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE) | TMK_HEARS(STEP) |
                                             TMK_HEARS(RESERVED),
                                    .event = on_time_event,
                                    .restored = on_time_restored};
    return (struct tmk_visitor){.arg = k,
                                .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE) | TMK_HEARS(STEP) |
                                         TMK_HEARS(RESERVED),
                                .event = on_peak_event,
                                .restored = on_peak_restored};
}

/* ---- after it ---- */

static bool is_device_wanted(const struct tmk_peak *k, uint16_t device)
{
    return k->moment.any_device || k->moment.device == device;
}

static bool was_block_alive_then(const struct tmk_peak *k, const struct tmk_block *b)
{
    if (k->moment.kind == TMK_MOMENT_TIME)
        return b->alloc_ns <= k->moment.time_ns;
    return was_born_by_peak(&k->result, b);
}

static int add_peak_block(struct tmk_peak *k, const struct tmk_block *b)
{
    if (TMK_GROW(k->blocks, k->n_blocks + 1, k->block_room) < 0)
        return TMK_ENOMEM;
    k->blocks[k->n_blocks++] = *b;
    return 0;
}

static bool takes_all_devices(const struct tmk_peak *k)
{
    return k->moment.kind == TMK_MOMENT_TIME && k->moment.any_device;
}

static int collect_peak_blocks(struct tmk_peak *k, const struct tmk_state *s)
{
    bool all = takes_all_devices(k);
    int rc = 0;
    for (uint32_t i = 0; i < s->n_devices && rc == 0; i++) {
        const struct candidate *c = &k->devices[i];
        for (uint64_t j = 0; j < c->n_gone && rc == 0; j++)
            if (all || s->devices[i].device == k->device)
                rc = add_peak_block(k, &c->gone[j]);
    }
    for (uint32_t i = 1; i <= s->n_entries && rc == 0; i++) {
        const struct tmk_block *b = &s->entries[i];
        struct tmk_block settled = tmk_state_settled(s, b);
        if (b->live && (all || b->device == k->device) && was_block_alive_then(k, b))
            rc = add_peak_block(k, &settled);
    }
    return rc;
}

static void choose_peak_device(struct tmk_peak *k, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct candidate *c = &k->devices[i];
        if (!c->found || !is_device_wanted(k, s->devices[i].device))
            continue;
        if (!k->found || c->bytes > k->result.bytes) {
            k->found = true;
            k->result = *c;
            k->device = s->devices[i].device;
        }
    }
}

/* A given time always comes, unless its detail was given up; before the first event nothing is
 * alive. */
static void settle_time(struct tmk_peak *k, const struct tmk_state *s)
{
    k->found = !k->too_early;
    k->result.ns = k->moment.time_ns;
    k->result.step = k->step;
    if (!k->moment.any_device)
        k->device = k->moment.device;
    if (!takes_all_devices(k))
        return;
    k->result.bytes = k->result.reserved_bytes = 0;
    k->result.has_reserved = false;
    for (uint32_t i = 0; i < s->n_devices; i++) {
        k->result.bytes += k->devices[i].bytes;
        k->result.has_reserved |= k->devices[i].has_reserved;
        k->result.reserved_bytes += k->devices[i].has_reserved ? k->devices[i].reserved_bytes : 0;
    }
}

int tmk_peak_finish(struct tmk_peak *k, const struct tmk_replay *rp, struct tmk_error *err)
{
    const struct tmk_state *s = &rp->state;
    choose_peak_device(k, s);
    if (k->moment.kind == TMK_MOMENT_TIME)
        settle_time(k, s);
    int rc = k->failed ? TMK_ENOMEM : tmk_labels_init(&k->labels, k->p, s);
    if (rc == 0 && k->found)
        rc = collect_peak_blocks(k, s);
    return rc < 0 ? tmk_fail(err, rc, "no memory for the blocks alive at the peak") : 0;
}

bool tmk_peak_found(const struct tmk_peak *k)
{
    return k->found;
}

uint64_t tmk_peak_time_ns(const struct tmk_peak *k)
{
    return k->result.ns;
}

int64_t tmk_peak_step(const struct tmk_peak *k)
{
    return k->result.step;
}

uint16_t tmk_peak_device(const struct tmk_peak *k)
{
    return k->device;
}

uint64_t tmk_peak_bytes(const struct tmk_peak *k)
{
    return k->result.bytes;
}

bool tmk_peak_reserved(const struct tmk_peak *k, uint64_t *ret_bytes)
{
    if (k->found && k->result.has_reserved)
        *ret_bytes = k->result.reserved_bytes;
    return k->found && k->result.has_reserved;
}

uint64_t tmk_peak_n_blocks(const struct tmk_peak *k)
{
    return k->n_blocks;
}

const struct tmk_block *tmk_peak_block(const struct tmk_peak *k, uint64_t i)
{
    return &k->blocks[i];
}

static const char *name_of_context(const struct tmk_labels *labels, uint32_t context)
{
    return context && context < labels->n_contexts
               ? tmk_reader_string(labels->p->reader, labels->contexts[context].name)
               : NULL;
}

void tmk_peak_place(const struct tmk_peak *k, const char **ret_stage, const char **ret_module)
{
    const struct tmk_labels *labels = tmk_peak_labels(k);
    const struct tmk_block *last = NULL;
    for (uint64_t i = 0; i < tmk_peak_n_blocks(k); i++) {
        const struct tmk_block *b = tmk_peak_block(k, i);
        if (!last || b->serial > last->serial)
            last = b;
    }
    *ret_stage = *ret_module = NULL;
    if (!last || last->context == 0 || last->context >= labels->n_contexts)
        return;
    const struct tmk_context *place = &labels->contexts[last->context];
    *ret_stage = name_of_context(labels, place->stage);
    *ret_module = name_of_context(labels, place->module);
}

const struct tmk_labels *tmk_peak_labels(const struct tmk_peak *k)
{
    return &k->labels;
}

int tmk_peak_group(struct tmk_peak *k, enum tmk_by by, const struct tmk_peak_row **ret_rows,
                   uint64_t *ret_n, struct tmk_error *err)
{
    k->group = tmk_group_close(k->group);
    int rc = tmk_group_open(&k->labels, by, &k->group);
    if (rc == 0) {
        for (uint64_t i = 0; i < k->n_blocks; i++)
            tmk_group_add(k->group, &k->blocks[i]);
        rc = tmk_group_rows(k->group, ret_rows, ret_n);
    }
    return rc < 0 ? tmk_fail(err, rc, "no memory to add up the blocks alive at the peak") : 0;
}

/* ---- opening and closing ---- */

int tmk_peak_open(const struct tmk_process *p, const struct tmk_moment *moment,
                  struct tmk_peak **ret_peak)
{
    struct tmk_peak *k = calloc(1, sizeof *k);
    if (!k)
        return TMK_ENOMEM;
    k->p = p;
    k->moment = *moment;
    k->step = TMK_NO_STEP;
    *ret_peak = k;
    return 0;
}

struct tmk_peak *tmk_peak_close(struct tmk_peak *k)
{
    if (!k)
        return NULL;
    for (uint32_t i = 0; i < TMK_MAX_DEVICES; i++)
        free(k->devices[i].gone);
    tmk_group_close(k->group);
    tmk_labels_fini(&k->labels);
    free(k->blocks);
    free(k);
    return NULL;
}
