/* SPDX-License-Identifier: MIT */
/* trace/ring.c - see ring.h. */
#include "trace/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { COPY_TRIES = 200, COPY_WAIT_NS = 2000000 };

/* ---- creating ---- */

/* Touch every page now, so that the hot path never faults. Old kernels: by hand. */
static void populate(uint8_t *base, size_t n)
{
    if (madvise(base, n, MADV_POPULATE_WRITE) == 0)
        return;
    for (size_t i = 0; i < n; i += 4096)
        ((volatile uint8_t *)base)[i] = 0;
}

static bool file_limit_allows(size_t size_bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           limit.rlim_cur >= size_bytes;
}

static int lock_first_byte(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    return fcntl(fd, F_SETLK, &lock);
}

/* The file, locked and with all its space allocated: a later store cannot raise SIGBUS. */
static int make_file(const char *path, size_t size_bytes, struct tmk_error *err)
{
    int fd = tmk_fd_raise(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot make the ring %s", path);
    int rc = posix_fallocate(fd, 0, (off_t)size_bytes);
    if (rc == 0 && lock_first_byte(fd) < 0)
        rc = errno;
    if (rc == 0)
        return fd;
    close(fd);
    unlink(path);
    return tmk_fail_os(err, TMK_EIO, rc, "cannot allocate the ring %s", path);
}

static void link_pages(struct tmk_ring *r)
{
    for (uint32_t i = 0; i < r->n_pages; i++)
        r->pages[i].next_free = i + 1 < r->n_pages ? i + 2 : 0;
    atomic_store(&r->header->free_list, r->n_pages ? 1 : 0);
}

static void fill_header(struct tmk_ring *r, const uint8_t trace_id[16], const char *trace_path)
{
    struct tmk_ring_header *h = r->header;
    struct tmk_clock_reading start = tmk_clock_read();
    h->header_bytes = TMK_RING_HEADER_BYTES;
    h->page_bytes = TMK_PAGE_BYTES;
    h->n_pages = r->n_pages;
    h->pid = (uint32_t)getpid();
    memcpy(h->trace_id, trace_id, sizeof h->trace_id);
    h->clock_ticks = h->start_ticks = start.ticks;
    h->start_monotonic_ns = start.ns;
    strncpy(h->trace_path, trace_path, sizeof h->trace_path - 1);
    atomic_store(&h->next_page_number, 1);
    atomic_store(&h->next_thread, 1);
    memcpy(h->magic, TMK_RING_MAGIC, sizeof h->magic);
}

int tmk_ring_create(struct tmk_ring *ret, const char *path, uint32_t n_pages,
                    const uint8_t trace_id[16], const char *trace_path, struct tmk_error *err)
{
    struct tmk_ring r = {.n_pages = n_pages, .fd = -1};
    r.size_bytes = TMK_RING_HEADER_BYTES + (size_t)n_pages * TMK_PAGE_BYTES;
    int flags = MAP_SHARED;
    if (path && file_limit_allows(r.size_bytes)) {
        r.fd = make_file(path, r.size_bytes, err);
        if (r.fd < 0)
            return r.fd;
        r.has_file = true;
    } else {
        flags |= MAP_ANONYMOUS;
    }
    void *base = mmap(NULL, r.size_bytes, PROT_READ | PROT_WRITE, flags, r.fd, 0);
    if (base == MAP_FAILED) {
        int os_error = errno;
        if (r.has_file) {
            close(r.fd);
            unlink(path);
        }
        return tmk_fail_os(err, TMK_ENOMEM, os_error, "cannot map the ring");
    }
    populate(base, r.size_bytes);
    r.header = base;
    r.pages = (struct tmk_page *)((uint8_t *)base + TMK_RING_HEADER_BYTES);
    link_pages(&r);
    fill_header(&r, trace_id, trace_path);
    *ret = r;
    return 0;
}

void tmk_ring_close(struct tmk_ring *r)
{
    if (r->header)
        munmap(r->header, r->size_bytes);
    if (r->fd >= 0)
        close(r->fd);
    *r = (struct tmk_ring){.fd = -1};
}

/* A trace may name anything as its ring: only a plain file is opened, and none holds us up. */
static int open_file(const char *path, int mode)
{
    struct stat st;
    int fd = open(path, mode | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

/* Whether process `pid` has the file mapped. Reads /proc/PID/maps in blocks; a name that straddles
 * two is found because each block keeps the end of the one before. */
static bool is_mapped_by(uint32_t pid, const char *path)
{
    char maps[64], block[8192];
    struct tmk_text name;
    tmk_text_init(&name, maps, sizeof maps);
    tmk_text_add(&name, "/proc/%u/maps", pid);
    size_t n = strlen(path), kept = 0;
    int fd = n < sizeof block / 2 ? open(maps, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    bool found = false;
    for (ssize_t got; !found && (got = read(fd, block + kept, sizeof block - kept)) > 0;) {
        size_t length = kept + (size_t)got;
        found = memmem(block, length, path, n) != NULL;
        kept = length < n ? length : n;
        memmove(block, block + length - kept, kept);
    }
    close(fd);
    return found;
}

int tmk_ring_is_held(const char *path)
{
    struct tmk_ring_header head;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int fd = open_file(path, O_RDWR);
    if (fd < 0)
        return errno == ENOENT ? 0 : TMK_EIO;
    int rc = fcntl(fd, F_GETLK, &lock) < 0 ? TMK_EIO : lock.l_type != F_UNLCK && lock.l_pid != -1;
    if (rc == 0 && pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head)
        rc = is_mapped_by(head.pid, path);
    close(fd);
    return rc;
}

/* ---- copying ---- */

static int read_all(int fd, void *buffer, size_t n, size_t offset)
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
           h->n_pages <= 1u << 20 &&
           TMK_RING_HEADER_BYTES + (uint64_t)h->n_pages * TMK_PAGE_BYTES <= file_bytes;
}

/* The pages in use; the others hold nothing, and most are such: a copy costs what there is. They
 * are not even looked at in the copy, whose memory comes by touching it. */
static int copy_pages(int fd, struct tmk_ring *r)
{
    for (uint32_t i = 0; i < r->n_pages; i++) {
        uint32_t state = TMK_PAGE_FREE;
        size_t offset = TMK_RING_HEADER_BYTES + (size_t)i * TMK_PAGE_BYTES;
        if (read_all(fd, &state, sizeof state, offset) < 0 ||
            (state != TMK_PAGE_FREE && read_all(fd, &r->pages[i], TMK_PAGE_BYTES, offset) < 0))
            return TMK_EIO;
    }
    return 0;
}

/* One try; TMK_EBUSY when the packer moved meanwhile. The pages of a living ring are of different
 * moments: of a thread that goes from one to the next meanwhile, records on the later may be there
 * and some on the earlier not. What was stamped before the first page was copied is whole, but for
 * frees and tags that bear an earlier stamp than their moment's (record/short.h): they may be
 * missing, and with each all that follows it on its thread. */
static int copy_once(int fd, struct tmk_ring *r, bool live)
{
    if (read_all(fd, r->header, TMK_RING_HEADER_BYTES, 0) < 0)
        return TMK_EIO;
    uint64_t epoch = atomic_load(&r->header->epoch);
    if (live && (epoch & 1))
        return TMK_EBUSY;
    r->copied_ticks = live ? tmk_clock_ticks(tmk_clock_has_counter()) : UINT64_MAX;
    if (copy_pages(fd, r) < 0)
        return TMK_EIO;
    struct tmk_ring_header after;
    if (read_all(fd, &after, sizeof after, 0) < 0)
        return TMK_EIO;
    return live && atomic_load(&after.epoch) != epoch ? TMK_EBUSY : 0;
}

static int copy_file(int fd, const char *path, bool live, struct tmk_ring *ret,
                     struct tmk_error *err)
{
    struct tmk_ring_header head;
    struct stat st;
    if (fstat(fd, &st) < 0 || read_all(fd, &head, sizeof head, 0) < 0 ||
        !header_is_sane(&head, (size_t)st.st_size))
        return tmk_fail(err, TMK_EFORMAT, "%s is not a ring of tidemark's", path);
    struct tmk_ring r = {.n_pages = head.n_pages, .fd = -1};
    r.size_bytes = TMK_RING_HEADER_BYTES + (size_t)head.n_pages * TMK_PAGE_BYTES;
    void *base =
        mmap(NULL, r.size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return tmk_fail_os(err, TMK_ENOMEM, errno, "cannot copy the ring %s", path);
    r.header = base;
    r.pages = (struct tmk_page *)((uint8_t *)base + TMK_RING_HEADER_BYTES);
    int rc = TMK_EBUSY;
    for (int try = 0; try < COPY_TRIES && rc == TMK_EBUSY; try++) {
        rc = copy_once(fd, &r, live);
        if (rc == TMK_EBUSY) {
            madvise(base, r.size_bytes, MADV_DONTNEED); /* zeros again */
            nanosleep(&(struct timespec){.tv_nsec = COPY_WAIT_NS}, NULL);
        }
    }
    if (rc < 0) {
        tmk_ring_close(&r);
        return tmk_fail(err, rc, "cannot read the ring %s: %s", path, tmk_result_text(rc));
    }
    r.header->trace_path[sizeof r.header->trace_path - 1] = '\0';
    *ret = r;
    return 0;
}

int tmk_ring_copy(struct tmk_ring *ret, const char *path, bool live, struct tmk_error *err)
{
    int fd = open_file(path, O_RDONLY);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open the ring %s", path);
    int rc = copy_file(fd, path, live, ret, err);
    close(fd);
    return rc;
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
    page->thread = thread;
    page->number = atomic_fetch_add_explicit(&r->header->next_page_number, 1, memory_order_relaxed);
    atomic_store_explicit(&page->done, 0, memory_order_relaxed);
    atomic_store_explicit(&page->done_before, 0, memory_order_relaxed);
    atomic_store_explicit(&page->state, TMK_PAGE_USED, memory_order_release);
    return page;
}

void tmk_ring_give_back(struct tmk_ring *r, struct tmk_page *page)
{
    memset((void *)page->slots, 0, sizeof page->slots);
    atomic_store_explicit(&page->state, TMK_PAGE_FREE, memory_order_release);
    uint32_t index = (uint32_t)(page - r->pages) + 1;
    uint64_t head = atomic_load_explicit(&r->header->free_list, memory_order_relaxed);
    uint64_t next;
    do {
        __atomic_store_n(&page->next_free, (uint32_t)head, __ATOMIC_RELAXED);
        next = ((head >> 32) + 1) << 32 | index;
    } while (!atomic_compare_exchange_weak_explicit(&r->header->free_list, &head, next,
                                                    memory_order_release, memory_order_relaxed));
}
