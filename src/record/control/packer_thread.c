/* SPDX-License-Identifier: MIT */
/* record/control/packer_thread.c - the helper thread that makes ring and trace, moves events, and
 * ends the trace.
 *
 * It does everything that can fail or block, with all signals blocked, so that a full disk or a
 * file-size limit (SIGXFSZ) hits this thread and never the program's threads. It sleeps between
 * looks; a look is one atomic load. Events are moved when a good chunk's worth has come or a few
 * seconds have passed; until then they are safe in the ring. */
#include "record/control/packer_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/forks.h"
#include "base/region.h"
#include "base/text.h"
#include "record/core/intern.h"
#include "record/core/packing.h"
#include "record/core/recorder.h"
#include "record/core/refusal.h"
#include "record/core/ring_space.h"
#include "record/driver/device_samples.h"
#include "record/driver/driver.h"
#include "record/identity/identity.h"
#include "record/native/mapped_files.h"
#include "record/python/pycodes.h"
#include "record/socket/control_socket.h"
#include "trace/drain.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/ring.h"
#include "trace/state.h"
#include "trace/writer.h"

enum {
    LOOK_NS = 5000000,
    IDLE_LOOK_NS = 20000000,
    IDLE_LOOKS = 20,        /* quiet looks before we look less often */
    MODULE_LOOKS = 4,       /* with native stacks: ask every so many looks what the loader did */
    CHUNK_PAGES = 48,       /* about 24,000 records */
    TABLE_BYTES = 56 << 20, /* addresses for the tables of drain and packer */
};
static const uint64_t sync_ns = 4000000000u; /* packed and on the disk at least this often */

struct packing_session { /* what the thread has open */
    struct tmk_identity id;
    char run_folder[3072]; /* a copy: the settings lose it when the recording has ended */
    char trace_path[3584];
    char ring_path[3584];
    char control_path[512]; /* "": none */
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct tmk_drain *drain;
    uint64_t max_size; /* of the trace, as the packer knows it */
    bool has_own_descriptors;
    uint64_t synced_ns;
    uint64_t pages_taken; /* when the ring was last packed */
};

/* One per process; a forked child starts over with it. */
static struct packing_session packing;

/* ---- making files ---- */

/* mkdir -p, with mode 0700 for new folders. It works on a copy of the path, because a fork may come
 * at any moment. */
static int make_run_folder(const char *folder)
{
    char path[sizeof tmk_recorder.settings.run_folder];
    if (folder[0] != '/') /* the recording ended before it began */
        return TMK_EINVAL;
    if (access(folder, F_OK) == 0)
        return 0;
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

static uint64_t measure_ticks(struct tmk_clock_reading from)
{
    struct tmk_clock_reading now = tmk_clock_read();
    if (now.ns < from.ns + 500000 || now.ticks <= from.ticks)
        return 0;
    return (uint64_t)((double)(now.ticks - from.ticks) * 1e9 / (double)(now.ns - from.ns));
}

static int make_trace(struct packing_session *s, struct tmk_clock_reading began)
{
    const struct tmk_ring *ring = &tmk_recorder.ring;
    char info[TMK_INFO_MAX_BYTES];
    struct tmk_text text;
    struct tmk_identity_extra extra = {
        .start_monotonic_ns = ring->header->start_monotonic_ns,
        .ticks_per_second = measure_ticks(began),
        .max_size_bytes = tmk_ring_space_trace_bytes(s->id.ranks.local_size),
        .ring_path = ring->has_file ? s->ring_path : NULL,
        .control_path = s->control_path[0] ? s->control_path : NULL,
    };
    tmk_text_init(&text, info, sizeof info);
    tmk_identity_info(&s->id, &extra, &text);
    if (!tmk_ring_space_grant(NULL, TMK_HEADER_MAX_BYTES))
        return errno == ENOBUFS ? TMK_EFULL : TMK_EIO;
    int rc = tmk_writer_create(&s->writer, s->trace_path, s->id.trace_id, info,
                               extra.max_size_bytes, NULL);
    if (rc < 0) {
        tmk_ring_space_give_back(TMK_HEADER_MAX_BYTES);
        return rc;
    }
    tmk_writer_ask(&s->writer, tmk_ring_space_grant, NULL);
    s->writer.granted = TMK_HEADER_MAX_BYTES;
    s->max_size = s->writer.max_size;
    struct tmk_packer_options options =
        tmk_packer_options_for(extra.max_size_bytes, &tmk_state_limits_recorder);
    struct tmk_chunk_out out = tmk_writer_out(&s->writer);
    return tmk_packer_open(&options, &out, &s->packer);
}

/* Make the control socket before the trace, because the trace's header names it, and before this
 * thread leaves the program's descriptors, because evals need those. A process without a socket is
 * watched all the same. */
static void make_control_socket(struct packing_session *s)
{
    struct tmk_text path;
    tmk_text_init(&path, s->control_path, sizeof s->control_path);
    if (tmk_control_socket_open(&path) < 0)
        s->control_path[0] = '\0';
    else
        tmk_control_socket_serve(s->trace_path);
    s->has_own_descriptors = tmk_control_socket_keep_only();
}

static void clean_up_session(struct packing_session *s)
{
    tmk_control_socket_close();
    if (!atomic_load(&tmk_recorder.is_ending)) {
        s->drain = tmk_drain_close(s->drain);
        s->packer = tmk_packer_close(s->packer);
    }
    if (s->writer.granted > s->writer.file_bytes)
        tmk_ring_space_give_back(s->writer.granted - s->writer.file_bytes);
    tmk_writer_close(&s->writer);
    tmk_ring_space_close();
}

/* Called while the account is open, which is where it is said when there is no other place. */
static void note_refusal(int rc, int os_error)
{
    if (rc == TMK_EFULL)
        tmk_refusal_note(TMK_STOP_BUDGET, 0);
    else
        tmk_refusal_note(TMK_STOP_FOLDER, os_error);
}

/* While this thread has the program's descriptors, no fork may happen: a child would inherit those
 * that hold our locks. */
static int open_ring_space(struct packing_session *s)
{
    if (!s->has_own_descriptors)
        tmk_forks_hold();
    int rc = tmk_ring_space_open(s->has_own_descriptors);
    if (rc == 0) {
        rc = tmk_ring_space_make_ring(&s->id, s->trace_path, s->ring_path, sizeof s->ring_path);
        if (rc < 0)
            tmk_ring_space_close();
    }
    if (!s->has_own_descriptors)
        tmk_forks_let();
    return rc;
}

static int open_session(struct packing_session *s)
{
    /* A forked child has the parent's values here, but not the memory they point to. */
    *s = (struct packing_session){.writer.fd = -1};
    tmk_ring_space_reset();
    struct tmk_clock_reading began = tmk_clock_read();
    tmk_identity_init(&s->id, &tmk_recorder.ranks);
    strcpy(s->run_folder, tmk_recorder.settings.run_folder);
    struct tmk_text path;
    tmk_text_init(&path, s->trace_path, sizeof s->trace_path);
    tmk_identity_trace_path(&s->id, s->run_folder, &path);
    make_control_socket(s);
    int rc = path.cut ? TMK_EINVAL : make_run_folder(s->run_folder);
    if (rc == 0)
        rc = tmk_intern_reset();
    if (rc == 0)
        rc = open_ring_space(s);
    tmk_region_pool_begin(TABLE_BYTES);
    if (rc == 0)
        rc = make_trace(s, began);
    if (rc == 0)
        rc = tmk_drain_open(&tmk_recorder.ring, s->packer, true, &s->drain);
    tmk_region_pool_end();
    if (rc < 0) {
        note_refusal(rc, errno);
        clean_up_session(s);
    } else {
        tmk_refusal_prepare();
    }
    s->synced_ns = tmk_clock_monotonic_ns();
    return rc;
}

/* ---- packing ---- */

static uint64_t pages_taken(void)
{
    return atomic_load_explicit(&tmk_recorder.ring.header->next_page_number, memory_order_relaxed);
}

static int pack_events(struct packing_session *s)
{
    struct tmk_ring_header *h = tmk_recorder.ring.header;
    atomic_fetch_add(&h->n_dropped, atomic_exchange(&tmk_recorder.control->n_early_drops, 0));
    s->pages_taken = pages_taken();
    atomic_fetch_add(&h->epoch, 1);
    int rc = tmk_drain_run(s->drain);
    if (rc == 0 && s->writer.max_size != s->max_size) {
        s->max_size = s->writer.max_size; /* the run had no more room */
        tmk_packer_bound(s->packer, s->max_size);
        rc = tmk_packer_flush(s->packer);
    }
    if (rc == 0)
        rc = tmk_writer_put_status(&s->writer, tmk_packer_state(s->packer));
    atomic_store(&h->last_seq, s->writer.status.last_seq);
    atomic_fetch_add(&h->epoch, 1);
    return rc;
}

/* Many frees reuse a timestamp while we sleep (fast_path.h). What we do between sleeps may take
 * long, so frees read their own then. Whoever hurries us after the flag was read resets `slept`
 * itself. */
static void sleep_between(long ns)
{
    atomic_store(&tmk_fast_path.slept, tmk_clock_ticks(tmk_recorder.counter));
    bool is_asked = atomic_load(&tmk_recorder.control->hurry) || tmk_ring_space_is_wanted();
    if (!is_asked || tmk_packing_is_held())
        tmk_packing_sleep(ns);
    atomic_store(&tmk_fast_path.slept, UINT64_MAX);
}

/* The ring is crowded when a third of it has been used since it was last packed, or its last page,
 * or a thread asks for more: double it. True when it cannot grow and must be emptied sooner. Pages
 * that threads hold are not emptied, so few may be left although few are new. */
static bool is_ring_crowded(uint64_t new_pages, bool is_wanted)
{
    const struct tmk_ring *ring = &tmk_recorder.ring;
    uint32_t n = tmk_ring_n_pages(ring);
    bool is_last = new_pages > 0 && !tmk_ring_has_free(ring);
    return (is_wanted || is_last || new_pages * 3 > n) && tmk_ring_space_grow_ahead(n) == 0;
}

/* Look at the ring once: pack when a chunk's worth has come, pack and sync when it is time. */
static int look_for_events(struct packing_session *s, bool *ret_quiet)
{
    uint64_t now = tmk_clock_monotonic_ns();
    uint64_t new_pages = pages_taken() - s->pages_taken;
    *ret_quiet = false;
    if (tmk_packing_is_held())
        return 0;
    bool hurry = atomic_exchange(&tmk_recorder.control->hurry, 0);
    tmk_pycodes_look(now);
    bool timed = hurry || now - s->synced_ns >= sync_ns;
    *ret_quiet = new_pages == 0;
    bool is_wanted = tmk_ring_space_take_wish(), crowded = is_ring_crowded(new_pages, is_wanted);
    int rc = timed || crowded || new_pages >= CHUNK_PAGES ? pack_events(s) : 0;
    if (is_wanted && crowded)
        tmk_ring_space_answer();
    if (rc == 0 && timed) {
        s->synced_ns = now;
        tmk_writer_sync(&s->writer);
    }
    return rc;
}

/* True when all threads of the program have ended, the first one by pthread_exit(): without us the
 * process would end now. The first thread stays in the list as a zombie without an executable.
 * Nothing is opened, because the program may rely on the lowest free descriptor. */
static bool is_process_alone(void)
{
    struct stat st;
    char text[8];
    unsigned n_ours = 1 + tmk_control_socket_n_threads() + tmk_device_samples_n_threads();
    return stat("/proc/self/task", &st) == 0 && st.st_nlink <= 2 + 1 + n_ours &&
           readlink("/proc/self/exe", text, sizeof text) < 0 && errno == ENOENT;
}

/* Pack until told to stop, or until something fails. */
static int pack_until_stop(struct packing_session *s)
{
    int quiet_looks = 0;
    unsigned n_looks = 0;
    while (!atomic_load(&tmk_recorder.control->stop)) {
        long ns = quiet_looks >= IDLE_LOOKS ? IDLE_LOOK_NS : LOOK_NS;
        sleep_between(ns);
        bool quiet;
        int rc = look_for_events(s, &quiet);
        if (rc < 0)
            return rc;
        quiet_looks = quiet ? quiet_looks + 1 : 0;
        n_looks++;
        if ((tmk_recorder.settings.native || tmk_driver_is_used()) && n_looks % MODULE_LOOKS == 0)
            tmk_mapped_files_refresh();
        if (n_looks % IDLE_LOOKS == 0) {
            if (is_process_alone())
                return 0;
            tmk_ring_space_look();
        }
    }
    return 0;
}

/* ---- ending ---- */

/* Put what made packing fail into the trace's status. */
static void note_stop_reason(struct packing_session *s, int rc)
{
    int os_error = s->writer.error.os_error;
    s->writer.status.state = TMK_STATE_STOPPED;
    s->writer.status.os_error = (uint32_t)os_error;
    s->writer.status.reason = os_error ? tmk_writer_stop_reason(os_error)
                              : rc < 0 ? TMK_STOP_INNER_ERROR
                                       : TMK_STOP_NONE;
}

/* Leaves a line for a trace that was removed meanwhile, if the run has a folder again: one that the
 * user has removed is not made for that. */
static void note_removal(const struct packing_session *s)
{
    struct stat st;
    if (fstat(s->writer.fd, &st) < 0 || st.st_nlink > 0)
        return;
    int folder = open(s->run_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        tmk_refusal_note(TMK_STOP_REMOVED, 0);
        close(folder);
    }
}

static void close_session(struct packing_session *s, int rc)
{
    if (rc == 0)
        rc = pack_events(s);
    if (rc == 0)
        rc = tmk_packer_finish(s->packer);
    s->writer.status.state = TMK_STATE_CLOSED;
    s->writer.status.reason = atomic_load(&tmk_recorder.control->stop_reason);
    if (s->writer.status.reason != TMK_STOP_NONE)
        s->writer.status.state = TMK_STATE_STOPPED;
    if (rc < 0)
        note_stop_reason(s, rc);
    (void)tmk_writer_put_status(&s->writer, rc < 0 ? NULL : tmk_packer_state(s->packer));
    note_removal(s);
    tmk_refusal_tell(s->run_folder);
    clean_up_session(s);
}

void *tmk_packer_thread_main(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "tidemark", 0, 0, 0);
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* so that `attach` works under Yama */
    struct packing_session *s = &packing;
    int rc = open_session(s);
    atomic_store(&tmk_fast_path.slept, UINT64_MAX);
    tmk_recorder_set_armed(rc == 0);
    if (rc == 0) {
        rc = pack_until_stop(s);
        tmk_recorder_disarm();
        close_session(s, rc);
        prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    }
    tmk_recorder_set_finished();
    return NULL;
}
