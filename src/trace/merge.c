/* SPDX-License-Identifier: MIT */
/* trace/merge.c - see merge.h.
 *
 * Merging is resuming: rebuild the packer's state by replaying the trace (from its last
 * checkpoint), then drain the ring through the same packer into the same file. Which records the
 * file already has is said by the pages themselves. */
#include "trace/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32.h"
#include "base/text.h"
#include "base/wire.h"
#include "trace/drain.h"
#include "trace/replay.h"
#include "trace/snapshot.h"
#include "trace/writer.h"

enum { LOCK_TRIES = 5000, LOCK_WAIT_NS = 2000000 }; /* ten seconds */

/* ---- state from trace ---- */

/* Rows that the file has already need not be written again. */
static uint64_t last_row(const struct tmk_reader *r)
{
    uint64_t n = tmk_reader_n_step_rows(r);
    while (n > 0 && tmk_reader_step_row(r, n - 1)->open)
        n--;
    return n ? tmk_reader_step_row(r, n - 1)->ordinal : 0;
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

/* `ring` is a copy; what is done is noted in its file `ring_fd` unless that is -1. */
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

/* Leave out chunks at the end whose payload was not all written when the process died: in a file
 * written round, the header of such a chunk stands over bytes of an older one. */
static int drop_torn(struct tmk_reader *r, struct tmk_error *err)
{
    uint32_t n = tmk_reader_n_chunks(r);
    struct tmk_view payload;
    while (n > 0 && tmk_reader_payload(r, n - 1, &payload, NULL) == TMK_EDAMAGED)
        n--;
    uint64_t last_seq = n ? tmk_reader_chunk(r, n - 1)->header.seq : 0;
    return n == tmk_reader_n_chunks(r) ? 0 : tmk_reader_attach(r, NULL, 0, last_seq, err);
}

/* Where the next chunk goes: the status may be one chunk behind the file. */
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

static int settle_with(struct tmk_reader *r, struct tmk_ring *ring, int ring_fd,
                       struct tmk_error *err)
{
    uint64_t max_size = 0;
    tmk_reader_info_u64(r, "max_size", &max_size);
    struct tmk_status status = current_status(r);
    struct tmk_writer writer;
    int rc = tmk_writer_resume(&writer, tmk_reader_path(r), &status, tmk_reader_first(r),
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

/* Lock the ring so that of several readers one merges; the others wait until it has. The lock is of
 * the open file, not of the process: that would go away with the first descriptor closed. */
static int lock_ring(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? TMK_EBUSY : TMK_EIO;
    for (int try = 0; try < LOCK_TRIES; try++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
        struct stat st;
        if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
            nanosleep(&(struct timespec){.tv_nsec = LOCK_WAIT_NS}, NULL);
            continue;
        }
        if (fstat(fd, &st) == 0 && st.st_nlink > 0)
            return fd;
        break; /* merged meanwhile */
    }
    close(fd);
    return TMK_EBUSY;
}

/* `r` was read before the ring was locked; read again under the lock. */
static int settle_locked(const char *path, const char *ring_path, int ring_fd,
                         struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    struct tmk_ring ring = {.fd = -1};
    int rc = tmk_reader_open(path, &r, err);
    if (rc == 0)
        rc = tmk_ring_copy(&ring, ring_path, false, err);
    if (rc == 0 && !is_ring_of(r, &ring))
        rc = tmk_fail(err, TMK_EFORMAT, "%s is the ring of another trace", ring_path);
    if (rc == 0 && tmk_reader_status(r)->state == TMK_STATE_OPEN) {
        rc = drop_torn(r, err);
        if (rc == 0)
            rc = settle_with(r, &ring, ring_fd, err);
    }
    if (rc == 0)
        unlink(ring_path);
    tmk_ring_close(&ring);
    tmk_reader_close(r);
    return rc < 0 ? rc : 1;
}

/* The control socket of a process that was killed. A trace may name anything: only a socket of that
 * process's name at which nobody listens is removed. */
static void remove_socket(const char *path, uint64_t pid)
{
    char folder_path[512], name[48];
    struct tmk_text text;
    const char *slash = strrchr(path, '/');
    tmk_text_init(&text, name, sizeof name);
    tmk_text_add(&text, "tidemark.%llu.", (unsigned long long)pid);
    if (!slash || slash == path || strncmp(slash + 1, name, text.length) != 0)
        return;
    tmk_text_init(&text, folder_path, sizeof folder_path);
    tmk_text_bytes(&text, path, (size_t)(slash - path));
    int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    int fd = tmk_wire_connect(folder, slash + 1);
    if (fd >= 0)
        close(fd);
    else if (errno == ECONNREFUSED)
        unlinkat(folder, slash + 1, 0);
    close(folder);
}

int tmk_merge_settle(const char *path, struct tmk_error *err)
{
    struct tmk_reader *r = NULL;
    int rc = tmk_reader_open(path, &r, err);
    if (rc < 0)
        return rc;
    char ring_path[3584];
    const char *named = tmk_reader_info(r, "ring");
    bool has_ring = named && strlen(named) < sizeof ring_path;
    if (has_ring)
        strcpy(ring_path, named);
    char control[512] = "";
    uint64_t pid = 0;
    const char *socket_named = tmk_reader_info(r, "control");
    if (socket_named && strlen(socket_named) < sizeof control &&
        tmk_reader_info_u64(r, "pid", &pid))
        strcpy(control, socket_named);
    tmk_reader_close(r);
    if (!has_ring || access(ring_path, F_OK) < 0)
        return 0;
    int fd = tmk_ring_is_held(ring_path) > 0 ? TMK_EBUSY : lock_ring(ring_path);
    if (fd == TMK_EBUSY)
        return 0;
    if (fd < 0)
        return tmk_fail(err, fd, "cannot open the ring %s", ring_path);
    rc = settle_locked(path, ring_path, fd, err);
    close(fd);
    if (rc > 0)
        remove_socket(control, pid);
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

/* Pack the ring's events into memory behind the chunks that were in the file when it was copied. */
static int attach_ring(struct tmk_reader *r, struct tmk_ring *ring, bool live,
                       struct tmk_error *err)
{
    uint32_t n = tmk_reader_n_chunks(r);
    uint64_t last = live ? atomic_load(&ring->header->last_seq) : UINT64_MAX;
    if (n > 0 && tmk_reader_chunk(r, n - 1)->header.seq < last)
        last = tmk_reader_chunk(r, n - 1)->header.seq;
    struct memory_out memory = {.seq = n ? last : 0};
    int rc = tmk_reader_attach(r, NULL, 0, n ? last : 0, err);
    if (rc < 0)
        return rc;
    struct tmk_chunk_out out = {memory_reserve, memory_append, &memory};
    struct tmk_state *state = NULL;
    struct tmk_packer *packer = NULL;
    rc = pack_ring(r, ring, -1, &out, 0, &state, &packer, err);
    tmk_packer_close(packer);
    if (rc < 0) {
        free(memory.bytes);
        return rc;
    }
    return tmk_reader_attach(r, memory.bytes, memory.n, n ? last : 0, err);
}

/* Read the trace together with a copy of its ring. The trace is read after the ring was copied, or
 * found gone: what the ring no longer has, the trace has. */
static int open_with_ring(const char *path, const char *ring_path, struct tmk_reader **ret_reader,
                          bool *ret_live, struct tmk_error *err)
{
    struct tmk_ring ring = {.fd = -1};
    struct tmk_reader *r = NULL;
    bool live = tmk_ring_is_held(ring_path) > 0;
    bool has_ring = tmk_ring_copy(&ring, ring_path, live, NULL) == 0;
    int rc = tmk_reader_open(path, &r, err);
    bool is_open = rc == 0 && tmk_reader_status(r)->state == TMK_STATE_OPEN;
    if (is_open && has_ring && is_ring_of(r, &ring))
        rc = attach_ring(r, &ring, live, err);
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
    return open_with_ring(path, ring_path, ret_reader, ret_live, err);
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
    const char *ring_path = tmk_reader_info(r, "ring");
    if (ring_path && tmk_reader_status(r)->state == TMK_STATE_OPEN) {
        struct tmk_reader *both = NULL;
        rc = open_with_ring(path, ring_path, &both, &live, err);
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
