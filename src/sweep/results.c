/* SPDX-License-Identifier: MIT */
/* sweep/results.c - see results.h; this file lays out the grid. results_in.c reads the journal,
 * journal_out.c writes it. */
#include "sweep/results.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sweep/params.h"
#include "sweep/where.h"

static const char *const outcome_names[] = {
    [TMK_CELL_PENDING] = "pending",   [TMK_CELL_DONE] = "done",
    [TMK_CELL_OOM] = "oom",           [TMK_CELL_FAILED] = "failed",
    [TMK_CELL_TIMEOUT] = "timeout",   [TMK_CELL_EXCLUDED] = "excluded",
    [TMK_CELL_HOPELESS] = "hopeless",
};

const char *tmk_cell_outcome_name(enum tmk_cell_outcome o)
{
    return outcome_names[o];
}

bool tmk_cell_was_run(const struct tmk_cell *c)
{
    return c->outcome == TMK_CELL_DONE || c->outcome == TMK_CELL_OOM ||
           c->outcome == TMK_CELL_FAILED || c->outcome == TMK_CELL_TIMEOUT;
}

uint32_t tmk_results_n_pending(const struct tmk_results *r, const uint32_t *order, uint32_t n)
{
    uint32_t pending = 0;
    for (uint32_t i = 0; i < n; i++)
        pending += r->cells[order[i]].outcome == TMK_CELL_PENDING;
    return pending;
}

bool tmk_results_has_pending(const struct tmk_results *r)
{
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (r->cells[i].outcome == TMK_CELL_PENDING)
            return true;
    return false;
}

void tmk_message_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at; at++) {
        bool is_upper = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F */
        if (is_upper)
            *at++ = ' ';
        if (is_upper || *at < ' ' || *at == 0x7f)
            *at = ' ';
    }
}

const char *tmk_cell_text(const struct tmk_results *r, const struct tmk_cell *c, char *buffer,
                          size_t size)
{
    struct tmk_text t;
    tmk_text_init(&t, buffer, size);
    for (uint32_t i = 0; i < r->n_params; i++)
        tmk_text_add(&t, "%s%s=%s", i ? " " : "", r->params[i].name,
                     r->params[i].values[c->choice[i]]);
    if (r->n_params == 0)
        tmk_text_string(&t, "the command");
    if (r->n_repeats > 1)
        tmk_text_add(&t, " repeat %u of %u", c->repeat + 1, r->n_repeats);
    return buffer;
}

bool tmk_cell_has_trace(const struct tmk_results *r, const struct tmk_cell *c)
{
    char *path = NULL;
    if (!c->run || asprintf(&path, "%s/%s", r->folder, c->run) < 0)
        return false;
    bool is_there = access(path, F_OK) == 0;
    free(path);
    return is_there;
}

struct tmk_results *tmk_results_new(const char *folder)
{
    struct tmk_results *r = calloc(1, sizeof *r);
    struct tmk_arena *arena = calloc(1, sizeof *arena);
    if (!r || !arena) {
        free(r);
        free(arena);
        return NULL;
    }
    r->arena = arena;
    r->folder = tmk_arena_text(arena, folder, strlen(folder));
    r->title = "";
    return r->folder ? r : tmk_results_close(r);
}

struct tmk_results *tmk_results_close(struct tmk_results *r)
{
    if (!r)
        return NULL;
    tmk_arena_fini(r->arena);
    free(r->arena);
    free(r);
    return NULL;
}

/* ---- the cells ---- */

static int read_result_wheres(struct tmk_results *r, const struct tmk_where ***ret,
                              struct tmk_error *err)
{
    const struct tmk_where **wheres = tmk_arena_take(r->arena, (r->n_wheres + 1) * sizeof(void *));
    int rc = wheres ? 0 : TMK_ENOMEM;
    for (uint32_t i = 0; i < r->n_wheres && rc == 0; i++)
        rc = tmk_where_parse(r->wheres[i], r->params, r->n_params, r->arena, &wheres[i], err);
    if (rc == 0)
        *ret = wheres;
    return rc;
}

/* Whether all constraints hold: 1, 0, or an error. */
static int is_choice_allowed(const struct tmk_results *r, const struct tmk_where *const *wheres,
                             const uint32_t *choice, struct tmk_error *err)
{
    int holds = 1;
    for (uint32_t i = 0; i < r->n_wheres && holds == 1; i++)
        holds = tmk_where_holds(wheres[i], choice, err);
    return holds;
}

static void forget_cell(struct tmk_cell *c)
{
    c->device = c->message = c->run = c->log = NULL;
    c->capacity = c->peak_allocated = c->peak_reserved = c->peak_device = TMK_BYTES_UNKNOWN;
    c->peak_step = -1;
}

static int lay_out_choice(struct tmk_results *r, const struct tmk_where *const *wheres,
                          uint32_t number, struct tmk_error *err)
{
    uint32_t *choice = tmk_arena_take(r->arena, (r->n_params + 1) * sizeof *choice);
    if (!choice)
        return TMK_ENOMEM;
    tmk_params_choice(r->params, r->n_params, number, choice);
    int allowed = is_choice_allowed(r, wheres, choice, err);
    if (allowed < 0)
        return allowed;
    for (uint32_t repeat = 0; repeat < r->n_repeats; repeat++) {
        struct tmk_cell *c = &r->cells[number * r->n_repeats + repeat];
        c->choice = choice;
        c->repeat = repeat;
        c->outcome = allowed ? TMK_CELL_PENDING : TMK_CELL_EXCLUDED;
        forget_cell(c);
    }
    return 0;
}

int tmk_results_lay_out(struct tmk_results *r, struct tmk_error *err)
{
    const struct tmk_where **wheres = NULL;
    uint32_t n = 0;
    int rc = tmk_params_check(r->params, r->n_params, err);
    if (rc == 0)
        rc = tmk_params_n_cells(r->params, r->n_params, r->n_repeats, &n, err);
    if (rc == 0)
        rc = read_result_wheres(r, &wheres, err);
    if (rc < 0)
        return rc;
    r->cells = tmk_arena_take(r->arena, n * sizeof *r->cells);
    if (!r->cells)
        return TMK_ENOMEM;
    r->n_cells = n;
    for (uint32_t i = 0; i < n / r->n_repeats && rc == 0; i++)
        rc = lay_out_choice(r, wheres, i, err);
    return rc;
}
