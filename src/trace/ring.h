/* SPDX-License-Identifier: MIT */
/* trace/ring.h - the memory that the hot path writes: pages of records in a file on tmpfs.
 *
 * A thread owns one page at a time and fills it alone: no lock, no shared counter. A full page is
 * sealed and a free one taken from a lock-free list; when there is none, the event is dropped and
 * counted. The packer empties pages in place and puts sealed ones back on the list. The file
 * outlives the process, so whatever was committed before a SIGKILL is found there.
 *
 * Invariant: slots of a page beyond its last record are zero. The packer zeroes a page before it
 * goes back, and a record's first word, stored last, is what makes it exist. */
#ifndef TMK_TRACE_RING_H
#define TMK_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/layout.h"

struct tmk_ring {
    struct tmk_ring_header *header; /* the mapping */
    struct tmk_page *pages;
    size_t size_bytes;
    uint32_t n_pages;
    int fd; /* holds the lock that says "alive"; -1 for a ring without file or a copy */
    bool has_file;
    uint64_t copied_ticks; /* of a copy: what had happened until then is in it; UINT64_MAX: all */
};

enum { TMK_RING_PAGES = 1024 }; /* 16 MiB */

/* Make the ring file, allocated and touched, so that writing to it can neither fault nor fail.
 * `path` NULL, or a file-size limit in the way: memory without a file, which does not survive. */
int tmk_ring_create(struct tmk_ring *ret, const char *path, uint32_t n_pages,
                    const uint8_t trace_id[16], const char *trace_path, struct tmk_error *err);

/* Unmap and close; the file stays unless unlinked. */
void tmk_ring_close(struct tmk_ring *r);

/* Copy a ring file into memory of our own. With `live`, wait for a moment when the packer is idle
 * (TMK_EBUSY when there was none). Every length is checked; records are checked by the drain. */
int tmk_ring_copy(struct tmk_ring *ret, const char *path, bool live, struct tmk_error *err);

/* 1 when a process holds the ring: by its lock, or, should the program have closed descriptors it
 * did not know, by having it mapped. 0 when it is orphaned, <0 when it cannot be told. */
int tmk_ring_is_held(const char *path);

/* A free page, in use by `thread` from now on; NULL when there is none. Lock-free, any thread. */
struct tmk_page *tmk_ring_take(struct tmk_ring *r, uint32_t thread);

/* The page's thread is done with it. */
static inline void tmk_page_seal(struct tmk_page *page)
{
    atomic_store_explicit(&page->state, TMK_PAGE_SEALED, memory_order_release);
}

/* Zero a page and put it on the free list. Packer only. */
void tmk_ring_give_back(struct tmk_ring *r, struct tmk_page *page);

/* Publish a record whose other fields are written. */
static inline void tmk_record_publish(struct tmk_record *record, union tmk_record_head head)
{
    atomic_store_explicit(&record->head, head.word, memory_order_release);
}

#endif
