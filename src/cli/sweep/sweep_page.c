/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_page.c - index.html: the sweep on one page, offline, in the colours of the
 * pictures. Estimates are marked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output/html.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "sweep/advice.h"
#include "sweep/fit.h"
#include "sweep/results.h"
#include "sweep/survey.h"

static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--text:#1f2328;--faint:#6b7280;--line:#e3e6ea;"
    "--fit:#0969da;--band:#0969da22;--bad:#c4321f;--box:#f6f8fa}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#14171c;--text:#e6e9ee;--faint:#9aa3af;"
    "--line:#2b3038;--fit:#6cb0ff;--band:#6cb0ff2b;--bad:#ff8672;--box:#1c2027}}\n"
    "body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;"
    "max-width:1180px;margin:0 auto;padding:24px}\n"
    "h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px}\n"
    "p,ul{margin:6px 0}.faint{color:var(--faint)}.bad{color:var(--bad)}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:12px}\n"
    ".chart{background:var(--box);border-radius:8px;width:100%}\n"
    ".grid{stroke:var(--line)}.tick{fill:var(--faint);font-size:11px}"
    ".name{fill:var(--text);font-size:12px;font-weight:600}\n"
    ".fit{fill:none;stroke:var(--fit);stroke-width:2}.band{fill:var(--band)}"
    ".point{fill:var(--fit)}g.faint{fill:var(--faint);opacity:.45}\n"
    ".guess{fill:var(--box);stroke:var(--fit)}.oom{fill:none;stroke:var(--bad);stroke-width:2}\n"
    ".cap{stroke:var(--bad);stroke-dasharray:6 "
    "3}text.cap{fill:var(--bad);stroke:none;font-size:11px}\n"
    "a{color:var(--fit)}\n"
    ".above{fill:var(--fit);font-size:11px}.refused{fill:var(--bad)}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;"
    "font-size:13.5px}\n"
    "th{text-align:left;color:var(--faint);font-weight:500}"
    "th,td{padding:3px 10px 3px 0;border-bottom:1px solid var(--line);white-space:nowrap}\n"
    ".heat td{padding:8px 14px;border:1px solid var(--back)}"
    ".heat td.est{background:none!important;outline:1px dashed var(--line);outline-offset:-4px}\n"
    "td.why{white-space:normal;min-width:300px}"
    "td.n,th.n{text-align:right}.est{font-style:italic;color:var(--faint)}\n"
    ".bar{display:flex;width:260px;height:12px}.bar span{display:block;height:12px}\n"
    ".key i{display:inline-block;width:11px;height:11px;border-radius:2px;margin:0 5px 0 14px}\n";

/* ---- bars ---- */

static void put_bar_piece(FILE *out, const struct tmk_share *s, double most)
{
    char size[TMK_AMOUNT_BYTES];
    fprintf(out, "<span style=\"width:%.2f%%;background:#%06x\" title=\"",
            100 * (double)s->bytes / most, tmk_palette_of(s->key) & 0xffffff);
    tmk_html_text(out, s->key);
    fprintf(out, " %s\"></span>", tmk_size_text(s->bytes, size));
}

static bool comes_before(const struct tmk_share *a, const struct tmk_share *b)
{
    unsigned x = tmk_palette_rank(a->key), y = tmk_palette_rank(b->key);
    return x != y ? x < y : strcmp(a->key ? a->key : "", b->key ? b->key : "") < 0;
}

/* The piece that follows `last` in stacking order, which is the same in each bar; NULL: none. */
static const struct tmk_share *next_piece(const struct tmk_shares *s, const struct tmk_share *last)
{
    const struct tmk_share *best = NULL;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct tmk_share *piece = &s->rows[i];
        if ((!last || comes_before(last, piece)) && (!best || comes_before(piece, best)))
            best = piece;
    }
    return best;
}

static void put_page_bar(FILE *out, const struct tmk_shares *s, double most)
{
    fputs("<td><div class=\"bar\">", out);
    for (const struct tmk_share *piece = next_piece(s, NULL); piece; piece = next_piece(s, piece))
        put_bar_piece(out, piece, most);
    fputs("</div></td>", out);
}

static void put_page_key(FILE *out, const struct tmk_results *r)
{
    struct tmk_textmap keys = {0};
    uint32_t number;
    bool good = true;
    for (uint32_t c = 0; good && c < r->n_cells; c++)
        for (uint32_t i = 0; good && i < r->cells[c].categories.n; i++)
            good = tmk_textmap_put(&keys, r->cells[c].categories.rows[i].key, &number) == 0;
    struct tmk_shares all = {.rows = tmk_xcalloc((size_t)keys.n + 1, sizeof *all.rows),
                             .n = (uint32_t)keys.n};
    for (uint32_t i = 0; i < keys.n; i++)
        all.rows[i].key = keys.texts[i];
    fputs("<p class=\"key\">", out);
    for (const struct tmk_share *k = next_piece(&all, NULL); k; k = next_piece(&all, k)) {
        fprintf(out, "<i style=\"background:#%06x\"></i>", tmk_palette_of(k->key) & 0xffffff);
        tmk_html_text(out, k->key);
    }
    fputs("</p>\n", out);
    free(all.rows);
    tmk_textmap_fini(&keys);
}

/* ---- sections ---- */

static void put_page_head(FILE *out, const struct tmk_sweep_answer *v)
{
    const struct tmk_results *r = v->r;
    char name[512], size[TMK_AMOUNT_BYTES];
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n",
          out);
    tmk_html_element(out, "title", "%s", r->title);
    fprintf(out, "<style>\n%s</style>\n</head>\n<body>\n", style);
    tmk_html_element(out, "h1", "%s", r->title);
    fprintf(out, "<p class=\"faint\">%u configurations", r->n_cells);
    for (int o = TMK_CELL_PENDING; o <= TMK_CELL_HOPELESS; o++) {
        if (v->g->n_cells[o] > 0)
            fprintf(out, " · %u %s", v->g->n_cells[o],
                    tmk_cell_outcome_name((enum tmk_cell_outcome)o));
    }
    fputs("</p>\n", out);
    if (v->g->largest) {
        const struct tmk_cell *c = v->g->largest->cell;
        tmk_html_element(out, "p", "Largest peak: %s, with %s.",
                         tmk_size_text(c->peak_allocated, size),
                         tmk_cell_text(r, c, name, sizeof name));
    }
}

static void put_page_components(FILE *out, const struct tmk_sweep_answer *v)
{
    if (!v->g->largest)
        return;
    const struct tmk_cell *c = v->g->largest->cell;
    char size[TMK_AMOUNT_BYTES], percent[TMK_AMOUNT_BYTES];
    tmk_html_element(out, "h2", "Component breakdown of the largest configuration");
    if (v->largest_text)
        tmk_html_element(out, "p", "%s", v->largest_text);
    if (v->look_command) {
        tmk_html_element(out, "p", "%s", TMK_SWEEP_LOOK);
        tmk_html_element(out, "pre class=\"scroll\"", "%s", v->look_command);
    }
    fputs("<table>\n", out);
    for (uint32_t i = 0; i < c->components.n; i++) {
        const struct tmk_share *s = &c->components.rows[i];
        fputs("<tr>", out);
        tmk_html_element(out, "td", "%s", s->key);
        tmk_html_element(out, "td class=\"n\"", "%s", tmk_size_text(s->bytes, size));
        tmk_html_element(out, "td class=\"n\"", "%s",
                         tmk_percent_text(s->bytes, c->peak_allocated, percent));
        put_page_bar(out, &(struct tmk_shares){.rows = c->components.rows + i, .n = 1},
                     (double)c->peak_allocated);
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* Explain the signs that the charts use. */
static void put_chart_notes(FILE *out, const struct tmk_sweep_answer *v, bool has_arrow)
{
    struct tmk_estimate e;
    bool has_refused = false, has_estimated = false;
    for (uint32_t i = 0; i < v->g->n_configs; i++) {
        const struct tmk_survey_config *c = &v->g->configs[i];
        bool is_refused = c->cell->outcome == TMK_CELL_OOM;
        has_refused |= is_refused;
        has_estimated |= !is_refused && tmk_survey_is_estimated(v->g, c, &e);
    }
    tmk_html_element(
        out, "p class=\"faint\"",
        "Points are measured peaks, large ones with the other values as in the largest "
        "configuration.%s%s%s The line is the fit, the band its bounds.",
        has_estimated ? " Hollow ones are estimated." : "",
        has_refused ? " Crosses ran out of memory: they stand where they are estimated." : "",
        has_arrow ? " An arrow at the top: an estimate above the chart." : "");
}

static void put_page_influences(FILE *out, const struct tmk_sweep_answer *v)
{
    if (v->advice.n_influences == 0)
        return;
    bool has_arrow = false;
    tmk_html_element(out, "h2", "What the parameters do to the peak");
    fputs("<ul>\n", out);
    for (uint32_t i = 0; i < v->advice.n_influences; i++)
        tmk_html_element(out, "li", "%s", v->advice.influences[i].text);
    fputs("</ul>\n<div class=\"charts\">\n", out);
    for (uint32_t i = 0; i < v->advice.n_influences; i++)
        if (v->advice.influences[i].effect.known)
            has_arrow |= tmk_sweep_write_chart(out, v, &v->advice.influences[i]);
    fputs("</div>\n", out);
    put_chart_notes(out, v, has_arrow);
}

static void put_page_terms(FILE *out, const struct tmk_fit *f)
{
    char size[TMK_AMOUNT_BYTES], error[TMK_AMOUNT_BYTES];
    fputs("<details><summary class=\"faint\">The terms</summary>\n<table>\n"
          "<tr><th>of</th><th>term</th><th class=\"n\">for each</th><th class=\"n\">± error</th>"
          "<th>where</th></tr>\n",
          out);
    for (uint32_t i = 0; i < tmk_fit_n_terms(f); i++) {
        const struct tmk_fit_term *t = tmk_fit_term(f, i);
        fputs("<tr>", out);
        tmk_html_element(out, "td", "%s", t->category);
        tmk_html_element(out, "td", "%s", t->text);
        tmk_html_element(out, "td class=\"n\"", "%s",
                         tmk_size_text(tmk_size_whole(t->coefficient), size));
        tmk_html_element(out, "td class=\"n\"", "%s",
                         tmk_size_text(tmk_size_whole(t->error), error));
        tmk_html_element(out, "td", "%s", t->where ? t->where : "");
        fputs("</tr>\n", out);
    }
    fputs("</table></details>\n", out);
}

static void put_page_fit(FILE *out, const struct tmk_sweep_answer *v)
{
    tmk_html_element(out, "h2", "How memory grows: the fit");
    tmk_html_element(out, "p", "%s", v->fit_text);
    if (v->g->fit)
        put_page_terms(out, v->g->fit);
}

static void put_limit_titles(FILE *out, const struct tmk_sweep_answer *v)
{
    char size[TMK_AMOUNT_BYTES];
    fputs("<tr>", out);
    for (uint32_t p = 0; p < v->r->n_params; p++)
        if (p != v->advice.main_param && tmk_advice_matters(v->r, &v->advice, p))
            tmk_html_element(out, "th", "%s", v->r->params[p].name);
    for (uint32_t i = 0; i < v->advice.n_capacities; i++)
        tmk_html_element(out, "th class=\"n\"", "%s",
                         tmk_sweep_capacity_text(v->advice.capacities[i], size));
    fputs("</tr>\n", out);
}

static void put_page_note(void *out, const char *text)
{
    tmk_html_element(out, "p class=\"faint\"", "%s", text);
}

static void put_page_limits(FILE *out, const struct tmk_sweep_answer *v)
{
    uint32_t n = v->advice.n_capacities;
    char text[96];
    bool has_span = false, has_far = false;
    if (v->advice.main_param == UINT32_MAX || n == 0)
        return;
    tmk_html_element(out, "h2", "Largest %s that fits, by the fit",
                     v->r->params[v->advice.main_param].name);
    fputs("<div class=\"scroll\"><table>\n", out);
    put_limit_titles(out, v);
    for (uint32_t i = 0; i < v->advice.n_limits; i++) {
        const struct tmk_advice_limit *l = &v->advice.limits[i];
        if (l->param != v->advice.main_param)
            continue;
        if (i % n == 0)
            fputs("<tr>", out);
        for (uint32_t p = 0; i % n == 0 && p < v->r->n_params; p++)
            if (p != l->param && tmk_advice_matters(v->r, &v->advice, p))
                tmk_html_element(out, "td", "%s",
                                 v->r->params[p].values[v->r->cells[l->cell].choice[p]]);
        tmk_sweep_limit_text(l, text, sizeof text);
        has_span |= strstr(text, "–") != NULL;
        has_far |= strchr(text, '~') != NULL;
        tmk_html_element(out, "td class=\"n\"", "%s", text);
        if (i % n == n - 1)
            fputs("</tr>\n", out);
    }
    fputs("</table></div>\n", out);
    tmk_sweep_each_note(v, has_far, has_span, put_page_note, out);
}

/* ---- all cells ---- */

static void put_page_peak(FILE *out, const struct tmk_sweep_answer *v, uint32_t number)
{
    const struct tmk_cell *c = &v->r->cells[number];
    char size[TMK_AMOUNT_BYTES], low[TMK_AMOUNT_BYTES], high[TMK_AMOUNT_BYTES];
    const struct tmk_survey_config *config = &v->g->configs[number / v->r->n_repeats];
    struct tmk_estimate e;
    if (config->number == number && tmk_survey_is_estimated(v->g, config, &e))
        tmk_html_element(out, "td class=\"n est\"", "about %s (%s to %s), estimated",
                         tmk_size_text(tmk_size_whole(e.bytes), size),
                         tmk_size_text(tmk_size_whole(e.low), low),
                         tmk_size_text(tmk_size_whole(e.high), high));
    else
        tmk_html_element(
            out, "td class=\"n\"", "%s",
            c->peak_allocated == TMK_BYTES_UNKNOWN ? "-" : tmk_size_text(c->peak_allocated, size));
    tmk_html_element(out, "td class=\"n\"", "%s",
                     c->peak_reserved == TMK_BYTES_UNKNOWN ? "-"
                                                           : tmk_size_text(c->peak_reserved, size));
}

/* Link to a file of the sweep's folder, where it is there. */
static void put_page_link(FILE *out, const struct tmk_results *r, const char *path,
                          const char *name)
{
    if (!path || path[0] == '/' || strstr(path, ".."))
        return;
    char *whole = tmk_xformat("%s/%s", r->folder, path);
    if (access(whole, R_OK) == 0) {
        fputs("<a href=\"", out);
        tmk_html_text(out, path);
        fprintf(out, "\">%s</a> ", name);
    }
    free(whole);
}

static void put_page_cell(FILE *out, const struct tmk_sweep_answer *v, uint32_t number)
{
    const struct tmk_cell *c = &v->r->cells[number];
    fprintf(out, "<tr><td class=\"n faint\">%u</td>", number + 1);
    for (uint32_t p = 0; p < v->r->n_params; p++)
        tmk_html_element(out, "td", "%s", v->r->params[p].values[c->choice[p]]);
    if (v->r->n_repeats > 1)
        fprintf(out, "<td class=\"n\">%u</td>", c->repeat + 1);
    tmk_html_element(out, c->outcome == TMK_CELL_DONE ? "td" : "td class=\"bad\"", "%s",
                     tmk_cell_outcome_name(c->outcome));
    put_page_peak(out, v, number);
    if (c->outcome == TMK_CELL_DONE)
        put_page_bar(out, &c->categories, (double)(v->g->most ? v->g->most : 1));
    else
        tmk_html_element(out, "td class=\"faint why\"", "%s", c->message ? c->message : "");
    char *picture = tmk_xformat("memory_timeline_config_%u.png", number + 1);
    fputs("<td>", out);
    put_page_link(out, v->r, c->log, "log");
    put_page_link(out, v->r, c->run, "run");
    put_page_link(out, v->r, picture, "picture");
    fputs("</td></tr>\n", out);
    free(picture);
}

static void put_page_cells(FILE *out, const struct tmk_sweep_answer *v)
{
    tmk_html_element(out, "h2", "All configurations");
    put_page_key(out, v->r);
    fputs("<div class=\"scroll\"><table>\n<tr><th class=\"n\">#</th>", out);
    for (uint32_t p = 0; p < v->r->n_params; p++)
        tmk_html_element(out, "th", "%s", v->r->params[p].name);
    if (v->r->n_repeats > 1)
        fputs("<th class=\"n\">repeat</th>", out);
    fputs("<th>outcome</th><th class=\"n\">peak</th><th class=\"n\">reserved</th>"
          "<th>what it is made of</th><th></th></tr>\n",
          out);
    for (uint32_t c = 0; c < v->r->n_cells; c++)
        if (v->r->cells[c].outcome != TMK_CELL_EXCLUDED)
            put_page_cell(out, v, c);
    fputs("</table></div>\n", out);
}

void tmk_sweep_write_page(FILE *out, const struct tmk_sweep_answer *v)
{
    put_page_head(out, v);
    put_page_components(out, v);
    put_page_influences(out, v);
    tmk_sweep_write_heat(out, v);
    put_page_fit(out, v);
    put_page_limits(out, v);
    put_page_cells(out, v);
    fprintf(out, "<p class=\"faint\">tidemark %s</p>\n</body>\n</html>\n", TMK_VERSION);
}
