/* SPDX-License-Identifier: MIT */
/* bench_out.h - a made-up trace, written through the real packer and writer.
 *
 * The maker of a workload defines strings, frames and stacks, then emits events; times come from a
 * realistic distribution here. What was emitted is counted by this module itself, apart from the
 * packer, so the totals can be held against what a reader finds. The first error sticks: emitting
 * goes on without effect and close() returns it. */
#ifndef TMK_BENCH_OUT_H
#define TMK_BENCH_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/packer.h"
#include "trace/writer.h"

struct tmk_bench_truth {
    uint64_t n_events;
    uint64_t n_allocs;
    uint64_t n_frees;
    uint64_t n_tags;
    uint64_t n_rows; /* module ranges opened and closed inside a stage */
    uint64_t n_steps;
    uint64_t live_bytes;
    uint64_t n_live;
    uint64_t peak_bytes;
    uint64_t peak_ns;
    uint64_t end_ns;
    uint64_t file_bytes;
};

struct tmk_bench_limits { /* where emitting ends, in the middle of a step if need be */
    uint64_t n_events;
    uint64_t n_rows;
};

enum { TMK_BENCH_GAPS = 4096, TMK_BENCH_THREADS = 8 };

struct tmk_bench_out {
    struct tmk_bench_truth truth;
    struct tmk_bench_limits limits;
    bool is_full; /* a limit was reached: later events are not written */
    uint64_t random;

    struct tmk_writer writer;
    struct tmk_packer *packer;
    int rc;
    struct tmk_error error;
    uint64_t now_ns;
    uint32_t gaps_ns[TMK_BENCH_GAPS];
    bool stage_open[TMK_BENCH_THREADS];

    struct tmk_bench_name *names; /* interned strings and frames, by hash */
    uint32_t n_strings, n_frames, n_stacks;
};

/* The place of a process in its job. Eight ranks share a host. */
struct tmk_bench_rank {
    unsigned rank, world_size;
};

/* Make a trace in `folder`, which must not exist for the first rank; `command` goes into its
 * header. */
int tmk_bench_out_open(struct tmk_bench_out *o, const char *folder, const char *command,
                       uint64_t seed, const struct tmk_bench_limits *limits,
                       const struct tmk_bench_rank *rank);
/* Finish the trace and fill truth.file_bytes; the first error of all, or 0. */
int tmk_bench_out_close(struct tmk_bench_out *o);

/* Ids; the same text gives the same id. */
uint32_t tmk_bench_out_string(struct tmk_bench_out *o, const char *text);
uint32_t tmk_bench_out_frame(struct tmk_bench_out *o, const char *file, const char *function,
                             uint32_t line);
/* A new stack, frames innermost first. */
uint32_t tmk_bench_out_stack(struct tmk_bench_out *o, const uint32_t *frames, uint32_t n);
void tmk_bench_out_thread(struct tmk_bench_out *o, uint32_t id, uint64_t system_id,
                          const char *name);

/* One event, a moment after the one before. FREE carries the block's size in `b`. */
void tmk_bench_out_event(struct tmk_bench_out *o, const struct tmk_input *event);
/* Let time pass. */
void tmk_bench_out_wait(struct tmk_bench_out *o, uint64_t ns);
/* The next random number, from the seed. */
uint64_t tmk_bench_out_random(struct tmk_bench_out *o);

#endif
