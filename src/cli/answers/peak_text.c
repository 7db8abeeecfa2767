/* SPDX-License-Identifier: MIT */
/* cli/answers/peak_text.c - see peak_answer.h. */
#include "cli/answers/peak_answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/moment_answer.h"
#include "cli/front/target.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/reader.h"

enum { SHOWN_FRAMES = 4, N_COLUMNS = 5 };

const char *tmk_unknown_key_text(enum tmk_by by)
{
    if (by == TMK_BY_STEP)
        return N_("before the first");
    return by == TMK_BY_MODULE ? N_("outside any module") : "-";
}

/* ---- the verdict ---- */

static void print_verdict(const struct tmk_peak_answer *a, struct tmk_sheet *sheet)
{
    static const char *const what[] = {[TMK_MOMENT_PEAK] = N_(" at the peak"),
                                       [TMK_MOMENT_TIME] = "",
                                       [TMK_MOMENT_STEP] = N_(" at the step's peak")};
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    char held[TMK_AMOUNT_BYTES], reserved[80] = "";
    uint64_t reserved_bytes;
    if (tmk_moment_answer_reserved(&a->moment, &reserved_bytes))
        snprintf(reserved, sizeof reserved, _(", %s reserved"),
                 tmk_size_text(reserved_bytes, held));
    tmk_sheet_verdict(sheet, TMK_ROLE_PLAIN, "%s allocated%s on %s%s, after %s%s",
                      tmk_size_text(tmk_moment_answer_bytes(&a->moment), size), reserved,
                      tmk_device_name(tmk_moment_answer_device(&a->moment), device),
                      _(what[a->moment.asked.kind]),
                      tmk_time_text(tmk_moment_answer_ns(&a->moment), time),
                      tmk_step_text(a->moment.p, tmk_moment_answer_step(&a->moment), ", ", step));
}

/* ---- rows ---- */

/* The rows that are shown, and the columns. */
struct peak_table {
    const struct tmk_peak_answer *a;
    struct tmk_sheet *sheet;
    struct tmk_table *table;
    bool has_sources; /* the last column has the lines' texts, else bars */
    size_t source_columns;
    char changed[TMK_CHANGED_FILES_BYTES]; /* files whose lines are not shown */
    struct tmk_column columns[N_COLUMNS];
};

/* Returns "file:line function" of frame i, innermost first; the caller's. NULL behind the last. */
static char *frame_text(const struct tmk_peak_answer *a, uint32_t stack, uint32_t i,
                        bool short_file)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    char text[TMK_FRAME_TEXT_BYTES];
    if (!tmk_reader_stack(a->moment.p->reader, stack, &frames) || i >= frames.n_frames)
        return NULL;
    bool known = tmk_process_frame(a->moment.p, frames.frames[i], &f);
    return tmk_xstrdup(tmk_frame_text(known ? &f : NULL, short_file, text));
}

/* Returns the frame to begin a line with: native frames would leave no room for the program's own.
 */
static uint32_t first_shown(const struct tmk_peak_answer *a, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(a->moment.p->reader, stack, &frames))
        return 0;
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (tmk_reader_frame(a->moment.p->reader, frames.frames[i], &f) && !tmk_frame_is_native(&f))
            return i;
    return 0;
}

/* Add a stack in one line: the innermost frame < its caller < ..., as far as there is room. */
static void add_stack_cell(struct tmk_table *t, const struct tmk_peak_answer *a,
                           const struct tmk_peak_row *row)
{
    uint32_t first = first_shown(a, row->stack);
    char *line = frame_text(a, row->stack, first, true);
    for (uint32_t i = 1; line && i < SHOWN_FRAMES; i++) {
        char *caller = frame_text(a, row->stack, first + i, true);
        char *longer = caller ? tmk_xformat("%s < %s", line, caller) : tmk_xstrdup(line);
        free(caller);
        free(line);
        line = longer;
    }
    tmk_table_cell(t, line);
    free(line);
}

static bool site_of(const struct tmk_peak_answer *a, const struct tmk_peak_row *row,
                    struct tmk_frame *ret)
{
    return a->by == TMK_BY_SITE && tmk_stack_site(a->moment.p, row->stack, ret);
}

static void add_key_cell(struct tmk_table *t, const struct tmk_peak_answer *a,
                         const struct tmk_peak_row *row)
{
    struct tmk_frame site;
    char text[TMK_FRAME_TEXT_BYTES];
    if (a->by == TMK_BY_STACK)
        add_stack_cell(t, a, row);
    else if (site_of(a, row, &site))
        tmk_table_cell(t, tmk_frame_text(&site, true, text));
    else
        tmk_table_cell(t, !row->key                  ? _(tmk_unknown_key_text(a->by))
                          : a->by == TMK_BY_CATEGORY ? _(row->key)
                                                     : row->key);
}

/* Returns the text of a row's line; "" where it is not there. */
static const char *source_of(struct peak_table *p, const struct tmk_peak_row *row, char *buffer)
{
    struct tmk_frame site;
    const char *text = site_of(p->a, row, &site)
                           ? tmk_source_cell(p->a->moment.p, &site, buffer, p->changed)
                           : NULL;
    return text ? text : "";
}

static void add_figures(struct peak_table *p, uint64_t bytes, uint64_t n_blocks)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_size(p->table, bytes);
    tmk_table_count(p->table, n_blocks);
    tmk_table_cell(p->table, tmk_percent_text(bytes, tmk_peak_bytes(p->a->moment.peak), text));
}

/* Bars have the colours of the pictures, where the key has one there. */
static void add_bar(struct peak_table *p, const char *key, uint64_t bytes)
{
    char hue[TMK_HUE_BYTES];
    enum tmk_by by = p->a->by;
    bool has_hue = by == TMK_BY_CATEGORY || by == TMK_BY_COMPONENT || by == TMK_BY_STAGE;
    tmk_table_bar(p->table, bytes, tmk_peak_bytes(p->a->moment.peak));
    if (has_hue && p->sheet->colour)
        tmk_table_paint(p->table, tmk_hue_code(true, tmk_palette_of(key), hue));
}

static void add_peak_row(struct peak_table *p, const struct tmk_peak_row *row)
{
    char source[TMK_SOURCE_LINE_BYTES + 4] = "";
    add_key_cell(p->table, p->a, row);
    add_figures(p, row->bytes, row->n_blocks);
    if (p->has_sources) {
        source_of(p, row, source);
        tmk_table_cell(p->table, tmk_source_cut(source, p->source_columns));
        tmk_table_paint(p->table, tmk_sheet_role(p->sheet, TMK_ROLE_DETAIL));
    } else if (p->a->by != TMK_BY_STACK) {
        add_bar(p, row->key, row->bytes);
    }
}

static void add_others(struct peak_table *p, const struct tmk_peak_row *rows, uint64_t n)
{
    uint64_t bytes = 0, n_blocks = 0;
    for (uint64_t i = 0; i < n; i++) {
        bytes += rows[i].bytes;
        n_blocks += rows[i].n_blocks;
    }
    tmk_table_cellf(p->table, _("(%" PRIu64 " others)"), n);
    tmk_table_paint(p->table, tmk_sheet_role(p->sheet, TMK_ROLE_DETAIL));
    add_figures(p, bytes, n_blocks);
    if (p->has_sources)
        tmk_table_cell(p->table, "");
    else if (p->a->by != TMK_BY_STACK)
        tmk_table_bar(p->table, bytes, tmk_peak_bytes(p->a->moment.peak));
}

/* Steps stand in their order: before the first, 0, 1, 2, 10. */
static int compare_steps(const void *va, const void *vb)
{
    const struct tmk_peak_row *a = va, *b = vb;
    if (!a->key || !b->key)
        return (a->key != NULL) - (b->key != NULL);
    long long x = strtoll(a->key, NULL, 10), y = strtoll(b->key, NULL, 10);
    return (x > y) - (x < y);
}

/* Find whether there are lines to show, and the columns that are left for them: the other cells are
 * the indent, the sizes, the blocks, the shares and what is between. */
static void measure_sources(struct peak_table *p, uint64_t n_shown)
{
    enum { OTHER_CELLS = 33 };
    char source[TMK_SOURCE_LINE_BYTES], name[TMK_FRAME_TEXT_BYTES];
    size_t longest = 0;
    for (uint64_t i = 0; i < n_shown; i++) {
        struct tmk_frame site;
        if (source_of(p, &p->a->rows[i], source)[0] == '\0')
            continue;
        p->has_sources = true;
        if (site_of(p->a, &p->a->rows[i], &site)) {
            size_t width = tmk_utf8_width(tmk_frame_text(&site, true, name));
            longest = width > longest ? width : longest;
        }
    }
    p->source_columns = tmk_source_columns(longest + OTHER_CELLS, tmk_sheet_width(p->sheet));
}

/* Stacks need the room of the bars. */
static void open_peak_table(struct peak_table *p, uint64_t n_shown)
{
    const struct tmk_peak_answer *a = p->a;
    measure_sources(p, n_shown);
    const struct tmk_column bars = {"", TMK_LEFT, TMK_BAR};
    const struct tmk_column sources = {"source", TMK_LEFT, TMK_SHRINK};
    const struct tmk_column columns[] = {
        {a->by == TMK_BY_SITE ? "your line" : a->by_name, TMK_LEFT, TMK_SHRINK},
        {"size", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},
        {"share", TMK_RIGHT, TMK_FIXED},
        p->has_sources ? sources : bars,
    };
    memcpy(p->columns, columns, sizeof columns);
    p->table = tmk_table_open(p->columns, N_COLUMNS - (a->by == TMK_BY_STACK));
}

static void print_peak_table(const struct tmk_peak_answer *a, struct tmk_sheet *sheet)
{
    struct peak_table p = {.a = a, .sheet = sheet};
    uint64_t n_shown = a->n_rows > a->top + 1 ? a->top : a->n_rows;
    struct tmk_peak_row *shown = tmk_xcalloc(n_shown + 1, sizeof *shown);
    if (n_shown > 0)
        memcpy(shown, a->rows, n_shown * sizeof *shown);
    if (a->by == TMK_BY_STEP && n_shown > 1)
        qsort(shown, n_shown, sizeof *shown, compare_steps);
    open_peak_table(&p, n_shown);
    for (uint64_t i = 0; i < n_shown; i++)
        add_peak_row(&p, &shown[i]);
    if (n_shown < a->n_rows)
        add_others(&p, a->rows + n_shown, a->n_rows - n_shown);
    tmk_sheet_table(sheet, p.table);
    tmk_source_changed_text(sheet, p.changed);
    free(shown);
}

/* By category says what it is; the next question is which line made it. */
static void print_next(const struct tmk_peak_answer *a, struct tmk_sheet *sheet)
{
    struct tmk_arena words = {0};
    if (a->by == TMK_BY_CATEGORY && a->n_rows > 0) {
        char *command = tmk_xformat("tidemark peak %s --by line", tmk_xshell_word(&words, a->run));
        tmk_sheet_command(sheet, _("next: "), command);
        free(command);
    }
    tmk_arena_fini(&words);
}

void tmk_peak_text(const struct tmk_peak_answer *a)
{
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    print_verdict(a, &sheet);
    if (a->by == TMK_BY_MODULE)
        tmk_peak_tree_text(a, &sheet);
    else
        print_peak_table(a, &sheet);
    print_next(a, &sheet);
}
