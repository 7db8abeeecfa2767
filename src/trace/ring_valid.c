/* SPDX-License-Identifier: MIT */
/* trace/ring_valid.c - the invariants of ring.h. */
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/ring.h"

#include <string.h>

#include "base/valid.h"

/* ---- pages ---- */

static bool is_zero(const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    return n == 0 || (b[0] == 0 && memcmp(b, b + 1, n - 1) == 0);
}

static bool slots_are_zero(const struct tmk_page *page, uint32_t from)
{
    return is_zero((const void *)&page->slots[from], (TMK_PAGE_SLOTS - from) * TMK_SLOT_BYTES);
}

static uint32_t page_state_of(const struct tmk_page *page)
{
    return atomic_load_explicit(&page->state, memory_order_acquire);
}

bool tmk_page_is_blank(const struct tmk_ring *r, const struct tmk_page *page)
{
    TMK_HOLDS(page >= r->pages && page < r->pages + tmk_ring_n_pages(r));
    TMK_HOLDS(slots_are_zero(page, 0));
    return true;
}

static bool is_packed_to_record_end(uint64_t done, const bool *is_end)
{
    return (done & 0xffff) <= TMK_PAGE_SLOTS && is_end[done & 0xffff];
}

static bool records_are_valid(const struct tmk_page *page)
{
    bool is_end[TMK_PAGE_SLOTS + 1] = {true};
    uint32_t at = 0;
    while (at < TMK_PAGE_SLOTS) {
        union tmk_record_head head = {.word = atomic_load(&page->slots[at].head)};
        if (head.word == 0)
            break;
        TMK_HOLDS(head.kind != TMK_KIND_NONE);
        TMK_HOLDS(head.n_slots > 0 && at + head.n_slots <= TMK_PAGE_SLOTS);
        at += head.n_slots;
        is_end[at] = true;
    }
    TMK_HOLDS(slots_are_zero(page, at));
    TMK_HOLDS(is_packed_to_record_end(atomic_load(&page->done), is_end));
    TMK_HOLDS(is_packed_to_record_end(atomic_load(&page->done_before), is_end));
    return true;
}

static bool used_page_is_valid(const struct tmk_ring *r, uint32_t i)
{
    const struct tmk_page *page = &r->pages[i];
    TMK_HOLDS(page->number > 0 && page->number < atomic_load(&r->header->next_page_number));
    for (uint32_t k = 0; k < i; k++)
        TMK_HOLDS(page_state_of(&r->pages[k]) == TMK_PAGE_FREE ||
                  r->pages[k].number != page->number);
    return records_are_valid(page);
}

/* ---- the free list ---- */

static uint64_t list_head(const struct tmk_ring *r)
{
    return atomic_load_explicit(&r->header->free_list, memory_order_acquire);
}

static uint32_t next_on_list(const struct tmk_page *page)
{
    return __atomic_load_n(&page->next_free, __ATOMIC_RELAXED);
}

/* Each page that joins or leaves changes the head. So the list was that of one moment when the head
 * is the same before and after. */
static bool has_free_list_changed(const struct tmk_ring *r, uint64_t head)
{
    atomic_thread_fence(memory_order_seq_cst);
    return list_head(r) != head;
}

bool tmk_ring_list_is_valid(const struct tmk_ring *r)
{
    uint64_t head = list_head(r);
    uint32_t n_pages = tmk_ring_n_pages(r), n = 0;
    for (uint32_t i = (uint32_t)head; i; i = next_on_list(&r->pages[i - 1])) {
        bool exists = i <= n_pages;
        TMK_HOLDS(exists || has_free_list_changed(r, head));
        TMK_HOLDS(++n <= n_pages ||
                  has_free_list_changed(r, head)); /* else they go round in a circle */
        if (!exists || n > n_pages)
            return true;
        TMK_HOLDS(page_state_of(&r->pages[i - 1]) == TMK_PAGE_FREE ||
                  has_free_list_changed(r, head));
    }
    return true;
}

/* ---- the ring ---- */

static bool header_is_valid(const struct tmk_ring *r)
{
    const struct tmk_ring_header *h = r->header;
    TMK_HOLDS(memcmp(h->magic, TMK_RING_MAGIC, sizeof h->magic) == 0);
    TMK_HOLDS(h->header_bytes == TMK_RING_HEADER_BYTES && h->page_bytes == TMK_PAGE_BYTES);
    TMK_HOLDS((const uint8_t *)r->pages == (const uint8_t *)h + TMK_RING_HEADER_BYTES);
    TMK_HOLDS(r->size_bytes == tmk_ring_bytes(r->max_pages));
    TMK_HOLDS(atomic_load(&h->n_pages) <= r->max_pages);
    return true;
}

bool tmk_ring_is_valid(const struct tmk_ring *r)
{
    uint32_t n_free = 0, n_listed = 0;
    if (!header_is_valid(r) || !tmk_ring_list_is_valid(r))
        return false;
    for (uint32_t i = (uint32_t)list_head(r); i; i = next_on_list(&r->pages[i - 1]))
        n_listed++;
    for (uint32_t i = 0; i < tmk_ring_n_pages(r); i++) {
        TMK_HOLDS(page_state_of(&r->pages[i]) <= TMK_PAGE_SEALED);
        bool is_free = page_state_of(&r->pages[i]) == TMK_PAGE_FREE;
        n_free += is_free;
        if (!(is_free ? tmk_page_is_blank(r, &r->pages[i]) : used_page_is_valid(r, i)))
            return false;
    }
    TMK_HOLDS(n_listed == n_free);
    return true;
}
