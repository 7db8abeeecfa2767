/* SPDX-License-Identifier: MIT */
/* tui/picture.c - see picture.h.
 *
 *     title                          always
 *     devices, a line each           at most half of the height
 *     graphs                         what the processes leave
 *     table of processes             at least three of them, where there are
 *     keys                           always
 */
#include "tui/picture.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "kit/amount.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    LEAST_WIDTH = 4,
    CLOCK_WIDTH = 8,
    TABLE_LEAST_ROWS = 3,
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
static void say_facts(const struct tmk_top_model *m, const uint32_t *order, uint32_t n,
                      char *buffer, size_t size)
{
    unsigned n_watched = 0;
    for (uint32_t i = 0; i < n; i++)
        n_watched += m->processes[order[i]].is_watched;
    snprintf(buffer, size, "%u process%s, %u watched%s%s", n, n == 1 ? "" : "es", n_watched,
             m->driver[0] ? ", " : "", m->driver);
}

static void draw_title(struct tmk_grid *g, const struct tmk_top_model *m,
                       const struct tmk_choice *v, const uint32_t *order, uint32_t n)
{
    char facts[160];
    unsigned end = g->width > CLOCK_WIDTH + 1 ? g->width - CLOCK_WIDTH - 1 : 0;
    say_facts(m, order, n, facts, sizeof facts);
    tmk_grid_fill(g, 0, 0, g->width, TMK_INK_TITLE, ' ');
    unsigned x = tmk_grid_put(g, 1, 0, g->width - 1, TMK_INK_TITLE, "tidemark top");
    x = tmk_grid_put(g, x + 2, 0, end > x + 3 ? end - x - 3 : 0, TMK_INK_TITLE, m->host);
    x = tmk_grid_put(g, x + 2, 0, end > x + 3 ? end - x - 3 : 0, TMK_INK_TITLE, facts);
    if (end > x)
        tmk_grid_right(g, end, 0, CLOCK_WIDTH, TMK_INK_TITLE, v->is_paused ? "PAUSED" : m->clock);
}

static const struct {
    enum tmk_shown shown;
    const char *key, *text;
} hints[] = {
    {TMK_SHOWN_LIST, "Enter", "details"},
    {TMK_SHOWN_LIST, "/", "filter"},
    {TMK_SHOWN_LIST, "s", "sort"},
    {TMK_SHOWN_LIST, "r", "reverse"},
    {TMK_SHOWN_LIST, "space", "pause"},
    {TMK_SHOWN_LIST, "?", "help"},
    {TMK_SHOWN_LIST, "q", "quit"},
    {TMK_SHOWN_DETAILS, "Esc", "back"},
    {TMK_SHOWN_DETAILS, "up down", "scroll"},
    {TMK_SHOWN_DETAILS, "space", "pause"},
    {TMK_SHOWN_DETAILS, "?", "help"},
    {TMK_SHOWN_HELP, "Esc", "back"},
};

static void draw_keys(struct tmk_grid *g, const struct tmk_choice *v)
{
    unsigned x = 1, y = g->height - 1;
    if (v->is_typing) {
        x = tmk_grid_put(g, x, y, g->width - x, TMK_INK_KEY, "filter: ");
        x = tmk_grid_put(g, x, y, g->width > x ? g->width - x : 0, TMK_INK_STRONG, v->filter);
        tmk_grid_fill(g, x, y, 1, TMK_INK_SELECTED, ' ');
        return;
    }
    for (size_t i = 0; i < TMK_N(hints); i++) {
        if (hints[i].shown != v->shown)
            continue;
        x = tmk_grid_put(g, x, y, g->width > x ? g->width - x : 0, TMK_INK_KEY, hints[i].key);
        bool is_filter = hints[i].key[0] == '/' && v->filter[0];
        x = tmk_grid_put(g, x + 1, y, g->width > x + 1 ? g->width - x - 1 : 0,
                         is_filter ? TMK_INK_WARN : TMK_INK_DIM,
                         is_filter ? v->filter : hints[i].text);
        x += 2;
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
        snprintf(others, sizeof others, " and %u more", n - 1);
    snprintf(notes->lines[notes->n++], sizeof notes->lines[0],
             "who uses device %s%s is not known: %s", first->label, others, first->users_reason);
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
        tmk_text_add(&text, is_first ? "%s more processes on device %s" : ", %s on %s",
                     tmk_count_text(d->n_left_out, count), d->label);
        is_first = false;
    }
    if (!is_first) {
        tmk_text_add(&text, ": those that use least are not listed");
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
                      const struct tmk_choice *v, const uint32_t *order, uint32_t n,
                      struct tmk_hits *hits)
{
    draw_notes(g, &body, m);
    unsigned most = body.height > 6 ? body.height / 2 : body.height / 3;
    tmk_picture_devices(g, take_lines(&body, m->n_devices < most ? m->n_devices : most), m);
    if (body.height > TABLE_LEAST_ROWS + 2)
        take_lines(&body, 1);
    unsigned n_lines = graph_lines(body.height, n);
    if (n_lines > 0) {
        tmk_picture_graphs(g, take_lines(&body, n_lines), m, v, hits);
        take_lines(&body, 1);
    }
    tmk_picture_table(g, body, m, v, order, n, hits);
}

int tmk_picture_draw(struct tmk_grid *g, const struct tmk_top_model *m, const struct tmk_choice *v,
                     struct tmk_hits *ret_hits)
{
    uint32_t *order = malloc((m->n_processes + 1) * sizeof *order);
    if (!order)
        return TMK_ENOMEM;
    uint32_t n = tmk_choice_order(v, m, order);
    *ret_hits = (struct tmk_hits){.head_y = UINT32_MAX};
    struct tmk_area body = {0, 1, g->width, g->height > 2 ? g->height - 2 : 0};
    if (g->height == 0 || g->width < LEAST_WIDTH) {
        free(order);
        return 0;
    }
    draw_title(g, m, v, order, n);
    draw_keys(g, v);
    if (v->shown == TMK_SHOWN_LIST)
        draw_list(g, body, m, v, order, n, ret_hits);
    else if (v->shown == TMK_SHOWN_DETAILS)
        tmk_picture_details(g, body, m, v, ret_hits);
    else
        tmk_picture_help(g, body);
    free(order);
    return 0;
}

int tmk_picture_page(struct tmk_grid *ret_grid, unsigned width, const struct tmk_top_model *m,
                     const struct tmk_choice *v)
{
    uint32_t *order = malloc((m->n_processes + 1) * sizeof *order);
    if (!order)
        return TMK_ENOMEM;
    uint32_t n = tmk_choice_order(v, m, order);
    unsigned height = 1 + make_notes(m).n + m->n_devices + 1 + 1 + (n ? n : 1);
    struct tmk_hits hits = {0};
    int rc = tmk_grid_init(ret_grid, width, height, v->ascii);
    if (rc == 0) {
        struct tmk_area body = {0, 1, width, height - 1};
        draw_title(ret_grid, m, v, order, n);
        draw_notes(ret_grid, &body, m);
        tmk_picture_devices(ret_grid, take_lines(&body, m->n_devices), m);
        take_lines(&body, 1);
        tmk_picture_table(ret_grid, body, m, v, order, n, &hits);
    }
    free(order);
    return rc;
}
