/* SPDX-License-Identifier: MIT */
/* cli/answers/frag_json.c - see frag_answer.h: for machines. */
#include <inttypes.h>

#include "cli/answers/frag_answer.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "kit/json.h"
#include "model/owners.h"

enum { MAX_PINNED = 64, MAX_BLOCKS = 16 };

static void add_bytes(struct tmk_json *j, const char *key, uint64_t bytes)
{
    if (bytes == TMK_FRAG_UNKNOWN)
        tmk_json_null(j, key);
    else
        tmk_json_u64(j, key, bytes);
}

static void add_number(struct tmk_json *j, const char *key, int64_t value, bool is_known)
{
    if (is_known)
        tmk_json_i64(j, key, value);
    else
        tmk_json_null(j, key);
}

static void add_sum(struct tmk_json *j, const struct tmk_frag_sum *sum)
{
    add_bytes(j, "reserved", sum->reserved_bytes);
    add_bytes(j, "allocated", sum->allocated_bytes);
    add_bytes(j, "free", sum->free_bytes);
    add_bytes(j, "largest_free", sum->largest_bytes);
    add_bytes(j, "largest_allocatable", sum->allocatable_bytes);
}

static void add_counts(struct tmk_json *j, const struct tmk_frag_sum *sum, bool has_segments)
{
    add_bytes(j, "releasable", sum->whole_bytes);
    add_bytes(j, "segments", has_segments ? sum->n_segments : TMK_FRAG_UNKNOWN);
    tmk_json_u64(j, "blocks", sum->n_blocks);
    add_bytes(j, "free_blocks", has_segments ? sum->n_free : TMK_FRAG_UNKNOWN);
}

/* ---- what is pinned ---- */

static void add_block(struct tmk_json *j, const struct tmk_frag_answer *a,
                      const struct tmk_block *b)
{
    const struct tmk_context *contexts = tmk_fragmentation_labels(a->frag)->contexts;
    char address[24];
    snprintf(address, sizeof address, "0x%" PRIx64, b->address);
    tmk_json_object(j, NULL);
    tmk_json_text(j, "address", address);
    tmk_json_u64(j, "size", b->size_bytes);
    tmk_json_text(j, "category", tmk_category_name(tmk_block_category(a->p, contexts, b)));
    tmk_json_text(j, "module", tmk_block_module(a->p, contexts, b));
    add_number(j, "step", b->step, b->step != TMK_NO_STEP);
    tmk_json_text(j, "tensor", b->name ? tmk_reader_string(a->p->reader, b->name) : NULL);
    tmk_process_json_stack(j, a->p, b->stack);
    tmk_json_end(j);
}

static void add_pinned(struct tmk_json *j, const struct tmk_frag_answer *a, uint64_t device)
{
    const struct tmk_frag_segment *pinned[MAX_PINNED];
    uint64_t n = tmk_fragmentation_pinned(a->frag, device, pinned, MAX_PINNED);
    tmk_json_array(j, "pinned");
    for (uint64_t i = 0; i < n && i < MAX_PINNED; i++) {
        const struct tmk_frag_segment *g = pinned[i];
        char address[24];
        snprintf(address, sizeof address, "0x%" PRIx64, g->address);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "segment", address);
        tmk_json_u64(j, "size", g->size_bytes);
        tmk_json_u64(j, "free", g->free_bytes);
        tmk_json_array(j, "by");
        for (uint64_t k = 0; k < g->n_blocks && k < MAX_BLOCKS; k++)
            add_block(j, a, tmk_fragmentation_block(a->frag, device, g->first_block + k));
        tmk_json_end(j);
        tmk_json_u64(j, "largest_free", g->largest_bytes);
        tmk_json_u64(j, "blocks", g->n_blocks);
        tmk_json_text(j, "pool", g->pool == TMK_FRAG_SMALL ? "small" : "large");
        tmk_json_bool(j, "expandable", g->is_expandable);
        tmk_json_end(j);
    }
    tmk_json_end(j);
    tmk_json_u64(j, "pinned_segments", n);
}

/* ---- a device ---- */

static void add_pools(struct tmk_json *j, const struct tmk_frag_answer *a,
                      const struct tmk_frag_device *d)
{
    tmk_json_array(j, "pools");
    for (uint64_t i = 0; i < d->n_pools; i++) {
        uint64_t handle;
        tmk_json_object(j, NULL);
        tmk_json_text(j, "pool", d->pools[i].pool == TMK_FRAG_SMALL ? "small" : "large");
        if (tmk_frag_stream(a->p, &d->pools[i], &handle))
            tmk_json_u64(j, "stream", handle);
        else
            tmk_json_null(j, "stream");
        add_sum(j, &d->pools[i].sum);
        add_counts(j, &d->pools[i].sum, true);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void add_device(struct tmk_json *j, const struct tmk_frag_answer *a, uint64_t device)
{
    const struct tmk_frag_device *d = tmk_fragmentation_get(a->frag, device);
    char name[24];
    add_sum(j, &d->sum);
    add_pinned(j, a, device);
    tmk_json_text(j, "moment", tmk_frag_moment_name(a, d));
    tmk_json_u64(j, "time_ns", d->time_ns + a->p->offset_ns);
    add_number(j, "step", d->step, d->step != TMK_NO_STEP);
    tmk_json_text(j, "device", tmk_device_name(d->device, name));
    add_number(j, "rank", a->p->rank, a->p->rank >= 0);
    tmk_process_json_pid(j, a->p);
    add_bytes(j, "request", d->is_oom ? d->request_bytes : TMK_FRAG_UNKNOWN);
    add_bytes(j, "largest_allocatable_new", d->allocatable_new_bytes);
    add_bytes(j, "capacity", d->capacity_bytes);
    add_bytes(j, "outside", d->has_segments ? d->outside_bytes : TMK_FRAG_UNKNOWN);
    add_counts(j, &d->sum, d->has_segments);
    add_pools(j, a, d);
}

void tmk_frag_json(const struct tmk_frag_answer *a)
{
    struct tmk_json j;
    uint64_t chosen;
    if (!tmk_frag_chosen(a, &chosen))
        return;
    tmk_json_init(&j, stdout, 3);
    tmk_json_object(&j, NULL);
    add_device(&j, a, chosen);
    tmk_json_array(&j, "devices");
    for (uint64_t i = 0; i < tmk_fragmentation_n(a->frag); i++)
        if (i != chosen && !a->has_device) {
            tmk_json_object(&j, NULL);
            add_device(&j, a, i);
            tmk_json_end(&j);
        }
    tmk_json_end(&j);
    tmk_json_end(&j);
}
