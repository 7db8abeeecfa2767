/* SPDX-License-Identifier: MIT */
/* cli/answers/frag_json.c - see frag_answer.h: for machines. */
#include <inttypes.h>

#include "cli/answers/answer_json.h"
#include "cli/answers/frag_answer.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "model/owners.h"
#include "model/run.h"
#include "passes/frag/fragmentation.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { MAX_PINNED = 64, MAX_BLOCKS = 16 };

static void add_sum(struct tmk_tree *t, const struct tmk_frag_sum *sum)
{
    tmk_tree_bytes(t, "reserved", sum->reserved_bytes);
    tmk_tree_bytes(t, "allocated", sum->allocated_bytes);
    tmk_tree_bytes(t, "free", sum->free_bytes);
    tmk_tree_bytes(t, "largest_free", sum->largest_bytes);
    tmk_tree_bytes(t, "largest_allocatable", sum->allocatable_bytes);
}

static void add_counts(struct tmk_tree *t, const struct tmk_frag_sum *sum, bool has_segments)
{
    tmk_tree_bytes(t, "releasable", sum->whole_bytes);
    tmk_tree_bytes(t, "segments", has_segments ? sum->n_segments : TMK_BYTES_UNKNOWN);
    tmk_tree_u64(t, "blocks", sum->n_blocks);
    tmk_tree_bytes(t, "free_blocks", has_segments ? sum->n_free : TMK_BYTES_UNKNOWN);
}

/* ---- what is pinned ---- */

static void add_frag_block(struct tmk_tree *t, const struct tmk_frag_answer *a,
                           const struct tmk_block *b)
{
    const struct tmk_context *contexts = tmk_fragmentation_labels(a->frag)->contexts;
    char address[24];
    snprintf(address, sizeof address, "0x%" PRIx64, b->address);
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "address", address);
    tmk_tree_u64(t, "size", b->size_bytes);
    tmk_tree_text(t, "category", tmk_category_name(tmk_block_category(a->p, contexts, b)));
    tmk_tree_text(t, "module", tmk_block_module(a->p, contexts, b));
    tmk_answer_put_step(t, "step", b->step);
    tmk_tree_text(t, "tensor", b->name ? tmk_reader_string(a->p->reader, b->name) : NULL);
    tmk_answer_put_stack(t, "stack", a->p, b->stack);
    tmk_tree_end(t);
}

static void add_pinned(struct tmk_tree *t, const struct tmk_frag_answer *a, uint64_t device)
{
    const struct tmk_frag_segment *pinned[MAX_PINNED];
    uint64_t n = tmk_fragmentation_pinned(a->frag, device, pinned, MAX_PINNED);
    tmk_tree_list(t, "pinned");
    for (uint64_t i = 0; i < n && i < MAX_PINNED; i++) {
        const struct tmk_frag_segment *g = pinned[i];
        char address[24];
        snprintf(address, sizeof address, "0x%" PRIx64, g->address);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "segment", address);
        tmk_tree_u64(t, "size", g->size_bytes);
        tmk_tree_u64(t, "free", g->free_bytes);
        tmk_tree_list(t, "by");
        for (uint64_t k = 0; k < g->n_blocks && k < MAX_BLOCKS; k++)
            add_frag_block(t, a, tmk_fragmentation_block(a->frag, device, g->first_block + k));
        tmk_tree_end(t);
        tmk_tree_u64(t, "largest_free", g->largest_bytes);
        tmk_tree_u64(t, "blocks", g->n_blocks);
        tmk_tree_text(t, "pool", g->pool == TMK_FRAG_SMALL ? "small" : "large");
        tmk_tree_bool(t, "expandable", g->is_expandable);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_u64(t, "pinned_segments", n);
}

/* ---- a device ---- */

static void add_pools(struct tmk_tree *t, const struct tmk_frag_answer *a,
                      const struct tmk_frag_device *d)
{
    tmk_tree_list(t, "pools");
    for (uint64_t i = 0; i < d->n_pools; i++) {
        uint64_t handle = 0;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "pool", d->pools[i].pool == TMK_FRAG_SMALL ? "small" : "large");
        bool has_stream = tmk_frag_stream(a->p, &d->pools[i], &handle);
        tmk_tree_u64_if(t, "stream", has_stream, handle);
        add_sum(t, &d->pools[i].sum);
        add_counts(t, &d->pools[i].sum, true);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_frag_device(struct tmk_tree *t, const struct tmk_frag_answer *a, uint64_t device)
{
    const struct tmk_frag_device *d = tmk_fragmentation_get(a->frag, device);
    add_sum(t, &d->sum);
    add_pinned(t, a, device);
    tmk_tree_text(t, "moment", tmk_frag_moment_name(a->moment.kind, d));
    tmk_tree_u64(t, "time_ns", d->time_ns + a->p->offset_ns);
    tmk_answer_put_step(t, "step", d->step);
    tmk_answer_put_device(t, d->device);
    tmk_answer_put_rank(t, a->p);
    tmk_answer_put_pid(t, a->p);
    tmk_tree_bytes(t, "request", d->is_oom ? d->request_bytes : TMK_BYTES_UNKNOWN);
    tmk_tree_bytes(t, "largest_allocatable_new", d->allocatable_new_bytes);
    tmk_tree_bytes(t, "capacity", d->capacity_bytes);
    tmk_tree_bytes(t, "outside", d->has_segments ? d->outside_bytes : TMK_BYTES_UNKNOWN);
    add_counts(t, &d->sum, d->has_segments);
    add_pools(t, a, d);
}

void tmk_frag_json(const struct tmk_frag_answer *a)
{
    struct tmk_tree t;
    uint64_t chosen;
    if (!tmk_frag_chosen(a, &chosen))
        return;
    tmk_tree_init_json(&t, stdout, 3);
    tmk_tree_object(&t, NULL);
    put_frag_device(&t, a, chosen);
    tmk_tree_list(&t, "devices");
    for (uint64_t i = 0; i < tmk_fragmentation_n(a->frag); i++)
        if (i != chosen && !a->has_device) {
            tmk_tree_object(&t, NULL);
            put_frag_device(&t, a, i);
            tmk_tree_end(&t);
        }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}
