/* SPDX-License-Identifier: MIT */
/* passes/whatif/whatif_replay.c - replays the kept allocations through the model; see whatif.h. */
#include <stdlib.h>

#include "base/error.h"
#include "kit/amount.h"
#include "model/alloc_conf.h"
#include "model/caching_allocator.h"
#include "model/driver_space.h"
#include "passes/whatif/whatif.h"
#include "passes/whatif/whatif_internal.h"
#include "trace/layout.h"

struct player {
    const struct tmk_whatif *w;
    struct tmk_caching_allocator *model;
    uint32_t *blocks;  /* by slot; 0: none */
    uint64_t *n_syncs; /* by slot: the model's count when the block was given; NULL: none ever is */
    uint64_t limit_bytes;
    uint64_t guess; /* the next one; n_guesses: none are wanted */
    uint64_t event, time_ns;
    uint64_t n_heeded; /* of the hints */
    int64_t step;
    bool is_over; /* an OOM came where the recorded run had none */
    struct tmk_whatif_result *result;
};

static uint64_t least_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t two_words(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

static void note_oom(struct player *p, uint64_t bytes, bool is_recorded)
{
    if (p->result->n_ooms++ > 0)
        return;
    p->result->has_oom = true;
    p->result->oom = (struct tmk_whatif_oom){.event = p->event,
                                             .time_ns = p->time_ns,
                                             .step = p->step,
                                             .requested_bytes = bytes,
                                             .is_recorded = is_recorded};
}

static uint64_t request_of(struct player *p, const uint32_t *words)
{
    const struct tmk_whatif *w = p->w;
    if (p->guess < w->n_guesses && &w->words[w->guesses[p->guess].word] == words)
        return w->guesses[p->guess++].bytes;
    return two_words(&words[2]);
}

static int apply_due_hints(struct player *p)
{
    const struct tmk_space_hints *hints = &p->w->hints;
    int rc = 0;
    while (rc == 0 && p->n_heeded < hints->n && hints->items[p->n_heeded].at <= p->event)
        rc = tmk_caching_heed(p->model, &hints->items[p->n_heeded++]);
    return rc;
}

static int play_alloc(struct player *p, const uint32_t *words)
{
    uint32_t *block = &p->blocks[words[0] & NO_SLOT];
    uint64_t bytes = request_of(p, words);
    *block = TMK_CACHING_NONE;
    int rc = apply_due_hints(p);
    if (rc == 0)
        rc = tmk_caching_malloc(p->model, bytes, words[1], block);
    else
        return rc;
    if (rc == 0) {
        note_oom(p, bytes, false);
        p->is_over = true;
    }
    return rc < 0 ? rc : 0;
}

static int play_free(struct player *p, uint32_t word)
{
    uint32_t block = p->blocks[word & NO_SLOT];
    return block == TMK_CACHING_NONE ? 0 : tmk_caching_free(p->model, block);
}

static int play_give(struct player *p, uint32_t word)
{
    uint32_t slot = word & NO_SLOT;
    if (p->blocks[slot] == TMK_CACHING_NONE)
        return 0;
    p->n_syncs[slot] = tmk_caching_stats(p->model)->n_syncs;
    return tmk_caching_free_requested(p->model, p->blocks[slot]);
}

static int play_done(struct player *p, uint32_t slot)
{
    if (p->blocks[slot] == TMK_CACHING_NONE ||
        p->n_syncs[slot] != tmk_caching_stats(p->model)->n_syncs)
        return 0;
    return tmk_caching_free_completed(p->model, p->blocks[slot]);
}

static int play_oom(struct player *p, const uint32_t *words)
{
    uint32_t block;
    uint64_t bytes = two_words(&words[2]);
    int rc = tmk_caching_malloc(p->model, bytes, words[1], &block);
    if (rc == 0)
        note_oom(p, bytes, true);
    return rc <= 0 ? rc : tmk_caching_free(p->model, block);
}

/* Replay that the program emptied the cache. What the allocator did itself to get under the limit
 * is left to the model. */
static int play_empty(struct player *p, uint64_t need)
{
    const struct tmk_whatif *w = p->w;
    uint64_t limit = least_bytes(w->recorded.limit_bytes, p->limit_bytes); /* unknown is no bound */
    bool is_own = need && (need > limit || w->conf.gc_threshold > 0);
    return is_own ? 0 : tmk_caching_empty_cache(p->model);
}

/* Replay one OTHER. Returns the words taken, or an error. */
static int play_other(struct player *p, const uint32_t *words)
{
    int rc = 0;
    switch ((enum whatif_other)(words[0] & NO_SLOT)) {
    case OTHER_OOM:
        rc = play_oom(p, words);
        p->event++;
        return rc < 0 ? rc : 4;
    case OTHER_EMPTY:
        rc = play_empty(p, two_words(&words[1]));
        break;
    case OTHER_STEP:
        p->step = (int64_t)two_words(&words[1]);
        break;
    case OTHER_TIME:
        p->time_ns = two_words(&words[1]);
        break;
    case OTHER_DONE:
        rc = play_done(p, words[1]);
        break;
    }
    return rc < 0 ? rc : 3;
}

static int play_words(struct player *p)
{
    const uint32_t *words = p->w->words, *end = words + p->w->n_words;
    int rc = 0;
    while (words < end && rc >= 0 && !p->is_over) {
        switch ((enum whatif_op)(words[0] >> OP_SHIFT)) {
        case OP_ALLOC:
            rc = play_alloc(p, words);
            words += 4;
            p->event++;
            break;
        case OP_FREE:
            rc = play_free(p, words[0]);
            words++;
            p->event++;
            break;
        case OP_GIVE:
            rc = play_give(p, words[0]);
            words++;
            p->event++;
            break;
        case OP_OTHER:
            rc = play_other(p, words);
            words += rc > 0 ? rc : 0;
            break;
        }
    }
    return rc < 0 ? rc : 0;
}

/* True when the settings do what the recorded ones did, for requests as large as those seen. */
static bool is_as_recorded(const struct tmk_whatif *w, const struct tmk_whatif_setting *setting)
{
    const struct tmk_alloc_conf *a = &setting->conf, *b = &w->conf;
    uint64_t most = w->max_request + 1;
    bool has_limit = setting->limit_bytes != TMK_ALLOC_NO_BOUND;
    for (unsigned i = 0; i < TMK_ALLOC_N_INTERVALS && (i == 0 || most >> 20 >> i); i++)
        if ((a->roundup_divisions[i] > 1 || b->roundup_divisions[i] > 1) &&
            a->roundup_divisions[i] != b->roundup_divisions[i])
            return false;
    return a->expandable_segments == b->expandable_segments &&
           a->large_segment_bytes == b->large_segment_bytes &&
           least_bytes(a->max_split_bytes, most) == least_bytes(b->max_split_bytes, most) &&
           (!has_limit || !(a->gc_threshold > 0 || b->gc_threshold > 0));
}

/* True when every block that was there lies in a segment that was, one after the other. */
static bool are_seeds_placed(const struct tmk_whatif *w)
{
    uint64_t k = 0, at = 0;
    for (uint64_t i = 0; i < w->n_seeds; i++) {
        const struct seed_block *b = &w->seeds[i];
        uint64_t end = b->address + b->size_bytes;
        while (k < w->n_seed_places && w->places[k].address + w->places[k].size_bytes <= b->address)
            k++;
        if (k == w->n_seed_places || b->address < w->places[k].address || b->address < at ||
            end < b->address || end > w->places[k].address + w->places[k].size_bytes)
            return false;
        at = end;
    }
    return true;
}

/* Seed one segment as it was. `first` is the first block that may lie in it; returns the one
 * after it. */
static int seed_segment(struct player *p, const struct tmk_space_event *place, uint64_t *first)
{
    const struct tmk_whatif *w = p->w;
    uint64_t end = place->address + place->size_bytes, n = 0;
    while (*first + n < w->n_seeds && w->seeds[*first + n].address < end)
        n++;
    struct tmk_caching_seed *blocks = calloc(n + 1, sizeof *blocks);
    uint32_t *numbers = calloc(n + 1, sizeof *numbers);
    for (uint64_t i = 0; i < n && blocks; i++)
        blocks[i] = (struct tmk_caching_seed){w->seeds[*first + i].address,
                                              w->seeds[*first + i].size_bytes};
    struct tmk_caching_seed segment = {place->address, place->size_bytes};
    uint32_t stream = n ? w->seeds[*first].stream : 0;
    int rc = blocks && numbers ? tmk_caching_seed(p->model, &segment, stream, blocks, n, numbers)
                               : TMK_ENOMEM;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        p->blocks[w->seeds[*first + i].slot] = numbers[i];
    *first += n;
    free(blocks);
    free(numbers);
    return rc;
}

/* Replay what was there before the first event: as it lay, or as if it had been requested in
 * order of address. */
static int play_seeds(struct player *p, bool as_it_lay)
{
    const struct tmk_whatif *w = p->w;
    uint64_t first = 0;
    int rc = 0;
    if (as_it_lay && are_seeds_placed(w)) {
        for (uint64_t i = 0; i < w->n_seed_places && rc == 0; i++)
            rc = seed_segment(p, &w->places[i], &first);
        return rc;
    }
    for (uint64_t i = 0; i < w->n_seeds && rc >= 0 && !p->is_over; i++) {
        const struct seed_block *b = &w->seeds[i];
        uint64_t bytes = b->requested_bytes ? b->requested_bytes : b->size_bytes;
        rc = tmk_caching_malloc(p->model, bytes, b->stream, &p->blocks[b->slot]);
        if (rc == 0) {
            note_oom(p, bytes, false);
            p->is_over = true;
        }
    }
    return rc < 0 ? rc : 0;
}

static void tell_result(struct tmk_whatif_result *r, const struct tmk_caching_stats *s)
{
    r->peak_allocated_bytes = s->peak_allocated_bytes;
    r->peak_reserved_bytes = s->peak_reserved_bytes;
    r->wasted_bytes = s->peak_reserved_bytes > s->peak_allocated_bytes
                          ? s->peak_reserved_bytes - s->peak_allocated_bytes
                          : 0;
    r->n_retries = s->n_retries;
    r->n_segments = s->peak_segments;
}

int tmk_whatif_replay(const struct tmk_whatif *w, const struct tmk_whatif_setting *setting,
                      struct tmk_whatif_result *ret_result, struct tmk_error *err)
{
    bool is_recorded = is_as_recorded(w, setting);
    uint64_t card = w->recorded.card_bytes == TMK_BYTES_UNKNOWN ? 0 : w->recorded.card_bytes;
    struct tmk_caching_setup setup = {.conf = setting->conf,
                                      .limit_bytes = setting->limit_bytes,
                                      .card_bytes = card,
                                      .places = w->places + w->n_seed_places,
                                      .n_places = is_recorded ? w->n_places - w->n_seed_places : 0,
                                      .top = w->hints.top};
    struct tmk_whatif_result result = {0};
    struct player p = {.w = w,
                       .limit_bytes = setting->limit_bytes,
                       .guess = is_recorded ? w->n_guesses : 0,
                       .step = TMK_NO_STEP,
                       .result = &result};
    p.blocks = calloc(w->n_slots + 1ull, sizeof *p.blocks);
    if (w->has_held)
        p.n_syncs = calloc(w->n_slots + 1ull, sizeof *p.n_syncs);
    bool has_memory = p.blocks && (p.n_syncs || !w->has_held);
    int rc = has_memory ? tmk_caching_open(&setup, &p.model) : TMK_ENOMEM;
    if (rc == 0)
        rc = play_seeds(&p, is_recorded && !w->conf.expandable_segments);
    if (rc == 0)
        rc = play_words(&p);
    if (rc == 0)
        tell_result(&result, tmk_caching_stats(p.model));
    tmk_caching_close(p.model);
    free(p.blocks);
    free(p.n_syncs);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to replay the allocations");
    *ret_result = result;
    return 0;
}

int tmk_whatif_smallest(const struct tmk_whatif *w, const struct tmk_alloc_conf *conf,
                        uint64_t *ret_limit_bytes, struct tmk_error *err)
{
    const uint64_t unit = TMK_ALLOC_SMALL_SEGMENT;
    struct tmk_whatif_setting setting = {.conf = *conf, .limit_bytes = TMK_ALLOC_NO_BOUND};
    struct tmk_whatif_result r = {0};
    int rc = tmk_whatif_replay(w, &setting, &r, err);
    if (rc < 0)
        return rc;
    uint64_t low = r.peak_allocated_bytes / unit; /* too small, or just enough */
    uint64_t high = r.peak_reserved_bytes / unit + 1;
    low -= low > 0;
    while (low + 1 < high) {
        uint64_t middle = (low + high) / 2;
        setting.limit_bytes = middle * unit;
        rc = tmk_whatif_replay(w, &setting, &r, err);
        if (rc < 0)
            return rc;
        if (r.has_oom)
            low = middle;
        else
            high = middle;
    }
    *ret_limit_bytes = high * unit;
    return 0;
}
