/* SPDX-License-Identifier: MIT */
/* trace/merge.c - see merge.h.
 *
 * Merging is resuming: rebuild the packer's state by replaying the trace (from its last
 * checkpoint), then drain the ring through the same packer into the same file. The pages themselves
 * say which records the file already has. */
#include "trace/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32.h"
#include "base/text.h"
#include "base/wire.h"
#include "trace/account.h"
#include "trace/disk_share.h"
#include "trace/drain.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/replay.h"
#include "trace/ring.h"
#include "trace/ring_file.h"
#include "trace/state.h"
#include "trace/writer.h"

enum { OWN_LOOKS = 50, FOREIGN_LOOKS = 3, LOOK_WAIT_NS = 10000000 };
static const uint64_t lock_limit_ns = 1000000000u;
static const uint64_t busy_limit_ns = 500000000u; /* for the packer of a living process */

/* ---- state from trace ---- */

/* The last row that the file has: rows up to it need not be written again. */
static uint64_t last_row(const struct tmk_reader *r)
{
    uint64_t n = tmk_reader_n_step_rows(r);
    while (n > 0 && tmk_reader_step_row(r, n - 1)->open)
        n--;
    return n ? tmk_reader_step_row(r, n - 1)->ordinal : 0;
}

static uint64_t permanent_bytes(const struct tmk_reader *r)
{
    uint64_t n_bytes = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        n_bytes += h->flags & TMK_CHUNK_PERMANENT ? tmk_chunk_bytes(h->payload_bytes) : 0;
    }
    return n_bytes;
}

/* Fill the packer's state as it was when the last chunk was written. The state is the replay's:
 * swap them, since tables are regions and cannot be copied. */
static int restore_packer(struct tmk_packer *packer, struct tmk_reader *r, struct tmk_error *err)
{
    struct tmk_replay rp;
    int rc = tmk_replay_init(&rp, &tmk_state_limits_tool);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to replay the trace");
    struct tmk_state *s = tmk_packer_state(packer);
    struct tmk_visitor nobody = {0};
    tmk_packer_skip_rows(packer, last_row(r)); /* the last events' rows may not be there yet */
    tmk_packer_count_permanent(packer, permanent_bytes(r));
    rp.from_newest = true;
    rp.state.on_step_row = s->on_step_row;
    rp.state.on_step_row_arg = s->on_step_row_arg;
    rc = tmk_replay_run(&rp, r, &nobody, err);
    if (rc == 0) {
        struct tmk_state fresh = *s;
        *s = rp.state;
        rp.state = fresh;
        if (s->n_untracked < tmk_reader_status(r)->n_untracked)
            s->n_untracked = tmk_reader_status(r)->n_untracked;
        if (s->n_untracked < s->n_outside) /* their frees cannot be subtracted from now on */
            s->n_untracked = s->n_outside;
    }
    tmk_replay_fini(&rp);
    return rc;
}

static int drain_ring(struct tmk_ring *ring, int ring_fd, struct tmk_packer *packer,
                      uint64_t last_seq)
{
    struct tmk_drain *drain = NULL;
    int rc = tmk_drain_open(ring, packer, false, &drain);
    if (rc < 0)
        return rc;
    tmk_drain_skip_packed(drain, last_seq);
    tmk_drain_take_until(drain, ring->copied_ticks);
    tmk_drain_keep_marks(drain, ring_fd);
    rc = tmk_drain_run(drain);
    tmk_packer_on_commit(packer, NULL, NULL);
    tmk_drain_close(drain);
    return rc == 0 ? tmk_packer_finish(packer) : rc;
}

/* Packs the ring into the trace. `ring` is a copy; progress is noted in its file `ring_fd` unless
 * that is -1. */
static int pack_ring(struct tmk_reader *r, struct tmk_ring *ring, int ring_fd,
                     const struct tmk_chunk_out *out, uint64_t max_size,
                     struct tmk_state **ret_state, struct tmk_packer **ret_packer,
                     struct tmk_error *err)
{
    struct tmk_packer_options options = tmk_packer_options_for(max_size, &tmk_state_limits_tool);
    uint32_t n = tmk_reader_n_chunks(r);
    uint64_t last_seq = n ? tmk_reader_chunk(r, n - 1)->header.seq : 0;
    struct tmk_packer *packer = NULL;
    int rc = tmk_packer_open(&options, out, &packer);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to merge the ring");
    rc = restore_packer(packer, r, err);
    if (rc == 0 && (rc = drain_ring(ring, ring_fd, packer, last_seq)) < 0)
        tmk_fail(err, rc, "cannot merge the ring: %s", tmk_result_text(rc));
    if (rc < 0) {
        tmk_packer_close(packer);
        return rc;
    }
    *ret_state = tmk_packer_state(packer);
    *ret_packer = packer;
    return 0;
}

static bool is_ring_of(const struct tmk_reader *r, const struct tmk_ring *ring)
{
    return memcmp(ring->header->trace_id, tmk_reader_trace_id(r), 16) == 0;
}

/* ---- settling ---- */

/* Leaves out chunks at the end when the process died before their payload was all written: in a
 * file written round, the header of such a chunk stands before bytes of an older one. */
static int drop_torn(struct tmk_reader *r, struct tmk_error *err)
{
    uint32_t n = tmk_reader_n_chunks(r);
    while (n > 0 && tmk_reader_is_torn(r, n - 1))
        n--;
    uint64_t last_seq = n ? tmk_reader_chunk(r, n - 1)->header.seq : 0;
    return n == tmk_reader_n_chunks(r) ? 0 : tmk_reader_attach(r, NULL, 0, last_seq, err);
}

/* The status with the place of the next chunk: the one in the file may be one chunk behind. */
static struct tmk_status current_status(const struct tmk_reader *r)
{
    struct tmk_status s = *tmk_reader_status(r);
    if (tmk_reader_damage(r)->status_lost) {
        s = (struct tmk_status){.tail = tmk_reader_first(r), .oldest_seq = 1};
        s.head = tmk_reader_end(r);
    }
    uint32_t n = tmk_reader_n_chunks(r);
    if (n > 0) {
        const struct tmk_chunk_ref *last = tmk_reader_chunk(r, n - 1);
        s.last_seq = last->header.seq;
        s.head = last->offset + tmk_chunk_bytes(last->header.payload_bytes);
    }
    return s;
}

/* Opens the trace that was read, and no other: another user who may change a folder on its path may
 * have put another file of this user there. */
static int open_to_write(const struct tmk_reader *r, int *ret_fd, struct tmk_error *err)
{
    struct stat st;
    int rc = tmk_reader_open_again(r, O_RDWR | O_NOFOLLOW, ret_fd, err);
    if (rc < 0 || (fstat(*ret_fd, &st) == 0 && st.st_uid == geteuid()))
        return rc;
    close(*ret_fd);
    return tmk_fail(err, TMK_EIO, "%s is another user's", tmk_reader_path(r));
}

static int settle_with(struct tmk_reader *r, struct tmk_ring *ring, int ring_fd,
                       struct tmk_error *err)
{
    uint64_t max_size = 0;
    tmk_reader_info_u64(r, "max_size", &max_size);
    struct tmk_status status = current_status(r);
    struct tmk_writer writer;
    int fd, rc = open_to_write(r, &fd, err);
    if (rc == 0)
        rc = tmk_writer_resume(&writer, fd, tmk_reader_path(r), &status, tmk_reader_first(r),
                               tmk_reader_end(r), max_size, err);
    if (rc < 0)
        return rc;
    struct tmk_chunk_out out = tmk_writer_out(&writer);
    struct tmk_state *state = NULL;
    struct tmk_packer *packer = NULL;
    rc = pack_ring(r, ring, ring_fd, &out, max_size, &state, &packer, err);
    if (rc == 0) {
        if (writer.status.state == TMK_STATE_OPEN)
            writer.status.state = TMK_STATE_CLOSED;
        writer.status.flags |= TMK_STATUS_MERGED;
        rc = tmk_writer_put_status(&writer, state);
    }
    if (rc < 0 && writer.error.text[0] && err)
        *err = writer.error;
    tmk_packer_close(packer);
    tmk_writer_close(&writer);
    return rc;
}

/* Copy the ring and pack it into the trace, which `r` has read. */
static int settle_ring(struct tmk_reader *r, const struct tmk_ring_file *file,
                       struct tmk_error *err)
{
    struct tmk_ring ring = {0};
    int rc = tmk_ring_copy(&ring, file->fd, file->name, false, 0, err);
    if (rc == 0 && !is_ring_of(r, &ring))
        rc = tmk_fail(err, TMK_EFORMAT, "%s is the ring of another trace", file->name);
    if (rc == 0 && tmk_reader_status(r)->state == TMK_STATE_OPEN) {
        rc = drop_torn(r, err);
        if (rc == 0)
            rc = settle_with(r, &ring, file->fd, err);
    }
    tmk_ring_close(&ring);
    return rc;
}

/* The path without its last part, in `buffer`. */
static const char *trace_folder_of(const char *path, char *buffer, size_t size)
{
    const char *slash = strrchr(path, '/');
    struct tmk_text text;
    tmk_text_init(&text, buffer, size);
    tmk_text_bytes(&text, slash ? path : ".", slash ? (size_t)(slash - path) : 1);
    return buffer;
}

/* ---- the run's share ---- */

/* A dead process's part of its run's share of memory and disk: its ring, and the bytes by which its
 * trace grows. */
struct ring_share {
    struct tmk_account account;
    struct tmk_disk_share disk;
    char folder[TMK_RING_PATH_BYTES]; /* of the run, as the process called it */
    uint64_t ring_bytes;
    bool ring_is_on_disk;
    uint64_t taken_bytes; /* of the disk, for what is in the ring */
};

static bool is_same_folder(const char *a, const char *b)
{
    struct stat st_a, st_b;
    return stat(a, &st_a) == 0 && stat(b, &st_b) == 0 && st_a.st_dev == st_b.st_dev &&
           st_a.st_ino == st_b.st_ino;
}

/* The folder of the trace: an account's name is made of it as the process that made it said it. */
static void name_run_folder(struct ring_share *s, const char *said_path, const char *trace_path)
{
    char now[TMK_RING_PATH_BYTES], whole[PATH_MAX];
    trace_folder_of(trace_path, now, sizeof now);
    trace_folder_of(said_path, s->folder, sizeof s->folder);
    if (!is_same_folder(s->folder, now) && realpath(now, whole) && strlen(whole) < sizeof s->folder)
        strcpy(s->folder, whole); /* it was moved */
}

static int open_share(struct ring_share *s, const struct tmk_ring_file *file,
                      const struct tmk_ring_header *header, const char *ring_path,
                      const char *trace_path, struct tmk_error *err)
{
    struct tmk_ring_folders folders;
    char ring_folder[TMK_RING_PATH_BYTES];
    const char *all[TMK_RING_FOLDERS + 1] = {
        trace_folder_of(ring_path, ring_folder, sizeof ring_folder)};
    struct stat st, st_ring;
    tmk_ring_folders(&folders);
    memcpy(all + 1, folders.paths, folders.n * sizeof *all);
    *s = (struct ring_share){.disk.fd = -1, .ring_bytes = tmk_ring_bytes(header->n_pages)};
    name_run_folder(s, header->trace_path, trace_path);
    s->ring_is_on_disk = fstat(file->folder, &st_ring) == 0 && stat(s->folder, &st) == 0 &&
                         st.st_dev == st_ring.st_dev && st.st_ino == st_ring.st_ino;
    int rc = tmk_account_open(&s->account, all, folders.n + 1, s->folder, err);
    if (rc == 0)
        rc = tmk_disk_share_open(&s->disk, s->folder, 0, err);
    return rc;
}

static void close_share(struct ring_share *s)
{
    tmk_disk_share_close(&s->disk);
    tmk_account_close(&s->account);
}

/* The bytes by which the trace may grow: none when the ring is in it already. Records take more
 * bytes in the ring than in a trace, and a trace that is written round does not grow. */
static uint64_t most_growth(const struct tmk_reader *r, const struct tmk_ring_file *file,
                            uint32_t n_pages)
{
    uint64_t need = (uint64_t)tmk_ring_file_n_used(file, n_pages) * TMK_PAGE_BYTES;
    uint64_t max_size = 0, now = tmk_reader_file_bytes(r);
    if (tmk_reader_status(r)->state != TMK_STATE_OPEN)
        return 0;
    if (tmk_reader_info_u64(r, "max_size", &max_size) && max_size > 0) {
        uint64_t left = max_size > now ? max_size - now : 0;
        need = need < left ? need : left;
    }
    return need;
}

/* Takes disk space for the ring's records. A ring on the disk makes room itself. */
static bool take_ring_room(struct ring_share *s, uint64_t need)
{
    s->taken_bytes = need;
    if (s->ring_is_on_disk)
        tmk_disk_share_give(&s->disk, s->ring_bytes);
    bool taken = tmk_disk_share_take(&s->disk, need);
    if (!taken && s->ring_is_on_disk)
        tmk_disk_share_put(&s->disk, s->ring_bytes);
    return taken;
}

/* Counts the bytes by which the trace has grown, and the ring if it still exists. */
static void settle_share(struct ring_share *s, uint64_t grown_bytes, bool ring_is_gone)
{
    tmk_disk_share_put(&s->disk, grown_bytes);
    tmk_disk_share_give(&s->disk, s->taken_bytes);
    if (ring_is_gone && !s->ring_is_on_disk)
        tmk_account_give_memory(&s->account, s->ring_bytes);
    if (!ring_is_gone && s->ring_is_on_disk)
        tmk_disk_share_put(&s->disk, s->ring_bytes);
}

/* Removes the ring, and the file that a failed move of the ring left beside the trace
 * (ring_rescue.h). */
static bool drop_ring(const struct tmk_ring_file *file, const char *run_folder)
{
    char part[TMK_RING_NAME_BYTES + 8];
    struct tmk_text text;
    int beside = open(run_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    tmk_text_init(&text, part, sizeof part);
    tmk_text_add(&text, "%s.part", file->name);
    if (beside >= 0) {
        unlinkat(beside, part, 0);
        close(beside);
    }
    return tmk_ring_file_remove(file);
}

static int settle_in_share(struct ring_share *s, struct tmk_reader *r,
                           const struct tmk_ring_file *file, uint32_t n_pages,
                           struct tmk_error *err)
{
    struct stat st;
    uint64_t before = tmk_reader_file_bytes(r);
    if (!take_ring_room(s, most_growth(r, file, n_pages)))
        return tmk_fail(err, TMK_EFULL, "the run's share of the disk has no room for what is in %s",
                        file->name);
    int rc = settle_ring(r, file, err);
    bool gone = rc == 0 && drop_ring(file, s->folder);
    uint64_t now = stat(tmk_reader_path(r), &st) == 0 ? (uint64_t)st.st_size : before;
    settle_share(s, now > before ? now - before : 0, gone);
    return rc < 0 ? rc : 1;
}

/* Settles a ring that the caller has locked. An earlier reading of the trace may be old: read it
 * now. */
static int settle_locked(const char *path, const struct tmk_ring_file *file, const char *ring_path,
                         struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    struct tmk_ring_header header;
    struct ring_share share;
    if (!tmk_ring_file_header(file, &header))
        return tmk_fail(err, TMK_EFORMAT, "%s is not a ring of tidemark's", file->name);
    int rc = tmk_reader_open(path, &r, err);
    if (rc == 0) {
        rc = open_share(&share, file, &header, ring_path, path, err);
        if (rc == 0)
            rc = settle_in_share(&share, r, file, header.n_pages, err);
        close_share(&share);
    }
    tmk_reader_close(r);
    return rc;
}

/* Removes the control socket of a process that was killed. A trace may name anything, so the socket
 * must be the caller's, have that process's name, lie in a folder that is the caller's alone, and
 * have no listener. */
static void remove_socket(const char *path, uint64_t pid)
{
    char folder_path[512], name[48];
    struct tmk_text text;
    struct stat st;
    const char *slash = strrchr(path, '/');
    tmk_text_init(&text, name, sizeof name);
    tmk_text_add(&text, "tidemark.%llu.", (unsigned long long)pid);
    if (!slash || slash == path || strncmp(slash + 1, name, text.length) != 0)
        return;
    int folder = open(trace_folder_of(path, folder_path, sizeof folder_path),
                      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    bool own = fstat(folder, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 022) == 0 &&
               fstatat(folder, slash + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode) &&
               st.st_uid == geteuid();
    int fd = own ? tmk_wire_connect(folder, slash + 1) : -1;
    if (fd >= 0)
        close(fd);
    else if (own && errno == ECONNREFUSED)
        unlinkat(folder, slash + 1, 0);
    close(folder);
}

static bool is_own_trace(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* The other files of the process, as the header of its trace names them. */
struct named_files {
    char ring[TMK_RING_PATH_BYTES]; /* "": none */
    char control[512];
    uint64_t pid;
};

static void copy_info(const struct tmk_reader *r, const char *key, char *to, size_t size)
{
    const char *value = tmk_reader_info(r, key);
    if (value && strlen(value) < size)
        strcpy(to, value);
}

static int read_named_files(const char *path, struct named_files *ret, struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    *ret = (struct named_files){0};
    int rc = tmk_reader_open(path, &r, err);
    if (rc < 0)
        return rc;
    copy_info(r, "ring", ret->ring, sizeof ret->ring);
    copy_info(r, "control", ret->control, sizeof ret->control);
    tmk_reader_info_u64(r, "pid", &ret->pid);
    tmk_reader_close(r);
    return 0;
}

/* Removes the account of a run without processes: it stays when `run` was killed. */
static void drop_account(const char *trace_path)
{
    char folder[TMK_RING_PATH_BYTES], whole[PATH_MAX];
    if (realpath(trace_folder_of(trace_path, folder, sizeof folder), whole))
        tmk_account_drop_idle(whole);
}

/* Another user's trace or ring stays as it is, and so does one that another process has: their
 * events are read without moving them. */
int tmk_merge_settle(const char *path, struct tmk_error *err)
{
    struct named_files named;
    struct tmk_ring_file file;
    int rc = read_named_files(path, &named, err);
    if (rc < 0)
        return rc;
    if (!named.ring[0] || !is_own_trace(path))
        return 0;
    if (!tmk_ring_file_find(&file, named.ring, path, true)) {
        drop_account(path);
        return 0;
    }
    if (tmk_ring_file_is_own(&file) && tmk_ring_file_is_held(&file) == 0 &&
        tmk_ring_file_lock(&file, lock_limit_ns) == 0)
        rc = settle_locked(path, &file, named.ring, err);
    if (rc > 0)
        remove_socket(named.control, named.pid);
    tmk_ring_file_close(&file);
    return rc;
}

/* ---- reading beside a living process ---- */

struct memory_out { /* chunks into memory; the reader takes the buffer */
    uint8_t *bytes;
    size_t n, room;
    uint64_t seq;
};

static int memory_reserve(void *arg, size_t payload_bytes, uint64_t *ret_seq)
{
    struct memory_out *m = arg;
    size_t need = m->n + TMK_CHUNK_HEADER_BYTES + payload_bytes + 8 + 16;
    if (need > m->room) {
        uint8_t *bigger = realloc(m->bytes, need * 2);
        if (!bigger)
            return TMK_ENOMEM;
        m->bytes = bigger;
        m->room = need * 2;
    }
    *ret_seq = m->seq + 1;
    return 0;
}

static int memory_append(void *arg, struct tmk_chunk_header *h, const uint8_t *payload)
{
    struct memory_out *m = arg;
    h->seq = ++m->seq;
    h->payload_crc = tmk_crc32(0, payload, h->payload_bytes);
    h->header_crc = tmk_crc32(0, h, offsetof(struct tmk_chunk_header, header_crc));
    memcpy(m->bytes + m->n, h, sizeof *h);
    memcpy(m->bytes + m->n + sizeof *h, payload, h->payload_bytes);
    size_t end = m->n + sizeof *h + h->payload_bytes;
    m->n = (end + 7) & ~(size_t)7;
    memset(m->bytes + end, 0, m->n - end + 16);
    return 0;
}

/* Counts the attached events. With the ring of a dead process the trace is as whole as after a
 * merge. */
static void count_attached(struct tmk_reader *r, const struct tmk_state *state, bool live)
{
    struct tmk_status status = *tmk_reader_status(r);
    tmk_status_count(&status, state);
    if (!live) {
        status.state = TMK_STATE_CLOSED;
        status.flags |= TMK_STATUS_MERGED;
    }
    tmk_reader_set_status(r, &status);
}

/* Packs the ring's events into memory, to follow the chunks that the ring's header names: the
 * process or a merger may have moved more events meanwhile. When a process died while it moved some
 * (the epoch is odd), the header has the number from before that. Until a merger has written there,
 * and while this process has the merger's lock, the file has not changed since that death: all its
 * chunks count, except a torn one at the end. */
static int attach_ring(struct tmk_reader *r, struct tmk_ring *ring, bool live, bool is_locked,
                       struct tmk_error *err)
{
    bool rests = is_locked || (!live && (atomic_load(&ring->header->epoch) & 1));
    int rc = rests ? drop_torn(r, err) : 0;
    if (rc < 0)
        return rc;
    uint32_t n = tmk_reader_n_chunks(r);
    uint64_t last = rests ? UINT64_MAX : atomic_load(&ring->header->last_seq);
    if (n > 0 && tmk_reader_chunk(r, n - 1)->header.seq < last)
        last = tmk_reader_chunk(r, n - 1)->header.seq;
    struct memory_out memory = {.seq = n ? last : 0};
    rc = tmk_reader_attach(r, NULL, 0, n ? last : 0, err);
    if (rc < 0)
        return rc;
    struct tmk_chunk_out out = {memory_reserve, memory_append, &memory};
    struct tmk_state *state = NULL;
    struct tmk_packer *packer = NULL;
    rc = pack_ring(r, ring, -1, &out, 0, &state, &packer, err);
    if (rc == 0)
        count_attached(r, state, live);
    tmk_packer_close(packer);
    if (rc < 0) {
        free(memory.bytes);
        return rc;
    }
    return tmk_reader_attach(r, memory.bytes, memory.n, n ? last : 0, err);
}

/* Copies the ring. A foreign ring may be made to look busy for ever: the time for all of them
 * together is bounded. */
static bool copy_ring(struct tmk_ring *ret, const struct tmk_ring_file *file, bool live)
{
    static _Atomic uint64_t foreign_wait_ns = 500000000u;
    if (tmk_ring_file_is_own(file))
        return tmk_ring_copy(ret, file->fd, file->name, live, busy_limit_ns, NULL) == 0;
    uint64_t start = tmk_clock_monotonic_ns(), left = atomic_load(&foreign_wait_ns);
    int rc = tmk_ring_copy(ret, file->fd, file->name, live, left, NULL);
    uint64_t spent = tmk_clock_monotonic_ns() - start;
    atomic_store(&foreign_wait_ns, spent < left ? left - spent : 0);
    return rc == 0;
}

/* Copies the ring, then reads the trace: records that the ring no longer has are in the trace.
 * Returns 1 when a merger has moved records in between. */
static int look_at_both(const char *path, const struct tmk_ring_file *file, bool live,
                        struct tmk_ring *ret_ring, struct tmk_reader **ret_reader,
                        struct tmk_error *err)
{
    bool has_ring = file && copy_ring(ret_ring, file, live);
    int rc = tmk_reader_open(path, ret_reader, err);
    if (rc == 0 && has_ring && !live && tmk_ring_has_moved(ret_ring, file->fd))
        rc = 1;
    if (rc != 0)
        tmk_ring_close(ret_ring);
    return rc;
}

/* Does the same until nothing moves; when that never comes, the result is a trace and no ring. */
static int read_both(const char *path, const struct tmk_ring_file *file, bool live,
                     struct tmk_ring *ret_ring, struct tmk_reader **ret_reader,
                     struct tmk_error *err)
{
    unsigned n_looks = file && tmk_ring_file_is_own(file) ? OWN_LOOKS : FOREIGN_LOOKS;
    int rc;
    while ((rc = look_at_both(path, file, live, ret_ring, ret_reader, err)) > 0 && --n_looks > 0) {
        *ret_reader = tmk_reader_close(*ret_reader);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_WAIT_NS}, NULL);
    }
    return rc < 0 ? rc : 0;
}

/* Reads the trace together with a copy of its ring. While the ring is locked, nobody else merges. A
 * ring that cannot be locked (another process merges, or it may only be read) is read between two
 * steps of the merger. */
static int open_with_ring(const char *path, const struct tmk_ring_file *file,
                          struct tmk_reader **ret_reader, bool *ret_live, struct tmk_error *err)
{
    struct tmk_ring ring = {0};
    struct tmk_reader *r = NULL;
    bool live = file && tmk_ring_file_is_held(file) > 0;
    bool is_locked =
        file && !live && tmk_ring_file_is_own(file) && tmk_ring_file_lock(file, 0) == 0;
    int rc = read_both(path, file, live, &ring, &r, err);
    bool is_open = rc == 0 && tmk_reader_status(r)->state == TMK_STATE_OPEN;
    if (is_open && ring.header && is_ring_of(r, &ring))
        rc = attach_ring(r, &ring, live, is_locked, err);
    tmk_ring_close(&ring);
    if (rc < 0) {
        tmk_reader_close(r);
        return rc;
    }
    *ret_live = live && is_open;
    *ret_reader = r;
    return 0;
}

int tmk_merge_open_beside(const char *path, const char *ring_path, struct tmk_reader **ret_reader,
                          bool *ret_live, struct tmk_error *err)
{
    struct tmk_ring_file file = {.folder = -1, .fd = -1};
    bool found = tmk_ring_file_open(&file, ring_path, NULL) == 0;
    int rc = open_with_ring(path, found ? &file : NULL, ret_reader, ret_live, err);
    tmk_ring_file_close(&file);
    return rc;
}

int tmk_merge_open(const char *path, struct tmk_reader **ret_reader, bool *ret_live,
                   struct tmk_error *err)
{
    (void)tmk_merge_settle(path, NULL); /* what cannot be settled is attached below */
    struct tmk_reader *r = NULL;
    int rc = tmk_reader_open(path, &r, err);
    if (rc < 0)
        return rc;
    bool live = false;
    struct tmk_ring_file file;
    const char *ring_path = tmk_reader_info(r, "ring");
    if (ring_path && tmk_reader_status(r)->state == TMK_STATE_OPEN &&
        tmk_ring_file_find(&file, ring_path, path, is_own_trace(path))) {
        struct tmk_reader *both = NULL;
        rc = open_with_ring(path, &file, &both, &live, err);
        tmk_ring_file_close(&file);
        tmk_reader_close(r);
        r = both;
    }
    if (rc < 0)
        return rc;
    if (ret_live)
        *ret_live = live;
    *ret_reader = r;
    return 0;
}
