/* SPDX-License-Identifier: MIT */
/* record/core/ring_space.c - see ring_space.h. */
#include "record/core/ring_space.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/signals.h"
#include "base/text.h"
#include "record/core/helper.h"
#include "record/core/recorder.h"
#include "record/core/seal.h"
#include "trace/account.h"
#include "trace/disk_share.h"
#include "trace/ring.h"
#include "trace/ring_rescue.h"

enum {
    BUSY_RING_PAGES = 128, /* 2 MiB: what a busy process needs at least */
    DISK_RING_PAGES = 32,  /* 516 KiB: only the packer grows it, so a burst must fit */
    GROWING = 1,
    CLOSED = 2,
    PLAIN_RING_PAGES = 64, /* 1 MiB: the most for a ring without a file, which is not counted */
    BATCH_LEAST_PAGES = 4,
    BATCH_MOST_PAGES = 64,
    SWEEP_STACK_BYTES = 256 * 1024,
};
static const uint64_t grow_limit_ns = 100000000;
static const uint64_t packer_limit_ns =
    30000000; /* for one look of the packer, which sleeps 20 ms */
static const uint64_t packer_pause_ns = 3000000000u; /* so that a disk that hangs costs 1 % */
static const uint64_t full_pause_ns = 20000000;      /* until pages are asked for again */
static const uint64_t close_limit_ns = 500000000;
static const uint64_t sweep_every_ns = 1000000000u;
static const uint64_t default_max_size = 2ull << 30;

enum ring_kind { NONE, PRIVATE, AS_MEMORY, AS_DISK };

static struct {
    struct tmk_account account;
    bool has_own_descriptors; /* the packer thread has */
    struct tmk_disk_share disk;
    uint64_t held_bytes; /* used by the ring */
    enum ring_kind kind;
    char ring_path[3584];                  /* "": no file */
    _Atomic uint32_t is_growing;           /* 0, GROWING or CLOSED */
    _Atomic uint64_t no_asking_before_ns;  /* pages are not asked for before */
    _Atomic uint64_t no_waiting_before_ns; /* the packer is asked, but not waited for, before */
    _Atomic bool is_wanted;                /* a thread found no free page */
    _Atomic uint32_t n_answers;            /* how often the packer has grown or emptied the ring */
    pthread_t packer;
} own_space;

/* The thread that looks for dead processes. It may outlive its recording, so it has its own copy of
 * what it needs. */
static struct {
    _Atomic pid_t owner; /* process of the thread; 0: none. A forked child inherits its parent's */
    _Atomic bool has_found; /* it found dead processes the last time */
    uint32_t n_nodes;
    char folder[sizeof tmk_recorder.settings.run_folder];
    char rings[TMK_ACCOUNT_PATH_BYTES];
} dead_sweep;

static const char *run_folder(void)
{
    return tmk_recorder.settings.run_folder;
}

/* ---- the account ---- */

/* File systems that several nodes may share. */
static bool is_shared_disk(const char *folder)
{
    static const uint32_t kinds[] = {
        0x6969,     /* NFS */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x00c36400, /* Ceph */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x65735546, /* FUSE */
        0x01021997, /* 9P */
    };
    struct statfs fs;
    if (statfs(folder, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if ((uint32_t)fs.f_type == kinds[i])
            return true;
    return false;
}

static uint32_t count_nodes(void)
{
    const struct tmk_ranks *r = &tmk_recorder.ranks;
    if (r->world_size <= 1 || r->local_size < 1 || !is_shared_disk(run_folder()))
        return 1;
    return (uint32_t)((r->world_size + r->local_size - 1) / r->local_size);
}

/* A child has a copy of its parent's state, but not the mapping. */
void tmk_ring_space_reset(void)
{
    memset(&own_space, 0, sizeof own_space);
    own_space.packer = pthread_self();
}

enum { N_FOLDERS = 3 };

static void list_ring_folders(const char *ret[N_FOLDERS])
{
    ret[0] = tmk_recorder.ring_folders[0];
    ret[1] = tmk_recorder.ring_folders[1];
    ret[2] = "/dev/shm";
}

bool tmk_ring_space_count_refusal(enum tmk_stop reason)
{
    const char *folders[N_FOLDERS];
    list_ring_folders(folders);
    return own_space.account.page
               ? tmk_account_count_refusal(&own_space.account, reason)
               : tmk_account_count_refusal_in(folders, N_FOLDERS, run_folder(), reason);
}

int tmk_ring_space_open(bool has_own_descriptors)
{
    const char *folders[N_FOLDERS];
    list_ring_folders(folders);
    own_space.has_own_descriptors = has_own_descriptors;
    int rc = tmk_account_open(&own_space.account, folders, N_FOLDERS, run_folder(), NULL);
    if (rc == 0 && !has_own_descriptors)
        tmk_account_leave_unlocked(&own_space.account);
    if (rc == 0)
        rc = tmk_disk_share_open(&own_space.disk, run_folder(), count_nodes(), NULL);
    return rc;
}

/* ---- the ring ---- */

/* A ring whose descriptor is in the program's table is not used: the program may close it, and a
 * forked child would keep the ring alive. */
static int make_ring_in(const struct tmk_identity *id, const char *trace_path, const char *folder,
                        uint32_t n_pages, uint32_t max_pages)
{
    struct tmk_ring *ring = &tmk_recorder.ring;
    struct tmk_text path;
    tmk_text_init(&path, own_space.ring_path, sizeof own_space.ring_path);
    tmk_identity_ring_path(id, folder, &path);
    int rc = path.cut ? TMK_EINVAL
                      : tmk_ring_create(ring, own_space.ring_path, n_pages, max_pages, id->trace_id,
                                        trace_path, NULL);
    if (rc == 0 && ring->has_lock_fd && !own_space.has_own_descriptors) {
        unlink(own_space.ring_path);
        tmk_ring_close(ring);
        rc = TMK_EIO;
    }
    return rc;
}

/* A ring that has no file, because a file-size limit was in the way, is private memory. It is not
 * counted, because after a SIGKILL it would stay counted. */
static void note_ring(enum ring_kind kind, uint64_t bytes)
{
    own_space.held_bytes = bytes;
    own_space.kind = tmk_recorder.ring.has_file ? kind : PRIVATE;
    if (own_space.kind == PRIVATE && kind == AS_MEMORY)
        tmk_account_give_memory(&own_space.account, bytes);
    if (own_space.kind == PRIVATE && kind == AS_DISK)
        tmk_disk_share_give(&own_space.disk, bytes);
}

static bool make_on_tmpfs(const struct tmk_identity *id, const char *trace_path, uint32_t n_pages)
{
    uint64_t bytes = tmk_ring_bytes(n_pages);
    if (!own_space.account.on_tmpfs || !tmk_account_take_memory(&own_space.account, 0, bytes))
        return false;
    if (make_ring_in(id, trace_path, own_space.account.folder, n_pages, TMK_RING_PAGES) < 0) {
        tmk_account_give_memory(&own_space.account, bytes);
        return false;
    }
    note_ring(AS_MEMORY, bytes);
    return true;
}

static bool make_on_disk(const struct tmk_identity *id, const char *trace_path, uint32_t n_pages)
{
    uint64_t bytes = tmk_ring_bytes(n_pages);
    if (!tmk_disk_share_take(&own_space.disk, bytes))
        return false;
    if (make_ring_in(id, trace_path, run_folder(), n_pages, TMK_RING_PAGES) < 0) {
        tmk_disk_share_give(&own_space.disk, bytes);
        return false;
    }
    note_ring(AS_DISK, bytes);
    return true;
}

/* Where a busy process would not find room to grow on tmpfs, rings go to the disk. */
static bool is_tmpfs_cramped(void)
{
    return own_space.account.page->memory_limit / 2 < tmk_ring_bytes(BUSY_RING_PAGES);
}

/* There is no room: look whether dead processes have it. */
static uint32_t rescue_dead(void)
{
    return own_space.account.on_tmpfs ? tmk_ring_rescue_all(&own_space.account, &own_space.disk,
                                                            own_space.account.folder, run_folder())
                                      : 0;
}

int tmk_ring_space_make_ring(const struct tmk_identity *id, const char *trace_path, char *path,
                             size_t path_size)
{
    bool cramped = own_space.account.on_tmpfs && is_tmpfs_cramped();
    bool made =
        (!cramped && make_on_tmpfs(id, trace_path, TMK_RING_FIRST_PAGES)) ||
        (!cramped && rescue_dead() > 0 && make_on_tmpfs(id, trace_path, TMK_RING_FIRST_PAGES)) ||
        make_on_disk(id, trace_path, DISK_RING_PAGES) ||
        make_on_disk(id, trace_path, TMK_RING_FIRST_PAGES) ||
        make_on_tmpfs(id, trace_path, TMK_RING_FIRST_PAGES);
    if (!made && tmk_ring_create(&tmk_recorder.ring, NULL, PLAIN_RING_PAGES, PLAIN_RING_PAGES,
                                 id->trace_id, trace_path, NULL) < 0)
        return TMK_ENOMEM;
    if (!tmk_recorder.ring.has_file)
        own_space.ring_path[0] = '\0';
    if (strlen(own_space.ring_path) < path_size)
        strcpy(path, own_space.ring_path);
    return 0;
}

static bool take_ring_bytes(uint64_t bytes)
{
    switch (own_space.kind) {
    case AS_MEMORY:
        return tmk_account_take_memory(&own_space.account, own_space.held_bytes, bytes);
    case AS_DISK:
        return tmk_disk_share_take(&own_space.disk, bytes);
    case PRIVATE:
        return own_space.held_bytes + bytes <= tmk_ring_bytes(PLAIN_RING_PAGES);
    default:
        return false;
    }
}

static void give_ring_bytes(uint64_t bytes)
{
    if (own_space.kind == AS_MEMORY)
        tmk_account_give_memory(&own_space.account, bytes);
    else if (own_space.kind == AS_DISK)
        tmk_disk_share_give(&own_space.disk, bytes);
}

/* Keep threads from adding pages. False when one is adding some and does not finish. */
static bool stop_growing(void)
{
    uint64_t end = tmk_clock_monotonic_ns() + close_limit_ns;
    uint32_t nobody = 0;
    while (!atomic_compare_exchange_strong(&own_space.is_growing, &nobody, CLOSED)) {
        if (nobody == CLOSED || tmk_clock_monotonic_ns() >= end)
            return nobody == CLOSED;
        tmk_futex_wait_while(&own_space.is_growing, nobody, grow_limit_ns);
        nobody = 0;
    }
    return true;
}

void tmk_ring_space_close(void)
{
    bool is_quiet = stop_growing();
    bool is_ending =
        atomic_load(&tmk_recorder.is_ending); /* then the memory goes with the process */
    if (own_space.ring_path[0])
        unlink(own_space.ring_path);
    if (is_ending || (is_quiet && tmk_ring_abandon(&tmk_recorder.ring)))
        give_ring_bytes(own_space.held_bytes);
    own_space.ring_path[0] = '\0';
    own_space.held_bytes = 0;
    own_space.kind = NONE;
    if (!is_quiet) /* what a thread still uses stays mapped */
        return;
    tmk_disk_share_close(&own_space.disk);
    tmk_account_close(&own_space.account);
}

/* ---- growing ---- */

/* How many pages to add: as many as there are, within limits. 64 take some 200 µs. */
static uint32_t batch_pages(void)
{
    uint32_t n = tmk_ring_n_pages(&tmk_recorder.ring);
    return n < BATCH_LEAST_PAGES ? BATCH_LEAST_PAGES : n < BATCH_MOST_PAGES ? n : BATCH_MOST_PAGES;
}

/* Add one batch, counting it before it is taken. */
static int grow_counted(bool may_open)
{
    uint64_t bytes = (uint64_t)batch_pages() * TMK_PAGE_BYTES;
    if (!take_ring_bytes(bytes))
        return TMK_EFULL;
    int rc = tmk_ring_grow(&tmk_recorder.ring, batch_pages(), may_open);
    uint64_t used = rc < 0 ? 0 : (uint64_t)rc * TMK_PAGE_BYTES;
    if (used < bytes)
        give_ring_bytes(bytes - used);
    own_space.held_bytes += used;
    return rc;
}

/* Returns the number of pages added, TMK_EBUSY when another thread is adding some, or TMK_EFULL.
 * Signals wait: a handler might jump out and leave the flag set. */
static int grow_ring(bool may_open)
{
    sigset_t before;
    uint32_t nobody = 0;
    tmk_signals_hold(&before);
    int rc = TMK_EBUSY;
    if (atomic_compare_exchange_strong(&own_space.is_growing, &nobody, GROWING)) {
        rc = grow_counted(may_open);
        tmk_futex_set(&own_space.is_growing, 0);
    } else if (nobody == CLOSED) {
        rc = TMK_EFULL;
    }
    tmk_signals_release(&before);
    return rc;
}

static void pause_asking(uint64_t ns)
{
    atomic_store(&own_space.no_asking_before_ns, tmk_clock_monotonic_ns() + ns);
}

static void ask_packer(void)
{
    atomic_store(&own_space.is_wanted, true);
    tmk_futex_wake(&tmk_recorder.control->stop);
}

/* Another thread may be adding pages, or may take what was added. A thread that waited in vain, or
 * was told that there is no more, keeps the others from asking for a while, and has the packer
 * empty pages. */
static struct tmk_page *grow_and_take(uint32_t thread)
{
    uint64_t now = tmk_clock_monotonic_ns(), end = now + grow_limit_ns;
    int rc;
    do {
        rc = grow_ring(false);
        struct tmk_page *page = tmk_ring_take(&tmk_recorder.ring, thread);
        if (page)
            return page;
        if (rc == TMK_EBUSY)
            tmk_futex_wait_while(&own_space.is_growing, GROWING, grow_limit_ns);
        now = tmk_clock_monotonic_ns();
    } while ((rc >= 0 || rc == TMK_EBUSY) && now < end);
    pause_asking(rc == TMK_EBUSY ? 10 * grow_limit_ns : full_pause_ns);
    ask_packer();
    return NULL;
}

/* It asks twice, because the packer's first answer may be for another thread. */
static struct tmk_page *wait_for_packer(uint32_t thread)
{
    uint64_t now = tmk_clock_monotonic_ns(), end = now + packer_limit_ns;
    struct tmk_page *page = NULL;
    bool has_answered = true;
    for (int try = 0; try < 2 && has_answered && !page; try++) {
        uint32_t n_answers = atomic_load(&own_space.n_answers);
        page = tmk_ring_take(&tmk_recorder.ring, thread);
        if (page)
            return page;
        ask_packer();
        now = tmk_clock_monotonic_ns();
        has_answered =
            tmk_futex_wait_while(&own_space.n_answers, n_answers, now < end ? end - now : 0);
        page = tmk_ring_take(&tmk_recorder.ring, thread);
    }
    if (!page && !has_answered)
        atomic_store(&own_space.no_waiting_before_ns, tmk_clock_monotonic_ns() + packer_pause_ns);
    return page;
}

/* Only the packer grows a ring on a disk, because the disk may hang. The packer is woken, and
 * waited for while it makes progress, so that a burst of events on a busy machine is not lost. A
 * packer that does not answer is asked, but not waited for. */
static struct tmk_page *ask_and_take(uint32_t thread)
{
    struct tmk_page *page = NULL;
    if (pthread_equal(own_space.packer, pthread_self()))
        return NULL;
    if (tmk_clock_monotonic_ns() >= atomic_load(&own_space.no_waiting_before_ns))
        page = wait_for_packer(thread);
    else
        ask_packer();
    if (!page)
        pause_asking(full_pause_ns);
    return page;
}

static bool may_ask_for_pages(void)
{
    return tmk_clock_monotonic_ns() >= atomic_load(&own_space.no_asking_before_ns);
}

struct tmk_page *tmk_ring_space_take_page(uint32_t thread)
{
    struct tmk_page *page = tmk_ring_take(&tmk_recorder.ring, thread);
    if (page || !tmk_seal_enter())
        return page;
    if (may_ask_for_pages())
        page = own_space.kind == AS_DISK ? ask_and_take(thread) : grow_and_take(thread);
    tmk_seal_leave();
    return page;
}

bool tmk_ring_space_is_wanted(void)
{
    return atomic_load(&own_space.is_wanted);
}

bool tmk_ring_space_take_wish(void)
{
    return atomic_exchange(&own_space.is_wanted, false);
}

void tmk_ring_space_answer(void)
{
    atomic_fetch_add(&own_space.n_answers, 1);
    tmk_futex_wake(&own_space.n_answers);
}

static uint32_t grow_by(uint32_t n_pages)
{
    uint32_t added = 0;
    while (added < n_pages) {
        int rc = grow_ring(true);
        if (rc < 0)
            break;
        added += (uint32_t)rc;
    }
    return added;
}

uint32_t tmk_ring_space_grow_ahead(uint32_t n_pages)
{
    uint32_t added = grow_by(n_pages);
    if (added > 0)
        tmk_ring_space_answer();
    return added;
}

/* ---- the trace ---- */

uint64_t tmk_ring_space_trace_bytes(int64_t local_size)
{
    uint64_t size = tmk_recorder.settings.max_size_bytes ? tmk_recorder.settings.max_size_bytes
                                                         : default_max_size;
    uint64_t parts = local_size > 2 ? (uint64_t)local_size : 2; /* other ranks will come */
    uint64_t share = tmk_disk_share_left(&own_space.disk) / parts;
    if (size > share)
        size = share;
    return size < TMK_MAX_SIZE_LEAST ? TMK_MAX_SIZE_LEAST : size;
}

bool tmk_ring_space_grant(void *unused, uint64_t bytes)
{
    (void)unused;
    return tmk_disk_share_take(&own_space.disk, bytes);
}

void tmk_ring_space_give_back(uint64_t bytes)
{
    tmk_disk_share_give(&own_space.disk, bytes);
}

/* ---- dead processes ---- */

/* It uses an account of its own, because the recording may end meanwhile, and only its own
 * descriptors: copies of the program's would keep open what the program closes. */
static void *sweep_main(void *unused)
{
    const char *folders[] = {dead_sweep.rings};
    struct tmk_account account = {0};
    struct tmk_disk_share disk = {.fd = -1};
    prctl(PR_SET_NAME, "tidemark-sweep", 0, 0, 0);
    if (dead_sweep.folder[0] && tmk_fd_leave_all_but(-1) &&
        tmk_account_open(&account, folders, 1, dead_sweep.folder, NULL) == 0 &&
        tmk_disk_share_open(&disk, dead_sweep.folder, dead_sweep.n_nodes, NULL) == 0) {
        uint32_t n = tmk_ring_rescue_all(&account, &disk, dead_sweep.rings, dead_sweep.folder);
        atomic_store(&dead_sweep.has_found, n > 0);
    }
    tmk_disk_share_close(&disk);
    tmk_account_close(&account);
    atomic_store(&dead_sweep.owner, 0);
    return unused;
}

/* A process has only one such thread. */
static void start_sweep(void)
{
    pid_t self = getpid(), before = atomic_load(&dead_sweep.owner);
    if (before == self || !atomic_compare_exchange_strong(&dead_sweep.owner, &before, self))
        return;
    dead_sweep.n_nodes = own_space.disk.n_nodes;
    memcpy(dead_sweep.folder, run_folder(), sizeof dead_sweep.folder);
    memcpy(dead_sweep.rings, own_space.account.folder, sizeof dead_sweep.rings);
    if (!tmk_helper_start(sweep_main, NULL, SWEEP_STACK_BYTES))
        atomic_store(&dead_sweep.owner, 0);
}

void tmk_ring_space_look(void)
{
    const struct tmk_account_page *p = own_space.account.page;
    uint64_t every_ns = atomic_load(&dead_sweep.has_found) ? sweep_every_ns : 2 * sweep_every_ns;
    if (own_space.account.on_tmpfs && atomic_load(&p->memory_used) > own_space.held_bytes &&
        tmk_account_may_sweep(&own_space.account, every_ns))
        start_sweep();
}
