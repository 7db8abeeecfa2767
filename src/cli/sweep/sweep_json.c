/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_json.c - memory_profile_results.json: every cell, the fit and the advice from it.
 * docs/sweep-files.md describes the keys. */
#include "cli/sweep/sweep_json.h"

#include <math.h>

#include "kit/amount.h"

static void put_gb_json(struct tmk_json *j, const char *key, uint64_t bytes)
{
    tmk_json_double(j, key, bytes == TMK_UNKNOWN_BYTES ? NAN : (double)bytes / TMK_GB);
}

/* Write a number if all values are numbers, else the text. */
static void put_value_json(struct tmk_json *j, const struct tmk_sweep_param *p, const char *key,
                           uint32_t choice)
{
    if (p->numbers)
        tmk_json_double(j, key, p->numbers[choice]);
    else
        tmk_json_text(j, key, p->values[choice]);
}

void tmk_sweep_json_config(struct tmk_json *j, const struct tmk_results *r,
                           const struct tmk_cell *c)
{
    tmk_json_object(j, "config");
    for (uint32_t p = 0; p < r->n_params; p++)
        put_value_json(j, &r->params[p], r->params[p].name, c->choice[p]);
    tmk_json_end(j);
}

/* ---- cells ---- */

static void put_estimate_json(struct tmk_json *j, const char *key, const struct tmk_fit *f,
                              uint32_t c)
{
    struct tmk_estimate e = f ? tmk_fit_cell(f, c) : (struct tmk_estimate){.known = false};
    if (!e.known) {
        tmk_json_null(j, key);
        return;
    }
    tmk_json_object(j, key);
    tmk_json_u64(j, "bytes", tmk_size_whole(e.bytes));
    tmk_json_u64(j, "low", tmk_size_whole(e.low));
    tmk_json_u64(j, "high", tmk_size_whole(e.high));
    tmk_json_text(j, "by", tmk_fit_way(f, c));
    tmk_json_double(j, "left_out_error", tmk_fit_left_out(f, c));
    tmk_json_bool(j, "contradicted", tmk_fit_contradicts(f, c));
    tmk_json_end(j);
}

static void put_peaks_json(struct tmk_json *j, const struct tmk_cell *c)
{
    tmk_cell_json_peaks(j, c);
    put_gb_json(j, "peak_allocated_gb", c->peak_allocated);
    put_gb_json(j, "peak_reserved_gb", c->peak_reserved);
    put_gb_json(j, "peak_device_gb", c->peak_device);
    tmk_cell_json_number(j, "peak_step", c->peak_step);
    tmk_json_u64(j, "steps", c->n_steps);
}

static void put_cell_json(struct tmk_json *j, const struct tmk_sweep_answer *v, uint32_t number)
{
    const struct tmk_cell *c = &v->r->cells[number];
    tmk_json_object(j, NULL);
    tmk_json_u64(j, "number", number + 1);
    tmk_sweep_json_config(j, v->r, c);
    tmk_json_u64(j, "repeat", c->repeat + 1);
    tmk_json_text(j, "outcome", tmk_cell_outcome_name(c->outcome));
    if (tmk_cell_was_run(c))
        tmk_json_i64(j, "exit_status", c->exit_status);
    else
        tmk_json_null(j, "exit_status");
    tmk_json_text(j, "message", c->message);
    tmk_json_double(j, "seconds", tmk_cell_was_run(c) ? c->seconds : NAN);
    tmk_json_text(j, "run", c->run);
    tmk_json_text(j, "log", c->log);
    tmk_json_text(j, "device", c->device);
    tmk_cell_json_bytes(j, "capacity", c->capacity);
    put_peaks_json(j, c);
    tmk_cell_json_shares(j, "by_category", &c->categories);
    tmk_cell_json_shares(j, "by_component", &c->components);
    tmk_cell_json_shares(j, "by_stage", &c->at_stage);
    tmk_cell_json_stages(j, c, true);
    tmk_cell_json_ranks(j, c);
    put_estimate_json(j, "estimate_allocated", v->g->fit, number);
    put_estimate_json(j, "estimate_reserved", v->reserved, number);
    tmk_json_end(j);
}

/* ---- the sweep ---- */

static void put_params_json(struct tmk_json *j, const struct tmk_results *r)
{
    tmk_json_array(j, "parameters");
    for (uint32_t p = 0; p < r->n_params; p++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "name", r->params[p].name);
        tmk_json_array(j, "values");
        for (uint32_t i = 0; i < r->params[p].n_values; i++)
            put_value_json(j, &r->params[p], NULL, i);
        tmk_json_end(j);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void put_counts_json(struct tmk_json *j, const struct tmk_survey *g)
{
    tmk_json_object(j, "counts");
    tmk_json_u64(j, "cells", g->r->n_cells);
    for (int o = TMK_CELL_PENDING; o <= TMK_CELL_HOPELESS; o++)
        tmk_json_u64(j, tmk_cell_outcome_name((enum tmk_cell_outcome)o), g->n_cells[o]);
    tmk_json_end(j);
}

static void put_fit_json(struct tmk_json *j, const char *key, const struct tmk_fit *f)
{
    if (!f) {
        tmk_json_null(j, key);
        return;
    }
    tmk_json_object(j, key);
    tmk_json_u64(j, "configurations", tmk_fit_n_configurations(f));
    tmk_json_double(j, "left_out_median", tmk_fit_left_out_median(f));
    tmk_json_double(j, "left_out_worst", tmk_fit_left_out_worst(f));
    tmk_json_array(j, "terms");
    for (uint32_t i = 0; i < tmk_fit_n_terms(f); i++) {
        const struct tmk_fit_term *t = tmk_fit_term(f, i);
        tmk_json_object(j, NULL);
        tmk_json_text(j, "category", t->category);
        tmk_json_text(j, "term", t->text);
        tmk_json_double(j, "coefficient", t->coefficient);
        tmk_json_double(j, "error", t->error);
        tmk_json_text(j, "where", t->where);
        tmk_json_end(j);
    }
    tmk_json_end(j);
    tmk_json_end(j);
}

static void put_influences_json(struct tmk_json *j, const struct tmk_sweep_answer *v)
{
    tmk_json_array(j, "influence");
    for (uint32_t i = 0; i < v->advice.n_influences; i++) {
        const struct tmk_influence *it = &v->advice.influences[i];
        const struct tmk_fit_effect *e = &it->effect;
        tmk_json_object(j, NULL);
        tmk_json_text(j, "parameter", v->r->params[it->param].name);
        tmk_json_text(j, "shape", tmk_influence_name(it->shape));
        tmk_json_double(j, "from", e->from);
        tmk_json_double(j, "to", e->to);
        tmk_json_u64(j, "bytes_from", tmk_size_whole(e->bytes_from));
        tmk_json_u64(j, "bytes_to", tmk_size_whole(e->bytes_to));
        tmk_json_double(j, "linear_bytes", e->linear);
        tmk_json_double(j, "squared_bytes", e->squared);
        tmk_json_double(j, "inverse_bytes", e->inverse);
        tmk_json_text(j, "text", it->text);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

/* Write a limit; null: there is none. */
static void put_limit_json(struct tmk_json *j, const char *key, uint64_t value)
{
    if (value == UINT64_MAX)
        tmk_json_null(j, key);
    else
        tmk_json_u64(j, key, value);
}

static void put_limits_json(struct tmk_json *j, const struct tmk_sweep_answer *v)
{
    tmk_json_array(j, "largest_that_fits");
    for (uint32_t i = 0; i < v->advice.n_limits; i++) {
        const struct tmk_advice_limit *l = &v->advice.limits[i];
        tmk_json_object(j, NULL);
        tmk_json_text(j, "parameter", v->r->params[l->param].name);
        tmk_json_object(j, "config");
        for (uint32_t p = 0; p < v->r->n_params; p++)
            if (p != l->param && tmk_advice_matters(v->r, &v->advice, p))
                put_value_json(j, &v->r->params[p], v->r->params[p].name,
                               v->r->cells[l->cell].choice[p]);
        tmk_json_end(j);
        tmk_json_u64(j, "capacity", l->capacity);
        put_limit_json(j, "value", l->sure);
        put_limit_json(j, "possible", l->possible);
        tmk_json_bool(j, "is_far", l->is_far);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

void tmk_sweep_write_json(FILE *out, const struct tmk_sweep_answer *v)
{
    struct tmk_json j;
    tmk_json_init(&j, out, 2);
    tmk_json_object(&j, NULL);
    tmk_json_text(&j, "tidemark", TMK_VERSION);
    tmk_json_text(&j, "title", v->r->title);
    put_params_json(&j, v->r);
    tmk_json_u64(&j, "repeats", v->r->n_repeats);
    put_counts_json(&j, v->g);
    tmk_json_array(&j, "results");
    for (uint32_t c = 0; c < v->r->n_cells; c++)
        put_cell_json(&j, v, c);
    tmk_json_end(&j);
    tmk_json_object(&j, "fit");
    tmk_json_text(&j, "none_because", v->g->why_none);
    put_fit_json(&j, "allocated", v->g->fit);
    put_fit_json(&j, "reserved", v->reserved);
    tmk_json_end(&j);
    put_influences_json(&j, v);
    tmk_cell_json_bytes(&j, "device_overhead", v->advice.overhead);
    put_limits_json(&j, v);
    tmk_json_end(&j);
}
