/* SPDX-License-Identifier: MIT */
/* monitor/sampler.h - sample devices repeatedly: their use now, and its history.
 *
 *     struct tmk_sampler *s = NULL;
 *     rc = tmk_sampler_open(devices, &selection, &settings, &s, &err);
 *     while (tmk_sampler_due_ns(s, &due)) {
 *         ... wait until CLOCK_MONOTONIC is `due` ...
 *         rc = tmk_sampler_look(s, &err);
 *     }
 *     s = tmk_sampler_close(s);
 *
 * Samples are due at the start and every interval after it, by the clock, so that they do not
 * drift. Samples that were slept through are counted and left out, not made up for. A device that
 * does not answer leaves a gap. Peak, mean and least are exact; the history is bounded (see
 * history.h). */
#ifndef TMK_MONITOR_SAMPLER_H
#define TMK_MONITOR_SAMPLER_H

#include "device/device.h"
#include "monitor/history.h"
#include "monitor/selection.h"

/* A device's history takes 1.5 MiB and a process's 3 KiB: under 5 MB, the most that we promise. */
enum { TMK_HISTORY_DEVICE = 32768, TMK_HISTORY_PROCESS = 64 };

struct tmk_sampler_settings {
    uint64_t interval_ns;
    uint64_t duration_ns;                 /* 0: without end */
    uint64_t process_interval_ns;         /* how often to list processes; 0: never */
    uint64_t history_most;                /* entries a device's history may have, even; 0:
                                             TMK_HISTORY_DEVICE */
    const struct tmk_device_roots *roots; /* borrowed; for the host's limits, and to tell processes
                                             with one number apart; NULL: neither */
};

/* Processes that have ended are kept if they can be judged, but only this many for a device: those
 * that grew most. */
enum { TMK_ENDED_MOST = 64 };

struct tmk_process_use {
    struct tmk_device_process now; /* used_bytes may be unknown; if has_ended: its last state */
    struct tmk_history history;
    uint64_t start_ticks; /* when it started, in the kernel's ticks since the machine started; 0:
                             not known */
    bool is_there;        /* it was in the list that was read last */
    bool has_ended;       /* it has been in no list since */
};

/* A device and everything seen of it. Times are ns since the first sample was due. */
struct tmk_watched_device {
    unsigned index;
    const struct tmk_device *device;
    char label[TMK_LABEL_BYTES];
    bool is_part_of_other; /* a part, and its GPU is watched too: leave the part out of sums */
    bool has_limit; /* the host, where a control group allows less than there is; that counts */
    bool has_now;   /* the device answered the last look */
    struct tmk_device_memory now;
    char reason[160]; /* why it did not answer; "": it did */
    uint64_t n_samples, n_gaps;
    uint64_t min_bytes, max_bytes, max_ns;
    unsigned __int128 sum_bytes;
    double sum_percent, max_percent; /* of the total at the time */
    struct tmk_history history;
    struct tmk_process_use *processes;
    uint64_t n_processes, processes_room;
    bool has_list; /* its processes were listed once, first at: */
    uint64_t first_list_ns;
    char process_reason[160]; /* why its processes cannot be listed; "": they can */
};

struct tmk_sampler;

/* `devices` is borrowed until close. 0, or TMK_E* and *ret untouched. */
int tmk_sampler_open(struct tmk_devices *devices, const struct tmk_selection *selection,
                     const struct tmk_sampler_settings *settings, struct tmk_sampler **ret,
                     struct tmk_error *err);
struct tmk_sampler *tmk_sampler_close(struct tmk_sampler *s);

/* Say when the next sample is due, in CLOCK_MONOTONIC; false: the duration is over. */
bool tmk_sampler_due_ns(const struct tmk_sampler *s, uint64_t *ret_ns);
/* Take the sample that is due. 0 or TMK_ENOMEM. */
int tmk_sampler_look(struct tmk_sampler *s, struct tmk_error *err);

unsigned tmk_sampler_n_devices(const struct tmk_sampler *s);
/* Borrowed until close; each look changes it. */
const struct tmk_watched_device *tmk_sampler_device(const struct tmk_sampler *s, unsigned i);
uint64_t tmk_sampler_start_ns(const struct tmk_sampler *s); /* CLOCK_MONOTONIC */
uint64_t tmk_sampler_n_missed(const struct tmk_sampler *s); /* samples that were slept through */
const struct tmk_sampler_settings *tmk_sampler_settings(const struct tmk_sampler *s);

/* The share of its memory that is used now; valid only if has_now. */
double tmk_device_use_percent(const struct tmk_watched_device *u);
/* The same including what the driver keeps for itself: at 100 no program can have any more. */
double tmk_device_taken_percent(const struct tmk_watched_device *u);
/* Bytes that a program could still have: neither used nor kept by the driver. */
uint64_t tmk_device_free_bytes(const struct tmk_device_memory *m);

#endif
