/* SPDX-License-Identifier: MIT */
/* passes/leak/leak.h - one finding of the leak pass: where it grows, how fast, and what keeps it.
 *
 * leaks.h finds them and says what counts as a leak. */
#ifndef TMK_PASSES_LEAK_LEAK_H
#define TMK_PASSES_LEAK_LEAK_H

#include "trace/defs.h"

enum { TMK_LEAK_TIME_PARTS = 60 }; /* equal parts of time, where there are no steps */

/* The thing that keeps the blocks alive, as far as the trace tells. */
enum tmk_leak_keeper {
    TMK_KEEPER_UNKNOWN,
    TMK_KEEPER_GRAPH,     /* the autograd graph of a loss or an output that is kept */
    TMK_KEEPER_CONTAINER, /* a list, a dict, a cache, an attribute */
    TMK_KEEPER_HOOK,      /* a hook or a callback of a module made them */
    TMK_KEEPER_CYCLE,     /* a reference cycle: they go in bursts, when Python collects garbage */
    TMK_KEEPER_GROWING,   /* one block that is made anew, larger each time (torch.cat) */
    TMK_KEEPER_LOADER,    /* batches of a data loader */
};

/* Why a line that grew is named but not judged. */
enum tmk_leak_doubt {
    TMK_DOUBT_NONE,
    TMK_DOUBT_FEW,     /* too few steps kept something */
    TMK_DOUBT_SLOWING, /* fewer and fewer steps keep something, or less and less */
    TMK_DOUBT_JOINED,  /* after the last step one block was made that is as large as all of it */
    TMK_DOUBT_RESULT,  /* the output of each call of a model, in inference */
    TMK_DOUBT_WORK,    /* a block is made larger each time, and so is what the model is given */
    TMK_DOUBT_STATE,   /* an optimizer's, and no more than two for each parameter */
    TMK_DOUBT_LOADING, /* without steps: most of what the process makes is kept */
};

enum { TMK_LEAK_SHOWN_STEPS = 3 };

/* The growth of one stack in one context. */
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
    struct tmk_frame site; /* the owning line: the innermost frame of the user's code */
    uint32_t stack;        /* of the blocks made there */
    uint8_t category;      /* the one with the most of its bytes */
    const char *module;    /* likewise; NULL: none */
    const char *stage;
    double bytes_per_step; /* without steps: per part of time */
    double blocks_per_step;
    double bytes_per_second;
    int64_t first_step; /* TMK_NO_STEP without steps */
    uint64_t first_ns;  /* trace time of its first rise */
    uint64_t bytes;     /* what is kept of all steps, or the growth of a block */
    uint32_t n_rises;   /* steps (looks) that kept something; times that a block grew */
    uint32_t every;     /* steps from one to the next, if always as many; else 0 */
    bool is_faster;     /* more and more, so the rates are those of its last quarter */
    bool is_let_go;     /* most of it went at once before the last step: a function ended */
    bool is_block;      /* one block that is made anew and larger, not many that are kept */
    int64_t at_step;    /* the last moment before most of it went */
    int64_t steps[TMK_LEAK_SHOWN_STEPS]; /* the first that kept something; TMK_NO_STEP */
    uint64_t input_from, input_to; /* with TMK_DOUBT_WORK: given to models in a step, at first and
                                      at last; 0: not known */
    enum tmk_leak_doubt doubt;     /* of findings that were not judged */
    double confidence;             /* see leaks.h */
    enum tmk_leak_keeper keeper;
    const char *holder; /* what holds them, as in "list `history` in train.py"; NULL: not known */
    const struct tmk_leak_part *parts; /* largest first */
    uint64_t n_parts;
};

/* "few", "slowing", "joined", "result", "work", "state" or "loading". */
const char *tmk_doubt_name(enum tmk_leak_doubt doubt);

/* The keeper's name: "graph", "container" ...; NULL: not known. Its text says what that means. */
const char *tmk_keeper_name(enum tmk_leak_keeper keeper);
const char *tmk_keeper_text(enum tmk_leak_keeper keeper);

/* What to do about it, in words: the host's memory cannot be moved to the host. */
const char *tmk_leak_advice(const struct tmk_leak *leak);

#endif
