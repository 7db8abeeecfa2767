/* SPDX-License-Identifier: MIT */
/* cli/serve/served_run.h - the run behind a served page, and the answers to its queries.
 *
 * Everything here belongs to one thread at a time, the worker's (served_answers.h): a run, its
 * report and its database are not made for two. A process that runs is opened anew, at most every
 * `fresh_ns`, so that answers are of now. */
#ifndef TMK_CLI_SERVE_SERVED_RUN_H
#define TMK_CLI_SERVE_SERVED_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/answers/report_answer.h"
#include "model/run.h"
#include "sql/sql.h"

struct tmk_served_run {
    char *target; /* a path or a PID */
    char *trace;  /* of a process that runs: read when the process is gone */
    const char *rank;
    struct tmk_run *run;
    struct tmk_report_answer report;
    bool has_report;
    struct tmk_sql *sql;           /* NULL: not asked yet */
    uint64_t state;                /* counts what has been read anew */
    bool is_live;                  /* the process was running when it was read */
    uint64_t read_ns, cost_ns;     /* when, and how long that took */
    volatile sig_atomic_t is_late; /* set to end a query */
};

struct tmk_served_body {
    int status; /* of HTTP */
    const char *type;
    char *bytes;
    size_t n;
};

/* Open the run. 0 or an exit status after a message. */
int tmk_served_run_open(struct tmk_served_run *s, const char *target, const char *rank);
void tmk_served_run_close(struct tmk_served_run *s);
/* Read a process that runs as it is now. True: there is a new state. */
bool tmk_served_run_refresh(struct tmk_served_run *s);

/* Answers; the bytes are the caller's. */
void tmk_serve_page(struct tmk_served_run *s, struct tmk_served_body *ret);
void tmk_serve_summary(struct tmk_served_run *s, struct tmk_served_body *ret);
void tmk_serve_timeline(struct tmk_served_run *s, const char *query, struct tmk_served_body *ret);
void tmk_serve_peak(struct tmk_served_run *s, const char *query, struct tmk_served_body *ret);
void tmk_serve_sql(struct tmk_served_run *s, const char *text, struct tmk_served_body *ret);
void tmk_serve_node(struct tmk_served_body *ret); /* served_node.c */
/* {"error": "..."} */
void tmk_serve_error(struct tmk_served_body *ret, int status, const char *text);

#endif
