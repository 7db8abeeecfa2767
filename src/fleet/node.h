/* SPDX-License-Identifier: MIT */
/* fleet/node.h - what an agent knows of its node at one moment: devices, the processes that use
 * them, watched processes, and the agent itself. Plain data: collector.h fills it in,
 * node_metrics.h tells it.
 *
 * Unknown is not zero: TMK_BYTES_UNKNOWN, NAN, or an empty text. */
#ifndef TMK_FLEET_NODE_H
#define TMK_FLEET_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "fleet/container.h"
#include "forecast/oom_forecast.h"
#include "monitor/selection.h"

enum {
    TMK_NODE_HOST_BYTES = 128,
    TMK_NODE_TEXT_BYTES = 256,
    TMK_NODE_JOB_DEVICES = 8,
    TMK_NODE_CATEGORIES = 10,
};

struct tmk_node_device {
    struct tmk_device about;
    char label[TMK_LABEL_BYTES]; /* "0", "0:1", "host" */
    uint64_t total_bytes, used_bytes, free_bytes;
    enum tmk_risk risk;
    double oom_s;         /* NAN: no growth */
    uint64_t n_processes; /* TMK_BYTES_UNKNOWN: they cannot be listed; the host's are not */
    uint64_t n_folded;    /* of these, those in folded_bytes; unknown with them */
    uint64_t folded_bytes;
};

struct tmk_node_process {
    unsigned device; /* index into devices */
    uint32_t pid;
    uint64_t used_bytes;
    char name[16];
    struct tmk_container container;
};

/* A watched process's memory on one device. */
struct tmk_node_use {
    int device;            /* index into devices; -1: none of them fits */
    uint16_t torch_device; /* its number in the trace (trace/layout.h) */
    char torch_name[24];   /* "cuda:0" */
    uint64_t allocated_bytes, reserved_bytes;
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    uint64_t limit_bytes;
    bool has_categories;
    uint64_t categories[TMK_NODE_CATEGORIES];  /* by enum tidemark_category */
    uint64_t cached_bytes, largest_free_bytes; /* from segments; both unknown without them */
    double step_growth_bytes;                  /* NAN: too few steps */
    double peak_growth_bytes;                  /* NAN: not known */
    enum tmk_risk risk;
    enum tmk_growth_cause cause;
    double oom_s, oom_low_s, oom_high_s, confidence;
};

struct tmk_node_job {
    uint32_t pid;
    bool is_over;     /* the process has ended: only totals and peaks still mean something */
    bool is_readable; /* its trace could be read */
    int64_t rank, world_size; /* -1: none */
    char job[TMK_NODE_TEXT_BYTES];
    char run[TMK_NODE_TEXT_BYTES];
    struct tmk_container container;
    double start_s, read_s, blocks_s; /* Unix time; NAN: not known */
    uint64_t n_steps, n_ooms, n_dropped;
    unsigned n_uses;
    struct tmk_node_use uses[TMK_NODE_JOB_DEVICES];
};

struct tmk_node_agent {
    double start_s, cpu_s, resident_bytes;
    double scrape_s;  /* what writing the last answer took; NAN: none yet */
    double reading_s; /* processor time */
    uint64_t n_watched, n_jobs_folded, n_unreadable;
    bool has_otlp;
    uint64_t n_exports_ok, n_exports_failed;
    const struct tmk_node_count *requests, *refused; /* borrowed */
    unsigned n_requests, n_refused;
};

struct tmk_node_count { /* of one value of a label */
    const char *label;
    uint64_t n;
};

struct tmk_node {
    char host[TMK_NODE_HOST_BYTES];
    struct tmk_node_device *devices;
    uint64_t n_devices, devices_room;
    struct tmk_node_process *processes;
    uint64_t n_processes, processes_room;
    struct tmk_node_job *jobs;
    uint64_t n_jobs, jobs_room;
    uint64_t n_watched, n_jobs_folded;
    double reading_s;
    bool is_filled; /* something was collected */
};

#endif
