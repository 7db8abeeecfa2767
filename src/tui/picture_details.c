/* SPDX-License-Identifier: MIT */
/* tui/picture_details.c - one watched process in full, and the page of keys.
 *
 * The details have three lists, largest rows first. They are below each other on a narrow screen,
 * side by side on a wide one, and scroll together. */
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/forecast.h"
#include "trace/layout.h"
#include "tui/choice.h"
#include "tui/details.h"
#include "tui/grid.h"
#include "tui/jobs.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    TWO_FROM = 110, /* columns of the screen for two lists side by side, and for three */
    THREE_FROM = 170,
    AMOUNT_WIDTH = 11,
    BAR_WIDTH = 10,
    GAP = 3,
    HELP_KEYS_WIDTH = 28,
    LISTS_LEAST_LINES = 4, /* less important rows may not take these */
};

static const char *const titles[] = {
    [TMK_DETAILS_CATEGORIES] = N_("CATEGORY"),
    [TMK_DETAILS_MODULES] = N_("MODULE"),
    [TMK_DETAILS_LINES] = N_("LINE"),
};

/* ---- facts ---- */

static void put_inked_fact(struct tmk_grid *g, struct tmk_area *area, const char *name,
                           enum tmk_ink ink, const char *text)
{
    if (area->height == 0)
        return;
    tmk_grid_put(g, area->x + 1, area->y, 10, TMK_INK_DIM, name);
    if (area->width > 13)
        tmk_grid_put(g, area->x + 12, area->y, area->width - 13, ink, text);
    area->y++;
    area->height--;
}

static void put_fact(struct tmk_grid *g, struct tmk_area *area, const char *name, const char *text)
{
    put_inked_fact(g, area, name, TMK_INK_PLAIN, text);
}

static void put_memory_facts(struct tmk_grid *g, struct tmk_area *area, const struct tmk_details *d)
{
    char now[TMK_AMOUNT_BYTES], reserved[TMK_AMOUNT_BYTES] = "-", device[24], text[128];
    if (d->reserved_bytes != UINT64_MAX)
        tmk_size_text(d->reserved_bytes, reserved);
    snprintf(text, sizeof text, _("%s allocated, %s reserved"), tmk_size_text(d->now_bytes, now),
             reserved);
    put_fact(g, area, tmk_device_name(d->device, device), text);
}

static void put_peak_fact(struct tmk_grid *g, struct tmk_area *area, const struct tmk_details *d)
{
    char peak[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], text[128];
    int n = snprintf(text, sizeof text, _("%s after %s"), tmk_size_text(d->peak_bytes, peak),
                     tmk_time_text(d->peak_ns, time));
    if (d->peak_step != TMK_NO_STEP)
        snprintf(text + n, sizeof text - (size_t)n, _(", in step %" PRId64), d->peak_step);
    put_fact(g, area, _("peak"), text);
}

static void put_steps(struct tmk_grid *g, struct tmk_area *area, const struct tmk_details *d)
{
    char count[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], growth[TMK_AMOUNT_BYTES], text[200];
    if (d->n_steps == 0)
        return;
    int n = snprintf(text, sizeof text, "%s", tmk_count_text(d->n_steps, count));
    if (d->step_ns)
        n += snprintf(text + n, sizeof text - (size_t)n, _(", %s each"),
                      tmk_time_text(d->step_ns, time));
    if (d->bytes_per_step > 0)
        snprintf(text + n, sizeof text - (size_t)n, _("; memory kept after a step GROWS by %s"),
                 tmk_size_text((uint64_t)d->bytes_per_step, growth));
    put_inked_fact(g, area, _("steps"), d->bytes_per_step > 0 ? TMK_INK_WARN : TMK_INK_PLAIN, text);
}

static const struct tmk_top_process *process_of(const struct tmk_top_model *m, uint32_t pid)
{
    for (uint64_t i = 0; i < m->n_processes; i++)
        if (m->processes[i].pid == pid)
            return &m->processes[i];
    return NULL;
}

/* Put the memory that the system counts for the process, watched or not. */
static void put_uses(struct tmk_grid *g, struct tmk_area *area, const struct tmk_top_process *p)
{
    char used[TMK_AMOUNT_BYTES], host[TMK_AMOUNT_BYTES], text[128];
    bool on_device = p->used_bytes != TMK_BYTES_UNKNOWN;
    bool on_host = p->host_bytes != TMK_BYTES_UNKNOWN;
    if (!on_device && !on_host)
        return;
    int n = 0;
    if (on_device)
        n = snprintf(text, sizeof text, _("%s on device %s%s"), tmk_size_text(p->used_bytes, used),
                     p->devices, on_host ? ", " : "");
    if (on_host)
        snprintf(text + n, sizeof text - (size_t)n, _("%s of the host"),
                 tmk_size_text(p->host_bytes, host));
    put_fact(g, area, _("uses"), text);
}

static void put_process_facts(struct tmk_grid *g, struct tmk_area *area,
                              const struct tmk_top_model *m, uint32_t pid)
{
    char text[TMK_JOB_TEXT_BYTES + 64];
    const struct tmk_top_process *p = process_of(m, pid);
    if (!p) {
        snprintf(text, sizeof text, _("%" PRIu32 ", which has ended"), pid);
        put_fact(g, area, _("process"), text);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu32 "  %s", pid, p->command);
    put_fact(g, area, _("process"), text);
    if (p->is_watched)
        put_fact(g, area, _("run"), p->job.run);
    put_uses(g, area, p);
}

/* Put the forecast; unknown parts, and less important ones on a small screen, are left out. */
static void put_forecast(struct tmk_grid *g, struct tmk_area *area, const struct tmk_forecast *f)
{
    char text[TMK_FORECAST_TEXT_BYTES];
    if (area->height > LISTS_LEAST_LINES || f->has_time)
        put_inked_fact(g, area, _("forecast"), tmk_picture_risk(f->risk),
                       tmk_forecast_text(f, false, text));
}

/* ---- lists ---- */

/* Count the lines of a list: title, rows, the line that says how many more there are, and a blank
 * one. */
static unsigned list_lines(const struct tmk_details *d, unsigned list)
{
    return 1 + d->n_rows[list] + (d->n_more[list] > 0) + 1;
}

static void put_list_amounts(struct tmk_grid *g, struct tmk_area line, enum tmk_ink ink,
                             const char *now, const char *peak)
{
    unsigned x = line.x + line.width - AMOUNT_WIDTH - BAR_WIDTH - 1;
    tmk_grid_right(g, x - AMOUNT_WIDTH, line.y, AMOUNT_WIDTH, ink, now);
    tmk_grid_right(g, x, line.y, AMOUNT_WIDTH, ink, peak);
}

static void put_row(struct tmk_grid *g, struct tmk_area line, const struct tmk_details *d,
                    const struct tmk_details_row *row)
{
    char now[TMK_AMOUNT_BYTES], peak[TMK_AMOUNT_BYTES];
    unsigned sizes = 2 * AMOUNT_WIDTH + BAR_WIDTH + 2;
    tmk_grid_put_end(g, line.x, line.y, line.width > sizes ? line.width - sizes : line.width,
                     row->key[0] ? TMK_INK_PLAIN : TMK_INK_DIM, row->key[0] ? row->key : "-");
    if (line.width <= sizes)
        return;
    tmk_size_text(row->now_bytes, now);
    tmk_size_text(row->peak_bytes, peak);
    put_list_amounts(g, line, TMK_INK_PLAIN, now, d->has_peak ? peak : "-");
    tmk_picture_bar(g, line.x + line.width - BAR_WIDTH, line.y, BAR_WIDTH, TMK_INK_GRAPH,
                    row->now_bytes, d->now_bytes);
}

/* Put line `i` of a list. */
static void put_list_line(struct tmk_grid *g, struct tmk_area line, const struct tmk_details *d,
                          unsigned list, unsigned i)
{
    if (i == 0) {
        tmk_grid_fill(g, line.x, line.y, line.width, TMK_INK_HEAD, ' ');
        tmk_grid_put(g, line.x, line.y, line.width, TMK_INK_HEAD, _(titles[list]));
        if (line.width > 2 * AMOUNT_WIDTH + BAR_WIDTH + 2)
            put_list_amounts(g, line, TMK_INK_HEAD, _("NOW"), _("AT PEAK"));
    } else if (i <= d->n_rows[list]) {
        put_row(g, line, d, &d->rows[list][i - 1]);
    } else if (i == d->n_rows[list] + 1 && d->n_more[list] > 0) {
        tmk_grid_putf(g, line.x, line.y, line.width, TMK_INK_DIM, _("and %" PRIu32 " more"),
                      d->n_more[list]);
    }
}

/* Put the lists `from` to `to`, one below the other, from line `skip` on. */
static void put_lists(struct tmk_grid *g, struct tmk_area area, const struct tmk_details *d,
                      unsigned from, unsigned to, unsigned skip)
{
    unsigned n = 0;
    for (unsigned list = from; list < to; list++) {
        for (unsigned i = 0; i < list_lines(d, list); i++, n++) {
            struct tmk_area line = {area.x, area.y + n - skip, area.width, 1};
            if (n >= skip && n - skip < area.height)
                put_list_line(g, line, d, list, i);
        }
    }
}

/* Count the lines of some lists, without the last blank one. */
static unsigned lines_of(const struct tmk_details *d, unsigned from, unsigned to)
{
    unsigned n = 0;
    for (unsigned list = from; list < to; list++)
        n += list_lines(d, list);
    return n - 1;
}

static void put_all_lists(struct tmk_grid *g, struct tmk_area area, const struct tmk_details *d,
                          const struct tmk_choice *v, struct tmk_hits *hits)
{
    /* The first list of each column of lists. */
    static const unsigned first[3][4] = {{0, 3, 3, 3}, {0, 2, 3, 3}, {0, 1, 2, 3}};
    unsigned columns = area.width >= THREE_FROM ? 3 : area.width >= TWO_FROM ? 2 : 1;
    unsigned inner = area.width > 2 ? area.width - 2 : area.width;
    unsigned width = (inner + GAP) / columns - GAP, most = 0;
    for (unsigned i = 0; i < columns; i++) {
        unsigned n = lines_of(d, first[columns - 1][i], first[columns - 1][i + 1]);
        most = n > most ? n : most;
    }
    hits->scroll_most = most > area.height ? most - area.height : 0;
    unsigned skip = v->scroll < hits->scroll_most ? v->scroll : hits->scroll_most;
    for (unsigned i = 0; i < columns; i++) {
        struct tmk_area part = {area.x + 1 + i * (width + GAP), area.y, width, area.height};
        put_lists(g, part, d, first[columns - 1][i], first[columns - 1][i + 1], skip);
    }
}

void tmk_picture_details(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m,
                         const struct tmk_choice *v, struct tmk_hits *hits)
{
    const struct tmk_details *d = m->details;
    char text[64];
    put_process_facts(g, &area, m, v->pid);
    if (!d) {
        snprintf(text, sizeof text, g->ascii ? _("reading... %u %%") : _("reading… %u %%"),
                 m->details_percent);
        put_fact(g, &area, _("trace"), text);
        return;
    }
    if (d->problem.text[0]) {
        put_fact(g, &area, _("trace"), d->problem.text);
        return;
    }
    if (!d->has_memory) {
        put_fact(g, &area, d->card[0] ? _("GPU") : _("trace"),
                 d->card[0] ? d->card : _("nothing has been allocated yet"));
        return;
    }
    put_memory_facts(g, &area, d);
    if (d->card[0])
        put_fact(g, &area, _("GPU"), d->card);
    put_peak_fact(g, &area, d);
    put_steps(g, &area, d);
    put_forecast(g, &area, &d->forecast);
    if (area.height > 1) {
        area.y++;
        area.height--;
    }
    put_all_lists(g, area, d, v, hits);
}

/* ---- help ---- */

void tmk_picture_help(struct tmk_grid *g, struct tmk_area area)
{
    static const char *const notes[] = {
        N_("USED is what the driver counts for a process, on all its devices; HOST its"),
        N_("resident memory. What follows is of watched processes (with a mark), on the"),
        N_("device where they had most. GROWTH: how the memory kept after a step changes."),
        N_("A run's line: sums, and the highest peak, growth and risk of its processes."),
        N_("K, M, G, T are powers of 1024. - is not known."),
    };
    unsigned y = area.y + 1, end = area.y + area.height;
    for (const struct tmk_key_help *h = tmk_key_helps; h->keys && y < end; h++, y++) {
        tmk_grid_put(g, area.x + 2, y, HELP_KEYS_WIDTH, TMK_INK_KEY, h->keys);
        if (area.width > HELP_KEYS_WIDTH + 3)
            tmk_grid_put(g, area.x + 2 + HELP_KEYS_WIDTH, y, area.width - HELP_KEYS_WIDTH - 2,
                         TMK_INK_PLAIN, _(h->text));
    }
    y++;
    for (size_t i = 0; i < TMK_N(notes) && y < end; i++, y++)
        tmk_grid_put(g, area.x + 2, y, area.width - 2, TMK_INK_DIM, _(notes[i]));
}

/* ---- signals ---- */

void tmk_picture_signals(struct tmk_grid *g, struct tmk_area area, const struct tmk_choice *v)
{
    enum { NAME_WIDTH = 9, TEXT_WIDTH = 30 };
    char title[48];
    unsigned n = 0, width = NAME_WIDTH + TEXT_WIDTH + 4;
    while (tmk_signal_names[n].name)
        n++;
    unsigned height = n + 2;
    unsigned x = area.width > width ? area.x + (area.width - width) / 2 : area.x;
    unsigned y = area.height > height ? area.y + (area.height - height) / 2 : area.y;
    unsigned first =
        height > area.height && v->signal + 3 > area.height ? v->signal + 3 - area.height : 0;
    snprintf(title, sizeof title, _(" signal to %" PRIu32), v->wish.pid);
    tmk_grid_fill(g, x, y, width, TMK_INK_TITLE, ' ');
    tmk_grid_put(g, x, y, width, TMK_INK_TITLE, title);
    for (unsigned i = first; i < n && y + 1 + i - first < area.y + area.height; i++) {
        unsigned line = y + 1 + i - first;
        tmk_grid_fill(g, x, line, width, TMK_INK_PLAIN, ' ');
        tmk_grid_put(g, x + 2, line, NAME_WIDTH, TMK_INK_STRONG, tmk_signal_names[i].name);
        tmk_grid_put(g, x + 2 + NAME_WIDTH, line, TEXT_WIDTH, TMK_INK_PLAIN,
                     _(tmk_signal_names[i].text));
        if (i == v->signal)
            tmk_grid_ink(g, x, line, width, TMK_INK_SELECTED);
    }
    if (y + 1 + n - first < area.y + area.height) {
        tmk_grid_fill(g, x, y + 1 + n - first, width, TMK_INK_DIM, ' ');
        tmk_grid_put(g, x + 2, y + 1 + n - first, width - 2, TMK_INK_DIM,
                     _("Enter chooses, Esc goes back"));
    }
}
