/* SPDX-License-Identifier: MIT */
/* trace/reader.c - see reader.h; layout in docs/format.md.
 *
 * Opening scans the file once from chunk header to chunk header. Where no valid header stands it
 * searches on, eight bytes at a time. Definitions and step rows are small and read at once.
 *
 * A growing file is followed by sequence numbers: they have no gaps, so the next chunk is the one
 * with the next number, behind the last one or, when the writer went round, at the beginning.
 *
 * A run may have more traces than the process may have descriptors. Readers keep a few hundred at
 * most; the others open their file for each chunk that is asked for, which costs microseconds. */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32.h"
#include "trace/snapshot.h"

enum {
    VIEW_SLACK = 16, /* readable bytes after a payload */
    SCAN_BYTES = 1 << 16,
    KEPT_MOST = 256, /* descriptors, of all readers together */
    KEPT_SHARE = 4,  /* and at most this part of what the process may open */
};

struct tmk_reader {
    int fd;       /* -1: opened when it is needed */
    bool is_kept; /* it counts among those that stay open */
    bool is_open; /* all of the opening is done */
    dev_t device; /* of the file, which must be the same when it is opened again */
    ino_t inode;
    char *path;
    uint64_t file_bytes;
    struct tmk_file_header header;
    char info[TMK_INFO_MAX_BYTES + 2]; /* zero-terminated lines, then an empty one */
    struct tmk_status status;
    struct tmk_damage damage;
    uint64_t torn_bytes; /* of the damage: at the file's end */
    uint64_t first, end;

    struct tmk_chunk_ref *chunks;
    uint32_t n_chunks, chunk_room;
    uint8_t *buffer;
    size_t buffer_bytes;
    uint8_t *attached;

    struct tmk_defs defs;
    struct tmk_step_row *rows;
    uint64_t n_rows, row_room;
    struct tmk_step_row *kept_rows; /* read before attach */
    uint64_t n_kept_rows, kept_room;
};

/* ---- descriptors ---- */

static atomic_uint n_kept;

static unsigned most_kept(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / KEPT_SHARE >= KEPT_MOST)
        return KEPT_MOST;
    return (unsigned)(limit.rlim_cur / KEPT_SHARE);
}

static void close_file(struct tmk_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

static void release_file(struct tmk_reader *r)
{
    if (r->is_open && !r->is_kept)
        close_file(r);
}

/* Everything after the opening is read chunk by chunk: the descriptor stays if there are not too
 * many. */
static void keep_or_release(struct tmk_reader *r)
{
    r->is_open = true;
    r->is_kept = atomic_fetch_add(&n_kept, 1) < most_kept();
    if (!r->is_kept)
        atomic_fetch_sub(&n_kept, 1);
    release_file(r);
}

int tmk_reader_open_again(const struct tmk_reader *r, int flags, int *ret_fd, struct tmk_error *err)
{
    struct stat st;
    int fd = open(r->path, flags | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open %s again", r->path);
    if (fstat(fd, &st) == 0 && st.st_dev == r->device && st.st_ino == r->inode) {
        *ret_fd = fd;
        return 0;
    }
    close(fd);
    return tmk_fail(err, TMK_EIO, "%s was replaced while it was read", r->path);
}

/* The file is open until release_file(). */
static int acquire_file(struct tmk_reader *r, struct tmk_error *err)
{
    return r->fd >= 0 ? 0 : tmk_reader_open_again(r, O_RDONLY, &r->fd, err);
}

/* ---- the file ---- */

static int read_exact(const struct tmk_reader *r, void *buffer, size_t n, uint64_t offset)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = pread(r->fd, (uint8_t *)buffer + got, n - got, (off_t)(offset + got));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) /* at its end: it was cut meanwhile */
            return k < 0 ? TMK_EIO : TMK_EDAMAGED;
        got += (size_t)k;
    }
    return 0;
}

/* Turn the lines of the info text into zero-terminated ones, escapes undone. */
static void take_info(struct tmk_reader *r, const char *text, size_t n)
{
    char *out = r->info;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            *out++ = '\0';
        else if (text[i] == '\\' && i + 1 < n)
            *out++ = text[++i] == 'n' ? '\n' : text[i];
        else
            *out++ = text[i];
    }
    *out = '\0';
}

/* Whether the info (header and text) is as it was written. The info says where the header ends. */
static bool has_info(const struct tmk_file_header *h, const uint8_t *bytes)
{
    if (h->info_bytes > TMK_INFO_MAX_BYTES || h->header_bytes > TMK_HEADER_MAX_BYTES ||
        h->header_bytes < tmk_header_bytes(h->info_bytes) || h->header_bytes % 8 != 0)
        return false;
    uint32_t crc = tmk_crc32(0, bytes, offsetof(struct tmk_file_header, crc));
    return tmk_crc32(crc, bytes + TMK_INFO_OFFSET, h->info_bytes) == h->crc;
}

/* The newer of the two slots that are valid; false when none is. */
static bool choose_status(const uint8_t *slots, struct tmk_status *ret)
{
    bool found = false;
    for (int slot = 0; slot < 2; slot++) {
        struct tmk_status s;
        memcpy(&s, slots + slot * TMK_STATUS_BYTES, sizeof s);
        if (s.crc != tmk_crc32(0, &s, offsetof(struct tmk_status, crc)) || s.serial == 0 ||
            (found && s.serial < ret->serial))
            continue;
        *ret = s;
        found = true;
    }
    return found;
}

static void take_status_slots(struct tmk_reader *r, const uint8_t *bytes)
{
    r->damage.status_lost = !choose_status(bytes + TMK_STATUS_OFFSET, &r->status);
}

/* The status as it is now, if it can be read. */
static bool read_status(const struct tmk_reader *r, struct tmk_status *ret)
{
    uint8_t slots[2 * TMK_STATUS_BYTES];
    return read_exact(r, slots, sizeof slots, TMK_STATUS_OFFSET) == 0 && choose_status(slots, ret);
}

bool tmk_reader_is_gone(struct tmk_reader *r, uint32_t i)
{
    struct tmk_status now = {0};
    if (r->chunks[i].memory || acquire_file(r, NULL) < 0)
        return false;
    bool is_gone = read_status(r, &now) && r->chunks[i].header.seq < now.oldest_seq;
    release_file(r);
    return is_gone;
}

static bool is_chunk_header(const struct tmk_chunk_header *h)
{
    return h->magic == TMK_CHUNK_MAGIC && h->payload_bytes <= TMK_CHUNK_MAX_PAYLOAD &&
           h->header_crc == tmk_crc32(0, h, offsetof(struct tmk_chunk_header, header_crc));
}

static int add_chunk(struct tmk_reader *r, const struct tmk_chunk_ref *ref)
{
    if (r->n_chunks == r->chunk_room) {
        uint32_t room = r->chunk_room ? 2 * r->chunk_room : 64;
        struct tmk_chunk_ref *bigger = realloc(r->chunks, room * sizeof *bigger);
        if (!bigger)
            return TMK_ENOMEM;
        r->chunks = bigger;
        r->chunk_room = room;
    }
    r->chunks[r->n_chunks++] = *ref;
    return 0;
}

/* The next place from `offset` on that is not in a hole of a sparse file, on the grid of eight
 * bytes; file_bytes when there is none. Where the file system does not report holes, it is
 * `offset`. */
static uint64_t skip_hole(const struct tmk_reader *r, uint64_t offset)
{
    off_t data = lseek(r->fd, (off_t)offset, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? r->file_bytes : offset;
    return (uint64_t)data > offset ? offset + ((uint64_t)data - offset) / 8 * 8 : offset;
}

/* The next place from `offset` on with a valid chunk header; file_bytes when there is none. It
 * reads in blocks, so that a large damaged stretch costs one pass over it, and holes cost nothing:
 * a file of 30 GB may be a few kilobytes on the disk. */
static uint64_t find_chunk(const struct tmk_reader *r, uint64_t offset)
{
    static const uint8_t magic[4] = {'T', 'M', 'K', 'C'};
    uint8_t block[SCAN_BYTES];
    while ((offset = skip_hole(r, offset)) + TMK_CHUNK_HEADER_BYTES <= r->file_bytes) {
        uint64_t left = r->file_bytes - offset;
        size_t n = left < sizeof block ? (size_t)left : sizeof block;
        if (read_exact(r, block, n, offset) < 0)
            return r->file_bytes;
        size_t at = 0;
        for (; at + TMK_CHUNK_HEADER_BYTES <= n; at += 8) {
            struct tmk_chunk_header h;
            if (memcmp(block + at, magic, sizeof magic) != 0)
                continue;
            memcpy(&h, block + at, sizeof h);
            if (is_chunk_header(&h))
                return offset + at;
        }
        offset += at;
    }
    return r->file_bytes;
}

static int fail_cut(const struct tmk_reader *r, struct tmk_error *err)
{
    return tmk_fail(err, TMK_EDAMAGED, "cut off in its header, at byte %llu",
                    (unsigned long long)r->file_bytes);
}

/* Fails for a file that is no trace. Pickles, plain or gzipped, are the files that people have from
 * torch. */
static int fail_stranger(const uint8_t *bytes, struct tmk_error *err)
{
    bool pickled = bytes[0] == 0x80 || (bytes[0] == 0x1f && bytes[1] == 0x8b);
    return tmk_fail(err, TMK_EFORMAT, "not a tidemark trace (it does not begin with %s)%s",
                    TMK_FILE_MAGIC,
                    pickled ? "; a run is made of a torch snapshot by: tidemark import" : "");
}

static int read_trace_header(struct tmk_reader *r, struct tmk_error *err)
{
    uint8_t bytes[TMK_HEADER_MAX_BYTES] = {0};
    size_t n = r->file_bytes < sizeof bytes ? (size_t)r->file_bytes : sizeof bytes;
    if (r->file_bytes < sizeof r->header.magic || read_exact(r, bytes, 8, 0) < 0 ||
        memcmp(bytes, TMK_FILE_MAGIC, 8) != 0)
        return fail_stranger(bytes, err);
    if (n < TMK_INFO_OFFSET || read_exact(r, bytes, n, 0) < 0)
        return fail_cut(r, err);
    memcpy(&r->header, bytes, sizeof r->header);
    if (r->header.version > TMK_FORMAT_VERSION)
        return tmk_fail(err, TMK_EVERSION,
                        "format version %u, this tidemark reads up to %d: use a newer one",
                        r->header.version, TMK_FORMAT_VERSION);
    r->damage.info_lost = !has_info(&r->header, bytes);
    if (r->file_bytes < r->header.header_bytes && find_chunk(r, TMK_INFO_OFFSET) == r->file_bytes)
        return fail_cut(r, err);
    if (!r->damage.info_lost)
        take_info(r, (const char *)bytes + TMK_INFO_OFFSET, r->header.info_bytes);
    take_status_slots(r, bytes);
    return 0;
}

static void note_chunk_gap(struct tmk_reader *r, uint64_t from, uint64_t to)
{
    /* After a file was written round, the bytes between head and tail are left over, not damage. */
    bool expected = !r->damage.status_lost && r->status.tail > r->status.head &&
                    from >= r->status.head && to <= r->status.tail;
    if (expected || to <= from)
        return;
    if (r->damage.n_places++ == 0)
        r->damage.first_offset = from;
    r->damage.n_bytes += to - from;
    if (to == r->file_bytes)
        r->torn_bytes = to - from;
}

/* The file ends in a chunk that was not written to its end. That is no damage where the ring has
 * the same events. */
static void forgive_torn_end(struct tmk_reader *r)
{
    if (r->torn_bytes == 0)
        return;
    r->damage.n_bytes -= r->torn_bytes;
    if (--r->damage.n_places == 0)
        r->damage.first_offset = 0;
    r->torn_bytes = 0;
}

static int scan_chunks(struct tmk_reader *r)
{
    uint64_t oldest = r->damage.status_lost ? 0 : r->status.oldest_seq;
    uint64_t offset = r->damage.info_lost ? find_chunk(r, TMK_INFO_OFFSET) : r->header.header_bytes;
    r->first = r->end = offset;
    while (offset < r->file_bytes) {
        struct tmk_chunk_ref ref = {.offset = offset};
        bool here = offset + TMK_CHUNK_HEADER_BYTES <= r->file_bytes &&
                    read_exact(r, &ref.header, sizeof ref.header, offset) == 0 &&
                    is_chunk_header(&ref.header);
        if (!here) {
            uint64_t next = find_chunk(r, offset + 8);
            note_chunk_gap(r, offset, next);
            offset = next;
            continue;
        }
        uint64_t bytes = tmk_chunk_bytes(ref.header.payload_bytes);
        if (offset + bytes > r->file_bytes) { /* cut, or damage that hides what follows */
            uint64_t next = find_chunk(r, offset + 8);
            note_chunk_gap(r, offset, next);
            offset = next;
            continue;
        }
        if (ref.header.seq >= oldest) {
            if (add_chunk(r, &ref) < 0)
                return TMK_ENOMEM;
            r->end = offset + bytes;
        }
        offset += bytes;
    }
    return 0;
}

static int by_seq(const void *va, const void *vb)
{
    const struct tmk_chunk_ref *a = va, *b = vb;
    return a->header.seq < b->header.seq ? -1 : a->header.seq > b->header.seq;
}

/* Orders chunks by number and keeps one of two with the same number, which only damage makes. */
static void sort_chunks(struct tmk_reader *r)
{
    if (r->n_chunks == 0)
        return;
    qsort(r->chunks, r->n_chunks, sizeof *r->chunks, by_seq);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < r->n_chunks; i++)
        if (r->chunks[i].header.seq != r->chunks[kept - 1].header.seq)
            r->chunks[kept++] = r->chunks[i];
    r->n_chunks = kept;
}

/* Reads the payload's bytes from the file into the reader's buffer. */
static int load_payload(struct tmk_reader *r, const struct tmk_chunk_ref *ref, size_t n,
                        struct tmk_error *err)
{
    if (r->buffer_bytes < n + VIEW_SLACK) {
        free(r->buffer);
        r->buffer_bytes = n + n / 4 + VIEW_SLACK;
        r->buffer = malloc(r->buffer_bytes);
        if (!r->buffer) {
            r->buffer_bytes = 0;
            return tmk_fail(err, TMK_ENOMEM, "no memory for a chunk of %llu bytes",
                            (unsigned long long)n);
        }
    }
    int rc = acquire_file(r, err);
    if (rc < 0)
        return rc;
    rc = read_exact(r, r->buffer, n, ref->offset + TMK_CHUNK_HEADER_BYTES);
    if (rc == TMK_EIO)
        tmk_fail_os(err, TMK_EIO, errno, "cannot read the chunk at byte %llu",
                    (unsigned long long)ref->offset);
    release_file(r);
    return rc;
}

static int get_payload(struct tmk_reader *r, const struct tmk_chunk_ref *ref, struct tmk_view *ret,
                       struct tmk_error *err)
{
    size_t n = ref->header.payload_bytes;
    const uint8_t *bytes = ref->memory;
    if (!bytes) {
        int rc = load_payload(r, ref, n, err);
        if (rc < 0 && rc != TMK_EDAMAGED)
            return rc;
        bytes = rc < 0 ? NULL : r->buffer;
    }
    if (!bytes || tmk_crc32(0, bytes, n) != ref->header.payload_crc) {
        if (err)
            err->offset = ref->offset;
        return tmk_fail(err, TMK_EDAMAGED, "the chunk at byte %llu has a wrong checksum",
                        (unsigned long long)ref->offset);
    }
    *ret = tmk_view_of(bytes, n);
    return 0;
}

int tmk_reader_payload(struct tmk_reader *r, uint32_t i, struct tmk_view *ret,
                       struct tmk_error *err)
{
    int rc = get_payload(r, &r->chunks[i], ret, err);
    if (rc == TMK_EDAMAGED)
        r->damage.n_chunks += !tmk_reader_is_gone(r, i);
    return rc;
}

bool tmk_reader_is_torn(struct tmk_reader *r, uint32_t i)
{
    struct tmk_view payload;
    return get_payload(r, &r->chunks[i], &payload, NULL) == TMK_EDAMAGED;
}

/* ---- definitions and step rows ---- */

/* Append to a list of rows, which grows. */
static int append_step_row(struct tmk_step_row **rows, uint64_t *n, uint64_t *room,
                           const struct tmk_step_row *row)
{
    if (*n == *room) {
        uint64_t wider = *room ? 2 * *room : 256;
        struct tmk_step_row *bigger = realloc(*rows, wider * sizeof *bigger);
        if (!bigger)
            return TMK_ENOMEM;
        *rows = bigger;
        *room = wider;
    }
    (*rows)[(*n)++] = *row;
    return 0;
}

static int add_trace_row(struct tmk_reader *r, const struct tmk_step_row *row)
{
    return append_step_row(&r->rows, &r->n_rows, &r->row_room, row);
}

static int read_step_rows(struct tmk_reader *r, struct tmk_view in)
{
    while (tmk_view_left(&in) > 0) {
        struct tmk_step_row row;
        int rc = tmk_step_row_read(&in, &row);
        if (rc == 0)
            rc = add_trace_row(r, &row);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Compares rows by ordinal; a finished row comes before an open one of the same ordinal. */
static int by_ordinal(const void *va, const void *vb)
{
    const struct tmk_step_row *a = va, *b = vb;
    if (a->ordinal != b->ordinal)
        return a->ordinal < b->ordinal ? -1 : 1;
    return (int)a->open - (int)b->open;
}

static void sort_rows(struct tmk_reader *r)
{
    if (r->n_rows == 0)
        return;
    qsort(r->rows, (size_t)r->n_rows, sizeof *r->rows, by_ordinal);
    uint64_t kept = 1;
    for (uint64_t i = 1; i < r->n_rows; i++)
        if (r->rows[i].ordinal != r->rows[kept - 1].ordinal)
            r->rows[kept++] = r->rows[i];
    r->n_rows = kept;
}

static struct tmk_step_row *last_row_of(struct tmk_reader *r, int64_t step, uint16_t device)
{
    for (uint64_t i = r->n_rows; i-- > 0;)
        if (r->rows[i].step == step && r->rows[i].device == device)
            return &r->rows[i];
    return NULL;
}

/* The row gets the peaks and counts of what came after; the step's end, and what was live then,
 * stay what they were, as those of all other steps. */
static void extend_row(struct tmk_step_row *row, const struct tmk_step_row *tail)
{
    if (tail->peak_bytes > row->peak_bytes) {
        row->peak_bytes = tail->peak_bytes;
        row->peak_ns = tail->peak_ns;
    }
    if (row->has_reserved && tail->peak_reserved_bytes > row->peak_reserved_bytes)
        row->peak_reserved_bytes = tail->peak_reserved_bytes;
    row->n_allocs += tail->n_allocs;
    row->n_frees += tail->n_frees;
    row->alloc_bytes += tail->alloc_bytes;
    row->free_bytes += tail->free_bytes;
}

/* Count the tail step as a part of the step before, in chunks and rows. */
static void join_tail_step(struct tmk_reader *r)
{
    int64_t tail = r->defs.tail_step;
    uint64_t n_joined = 0, n = r->n_rows;
    if (tail == TMK_NO_STEP)
        return;
    for (uint32_t i = 0; i < r->n_chunks; i++) {
        struct tmk_chunk_header *h = &r->chunks[i].header;
        h->first_step -= h->first_step == tail;
        h->last_step -= h->last_step == tail;
    }
    for (uint64_t i = 0; i < n; i++) {
        struct tmk_step_row row = r->rows[i];
        r->n_rows = n_joined; /* those looked through */
        struct tmk_step_row *before =
            row.step == tail ? last_row_of(r, tail - 1, row.device) : NULL;
        if (before) {
            extend_row(before, &row);
            continue;
        }
        if (row.step == tail)
            row.step--;
        r->rows[n_joined++] = row;
    }
    r->n_rows = n_joined;
}

/* Takes the kept rows that ended before the last event read. */
static int take_kept_rows(struct tmk_reader *r)
{
    uint64_t end_ns = 0;
    for (uint32_t i = 0; i < r->n_chunks; i++)
        if (r->chunks[i].header.kind == TMK_CHUNK_EVENTS && r->chunks[i].header.end_ns > end_ns)
            end_ns = r->chunks[i].header.end_ns;
    for (uint64_t i = 0; i < r->n_kept_rows; i++)
        if (r->kept_rows[i].end_ns <= end_ns && add_trace_row(r, &r->kept_rows[i]) < 0)
            return TMK_ENOMEM;
    return 0;
}

/* Reads definitions and step rows of the chunks from number `first` on. */
static int read_permanent_from(struct tmk_reader *r, uint32_t first)
{
    bool some = false;
    for (uint32_t i = first; i < r->n_chunks; i++) {
        const struct tmk_chunk_header *h = &r->chunks[i].header;
        if (h->codec != 0 || (h->kind != TMK_CHUNK_DEFS && h->kind != TMK_CHUNK_STEPS))
            continue;
        struct tmk_view payload = {0};
        int rc = tmk_reader_payload(r, i, &payload, NULL);
        if (rc == 0)
            rc = h->kind == TMK_CHUNK_DEFS ? tmk_defs_read(&r->defs, payload)
                                           : read_step_rows(r, payload);
        if (rc == TMK_ENOMEM)
            return rc;
        some = true;
    }
    if (!some)
        return 0;
    sort_rows(r);
    join_tail_step(r);
    return tmk_defs_settle(&r->defs);
}

static int read_permanent(struct tmk_reader *r)
{
    r->n_rows = 0;
    int rc = take_kept_rows(r);
    if (rc == 0)
        rc = read_permanent_from(r, 0);
    sort_rows(r);
    return rc;
}

/* ---- opening and closing ---- */

static int open_trace_file(struct tmk_reader *r, const char *path, struct tmk_error *err)
{
    struct stat st;
    r->path = strdup(path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* opening a device may do something */
        return tmk_fail(err, TMK_EFORMAT, "%s is not a file", path);
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block the process */
    if (r->fd < 0 || fstat(r->fd, &st) < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open %s", path);
    if (!S_ISREG(st.st_mode))
        return tmk_fail(err, TMK_EFORMAT, "%s is not a file", path);
    r->file_bytes = (uint64_t)st.st_size;
    r->device = st.st_dev;
    r->inode = st.st_ino;
    return r->path ? 0 : tmk_fail(err, TMK_ENOMEM, "out of memory");
}

int tmk_reader_open(const char *path, struct tmk_reader **ret_reader, struct tmk_error *err)
{
    struct tmk_reader *r = calloc(1, sizeof *r);
    if (!r)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    r->fd = -1;
    int rc = open_trace_file(r, path, err);
    if (rc == 0)
        rc = read_trace_header(r, err);
    if (rc == 0 && (rc = tmk_defs_init(&r->defs)) < 0)
        tmk_fail(err, rc, "no address space for the tables");
    if (rc == 0 && (rc = scan_chunks(r)) == 0) {
        sort_chunks(r);
        rc = read_permanent(r);
    }
    if (rc < 0) {
        if (rc == TMK_ENOMEM)
            tmk_fail(err, rc, "out of memory");
        tmk_reader_close(r);
        return rc;
    }
    keep_or_release(r);
    *ret_reader = r;
    return 0;
}

struct tmk_reader *tmk_reader_close(struct tmk_reader *r)
{
    if (!r)
        return NULL;
    close_file(r);
    if (r->is_kept)
        atomic_fetch_sub(&n_kept, 1);
    tmk_defs_fini(&r->defs);
    free(r->rows);
    free(r->kept_rows);
    free(r->chunks);
    free(r->buffer);
    free(r->attached);
    free(r->path);
    free(r);
    return NULL;
}

static int list_attached(struct tmk_reader *r, size_t n)
{
    for (size_t at = 0; at + TMK_CHUNK_HEADER_BYTES <= n;) {
        struct tmk_chunk_ref ref = {.memory = r->attached + at + TMK_CHUNK_HEADER_BYTES};
        memcpy(&ref.header, r->attached + at, sizeof ref.header);
        if (!is_chunk_header(&ref.header) || at + tmk_chunk_bytes(ref.header.payload_bytes) > n)
            return TMK_EDAMAGED;
        if (add_chunk(r, &ref) < 0)
            return TMK_ENOMEM;
        at += (size_t)tmk_chunk_bytes(ref.header.payload_bytes);
    }
    return 0;
}

/* Keeps the rows read so far. In a file that is written round, rows of old steps may have moved
 * behind the last chunk that stays, or be overwritten by now. */
static int keep_rows(struct tmk_reader *r)
{
    int rc = 0;
    r->n_kept_rows = 0;
    for (uint64_t i = 0; rc == 0 && i < r->n_rows; i++)
        if (!r->rows[i].open)
            rc = append_step_row(&r->kept_rows, &r->n_kept_rows, &r->kept_room, &r->rows[i]);
    return rc;
}

int tmk_reader_attach(struct tmk_reader *r, uint8_t *bytes, size_t n, uint64_t last_seq,
                      struct tmk_error *err)
{
    int rc = keep_rows(r);
    free(r->attached);
    r->attached = bytes;
    forgive_torn_end(r);
    while (r->n_chunks > 0 && r->chunks[r->n_chunks - 1].header.seq > last_seq)
        r->n_chunks--;
    if (rc == 0)
        rc = list_attached(r, n);
    if (rc == 0) {
        sort_chunks(r);
        r->damage.n_chunks = 0; /* counted anew, without those that were left out */
        rc = read_permanent(r);
    }
    return rc < 0 ? tmk_fail(err, rc, "cannot take over the ring's events: %s", tmk_result_text(rc))
                  : 0;
}

void tmk_reader_set_status(struct tmk_reader *r, const struct tmk_status *status)
{
    r->status = *status;
}

/* ---- following ---- */

/* Whether the file has chunk `seq` at `offset`. The status names a chunk only when it is whole; a
 * later one may still be being written, so its checksum is looked at. */
static bool is_next_chunk(struct tmk_reader *r, uint64_t offset, uint64_t seq, uint64_t last_whole,
                          struct tmk_chunk_ref *ret)
{
    struct tmk_view payload;
    *ret = (struct tmk_chunk_ref){.offset = offset};
    return offset + TMK_CHUNK_HEADER_BYTES <= r->file_bytes &&
           read_exact(r, &ret->header, sizeof ret->header, offset) == 0 &&
           is_chunk_header(&ret->header) && ret->header.seq == seq &&
           offset + tmk_chunk_bytes(ret->header.payload_bytes) <= r->file_bytes &&
           (seq <= last_whole || get_payload(r, ret, &payload, NULL) == 0);
}

/* Adds the chunks that were written since. The file is open. */
static int add_new_chunks(struct tmk_reader *r, uint64_t last_whole)
{
    for (;;) {
        const struct tmk_chunk_ref *last = r->n_chunks ? &r->chunks[r->n_chunks - 1] : NULL;
        uint64_t seq = last ? last->header.seq + 1 : 1;
        uint64_t behind =
            last ? last->offset + tmk_chunk_bytes(last->header.payload_bytes) : r->first;
        struct tmk_chunk_ref ref;
        if (!is_next_chunk(r, behind, seq, last_whole, &ref) &&
            !is_next_chunk(r, r->first, seq, last_whole, &ref))
            return 0;
        if (add_chunk(r, &ref) < 0)
            return TMK_ENOMEM;
        uint64_t end = ref.offset + tmk_chunk_bytes(ref.header.payload_bytes);
        r->end = end > r->end ? end : r->end;
    }
}

static void drop_first_chunks(struct tmk_reader *r, uint32_t n)
{
    if (n > 0)
        memmove(r->chunks, r->chunks + n, (r->n_chunks - n) * sizeof *r->chunks);
    r->n_chunks -= n;
}

/* Drops chunks that the writer has given up, but the last one known: following goes on from it. */
static void drop_given_up(struct tmk_reader *r)
{
    uint32_t n = 0;
    while (n + 1 < r->n_chunks && r->chunks[n].header.seq < r->status.oldest_seq)
        n++;
    drop_first_chunks(r, n);
}

int tmk_reader_follow(struct tmk_reader *r, struct tmk_error *err)
{
    struct tmk_status status = {0};
    struct stat st;
    uint32_t before = r->n_chunks;
    int rc = acquire_file(r, err);
    if (rc < 0)
        return rc;
    bool has_status = read_status(r, &status); /* before the chunks, which may be ahead of it */
    if (fstat(r->fd, &st) == 0)
        r->file_bytes = (uint64_t)st.st_size;
    rc = add_new_chunks(r, status.last_seq);
    if (rc == 0)
        rc = read_permanent_from(r, before);
    release_file(r);
    if (rc < 0)
        return tmk_fail(err, rc, "cannot follow %s: %s", r->path, tmk_result_text(rc));
    int n_new = (int)(r->n_chunks - before);
    if (has_status) {
        r->status = status;
        uint64_t last = r->n_chunks ? r->chunks[r->n_chunks - 1].header.seq : 0;
        if (last < status.last_seq)
            return tmk_fail(err, TMK_EAGAIN, "%s was written round meanwhile", r->path);
        drop_given_up(r);
    }
    return n_new;
}

void tmk_reader_forget(struct tmk_reader *r, uint32_t most_chunks, uint64_t most_rows)
{
    if (r->n_chunks > most_chunks)
        drop_first_chunks(r, r->n_chunks - most_chunks);
    free(r->buffer);
    r->buffer = NULL;
    r->buffer_bytes = 0;
    if (r->n_rows <= most_rows)
        return;
    memmove(r->rows, r->rows + (r->n_rows - most_rows), (size_t)most_rows * sizeof *r->rows);
    r->n_rows = most_rows;
    if (r->row_room <= 4 * most_rows)
        return;
    struct tmk_step_row *smaller = realloc(r->rows, (size_t)(2 * most_rows) * sizeof *smaller);
    if (smaller) {
        r->rows = smaller;
        r->row_room = 2 * most_rows;
    }
}

/* ---- asking ---- */

const char *tmk_reader_path(const struct tmk_reader *r)
{
    return r->path;
}

const uint8_t *tmk_reader_trace_id(const struct tmk_reader *r)
{
    return r->header.trace_id;
}

const struct tmk_status *tmk_reader_status(const struct tmk_reader *r)
{
    return &r->status;
}

const struct tmk_damage *tmk_reader_damage(const struct tmk_reader *r)
{
    return &r->damage;
}

uint64_t tmk_reader_first(const struct tmk_reader *r)
{
    return r->first;
}

uint64_t tmk_reader_end(const struct tmk_reader *r)
{
    return r->end;
}

uint64_t tmk_reader_file_bytes(const struct tmk_reader *r)
{
    return r->file_bytes;
}

uint32_t tmk_reader_n_chunks(const struct tmk_reader *r)
{
    return r->n_chunks;
}

const struct tmk_chunk_ref *tmk_reader_chunk(const struct tmk_reader *r, uint32_t i)
{
    return &r->chunks[i];
}

const char *tmk_reader_info(const struct tmk_reader *r, const char *key)
{
    size_t n = strlen(key);
    const char *end = r->info + sizeof r->info;
    for (const char *line = r->info; line < end && *line; line += strlen(line) + 1)
        if (strncmp(line, key, n) == 0 && line[n] == '=')
            return line + n + 1;
    return NULL;
}

bool tmk_reader_info_u64(const struct tmk_reader *r, const char *key, uint64_t *ret)
{
    const char *text = tmk_reader_info(r, key);
    if (!text || *text < '0' || *text > '9')
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*end || errno)
        return false;
    *ret = value;
    return true;
}

const char *tmk_reader_string(const struct tmk_reader *r, uint32_t id)
{
    return tmk_defs_string(&r->defs, id);
}

bool tmk_reader_frame(const struct tmk_reader *r, uint32_t id, struct tmk_frame *ret)
{
    return tmk_defs_frame(&r->defs, id, ret);
}

bool tmk_reader_native(const struct tmk_reader *r, uint32_t frame, struct tmk_native *ret)
{
    return tmk_defs_native(&r->defs, frame, ret);
}

bool tmk_reader_stack(const struct tmk_reader *r, uint32_t id, struct tmk_stack *ret)
{
    return tmk_defs_stack(&r->defs, id, ret);
}

bool tmk_reader_thread(const struct tmk_reader *r, uint32_t id, struct tmk_thread_info *ret)
{
    return tmk_defs_thread(&r->defs, id, ret);
}

bool tmk_reader_stream(const struct tmk_reader *r, uint32_t id, struct tmk_stream *ret)
{
    return tmk_defs_stream(&r->defs, id, ret);
}

bool tmk_reader_parameter(const struct tmk_reader *r, uint32_t id, struct tmk_parameter *ret)
{
    return tmk_defs_parameter(&r->defs, id, ret);
}

const char *tmk_reader_class(const struct tmk_reader *r, uint32_t name)
{
    return tmk_defs_class(&r->defs, name);
}

uint32_t tmk_reader_n_strings(const struct tmk_reader *r)
{
    return r->defs.strings.n;
}

uint32_t tmk_reader_n_frames(const struct tmk_reader *r)
{
    return r->defs.frames.n;
}

uint32_t tmk_reader_n_stacks(const struct tmk_reader *r)
{
    return r->defs.stacks.n;
}

uint32_t tmk_reader_n_parameters(const struct tmk_reader *r)
{
    return r->defs.parameters.n;
}

int64_t tmk_reader_tail_step(const struct tmk_reader *r)
{
    return r->defs.tail_step;
}

uint64_t tmk_reader_n_step_rows(const struct tmk_reader *r)
{
    return r->n_rows;
}

const struct tmk_step_row *tmk_reader_step_row(const struct tmk_reader *r, uint64_t i)
{
    return &r->rows[i];
}
