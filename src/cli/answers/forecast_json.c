/* SPDX-License-Identifier: MIT */
/* cli/answers/forecast_json.c - see forecast_json.h. */
#include "cli/answers/forecast_json.h"

#include <math.h>

static void add_advice(struct tmk_tree *t, enum tmk_growth_cause cause)
{
    const char *advice;
    tmk_tree_list(t, "advice");
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(cause, i)) != NULL; i++)
        tmk_tree_text(t, NULL, advice);
    tmk_tree_end(t);
}

void tmk_forecast_write(struct tmk_tree *t, const char *key, const struct tmk_forecast *f)
{
    if (!tmk_tree_object_if(t, key, f && f->risk != TMK_RISK_UNKNOWN))
        return;
    tmk_tree_text(t, "risk", tmk_risk_text(f->risk));
    tmk_tree_fixed(t, "seconds_to_oom", f->has_time ? f->seconds_to_oom : NAN, 3);
    tmk_tree_fixed(t, "seconds_low", f->has_time ? f->seconds_low : NAN, 3);
    tmk_tree_fixed(t, "seconds_high", f->has_time ? f->seconds_high : NAN, 3);
    bool has_steps = f->has_time && f->by_step;
    tmk_tree_i64_if(t, "steps_to_oom", has_steps,
                    has_steps ? (int64_t)ceil(f->steps_to_oom - 1e-6) : 0);
    tmk_tree_fixed(t, "confidence", f->has_confidence ? f->confidence : NAN, 2);
    tmk_tree_text(t, "cause", tmk_growth_cause_name(f->cause));
    add_advice(t, f->cause);
    tmk_tree_end(t);
}
