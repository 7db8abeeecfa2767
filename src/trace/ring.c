/* SPDX-License-Identifier: MIT */
/* trace/ring.c - see ring.h. */
#include "trace/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/region.h"
#include "base/text.h"
#include "base/valid.h"
#include "trace/ring_file.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define ASSERT_LIST_VALID(r) TMK_ASSERT_VALID(tmk_ring_list_is_valid(r), tmk_ring_n_pages(r))

enum { COPY_WAIT_NS = 2000000 };

/* ---- creating ---- */

static bool file_limit_allows(size_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= size_bytes;
}

static void touch_by_hand(uint8_t *base, size_t n)
{
    for (size_t i = 0; i < n; i += 4096)
        ((volatile uint8_t *)base)[i] = 0;
}

/* Allocates a part of the file by its name, so that touching it cannot raise SIGBUS; for kernels
 * before 5.14. */
static int allocate_by_name(const struct tmk_ring *r, size_t offset, size_t n)
{
    struct stat st;
    int fd = tmk_fd_raise(open(r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    int rc = fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == r->device && st.st_ino == r->inode &&
                     posix_fallocate(fd, (off_t)offset, (off_t)n) == 0
                 ? 0
                 : TMK_EFULL;
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Allocates and touches memory for n bytes at `offset`, so that the hot path never faults. */
static int populate_ring_file(const struct tmk_ring *r, size_t offset, size_t n, bool may_open)
{
    uint8_t *base = (uint8_t *)r->header + offset;
    if (mprotect(base, n, PROT_READ | PROT_WRITE) < 0)
        return TMK_EFULL;
    if (madvise(base, n, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (errno != EINVAL) {             /* no memory: touching it would raise SIGBUS */
        madvise(base, n, MADV_REMOVE); /* what it had for a part of it */
        return TMK_EFULL;
    }
    if (r->has_file && (!may_open || allocate_by_name(r, offset, n) < 0))
        return TMK_EFULL;
    touch_by_hand(base, n);
    return 0;
}

/* Fills in the header of a ring that has no pages yet. */
static void fill_header(struct tmk_ring_header *h, const uint8_t trace_id[16],
                        const char *trace_path)
{
    struct tmk_clock_reading start = tmk_clock_read();
    h->header_bytes = TMK_RING_HEADER_BYTES;
    h->page_bytes = TMK_PAGE_BYTES;
    h->pid = (uint32_t)getpid();
    memcpy(h->trace_id, trace_id, sizeof h->trace_id);
    h->clock_ticks = h->start_ticks = start.ticks;
    h->start_monotonic_ns = start.ns;
    strncpy(h->trace_path, trace_path, sizeof h->trace_path - 1);
    atomic_store(&h->next_page_number, 1);
    atomic_store(&h->next_thread, 1);
    memcpy(h->magic, TMK_RING_MAGIC, sizeof h->magic);
}

/* Writes the header through a mapping: on a tmpfs with huge=always a call to write() takes 2 MiB
 * for these 4 KiB. */
static bool put_header(int fd, const struct tmk_ring_header *header)
{
    void *page = tmk_map_sparsely(sizeof *header, MAP_SHARED, fd);
    bool is_there = page && madvise(page, sizeof *header, MADV_NOHUGEPAGE) == 0 &&
                    madvise(page, sizeof *header, MADV_POPULATE_WRITE) == 0;
    if (is_there)
        memcpy(page, header, sizeof *header);
    if (page)
        munmap(page, sizeof *header);
    return is_there || pwrite(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header;
}

/* Locks a new file, writes its header, and gives it its full length with a hole for the rest. */
static int fill_file(const struct tmk_ring *r, int fd, const struct tmk_ring_header *header)
{
    return tmk_ring_file_hold(fd) == 0 && ftruncate(fd, (off_t)r->size_bytes) == 0 &&
                   put_header(fd, header)
               ? 0
               : -1;
}

/* Opens the file by its name and locks it as well; removes it if that fails. */
static int open_again(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && tmk_ring_file_hold(fd) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    unlink(path);
    return -1;
}

/* Gives an unnamed file its name. A look-up in a thread's folder in /proc leaves the kernel entries
 * to tear down when that thread ends, and a process that waits for this one may spin on that. So it
 * is only the way for processes that may not link by the descriptor alone (before Linux 6.10, all
 * but root). */
static int link_unnamed(int unnamed, const char *path)
{
    char link[48];
    struct tmk_text text;
    if (linkat(unnamed, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0)
        return 0;
    tmk_text_init(&text, link, sizeof link);
    tmk_text_add(&text, "/proc/thread-self/fd/%d", unnamed); /* not /proc/self: see base/fd.h */
    return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Makes the file without a name until it is locked and has its header: a SIGKILL leaves all or
 * nothing. It is opened again by its name, so that /proc/PID/maps shows that. Returns -1 where that
 * cannot be done. */
static int make_unnamed(const struct tmk_ring *r, const struct tmk_ring_header *header)
{
    char folder[TMK_RING_PATH_BYTES];
    struct tmk_text text;
    const char *slash = strrchr(r->path, '/');
    tmk_text_init(&text, folder, sizeof folder);
    tmk_text_bytes(&text, r->path, (size_t)(slash - r->path));
    int unnamed = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), fd = -1;
    if (unnamed >= 0 && fill_file(r, unnamed, header) == 0 && link_unnamed(unnamed, r->path) == 0)
        fd = open_again(r->path);
    if (unnamed >= 0)
        close(unnamed);
    return fd;
}

static int make_named(const struct tmk_ring *r, const struct tmk_ring_header *header)
{
    int fd = open(r->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fill_file(r, fd, header) == 0)
        return fd;
    int os_error = errno;
    close(fd);
    unlink(r->path);
    errno = os_error;
    return -1;
}

/* Makes the file and locks it. */
static int make_ring_file(struct tmk_ring *r, const struct tmk_ring_header *header,
                          struct tmk_error *err)
{
    struct stat st;
    int fd = make_unnamed(r, header);
    if (fd < 0)
        fd = make_named(r, header);
    if (fd < 0 || fstat(fd, &st) < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot make the ring %s", r->path);
    r->has_file = true;
    r->device = st.st_dev;
    r->inode = st.st_ino;
    return fd;
}

/* The free pages are a stack, with the lowest on top. */
static void push_page(struct tmk_ring *r, struct tmk_page *page)
{
    uint32_t index = (uint32_t)(page - r->pages) + 1;
    uint64_t head = atomic_load_explicit(&r->header->free_list, memory_order_relaxed);
    uint64_t next;
    do {
        __atomic_store_n(&page->next_free, (uint32_t)head, __ATOMIC_RELAXED);
        next = ((head >> 32) + 1) << 32 | index;
    } while (!atomic_compare_exchange_weak_explicit(&r->header->free_list, &head, next,
                                                    memory_order_release, memory_order_relaxed));
}

/* Adds n_more pages after the existing ones. */
static void add_pages(struct tmk_ring *r, uint32_t n_more)
{
    uint32_t n = atomic_load(&r->header->n_pages);
    atomic_store(&r->header->n_pages, n + n_more);
    for (uint32_t i = n + n_more; i > n; i--)
        push_page(r, &r->pages[i - 1]);
}

/* Closes the descriptor that the file is mapped through: programs close descriptors they do not
 * know, and a child would keep the lock through it. A second descriptor has the lock meanwhile, so
 * that nobody finds the file without a lock; it stays open where the mapping turns out not to keep
 * the lock. */
static int leave_lock_to_mapping(struct tmk_ring *r, int fd, struct tmk_error *err)
{
    int second = open(r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    bool is_locked = second >= 0 && tmk_ring_file_hold(second) == 0;
    close(fd);
    bool is_kept = is_locked && tmk_ring_file_is_held_by_another(second) > 0;
    bool stays = is_locked && !is_kept && tmk_ring_file_hold(second) == 0;
    if (second >= 0 && !stays)
        close(second);
    r->has_lock_fd = stays;
    r->lock_fd = second;
    return is_kept || stays ? 0 : tmk_fail(err, TMK_EIO, "no lock stays on the ring %s", r->path);
}

/* Map the file, or memory without one. The descriptor is closed. */
static int map_ring(struct tmk_ring *r, int fd, struct tmk_error *err)
{
    int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0);
    void *base = tmk_map_unforked(r->size_bytes, flags, fd);
    int os_error = errno;
    if (!base) {
        if (fd >= 0)
            close(fd);
        return tmk_fail_os(err, TMK_ENOMEM, os_error, "cannot map the ring");
    }
    madvise(base, r->size_bytes, MADV_NOHUGEPAGE);
    r->header = base;
    r->pages = (struct tmk_page *)((uint8_t *)base + TMK_RING_HEADER_BYTES);
    return fd < 0 ? 0 : leave_lock_to_mapping(r, fd, err);
}

int tmk_ring_create(struct tmk_ring *ret, const char *path, uint32_t n_pages, uint32_t max_pages,
                    const uint8_t trace_id[16], const char *trace_path, struct tmk_error *err)
{
    assert(n_pages <= max_pages);
    struct tmk_ring r = {.max_pages = max_pages, .size_bytes = tmk_ring_bytes(max_pages)};
    struct tmk_ring_header header = {0};
    int fd = -1;
    fill_header(&header, trace_id, trace_path);
    if (path && file_limit_allows(r.size_bytes)) {
        r.path = path;
        fd = make_ring_file(&r, &header, err);
        if (fd < 0)
            return fd;
    }
    int rc = map_ring(&r, fd, err);
    if (rc == 0) {
        rc = populate_ring_file(&r, 0, tmk_ring_bytes(n_pages), true);
        if (rc < 0)
            tmk_fail(err, rc, "no memory for the ring");
    }
    if (rc < 0 || !r.header) {
        if (r.has_file)
            unlink(path);
        tmk_ring_close(&r);
        return rc;
    }
    memcpy(r.header, &header, sizeof header);
    add_pages(&r, n_pages);
    TMK_ASSERT_VALID(tmk_ring_is_valid(&r), (uint64_t)n_pages * 64);
    *ret = r;
    return 0;
}

int tmk_ring_grow(struct tmk_ring *r, uint32_t n_more, bool may_open)
{
    uint32_t n = tmk_ring_n_pages(r), room = r->max_pages - n;
    if (n_more > room)
        n_more = room;
    if (n_more == 0 ||
        populate_ring_file(r, tmk_ring_bytes(n), (size_t)n_more * TMK_PAGE_BYTES, may_open) < 0)
        return TMK_EFULL;
    add_pages(r, n_more);
    ASSERT_LIST_VALID(r);
    return (int)n_more;
}

static void give_up_lock(struct tmk_ring *r)
{
    if (r->has_lock_fd)
        close(r->lock_fd);
    r->has_lock_fd = false;
}

void tmk_ring_close(struct tmk_ring *r)
{
    if (r->header)
        munmap(r->header, r->size_bytes);
    give_up_lock(r);
    *r = (struct tmk_ring){0};
}

bool tmk_ring_abandon(struct tmk_ring *r)
{
    if (r->header && !tmk_map_replace(r->header, r->size_bytes))
        return false;
    give_up_lock(r);
    return true;
}

/* ---- copying ---- */

static int read_ring_bytes(int fd, void *buffer, size_t n, size_t offset)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(fd, (uint8_t *)buffer + at, n - at, (off_t)(offset + at));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return TMK_EIO;
        at += (size_t)got;
    }
    return 0;
}

static bool header_is_sane(const struct tmk_ring_header *h, size_t file_bytes)
{
    return memcmp(h->magic, TMK_RING_MAGIC, sizeof h->magic) == 0 &&
           h->header_bytes == TMK_RING_HEADER_BYTES && h->page_bytes == TMK_PAGE_BYTES &&
           h->n_pages <= TMK_RING_PAGES_LIMIT && tmk_ring_bytes(h->n_pages) <= file_bytes;
}

/* Copies the pages in use. Most pages are empty, so a copy costs only the used ones. The empty ones
 * are not even read in the copy, because touching it takes memory. */
static int copy_pages(int fd, struct tmk_ring *r)
{
    uint32_t n = tmk_ring_n_pages(r);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t state = TMK_PAGE_FREE;
        size_t offset = TMK_RING_HEADER_BYTES + (size_t)i * TMK_PAGE_BYTES;
        if (read_ring_bytes(fd, &state, sizeof state, offset) < 0 ||
            (state != TMK_PAGE_FREE &&
             read_ring_bytes(fd, &r->pages[i], TMK_PAGE_BYTES, offset) < 0))
            return TMK_EIO;
    }
    return 0;
}

static bool has_same_progress(const struct tmk_ring_header *a, const struct tmk_ring_header *b)
{
    return atomic_load(&a->epoch) == atomic_load(&b->epoch) &&
           atomic_load(&a->last_seq) == atomic_load(&b->last_seq);
}

bool tmk_ring_has_moved(const struct tmk_ring *copy, int fd)
{
    struct tmk_ring_header now;
    return read_ring_bytes(fd, &now, sizeof now, 0) < 0 || !has_same_progress(copy->header, &now);
}

/* Makes one try; TMK_EBUSY when the packer, or a merger, moved records meanwhile. The pages of a
 * living ring are copied at different moments: when a thread goes from one page to the next
 * meanwhile, the copy may have records of the later page and lack some of the earlier. Records
 * stamped before the first page was copied are complete, except frees and tags with a stamp earlier
 * than their moment (record/torch/fast_path.h): they may be missing, and with each of them all
 * later records of its thread. */
static int copy_once(int fd, struct tmk_ring *r, bool live)
{
    if (read_ring_bytes(fd, r->header, TMK_RING_HEADER_BYTES, 0) < 0)
        return TMK_EIO;
    if (live && (atomic_load(&r->header->epoch) & 1))
        return TMK_EBUSY;
    r->copied_ticks = live ? tmk_clock_ticks(tmk_clock_has_counter()) : UINT64_MAX;
    /* This comes after the clock: a page that was added since then has no record that counts. */
    if (read_ring_bytes(fd, &r->header->n_pages, sizeof r->header->n_pages,
                        offsetof(struct tmk_ring_header, n_pages)) < 0 ||
        copy_pages(fd, r) < 0)
        return TMK_EIO;
    return tmk_ring_has_moved(r, fd) ? TMK_EBUSY : 0;
}

int tmk_ring_copy(struct tmk_ring *ret, int fd, const char *path, bool live, uint64_t wait_ns,
                  struct tmk_error *err)
{
    uint64_t end = tmk_clock_monotonic_ns() + wait_ns;
    struct tmk_ring_header head;
    struct stat st;
    if (fstat(fd, &st) < 0 || read_ring_bytes(fd, &head, sizeof head, 0) < 0 ||
        !header_is_sane(&head, (size_t)st.st_size))
        return tmk_fail(err, TMK_EFORMAT, "%s is not a ring of tidemark's", path);
    uint64_t in_file = ((uint64_t)st.st_size - TMK_RING_HEADER_BYTES) / TMK_PAGE_BYTES;
    struct tmk_ring r = {.max_pages = in_file < TMK_RING_PAGES_LIMIT ? (uint32_t)in_file
                                                                     : TMK_RING_PAGES_LIMIT};
    r.size_bytes = tmk_ring_bytes(r.max_pages);
    void *base = mmap(NULL, r.size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return tmk_fail_os(err, TMK_ENOMEM, errno, "cannot copy the ring %s", path);
    r.header = base;
    r.pages = (struct tmk_page *)((uint8_t *)base + TMK_RING_HEADER_BYTES);
    int rc;
    while ((rc = copy_once(fd, &r, live)) == TMK_EBUSY && tmk_clock_monotonic_ns() < end) {
        madvise(base, r.size_bytes, MADV_DONTNEED); /* zeros again */
        nanosleep(&(struct timespec){.tv_nsec = COPY_WAIT_NS}, NULL);
    }
    if (rc < 0) {
        tmk_ring_close(&r);
        return tmk_fail(err, rc, "cannot read the ring %s: %s", path, tmk_result_text(rc));
    }
    r.header->trace_path[sizeof r.header->trace_path - 1] = '\0';
    *ret = r;
    return 0;
}

/* ---- pages ---- */

struct tmk_page *tmk_ring_take(struct tmk_ring *r, uint32_t thread)
{
    uint64_t head = atomic_load_explicit(&r->header->free_list, memory_order_acquire);
    struct tmk_page *page;
    uint64_t next;
    do {
        uint32_t index = (uint32_t)head;
        if (index == 0)
            return NULL;
        page = &r->pages[index - 1];
        /* A raced read of next_free is harmless: the tag has changed, so the exchange fails. */
        next = ((head >> 32) + 1) << 32 | __atomic_load_n(&page->next_free, __ATOMIC_RELAXED);
    } while (!atomic_compare_exchange_weak_explicit(&r->header->free_list, &head, next,
                                                    memory_order_acquire, memory_order_acquire));
    TMK_ASSERT_VALID(tmk_page_is_blank(r, page), 0);
    page->thread = thread;
    page->number = atomic_fetch_add_explicit(&r->header->next_page_number, 1, memory_order_relaxed);
    atomic_store_explicit(&page->done, 0, memory_order_relaxed);
    atomic_store_explicit(&page->done_before, 0, memory_order_relaxed);
    atomic_store_explicit(&page->state, TMK_PAGE_USED, memory_order_release);
    ASSERT_LIST_VALID(r);
    return page;
}

void tmk_ring_give_back(struct tmk_ring *r, struct tmk_page *page)
{
    assert(atomic_load_explicit(&page->state, memory_order_relaxed) != TMK_PAGE_FREE);
    memset((void *)page->slots, 0, sizeof page->slots);
    TMK_ASSERT_VALID(tmk_page_is_blank(r, page), 0);
    atomic_store_explicit(&page->state, TMK_PAGE_FREE, memory_order_release);
    push_page(r, page);
    ASSERT_LIST_VALID(r);
}
