/* SPDX-License-Identifier: MIT */
/* passes/oom/oom_causes.h - why memory ran out, judged from the evidence by the rules below,
 * without a sweep.
 *
 * A = allocated bytes; R = reserved bytes after the allocator had given back what it could; Q =
 * bytes requested; S = what the allocator had to ask of the driver for that (Q rounded up as
 * torch does). The limit is the most that R may be:
 *
 *   card     the driver failed the request, so R fits and R + S does not. Between the two: the
 *            device's memory less what others have and what the process has beside torch
 *            (context, NCCL ...), as last seen
 *   setting  the allocator failed it without asking the driver (set_per_process_memory_fraction):
 *            the limit is at least the most that was ever reserved, and below R + S
 *   stated   the event tells the limit
 *
 * The missing bytes are S less what was left of the limit. Each cause accounts for bytes:
 *
 *   fragmentation  A + Q fits in the limit and R - A >= Q, so without gaps there was room; the
 *                  step is not thought to need more (oom_need.h); and if a replay of the allocator
 *                  runs out here as the job did, one with some other settings does not: R - A.
 *                  Also when somebody else than torch asked the driver for no more than torch had
 *                  cached.
 *   settings       the same, where a replay with torch's own settings does not run out: R - A
 *   leak           what grew step by step until then (leaks.h). With fewer than ten steps: if the
 *                  memory kept after a step grew with each of at least four, the blocks of earlier
 *                  ones
 *   outlier        A + Q is above the median peak of up to 32 earlier steps, at least three, by
 *                  more than a quarter and by five deviations (MAD x 1.4826), and those would fit:
 *                  A + Q less the median. Not where an evaluation keeps its graphs
 *   other_process  the device is the limit and others have some of it: what they have
 *   demand         the job needs more than there is: a twentieth of the limit, always
 *
 * A cause counts if its bytes are at least what was missing and at least a twentieth of the
 * limit (for fragmentation: the bytes requested). The cause with most bytes comes first;
 * fragmentation and settings count double, because without them this very request would have
 * succeeded, while a leak or a large step only made it fail sooner. That the limit is a setting
 * is evidence and a fix but no cause: it stands for a smaller device. */
#ifndef TMK_PASSES_OOM_OOM_CAUSES_H
#define TMK_PASSES_OOM_OOM_CAUSES_H

#include "passes/leak/leak.h"
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
    TMK_LIMIT_UNKNOWN, /* reserved bytes, at least */
    TMK_LIMIT_CARD,
    TMK_LIMIT_SETTING,
    TMK_LIMIT_STATED,
};

/* A replay of the allocator under some settings, at the limit of the scene. */
struct tmk_trial {
    const char *conf;
    bool runs_out;        /* at the scene or before */
    bool runs_out_before; /* before the scene, so its figures are not the scene's */
    uint64_t needs_bytes; /* the smallest sufficient limit; may be TMK_BYTES_UNKNOWN */
};

enum { TMK_MAX_TRIALS = 8 };

/* Evidence beyond the scene. */
struct tmk_inquiry {
    uint64_t n_steps; /* numbered steps of the device that ended before: of the last 32 ... */
    uint64_t median_bytes, deviation_bytes, most_bytes; /* ... their peaks */
    uint64_t kept_bytes;                                /* median of what was alive at their ends */
    uint64_t rise_bytes;   /* growth of the memory kept after each step but the first; 0: it did not
                              grow each time */
    uint64_t growth_bytes; /* growth of the peak a step, if steady; else 0 */

    uint64_t leaked_bytes;       /* what all leaks together had kept by then */
    const struct tmk_leak *leak; /* the largest; NULL: none. Borrowed */
    struct tmk_leak short_leak;  /* stands behind `leak` where steps were too few for leaks.h */

    bool has_gaps;          /* else the next two are not known */
    uint64_t largest_bytes; /* the largest free block */
    uint64_t pinned_bytes;  /* free in segments that few blocks pin */
    uint64_t n_pinned;      /* such segments */
    bool has_pin;
    struct tmk_frame pin; /* the allocation site of most of the blocks that pin them */

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
    uint64_t limit_below_bytes;              /* and below this; when equal, it is known exactly */
    uint64_t held_bytes;                     /* R, or what is known of it */
    uint64_t asked_bytes;                    /* S */
    uint64_t missing_bytes;                  /* the most that may be missing; 0: a near miss */
    uint64_t free_bytes;                     /* R - A; TMK_BYTES_UNKNOWN */
    struct tmk_cause_row rows[TMK_N_CAUSES]; /* those that count come first, most bytes first */
};

/* A replay is a witness only if with the recorded settings it runs out where the job did. */
static inline bool tmk_inquiry_has_witness(const struct tmk_inquiry *q)
{
    return q->n_trials > 0 && q->trials[0].runs_out && !q->trials[0].runs_out_before;
}

/* Judge the causes. `need_bytes` is what the whole step needs; 0: not known. */
void tmk_causes_judge(const struct tmk_scene *scene, const struct tmk_inquiry *inquiry,
                      uint64_t need_bytes, struct tmk_oom_verdict *ret);
/* The bytes of a cause; 0: nothing speaks for it. */
uint64_t tmk_oom_verdict_bytes(const struct tmk_oom_verdict *v, enum tmk_cause cause);

/* "demand", "fragmentation" and so on. */
const char *tmk_cause_name(enum tmk_cause cause);
/* "card", "setting", "stated"; NULL: unknown. */
const char *tmk_limit_name(enum tmk_limit limit);

#endif
