/* SPDX-License-Identifier: MIT */
/* passes/leak/leaks.h - what grows step by step, and the line that owns it.
 *
 * Blocks are grouped by stack and context (module, stage), groups by the line of the user's code
 * that asked. Of each it is known how much was alive at the end of every step. The floor is the
 * least that was alive from there to the end: what is undercut later was only the low end of a
 * swing. A line leaks when its floor rises
 *
 *   - still: the time since it last rose is at most twice the longest pause before,
 *   - evenly: each third of the time since it began has at least a tenth of the growth,
 *   - for long enough: four times or more, over eight steps or more,
 *   - by more than twice of what it ever fell back.
 *
 * So neither caches that are full, nor warm-up, nor gradient accumulation, nor what an evaluation
 * or a generation gathers and then drops is a leak.
 *
 * Some lines are named and not judged: what rose only three times (without steps: seven), what
 * rises slower and slower, as a cache that fills does (see trend.c; also what would have a
 * confidence below a half), and what was let go after the last step while the parameters stayed: a
 * result that was gathered. Programs that end free all they have within moments, so this must be
 * a tenth of a second or more before the first parameter goes. A result is also what is as large as
 * one block that is made after the last step: torch.cat() of it.
 *
 * Bytes per step: what was added between two rises over the steps between them, the median of many
 * such pairs (trend.c). Confidence is Laplace's rule of succession, (k + 1) / (n + 2): of the
 * n times that it could have risen (its life cut into parts as long as its mean pause) it rose in
 * k, so this is the probability that it will the next time. It is higher the longer and the more
 * regularly it grows.
 *
 * Lines that one graph of autograd's keeps alive are one leak: they rise in the same steps and were
 * made in forward (or handed to it). The graph hangs on what was made last, so its owner is the
 * line that led there, in the innermost function that all of them were called from, outside of
 * modules.
 *
 * Without steps time is cut into equal parts; what is "per step" is then per part and means nothing
 * to anybody: bytes_per_second does. */
#ifndef TMK_PASSES_LEAK_LEAKS_H
#define TMK_PASSES_LEAK_LEAKS_H

#include "model/run.h"
#include "trace/defs.h"
#include "trace/replay.h"

enum {
    TMK_LEAK_MIN_STEPS = 10,          /* finished steps that a verdict needs */
    TMK_LEAK_TIME_PARTS = 60,         /* where there are no steps */
    TMK_LEAK_DEFAULT_BYTES = 1 << 20, /* growth over the run that is worth a word */
};

enum tmk_leak_verdict {
    TMK_LEAK_CLEAN,
    TMK_LEAK_FOUND,
    TMK_LEAK_TOO_SHORT, /* not enough steps to tell */
};

/* What keeps the blocks, as far as the trace tells. */
enum tmk_leak_keeper {
    TMK_KEEPER_UNKNOWN,
    TMK_KEEPER_GRAPH,     /* autograd's, of a loss or an output that is kept */
    TMK_KEEPER_CONTAINER, /* a list, a dict, a cache, an attribute */
    TMK_KEEPER_HOOK,      /* a hook or a callback of a module's made them */
    TMK_KEEPER_CYCLE,     /* a reference cycle: they go in bursts, when Python collects garbage */
    TMK_KEEPER_GROWING,   /* one block that is made anew, larger each time (torch.cat) */
    TMK_KEEPER_LOADER,    /* batches of a data loader */
};

/* Why a line that grew was not judged. */
enum tmk_leak_doubt {
    TMK_DOUBT_NONE,
    TMK_DOUBT_FEW,     /* it rose too few times */
    TMK_DOUBT_SLOWING, /* it rises slower and slower */
    TMK_DOUBT_LET_GO,  /* it was let go after the last step */
    TMK_DOUBT_JOINED,  /* after the last step one block was made that is as large as all of it */
};

/* Growth of one stack in one context. */
struct tmk_leak_part {
    uint32_t stack;
    const char *module, *stage; /* NULL: none */
    uint8_t category;
    double bytes_per_step;
    double blocks_per_step;
};

struct tmk_leak {
    uint16_t device;
    bool has_site;
    struct tmk_frame site; /* the owning line: the innermost of the user's code */
    uint32_t stack;        /* of what was made there */
    uint8_t category;      /* with the most of its bytes */
    const char *module;    /* likewise; NULL: none */
    const char *stage;
    double bytes_per_step; /* without steps: per part of time */
    double blocks_per_step;
    double bytes_per_second;
    int64_t first_step;        /* TMK_NO_STEP without steps */
    uint64_t first_ns;         /* trace time of its first rise */
    uint64_t bytes;            /* by which it has grown */
    uint32_t n_rises;          /* times that it was seen to grow */
    enum tmk_leak_doubt doubt; /* of those that were not judged */
    double confidence;         /* see above */
    enum tmk_leak_keeper keeper;
    const struct tmk_leak_part *parts; /* largest first */
    uint64_t n_parts;
};

struct tmk_leakage; /* the pass, then its result */

/* 0 or TMK_ENOMEM. `threshold_bytes`: what has grown by less over the run is no leak. Visit, finish
 * with the replay, then ask. Events of the kinds FREE, OOM, SEGMENT
 * and SEGMENT_END are all that it needs to see. */
int tmk_leakage_open(const struct tmk_process *p, uint64_t threshold_bytes,
                     struct tmk_leakage **ret_leakage);
struct tmk_leakage *tmk_leakage_close(struct tmk_leakage *l); /* takes NULL, returns NULL */
struct tmk_visitor tmk_leakage_visitor(struct tmk_leakage *l);
int tmk_leakage_finish(struct tmk_leakage *l, const struct tmk_replay *rp, struct tmk_error *err);

enum tmk_leak_verdict tmk_leakage_verdict(const struct tmk_leakage *l);
/* Most bytes per step first; borrowed until close. */
uint64_t tmk_leakage_n(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_get(const struct tmk_leakage *l, uint64_t i);
/* Finished steps that were looked at; 0: there are none, time was cut into parts. */
uint64_t tmk_leakage_n_steps(const struct tmk_leakage *l);
/* Lines that grow by less than the threshold. */
uint64_t tmk_leakage_n_small(const struct tmk_leakage *l);
/* Growth that falls back when Python collects garbage: what is kept by reference cycles and then
 * freed in bursts. No leak, but worth a word; the same as leaks, bytes is the largest burst. */
uint64_t tmk_leakage_n_cycles(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_cycle(const struct tmk_leakage *l, uint64_t i);

/* Growth that is named and not judged; most bytes first. */
uint64_t tmk_leakage_n_doubts(const struct tmk_leakage *l);
const struct tmk_leak *tmk_leakage_doubt(const struct tmk_leakage *l, uint64_t i);
const char *tmk_doubt_name(enum tmk_leak_doubt doubt); /* "few", "slowing", "let_go", "joined" */

/* "graph", "container" ...; NULL: not known. For people: what that means, and what to do. */
const char *tmk_keeper_name(enum tmk_leak_keeper keeper);
const char *tmk_keeper_text(enum tmk_leak_keeper keeper);
const char *tmk_keeper_advice(enum tmk_leak_keeper keeper);

#endif
