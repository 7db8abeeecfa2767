/* SPDX-License-Identifier: MIT */
/* cli/answers/forecast_json.c - see forecast_json.h. */
#include "cli/answers/forecast_json.h"

#include <math.h>

static void add_advice(struct tmk_json *j, enum tmk_growth_cause cause)
{
    const char *advice;
    tmk_json_array(j, "advice");
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(cause, i)) != NULL; i++)
        tmk_json_text(j, NULL, advice);
    tmk_json_end(j);
}

void tmk_forecast_write(struct tmk_json *j, const char *key, const struct tmk_forecast *f)
{
    if (!f || f->risk == TMK_RISK_UNKNOWN) {
        tmk_json_null(j, key);
        return;
    }
    tmk_json_object(j, key);
    tmk_json_text(j, "risk", tmk_risk_text(f->risk));
    tmk_json_fixed(j, "seconds_to_oom", f->has_time ? f->seconds_to_oom : NAN, 3);
    tmk_json_fixed(j, "seconds_low", f->has_time ? f->seconds_low : NAN, 3);
    tmk_json_fixed(j, "seconds_high", f->has_time ? f->seconds_high : NAN, 3);
    if (f->has_time && f->by_step)
        tmk_json_i64(j, "steps_to_oom", (int64_t)ceil(f->steps_to_oom - 1e-6));
    else
        tmk_json_null(j, "steps_to_oom");
    tmk_json_fixed(j, "confidence", f->has_confidence ? f->confidence : NAN, 2);
    tmk_json_text(j, "cause", tmk_growth_cause_name(f->cause));
    add_advice(j, f->cause);
    tmk_json_end(j);
}
