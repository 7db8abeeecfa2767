/* SPDX-License-Identifier: MIT */
/* cli/answers/report.h - what a report says, for people (a sheet) and for machines (a tree). */
#ifndef TMK_CLI_ANSWERS_REPORT_H
#define TMK_CLI_ANSWERS_REPORT_H

#include "cli/answers/process_answer.h"
#include "cli/output/sheet.h"
#include "cli/output/tree.h"
#include "passes/oom/explain.h"

struct tmk_report {
    struct tmk_run *run;
    struct tmk_facts *facts; /* by process, in the run's order */
    uint32_t n;
    uint32_t chosen;                     /* the process whose details go on the page */
    struct tmk_explanation *explanation; /* of that, where it ran out of memory; else NULL */
};

/* Sweep all processes; `rank` as for tmk_target_pick(). 0 or an exit status after a message; fini
 * in both cases. The run stays the caller's. */
int tmk_report_init(struct tmk_report *r, struct tmk_run *run, const char *rank);
void tmk_report_fini(struct tmk_report *r);

void tmk_report_sheet(const struct tmk_report *r, struct tmk_sheet *sheet);
void tmk_report_tree(const struct tmk_report *r, struct tmk_tree *tree);
/* Of one process: the accounts of the cards that it used; nothing without any. */
void tmk_report_card_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet);
void tmk_report_card_tree(const struct tmk_facts *f, struct tmk_tree *t);
/* Of one process: what grows step by step, and what is held but not used; nothing where there is
 * nothing to say. */
void tmk_report_leak_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet);
void tmk_report_frag_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet);
void tmk_report_leak_tree(const struct tmk_facts *f, struct tmk_tree *t);
void tmk_report_frag_tree(const struct tmk_facts *f, struct tmk_tree *t);

/* Of the chosen process: why it ran out of memory, where it did. */
void tmk_report_why_sheet(const struct tmk_report *r, struct tmk_sheet *sheet);

/* When it runs out; nothing where that is not worth a sentence. */
void tmk_report_forecast_sheet(const struct tmk_facts *f, struct tmk_sheet *sheet);
void tmk_report_forecast_tree(const struct tmk_facts *f, struct tmk_tree *t);

/* "2024-05-01 12:00:00" of the machine's clock, in UTC, into the caller's buffer of 32 bytes. */
const char *tmk_date_text(uint64_t realtime_ns, char *buffer);

/* End of the run in its own time. */
uint64_t tmk_report_end_ns(const struct tmk_report *r);

const char *tmk_steps_trend_name(enum tmk_steps_trend trend);

#endif
