/* SPDX-License-Identifier: MIT */
/* cli/answers/report_answer.h - what a report says, for people (a sheet) and for machines (a tree):
 * each section of the one has its keys in the other. */
#ifndef TMK_CLI_ANSWERS_REPORT_ANSWER_H
#define TMK_CLI_ANSWERS_REPORT_ANSWER_H

#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/output/sheet.h"
#include "kit/tree.h"
#include "passes/group.h"
#include "passes/imbalance/imbalance.h"
#include "passes/oom/explain.h"
#include "passes/steps.h"

struct tmk_report_answer {
    struct tmk_run *run;
    uint32_t n;                          /* processes of it */
    uint32_t chosen;                     /* the process whose details go on the page */
    struct tmk_process_answer about;     /* that process */
    struct tmk_explanation *explanation; /* of that, where it ran out of memory; else NULL */
    struct tmk_imbalance *ranks;         /* all processes side by side; NULL: there is only one */
    struct tmk_health health;
    bool is_full; /* every section, else a page; the caller sets it */
};

/* Sweep the process that the page is about; `rank` as for tmk_target_pick(),
 * `n_parts` of the timeline. A run may have a
 * thousand processes: the others are swept one after the other where their details are written, by
 * tmk_report_json(). 0 or an exit status after a message; fini in both cases. The run stays the
 * caller's. */
int tmk_report_answer_init(struct tmk_report_answer *r, struct tmk_run *run, const char *rank,
                           uint32_t n_parts);
void tmk_report_answer_fini(struct tmk_report_answer *r);

void tmk_report_text(const struct tmk_report_answer *r, struct tmk_sheet *sheet);
/* Returns 0, or an exit status after a message: a process could not be read and is left out. */
int tmk_report_json(const struct tmk_report_answer *r, struct tmk_tree *tree);
/* The same under `key`, and of the processes only the chosen one. */
int tmk_report_json_chosen(const struct tmk_report_answer *r, struct tmk_tree *tree,
                           const char *key);
/* Sections about one process. Each writes nothing where there is nothing to say. */
void tmk_report_peak_text(const struct tmk_process_answer *f, bool is_full,
                          struct tmk_sheet *sheet);
/* Write a table of the blocks of a moment, which had `whole` bytes. */
void tmk_report_shares_text(const struct tmk_process_answer *f, enum tmk_by by,
                            const struct tmk_peak_row *rows, uint64_t n, uint64_t whole,
                            bool is_full, struct tmk_sheet *sheet);
/* Write why memory ran out; each OOM; what was allocated at the last, where the result says that
 * this was the peak, or nearly. */
void tmk_report_why_text(const struct tmk_report_answer *r, struct tmk_sheet *sheet);
void tmk_report_ooms_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
bool tmk_report_oom_shares_text(const struct tmk_process_answer *f, bool is_full,
                                struct tmk_sheet *sheet);
/* Write the course of the run. */
void tmk_report_timeline_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
void tmk_report_steps_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
void tmk_report_sites_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
void tmk_report_alive_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
void tmk_report_marks_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
/* Write the heading of a section that needs detail, with the part of the run for which there is
 * detail; `whole` follows where that is all of it. */
void tmk_report_heading_since(const struct tmk_process_answer *f, struct tmk_sheet *sheet,
                              const char *text, const char *whole);
/* Write the accounts of the GPUs that it used. */
void tmk_report_device_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
/* Write the sections about growth and about memory that is reserved but not allocated: */
void tmk_report_leak_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);
void tmk_report_frag_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);

/* When it runs out of memory: */
void tmk_report_forecast_text(const struct tmk_process_answer *f, struct tmk_sheet *sheet);

/* Writes a time of the machine's clock, "2024-05-01 12:00:00" in UTC, into the caller's buffer of
 * 32 bytes. Returns it. */
const char *tmk_date_text(uint64_t realtime_ns, char *buffer);

/* Returns the end of the run, in time of the run. */
uint64_t tmk_report_answer_end_ns(const struct tmk_report_answer *r);

const char *tmk_steps_trend_name(enum tmk_steps_trend trend);

#endif
