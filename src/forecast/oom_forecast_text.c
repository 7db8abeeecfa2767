/* SPDX-License-Identifier: MIT */
/* forecast/oom_forecast_text.c - names and advice for the enums of oom_forecast.h. */
#include <stddef.h>

#include "forecast/oom_forecast.h"

enum { MOST_ADVICE = 3 };

const char *tmk_risk_text(enum tmk_risk risk)
{
    static const char *const texts[] = {
        [TMK_RISK_UNKNOWN] = NULL, [TMK_RISK_LOW] = "low",           [TMK_RISK_MEDIUM] = "medium",
        [TMK_RISK_HIGH] = "high",  [TMK_RISK_CRITICAL] = "critical",
    };
    return texts[risk];
}

static const struct {
    const char *text;
    const char *advice[MOST_ADVICE + 1];
} causes[] = {
    [TMK_GROWTH_NONE] = {.text = "none", .advice = {NULL}},
    [TMK_GROWTH_STEADY] =
        {.text = "growth",
         .advice = {"save a checkpoint while there is time",
                    "be ready to free caches (torch.cuda.empty_cache) or to reduce the "
                    "batch size",
                    "find what grows: tidemark attach PID, then tidemark leak PID"}},
    [TMK_GROWTH_LEAK] =
        {.text = "leak",
         .advice = {"find the line that keeps memory: tidemark leak RUN",
                    "until then: save a checkpoint, and start again before it runs out"}},
    [TMK_GROWTH_BATCH] = {.text = "growing_batch",
                          .advice = {"cap the length or the size of a batch; see what is alive at "
                                     "the peak: tidemark peak RUN"}},
    [TMK_GROWTH_STEPS_UP] =
        {.text = "steps_up",
         .advice = {"look at what happens at the steps where it jumps (evaluation, "
                    "checkpoints, epochs): tidemark leak RUN"}},
    [TMK_GROWTH_FRAGMENTATION] =
        {.text = "fragmentation",
         .advice = {"set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; see "
                    "tidemark frag RUN and tidemark whatif RUN"}},
    [TMK_GROWTH_OTHER_PROCESS] =
        {.text = "other_process",
         .advice = {"another process takes the card: tidemark top shows which"}},
    [TMK_GROWTH_NEARLY_FULL] =
        {.text = "nearly_full",
         .advice = {"be ready to free caches (torch.cuda.empty_cache): a larger step "
                    "may not fit",
                    "consider reducing the batch size"}},
    [TMK_GROWTH_FULL] =
        {.text = "full",
         .advice = {"requests fail now: free caches (torch.cuda.empty_cache) or reduce the "
                    "batch size",
                    "see who has the memory: tidemark top"}},
    [TMK_GROWTH_RAN_OUT] =
        {.text = "out_of_memory",
         .advice = {"see why it ran out and what would have helped: tidemark explain RUN",
                    "before the next attempt free caches (torch.cuda.empty_cache) or reduce the "
                    "batch size"}},
};

const char *tmk_growth_cause_name(enum tmk_growth_cause cause)
{
    return causes[cause].text;
}

const char *tmk_growth_cause_advice(enum tmk_growth_cause cause, unsigned i)
{
    return i < MOST_ADVICE ? causes[cause].advice[i] : NULL;
}
