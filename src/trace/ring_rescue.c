/* SPDX-License-Identifier: MIT */
/* trace/ring_rescue.c - see ring_rescue.h. */
#include "trace/ring_rescue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat() */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/text.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum { ORPHAN_SECONDS = 10 };

/* ---- the ring's owner ---- */

/* Whether the ring is too old for a process that is about to lock it, or to make the trace. */
static bool is_old_ring(const struct tmk_ring_file *f)
{
    time_t now = time(NULL);
    return now < f->st.st_ctime || now - f->st.st_ctime >= ORPHAN_SECONDS;
}

enum tmk_ring_owner tmk_ring_owner(const struct tmk_ring_file *f,
                                   struct tmk_ring_header *ret_header)
{
    if (!tmk_ring_file_is_own(f) || tmk_ring_file_is_held(f) != 0)
        return TMK_RING_OWNED;
    if (!tmk_ring_file_header(f, ret_header))
        return is_old_ring(f) ? TMK_RING_ORPHAN : TMK_RING_OWNED;
    if (access(ret_header->trace_path, F_OK) < 0)
        return errno == ENOENT || errno == ENOTDIR ? TMK_RING_ORPHAN : TMK_RING_OWNED;
    return TMK_RING_DEAD;
}

/* ---- moving ---- */

static bool write_at_end(int fd, const void *bytes, size_t n)
{
    return write(fd, bytes, n) == (ssize_t)n;
}

static bool copy_page(int from, int to, uint32_t i)
{
    uint8_t page[TMK_PAGE_BYTES];
    return pread(from, page, sizeof page, (off_t)tmk_ring_bytes(i)) == (ssize_t)sizeof page &&
           write_at_end(to, page, sizeof page);
}

/* Copies the header and the pages in use, as a ring without other pages. */
static bool copy_used(const struct tmk_ring_file *from, int to, struct tmk_ring_header *h,
                      uint32_t n_used)
{
    uint32_t n = h->n_pages;
    h->n_pages = n_used;
    h->free_list = 0;
    bool good = write_at_end(to, h, sizeof *h);
    for (uint32_t i = 0; i < n && good; i++)
        good = !tmk_ring_file_uses_page(from, i) || copy_page(from->fd, to, i);
    return good;
}

static bool write_smaller(const struct tmk_ring_file *f, int folder, struct tmk_ring_header *h,
                          uint32_t n_used)
{
    char part[TMK_RING_NAME_BYTES + 8];
    struct tmk_text text;
    tmk_text_init(&text, part, sizeof part);
    tmk_text_add(&text, "%s.part", f->name);
    unlinkat(folder, part, 0); /* a process was killed here: nobody else has the lock */
    int to = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = to >= 0 && copy_used(f, to, h, n_used);
    if (to >= 0)
        good &= close(to) == 0;
    good = good && renameat(folder, part, folder, f->name) == 0;
    if (!good)
        unlinkat(folder, part, 0);
    return good;
}

static bool move_ring(struct tmk_disk_share *disk, const struct tmk_ring_file *f,
                      struct tmk_ring_header *h, const char *run_folder)
{
    uint32_t n_used = tmk_ring_file_n_used(f, h->n_pages);
    uint64_t bytes = tmk_ring_bytes(n_used);
    int folder = open(run_folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return false;
    bool taken = tmk_disk_share_take(disk, bytes);
    bool moved = taken && write_smaller(f, folder, h, n_used) && tmk_ring_file_remove(f);
    if (taken && !moved)
        tmk_disk_share_give(disk, bytes);
    close(folder);
    return moved;
}

static bool is_in_folder(const char *path, const char *folder)
{
    const char *slash = strrchr(path, '/');
    size_t n = strlen(folder);
    return slash && (size_t)(slash - path) == n && memcmp(path, folder, n) == 0;
}

static bool rescue_ring(struct tmk_account *a, struct tmk_disk_share *disk,
                        const struct tmk_ring_file *f, const char *run_folder)
{
    struct tmk_ring_header h;
    enum tmk_ring_owner owner = tmk_ring_owner(f, &h);
    if (owner != TMK_RING_DEAD || !is_in_folder(h.trace_path, run_folder) ||
        tmk_ring_file_lock(f, 0) < 0)
        return false;
    uint64_t bytes = tmk_ring_bytes(h.n_pages);
    bool gone = move_ring(disk, f, &h, run_folder);
    if (gone)
        tmk_account_give_memory(a, bytes);
    return gone;
}

uint32_t tmk_ring_rescue_all(struct tmk_account *a, struct tmk_disk_share *disk, const char *folder,
                             const char *run_folder)
{
    struct tmk_folder names;
    uint32_t n = 0;
    if (tmk_folder_open(&names, folder) < 0)
        return 0;
    for (const char *name; (name = tmk_folder_next(&names)) != NULL;) {
        struct tmk_ring_file f;
        if (!tmk_ring_file_is_users_name(name) ||
            tmk_ring_file_open_own_in(&f, names.fd, name, NULL) < 0)
            continue;
        n += rescue_ring(a, disk, &f, run_folder);
        tmk_ring_file_close(&f);
    }
    tmk_folder_close(&names);
    return n;
}
