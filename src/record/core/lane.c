/* SPDX-License-Identifier: MIT */
/* record/core/lane.c - the slow side of lane.h: opening, turning pages, ending, and forks inside an
 * event. */
#include "record/core/lane.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/region.h"
#include "base/valid.h"
#include "record/core/parts.h"
#include "record/core/ring_space.h"
#include "record/core/seal.h"
#include "record/core/thread_slot.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"

__thread struct tmk_lane tmk_lane TMK_LANE_TLS = {.generation = UINT32_MAX};

static pthread_key_t end_key;
static bool has_end_key;

_Static_assert(offsetof(struct tmk_page, slots) + TMK_PAGE_SLOTS * sizeof(struct tmk_record) ==
                   sizeof(struct tmk_page),
               "its slots are the last of a page");

static struct tmk_page *page_of_lane(const struct tmk_lane *lane)
{
    return (struct tmk_page *)lane->end - 1;
}

void tmk_lane_close(struct tmk_lane *lane)
{
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    if (lane->generation == generation && lane->end)
        tmk_page_seal(page_of_lane(lane));
    lane->generation = UINT32_MAX;
    lane->cursor = lane->end = NULL;
}

static bool is_block_kind(uint8_t kind)
{
    return kind == TMK_KIND_ALLOC || kind == TMK_KIND_FREE || kind == TMK_KIND_TAG;
}

bool tmk_lane_is_valid(const struct tmk_lane *lane)
{
    if (!lane->end)
        return !lane->cursor;
    const struct tmk_page *page = page_of_lane(lane);
    if (lane->generation == UINT32_MAX || lane->cursor < page->slots || lane->cursor > lane->end)
        return false;
    if (lane->generation != atomic_load(&tmk_recorder.control->generation))
        return true; /* the page may be another lane's by now, or gone */
    if (page->thread != lane->thread)
        return false;
    for (const struct tmk_record *r = lane->cursor; r < lane->end; r++)
        if (atomic_load_explicit(&r->head, memory_order_relaxed) != 0)
            return false;
    if (!lane->is_block)
        return true;
    union tmk_record_head last = {.word = lane->cursor > page->slots ? lane->cursor[-1].head : 0};
    return is_block_kind(last.kind);
}

#define ASSERT_VALID(lane) TMK_ASSERT_VALID(tmk_lane_is_valid(lane), TMK_PAGE_SLOTS)

static void end_lane(void *arg) /* called when a thread ends */
{
    tmk_lane_close(arg);
}

/* A signal handler that interrupted an event has forked and may return in the child. Then the rest
 * of the event is written to where the parent's ring was, and nobody reads it. */
static void catch_rest_of_event(void)
{
    const struct tmk_ring *ring = &tmk_recorder.ring;
    if (tmk_lane.busy <= TMK_LANE_LENT || !ring->header || tmk_seal_is_closed())
        return;
    tmk_map_missing(ring->header, ring->size_bytes);
    tmk_ring_space_reset(); /* so that the child takes no page */
}

__attribute__((constructor)) static void prepare_lanes(void)
{
    has_end_key = pthread_key_create(&end_key, end_lane) == 0;
    pthread_atfork(NULL, NULL, catch_rest_of_event);
}

void tmk_lane_count_drop(void)
{
    uint32_t generation =
        atomic_load_explicit(&tmk_recorder.control->generation, memory_order_acquire);
    if (generation)
        atomic_fetch_add_explicit(&tmk_recorder.ring.header->n_dropped, 1, memory_order_relaxed);
    else if (atomic_load(&tmk_recorder.control->phase) == TMK_PHASE_ARMING)
        atomic_fetch_add(&tmk_recorder.control->n_early_drops, 1);
}

/* True when a frame is on another stack than the busy frame, which is not above it. A thread's own
 * stack ends below its thread pointer. A handler's stack that disarms itself (SS_AUTODISARM) is
 * unknown while the handler runs: then it is recognised by lying on the other side of the thread
 * pointer. */
static bool is_on_other_stack(uintptr_t frame, uintptr_t busy)
{
    stack_t alternate;
    uintptr_t end = tmk_thread_pointer();
    if (sigaltstack(NULL, &alternate) != 0)
        return true;
    if (alternate.ss_flags & SS_DISABLE)
        return (frame < end) != (busy < end);
    uintptr_t start = (uintptr_t)alternate.ss_sp;
    bool is_outside = busy < start || busy >= start + alternate.ss_size;
    return (alternate.ss_flags & SS_ONSTACK) && is_outside;
}

bool tmk_lane_take_over(const struct tmk_lane *lane, uintptr_t frame)
{
    if (lane->busy == TMK_LANE_LENT)
        return true;
    if (tmk_recorder_is_off() || !tmk_seal_enter())
        return false;
    bool is_gone = frame >= lane->busy && !is_on_other_stack(frame, lane->busy);
    tmk_seal_leave();
    if (!is_gone)
        tmk_lane_count_drop();
    return is_gone;
}

void tmk_lane_count_unnamed(void)
{
    if (atomic_load_explicit(&tmk_recorder.control->generation, memory_order_acquire))
        atomic_fetch_add_explicit(&tmk_recorder.ring.header->n_unnamed, 1, memory_order_relaxed);
}

void tmk_lane_count_lost(uint8_t kind)
{
    if (kind < TMK_KIND_DEF_STRING)
        tmk_lane_count_drop();
    else
        tmk_lane_count_unnamed();
}

static bool take_lane_page(struct tmk_lane *lane)
{
    struct tmk_page *page = tmk_ring_space_take_page(lane->thread);
    lane->cursor = page ? page->slots : NULL;
    lane->end = page ? page->slots + TMK_PAGE_SLOTS : NULL;
    lane->is_block = false;
    ASSERT_VALID(lane);
    return page != NULL;
}

/* Takes no page when the recording has ended meanwhile, or another has begun: that one's pages are
 * not this lane's. */
bool tmk_lane_next_page(struct tmk_lane *lane)
{
    if (lane->end)
        tmk_page_seal(page_of_lane(lane));
    if (lane->generation == atomic_load(&tmk_recorder.control->generation))
        return take_lane_page(lane);
    lane->cursor = lane->end = NULL;
    return false;
}

bool tmk_lane_put_text(struct tmk_lane *lane, uint8_t kind, uint32_t id, uint32_t high,
                       const void *text, size_t n)
{
    return tmk_lane_put_text_at(lane, tmk_clock_ticks(tmk_recorder.counter), kind, id, high, text,
                                n);
}

bool tmk_lane_put_text_at(struct tmk_lane *lane, uint64_t ticks, uint8_t kind, uint32_t id,
                          uint32_t high, const void *text, size_t n)
{
    if (n > TMK_STRING_MAX_BYTES)
        n = TMK_STRING_MAX_BYTES;
    size_t bytes = offsetof(struct tmk_record, b) + n;
    uint32_t n_slots = (uint32_t)((bytes + TMK_SLOT_BYTES - 1) / TMK_SLOT_BYTES);
    struct tmk_record *r = tmk_lane_reserve(lane, n_slots);
    if (!r) {
        tmk_lane_count_lost(kind);
        return false;
    }
    r->ticks = ticks;
    r->a = (uint64_t)high << 32 | n;
    memcpy(&r->b, text, n); /* the text goes on into this record's following slots */
    tmk_record_publish(
        r, (union tmk_record_head){{.kind = kind, .n_slots = (uint8_t)n_slots, .id = id}});
    ASSERT_VALID(lane);
    return true;
}

static bool open_armed_lane(struct tmk_lane *lane)
{
    if (!tmk_parts.arm()) {
        tmk_lane_count_drop(); /* arming takes too long: this event is lost, later ones may not be
                                */
        return false;
    }
    lane->generation = atomic_load(&tmk_recorder.control->generation);
    if (lane->generation == 0) { /* it was disarmed at this moment */
        lane->generation = UINT32_MAX;
        return false;
    }
    lane->thread = atomic_fetch_add(&tmk_recorder.ring.header->next_thread, 1);
    lane->cursor = lane->end = NULL;
    lane->thread_stack = lane->quiet = 0;
    if (has_end_key && lane == &tmk_lane)
        pthread_setspecific(end_key, lane);
    char name[17] = {0};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    lane->is_autograd = strncmp(name, "pt_autograd", 11) == 0;
    tmk_lane_put_text(lane, TMK_KIND_DEF_THREAD, lane->thread, (uint32_t)syscall(SYS_gettid), name,
                      strlen(name));
    return true;
}

bool tmk_lane_open(struct tmk_lane *lane)
{
    if (tmk_recorder_is_off() || !tmk_seal_enter())
        return false;
    bool is_open = open_armed_lane(lane);
    tmk_seal_leave();
    return is_open;
}
