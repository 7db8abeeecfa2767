/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks_internal.h - shared by leaks.c (which lines leak) and leak_tell.c (what is
 * reported of a leak). */
#ifndef TMK_PASSES_LEAK_LEAKS_INTERNAL_H
#define TMK_PASSES_LEAK_LEAKS_INTERNAL_H

#include "kit/arena.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_holders.h"
#include "passes/leak/trend.h"
#include "trace/defs.h"

enum { TMK_LEAK_LEAST_BURSTS = 2 };

/* A line, or several lines that are one leak. */
struct tmk_leak_line {
    bool has_site;
    struct tmk_frame site;
    uint16_t device;
    uint32_t *groups; /* numbers */
    uint64_t n_groups, room;
    uint64_t *bytes, *blocks; /* by look, from the first known */
    struct tmk_trend trend;
    uint32_t root;        /* number of the group that was made last */
    bool is_made_in_call; /* in forward or evaluation */
    bool may_be_graph;    /* likewise, with grad mode on: autograd may keep it */
    bool is_loose;        /* made with grad mode on, in no stage: as a loss after step() is */
    bool is_input;
    bool is_graph;
    bool is_taken; /* it is part of another one */
};

struct tmk_leakage {
    const struct tmk_process *p;
    uint64_t threshold_bytes;
    struct tmk_leak_groups groups;
    struct tmk_leak_holders holders;
    const struct tmk_context *contexts; /* only while finishing */
    struct tmk_arena arena;
    struct tmk_leak_line *lines;
    uint64_t n_lines, line_room;
    struct tmk_leak *leaks, *cycles, *doubts;
    uint64_t n_leaks, leak_room, n_cycles, cycle_room, n_doubts, doubt_room;
    uint64_t n_small;
    bool is_training; /* there is a backward */
};

/* The category with the most of the group's bytes. */
uint8_t tmk_leak_category_of(const struct tmk_leak_group *g);
/* How much a group of the line has grown while the line grew. */
uint64_t tmk_leak_growth_of(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                            uint32_t group);
enum tmk_leak_doubt tmk_leak_doubt_of(const struct tmk_leakage *l,
                                      const struct tmk_leak_line *line);
/* Describe a line as a finding. Returns 0 or TMK_ENOMEM. */
int tmk_leak_tell(struct tmk_leakage *l, const struct tmk_leak_line *line, struct tmk_leak *ret);

#endif
