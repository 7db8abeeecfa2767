/* SPDX-License-Identifier: MIT */
/* passes/layers.c - see layers.h.
 *
 * A moment is known by how many allocations and frees the sweep had shown; both sweeps count
 * alike. Most blocks come and go between two moments: one comparison tells. */
#include "passes/layers.h"

#include <stdlib.h>

#include "base/error.h"
#include "kit/grow.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/replay.h"
#include "trace/state.h"

struct layer {
    const char *key;
    uint64_t *bytes; /* by moment; during the sweep what is added there, modulo 2^64 */
};

struct tmk_layers {
    const struct tmk_timeline_part *parts;
    uint32_t n_parts;
    uint16_t device;
    uint64_t n_seen;
    uint32_t n_passed; /* moments that were before the event being shown */
    struct tmk_group *group;
    struct layer *layers;
    uint64_t n_layers, layer_room;
    bool failed;
};

/* ---- during the sweep ---- */

/* The first moment at which the block was alive, if it lived until then. */
static uint32_t first_moment(const struct tmk_layers *s, const struct tmk_block *b)
{
    uint32_t low = 0, high = s->n_parts;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tmk_timeline_part *part = &s->parts[middle];
        bool born = b->serial ? part->max_serial >= b->serial : part->max_ns >= b->alloc_ns;
        if (born)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct layer *add_block_layer(struct tmk_layers *s, const char *key)
{
    bool has_room = TMK_GROW(s->layers, s->n_layers + 1, s->layer_room) == 0;
    uint64_t *bytes = has_room ? calloc((size_t)s->n_parts + 1, sizeof *bytes) : NULL;
    s->failed |= !bytes;
    if (!bytes)
        return NULL;
    s->layers[s->n_layers] = (struct layer){key, bytes};
    return &s->layers[s->n_layers++];
}

/* Numbers come one after the other, as rows of the group are made. */
static struct layer *layer_of(struct tmk_layers *s, const struct tmk_block *b)
{
    uint32_t number = tmk_group_number(s->group, b);
    if (number < s->n_layers)
        return &s->layers[number];
    s->failed |= number == UINT32_MAX;
    return s->failed ? NULL : add_block_layer(s, tmk_group_key(s->group, b));
}

/* Count a block that was alive until the moment before `end`. */
static void count_layer_block(struct tmk_layers *s, const struct tmk_block *b, uint32_t end)
{
    if (end == 0 || (b->serial && s->parts[end - 1].max_serial < b->serial))
        return;
    uint32_t first = first_moment(s, b);
    struct layer *layer = first < end ? layer_of(s, b) : NULL;
    if (!layer)
        return;
    layer->bytes[first] += b->size_bytes;
    layer->bytes[end] -= b->size_bytes;
}

static void on_layers_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                            struct tmk_block *b)
{
    (void)rp;
    struct tmk_layers *s = arg;
    s->n_seen++;
    while (s->n_passed < s->n_parts && s->parts[s->n_passed].max_seen < s->n_seen)
        s->n_passed++;
    if (ev->kind == TMK_KIND_FREE && b && b->device == s->device && !s->failed)
        count_layer_block(s, b, s->n_passed);
}

struct tmk_visitor tmk_layers_visitor(struct tmk_layers *s)
{
    return (struct tmk_visitor){
        .arg = s, .kinds = TMK_HEARS(ALLOC) | TMK_HEARS(FREE), .event = on_layers_event};
}

/* ---- after it ---- */

static void count_live_layers(struct tmk_layers *s, const struct tmk_state *state)
{
    for (uint32_t i = 1; i <= state->n_entries && !s->failed; i++) {
        if (!state->entries[i].live || state->entries[i].device != s->device)
            continue;
        struct tmk_block settled = tmk_state_settled(state, &state->entries[i]);
        count_layer_block(s, &settled, s->n_parts);
    }
}

static void add_up_layers(struct tmk_layers *s)
{
    for (uint64_t k = 0; k < s->n_layers; k++)
        for (uint32_t i = 1; i < s->n_parts; i++)
            s->layers[k].bytes[i] += s->layers[k].bytes[i - 1];
}

static struct layer *unknown_layer(struct tmk_layers *s)
{
    for (uint64_t k = 0; k < s->n_layers; k++)
        if (!s->layers[k].key)
            return &s->layers[k];
    return add_block_layer(s, NULL);
}

/* Add what was allocated in blocks that were never seen to go. */
static void add_unknown_bytes(struct tmk_layers *s)
{
    for (uint32_t i = 0; i < s->n_parts && !s->failed; i++) {
        uint64_t known = 0;
        for (uint64_t k = 0; k < s->n_layers; k++)
            known += s->layers[k].bytes[i];
        struct layer *unknown = known < s->parts[i].max_bytes ? unknown_layer(s) : NULL;
        if (unknown)
            unknown->bytes[i] += s->parts[i].max_bytes - known;
    }
}

int tmk_layers_finish(struct tmk_layers *s, const struct tmk_replay *rp, struct tmk_error *err)
{
    count_live_layers(s, &rp->state);
    add_up_layers(s);
    add_unknown_bytes(s);
    return s->failed ? tmk_fail(err, TMK_ENOMEM, "no memory for the layers of the timeline") : 0;
}

uint32_t tmk_layers_n(const struct tmk_layers *s)
{
    return (uint32_t)s->n_layers;
}

const char *tmk_layers_key(const struct tmk_layers *s, uint32_t k)
{
    return s->layers[k].key;
}

const uint64_t *tmk_layers_bytes(const struct tmk_layers *s, uint32_t k)
{
    return s->layers[k].bytes;
}

int tmk_layers_open(const struct tmk_labels *l, enum tmk_by by, const struct tmk_timeline *t,
                    uint32_t device, struct tmk_layers **ret_layers)
{
    struct tmk_layers *s = calloc(1, sizeof *s);
    if (!s)
        return TMK_ENOMEM;
    s->parts = tmk_timeline_parts(t, device);
    s->n_parts = tmk_timeline_n_parts(t);
    s->device = tmk_timeline_device(t, device);
    int rc = tmk_group_open(l, by, &s->group);
    if (rc < 0) {
        tmk_layers_close(s);
        return rc;
    }
    *ret_layers = s;
    return 0;
}

struct tmk_layers *tmk_layers_close(struct tmk_layers *s)
{
    if (!s)
        return NULL;
    for (uint64_t k = 0; k < s->n_layers; k++)
        free(s->layers[k].bytes);
    free(s->layers);
    tmk_group_close(s->group);
    free(s);
    return NULL;
}
