/* SPDX-License-Identifier: MIT */
/* cli/answers/report_answer.c - see report_answer.h. */
#include "cli/answers/report_answer.h"

#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "cli/answers/ranks_answer.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "model/run.h"
#include "passes/oom/ooms.h"
#include "passes/steps.h"

/* Explain the chosen process, which takes further sweeps. Only if it ran out of memory. */
static int explain_chosen(struct tmk_report_answer *r)
{
    const struct tmk_process_answer *f = &r->about;
    struct tmk_error err = {0};
    if (tmk_ooms_n(f->ooms) == 0)
        return 0;
    int rc = tmk_explanation_open(f->p, NULL, &r->explanation, &err);
    if (rc < 0)
        tmk_say("%s: %s", f->p->file, err.text[0] ? err.text : tmk_result_text(rc));
    return rc == 0 ? 0 : TMK_EXIT_FINDING;
}

int tmk_report_answer_init(struct tmk_report_answer *r, struct tmk_run *run, const char *rank,
                           uint32_t n_parts)
{
    *r = (struct tmk_report_answer){.run = run, .n = tmk_run_n_processes(run)};
    struct tmk_process *chosen = tmk_target_pick(run, rank);
    if (!chosen)
        return TMK_EXIT_USAGE;
    while (tmk_run_process(run, r->chosen) != chosen)
        r->chosen++;
    int status = tmk_process_answer_init(&r->about, chosen, n_parts);
    if (status == 0 && r->n > 1)
        status = tmk_ranks_answer(run, &r->ranks);
    if (status == 0)
        tmk_health_init(&r->health, run, &r->about, r->ranks);
    return status == 0 ? explain_chosen(r) : status;
}

void tmk_report_answer_fini(struct tmk_report_answer *r)
{
    tmk_health_fini(&r->health);
    tmk_process_answer_fini(&r->about);
    r->explanation = tmk_explanation_close(r->explanation);
    r->ranks = tmk_imbalance_close(r->ranks);
}

uint64_t tmk_report_answer_end_ns(const struct tmk_report_answer *r)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct tmk_process *p = tmk_run_process(r->run, i);
        if (p->offset_ns + p->end_ns > end)
            end = p->offset_ns + p->end_ns;
    }
    return end;
}

const char *tmk_date_text(uint64_t realtime_ns, char *buffer)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000u);
    struct tm t;
    if (!gmtime_r(&seconds, &t) || strftime(buffer, 32, "%Y-%m-%d %H:%M:%S", &t) == 0)
        buffer[0] = '\0';
    return buffer;
}

const char *tmk_steps_trend_name(enum tmk_steps_trend trend)
{
    static const char *const names[] = {
        [TMK_STEPS_TREND_TOO_SHORT] = "too_short", [TMK_STEPS_TREND_STEADY] = "steady",
        [TMK_STEPS_TREND_GROWING] = "growing",     [TMK_STEPS_TREND_SHRINKING] = "shrinking",
        [TMK_STEPS_TREND_VARYING] = "varying",
    };
    return names[trend];
}
