/* SPDX-License-Identifier: MIT */
/* record/core/recorder.h - the state of the recorder inside the watched process.
 *
 * Everything may read it: whether events are recorded, for which generation, and how. It has three
 * phases. Idle: the library is loaded, and nothing has been made or touched. Armed: the first event
 * worth recording has made the ring, the trace and the packer thread. Off: recording is not wanted
 * here, has ended, or something went wrong, until an attach begins anew. A forked child starts idle
 * again and makes its own trace if it has events. control/session.h begins, arms and ends.
 *
 * The recorder fails open: whatever goes wrong, the program goes on as if we were not there, and
 * the trace, if there is one, says why it ends. */
#ifndef TMK_RECORD_RECORDER_H
#define TMK_RECORD_RECORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/core/fast_path_line.h"
#include "record/identity/identity.h"
#include "trace/ring.h"

enum { TMK_MOST_HELPERS = 16 };

/* State that a fork must reset. It is in a page that the kernel zeroes in every child
 * (MADV_WIPEONFORK), however the child was made. `generation` is the number of the recording, 0
 * unless armed: the hot path compares it with its lane's. */
struct tmk_control {
    _Atomic uint32_t generation;
    _Atomic uint32_t bridge;    /* the recording in which the bridge is armed (bridge.h) */
    struct tmk_fast_path usual; /* the fast path of torch's blocks (torch/fast_path.h) */
    _Atomic uint32_t phase;
    _Atomic uint32_t stop;          /* asks the packer thread to finish */
    _Atomic uint32_t n_early_drops; /* events that came while arming and could not wait */
    _Atomic uint32_t finished;      /* the packer thread has finished */
    _Atomic uint32_t running;       /* there is a packer thread */
    _Atomic uint32_t slow_arming;   /* arming has taken too long to wait for */
    _Atomic uint32_t hurry;         /* the ring's records must be on the disk soon */
    _Atomic uint32_t sample; /* a sample of the devices must be taken soon (device_samples.h) */
    /* the recording in which the bridge waits for a call (bridge.h) */
    _Atomic uint32_t bridge_sleeps;
    _Atomic uint32_t n_backwards;   /* backwards of torch that are under way, on any thread */
    _Atomic uint64_t hold_until_ns; /* CLOCK_MONOTONIC: nothing is packed before */
    _Atomic uint64_t arm_until_ns;  /* CLOCK_MONOTONIC: nobody waits for arming beyond this */
    _Atomic int32_t owner;          /* the process that began; 0 in a forked child */
    _Atomic uint32_t stop_reason;   /* enum tmk_stop: why `stop` was set before the program's end */
    _Atomic uint32_t n_ooms;        /* requests of this process that failed */
    _Atomic uint32_t n_calls; /* threads of the program that are in our system calls (seal.h) */
    _Atomic int32_t helpers[TMK_MOST_HELPERS]; /* our own threads (helper.h) */
};

/* The page of that state. Readers use tmk_recorder.control, which points to another page until the
 * first recording begins. */
#ifdef __aarch64__
enum { TMK_CONTROL_BYTES = 65536 }; /* the largest page size of its kernels */
#else
enum { TMK_CONTROL_BYTES = 4096 };
#endif
extern union tmk_control_page {
    struct tmk_control control;
    char bytes[TMK_CONTROL_BYTES];
} tmk_control_page;
#define tmk_fast_path (tmk_control_page.control.usual)
_Static_assert(offsetof(struct tmk_control, usual.said[1]) <= 64,
               "one line, with the first device");

enum tmk_phase { TMK_PHASE_IDLE = 0, TMK_PHASE_ARMING, TMK_PHASE_ARMED, TMK_PHASE_OFF };

/* A generation that neither a recording nor a lane without a page has. */
#define TMK_NO_GENERATION (UINT32_MAX - 1)

/* How to record: from the environment under `tidemark run`, from options when attached. */
struct tmk_settings {
    bool cpu_tensors;        /* record host tensors even when an accelerator is in use */
    bool native;             /* C and C++ frames too */
    bool no_stacks;          /* torch's blocks without stacks */
    bool no_modules;         /* without calls of torch's modules */
    bool no_categories;      /* without tags that say which tensors are what */
    uint64_t max_size_bytes; /* as asked for; 0: the default */
    char step_at[512];       /* FILE:LINE of the program where steps begin; "": they are found */
    char run_folder[3072];
};

/* The fields that the hot path reads come first, in one cache line. */
struct tmk_recorder {
    struct tmk_control *control;
    bool counter; /* tmk_clock_has_counter() */
    struct tmk_settings settings;
    /* good while armed; stays mapped afterwards, because a thread may still write */
    struct tmk_ring ring;
    uint32_t generation;       /* number of the last arming, by this process or an ancestor */
    pid_t pid;                 /* the process that armed last */
    _Atomic bool is_ending;    /* the process ends: what ends with it need not be given back */
    char ring_folders[2][256]; /* where the ring may go before /dev/shm; "": nowhere */
    char runtime_folder[256];  /* $XDG_RUNTIME_DIR, for the control socket; "": there is none */
    char rank_list[1024];      /* ranks to watch, such as "0,8-15"; "": all */
    struct tmk_ranks ranks;
};

extern struct tmk_recorder tmk_recorder __attribute__((aligned(64)));

/* Before the first recording `control` is a page that says "off". make_page() prepares the real
 * page and returns it; the caller stores it in `control` when all else is ready. NULL: it cannot be
 * made. */
bool tmk_recorder_has_page(void);
struct tmk_control *tmk_recorder_make_page(void);

static inline bool tmk_recorder_is_off(void)
{
    return atomic_load_explicit(&tmk_recorder.control->phase, memory_order_relaxed) ==
           TMK_PHASE_OFF;
}

/* A request failed, which is recorded as well. */
static inline void tmk_recorder_count_oom(void)
{
    atomic_fetch_add_explicit(&tmk_recorder.control->n_ooms, 1, memory_order_relaxed);
}

/* Go off: no more events are taken. Any thread. */
void tmk_recorder_disarm(void);

/* Called by the packer thread: when ring and trace are made (`ok`) or could not be, and when it has
 * finished. */
void tmk_recorder_set_armed(bool ok);
void tmk_recorder_set_finished(void);

#endif
