/* SPDX-License-Identifier: MIT */
/* record/core/intern.c - see intern.h. */
#include "record/core/intern.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "record/core/idtable.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum {
    STRING_SLOTS = 1 << 17,
    FRAME_SLOTS = 1 << 17,
    STACK_SLOTS = 1 << 18,
    STREAM_SLOTS = 1 << 10,
};

static struct tmk_idtable strings, frames, stacks, streams;

int tmk_intern_reset(void)
{
    if (tmk_idtable_reset(&strings, STRING_SLOTS) < 0 ||
        tmk_idtable_reset(&frames, FRAME_SLOTS) < 0 ||
        tmk_idtable_reset(&stacks, STACK_SLOTS) < 0 ||
        tmk_idtable_reset(&streams, STREAM_SLOTS) < 0)
        return TMK_ENOMEM;
    return 0;
}

bool tmk_intern_is_valid(void)
{
    return tmk_idtable_is_valid(&strings) && tmk_idtable_is_valid(&frames) &&
           tmk_idtable_is_valid(&stacks) && tmk_idtable_is_valid(&streams);
}

/* An id for a new item; 0 when the table has no room for it, which is counted. */
static uint32_t new_id(struct tmk_idtable *table, uint64_t hash)
{
    uint32_t id = tmk_idtable_new(table, hash);
    if (!id)
        tmk_lane_count_unnamed();
    return id;
}

/* ---- texts ---- */

uint32_t tmk_intern_text(struct tmk_lane *lane, const char *text, size_t n)
{
    uint64_t hash = tmk_idtable_hash(tmk_hash_bytes(text, n));
    uint32_t id = tmk_idtable_known(&strings, hash);
    if (id)
        return id;
    id = new_id(&strings, hash);
    if (!id || !tmk_lane_put_text(lane, TMK_KIND_DEF_STRING, id, 0, text, n))
        return 0;
    tmk_idtable_remember(&strings, hash, id);
    return id;
}

uint32_t tmk_intern_string(struct tmk_lane *lane, const char *text)
{
    return text ? tmk_intern_text(lane, text, strnlen(text, TMK_STRING_MAX_BYTES)) : 0;
}

/* ---- frames and stacks ---- */

uint32_t tmk_intern_known_frame(uint64_t hash)
{
    return tmk_idtable_known(&frames, hash);
}

uint32_t tmk_intern_new_frame(uint64_t hash)
{
    return new_id(&frames, hash);
}

void tmk_intern_remember_frame(uint64_t hash, uint32_t id)
{
    tmk_idtable_remember(&frames, hash, id);
}

uint32_t tmk_intern_known_stack(uint64_t hash)
{
    return tmk_idtable_known(&stacks, hash);
}

uint32_t tmk_intern_define_stack(struct tmk_lane *lane, uint64_t hash, const uint32_t *ids,
                                 uint32_t n_frames)
{
    uint32_t id = new_id(&stacks, hash);
    if (!id || !tmk_lane_put_text(lane, TMK_KIND_DEF_STACK, id, 0, ids, n_frames * sizeof *ids))
        return 0;
    tmk_idtable_remember(&stacks, hash, id);
    return id;
}

uint32_t tmk_intern_stack(struct tmk_lane *lane, const uint32_t *ids, uint32_t n)
{
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = tmk_hash_fold(hash, ids[i]);
    hash = tmk_idtable_hash(hash);
    uint32_t id = tmk_intern_known_stack(hash);
    return id || n == 0 ? id : tmk_intern_define_stack(lane, hash, ids, n);
}

uint32_t tmk_intern_native_frame(struct tmk_lane *lane, uint32_t module, uint64_t address)
{
    uint64_t hash = tmk_idtable_hash(tmk_hash_mix(module, address));
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    id = tmk_intern_new_frame(hash);
    if (!id || !tmk_lane_put(lane, TMK_KIND_DEF_NATIVE_FRAME, 0, id, module, address))
        return 0;
    tmk_intern_remember_frame(hash, id);
    return id;
}

/* ---- sites and labels ---- */

static uint64_t site_hash(const struct tidemark_site *site)
{
    return tmk_idtable_hash(tmk_hash_fold((uintptr_t)site->file, (uintptr_t)site->function ^
                                                                     ((uint64_t)site->line << 40)));
}

uint32_t tmk_intern_site_frame(struct tmk_lane *lane, const struct tidemark_site *site)
{
    if (!site)
        return 0;
    uint64_t hash = site_hash(site);
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    uint64_t file = tmk_intern_string(lane, site->file);
    uint32_t function = tmk_intern_string(lane, site->function);
    id = tmk_intern_new_frame(hash);
    if (!id || !tmk_lane_put(lane, TMK_KIND_DEF_FRAME, 0, id, file << 32 | function, site->line))
        return 0;
    tmk_intern_remember_frame(hash, id);
    return id;
}

__attribute__((noinline)) static uint32_t define_site(struct tmk_lane *lane, uint64_t hash,
                                                      const struct tidemark_site *site)
{
    uint32_t frame = tmk_intern_site_frame(lane, site);
    return frame ? tmk_intern_define_stack(lane, hash, &frame, 1) : 0;
}

uint32_t tmk_intern_site(struct tmk_lane *lane, const struct tidemark_site *site)
{
    if (!site)
        return 0;
    uint64_t hash = site_hash(site);
    uint32_t id = tmk_idtable_known(&stacks, hash);
    return id ? id : define_site(lane, hash, site);
}

static uint64_t label_hash(const char *label)
{
    return tmk_idtable_hash(tmk_hash_bytes(label, strlen(label)));
}

uint32_t tmk_intern_label_frame(struct tmk_lane *lane, const char *label)
{
    uint64_t hash = label_hash(label);
    uint32_t id = tmk_intern_known_frame(hash);
    if (id)
        return id;
    uint32_t function = tmk_intern_string(lane, label);
    id = tmk_intern_new_frame(hash);
    if (!id)
        return 0;
    tmk_lane_put(lane, TMK_KIND_DEF_FRAME, 0, id, function, 0);
    tmk_intern_remember_frame(hash, id);
    return id;
}

uint32_t tmk_intern_label(struct tmk_lane *lane, const char *label)
{
    uint64_t hash = label_hash(label);
    uint32_t id = tmk_intern_known_stack(hash);
    uint32_t frame = id ? 0 : tmk_intern_label_frame(lane, label);
    return frame ? tmk_intern_define_stack(lane, hash, &frame, 1) : id;
}

/* ---- streams ---- */

uint32_t tmk_intern_stream(struct tmk_lane *lane, uint16_t device, uint64_t handle)
{
    uint64_t hash = tmk_idtable_hash(tmk_hash_fold(handle, device));
    uint32_t id = tmk_idtable_known(&streams, hash);
    if (id)
        return id;
    id = new_id(&streams, hash);
    if (id > UINT16_MAX)
        tmk_lane_count_unnamed();
    if (id == 0 || id > UINT16_MAX)
        return 0;
    tmk_lane_put(lane, TMK_KIND_DEF_STREAM, device, id, handle, 0);
    tmk_idtable_remember(&streams, hash, id);
    return id;
}
