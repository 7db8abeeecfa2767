/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_groups.h - the cohorts of each stack and context.
 *
 * It is part of leaks.h. A look is a moment: the end of a step or, in a long run, of every n-th;
 * without steps, the end of one of many parts of time. Only a block that lives through a look
 * counts, so what a step makes and frees again costs one comparison: it is younger than the last
 * look.
 *
 * Driver memory counts too where no block stands for it: pinned host memory (of a data loader),
 * and what others than torch have of a device on which no block ever was.
 *
 * Without steps, looks are placed so that about as many blocks are made from one to the next.
 *
 * Memory is bounded: when the cohorts of all groups are too many, every second look is given up. */
#ifndef TMK_PASSES_LEAK_LEAK_GROUPS_H
#define TMK_PASSES_LEAK_LEAK_GROUPS_H

#include "base/index.h"
#include "model/holders.h"
#include "model/run.h"
#include "passes/leak/cohorts.h"
#include "trace/state.h"

enum {
    TMK_LEAK_MAX_GROUPS = 1 << 14,  /* blocks of further groups are ignored */
    TMK_LEAK_MAX_COHORTS = 1 << 21, /* of all groups: 32 MiB */
    TMK_LEAK_N_CATEGORIES = 16,
    TMK_LEAK_MAX_LATE = 32,
};

struct tmk_leak_group {
    struct tmk_block latest; /* the youngest that lived through a look; settled */
    struct tmk_cohorts cohorts;
    uint64_t category_bytes[TMK_LEAK_N_CATEGORIES];
    bool is_given;       /* made outside of models and given to one */
    uint64_t freed_at;   /* blocks that had been made when the last of them went; 0: none went */
    uint32_t n_extended; /* of them that were made just before the one before went: torch.cat */
    uint32_t usual_age;  /* what follows is set by leaks.c, for the line that the group is of */
    uint64_t kept_bytes, kept_blocks;
};

/* A block that was made after the last look. */
struct tmk_leak_late {
    uint64_t size_bytes;
    uint16_t device;
};

struct tmk_leak_groups {
    const struct tmk_process *p;
    struct tmk_holders *holders;
    bool has_steps;
    uint64_t n_steps;                    /* finished ones */
    uint64_t look_ns[TMK_MAX_LOOKS];     /* trace time, rising */
    uint64_t n_before[TMK_MAX_LOOKS];    /* steps that had ended, that one included */
    int64_t step[TMK_MAX_LOOKS];         /* the step that ended; TMK_NO_STEP */
    uint64_t n_allocs[TMK_MAX_LOOKS];    /* blocks and segments that had been made, roughly */
    uint64_t input_bytes[TMK_MAX_LOOKS]; /* given to models since the look before */
    uint64_t call_serial[TMK_MAX_LOOKS]; /* the last block that a model's call made, likewise */
    uint32_t n_looks;
    uint32_t first;   /* earlier looks are not known: their detail is gone */
    uint32_t next;    /* number of the first look that is later than the event */
    uint64_t last_ns; /* time of the look before that; 0: none */

    struct tmk_leak_group *groups;
    uint64_t n_groups, room;
    uint64_t n_cohorts;                           /* of all groups, roughly */
    struct tmk_index index;                       /* of number + 1, by stack, context and device */
    struct tmk_leak_late late[TMK_LEAK_MAX_LATE]; /* the largest */
    uint64_t made_bytes; /* of all blocks that were seen to go or were there at the end */
    bool has_oom;        /* an OOM came after the last look */
    bool failed;         /* out of memory */
};

/* Returns 0 or TMK_ENOMEM; fini in both cases. */
int tmk_leak_groups_init(struct tmk_leak_groups *g, const struct tmk_process *p);
void tmk_leak_groups_fini(struct tmk_leak_groups *g);

/* Say that a block was freed, a block was given to a model, a segment ended, a request failed
 * (OOM), or the state was restored. */
void tmk_leak_groups_freed(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_block *b);
void tmk_leak_groups_given(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_block *b);
void tmk_leak_groups_ended(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_driver_segment *segment);
void tmk_leak_groups_refused(struct tmk_leak_groups *g, uint64_t ns);
void tmk_leak_groups_restored(struct tmk_leak_groups *g, const struct tmk_state *s);
/* Call it after the sweep. Cohorts are merged then, and look 0 is the first that is known. */
int tmk_leak_groups_finish(struct tmk_leak_groups *g, const struct tmk_state *s);

/* The number of the first look after a time; n_looks: there is none. */
uint32_t tmk_leak_groups_look_after(const struct tmk_leak_groups *g, uint64_t ns);

#endif
