/* SPDX-License-Identifier: MIT */
/* trace/ring.h - the memory that the hot path writes: pages of records in a file on tmpfs.
 *
 * A thread owns one page at a time and fills it alone: no lock, no shared counter. A full page is
 * sealed and a free one taken from a lock-free list; when there is none, the event is dropped and
 * counted. The packer empties pages in place and puts sealed ones back on the list. The file
 * outlives the process, so whatever was committed before a SIGKILL is found there.
 *
 * A ring begins small, because most processes of a job (data loader workers) report little, and
 * grows when its process is busy.
 *
 * Invariant: slots of a page beyond its last record are zero. The packer zeroes a page before it
 * goes back, and a record's first word, stored last, is what makes it exist. */
#ifndef TMK_TRACE_RING_H
#define TMK_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "trace/layout.h"

struct tmk_ring {
    struct tmk_ring_header *header; /* the mapping */
    struct tmk_page *pages;
    size_t size_bytes;  /* of the mapping: header and max_pages */
    uint32_t max_pages; /* of these, tmk_ring_n_pages() have memory behind them */
    bool has_file;
    const char *path; /* of the file, borrowed; NULL: none */
    dev_t device;
    ino_t inode;
    bool has_lock_fd;      /* the mapping does not keep the lock that says "alive" */
    int lock_fd;           /* the descriptor that keeps it */
    uint64_t copied_ticks; /* of a copy: what had happened until then is in it; UINT64_MAX: all */
};

enum {
    TMK_RING_PAGES = 1024,       /* 16 MiB: the most that a ring has */
    TMK_RING_FIRST_PAGES = 4,    /* 68 KiB with the header: what it begins with */
    TMK_RING_PAGES_LIMIT = 4096, /* a file that says more is not believed */
};

/* The bytes of memory that a ring of n pages takes. */
static inline uint64_t tmk_ring_bytes(uint64_t n_pages)
{
    return TMK_RING_HEADER_BYTES + n_pages * TMK_PAGE_BYTES;
}

/* Make a ring of n_pages that may grow to max_pages. Memory for n_pages is allocated and touched,
 * so that writing to them can neither fault nor fail; the file has its full length from the start,
 * as a hole, so growing meets no file-size limit. No forked child has the mapping, which keeps the
 * lock that says "alive" (ring_file.h). Where it does not, a descriptor stays open (has_lock_fd)
 * until the ring is closed: the caller judges whether it may. `path` must outlive the ring. When it
 * is NULL, or a file-size limit is in the way, the ring is memory without a file and does not
 * survive the process. */
int tmk_ring_create(struct tmk_ring *ret, const char *path, uint32_t n_pages, uint32_t max_pages,
                    const uint8_t trace_id[16], const char *trace_path, struct tmk_error *err);

/* Give memory to at most n_more pages and put them on the free list. Returns the number added, or
 * TMK_EFULL when the ring has all its pages or there is no memory for one more. One thread at a
 * time may call it; `may_open` allows a descriptor for a moment, which old kernels need. */
int tmk_ring_grow(struct tmk_ring *r, uint32_t n_more, bool may_open);

/* Unmap and give up the lock; the file stays unless unlinked. */
void tmk_ring_close(struct tmk_ring *r);

/* Give the memory back and close the file, while threads may still write to the ring, however late:
 * the addresses stay, and written pages get private memory. Returns false, with nothing changed,
 * when that cannot be done. */
bool tmk_ring_abandon(struct tmk_ring *r);

/* Copy the ring file `fd` into memory; `path` is for messages. The copy needs a moment when nobody
 * moves records from the ring to the trace: neither the packer of a living process (`live`) nor a
 * merger. It waits for that at most `wait_ns` (else TMK_EBUSY). Every length is checked; the drain
 * checks the records. */
int tmk_ring_copy(struct tmk_ring *ret, int fd, const char *path, bool live, uint64_t wait_ns,
                  struct tmk_error *err);

/* Whether records have been moved from the ring `fd` to the trace since it was copied. */
bool tmk_ring_has_moved(const struct tmk_ring *copy, int fd);

/* The number of pages that have memory. */
static inline uint32_t tmk_ring_n_pages(const struct tmk_ring *r)
{
    uint32_t n = atomic_load_explicit(&r->header->n_pages, memory_order_acquire);
    return n < r->max_pages ? n : r->max_pages;
}

/* Whether a page is free at this moment. */
static inline bool tmk_ring_has_free(const struct tmk_ring *r)
{
    return (uint32_t)atomic_load_explicit(&r->header->free_list, memory_order_relaxed) != 0;
}

/* Take a free page for `thread`; NULL when there is none. It is lock-free; any thread may call it.
 */
struct tmk_page *tmk_ring_take(struct tmk_ring *r, uint32_t thread);

/* Mark a page as finished by its thread. */
static inline void tmk_page_seal(struct tmk_page *page)
{
    atomic_store_explicit(&page->state, TMK_PAGE_SEALED, memory_order_release);
}

/* Zero a page and put it on the free list. Only the packer may call it. */
void tmk_ring_give_back(struct tmk_ring *r, struct tmk_page *page);

/* The invariants (base/valid.h) of a ring that no other thread uses at the moment:
 *   - the header has this version's numbers, and the mapping has room for `max_pages` pages behind
 *     the header, of which there are `n_pages`;
 *   - the free list has each page in state "free" once, and no others;
 *   - the slots of a free page are zero;
 *   - a page in use has a number of its own that has been given out; its records lie one behind the
 *     other and end in it, and behind the last one all slots are zero;
 *   - the slots that are marked as packed, now and before, end where a record ends. */
bool tmk_ring_is_valid(const struct tmk_ring *r);
/* Whether the invariants hold that other threads cannot break: the free list has pages of the ring,
 * each once, all with the state "free". A list that changes meanwhile is taken for valid. */
bool tmk_ring_list_is_valid(const struct tmk_ring *r);
/* Whether the page is one of the ring's and all its slots are zero. Only the owner of the page may
 * call it. */
bool tmk_page_is_blank(const struct tmk_ring *r, const struct tmk_page *page);

/* Publish a record; all its other fields are written already. */
static inline void tmk_record_publish(struct tmk_record *record, union tmk_record_head head)
{
    atomic_store_explicit(&record->head, head.word, memory_order_release);
}

#endif
