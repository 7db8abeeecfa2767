/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_json.c - memory_profile_results.json: every cell, the fit and the advice from it.
 * docs/sweep-files.md describes the keys. */
#include <math.h>

#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "sweep/advice.h"
#include "sweep/cell_json.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

/* In JSON as exact as the number is, in CSV with six digits, which spreadsheets show. */
static void put_gb_json(struct tmk_tree *t, const char *key, uint64_t bytes)
{
    double gb = bytes == TMK_BYTES_UNKNOWN ? NAN : (double)bytes / TMK_GB;
    if (t->form == TMK_TREE_JSON)
        tmk_tree_double(t, key, gb);
    else
        tmk_tree_fixed(t, key, gb, 6);
}

/* Write a number if all values are numbers, else the text. */
static void put_value_json(struct tmk_tree *t, const struct tmk_sweep_param *p, const char *key,
                           uint32_t choice)
{
    if (p->numbers)
        tmk_tree_double(t, key, p->numbers[choice]);
    else
        tmk_tree_text(t, key, p->values[choice]);
}

void tmk_sweep_json_config(struct tmk_tree *t, const struct tmk_results *r,
                           const struct tmk_cell *c)
{
    tmk_tree_object(t, "config");
    for (uint32_t p = 0; p < r->n_params; p++)
        put_value_json(t, &r->params[p], r->params[p].name, c->choice[p]);
    tmk_tree_end(t);
}

/* ---- cells ---- */

static void put_estimate_json(struct tmk_tree *t, const char *key, const struct tmk_fit *f,
                              uint32_t c)
{
    struct tmk_estimate e = f ? tmk_fit_cell(f, c) : (struct tmk_estimate){.known = false};
    if (!tmk_tree_object_if(t, key, e.known))
        return;
    tmk_tree_u64(t, "bytes", tmk_size_whole(e.bytes));
    tmk_tree_u64(t, "low", tmk_size_whole(e.low));
    tmk_tree_u64(t, "high", tmk_size_whole(e.high));
    tmk_tree_text(t, "by", tmk_fit_way(f, c));
    tmk_tree_double(t, "left_out_error", tmk_fit_left_out(f, c));
    tmk_tree_bool(t, "contradicted", tmk_fit_contradicts(f, c));
    tmk_tree_end(t);
}

void tmk_sweep_put_peaks(struct tmk_tree *t, const struct tmk_cell *c)
{
    tmk_cell_json_peaks(t, c);
    put_gb_json(t, "peak_allocated_gb", c->peak_allocated);
    put_gb_json(t, "peak_reserved_gb", c->peak_reserved);
    put_gb_json(t, "peak_device_gb", c->peak_device);
    tmk_tree_number(t, "peak_step", c->peak_step);
    tmk_tree_u64(t, "steps", c->n_steps);
}

static void put_cell_json(struct tmk_tree *t, const struct tmk_sweep_answer *v, uint32_t number)
{
    const struct tmk_cell *c = &v->r->cells[number];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "number", number + 1);
    tmk_sweep_json_config(t, v->r, c);
    tmk_tree_u64(t, "repeat", c->repeat + 1);
    tmk_tree_text(t, "outcome", tmk_cell_outcome_name(c->outcome));
    tmk_tree_i64_if(t, "exit_status", tmk_cell_was_run(c), c->exit_status);
    tmk_tree_text(t, "message", c->message);
    tmk_tree_double(t, "seconds", tmk_cell_was_run(c) ? c->seconds : NAN);
    tmk_tree_text(t, "run", c->run);
    tmk_tree_text(t, "log", c->log);
    tmk_tree_text(t, "device", c->device);
    tmk_tree_bytes(t, "capacity", c->capacity);
    tmk_sweep_put_peaks(t, c);
    tmk_cell_json_shares(t, "by_category", &c->categories);
    tmk_cell_json_shares(t, "by_component", &c->components);
    tmk_cell_json_shares(t, "by_stage", &c->at_stage);
    tmk_cell_json_stages(t, c, true);
    tmk_cell_json_ranks(t, c);
    put_estimate_json(t, "estimate_allocated", v->g->fit, number);
    put_estimate_json(t, "estimate_reserved", v->reserved, number);
    tmk_tree_end(t);
}

/* ---- the sweep ---- */

static void put_params_json(struct tmk_tree *t, const struct tmk_results *r)
{
    tmk_tree_list(t, "parameters");
    for (uint32_t p = 0; p < r->n_params; p++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "name", r->params[p].name);
        tmk_tree_list(t, "values");
        for (uint32_t i = 0; i < r->params[p].n_values; i++)
            put_value_json(t, &r->params[p], NULL, i);
        tmk_tree_end(t);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_counts_json(struct tmk_tree *t, const struct tmk_survey *g)
{
    tmk_tree_object(t, "counts");
    tmk_tree_u64(t, "cells", g->r->n_cells);
    for (int o = TMK_CELL_PENDING; o <= TMK_CELL_HOPELESS; o++)
        tmk_tree_u64(t, tmk_cell_outcome_name((enum tmk_cell_outcome)o), g->n_cells[o]);
    tmk_tree_end(t);
}

static void put_fit_json(struct tmk_tree *t, const char *key, const struct tmk_fit *f)
{
    if (!tmk_tree_object_if(t, key, f != NULL))
        return;
    tmk_tree_u64(t, "configurations", tmk_fit_n_configurations(f));
    tmk_tree_double(t, "left_out_median", tmk_fit_left_out_median(f));
    tmk_tree_double(t, "left_out_worst", tmk_fit_left_out_worst(f));
    tmk_tree_list(t, "terms");
    for (uint32_t i = 0; i < tmk_fit_n_terms(f); i++) {
        const struct tmk_fit_term *term = tmk_fit_term(f, i);
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "category", term->category);
        tmk_tree_text(t, "term", term->text);
        tmk_tree_double(t, "coefficient", term->coefficient);
        tmk_tree_double(t, "error", term->error);
        tmk_tree_text(t, "where", term->where);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void put_influences_json(struct tmk_tree *t, const struct tmk_sweep_answer *v)
{
    tmk_tree_list(t, "influence");
    for (uint32_t i = 0; i < v->advice.n_influences; i++) {
        const struct tmk_influence *it = &v->advice.influences[i];
        const struct tmk_fit_effect *e = &it->effect;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "parameter", v->r->params[it->param].name);
        tmk_tree_text(t, "shape", tmk_influence_name(it->shape));
        tmk_tree_double(t, "from", e->from);
        tmk_tree_double(t, "to", e->to);
        tmk_tree_u64(t, "bytes_from", tmk_size_whole(e->bytes_from));
        tmk_tree_u64(t, "bytes_to", tmk_size_whole(e->bytes_to));
        tmk_tree_double(t, "linear_bytes", e->linear);
        tmk_tree_double(t, "squared_bytes", e->squared);
        tmk_tree_double(t, "inverse_bytes", e->inverse);
        tmk_tree_text(t, "text", it->text);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_limits_json(struct tmk_tree *t, const struct tmk_sweep_answer *v)
{
    tmk_tree_list(t, "largest_that_fits");
    for (uint32_t i = 0; i < v->advice.n_limits; i++) {
        const struct tmk_advice_limit *l = &v->advice.limits[i];
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "parameter", v->r->params[l->param].name);
        tmk_tree_object(t, "config");
        for (uint32_t p = 0; p < v->r->n_params; p++)
            if (p != l->param && tmk_advice_matters(v->r, &v->advice, p))
                put_value_json(t, &v->r->params[p], v->r->params[p].name,
                               v->r->cells[l->cell].choice[p]);
        tmk_tree_end(t);
        tmk_tree_u64(t, "capacity", l->capacity);
        tmk_tree_u64_if(t, "value", l->sure != UINT64_MAX, l->sure);
        tmk_tree_u64_if(t, "possible", l->possible != UINT64_MAX, l->possible);
        tmk_tree_bool(t, "is_far", l->is_far);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

void tmk_sweep_write_json(FILE *out, const struct tmk_sweep_answer *v)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, out, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "tidemark", TMK_VERSION);
    tmk_tree_text(&t, "title", v->r->title);
    put_params_json(&t, v->r);
    tmk_tree_u64(&t, "repeats", v->r->n_repeats);
    put_counts_json(&t, v->g);
    tmk_tree_list(&t, "results");
    for (uint32_t c = 0; c < v->r->n_cells; c++)
        put_cell_json(&t, v, c);
    tmk_tree_end(&t);
    tmk_tree_object(&t, "fit");
    tmk_tree_text(&t, "none_because", v->g->why_none);
    put_fit_json(&t, "allocated", v->g->fit);
    put_fit_json(&t, "reserved", v->reserved);
    tmk_tree_end(&t);
    put_influences_json(&t, v);
    tmk_tree_bytes(&t, "device_overhead", v->advice.overhead);
    put_limits_json(&t, v);
    tmk_tree_end(&t);
}
