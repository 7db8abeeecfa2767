/* SPDX-License-Identifier: MIT */
/* record/control/api.c - the functions that include/tidemark/tidemark.h declares, for annotated
 * programs.
 *
 * Each is a hook: it enters the lane, which guards against re-entry, and passes the lane to
 * everything below. */
#include <string.h>

#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/native/native.h"
#include "record/training/training_context.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

/* With native stacks: the call site, then the callers of its function. The innermost native frame
 * is left out, because it is that function. (Where an allocator's wrapper passes its caller's site,
 * that frame is the wrapper, and the site's function appears twice: as the site and as a native
 * frame.) */
__attribute__((noinline)) static uint32_t site_native_stack(struct tmk_lane *lane,
                                                            const struct tidemark_site *site)
{
    uint32_t frames[1 + TMK_NATIVE_MAX_FRAMES];
    frames[0] = tmk_intern_site_frame(lane, site);
    if (frames[0] == 0)
        return 0;
    uint32_t n = tmk_native_frames(lane, 1, NULL, frames + 1, TMK_NATIVE_MAX_FRAMES);
    return tmk_intern_stack(lane, frames, 1 + n);
}

static inline uint32_t stack_of_site(struct tmk_lane *lane, const struct tidemark_site *site)
{
    if (__builtin_expect(tmk_recorder.settings.native, 0))
        return site_native_stack(lane, site);
    return tmk_intern_site(lane, site);
}

void tidemark_record_alloc(unsigned device, const void *address, uint64_t size_bytes,
                           const struct tidemark_site *site)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    uint32_t stack = stack_of_site(lane, site);
    if (__builtin_expect(size_bytes >> TMK_SIZE_BITS != 0, 0))
        size_bytes = ((uint64_t)1 << TMK_SIZE_BITS) - 1; /* 256 TiB: nobody has that much */
    tmk_lane_put(lane, TMK_KIND_ALLOC, (uint16_t)device, stack, (uintptr_t)address, size_bytes);
    tmk_lane_leave(lane);
}

void tidemark_record_free(unsigned device, const void *address)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_lane_put(lane, TMK_KIND_FREE, (uint16_t)device, 0, (uintptr_t)address, 0);
    tmk_lane_leave(lane);
}

void tidemark_record_tag(unsigned device, const void *address, unsigned category, const char *name)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    uint32_t id = tmk_intern_string(lane, name);
    tmk_lane_put(lane, TMK_KIND_TAG, (uint16_t)device, id, (uintptr_t)address, category);
    tmk_lane_leave(lane);
}

void tidemark_record_push(unsigned kind, const char *name)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    uint32_t id = tmk_intern_string(lane, name);
    if (kind == TIDEMARK_STAGE)
        tmk_training_context_own(lane, true);
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, id, kind, 0);
    tmk_lane_leave(lane);
}

void tidemark_record_pop(unsigned kind)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    if (kind == TIDEMARK_STAGE)
        tmk_training_context_own(lane, false);
    tmk_lane_put(lane, TMK_KIND_POP, 0, 0, kind, 0);
    tmk_lane_leave(lane);
}

void tidemark_record_step(int64_t step)
{
    struct tmk_lane *lane = step == TMK_NO_STEP ? NULL : tmk_lane_enter();
    if (!lane)
        return;
    tmk_training_context_own_step(lane);
    tmk_lane_put(lane, TMK_KIND_STEP, 0, 0, (uint64_t)step, 0);
    tmk_lane_leave(lane);
}

void tidemark_record_mark(const char *event, const char *info)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    uint32_t id = tmk_intern_string(lane, event);
    size_t n = info ? strnlen(info, TMK_STRING_MAX_BYTES) : 0;
    tmk_lane_put_text(lane, TMK_KIND_MARK, id, 0, info ? info : "", n);
    tmk_lane_leave(lane);
}

void tidemark_record_oom(unsigned device, uint64_t requested_bytes, uint64_t capacity_bytes,
                         const struct tidemark_site *site)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    uint32_t stack = stack_of_site(lane, site);
    tmk_recorder_count_oom();
    tmk_lane_put(lane, TMK_KIND_OOM, (uint16_t)device, stack, requested_bytes, capacity_bytes);
    tmk_lane_leave(lane);
    tmk_packing_hurry();
}

/* How many requests of this process failed since it began. For the Python package. */
__attribute__((visibility("default"))) unsigned tidemark_record_n_ooms(void);

unsigned tidemark_record_n_ooms(void)
{
    return atomic_load(&tmk_recorder.control->n_ooms);
}

int tidemark_record_on(void)
{
    return !tmk_recorder_is_off();
}
