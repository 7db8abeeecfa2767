/* SPDX-License-Identifier: MIT */
/* tui/picture.c - see picture.h.
 *
 *     title                          always
 *     devices, a line each           at most half of the height
 *     graphs                         what the processes leave
 *     table of processes             at least three of them, where there are
 *     keys, a question, a message    always
 */
#include "tui/picture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    LEAST_WIDTH = 4,
    CLOCK_WIDTH = 8,
    TABLE_LEAST_ROWS = 3,
    HEADS_FROM_LINES = 12, /* the devices have titles then */
    FIRST_GLYPH = 0x2501,
    HALF_GLYPH = 0x2578,
    REST_GLYPH = 0x2500
};

/* ---- shared ---- */

const char *tmk_short_size(uint64_t bytes, char *buffer)
{
    static const struct {
        char unit;
        unsigned shift;
        int decimals;
    } steps[] = {{'T', 40, 2}, {'G', 30, 2}, {'M', 20, 1}, {'K', 10, 1}};
    if (bytes == TMK_BYTES_UNKNOWN) {
        snprintf(buffer, TMK_SHORT_BYTES, "-");
        return buffer;
    }
    for (size_t i = 0; i < TMK_N(steps); i++) {
        if (bytes >> steps[i].shift == 0)
            continue;
        double value = (double)bytes / (double)((uint64_t)1 << steps[i].shift);
        snprintf(buffer, TMK_SHORT_BYTES, "%.*f%c", steps[i].decimals, value, steps[i].unit);
        return buffer;
    }
    snprintf(buffer, TMK_SHORT_BYTES, "%uB", (unsigned)bytes);
    return buffer;
}

void tmk_picture_bar(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, enum tmk_ink ink,
                     uint64_t part, uint64_t whole)
{
    double share = whole ? (double)part / (double)whole : 0;
    unsigned halves = (unsigned)(share * 2 * width + 0.5);
    halves = halves == 0 && part > 0 ? 1 : halves > 2 * width ? 2 * width : halves;
    tmk_grid_fill(g, x, y, width, TMK_INK_DIM, g->ascii ? '.' : REST_GLYPH);
    tmk_grid_fill(g, x, y, halves / 2, ink, g->ascii ? '#' : FIRST_GLYPH);
    if (halves % 2)
        tmk_grid_fill(g, x + halves / 2, y, 1, ink, g->ascii ? '-' : HALF_GLYPH);
}

enum tmk_ink tmk_picture_level(uint64_t part, uint64_t whole)
{
    double share = whole ? (double)part / (double)whole : 0;
    return share >= 0.95 ? TMK_INK_BAD : share >= 0.8 ? TMK_INK_WARN : TMK_INK_GOOD;
}

/* ---- first and last line ---- */

/* Write "7 processes, 2 watched, driver 580.95.05, CUDA 13.0". */
static void say_facts(const struct tmk_top_model *m, const struct tmk_choice *v, char *buffer,
                      size_t size)
{
    unsigned n_watched = 0, n = 0;
    for (uint64_t i = 0; i < m->n_processes; i++)
        if (tmk_choice_is_shown(v, &m->processes[i])) {
            n++;
            n_watched += m->processes[i].is_watched;
        }
    snprintf(buffer, size, _("%u process%s, %u watched%s%s"), n, n == 1 ? "" : "es", n_watched,
             m->driver[0] ? ", " : "", m->driver);
}

static void draw_title(struct tmk_grid *g, const struct tmk_top_model *m,
                       const struct tmk_choice *v)
{
    char facts[160];
    unsigned end = g->width > CLOCK_WIDTH + 1 ? g->width - CLOCK_WIDTH - 1 : 0;
    say_facts(m, v, facts, sizeof facts);
    tmk_grid_fill(g, 0, 0, g->width, TMK_INK_TITLE, ' ');
    unsigned x = tmk_grid_put(g, 1, 0, g->width - 1, TMK_INK_TITLE, "tidemark top");
    x = tmk_grid_put(g, x + 2, 0, end > x + 3 ? end - x - 3 : 0, TMK_INK_TITLE, m->host);
    x = tmk_grid_put(g, x + 2, 0, end > x + 3 ? end - x - 3 : 0, TMK_INK_TITLE, facts);
    if (end > x)
        tmk_grid_right(g, end, 0, CLOCK_WIDTH, TMK_INK_TITLE,
                       v->is_paused ? _("PAUSED") : m->clock);
}

static const struct {
    enum tmk_shown shown;
    const char *key, *text;
} hints[] = {
    {TMK_SHOWN_LIST, "Enter", N_("details")}, {TMK_SHOWN_LIST, "r", N_("report")},
    {TMK_SHOWN_LIST, "l", N_("leak")},        {TMK_SHOWN_LIST, "k", N_("signal")},
    {TMK_SHOWN_LIST, "/", N_("filter")},      {TMK_SHOWN_LIST, "s", N_("sort")},
    {TMK_SHOWN_LIST, "?", N_("help")},        {TMK_SHOWN_LIST, "q", N_("quit")},
    {TMK_SHOWN_DETAILS, "Esc", N_("back")},   {TMK_SHOWN_DETAILS, N_("up down"), N_("scroll")},
    {TMK_SHOWN_DETAILS, "r", N_("report")},   {TMK_SHOWN_DETAILS, "l", N_("leak")},
    {TMK_SHOWN_DETAILS, "e", N_("explain")},  {TMK_SHOWN_DETAILS, "p", N_("pause")},
    {TMK_SHOWN_DETAILS, "?", N_("help")},     {TMK_SHOWN_HELP, "Esc", N_("back")},
};

static unsigned room_from(const struct tmk_grid *g, unsigned x)
{
    return g->width > x ? g->width - x : 0;
}

static void draw_hints(struct tmk_grid *g, const struct tmk_choice *v)
{
    unsigned x = 1, y = g->height - 1;
    for (size_t i = 0; i < TMK_N(hints); i++) {
        if (hints[i].shown != v->shown)
            continue;
        x = tmk_grid_put(g, x, y, room_from(g, x), TMK_INK_KEY, _(hints[i].key));
        bool is_filter = hints[i].key[0] == '/' && v->filter[0];
        x = tmk_grid_put(g, x + 1, y, room_from(g, x + 1), is_filter ? TMK_INK_WARN : TMK_INK_DIM,
                         is_filter ? v->filter : _(hints[i].text));
        x += 2;
    }
}

/* Ask "send SIGTERM to 1234 (python3 train.py)? y/N". */
static void draw_question(struct tmk_grid *g, const struct tmk_choice *v)
{
    static const char end[] = ")? y/N ";
    unsigned y = g->height - 1, n_end = sizeof end - 1;
    unsigned x =
        tmk_grid_putf(g, 1, y, room_from(g, 1), TMK_INK_WARN, _("send %s to %" PRIu32 " ("),
                      tmk_signal_names[v->signal].name, v->wish.pid);
    unsigned room = room_from(g, x + n_end + 1);
    x = tmk_grid_put(g, x, y, room, TMK_INK_WARN, v->asked_command);
    tmk_grid_put(g, x, y, room_from(g, x), TMK_INK_WARN, end);
}

/* The last line: a question, the filter, what was done last, or the keys. */
static void draw_last_line(struct tmk_grid *g, const struct tmk_choice *v)
{
    unsigned x = 1, y = g->height - 1;
    if (v->asks == TMK_ASKS_YES) {
        draw_question(g, v);
    } else if (v->asks == TMK_ASKS_FILTER) {
        x = tmk_grid_put(g, x, y, room_from(g, x), TMK_INK_KEY, "filter: ");
        x = tmk_grid_put(g, x, y, room_from(g, x), TMK_INK_STRONG, v->filter);
        tmk_grid_fill(g, x, y, 1, TMK_INK_SELECTED, ' ');
    } else if (v->message[0]) {
        tmk_grid_put(g, x, y, room_from(g, x), TMK_INK_WARN, v->message);
    } else {
        draw_hints(g, v);
    }
}

/* ---- areas ---- */

static struct tmk_area take_lines(struct tmk_area *from, unsigned n)
{
    struct tmk_area taken = *from;
    taken.height = n < from->height ? n : from->height;
    from->y += taken.height;
    from->height -= taken.height;
    return taken;
}

/* How many of the lines below the devices graphs get: those that the table leaves; if these are too
 * few, a third, if the rest is enough for the table. */
static unsigned graph_lines(unsigned height, uint32_t n_rows)
{
    unsigned table = 1 + (n_rows < TABLE_LEAST_ROWS ? TABLE_LEAST_ROWS : n_rows);
    unsigned left = height > table + 1 ? height - table - 1 : 0;
    if (left < height / 3)
        left = height / 3;
    bool fits = height >= left + 1 + TABLE_LEAST_ROWS + 1;
    return fits && left >= TMK_GRAPH_LEAST_LINES ? left : 0;
}

/* ---- notes ---- */

/* Notes about things that the figures below do not show, a line each. */
struct notes {
    unsigned n;
    char lines[3][320];
};

/* Note "who uses device 2 and 3 more is not known: ...". If a device cannot be asked for its memory
 * either, its own line says why. */
static void note_unlisted(struct notes *notes, const struct tmk_top_model *m)
{
    const struct tmk_top_device *first = NULL;
    unsigned n = 0;
    char others[48] = "";
    for (unsigned i = 0; i < m->n_devices; i++) {
        const struct tmk_top_device *d = &m->devices[i];
        if (d->users_reason[0] == '\0' || d->reason[0])
            continue;
        first = first ? first : d;
        n++;
    }
    if (!first)
        return;
    if (n > 1)
        snprintf(others, sizeof others, _(" and %u more"), n - 1);
    snprintf(notes->lines[notes->n++], sizeof notes->lines[0],
             _("who uses device %s%s is not known: %s"), first->label, others, first->users_reason);
}

/* Note "1,488 more processes on device 0, 12 on 3: ..." for as many devices as there is room
 * for. */
static void note_left_out(struct notes *notes, const struct tmk_top_model *m)
{
    struct tmk_text text;
    char count[TMK_AMOUNT_BYTES];
    bool is_first = true;
    tmk_text_init(&text, notes->lines[notes->n], sizeof notes->lines[0]);
    for (unsigned i = 0; i < m->n_devices; i++) {
        const struct tmk_top_device *d = &m->devices[i];
        if (d->n_left_out == 0)
            continue;
        tmk_text_add(&text, is_first ? _("%s more processes on device %s") : _(", %s on %s"),
                     tmk_count_text(d->n_left_out, count), d->label);
        is_first = false;
    }
    if (!is_first) {
        tmk_text_add(&text, _(": those that use least are not listed"));
        notes->n++;
    }
}

static struct notes make_notes(const struct tmk_top_model *m)
{
    struct notes notes = {0};
    if (m->problem[0])
        snprintf(notes.lines[notes.n++], sizeof notes.lines[0], "%s", m->problem);
    note_unlisted(&notes, m);
    note_left_out(&notes, m);
    return notes;
}

static void draw_notes(struct tmk_grid *g, struct tmk_area *body, const struct tmk_top_model *m)
{
    struct notes notes = make_notes(m);
    for (unsigned i = 0; i < notes.n; i++) {
        struct tmk_area line = take_lines(body, 1);
        if (line.height > 0)
            tmk_grid_put(g, 1, line.y, g->width - 1, TMK_INK_WARN, notes.lines[i]);
    }
}

/* ---- the list ---- */

static void draw_list(struct tmk_grid *g, struct tmk_area body, const struct tmk_top_model *m,
                      const struct tmk_choice *v, const struct tmk_top_row *rows, uint32_t n,
                      struct tmk_hits *hits)
{
    draw_notes(g, &body, m);
    unsigned most = body.height > 6 ? body.height / 2 : body.height / 3;
    unsigned wanted = m->n_devices + (body.height >= HEADS_FROM_LINES);
    tmk_picture_devices(g, take_lines(&body, wanted < most ? wanted : most), m);
    if (body.height > TABLE_LEAST_ROWS + 2)
        take_lines(&body, 1);
    unsigned n_lines = graph_lines(body.height, n);
    const struct tmk_top_row *selected = n ? &rows[tmk_choice_selected(v, m, rows, n)] : NULL;
    if (n_lines > 0) {
        tmk_picture_graphs(g, take_lines(&body, n_lines), m, v, selected, hits);
        take_lines(&body, 1);
    }
    tmk_picture_table(g, body, m, v, rows, n, hits);
}

int tmk_picture_draw(struct tmk_grid *g, const struct tmk_top_model *m, const struct tmk_choice *v,
                     struct tmk_hits *ret_hits)
{
    struct tmk_top_row *rows = malloc((2 * m->n_processes + 1) * sizeof *rows);
    if (!rows)
        return TMK_ENOMEM;
    uint32_t n = tmk_choice_rows(v, m, rows);
    *ret_hits = (struct tmk_hits){.head_y = UINT32_MAX};
    struct tmk_area body = {0, 1, g->width, g->height > 2 ? g->height - 2 : 0};
    if (g->height == 0 || g->width < LEAST_WIDTH) {
        free(rows);
        return 0;
    }
    draw_title(g, m, v);
    draw_last_line(g, v);
    if (v->shown == TMK_SHOWN_LIST)
        draw_list(g, body, m, v, rows, n, ret_hits);
    else if (v->shown == TMK_SHOWN_DETAILS)
        tmk_picture_details(g, body, m, v, ret_hits);
    else
        tmk_picture_help(g, body);
    if (v->asks == TMK_ASKS_SIGNAL)
        tmk_picture_signals(g, body, v);
    free(rows);
    return 0;
}

int tmk_picture_page(struct tmk_grid *ret_grid, unsigned width, const struct tmk_top_model *m,
                     const struct tmk_choice *v)
{
    struct tmk_top_row *rows = malloc((2 * m->n_processes + 1) * sizeof *rows);
    if (!rows)
        return TMK_ENOMEM;
    uint32_t n = tmk_choice_rows(v, m, rows);
    unsigned height = 1 + make_notes(m).n + m->n_devices + 1 + 1 + 1 + (n ? n : 1);
    struct tmk_hits hits = {0};
    int rc = tmk_grid_init(ret_grid, width, height, v->ascii);
    if (rc == 0) {
        struct tmk_area body = {0, 1, width, height - 1};
        draw_title(ret_grid, m, v);
        draw_notes(ret_grid, &body, m);
        tmk_picture_devices(ret_grid, take_lines(&body, m->n_devices + 1), m);
        take_lines(&body, 1);
        tmk_picture_table(ret_grid, body, m, v, rows, n, &hits);
    }
    free(rows);
    return rc;
}
