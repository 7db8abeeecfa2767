/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_groups.h - how much of each stack and context was alive at the end of every
 * step.
 *
 * It is part of leaks.h. A look is a moment: the end of a step or, in a long run, of every n-th;
 * without steps, the end of one of many parts of time. Only a block that lives through a look
 * counts, so what a step makes and frees again costs one comparison: it is younger than the last
 * look.
 *
 * Driver memory counts too where no block stands for it: pinned host memory (of a data loader),
 * and what others than torch have of a device on which no block ever was.
 *
 * Without steps, looks are placed so that about as many blocks are made from one to the next. */
#ifndef TMK_PASSES_LEAK_LEAK_GROUPS_H
#define TMK_PASSES_LEAK_LEAK_GROUPS_H

#include "base/index.h"
#include "model/holders.h"
#include "model/run.h"
#include "passes/leak/trend.h"
#include "trace/state.h"

enum {
    TMK_LEAK_MAX_GROUPS = 1 << 14, /* blocks of further groups are ignored */
    TMK_LEAK_N_CATEGORIES = 10,
    TMK_LEAK_MAX_LATE = 32,
    TMK_LEAK_END_NS = 100000000, /* a program that ends pauses for less, even on a busy machine */
};

struct tmk_leak_group {
    struct tmk_block latest;  /* the youngest that lived through a look; settled */
    uint64_t *bytes, *blocks; /* by look: changes, and after finish levels */
    uint64_t category_bytes[TMK_LEAK_N_CATEGORIES];
    uint64_t let_go_bytes;   /* freed after the last look, while the program went on */
    uint64_t going_bytes;    /* likewise, but less than TMK_LEAK_END_NS ago; until finish */
    uint64_t going_ns;       /* when the last of them went */
    uint64_t last_bytes;     /* the size of that block, until another has taken its place */
    uint64_t replaced_bytes; /* bytes that went after others of the group had taken their place */
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
    uint64_t n_steps;                        /* finished ones */
    uint64_t look_ns[TMK_TREND_MAX_LEVELS];  /* trace time, rising */
    uint64_t n_before[TMK_TREND_MAX_LEVELS]; /* steps that had ended, that one included */
    int64_t step[TMK_TREND_MAX_LEVELS];      /* the step that ended; TMK_NO_STEP */
    uint64_t n_allocs[TMK_TREND_MAX_LEVELS]; /* blocks and segments that had been made, roughly */
    uint32_t n_looks;
    uint32_t first;   /* earlier looks are not known: their detail is gone */
    uint32_t next;    /* number of the first look that is later than the event */
    uint64_t last_ns; /* time of the look before that; 0: none */

    struct tmk_leak_group *groups;
    uint64_t n_groups, room;
    struct tmk_index index;                       /* of number + 1, by stack, context and device */
    struct tmk_leak_late late[TMK_LEAK_MAX_LATE]; /* the largest */
    bool has_parameters;
    uint64_t end_ns; /* when the first parameter went after the last look, or the trace ended */
    bool has_oom;    /* an OOM came after the last look */
    bool failed;     /* out of memory */
};

/* Returns 0 or TMK_ENOMEM; fini in both cases. */
int tmk_leak_groups_init(struct tmk_leak_groups *g, const struct tmk_process *p);
void tmk_leak_groups_fini(struct tmk_leak_groups *g);

/* Say that a block was freed, a segment ended, a request failed (OOM), or the state was
 * restored. */
void tmk_leak_groups_freed(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_block *b);
void tmk_leak_groups_ended(struct tmk_leak_groups *g, const struct tmk_state *s, uint64_t ns,
                           const struct tmk_driver_segment *segment);
void tmk_leak_groups_refused(struct tmk_leak_groups *g, uint64_t ns);
void tmk_leak_groups_restored(struct tmk_leak_groups *g, const struct tmk_state *s);
/* Call it after the sweep. Levels are then known from look `first` up to, not including,
 * n_looks. */
int tmk_leak_groups_finish(struct tmk_leak_groups *g, const struct tmk_state *s);

static inline uint64_t tmk_leak_groups_n_looks(const struct tmk_leak_groups *g)
{
    return g->n_looks > g->first ? g->n_looks - g->first : 0;
}

#endif
