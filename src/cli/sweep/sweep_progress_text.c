/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_progress_text.c - see sweep_progress_text.h. */
#include "cli/sweep/sweep_progress_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/output/sheet.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "sweep/params.h"
#include "sweep/remaining.h"
#include "sweep/results.h"

enum { TEXT_BYTES = 512, MOST_ROWS = 60, WIDEST_TEXT = 60, WIDEST_LOG = 110, WIDEST_MESSAGE = 500 };

/* The text of a configuration in its line: "seq=128 batch=4", or only its values if that would be
 * cut. */
static const char *line_text(const struct tmk_sweep_progress *v, const struct tmk_cell *c,
                             char *buffer)
{
    const struct tmk_results *r = v->r;
    struct tmk_text t;
    if (!v->is_short)
        return tmk_cell_text(r, c, buffer, TEXT_BYTES);
    tmk_text_init(&t, buffer, TEXT_BYTES);
    for (uint32_t p = 0; p < r->n_params; p++)
        tmk_text_add(&t, "%s%s", p ? ", " : "", r->params[p].values[c->choice[p]]);
    if (r->n_repeats > 1)
        tmk_text_add(&t, _(" repeat %u of %u"), c->repeat + 1, r->n_repeats);
    return buffer;
}

static size_t widest_of(const struct tmk_sweep_progress *v)
{
    size_t widest = 0;
    char text[TEXT_BYTES];
    for (uint32_t i = 0; i < v->n; i++) {
        size_t width = tmk_utf8_width(line_text(v, &v->r->cells[v->order[i]], text));
        widest = width > widest ? width : widest;
    }
    return widest;
}

void tmk_sweep_progress_init(struct tmk_sweep_progress *v, const struct tmk_results *r,
                             const uint32_t *order, uint32_t n, unsigned n_at_once)
{
    *v = (struct tmk_sweep_progress){.r = r, .order = order, .n = n, .n_at_once = n_at_once};
    v->is_terminal = isatty(STDERR_FILENO);
    v->is_short = widest_of(v) > WIDEST_TEXT;
    v->widest = widest_of(v);
    if (v->widest > WIDEST_TEXT)
        v->widest = WIDEST_TEXT;
}

void tmk_sweep_progress_clear(struct tmk_sweep_progress *v)
{
    if (v->shown)
        fputs("\r\033[K", stderr);
    v->shown = false;
}

/* A time in whole seconds, for lines that change while they are read. */
static const char *clock_text(double seconds, char *buffer)
{
    if (seconds >= 60)
        return tmk_time_text((uint64_t)(seconds + 0.5) * 1000000000u, buffer);
    snprintf(buffer, TMK_AMOUNT_BYTES, "%.0f s", seconds);
    return buffer;
}

/* Write "about 3 min left" to the buffer; "": not known. */
static const char *time_left(const struct tmk_sweep_progress *v, char *buffer, size_t size)
{
    double seconds = tmk_remaining_seconds(v->r, v->order, v->n, v->n_at_once);
    char time[TMK_AMOUNT_BYTES];
    buffer[0] = '\0';
    if (seconds >= 2)
        snprintf(buffer, size, _("about %s left"), clock_text(seconds, time));
    return buffer;
}

/* ---- a line for each configuration ---- */

static const char *peak_text(const struct tmk_cell *c, char *buffer)
{
    return c->peak_allocated == TMK_BYTES_UNKNOWN ? "-" : tmk_size_text(c->peak_allocated, buffer);
}

static const char *outcome_text(const struct tmk_cell *c)
{
    return c->outcome == TMK_CELL_OOM ? _("OOM") : tmk_cell_outcome_name(c->outcome);
}

/* Print a line of foreign text; nothing in it can control the terminal. */
static void print_progress_line(const char *lead, const char *text, size_t n, size_t width)
{
    char line[TEXT_BYTES];
    snprintf(line, sizeof line, "%.*s", (int)n, text);
    fputs(lead, stderr);
    tmk_utf8_write(stderr, line, width);
    fputc('\n', stderr);
}

/* Print the last lines, indented. */
static void print_log(const char *log)
{
    while (*log) {
        size_t n = strcspn(log, "\n");
        print_progress_line("        | ", log, n, WIDEST_LOG);
        log += n + (log[n] == '\n');
    }
}

/* Print the parameters' names, once, above lines with values alone. */
static void say_param_names(struct tmk_sweep_progress *v)
{
    if (!v->is_short || v->has_named)
        return;
    v->has_named = true;
    fputs(_("Lines have "), stderr);
    for (uint32_t p = 0; p < v->r->n_params; p++) {
        fputs(p ? ", " : "", stderr);
        tmk_utf8_write(stderr, v->r->params[p].name, SIZE_MAX);
    }
    fputs(_("; outcome, peak, time:\n"), stderr);
}

void tmk_sweep_progress_cell(struct tmk_sweep_progress *v, const struct tmk_cell *c,
                             const char *log)
{
    char text[TEXT_BYTES], peak[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], left[64], count[16];
    uint32_t n_pending = tmk_results_n_pending(v->r, v->order, v->n);
    int digits = snprintf(count, sizeof count, "%u", v->n);
    tmk_sweep_progress_clear(v);
    say_param_names(v);
    line_text(v, c, text);
    fprintf(stderr, "[%*u/%u] ", digits, v->n - n_pending, v->n);
    size_t width = tmk_utf8_write(stderr, text, WIDEST_TEXT);
    fprintf(stderr, "%*s  %-8s %11s  %9s%s%s\n", width < v->widest ? (int)(v->widest - width) : 0,
            "", outcome_text(c), peak_text(c, peak),
            c->outcome == TMK_CELL_HOPELESS ? "-"
                                            : tmk_time_text((uint64_t)(c->seconds * 1e9), time),
            *time_left(v, left, sizeof left) ? "   " : "", left);
    bool is_done = c->outcome == TMK_CELL_DONE;
    if (c->message && !(is_done && v->said && strcmp(v->said, c->message) == 0))
        print_progress_line("        ", c->message, strlen(c->message), WIDEST_MESSAGE);
    if (is_done && c->message)
        v->said = c->message;
    if (log)
        print_log(log);
}

void tmk_sweep_progress_running(struct tmk_sweep_progress *v, unsigned n_running,
                                const struct tmk_cell *c, uint64_t ns)
{
    char text[TEXT_BYTES], time[TMK_AMOUNT_BYTES], left[64], more[32] = "";
    if (!v->is_terminal || ns < 1000000000u)
        return;
    if (n_running > 1)
        snprintf(more, sizeof more, _(" and %u more"), n_running - 1);
    time_left(v, left, sizeof left);
    say_param_names(v);
    fputs("\r\033[K  ... ", stderr);
    tmk_utf8_write(stderr, line_text(v, c, text), WIDEST_TEXT);
    fprintf(stderr, _("%s, for %s%s%s"), more, clock_text((double)(ns / 1000000000u), time),
            *left ? "; " : "", left);
    fflush(stderr);
    v->shown = true;
}

/* ---- the table ---- */

/* Columns without information are left out. */
struct progress_layout {
    struct tmk_column columns[TMK_SWEEP_MAX_PARAMS + 6];
    uint32_t n;
    bool has_repeats;
    bool has_reserved; /* some cell has reserved bytes */
    bool has_devices;  /* cells ran on more than one device */
};

static void add_column(struct progress_layout *l, const char *title, bool is_number,
                       bool may_shrink)
{
    l->columns[l->n++] = (struct tmk_column){title, is_number ? TMK_RIGHT : TMK_LEFT,
                                             may_shrink ? TMK_SHRINK : TMK_FIXED};
}

static void lay_out_progress(struct progress_layout *l, const struct tmk_results *r)
{
    const char *device = NULL;
    *l = (struct progress_layout){.has_repeats = r->n_repeats > 1};
    for (uint32_t i = 0; i < r->n_cells; i++) {
        const struct tmk_cell *c = &r->cells[i];
        l->has_reserved |= c->peak_reserved != TMK_BYTES_UNKNOWN;
        l->has_devices |= device && c->device && strcmp(device, c->device) != 0;
        device = c->device ? c->device : device;
    }
    for (uint32_t p = 0; p < r->n_params; p++)
        add_column(l, r->params[p].name, r->params[p].numbers != NULL, true);
    if (l->has_repeats)
        add_column(l, _("repeat"), true, false);
    add_column(l, _("outcome"), false, false);
    add_column(l, _("peak"), true, false);
    if (l->has_reserved)
        add_column(l, _("reserved"), true, false);
    if (l->has_devices)
        add_column(l, _("device"), false, false);
    add_column(l, _("time"), true, false);
}

static void add_progress_row(struct tmk_table *t, const struct progress_layout *l,
                             const struct tmk_results *r, const struct tmk_cell *c)
{
    char size[TMK_AMOUNT_BYTES];
    for (uint32_t p = 0; p < r->n_params; p++)
        tmk_table_cell(t, r->params[p].values[c->choice[p]]);
    if (l->has_repeats)
        tmk_table_cellf(t, "%u", c->repeat + 1);
    tmk_table_cell(t, outcome_text(c));
    tmk_table_cell(t, peak_text(c, size));
    if (l->has_reserved)
        tmk_table_cell(t, c->peak_reserved == TMK_BYTES_UNKNOWN
                              ? NULL
                              : tmk_size_text(c->peak_reserved, size));
    if (l->has_devices)
        tmk_table_cell(t, c->device);
    tmk_table_cell(t,
                   tmk_cell_was_run(c) ? tmk_time_text((uint64_t)(c->seconds * 1e9), size) : NULL);
}

/* Print "14 done, 2 OOM, 1 failed, 3 excluded". */
static void print_tally(struct tmk_sheet *sheet, const struct tmk_survey *g)
{
    char line[256] = "", text[TEXT_BYTES], size[TMK_AMOUNT_BYTES];
    for (int o = TMK_CELL_PENDING; o <= TMK_CELL_HOPELESS; o++) {
        size_t n = strlen(line);
        struct tmk_cell c = {.outcome = (enum tmk_cell_outcome)o};
        if (g->n_cells[o])
            snprintf(line + n, sizeof line - n, "%s%u %s", n ? ", " : "", g->n_cells[o],
                     outcome_text(&c));
    }
    if (g->largest)
        tmk_sheet_text(sheet, "%s. The largest peak that ended well: %s, %s.", line,
                       tmk_size_text(g->most, size),
                       tmk_cell_text(g->r, g->largest->cell, text, sizeof text));
    else
        tmk_sheet_text(sheet, "%s.", line);
    if (g->n_peakless && g->largest)
        tmk_sheet_text(sheet,
                       "Of %u that ended well the peak is not known, and nothing is said about "
                       "them below; memory_profile_summary.csv has why.",
                       g->n_peakless);
}

void tmk_sweep_progress_table(const struct tmk_survey *g)
{
    const struct tmk_results *r = g->r;
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    struct progress_layout l;
    lay_out_progress(&l, r);
    struct tmk_table *t = tmk_table_open(l.columns, l.n);
    tmk_table_keep_titles(t);
    uint32_t shown = 0, n = r->n_cells - g->n_cells[TMK_CELL_EXCLUDED];
    tmk_sheet_heading(&sheet, "Configurations");
    for (uint32_t i = 0; i < r->n_cells && shown < MOST_ROWS; i++)
        if (r->cells[i].outcome != TMK_CELL_EXCLUDED) {
            add_progress_row(t, &l, r, &r->cells[i]);
            shown++;
        }
    tmk_sheet_table(&sheet, t);
    if (shown < n)
        tmk_sheet_text(&sheet, "... and %u more; memory_profile_summary.csv has them all.",
                       n - shown);
    print_tally(&sheet, g);
}
