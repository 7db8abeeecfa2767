/* SPDX-License-Identifier: MIT */
/* record/packer_thread.c - the helper thread: makes ring and trace, moves events, ends the trace.
 *
 * It does everything that can fail or block, with all signals blocked, so that a full disk or a
 * file-size limit (SIGXFSZ) meets it and never the program's threads. It sleeps between looks; a
 * look is one atomic load. Events are moved when a good chunk's worth has come or a few seconds
 * have passed: until then they are safe in the ring. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/door.h"
#include "record/driver.h"
#include "record/identity.h"
#include "record/intern.h"
#include "record/modules.h"
#include "record/native.h"
#include "record/pycodes.h"
#include "record/recorder.h"
#include "record/samples.h"
#include "trace/drain.h"
#include "trace/writer.h"

enum {
    LOOK_NS = 5000000,
    IDLE_LOOK_NS = 20000000,
    IDLE_LOOKS = 20,  /* quiet looks before we look less often */
    MODULE_LOOKS = 4, /* with native stacks: so often ask what the loader has done */
    CHUNK_PAGES = 48, /* about 24,000 records */
    SMALL_RING_PAGES = 256,
};
static const uint64_t sync_ns = 4000000000u; /* packed and on the disk at least so often */
static const uint64_t default_max_size = 2ull << 30;

struct session { /* what the thread has open */
    struct tmk_identity id;
    char trace_path[3584];
    char ring_path[3584];
    char control_path[512]; /* "": none */
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct tmk_drain *drain;
    uint64_t synced_ns;
    uint64_t pages_taken; /* when last packed */
};

/* One per process; a forked child starts over with it. */
static struct session session;

/* ---- making files ---- */

static bool is_tmpfs(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 && fs.f_type == 0x01021994; /* TMPFS_MAGIC */
}

static uint64_t free_bytes(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

static int make_ring_in(struct session *s, const char *folder, uint32_t n_pages)
{
    struct tmk_text path;
    tmk_text_init(&path, s->ring_path, sizeof s->ring_path);
    tmk_identity_ring_path(&s->id, folder, &path);
    return tmk_ring_create(&tmk_recorder.ring, s->ring_path, n_pages, s->id.trace_id, s->trace_path,
                           NULL);
}

/* On tmpfs with room to spare, else a smaller one there, else beside the trace, else in memory that
 * does not outlive the process. Containers often have 64 MiB of /dev/shm, which data loaders need
 * too: never take more than a third of it. */
static int make_ring(struct session *s)
{
    static const uint32_t sizes[] = {TMK_RING_PAGES, SMALL_RING_PAGES};
    const char *folders[] = {tmk_recorder.ring_folders[0], tmk_recorder.ring_folders[1],
                             "/dev/shm"};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
            const char *folder = folders[i];
            bool fits = *folder == '/' && is_tmpfs(folder) &&
                        free_bytes(folder) >= 3ull * sizes[k] * TMK_PAGE_BYTES;
            if (fits && make_ring_in(s, folder, sizes[k]) == 0)
                return 0;
        }
    }
    if (make_ring_in(s, tmk_recorder.settings.run_folder, TMK_RING_PAGES) == 0)
        return 0;
    return tmk_ring_create(&tmk_recorder.ring, NULL, TMK_RING_PAGES, s->id.trace_id, s->trace_path,
                           NULL);
}

/* mkdir -p, mode 0700 for what we make. Works on a copy: a fork may come at any moment. */
static int make_folder(const char *folder)
{
    char path[sizeof tmk_recorder.settings.run_folder];
    strcpy(path, folder);
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        int rc = mkdir(path, 0700);
        *slash = '/';
        if (rc < 0 && errno != EEXIST)
            return TMK_EIO;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : TMK_EIO;
}

/* At most what was asked for, and never more than a tenth of the free disk, shared by the ranks of
 * this node. */
static uint64_t bounded_size(const struct session *s)
{
    uint64_t size = tmk_recorder.settings.max_size_bytes ? tmk_recorder.settings.max_size_bytes
                                                         : default_max_size;
    uint64_t share = free_bytes(tmk_recorder.settings.run_folder) / 10;
    if (s->id.ranks.local_size > 1)
        share /= (uint64_t)s->id.ranks.local_size;
    if (size > share)
        size = share;
    return size < TMK_MAX_SIZE_LEAST ? TMK_MAX_SIZE_LEAST : size;
}

static uint64_t measure_ticks(struct tmk_clock_reading from)
{
    struct tmk_clock_reading now = tmk_clock_read();
    if (now.ns < from.ns + 500000 || now.ticks <= from.ticks)
        return 0;
    return (uint64_t)((double)(now.ticks - from.ticks) * 1e9 / (double)(now.ns - from.ns));
}

static int make_trace(struct session *s, struct tmk_clock_reading began)
{
    const struct tmk_ring *ring = &tmk_recorder.ring;
    char info[TMK_INFO_MAX_BYTES];
    struct tmk_text text;
    struct tmk_identity_extra extra = {
        .start_monotonic_ns = ring->header->start_monotonic_ns,
        .ticks_per_second = measure_ticks(began),
        .max_size_bytes = bounded_size(s),
        .ring_path = ring->has_file ? s->ring_path : NULL,
        .control_path = s->control_path[0] ? s->control_path : NULL,
    };
    tmk_text_init(&text, info, sizeof info);
    tmk_identity_info(&s->id, &extra, &text);
    int rc = tmk_writer_create(&s->writer, s->trace_path, s->id.trace_id, info,
                               extra.max_size_bytes, NULL);
    if (rc < 0)
        return rc;
    struct tmk_packer_options options =
        tmk_packer_options_for(extra.max_size_bytes, &tmk_state_limits_recorder);
    struct tmk_chunk_out out = tmk_writer_out(&s->writer);
    return tmk_packer_open(&options, &out, &s->packer);
}

/* Before the trace, whose header names it. A process without one is watched all the same. */
static void make_door(struct session *s)
{
    struct tmk_text path;
    tmk_text_init(&path, s->control_path, sizeof s->control_path);
    if (tmk_door_open(&path) < 0)
        s->control_path[0] = '\0';
}

static void clean_up(struct session *s)
{
    tmk_door_close();
    s->drain = tmk_drain_close(s->drain);
    s->packer = tmk_packer_close(s->packer);
    tmk_writer_close(&s->writer);
    if (tmk_recorder.ring.has_file)
        unlink(s->ring_path);
}

static int open_session(struct session *s)
{
    tmk_drain_close(s->drain); /* of the parent that this process was forked from, if any */
    tmk_packer_close(s->packer);
    *s = (struct session){.writer.fd = -1};
    struct tmk_clock_reading began = tmk_clock_read();
    tmk_identity_init(&s->id, &tmk_recorder.ranks);
    struct tmk_text path;
    tmk_text_init(&path, s->trace_path, sizeof s->trace_path);
    tmk_identity_trace_path(&s->id, tmk_recorder.settings.run_folder, &path);
    int rc = path.cut ? TMK_EINVAL : make_folder(tmk_recorder.settings.run_folder);
    if (rc == 0)
        rc = tmk_intern_reset();
    if (rc == 0)
        rc = make_ring(s);
    if (rc < 0)
        return rc;
    make_door(s);
    rc = make_trace(s, began);
    if (rc == 0)
        rc = tmk_drain_open(&tmk_recorder.ring, s->packer, true, &s->drain);
    if (rc < 0) {
        clean_up(s);
        unlink(s->trace_path);
    }
    s->synced_ns = tmk_clock_monotonic_ns();
    return rc;
}

/* ---- packing ---- */

static uint64_t pages_taken(void)
{
    return atomic_load_explicit(&tmk_recorder.ring.header->next_page_number, memory_order_relaxed);
}

static int pack(struct session *s)
{
    struct tmk_ring_header *h = tmk_recorder.ring.header;
    atomic_fetch_add(&h->n_dropped, atomic_exchange(&tmk_recorder.control->n_early_drops, 0));
    s->pages_taken = pages_taken();
    atomic_fetch_add(&h->epoch, 1);
    int rc = tmk_drain_run(s->drain);
    if (rc == 0)
        rc = tmk_writer_put_status(&s->writer, tmk_packer_state(s->packer));
    atomic_store(&h->last_seq, s->writer.status.last_seq);
    atomic_fetch_add(&h->epoch, 1);
    return rc;
}

/* Many frees have no time of their own while we sleep (short.h). What we do between may take long:
 * then they have. Whoever hurries us after the flag was looked at takes `slept` back himself. */
static void sleep_between(long ns)
{
    atomic_store(&tmk_short.slept, tmk_clock_ticks(tmk_recorder.counter));
    if (!atomic_load(&tmk_recorder.control->hurry) || tmk_recorder_is_held())
        tmk_recorder_sleep(ns);
    atomic_store(&tmk_short.slept, UINT64_MAX);
}

/* One look at the ring: pack when a chunk's worth has come, pack and sync when it is time. */
static int look(struct session *s, bool *ret_quiet)
{
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t new_pages = pages_taken() - s->pages_taken;
    *ret_quiet = false;
    if (tmk_recorder_is_held())
        return 0;
    bool hurry = atomic_exchange(&tmk_recorder.control->hurry, 0);
    tmk_samples_look(now, hurry);
    tmk_pycodes_look(now);
    bool timed = hurry || now - s->synced_ns >= sync_ns;
    *ret_quiet = new_pages == 0;
    int rc = timed || new_pages >= CHUNK_PAGES ? pack(s) : 0;
    if (rc == 0 && timed) {
        s->synced_ns = now;
        tmk_writer_sync(&s->writer);
    }
    return rc;
}

/* True when all threads of the program have ended, the first one by pthread_exit(): the process
 * would end now if we were not in it. The first thread stays in the list as a zombie, which has no
 * program any more. Without opening anything: the program may count on the lowest descriptor. */
static bool is_alone(void)
{
    struct stat st;
    char text[8];
    return stat("/proc/self/task", &st) == 0 && st.st_nlink <= 2 + 2 + tmk_door_n_threads() &&
           readlink("/proc/self/exe", text, sizeof text) < 0 && errno == ENOENT;
}

/* Until told to stop, or something fails. */
static int pack_until_stop(struct session *s)
{
    int quiet_looks = 0;
    unsigned n_looks = 0;
    while (!atomic_load(&tmk_recorder.control->stop)) {
        long ns = quiet_looks >= IDLE_LOOKS ? IDLE_LOOK_NS : LOOK_NS;
        sleep_between(ns);
        bool quiet;
        int rc = look(s, &quiet);
        if (rc < 0)
            return rc;
        quiet_looks = quiet ? quiet_looks + 1 : 0;
        n_looks++;
        if ((tmk_recorder.settings.native || tmk_driver_is_used()) && n_looks % MODULE_LOOKS == 0)
            tmk_modules_refresh();
        if (n_looks % IDLE_LOOKS == 0 && is_alone())
            return 0;
    }
    return 0;
}

/* ---- ending ---- */

/* What made packing fail, for the trace's status. */
static void note_stop(struct session *s, int rc)
{
    int os_error = s->writer.error.os_error;
    s->writer.status.state = TMK_STATE_STOPPED;
    s->writer.status.os_error = (uint32_t)os_error;
    s->writer.status.reason = os_error ? tmk_writer_stop_reason(os_error)
                              : rc < 0 ? TMK_STOP_INNER_ERROR
                                       : TMK_STOP_NONE;
}

static void close_session(struct session *s, int rc)
{
    if (rc == 0)
        rc = pack(s);
    if (rc == 0)
        rc = tmk_packer_finish(s->packer);
    s->writer.status.state = TMK_STATE_CLOSED;
    if (rc < 0)
        note_stop(s, rc);
    (void)tmk_writer_put_status(&s->writer, rc < 0 ? NULL : tmk_packer_state(s->packer));
    clean_up(s);
}

void *tmk_packer_thread_main(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "tidemark", 0, 0, 0);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where Yama would forbid `attach` */
    struct session *s = &session;
    tmk_samples_reset();
    int rc = open_session(s);
    atomic_store(&tmk_short.slept, UINT64_MAX);
    tmk_recorder_set_armed(rc == 0);
    if (rc == 0) {
        tmk_door_serve(s->trace_path);
        rc = pack_until_stop(s);
        tmk_recorder_disarm();
        close_session(s, rc);
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    }
    tmk_recorder_set_finished();
    return NULL;
}
