/* SPDX-License-Identifier: MIT */
/* cli/serve/served_answers.h - queries answered one after the other on a thread of their own, and
 * kept as long as the run's state is the same.
 *
 *     tmk_served_answers_ask()    known: send it; else ask again when `fd` was readable
 *     tmk_served_answers_take()   a query is done: send answers, then go_on() with the next
 *
 * So the server goes on while a query takes its time, and equal queries are made once. A query
 * that takes longer than TMK_SERVED_QUERY_S is ended where SQLite can end it. */
#ifndef TMK_CLI_SERVE_SERVED_ANSWERS_H
#define TMK_CLI_SERVE_SERVED_ANSWERS_H

#include "cli/serve/served_run.h"
#include "kit/errand.h"

enum {
    TMK_SERVED_ANSWERS = 32, /* kept, with those under way */
    TMK_SERVED_QUERY_S = 10,
    TMK_SERVED_BYTES_MOST = 64 << 20, /* of an answer */
};

enum tmk_served_kind {
    TMK_SERVED_PAGE,
    TMK_SERVED_SUMMARY,
    TMK_SERVED_TIMELINE,
    TMK_SERVED_PEAK,
    TMK_SERVED_SQL,
    TMK_SERVED_NODE,
    TMK_SERVED_REFRESH, /* not an answer: the run is read anew */
};

struct tmk_served_query {
    enum tmk_served_kind kind;
    const char *query; /* of the address */
    const char *text;  /* of SQL; NULL: none */
};

struct tmk_served_answer;

struct tmk_served_answers {
    struct tmk_served_run run;
    bool is_node;       /* queries name a process by `pid`; there is no other run */
    bool is_changed;    /* the thread's word for the next */
    bool has_new_state; /* what was done last has led to a new state */
    struct tmk_served_answer *items;
    uint64_t n_asked; /* to know the oldest */
    struct tmk_errand errand;
    struct tmk_served_answer *at; /* what the errand works on */
    uint64_t begun_ns;
};

/* `run` is open, or, with is_node, zeroed. The errand's fd is set by the caller. */
void tmk_served_answers_init(struct tmk_served_answers *a);
/* False: a query still runs, and everything is left to it. */
bool tmk_served_answers_fini(struct tmk_served_answers *a);

/* The answer; NULL: it is not known yet, and *ret_status is 0, or 503: too much is asked at once.
 */
const struct tmk_served_body *tmk_served_answers_ask(struct tmk_served_answers *a,
                                                     const struct tmk_served_query *q,
                                                     int *ret_status);
/* Note what is done. True: something is, and has_new_state tells whether the run is as it
 * was. Then answer, and go on with the next. */
bool tmk_served_answers_take(struct tmk_served_answers *a);
void tmk_served_answers_go_on(struct tmk_served_answers *a);
/* Forget the answers of a kind, which are no longer of now. */
void tmk_served_answers_forget(struct tmk_served_answers *a, enum tmk_served_kind kind);
/* Call it now and then: ends what takes too long, and reads a process that runs anew when that is
 * due. */
void tmk_served_answers_tick(struct tmk_served_answers *a);

#endif
