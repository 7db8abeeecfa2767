/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_causes.h - why memory ran out, from the evidence: rules, no sweep, nothing hidden.
 *
 * A = bytes in blocks, R = bytes that the framework's allocator held after it had given back what
 * it could, Q = bytes asked for, S = what it had to ask of the driver for that (Q rounded up as
 * torch does). The limit is what R may be at most:
 *
 *   card     the driver refused, so R fits and R + S does not. Between the two: the card less what
 *            others have and what the process has beside (context, NCCL ...), as last seen
 *   setting  the allocator refused without asking the driver (set_per_process_memory_fraction): at
 *            least the most that it ever held, and below R + S
 *   stated   the event tells it
 *
 * Missing is S less what was left of the limit. Each cause accounts for bytes:
 *
 *   fragmentation  A + Q fits in the limit and R - A >= Q, so without gaps there was room; what the
 *                  whole step needs is not thought to be more (oom_need.h); and if a replay of the
 *                  allocator runs out here as the job did, one with some other settings does not:
 *                  R - A. Also when somebody else than torch asked the driver for no more than
 *                  torch kept unused.
 *   settings       the same, where a replay with torch's own settings does not run out: R - A
 *   leak           what grew step by step until then (leaks.h). Of fewer than ten steps: if what
 *                  stays grew with each of at least four, the blocks of earlier ones
 *   outlier        A + Q is above the median peak of (up to 32) steps before by more than a quarter
 *                  and by five deviations (MAD x 1.4826), of at least three, and those would fit: A
 * + Q less the median other_process  the card is the limit and others have some of it: what they
 * have demand the job needs more than there is: a twentieth of the limit, always
 *
 * A cause counts if its bytes are at least what was missing and at least a twentieth of the limit
 * (of fragmentation: what was asked for). The one with most bytes comes first, where fragmentation
 * and settings count double: without them this very request had been served, while a leak or a
 * large step only made it come sooner. That the limit is a setting is evidence and a fix but no
 * cause: it stands for a smaller card. */
#ifndef TMK_PASSES_OOM_OOM_CAUSES_H
#define TMK_PASSES_OOM_OOM_CAUSES_H

#include "passes/leak/leaks.h"
#include "passes/oom/oom_scene.h"
#include "trace/defs.h"

enum tmk_cause {
    TMK_CAUSE_DEMAND,
    TMK_CAUSE_FRAGMENTATION,
    TMK_CAUSE_LEAK,
    TMK_CAUSE_OUTLIER,
    TMK_CAUSE_OTHER_PROCESS,
    TMK_CAUSE_SETTINGS,
    TMK_N_CAUSES,
};

enum tmk_limit {
    TMK_LIMIT_UNKNOWN, /* what was held, at least */
    TMK_LIMIT_CARD,
    TMK_LIMIT_SETTING,
    TMK_LIMIT_STATED,
};

/* The allocator replayed under settings, at the limit of the scene. */
struct tmk_trial {
    const char *conf;
    bool runs_out;        /* at the scene, or before */
    bool runs_out_before; /* its figures are not the scene's */
    uint64_t needs_bytes; /* the smallest limit with which nothing runs out; TMK_BYTES_UNKNOWN */
};

enum { TMK_MAX_TRIALS = 8 };

/* What is known beside the scene. */
struct tmk_inquiry {
    uint64_t n_steps; /* that ended before, with a number, on the device: of the last 32 ... */
    uint64_t median_bytes, deviation_bytes, most_bytes; /* ... their peaks */
    uint64_t kept_bytes;                                /* median of what was alive at their ends */
    uint64_t rise_bytes;   /* by which what stays grew with each one but the first; 0: it did not */
    uint64_t growth_bytes; /* by which the peak grew a step, steadily; 0: it did not */

    uint64_t leaked_bytes;       /* that all leaks had kept by then */
    const struct tmk_leak *leak; /* the largest; NULL: none. Borrowed */
    struct tmk_leak short_leak;  /* what `leak` is where steps were too few for leaks.h */

    bool has_gaps;          /* else the next two are not known */
    uint64_t largest_bytes; /* the largest free block */
    uint64_t pinned_bytes;  /* free in segments that few blocks keep */
    uint64_t n_pinned;      /* such segments */
    bool has_pin;
    struct tmk_frame pin; /* the line that made most of the blocks that keep them */

    const char *alloc_conf;                  /* as recorded; NULL: not known */
    struct tmk_trial trials[TMK_MAX_TRIALS]; /* the recorded settings first */
    uint32_t n_trials;
};

struct tmk_cause_row {
    enum tmk_cause cause;
    uint64_t bytes;
    bool counts;
};

struct tmk_oom_verdict {
    enum tmk_limit limit;
    uint64_t limit_bytes;                    /* at least */
    uint64_t limit_below_bytes;              /* and below this; the same: it is known exactly */
    uint64_t held_bytes;                     /* R, or what is known of it */
    uint64_t asked_bytes;                    /* S */
    uint64_t missing_bytes;                  /* at most; 0: a near miss */
    uint64_t free_bytes;                     /* R - A; TMK_BYTES_UNKNOWN */
    struct tmk_cause_row rows[TMK_N_CAUSES]; /* those that count first, most bytes first */
};

/* `need_bytes`: of the whole step; 0: not known. */
void tmk_causes_judge(const struct tmk_scene *scene, const struct tmk_inquiry *inquiry,
                      uint64_t need_bytes, struct tmk_oom_verdict *ret);
/* Of a cause; 0: nothing speaks for it. */
uint64_t tmk_oom_verdict_bytes(const struct tmk_oom_verdict *v, enum tmk_cause cause);

/* "demand", "fragmentation" ... */
const char *tmk_cause_name(enum tmk_cause cause);
/* "card", "setting", "stated"; NULL: unknown. */
const char *tmk_limit_name(enum tmk_limit limit);

#endif
