/* SPDX-License-Identifier: MIT */
/* passes/stages.h - what each stage of a process needs: forward, backward, optimizer, model_load
 * and stages that the program names itself.
 *
 * It is a pass for one sweep. A stage inside another counts for both; what was allocated counts
 * for the innermost alone, so that `allocated` adds up. Stages that several threads have open at
 * once under one name (backward, on autograd's threads) are one stage: it lasts from the first
 * to the last of them.
 *
 *     tmk_stages_open(p, device, &s); ... sweep with tmk_stages_visitor(s) ...
 *     tmk_stages_finish(s, &rp, &err);
 *     for (uint32_t i = 0; i < tmk_stages_n(s); i++) ... tmk_stages_get(s, i)->peak_bytes ... */
#ifndef TMK_PASSES_STAGES_H
#define TMK_PASSES_STAGES_H

#include "model/run.h"
#include "trace/replay.h"

struct tmk_stage_row {
    const char *name;         /* borrowed from the reader */
    uint64_t peak_bytes;      /* most allocated on the device while it was open */
    uint64_t end_bytes;       /* allocated when it last ended, or at the end of the trace */
    uint64_t allocated_bytes; /* all allocations made in it, summed */
    uint64_t n_allocs;
    uint64_t n_times; /* times that it was opened */
    uint64_t ns;      /* time that it was open, summed */
};

struct tmk_stages;

/* The stages of one device. Returns 0 or TMK_ENOMEM. */
int tmk_stages_open(const struct tmk_process *p, uint16_t device, struct tmk_stages **ret_stages);
struct tmk_stages *tmk_stages_close(struct tmk_stages *s);
struct tmk_visitor tmk_stages_visitor(struct tmk_stages *s);
/* Call it after the sweep. Returns 0 or TMK_ENOMEM. */
int tmk_stages_finish(struct tmk_stages *s, const struct tmk_replay *rp, struct tmk_error *err);

/* Stages come in the order in which they first began; borrowed until close. */
uint32_t tmk_stages_n(const struct tmk_stages *s);
const struct tmk_stage_row *tmk_stages_get(const struct tmk_stages *s, uint32_t i);

#endif
