/* SPDX-License-Identifier: MIT */
/* monitor/sampler.h - devices looked at again and again: what they use now, and what they did.
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
 * drift; what was slept through is counted and left out, not made up for. A device that does not
 * answer leaves a gap. Peak, mean and least are exact; the history is bounded (see history.h). */
#ifndef TMK_MONITOR_SAMPLER_H
#define TMK_MONITOR_SAMPLER_H

#include "device/device.h"
#include "monitor/history.h"
#include "monitor/selection.h"

/* Of a device 1.5 MiB, of its processes 3 KiB each: under 5 MB, the most that we promise. */
enum { TMK_HISTORY_DEVICE = 32768, TMK_HISTORY_PROCESS = 64 };

struct tmk_sampler_settings {
    uint64_t interval_ns;
    uint64_t duration_ns;                 /* 0: without end */
    uint64_t process_interval_ns;         /* how often to list processes; 0: never */
    const struct tmk_device_roots *roots; /* borrowed; for limits of the host, and to tell
                                             processes of one number apart; NULL: neither */
};

/* Processes that are no longer there are kept where there is something to judge, but of a device
 * only so many: those that grew most. */
enum { TMK_ENDED_MOST = 64 };

struct tmk_process_use {
    struct tmk_device_process now; /* used_bytes may be unknown; has_ended: as it was last */
    struct tmk_history history;
    uint64_t start_ticks; /* since the machine started, in the kernel's ticks; 0: not known */
    bool is_there;        /* in the list that was read last */
    bool has_ended;       /* in none since */
};

/* A device, and what was seen of it. Times are ns since the first sample was due. */
struct tmk_watched_device {
    unsigned index;
    const struct tmk_device *device;
    char label[TMK_LABEL_BYTES];
    bool is_part_of_other; /* a part whose card is looked at too: leave it out of sums */
    bool has_limit; /* the host: a control group leaves less than there is, and that counts */
    bool has_now;   /* the last look was answered */
    struct tmk_device_memory now;
    char reason[160]; /* why the last look was not answered; "": it was */
    uint64_t n_samples, n_gaps;
    uint64_t min_bytes, max_bytes, max_ns;
    unsigned __int128 sum_bytes;
    double sum_percent, max_percent; /* of its total at the time */
    struct tmk_history history;
    struct tmk_process_use *processes;
    uint64_t n_processes, processes_room;
    char process_reason[160]; /* why its processes cannot be listed; "": they can */
};

struct tmk_sampler;

/* `devices` is borrowed until close. 0, or TMK_E* and *ret untouched. */
int tmk_sampler_open(struct tmk_devices *devices, const struct tmk_selection *selection,
                     const struct tmk_sampler_settings *settings, struct tmk_sampler **ret,
                     struct tmk_error *err);
struct tmk_sampler *tmk_sampler_close(struct tmk_sampler *s);

/* When the next sample is due, in CLOCK_MONOTONIC; false when the duration is over. */
bool tmk_sampler_due_ns(const struct tmk_sampler *s, uint64_t *ret_ns);
/* Take the sample that is due. 0 or TMK_ENOMEM. */
int tmk_sampler_look(struct tmk_sampler *s, struct tmk_error *err);

unsigned tmk_sampler_n_devices(const struct tmk_sampler *s);
/* Borrowed until close; changed by each look. */
const struct tmk_watched_device *tmk_sampler_device(const struct tmk_sampler *s, unsigned i);
uint64_t tmk_sampler_start_ns(const struct tmk_sampler *s); /* CLOCK_MONOTONIC */
uint64_t tmk_sampler_n_missed(const struct tmk_sampler *s); /* samples slept through */
const struct tmk_sampler_settings *tmk_sampler_settings(const struct tmk_sampler *s);

/* Share of its memory that is used now; only where has_now. */
double tmk_device_use_percent(const struct tmk_watched_device *u);
/* The same with what the driver keeps for itself: 100 is where nobody can have any more. */
double tmk_device_taken_percent(const struct tmk_watched_device *u);
/* What a program could still have: neither used nor kept by the driver. */
uint64_t tmk_device_free_bytes(const struct tmk_device_memory *m);

#endif
