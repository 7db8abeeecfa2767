/* SPDX-License-Identifier: MIT */
/* cli/answers/report_forecast_text.c - the report's section on when the job runs out of memory,
 * where it still runs or is at risk. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "forecast/oom_forecast.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "passes/oom/ooms.h"

static const char *seconds_text(double seconds, char *buffer)
{
    return tmk_time_text((uint64_t)(fmin(seconds, 1e9) * 1e9), buffer);
}

/* Returns a cause such as "leak" as part of a sentence. */
static const char *growth_reason_text(enum tmk_growth_cause cause)
{
    static const char *const texts[] = {
        [TMK_GROWTH_NONE] = N_("nothing grows"),
        [TMK_GROWTH_STEADY] = N_("memory grows"),
        [TMK_GROWTH_LEAK] = N_("memory kept after a step grows"),
        [TMK_GROWTH_BATCH] = N_("a step needs more and more"),
        [TMK_GROWTH_STEPS_UP] = N_("memory jumps up again and again"),
        [TMK_GROWTH_FRAGMENTATION] = N_("reserved memory grows, allocated memory does not"),
        [TMK_GROWTH_OTHER_PROCESS] = N_("other processes use more and more"),
        [TMK_GROWTH_NEARLY_FULL] = N_("it is almost full, though nothing grows"),
        [TMK_GROWTH_FULL] = N_("it is full"),
        [TMK_GROWTH_RAN_OUT] = N_("it has run out of memory"),
    };
    return _(texts[cause]);
}

/* Returns how fast it grows now where that changes: ", faster and faster (now 1.5 MiB a step)". */
static char *rate_text(const struct tmk_forecast *c)
{
    char size[TMK_AMOUNT_BYTES];
    const char *how = c->shape == TMK_SHAPE_ACCELERATING ? _("faster and faster")
                      : c->shape == TMK_SHAPE_SLOWING    ? _("slower and slower")
                                                         : NULL;
    if (!how || !c->has_time || c->slope < 1)
        return tmk_xstrdup("");
    return tmk_xformat(_(", %s (now %s a %s)"), how, tmk_size_text(tmk_size_whole(c->slope), size),
                       c->by_step ? _("step") : _("second"));
}

static char *when_text(const struct tmk_process_answer *f)
{
    const struct tmk_forecast *c = &f->forecast;
    char middle[TMK_AMOUNT_BYTES], low[TMK_AMOUNT_BYTES], high[TMK_AMOUNT_BYTES], count[40] = "";
    if (!c->has_time)
        return tmk_xstrdup("");
    if (c->by_step)
        snprintf(count, sizeof count, _(" (%.0f steps)"), ceil(c->steps_to_oom - 1e-6));
    char *sure =
        c->has_confidence ? tmk_xformat(_(", confidence %.2f"), c->confidence) : tmk_xstrdup("");
    char *text =
        tmk_xformat(_("%s %s%s, between %s and %s%s"), f->p->live ? _("in") : _("after another"),
                    seconds_text(c->seconds_to_oom, middle), count,
                    seconds_text(c->seconds_low, low), seconds_text(c->seconds_high, high), sure);
    free(sure);
    return text;
}

void tmk_report_forecast_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    const struct tmk_forecast *c = &f->forecast;
    char device[24], size[TMK_AMOUNT_BYTES];
    bool has_run_out = !f->p->live && tmk_ooms_n(f->ooms) > 0;
    if (c->risk == TMK_RISK_UNKNOWN || has_run_out || (!f->p->live && c->risk < TMK_RISK_MEDIUM))
        return;
    char *when = when_text(f), *rate = rate_text(c);
    tmk_sheet_heading(sheet, "FORECAST");
    tmk_sheet_text(sheet, "The risk that %s of memory on %s (%s) is %s: %s%s%s%s.",
                   f->p->live ? _("this job runs out") : _("the job would have run out"),
                   tmk_device_name(c->device, device), tmk_size_text(c->capacity_bytes, size),
                   _(tmk_risk_text(c->risk)), growth_reason_text(c->cause), rate,
                   c->has_time ? _("; full ") : "", when);
    free(when);
    free(rate);
    const char *advice;
    for (unsigned i = 0; (advice = tmk_growth_cause_advice(c->cause, c->risk, i)) != NULL; i++)
        tmk_sheet_item(sheet, advice);
}
