/* SPDX-License-Identifier: MIT */
/* trace/writer.c - see writer.h. */
#include "trace/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat() */
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/file_lock.h"
#include "base/text.h"
#include "trace/layout.h"
#include "trace/state.h"

enum {
    FRONT_SLACK = TMK_PERMANENT_MAX_BYTES,   /* kept free ahead of the tail: room for one copy */
    END_SLACK = 3 * TMK_PERMANENT_MAX_BYTES, /* kept free at the end: copies made before turning */
};

/* ---- plain reading and writing ---- */

/* Takes the lock that tells readers that the process lives, if they cannot ask its ring. */
static void hold_trace_lock(const struct tmk_writer *w)
{
    if (w->is_held)
        (void)tmk_file_lock(w->fd, TMK_LOCK_SHARED, 0);
}

/* Checks before every use that the descriptor still leads to the trace: a program may close
 * descriptors that it does not know, and another file may get the number. */
static int check_trace_fd(struct tmk_writer *w)
{
    struct stat st;
    if (w->fd >= 0 && fstat(w->fd, &st) == 0 && st.st_dev == w->device && st.st_ino == w->inode)
        return 0;
    w->fd = tmk_fd_raise(open(w->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (w->fd < 0 || fstat(w->fd, &st) < 0)
        return tmk_fail_os(&w->error, TMK_EIO, errno, "cannot open %s again", w->path);
    if (st.st_dev != w->device || st.st_ino != w->inode) {
        close(w->fd);
        w->fd = -1;
        return tmk_fail_os(&w->error, TMK_EIO, ESTALE, "%s was replaced by another file", w->path);
    }
    hold_trace_lock(w);
    return 0;
}

static int write_file_at(struct tmk_writer *w, const struct iovec *parts, int n_parts,
                         uint64_t offset)
{
    struct iovec rest[3];
    memcpy(rest, parts, (size_t)n_parts * sizeof rest[0]);
    struct iovec *at = rest;
    while (n_parts > 0) {
        ssize_t put = pwritev(w->fd, at, n_parts, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tmk_fail_os(&w->error, TMK_EIO, put < 0 ? errno : ENOSPC, "cannot write %s",
                               w->path);
        offset += (uint64_t)put;
        for (; n_parts > 0 && (size_t)put >= at->iov_len; at++, n_parts--)
            put -= (ssize_t)at->iov_len;
        if (n_parts > 0) {
            at->iov_base = (uint8_t *)at->iov_base + put;
            at->iov_len -= (size_t)put;
        }
    }
    return 0;
}

static int read_file_at(struct tmk_writer *w, void *buffer, size_t n, uint64_t offset)
{
    for (size_t got = 0; got < n;) {
        ssize_t r = pread(w->fd, (uint8_t *)buffer + got, n - got, (off_t)(offset + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return tmk_fail_os(&w->error, TMK_EIO, r < 0 ? errno : EIO, "cannot read %s", w->path);
        got += (size_t)r;
    }
    return 0;
}

static size_t padding_after(size_t n)
{
    return (8 - n % 8) % 8;
}

/* ---- header and status ---- */

static void seal_status(struct tmk_status *s)
{
    s->serial++;
    s->crc = tmk_crc32(0, s, offsetof(struct tmk_status, crc));
}

/* Counts the ranges that found no room in the state: they are in no checkpoint, so a reader that
 * begins at one does not know them. */
static void note_unnamed(struct tmk_status *status, const struct tmk_state *s)
{
    uint64_t n = s->n_unnamed + (status->n_given_up ? s->n_unplaced : 0);
    if (n > status->n_unnamed)
        status->n_unnamed = n;
}

void tmk_status_count(struct tmk_status *status, const struct tmk_state *s)
{
    status->n_events = s->n_events;
    status->n_allocs = s->n_allocs;
    status->n_frees = s->n_frees;
    status->n_dropped = s->n_dropped;
    status->n_untracked = s->n_untracked;
    status->flags |= s->is_cut ? TMK_STATUS_CUT : 0;
    note_unnamed(status, s);
    status->end_ns = s->now_ns;
}

int tmk_writer_put_status(struct tmk_writer *w, const struct tmk_state *s)
{
    if (s)
        tmk_status_count(&w->status, s);
    seal_status(&w->status);
    int rc = check_trace_fd(w);
    if (rc < 0)
        return rc;
    uint64_t offset = TMK_STATUS_OFFSET + (w->status.serial & 1) * TMK_STATUS_BYTES;
    struct iovec part = {.iov_base = &w->status, .iov_len = sizeof w->status};
    w->saved_tail = w->status.tail;
    return write_file_at(w, &part, 1, offset);
}

static int adopt_fd(struct tmk_writer *w, int fd, const char *path, struct tmk_error *err)
{
    struct stat st;
    w->fd = fd = tmk_fd_raise(fd);
    if (strlen(path) >= sizeof w->path || fstat(fd, &st) < 0)
        return tmk_fail(err, TMK_EINVAL, "the path of the trace is too long: %s", path);
    strcpy(w->path, path);
    w->device = st.st_dev;
    w->inode = st.st_ino;
    w->file_bytes = (uint64_t)st.st_size;
    return 0;
}

static int write_trace_header(struct tmk_writer *w, const uint8_t trace_id[16], const char *info)
{
    uint8_t bytes[TMK_HEADER_MAX_BYTES] = {0};
    size_t length = strnlen(info, TMK_INFO_MAX_BYTES);
    struct tmk_file_header h = {.version = TMK_FORMAT_VERSION,
                                .header_bytes = tmk_header_bytes((uint32_t)length),
                                .info_bytes = (uint32_t)length};
    memcpy(h.magic, TMK_FILE_MAGIC, sizeof h.magic);
    memcpy(h.trace_id, trace_id, sizeof h.trace_id);
    h.crc = tmk_crc32(tmk_crc32(0, &h, offsetof(struct tmk_file_header, crc)), info, length);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + TMK_INFO_OFFSET, info, length);
    w->first = w->status.head = w->status.tail = w->saved_tail = h.header_bytes;
    seal_status(&w->status);
    uint64_t at = TMK_STATUS_OFFSET + (w->status.serial & 1) * TMK_STATUS_BYTES;
    memcpy(bytes + at, &w->status, sizeof w->status);
    struct iovec part = {.iov_base = bytes, .iov_len = h.header_bytes};
    return write_file_at(w, &part, 1, 0);
}

/* Gives the file its name once it has its header, so that a file called `path` always is a trace.
 * Until then it is called TRACE.part, which a SIGKILL may leave behind. */
static int put_trace_name(const char *part, const char *path, struct tmk_error *err)
{
    int rc = access(path, F_OK) == 0                         ? EEXIST
             : renameat(AT_FDCWD, part, AT_FDCWD, path) == 0 ? 0
                                                             : errno;
    return rc == 0 ? 0 : tmk_fail_os(err, TMK_EIO, rc, "cannot make %s", path);
}

void tmk_writer_part_name(const char *path, char *part, size_t size)
{
    struct tmk_text text;
    tmk_text_init(&text, part, size);
    tmk_text_add(&text, "%s.part", path);
}

int tmk_writer_create(struct tmk_writer *w, const char *path, const uint8_t trace_id[16],
                      const char *info, uint64_t max_size, struct tmk_error *err)
{
    char part[sizeof w->path + 8];
    *w = (struct tmk_writer){.fd = -1, .max_size = max_size, .is_held = true};
    w->status.oldest_seq = 1;
    tmk_writer_part_name(path, part, sizeof part);
    int fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot make %s", path);
    int rc = adopt_fd(w, fd, path, err);
    hold_trace_lock(w);
    if (rc == 0) {
        rc = write_trace_header(w, trace_id, info);
        if (rc < 0 && err)
            *err = w->error;
    }
    if (rc == 0)
        rc = put_trace_name(part, path, err);
    if (rc < 0) {
        int os_error = errno;
        tmk_writer_close(w);
        unlink(part);
        errno = os_error;
        return rc;
    }
    w->file_bytes = w->first;
    return 0;
}

/* Cuts what the round before has left behind the last chunk that counts: a reader would take it for
 * damage. The status that gives those bytes up is written before. */
static void cut_leftovers(struct tmk_writer *w)
{
    uint64_t end = w->wrapped ? w->end : w->status.head;
    if (w->file_bytes > end && ftruncate(w->fd, (off_t)end) == 0)
        w->file_bytes = end;
}

int tmk_writer_resume(struct tmk_writer *w, int fd, const char *path,
                      const struct tmk_status *status, uint64_t first, uint64_t end,
                      uint64_t max_size, struct tmk_error *err)
{
    *w = (struct tmk_writer){
        .fd = -1, .max_size = max_size, .status = *status, .first = first, .end = end};
    w->wrapped = status->tail > status->head;
    w->saved_tail = status->tail;
    int rc = adopt_fd(w, fd, path, err);
    if (rc == 0)
        cut_leftovers(w); /* a torn chunk at the end, too */
    if (rc < 0)
        tmk_writer_close(w);
    return rc;
}

void tmk_writer_close(struct tmk_writer *w)
{
    if (w->fd >= 0 && check_trace_fd(w) == 0)
        close(w->fd);
    w->fd = -1;
}

int tmk_writer_sync(struct tmk_writer *w)
{
    int rc = check_trace_fd(w);
    return rc < 0 ? rc : fdatasync(w->fd) < 0 ? TMK_EIO : 0;
}

enum tmk_stop tmk_writer_stop_reason(int os_error)
{
    switch (os_error) {
    case ENOSPC:
    case EDQUOT:
        return TMK_STOP_DISK_FULL;
    case EFBIG:
        return TMK_STOP_SIZE_LIMIT;
    case EOVERFLOW:
        return TMK_STOP_HISTORY;
    case ENOBUFS:
        return TMK_STOP_BUDGET;
    default:
        return TMK_STOP_WRITE_ERROR;
    }
}

/* ---- chunks ---- */

static int put_chunk(struct tmk_writer *w, struct tmk_chunk_header *header, const uint8_t *payload)
{
    static const uint8_t zeros[8];
    header->seq = ++w->status.last_seq;
    header->payload_crc = tmk_crc32(0, payload, header->payload_bytes);
    header->header_crc = tmk_crc32(0, header, offsetof(struct tmk_chunk_header, header_crc));
    struct iovec parts[3] = {
        {.iov_base = header, .iov_len = sizeof *header},
        {.iov_base = (void *)(uintptr_t)payload, .iov_len = header->payload_bytes},
        {.iov_base = (void *)(uintptr_t)zeros, .iov_len = padding_after(header->payload_bytes)},
    };
    uint64_t bytes = tmk_chunk_bytes(header->payload_bytes);
    int rc = write_file_at(w, parts, 3, w->status.head);
    if (rc < 0) {
        w->status.last_seq--;
        if (w->status.head + bytes > w->file_bytes) /* take back what was written of it */
            (void)!ftruncate(w->fd, (off_t)w->file_bytes);
        return rc;
    }
    w->status.head += bytes;
    if (w->status.head > w->file_bytes)
        w->file_bytes = w->status.head;
    return 0;
}

/* Read the header of the oldest chunk and check that it is one. */
static int oldest_chunk(struct tmk_writer *w, struct tmk_chunk_header *ret)
{
    int rc = read_file_at(w, ret, sizeof *ret, w->status.tail);
    if (rc < 0)
        return rc;
    if (ret->magic != TMK_CHUNK_MAGIC || ret->payload_bytes > TMK_CHUNK_MAX_PAYLOAD ||
        ret->header_crc != tmk_crc32(0, ret, offsetof(struct tmk_chunk_header, header_crc)))
        return tmk_fail_os(&w->error, TMK_EDAMAGED, EIO, "%s was changed from outside", w->path);
    return 0;
}

/* Give up the oldest chunk, or carry it to the head when it is permanent. */
static int retire_oldest(struct tmk_writer *w, const struct tmk_chunk_header *oldest)
{
    if (oldest->flags & TMK_CHUNK_PERMANENT) {
        int saved = w->saved_tail == w->status.tail ? 0 : tmk_writer_put_status(w, NULL);
        if (saved < 0) /* the copy may lie where chunks given up just now were */
            return saved;
        uint8_t payload[TMK_PERMANENT_MAX_BYTES];
        if (oldest->payload_bytes > sizeof payload)
            return tmk_fail_os(&w->error, TMK_EDAMAGED, EIO, "%s was changed from outside",
                               w->path);
        int rc = read_file_at(w, payload, oldest->payload_bytes,
                              w->status.tail + TMK_CHUNK_HEADER_BYTES);
        struct tmk_chunk_header copy = *oldest;
        if (rc == 0)
            rc = put_chunk(w, &copy, payload);
        if (rc < 0)
            return rc;
    } else if (oldest->kind == TMK_CHUNK_EVENTS) {
        w->status.n_given_up += oldest->n_items;
    }
    w->status.tail += tmk_chunk_bytes(oldest->payload_bytes);
    w->status.oldest_seq = oldest->seq + 1;
    return 0;
}

/* Retire chunks from the tail until `is_enough`. When more than half of the file was carried to the
 * head, there is nothing left to give up. */
static int retire_until(struct tmk_writer *w,
                        bool (*is_enough)(const struct tmk_writer *, uint64_t), uint64_t need)
{
    uint64_t carried = 0;
    while (!is_enough(w, need)) {
        if (w->wrapped && w->status.tail >= w->end) { /* the older part is used up */
            w->wrapped = false;
            w->status.tail = w->first;
            return 0;
        }
        struct tmk_chunk_header oldest;
        int rc = oldest_chunk(w, &oldest);
        if (rc < 0)
            return rc;
        rc = retire_oldest(w, &oldest);
        if (rc < 0)
            return rc;
        carried += oldest.flags & TMK_CHUNK_PERMANENT ? tmk_chunk_bytes(oldest.payload_bytes) : 0;
        if (carried > w->max_size / 2)
            return tmk_fail_os(&w->error, TMK_EFULL, EOVERFLOW, "%s: no room left", w->path);
    }
    return 0;
}

static bool front_is_free(const struct tmk_writer *w, uint64_t need)
{
    return w->status.tail - w->first >= need;
}

static bool gap_is_free(const struct tmk_writer *w, uint64_t need)
{
    return w->status.tail - w->status.head >= need;
}

void tmk_writer_ask(struct tmk_writer *w, tmk_grant *grant, void *arg)
{
    w->grant = grant;
    w->grant_arg = arg;
    w->granted = w->file_bytes;
}

/* Whether the file may grow to `end`. It asks for whole blocks of a disk. */
static bool is_granted(struct tmk_writer *w, uint64_t end)
{
    if (!w->grant || end <= w->granted)
        return true;
    uint64_t more = (end - w->granted + 4095) & ~(uint64_t)4095;
    if (!w->grant(w->grant_arg, more))
        return false;
    w->granted += more;
    return true;
}

/* Bounds the file to its present size, when the run has no more disk space. */
static int settle_for_less(struct tmk_writer *w)
{
    if (w->file_bytes < TMK_MAX_SIZE_LEAST)
        return tmk_fail_os(&w->error, TMK_EFULL, ENOBUFS, "%s: no room left for the run", w->path);
    w->max_size = w->file_bytes + END_SLACK;
    w->grant = NULL;
    return 0;
}

/* Make room for `need` bytes at the head, turning round at the end of the file. */
static int make_chunk_room(struct tmk_writer *w, uint64_t need)
{
    if (w->max_size == 0)
        return 0;
    int rc = is_granted(w, w->wrapped ? 0 : w->status.head + need) ? 0 : settle_for_less(w);
    for (int turn = 0; turn < 3 && rc == 0; turn++) {
        if (w->wrapped) {
            if (gap_is_free(w, need + FRONT_SLACK))
                break;
            rc = retire_until(w, gap_is_free, need + FRONT_SLACK);
        } else if (w->status.head + need + END_SLACK <= w->max_size) {
            break;
        } else {
            rc = retire_until(w, front_is_free, FRONT_SLACK);
            w->end = w->status.head;
            w->status.head = w->first;
            w->wrapped = true;
        }
    }
    if (rc == 0 && w->status.tail != w->saved_tail)
        rc = tmk_writer_put_status(w, NULL);
    if (rc == 0)
        cut_leftovers(w);
    return rc;
}

static int writer_reserve(void *arg, size_t payload_bytes, uint64_t *ret_seq)
{
    struct tmk_writer *w = arg;
    int rc = check_trace_fd(w);
    if (rc == 0)
        rc = make_chunk_room(w, tmk_chunk_bytes(payload_bytes));
    if (rc == 0)
        *ret_seq = w->status.last_seq + 1;
    return rc;
}

static int writer_append(void *arg, struct tmk_chunk_header *header, const uint8_t *payload)
{
    return put_chunk(arg, header, payload);
}

struct tmk_chunk_out tmk_writer_out(struct tmk_writer *w)
{
    return (struct tmk_chunk_out){.reserve = writer_reserve, .append = writer_append, .arg = w};
}
