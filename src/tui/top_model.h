/* SPDX-License-Identifier: MIT */
/* tui/top_model.h - everything that `top` can show, as plain data: gather.c fills it in, picture.c
 * draws it and --json prints it. Unknown is TMK_BYTES_UNKNOWN or an empty text. */
#ifndef TMK_TUI_TOP_MODEL_H
#define TMK_TUI_TOP_MODEL_H

#include "device/device.h"
#include "monitor/selection.h"
#include "tui/details.h"
#include "tui/jobs.h"

enum { TMK_TOP_HISTORY = 1024, TMK_TOP_DEVICES_BYTES = 24 };

struct tmk_top_device {
    char label[TMK_LABEL_BYTES]; /* "0", "0:1" for a part, "host" */
    struct tmk_device about;
    struct tmk_device_memory memory;
    struct tmk_device_load load;
    char reason[232];       /* why its memory is not known */
    char users_reason[232]; /* why its processes could not be listed */
    unsigned stalled;       /* the host: hundredths of a percent of the last ten seconds in which a
                               process waited for memory; TMK_LOAD_UNKNOWN: not known, or no host */
    bool has_users;      /* its processes were listed; the host and GPUs with parts are not asked */
    unsigned n_left_out; /* processes left out because there was no room; they use least */
    unsigned n_history;
    uint64_t history[TMK_TOP_HISTORY]; /* used bytes at each look, the newest last */
};

/* What a process had at the last looks: one value a look, the newest last. */
struct tmk_top_series {
    uint32_t pid;
    bool is_watched; /* the values are what it has allocated, else what the driver counts for it */
    bool is_seen;    /* at this look */
    uint64_t start_ticks;
    unsigned n;
    uint64_t bytes[TMK_TOP_HISTORY];
};

struct tmk_top_process {
    uint32_t pid;
    char user[24];
    char command[TMK_JOB_TEXT_BYTES];
    char devices[TMK_TOP_DEVICES_BYTES]; /* "0", "0,2-3"; "": it uses none */
    uint64_t used_bytes;                 /* on all its devices, by the driver */
    uint64_t host_bytes;                 /* resident */
    bool is_watched;
    uint64_t start_ticks; /* when it started (kernel_files.h); 0: not known */
    struct tmk_job job;   /* valid if is_watched */
};

struct tmk_top_use { /* the use of a device by a process */
    uint32_t pid;
    unsigned device; /* its index in the list */
    uint64_t bytes;
};

struct tmk_top_model {
    char host[64];
    char clock[16];                    /* "12:31:05" */
    char driver[64];                   /* "driver 580.95.05, CUDA 13.0" */
    char problem[256];                 /* a problem with a driver */
    uint64_t look_ns[TMK_TOP_HISTORY]; /* when the last looks were, the newest last */
    unsigned n_looks;
    struct tmk_top_device *devices;
    unsigned n_devices;
    struct tmk_top_process *processes; /* by PID */
    uint64_t n_processes, process_room;
    struct tmk_top_series **series; /* of processes that were there at the last look */
    uint64_t n_series, series_room;
    struct tmk_top_use *uses;
    uint64_t n_uses, use_room;
    const struct tmk_details *details; /* of the process that is asked for; NULL: not read yet */
    unsigned details_percent;          /* how much of it has been read then */
};

#endif
