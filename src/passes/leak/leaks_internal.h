/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks_internal.h - shared by leaks.c (which lines leak), leak_doubts.c (which are not
 * judged) and leak_tell.c (what is reported of a leak). */
#ifndef TMK_PASSES_LEAK_LEAKS_INTERNAL_H
#define TMK_PASSES_LEAK_LEAKS_INTERNAL_H

#include "kit/arena.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_holders.h"
#include "passes/leak/survival.h"
#include "trace/defs.h"

enum { TMK_LEAK_LEAST_BURSTS = 2 };

/* One block of the line is made anew and larger each time, or one of each of several groups. */
struct tmk_leak_growth {
    uint32_t n;           /* times; 0: there is none */
    uint32_t first, last; /* looks */
    uint32_t n_groups;
    uint32_t n_extended; /* groups that make each block just before the last one goes: torch.cat */
    uint64_t first_bytes, last_bytes;
    double per_step;
};

/* A line, or several lines that are one leak. */
struct tmk_leak_line {
    bool has_site;
    struct tmk_frame site;
    uint16_t device;
    uint32_t *groups; /* numbers */
    uint64_t n_groups, room;
    uint64_t *levels, *blocks; /* what is alive, by look */
    struct tmk_survivors kept;
    struct tmk_survival survival;
    struct tmk_bursts bursts;
    struct tmk_leak_growth growth;
    uint32_t root;     /* number of the group that was made last */
    bool may_be_graph; /* made in forward or evaluation, with grad mode on: autograd may keep it */
    bool is_loose;     /* made with grad mode on, in no stage: as a loss after step() is */
    bool is_input;
    bool is_graph;
    bool is_taken; /* it is part of another one */
    enum tmk_leak_doubt doubt;
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
    struct tmk_floor floor; /* of all that is alive */
    bool is_flat;           /* the later half of at least four steps added nothing at all */
    bool is_training;       /* there is a backward */
};

/* The category with the most of the group's bytes; input, if it was ever given to a model. */
uint8_t tmk_leak_category_of(const struct tmk_leak_group *g);
/* Judge a line by the cohorts of its groups, and set what they keep. */
void tmk_leak_judge_line(struct tmk_leakage *l, struct tmk_leak_line *line);
/* Drop blocks that grow only because others do. All lines have been judged. */
void tmk_leak_drop_consequences(struct tmk_leakage *l);
/* Whether a line grows: what it keeps, or a block. */
bool tmk_leak_grows(const struct tmk_leak_line *line);
/* By how much: what is kept, or what the block has more than at first. */
uint64_t tmk_leak_growth_bytes(const struct tmk_leak_line *line);
/* Why the line is not judged; TMK_DOUBT_NONE: it is a leak, or does not grow. */
enum tmk_leak_doubt tmk_leak_doubt_of(const struct tmk_leakage *l,
                                      const struct tmk_leak_line *line);
/* Given to models in a step, in the first and the last third of the time that a block grew. */
void tmk_leak_inputs(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                     uint64_t *ret_from, uint64_t *ret_to);
/* Describe a line as a finding. Returns 0 or TMK_ENOMEM. */
int tmk_leak_tell(struct tmk_leakage *l, const struct tmk_leak_line *line, struct tmk_leak *ret);

#endif
