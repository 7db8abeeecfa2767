/* SPDX-License-Identifier: MIT */
/* record/core/recorder.h - the recorder inside the watched process: when it runs and when it does
 * not.
 *
 * Three phases. Idle: loaded, nothing made, nothing touched. Armed: the first event worth recording
 * has made the ring, the trace and the packer thread. Off: not wanted here, ended, or something
 * went wrong, until an attach begins anew. A forked child starts idle again and makes its own trace
 * if it has events.
 *
 * Fails open: whatever goes wrong, the program goes on as if we were not there, and the trace, if
 * there is one, says why it ends. */
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

/* What a fork must reset, in a page that the kernel zeroes in every child (MADV_WIPEONFORK),
 * however that was made. `generation` is 0 unless armed: the hot path compares it with its lane's.
 */
struct tmk_control {
    _Atomic uint32_t generation;
    _Atomic uint32_t bridge;    /* in this one it is armed (bridge.h) */
    struct tmk_fast_path usual; /* of torch's blocks (fast_path.h) */
    _Atomic uint32_t phase;
    _Atomic uint32_t stop;          /* asks the packer thread to finish */
    _Atomic uint32_t n_early_drops; /* events that came while arming and could not wait */
    _Atomic uint32_t finished;      /* it has */
    _Atomic uint32_t running;       /* there is a packer thread */
    _Atomic uint32_t slow_arming;   /* arming has taken too long to wait for */
    _Atomic uint32_t hurry;         /* what is in the ring must be on the disk soon */
    _Atomic uint32_t sample;        /* so must a sample of the devices (device_samples.h) */
    _Atomic uint32_t bridge_sleeps; /* in this generation it waits for a call (bridge.h) */
    _Atomic uint32_t n_backwards;   /* of torch's under way, on any thread */
    _Atomic uint64_t hold_until_ns; /* CLOCK_MONOTONIC: nothing is packed before */
    _Atomic uint64_t arm_until_ns;  /* and nobody waits longer than this for arming */
    _Atomic int32_t owner;          /* process that began; 0 in a forked child */
    _Atomic uint32_t stop_reason;   /* enum tmk_stop, why `stop` was set before the program's end */
    _Atomic uint32_t n_calls;       /* threads of the program in our system calls (seal.h) */
    _Atomic int32_t helpers[TMK_MOST_HELPERS]; /* our threads (helper.h) */
};

/* That page. What is recorded goes by tmk_recorder.control, which is another one until it begins.
 */
#ifdef __aarch64__
enum { TMK_CONTROL_BYTES = 65536 }; /* the largest that kernels have there */
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

/* Never a recording's, nor that of a lane without a page. */
#define TMK_NO_GENERATION (UINT32_MAX - 1)

/* How to record: from the environment under `tidemark run`, from options when attached to. */
struct tmk_settings {
    bool cpu_tensors;        /* record host tensors even when an accelerator is in use */
    bool native;             /* C and C++ frames too */
    bool no_stacks;          /* torch's blocks without the lines that asked for them */
    bool no_modules;         /* calls of torch's modules are not recorded */
    bool no_categories;      /* nor which tensors are what */
    uint64_t max_size_bytes; /* as asked for, 0: default */
    char run_folder[3072];
};

/* What the hot path reads comes first: one cache line. */
struct tmk_recorder {
    struct tmk_control *control;
    bool counter; /* tmk_clock_has_counter() */
    struct tmk_settings settings;
    struct tmk_ring ring; /* good while armed; stays mapped afterwards, a thread may still write */
    uint32_t generation;  /* of the last arming, this process's or an ancestor's */
    pid_t pid;            /* and whose that was */
    _Atomic bool is_ending;    /* the process: what goes with it need not be given back */
    char ring_folders[2][256]; /* where the ring may go before /dev/shm; "" for none */
    char runtime_folder[256];  /* $XDG_RUNTIME_DIR, "" when there is none: for the control socket */
    char rank_list[1024];      /* ranks to watch, as in "0,8-15"; "": all */
    struct tmk_ranks ranks;
};

extern struct tmk_recorder tmk_recorder __attribute__((aligned(64)));

/* Before the first recording `control` is a page that says "off". make_page() prepares the real one
 * and returns it, to be stored in `control` when all else is ready; NULL: it cannot be done. */
bool tmk_recorder_has_page(void);
struct tmk_control *tmk_recorder_make_page(void);

static inline bool tmk_recorder_is_off(void)
{
    return atomic_load_explicit(&tmk_recorder.control->phase, memory_order_relaxed) ==
           TMK_PHASE_OFF;
}

/* Go off: events are no longer taken. Any thread. */
void tmk_recorder_disarm(void);

/* The packer thread calls this when all is made (or not), and the second when it is done. */
void tmk_recorder_set_armed(bool ok);
void tmk_recorder_set_finished(void);

#endif
