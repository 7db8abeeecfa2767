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

/* Each sentence holds from a risk on: nobody has to save a checkpoint at a low one. */
static const struct {
    const char *text;
    struct {
        enum tmk_risk from;
        const char *text;
    } advice[MOST_ADVICE];
} causes[] = {
    [TMK_GROWTH_NONE] = {.text = "none"},
    [TMK_GROWTH_STEADY] =
        {.text = "growth",
         .advice = {{TMK_RISK_HIGH, "save a checkpoint while there is time"},
                    {TMK_RISK_HIGH,
                     "be ready to free caches (torch.cuda.empty_cache) or to reduce the "
                     "batch size"},
                    {TMK_RISK_MEDIUM,
                     "find what grows: tidemark attach PID, then tidemark leak PID"}}},
    [TMK_GROWTH_LEAK] =
        {.text = "leak",
         .advice = {{TMK_RISK_LOW, "find the line that keeps memory: tidemark leak RUN"},
                    {TMK_RISK_MEDIUM,
                     "until then: save a checkpoint, and start again before it runs out"}}},
    [TMK_GROWTH_BATCH] = {.text = "growing_batch",
                          .advice = {{TMK_RISK_LOW,
                                      "cap the length or the size of a batch; see what is alive "
                                      "at the peak: tidemark peak RUN"}}},
    [TMK_GROWTH_STEPS_UP] =
        {.text = "steps_up",
         .advice = {{TMK_RISK_LOW, "look at what happens at the steps where it jumps (evaluation, "
                                   "checkpoints, epochs): tidemark leak RUN"}}},
    [TMK_GROWTH_FRAGMENTATION] =
        {.text = "fragmentation",
         .advice = {{TMK_RISK_LOW, "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; see "
                                   "tidemark frag RUN and tidemark whatif RUN"}}},
    [TMK_GROWTH_OTHER_PROCESS] =
        {.text = "other_process",
         .advice = {{TMK_RISK_LOW, "another process uses the GPU: tidemark top shows which"}}},
    [TMK_GROWTH_NEARLY_FULL] =
        {.text = "nearly_full",
         .advice = {{TMK_RISK_MEDIUM,
                     "be ready to free caches (torch.cuda.empty_cache): a larger step "
                     "may not fit"},
                    {TMK_RISK_MEDIUM, "consider reducing the batch size"}}},
    [TMK_GROWTH_FULL] = {.text = "full",
                         .advice = {{TMK_RISK_LOW,
                                     "requests fail now: free caches (torch.cuda.empty_cache) or "
                                     "reduce the batch size"},
                                    {TMK_RISK_LOW, "see who has the memory: tidemark top"}}},
    [TMK_GROWTH_RAN_OUT] =
        {.text = "out_of_memory",
         .advice = {{TMK_RISK_LOW,
                     "see why it ran out and what would have helped: tidemark explain RUN"},
                    {TMK_RISK_LOW, "before the next attempt free caches (torch.cuda.empty_cache) "
                                   "or reduce the batch size"}}},
};

const char *tmk_growth_cause_name(enum tmk_growth_cause cause)
{
    return causes[cause].text;
}

const char *tmk_growth_cause_advice(enum tmk_growth_cause cause, enum tmk_risk risk, unsigned i)
{
    for (unsigned k = 0; k < MOST_ADVICE && causes[cause].advice[k].text; k++)
        if (risk >= causes[cause].advice[k].from && i-- == 0)
            return causes[cause].advice[k].text;
    return NULL;
}
