/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_text.c - a sweep's console text at its end: where the memory goes, the effect of
 * parameters, and what fits on which GPU. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/shell.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "sweep/advice.h"
#include "sweep/fit.h"
#include "sweep/params.h"
#include "sweep/results.h"
#include "sweep/survey.h"

enum { MOST_ROWS = 12, MOST_CARDS = 15 };

/* ---- sentences ---- */

/* Write a size in GB, the unit of the documents that sweeps follow; small ones in MB, which would
 * be 0.00 GB. */
static const char *gb_text(uint64_t bytes, uint64_t whole, char *buffer)
{
    bool is_small = whole < (uint64_t)TMK_GB;
    snprintf(buffer, TMK_AMOUNT_BYTES, "%.2f %s", (double)bytes / (is_small ? TMK_MB : TMK_GB),
             is_small ? "MB" : "GB");
    return buffer;
}

/* Whether a part belongs to no layer: the rest, or one named in brackets, as cuBLAS' workspace. */
static bool is_of_no_layer(const char *component)
{
    return strcmp(component, "other") == 0 || component[0] == '(';
}

static const struct tmk_share *most_of(const struct tmk_shares *all, bool layers_only)
{
    const struct tmk_share *most = NULL;
    for (uint32_t i = 0; i < all->n; i++)
        if ((!most || all->rows[i].bytes > most->bytes) &&
            !(layers_only && is_of_no_layer(all->rows[i].key)))
            most = &all->rows[i];
    return most;
}

/* Explain "other", which is nothing to work on: what it may be, and which layer comes first. */
static const char *say_other(struct tmk_sweep_answer *v, const struct tmk_cell *c, const char *text)
{
    char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
    const struct tmk_share *layer = most_of(&c->components, true);
    if (text)
        text = tmk_arena_format(
            &v->arena, _("%s No layer owns it (in a language model: logits and loss, mostly)."),
            text);
    if (!text || !layer)
        return text;
    return tmk_arena_format(&v->arena, _("%s Of the layers %s is the largest: %s, %s."), text,
                            layer->key, gb_text(layer->bytes, c->peak_allocated, size),
                            tmk_percent_text(layer->bytes, c->peak_allocated, percent));
}

/* The largest part of the largest configuration; NULL: nothing was measured. */
static const struct tmk_share *largest_of(const struct tmk_sweep_answer *v)
{
    return v->g->largest ? most_of(&v->g->largest->cell->components, false) : NULL;
}

const char *tmk_sweep_look_command(struct tmk_sweep_answer *v)
{
    const struct tmk_share *most = largest_of(v);
    if (!most || strcmp(most->key, "other") != 0)
        return NULL;
    const struct tmk_cell *c = v->g->largest->cell;
    if (!tmk_cell_has_trace(v->r, c))
        return NULL;
    const char *path = tmk_arena_format(&v->arena, "%s/%s", v->r->folder, c->run);
    const char *word = path ? tmk_shell_word(&v->arena, path) : NULL;
    return word ? tmk_arena_format(&v->arena, _("tidemark peak %s --by stack"), word) : NULL;
}

const char *tmk_sweep_say_largest(struct tmk_sweep_answer *v)
{
    char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
    const struct tmk_share *most = largest_of(v);
    if (!most)
        return NULL;
    const struct tmk_cell *c = v->g->largest->cell;
    const char *text = tmk_arena_format(&v->arena, _("%s is the largest: %s, %s of the peak."),
                                        most->key, gb_text(most->bytes, c->peak_allocated, size),
                                        tmk_percent_text(most->bytes, c->peak_allocated, percent));
    return strcmp(most->key, "other") == 0 ? say_other(v, c, text) : text;
}

static const char *judgement(double median)
{
    return median <= 0.05   ? ""
           : median <= 0.15 ? _(" Estimates are rough.")
                            : _(" Do not rely on estimates: something else than these parameters "
                                "decides.");
}

/* The percentage to show: an exact fit leaves only rounding errors. */
static double shown_percent(double share)
{
    return share < 1e-4 ? 0.01 : 100 * share;
}

/* Add what is to be said of a configuration at the edge that does not follow the others. */
static const char *say_edge(struct tmk_sweep_answer *v, const char *text)
{
    uint32_t cell;
    char is[TMK_AMOUNT_BYTES], fitted[TMK_AMOUNT_BYTES];
    if (!tmk_fit_is_edge_off(v->g->fit, &cell))
        return text;
    const struct tmk_survey_config *c = tmk_survey_at(v->g, v->r->cells[cell].choice);
    return tmk_arena_format(
        &v->arena,
        _("%s %s does not follow the others: it needs %s, and the fit %s. Something else decides "
          "from "
          "there on (a later stage has the peak, say), so nothing beyond is estimated. Measure "
          "more "
          "of the large ones."),
        text, c->name, tmk_size_text(c->cell->peak_allocated, is),
        tmk_size_text(tmk_size_whole(tmk_fit_cell(v->g->fit, cell).bytes), fitted));
}

const char *tmk_sweep_say_fit(struct tmk_sweep_answer *v)
{
    uint32_t wrong = 0;
    if (!v->g->fit)
        return tmk_arena_format(&v->arena, _("No fit: %s."), v->g->why_none);
    const struct tmk_fit *f = v->g->fit;
    for (uint32_t c = 0; c < v->r->n_cells; c++)
        wrong += tmk_fit_contradicts(v->reserved ? v->reserved : f, c);
    double median = tmk_fit_left_out_median(f), worst = tmk_fit_left_out_worst(f);
    char reserved[96] = "";
    if (v->reserved)
        snprintf(reserved, sizeof reserved,
                 _(", and what the allocator reserves within %.2g %% (the worst %.2g %%)"),
                 shown_percent(tmk_fit_left_out_median(v->reserved)),
                 shown_percent(tmk_fit_left_out_worst(v->reserved)));
    const char *text = tmk_arena_format(
        &v->arena,
        _("Made from %u configurations. When each is left out in turn, the "
          "others tell its peak within %.2g %% (the middle one; the worst %.2g %%)%s.%s"),
        tmk_fit_n_configurations(f), shown_percent(median), shown_percent(worst), reserved,
        judgement(median));
    text = text ? say_edge(v, text) : NULL;
    if (wrong == 0 || !text)
        return text;
    return tmk_arena_format(
        &v->arena,
        _("%s %u cell%s ran out of memory though by the fit %s would have fitted: "
          "it is too low there, or others used the device."),
        text, wrong, wrong == 1 ? "" : "s", wrong == 1 ? _("it") : _("they"));
}

const char *tmk_sweep_capacity_text(uint64_t bytes, char *buffer)
{
    const uint64_t gib = UINT64_C(1) << 30;
    if (bytes % gib != 0)
        return tmk_size_text(bytes, buffer);
    snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " GiB", bytes / gib);
    return buffer;
}

const char *tmk_sweep_limit_text(const struct tmk_advice_limit *l, char *buffer, size_t size)
{
    const char *far = l->is_far ? "~" : "";
    if (l->sure == UINT64_MAX)
        snprintf(buffer, size, _("any"));
    else if (l->possible == 0)
        snprintf(buffer, size, _("none"));
    else if (l->possible == l->sure)
        snprintf(buffer, size, "%s%" PRIu64, far, l->sure);
    else if (l->possible == UINT64_MAX)
        snprintf(buffer, size, _("%s%" PRIu64 " or more"), far, l->sure);
    else
        snprintf(buffer, size, "%s%" PRIu64 "–%" PRIu64, far, l->sure, l->possible);
    return buffer;
}

/* ---- parts ---- */

static void say_components(FILE *out, const struct tmk_sweep_answer *v)
{
    const struct tmk_cell *c = v->g->largest->cell;
    char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES], name[512];
    fprintf(out, _("\nPeak of the largest configuration, %s: %s on %s\n\n"),
            tmk_cell_text(v->r, c, name, sizeof name),
            gb_text(c->peak_allocated, c->peak_allocated, size), c->device ? c->device : "-");
    fputs(_("Component breakdown:\n"), out);
    for (uint32_t i = 0; i < c->components.n; i++) {
        const struct tmk_share *s = &c->components.rows[i];
        fprintf(out, "  %s: %s (%s)\n", s->key, gb_text(s->bytes, c->peak_allocated, size),
                tmk_percent_text(s->bytes, c->peak_allocated, percent));
    }
}

static void say_influences(struct tmk_sheet *sheet, const struct tmk_sweep_answer *v)
{
    if (v->advice.n_influences == 0)
        return;
    tmk_sheet_heading(sheet, "What the parameters do to the peak");
    for (uint32_t i = 0; i < v->advice.n_influences; i++)
        tmk_sheet_item(sheet, v->advice.influences[i].text);
}

static void say_estimates(struct tmk_sheet *sheet, const struct tmk_sweep_answer *v)
{
    static const struct tmk_column columns[] = {
        {"not measured", TMK_LEFT, TMK_SHRINK},
        {"why", TMK_LEFT, TMK_FIXED},
        {"estimated peak", TMK_RIGHT, TMK_FIXED},
        {"between", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->g->n_configs; i++) {
        const struct tmk_survey_config *c = &v->g->configs[i];
        struct tmk_estimate e;
        char name[512], size[TMK_AMOUNT_BYTES], low[TMK_AMOUNT_BYTES], high[TMK_AMOUNT_BYTES];
        if (!tmk_survey_is_estimated(v->g, c, &e) || ++n > MOST_ROWS)
            continue;
        tmk_table_cell(t, tmk_cell_text(v->r, c->cell, name, sizeof name));
        tmk_table_cell(t, tmk_cell_outcome_name(c->cell->outcome));
        tmk_table_cell(t, tmk_size_text(tmk_size_whole(e.bytes), size));
        tmk_table_cellf(t, _("%s and %s"), tmk_size_text(tmk_size_whole(e.low), low),
                        tmk_size_text(tmk_size_whole(e.high), high));
    }
    if (n > 0)
        tmk_sheet_heading(sheet, "Configurations without a measured peak");
    tmk_sheet_table(sheet, t);
    if (n > MOST_ROWS)
        tmk_sheet_text(sheet, "and %u more, in memory_profile_results.json", n - MOST_ROWS);
}

/* ---- what fits ---- */

/* Columns of the table of limits: one for each parameter that matters except the one asked for,
 * then one for each GPU. */
struct limit_columns {
    struct tmk_column columns[TMK_SWEEP_MAX_PARAMS + MOST_CARDS];
    char titles[MOST_CARDS][TMK_AMOUNT_BYTES];
    uint32_t params[TMK_SWEEP_MAX_PARAMS];
    uint32_t n_params;
};

static void add_columns(const struct tmk_sweep_answer *v, struct limit_columns *k)
{
    k->n_params = 0;
    for (uint32_t p = 0; p < v->r->n_params; p++)
        if (p != v->advice.main_param && tmk_advice_matters(v->r, &v->advice, p)) {
            k->columns[k->n_params] = (struct tmk_column){
                v->r->params[p].name, v->r->params[p].numbers ? TMK_RIGHT : TMK_LEFT, TMK_SHRINK};
            k->params[k->n_params++] = p;
        }
    for (uint32_t i = 0; i < v->advice.n_capacities; i++) {
        tmk_sweep_capacity_text(v->advice.capacities[i], k->titles[i]);
        k->columns[k->n_params + i] = (struct tmk_column){k->titles[i], TMK_RIGHT, TMK_FIXED};
    }
}

/* Explain ranges, and which memory of a GPU is not counted, or left free. */
static const char *say_range(const struct tmk_sweep_answer *v)
{
    return v->reserved
               ? _("A–B: up to A it fits with all that the allocator would hold; above B it "
                   "does not, as the blocks alone are too much; between, it depends on "
                   "fragmentation.")
               : _("A–B: up to A it fits; above B it does not; between, it may.");
}

static const char *say_overhead(const struct tmk_sweep_answer *v, char *buffer, size_t n)
{
    char size[TMK_AMOUNT_BYTES];
    uint64_t overhead = v->advice.overhead;
    if (overhead == 0 || (overhead == TMK_BYTES_UNKNOWN && !v->reserved))
        return NULL;
    if (overhead != TMK_BYTES_UNKNOWN)
        snprintf(buffer, n, _("%s of each GPU are left to the CUDA context and others."),
                 tmk_size_text(overhead, size));
    else
        snprintf(buffer, n,
                 _("All of a GPU is counted as free. What the CUDA context and others take of it "
                   "is not known%s."),
                 v->advice.is_side_by_side ? _(", as several configurations ran at once") : "");
    return buffer;
}

void tmk_sweep_each_note(const struct tmk_sweep_answer *v, bool any_far, bool any_range,
                         void (*say)(void *to, const char *text), void *to)
{
    char buffer[256];
    const char *overhead = say_overhead(v, buffer, sizeof buffer);
    if (overhead)
        say(to, overhead);
    if (any_range)
        say(to, say_range(v));
    if (any_far)
        say(to, _("~: more than twice what was measured. Try it before you rely on it."));
}

static void say_note(void *sheet, const char *text)
{
    tmk_sheet_text(sheet, "%s", text);
}

static void say_limits(struct tmk_sheet *sheet, const struct tmk_sweep_answer *v)
{
    uint32_t n = v->advice.n_capacities, n_rows = 0;
    struct limit_columns k;
    bool any_far = false, any_range = false;
    if (v->advice.main_param == UINT32_MAX || n == 0 || n > MOST_CARDS)
        return;
    add_columns(v, &k);
    struct tmk_table *t = tmk_table_open(k.columns, k.n_params + n);
    tmk_table_keep_titles(t);
    for (uint32_t i = 0; i < v->advice.n_limits; i++) {
        const struct tmk_advice_limit *l = &v->advice.limits[i];
        char text[512];
        if (l->param != v->advice.main_param || (i % n == 0 && ++n_rows > MOST_ROWS) ||
            n_rows > MOST_ROWS)
            continue;
        for (uint32_t p = 0; i % n == 0 && p < k.n_params; p++)
            tmk_table_cell(
                t, v->r->params[k.params[p]].values[v->r->cells[l->cell].choice[k.params[p]]]);
        tmk_table_cell(t, tmk_sweep_limit_text(l, text, sizeof text));
        any_far = any_far || l->is_far;
        any_range = any_range || l->possible != l->sure;
    }
    char *heading = NULL;
    if (asprintf(&heading, _("Largest %s that fits, by the fit"),
                 v->r->params[v->advice.main_param].name) < 0)
        tmk_die("out of memory");
    tmk_sheet_heading(sheet, heading);
    free(heading);
    tmk_sheet_table(sheet, t);
    if (n_rows > MOST_ROWS)
        tmk_sheet_text(sheet, "and %u more, in memory_profile_results.json", n_rows - MOST_ROWS);
    tmk_sweep_each_note(v, any_far, any_range, say_note, sheet);
}

/* Say why there is no result, and what to do about it. */
static void say_nothing_measured(struct tmk_sheet *sheet, const struct tmk_sweep_answer *v)
{
    uint32_t n = v->g->n_cells[TMK_CELL_DONE];
    const char *message = NULL;
    for (uint32_t c = 0; c < v->r->n_cells && !message; c++)
        if (v->r->cells[c].outcome == TMK_CELL_DONE)
            message = v->r->cells[c].message;
    if (n == 0) {
        tmk_sheet_text(sheet, "Nothing was measured: no configuration ended well.");
        return;
    }
    tmk_sheet_text(sheet, "Nothing was measured: %u ended well, but no peak is known. %s%s", n,
                   message ? _("The first: ") : "", message ? message : "");
    tmk_sheet_text(sheet,
                   "What is seen is memory of torch, of CUDA and HIP, and of programs that use "
                   "tidemark.h, where the command starts them with its environment. To look at "
                   "one by itself: tidemark run -- COMMAND; at this machine: tidemark doctor.");
}

void tmk_sweep_write_text(FILE *out, const struct tmk_sweep_answer *v)
{
    struct tmk_sheet sheet = {.out = out, .colour = tmk_wants_colour(out), .is_begun = true};
    if (!v->g->largest) {
        say_nothing_measured(&sheet, v);
        return;
    }
    say_components(out, v);
    if (v->largest_text) {
        fputc('\n', out);
        tmk_sheet_wrap(out, v->largest_text, "");
    }
    if (v->look_command) { /* for copying: on one line, however long */
        fprintf(out, "%s\n  ", TMK_SWEEP_LOOK);
        tmk_utf8_write(out, v->look_command, SIZE_MAX);
        fputc('\n', out);
    }
    say_influences(&sheet, v);
    tmk_sheet_heading(&sheet, "How memory grows: the fit");
    tmk_sheet_text(&sheet, "%s", v->fit_text);
    say_estimates(&sheet, v);
    say_limits(&sheet, v);
}
