/* SPDX-License-Identifier: MIT */
/* cli/serve/served_answers.c - see served_answers.h. */
#include "cli/serve/served_answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output/xalloc.h"
#include "kit/language.h"
#include "web/url_query.h"

#define NS_PER_S UINT64_C(1000000000)

/* A run is read anew when it is as old as this, and as so many times what reading costs. */
enum { FRESH_S = 1, FRESH_COSTS = 10 };

enum answer_state { ANSWER_NONE, ANSWER_WAITING, ANSWER_MAKING, ANSWER_KNOWN };

struct tmk_served_answer {
    enum answer_state state;
    enum tmk_served_kind kind;
    char *query, *text; /* text: NULL: none */
    uint64_t asked;     /* counts queries; the oldest goes first */
    struct tmk_served_body body;
};

static void forget_answer(struct tmk_served_answer *i)
{
    free(i->query);
    free(i->text);
    free(i->body.bytes);
    *i = (struct tmk_served_answer){0};
}

void tmk_served_answers_init(struct tmk_served_answers *a)
{
    a->items = tmk_xcalloc(TMK_SERVED_ANSWERS, sizeof *a->items);
}

bool tmk_served_answers_fini(struct tmk_served_answers *a)
{
    a->run.is_late = 1;
    if (!tmk_errand_is_idle(&a->errand))
        return false;
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++)
        forget_answer(&a->items[i]);
    free(a->items);
    tmk_served_run_close(&a->run);
    return true;
}

/* ---- on the thread ---- */

/* Open the recorded process of this machine that the query names. False: the answer says why. */
static bool open_named(struct tmk_served_answers *a, const char *query, struct tmk_served_body *ret)
{
    char pid[24];
    uint64_t number;
    if (!tmk_url_query_number(query, "pid", &number)) {
        tmk_serve_error(ret, 400, _("no pid is named"));
        return false;
    }
    snprintf(pid, sizeof pid, "%" PRIu64, number);
    if (a->run.target && strcmp(a->run.target, pid) == 0)
        return true;
    tmk_served_run_close(&a->run);
    if (tmk_served_run_open(&a->run, pid, NULL) == 0)
        return true;
    tmk_served_run_close(&a->run);
    tmk_serve_error(ret, 404, _("this process is not recorded"));
    return false;
}

static void limit_body(struct tmk_served_body *b)
{
    if (b->n <= TMK_SERVED_BYTES_MOST)
        return;
    free(b->bytes);
    tmk_serve_error(b, 500, _("the answer is too large"));
}

static void make_answer(void *arg)
{
    struct tmk_served_answers *a = arg;
    struct tmk_served_answer *i = a->at;
    if (i->kind == TMK_SERVED_NODE)
        tmk_serve_node(&i->body);
    else if (i->kind == TMK_SERVED_REFRESH)
        a->is_changed = tmk_served_run_refresh(&a->run);
    else if (a->is_node && !open_named(a, i->query, &i->body))
        return;
    else if (i->kind == TMK_SERVED_PAGE)
        tmk_serve_page(&a->run, &i->body);
    else if (i->kind == TMK_SERVED_SUMMARY)
        tmk_serve_summary(&a->run, &i->body);
    else if (i->kind == TMK_SERVED_TIMELINE)
        tmk_serve_timeline(&a->run, i->query, &i->body);
    else if (i->kind == TMK_SERVED_PEAK)
        tmk_serve_peak(&a->run, i->query, &i->body);
    else
        tmk_serve_sql(&a->run, i->text, &i->body);
    limit_body(&i->body);
}

/* ---- in the server ---- */

static void begin_next(struct tmk_served_answers *a)
{
    struct tmk_served_answer *next = NULL;
    if (!tmk_errand_is_idle(&a->errand))
        return;
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++)
        if (a->items[i].state == ANSWER_WAITING && (!next || a->items[i].asked < next->asked))
            next = &a->items[i];
    if (!next)
        return;
    next->state = ANSWER_MAKING;
    a->at = next;
    a->run.is_late = 0;
    a->begun_ns = tmk_clock_monotonic_ns();
    tmk_errand_begin(&a->errand, make_answer, a);
}

static bool is_answer_of(const struct tmk_served_answer *i, const struct tmk_served_query *q)
{
    return i->state != ANSWER_NONE && i->kind == q->kind && strcmp(i->query, q->query) == 0 &&
           (!q->text || strcmp(i->text, q->text) == 0);
}

/* A place for one more: a free one, or the one of the oldest that is known. */
static struct tmk_served_answer *free_place(struct tmk_served_answers *a)
{
    struct tmk_served_answer *oldest = NULL;
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++) {
        struct tmk_served_answer *at = &a->items[i];
        if (at->state == ANSWER_NONE)
            return at;
        if (at->state == ANSWER_KNOWN && (!oldest || at->asked < oldest->asked))
            oldest = at;
    }
    if (oldest)
        forget_answer(oldest);
    return oldest;
}

static bool add_query(struct tmk_served_answers *a, const struct tmk_served_query *q)
{
    struct tmk_served_answer *i = free_place(a);
    if (!i)
        return false;
    *i = (struct tmk_served_answer){.state = ANSWER_WAITING,
                                    .kind = q->kind,
                                    .query = tmk_xstrdup(q->query),
                                    .text = q->text ? tmk_xstrdup(q->text) : NULL,
                                    .asked = ++a->n_asked};
    begin_next(a);
    return true;
}

const struct tmk_served_body *tmk_served_answers_ask(struct tmk_served_answers *a,
                                                     const struct tmk_served_query *q,
                                                     int *ret_status)
{
    *ret_status = 0;
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++)
        if (is_answer_of(&a->items[i], q)) {
            a->items[i].asked = ++a->n_asked;
            return a->items[i].state == ANSWER_KNOWN ? &a->items[i].body : NULL;
        }
    if (!add_query(a, q))
        *ret_status = 503;
    return NULL;
}

/* Answers of the state before are gone; those that wait will be of the new one. */
static void forget_known(struct tmk_served_answers *a)
{
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++)
        if (a->items[i].state == ANSWER_KNOWN)
            forget_answer(&a->items[i]);
}

bool tmk_served_answers_take(struct tmk_served_answers *a)
{
    if (!tmk_errand_take(&a->errand))
        return false;
    a->at->state = ANSWER_KNOWN;
    a->has_new_state = a->is_changed;
    a->is_changed = false;
    if (a->at->kind == TMK_SERVED_REFRESH)
        forget_answer(a->at);
    if (a->has_new_state)
        forget_known(a);
    return true;
}

void tmk_served_answers_go_on(struct tmk_served_answers *a)
{
    begin_next(a);
}

void tmk_served_answers_forget(struct tmk_served_answers *a, enum tmk_served_kind kind)
{
    for (unsigned i = 0; i < TMK_SERVED_ANSWERS; i++)
        if (a->items[i].state == ANSWER_KNOWN && a->items[i].kind == kind)
            forget_answer(&a->items[i]);
}

void tmk_served_answers_tick(struct tmk_served_answers *a)
{
    uint64_t now = tmk_clock_monotonic_ns();
    if (!tmk_errand_is_idle(&a->errand)) {
        if (now - a->begun_ns > TMK_SERVED_QUERY_S * NS_PER_S)
            a->run.is_late = 1;
        return;
    }
    uint64_t age = FRESH_S * NS_PER_S;
    if (a->run.cost_ns * FRESH_COSTS > age)
        age = a->run.cost_ns * FRESH_COSTS;
    if (a->run.is_live && now - a->run.read_ns > age)
        add_query(a, &(struct tmk_served_query){TMK_SERVED_REFRESH, "", NULL});
}
