/* SPDX-License-Identifier: MIT */
/* trace/drain.c - see drain.h.
 *
 * Each run lists the pages in use, orders them by (thread, page number) and makes one lane per
 * thread. Lanes are merged by taking from the earliest one for as long as it stays earliest, which
 * takes one comparison a record for the usual one or two busy threads. Ticks become nanoseconds on
 * the line between the clock readings of the previous run and of this one. */
#include "trace/drain.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/region.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/state.h"

struct drain_page {
    struct tmk_page *page;
    uint32_t thread;
    uint32_t at; /* next slot to take */
    uint64_t number;
    bool touched; /* records were taken since the last commit */
};

struct drain_lane {       /* the pages of one thread, in order */
    uint32_t first, last; /* of the sorted list */
    uint64_t ticks;       /* of its next record; UINT64_MAX when it has none */
};

struct tmk_drain {
    struct tmk_ring *ring;
    struct tmk_packer *packer;
    bool recycle;
    bool is_copy;
    uint64_t last_ticks; /* of a copy: what counts */
    uint64_t skip_seq;   /* chunks up to this number are in the file */
    bool skip;
    int marks_fd;    /* file that the marks are written to as well, -1: none */
    bool marks_lost; /* that failed */

    uint32_t n_pages;
    struct drain_page *pages; /* sorted */
    struct drain_lane *lanes;
    uint32_t n_lanes;

    uint64_t cut_ticks; /* of this run */
    uint64_t base_ticks, base_ns;
    double ns_per_tick;
    uint64_t dropped_seen;
    struct tmk_region memory;
};

int tmk_drain_open(struct tmk_ring *ring, struct tmk_packer *packer, bool recycle,
                   struct tmk_drain **ret_drain)
{
    struct tmk_region memory = {0};
    size_t n = ring->max_pages;
    size_t bytes =
        sizeof(struct tmk_drain) + n * (sizeof(struct drain_page) + sizeof(struct drain_lane));
    int rc = tmk_region_init(&memory, bytes);
    if (rc < 0)
        return rc;
    struct tmk_drain *d = memory.base;
    d->memory = memory;
    d->ring = ring;
    d->packer = packer;
    d->recycle = recycle;
    d->marks_fd = -1;
    d->pages = (struct drain_page *)(d + 1);
    d->lanes = (struct drain_lane *)(d->pages + n);
    d->dropped_seen = tmk_packer_state(packer)->n_dropped;
    *ret_drain = d;
    return 0;
}

struct tmk_drain *tmk_drain_close(struct tmk_drain *d)
{
    if (d) {
        struct tmk_region memory = d->memory;
        tmk_region_fini(&memory);
    }
    return NULL;
}

void tmk_drain_skip_packed(struct tmk_drain *d, uint64_t last_seq)
{
    d->skip = true;
    d->skip_seq = last_seq;
}

void tmk_drain_take_until(struct tmk_drain *d, uint64_t ticks)
{
    d->is_copy = true;
    d->last_ticks = ticks;
}

void tmk_drain_keep_marks(struct tmk_drain *d, int fd)
{
    d->marks_fd = fd;
}

/* ---- pages and lanes ---- */

static void keep_mark(struct tmk_drain *d, const struct tmk_page *page)
{
    if (d->marks_fd < 0)
        return;
    uint64_t marks[2] = {atomic_load(&page->done), atomic_load(&page->done_before)};
    off_t offset = (off_t)((const uint8_t *)&page->done - (const uint8_t *)d->ring->header);
    if (pwrite(d->marks_fd, marks, sizeof marks, offset) != (ssize_t)sizeof marks)
        d->marks_lost = true;
}

/* Notes that the file has the chunks up to `seq`; page marks are at most one higher from now on.
 * This ends an odd epoch, which a process leaves when it dies while it moves records. */
static void note_progress(struct tmk_drain *d, uint64_t seq)
{
    struct tmk_ring_header *h = d->ring->header;
    uint64_t progress[2] = {(atomic_load(&h->epoch) | 1) + 1, seq};
    _Static_assert(offsetof(struct tmk_ring_header, last_seq) ==
                       offsetof(struct tmk_ring_header, epoch) + 8,
                   "they are written at once");
    if (d->marks_fd < 0)
        return;
    atomic_store(&h->epoch, progress[0]);
    atomic_store(&h->last_seq, progress[1]);
    if (pwrite(d->marks_fd, progress, sizeof progress, offsetof(struct tmk_ring_header, epoch)) !=
        (ssize_t)sizeof progress)
        d->marks_lost = true;
}

/* The slots of a page that the file has. A mark for a chunk that was never written is taken back at
 * once: another chunk will get that number. */
static uint32_t done_slots(struct tmk_drain *d, struct tmk_page *page)
{
    uint64_t done = atomic_load(&page->done);
    if (d->skip && (done >> 16) > d->skip_seq) {
        done = atomic_load(&page->done_before);
        atomic_store(&page->done, done);
        keep_mark(d, page);
    }
    uint32_t slots = done & 0xffff;
    return slots <= TMK_PAGE_SLOTS ? slots : TMK_PAGE_SLOTS;
}

static int compare_pages(const void *va, const void *vb)
{
    const struct drain_page *a = va, *b = vb;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Insertion sort: no malloc (qsort may), and pages come nearly in order. */
static void sort_pages(struct drain_page *pages, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct drain_page page = pages[i];
        uint32_t k = i;
        for (; k > 0 && compare_pages(&page, &pages[k - 1]) < 0; k--)
            pages[k] = pages[k - 1];
        pages[k] = page;
    }
}

static void list_pages(struct tmk_drain *d)
{
    d->n_pages = 0;
    uint32_t n = tmk_ring_n_pages(d->ring);
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_page *page = &d->ring->pages[i];
        uint32_t state = atomic_load_explicit(&page->state, memory_order_acquire);
        if (state != TMK_PAGE_USED && state != TMK_PAGE_SEALED)
            continue;
        d->pages[d->n_pages++] = (struct drain_page){.page = page,
                                                     .thread = page->thread,
                                                     .number = page->number,
                                                     .at = done_slots(d, page)};
    }
    sort_pages(d->pages, d->n_pages);
}

static bool is_before_cut(const struct tmk_drain *d, const struct tmk_record *r)
{
    return r->ticks <= (d->is_copy ? d->last_ticks : d->cut_ticks);
}

/* The record at a page's cursor, or NULL when there is none to take. */
static struct tmk_record *peek_record(const struct tmk_drain *d, const struct drain_page *lp)
{
    if (lp->at >= TMK_PAGE_SLOTS)
        return NULL;
    struct tmk_record *r = &lp->page->slots[lp->at];
    union tmk_record_head head = {.word = atomic_load_explicit(&r->head, memory_order_acquire)};
    if (head.kind == TMK_KIND_NONE || head.n_slots == 0 || lp->at + head.n_slots > TMK_PAGE_SLOTS)
        return NULL;
    return is_before_cut(d, r) ? r : NULL;
}

/* Set lane->ticks to its next record, stepping over exhausted pages. */
static void settle_lane(const struct tmk_drain *d, struct drain_lane *lane)
{
    for (; lane->first < lane->last; lane->first++) {
        const struct tmk_record *r = peek_record(d, &d->pages[lane->first]);
        if (r) {
            lane->ticks = r->ticks;
            return;
        }
        /* A record not yet due hides those on the thread's later pages. */
        const struct drain_page *lp = &d->pages[lane->first];
        if (lp->at < TMK_PAGE_SLOTS && (atomic_load(&lp->page->slots[lp->at].head) & 0xff) &&
            !is_before_cut(d, &lp->page->slots[lp->at]))
            break;
    }
    lane->ticks = UINT64_MAX;
}

static void make_lanes(struct tmk_drain *d)
{
    d->n_lanes = 0;
    for (uint32_t i = 0; i < d->n_pages;) {
        uint32_t last = i + 1;
        while (last < d->n_pages && d->pages[last].thread == d->pages[i].thread)
            last++;
        struct drain_lane lane = {.first = i, .last = last};
        settle_lane(d, &lane);
        if (lane.ticks != UINT64_MAX)
            d->lanes[d->n_lanes++] = lane;
        i = last;
    }
}

/* ---- records to the packer ---- */

static uint64_t to_ns(const struct tmk_drain *d, uint64_t ticks)
{
    if (ticks <= d->base_ticks)
        return d->base_ns;
    return d->base_ns + (uint64_t)((double)(ticks - d->base_ticks) * d->ns_per_tick);
}

/* The payload bytes of a record of n slots: from `b` to the end of its last slot. */
static uint32_t payload_room(uint32_t n_slots)
{
    return n_slots * TMK_SLOT_BYTES - (uint32_t)offsetof(struct tmk_record, b);
}

/* Turn a ring record into the packer's input; false when it makes no sense. `a` of records with
 * text holds its length in the low 32 bits, and a number above it. */
static bool to_input(const struct tmk_drain *d, const struct tmk_record *r, uint32_t thread,
                     struct tmk_input *ret)
{
    union tmk_record_head head = {.word = atomic_load_explicit(&r->head, memory_order_acquire)};
    *ret = (struct tmk_input){.ns = to_ns(d, r->ticks),
                              .a = r->a,
                              .b = r->b,
                              .id = head.id,
                              .thread = thread,
                              .device = head.device,
                              .kind = head.kind};
    switch (tmk_kind_ring_form(head.kind)) {
    case TMK_RING_TEXT:
        ret->text = (const uint8_t *)&r->b;
        ret->text_bytes = (uint32_t)r->a;
        ret->a = r->a >> 32;
        return ret->text_bytes <= payload_room(head.n_slots) &&
               ret->text_bytes <= TMK_STRING_MAX_BYTES &&
               tmk_kind_takes_text(head.kind, ret->a, ret->text_bytes);
    case TMK_RING_RANGE:
        if (r->b) /* written on behalf of another thread */
            ret->thread = (uint32_t)r->b;
        ret->b = 0;
        return r->a <= 3 && r->b <= UINT32_MAX;
    case TMK_RING_SIZED:
        ret->stream = (uint16_t)(r->b >> TMK_SIZE_BITS);
        ret->b = r->b & ((UINT64_C(1) << TMK_SIZE_BITS) - 1);
        return true;
    case TMK_RING_PLAIN:
        return true;
    default:
        return false; /* of a newer recorder, or damage */
    }
}

static void commit_pages(void *arg, uint64_t seq)
{
    struct tmk_drain *d = arg;
    note_progress(d, seq - 1);
    for (uint32_t i = 0; i < d->n_pages; i++) {
        struct drain_page *lp = &d->pages[i];
        if (!lp->touched)
            continue;
        lp->touched = false;
        atomic_store(&lp->page->done_before, atomic_load(&lp->page->done));
        atomic_store(&lp->page->done, seq << 16 | lp->at);
        keep_mark(d, lp->page);
    }
}

/* Gives pages back when their thread has left them and the file has all their records. */
static void recycle_pages(struct tmk_drain *d)
{
    for (uint32_t i = 0; i < d->n_pages; i++) {
        struct drain_page *lp = &d->pages[i];
        if (!lp->page || atomic_load(&lp->page->state) != TMK_PAGE_SEALED || lp->touched)
            continue;
        bool empty =
            lp->at >= TMK_PAGE_SLOTS || (atomic_load(&lp->page->slots[lp->at].head) & 0xff) == 0;
        if (!empty)
            continue;
        tmk_ring_give_back(d->ring, lp->page);
        lp->page = NULL;
        lp->at = TMK_PAGE_SLOTS;
    }
}

/* Drop listed pages that were given back, so that they are not looked at again. */
static void forget_recycled(struct tmk_drain *d)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->n_pages; i++)
        if (d->pages[i].page)
            d->pages[kept++] = d->pages[i];
    d->n_pages = kept;
}

static int flush_packer(struct tmk_drain *d)
{
    tmk_packer_on_commit(d->packer, commit_pages, d);
    int rc = d->marks_lost ? TMK_EIO : tmk_packer_flush(d->packer);
    if (rc == 0 && d->recycle) {
        recycle_pages(d);
        forget_recycled(d);
        make_lanes(d);
    }
    return rc;
}

/* Turns a block that was found into an allocation, unless one is known at its address. */
static bool settle_found(const struct tmk_drain *d, struct tmk_input *in)
{
    struct tmk_block *b = tmk_state_find(tmk_packer_state(d->packer), in->device, in->a);
    in->kind = TMK_KIND_ALLOC;
    return !b || !b->live;
}

/* Take the lane's next record. 0, 1 when a flush is due, <0 error. */
static int take_record(struct tmk_drain *d, struct drain_lane *lane)
{
    struct drain_page *lp = &d->pages[lane->first];
    struct tmk_record *r = &lp->page->slots[lp->at];
    union tmk_record_head head = {.word = atomic_load_explicit(&r->head, memory_order_acquire)};
    struct tmk_input in;
    int rc = 0;
    if (to_input(d, r, lp->thread, &in) && (in.kind != TMK_KIND_FOUND || settle_found(d, &in)))
        rc = tmk_packer_add(d->packer, &in);
    lp->at += head.n_slots;
    lp->touched = true;
    settle_lane(d, lane);
    return rc;
}

/* The earliest lane and the time at which another one becomes earliest. */
static struct drain_lane *earliest_lane(struct tmk_drain *d, uint64_t *ret_until)
{
    struct drain_lane *best = NULL;
    uint64_t second = UINT64_MAX;
    for (uint32_t i = 0; i < d->n_lanes; i++) {
        struct drain_lane *lane = &d->lanes[i];
        if (!best || lane->ticks < best->ticks) {
            second = best ? best->ticks : second;
            best = lane;
        } else if (lane->ticks < second) {
            second = lane->ticks;
        }
    }
    *ret_until = second;
    return best && best->ticks != UINT64_MAX ? best : NULL;
}

static int add_drops(struct tmk_drain *d)
{
    uint64_t dropped = atomic_load(&d->ring->header->n_dropped);
    if (dropped <= d->dropped_seen)
        return 0;
    struct tmk_input in = {.kind = TMK_KIND_DROP, .a = dropped - d->dropped_seen};
    in.ns = tmk_packer_state(d->packer)->now_ns;
    d->dropped_seen = dropped;
    return tmk_packer_add(d->packer, &in);
}

/* Read the clock: the cut of this run, and the line from ticks to trace time. */
static void read_clock(struct tmk_drain *d)
{
    struct tmk_ring_header *h = d->ring->header;
    struct tmk_clock_reading now = tmk_clock_read();
    uint64_t now_ns = now.ns - h->start_monotonic_ns;
    d->cut_ticks = now.ticks;
    d->base_ticks = h->clock_ticks ? h->clock_ticks : h->start_ticks;
    d->base_ns = h->clock_ticks ? h->clock_ns : 0;
    bool sane = now.ticks > d->base_ticks && now.ns >= h->start_monotonic_ns && now_ns > d->base_ns;
    if (sane)
        d->ns_per_tick = (double)(now_ns - d->base_ns) / (double)(now.ticks - d->base_ticks);
    else
        d->ns_per_tick = h->clock_rate ? (double)h->clock_rate / 4294967296.0 : 1.0;
}

static void keep_clock(struct tmk_drain *d)
{
    struct tmk_ring_header *h = d->ring->header;
    uint64_t ns = to_ns(d, d->cut_ticks);
    /* Ticks are 0 meanwhile: a thread that finds them so counts from the start of the trace. */
    __atomic_store_n(&h->clock_ticks, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&h->clock_rate, (uint64_t)(d->ns_per_tick * 4294967296.0), __ATOMIC_RELEASE);
    __atomic_store_n(&h->clock_ns, ns, __ATOMIC_RELEASE);
    __atomic_store_n(&h->clock_ticks, d->cut_ticks, __ATOMIC_RELEASE);
}

static int merge_lanes(struct tmk_drain *d)
{
    uint64_t until;
    for (struct drain_lane *lane; (lane = earliest_lane(d, &until)) != NULL;) {
        int rc;
        do
            rc = take_record(d, lane);
        while (rc == 0 && lane->ticks <= until && lane->ticks != UINT64_MAX);
        if (rc > 0)
            rc = flush_packer(d);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int tmk_drain_run(struct tmk_drain *d)
{
    read_clock(d);
    tmk_packer_state(d->packer)->n_unnamed = atomic_load(&d->ring->header->n_unnamed);
    note_progress(d, d->skip_seq);
    list_pages(d);
    make_lanes(d);
    int rc = merge_lanes(d);
    if (rc == 0)
        rc = add_drops(d);
    if (rc >= 0)
        rc = flush_packer(d);
    if (rc >= 0 && d->recycle)
        keep_clock(d);
    return rc < 0 ? rc : 0;
}
