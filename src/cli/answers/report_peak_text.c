/* SPDX-License-Identifier: MIT */
/* cli/answers/report_peak_text.c - the report's tables of what fills the memory: by category, by
 * the user's line with its text, by module. --full adds the other groupings. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/peak_answer.h"
#include "cli/answers/process_answer.h"
#include "cli/answers/report_answer.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/source_line.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"

enum { FEW_ROWS = 5, MAX_ROWS = 8 };

/* Padded, so that the tables of a page line up. */
static const char *const share_titles[] = {
    [TMK_BY_CATEGORY] = N_("category                    "),
    [TMK_BY_MODULE] = N_("module                      "),
    [TMK_BY_COMPONENT] = N_("component                   "),
    [TMK_BY_STAGE] = N_("stage                       "),
    [TMK_BY_STEP] = N_("allocated in step           "),
    [TMK_BY_STACK] = N_("stack                       "),
    [TMK_BY_TENSOR] = N_("name                        "),
    [TMK_BY_SITE] = N_("your line                   "),
};

/* The blocks of a moment in groups. */
struct shares {
    const struct tmk_sheet *sheet;
    const struct tmk_process_answer *f;
    enum tmk_by by;
    const struct tmk_peak_row *rows;
    uint64_t n, whole;
    bool has_sources;                      /* the last column has the lines' texts, else bars */
    char changed[TMK_CHANGED_FILES_BYTES]; /* files whose lines are not shown */
    struct tmk_column columns[5];
};

/* `raw_key` is the key without translation; NULL: it is of several rows. */
static void add_share_row(struct tmk_table *t, const struct shares *s, const char *key,
                          const char *raw_key, uint64_t bytes, uint64_t n_blocks,
                          const char *source)
{
    char percent[TMK_AMOUNT_BYTES], hue[TMK_HUE_BYTES];
    bool has_hue = s->by == TMK_BY_CATEGORY || s->by == TMK_BY_COMPONENT || s->by == TMK_BY_STAGE;
    tmk_table_cell(t, key);
    tmk_table_size(t, bytes);
    if (!s->has_sources)
        tmk_table_count(t, n_blocks);
    tmk_table_cell(t, tmk_percent_text(bytes, s->whole, percent));
    if (s->has_sources) {
        tmk_table_cell(t, source);
        tmk_table_paint(t, tmk_sheet_role(s->sheet, TMK_ROLE_DETAIL));
        return;
    }
    tmk_table_bar(t, bytes, s->whole);
    if (has_hue && raw_key && s->sheet->colour) /* the colours of the pictures and of `peak` */
        tmk_table_paint(t, tmk_hue_code(true, tmk_palette_of(raw_key), hue));
}

/* Returns what a row is called. A line of code is called by its file without the folders, which are
 * long. */
static char *row_name(const struct shares *s, const struct tmk_peak_row *row)
{
    struct tmk_frame site;
    char text[TMK_FRAME_TEXT_BYTES];
    if (s->by == TMK_BY_SITE && tmk_stack_site(s->f->p, row->stack, &site))
        return tmk_xstrdup(tmk_frame_text(&site, true, text));
    return tmk_xstrdup(!row->key                  ? _(tmk_unknown_key_text(s->by))
                       : s->by == TMK_BY_CATEGORY ? _(row->key)
                                                  : row->key);
}

/* Returns the text of a row's line; "" where it is not there. */
static const char *row_source(struct shares *s, const struct tmk_peak_row *row, char *buffer)
{
    struct tmk_frame site;
    const char *found = s->by == TMK_BY_SITE && tmk_stack_site(s->f->p, row->stack, &site)
                            ? tmk_source_cell(s->f->p, &site, buffer, s->changed)
                            : NULL;
    return found ? found : "";
}

/* The columns that are left for the lines' texts beside the names, sizes and shares. */
static size_t source_columns(const struct shares *s, uint64_t n_shown,
                             const struct tmk_sheet *sheet)
{
    enum { OTHER_CELLS = 23 };
    size_t longest = 0, width = tmk_sheet_width(sheet);
    if (sheet->markdown)
        return SIZE_MAX;
    for (uint64_t i = 0; i < n_shown; i++) {
        char *name = row_name(s, &s->rows[i]);
        longest = tmk_utf8_width(name) > longest ? tmk_utf8_width(name) : longest;
        free(name);
    }
    return tmk_source_columns(longest + OTHER_CELLS, width);
}

/* The table borrows its columns. */
static struct tmk_table *open_shares(struct shares *s, uint64_t n_shown)
{
    const struct tmk_column bars[] = {{share_titles[s->by], TMK_LEFT, TMK_SHRINK},
                                      {"size", TMK_RIGHT, TMK_FIXED},
                                      {"blocks", TMK_RIGHT, TMK_FIXED},
                                      {"share", TMK_RIGHT, TMK_FIXED},
                                      {"", TMK_LEFT, TMK_BAR}};
    const struct tmk_column sources[] = {{"your line", TMK_LEFT, TMK_SHRINK},
                                         {"size", TMK_RIGHT, TMK_FIXED},
                                         {"share", TMK_RIGHT, TMK_FIXED},
                                         {"source", TMK_LEFT, TMK_SHRINK}};
    char source[TMK_SOURCE_LINE_BYTES];
    for (uint64_t i = 0; i < n_shown && !s->has_sources; i++)
        s->has_sources = row_source(s, &s->rows[i], source)[0] != '\0';
    memcpy(s->columns, s->has_sources ? sources : bars,
           s->has_sources ? sizeof sources : sizeof bars);
    return tmk_table_open(s->columns, s->has_sources ? TMK_N(sources) : TMK_N(bars));
}

/* Write the largest rows, and the others as one. */
static void write_shares(struct tmk_sheet *sheet, struct shares *s, uint64_t max_rows)
{
    uint64_t shown = s->n > max_rows ? max_rows - 1 : s->n, bytes = 0, n_blocks = 0;
    struct tmk_table *t = open_shares(s, shown);
    size_t columns = source_columns(s, shown, sheet);
    for (uint64_t i = 0; i < shown; i++) {
        char *name = row_name(s, &s->rows[i]), source[TMK_SOURCE_LINE_BYTES + 4] = "";
        row_source(s, &s->rows[i], source);
        add_share_row(t, s, name, s->rows[i].key, s->rows[i].bytes, s->rows[i].n_blocks,
                      tmk_source_cut(source, columns));
        free(name);
    }
    for (uint64_t i = shown; i < s->n; i++) {
        bytes += s->rows[i].bytes;
        n_blocks += s->rows[i].n_blocks;
    }
    if (s->n > shown) {
        char *others = tmk_xformat(_("%" PRIu64 " others"), s->n - shown);
        add_share_row(t, s, others, NULL, bytes, n_blocks, "");
        free(others);
    }
    if (!sheet->markdown)
        fputc('\n', sheet->out);
    tmk_sheet_table(sheet, t);
    tmk_source_changed_text(sheet, s->changed);
}

void tmk_report_shares_text(const struct tmk_process_answer *f, enum tmk_by by,
                            const struct tmk_peak_row *rows, uint64_t n, uint64_t whole,
                            bool is_full, struct tmk_sheet *sheet)
{
    struct shares s = {.sheet = sheet, .f = f, .by = by, .rows = rows, .n = n, .whole = whole};
    if (n > 1 || (n == 1 && rows[0].key))
        write_shares(sheet, &s, is_full ? MAX_ROWS : FEW_ROWS);
}

/* Whether a grouping says something: most of the bytes have a key, and not the key "other". */
static bool says_something(const struct tmk_peak_row *rows, uint64_t n, uint64_t whole)
{
    uint64_t nameless = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!rows[i].key || strcmp(rows[i].key, "unknown") == 0 ||
            strcmp(rows[i].key, "other") == 0)
            nameless += rows[i].bytes;
    return n > 0 && nameless <= whole / 2;
}

static void write_peak_by(const struct tmk_process_answer *f, struct tmk_sheet *sheet,
                          enum tmk_by by, bool is_full)
{
    const struct tmk_peak_row *rows;
    uint64_t n, whole = tmk_peak_bytes(f->peak);
    if (tmk_peak_group(f->peak, by, &rows, &n, NULL) < 0)
        tmk_die("out of memory");
    bool is_known = n > 1 || (n == 1 && rows[0].key && strcmp(rows[0].key, "other") != 0);
    if (is_known && (is_full || says_something(rows, n, whole)))
        tmk_report_shares_text(f, by, rows, n, whole, is_full, sheet);
}

/* Write the parameters as the model counts them: blocks may be larger than the tensors in them. */
static void write_parameters(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char size[TMK_AMOUNT_BYTES], trained[TMK_AMOUNT_BYTES], count[TMK_AMOUNT_BYTES];
    struct tmk_parameters_sum sum = tmk_process_answer_parameters(f);
    if (sum.n > 0)
        tmk_sheet_text(
            sheet, "The model has %s parameter%s on it: tensors of %s, %s of it trained.",
            tmk_count_text(sum.n, count), sum.n == 1 ? "" : "s",
            tmk_size_text(sum.size_bytes, size), tmk_size_text(sum.trained_bytes, trained));
}

/* "7.0 MiB allocated and 8.0 MiB reserved on cuda:0 after 61.8 ms, in step 1." */
static void write_peak_moment(const struct tmk_process_answer *f, struct tmk_sheet *sheet)
{
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    char amount[TMK_AMOUNT_BYTES], reserved[2 * TMK_AMOUNT_BYTES] = "";
    if (f->has_reserved)
        snprintf(reserved, sizeof reserved, _(" and %s reserved"),
                 tmk_size_text(f->reserved_bytes, amount));
    tmk_sheet_text(sheet, "%s allocated%s on %s after %s%s.", tmk_size_text(f->peak_bytes, size),
                   reserved, tmk_device_name(f->device, device),
                   tmk_time_text(tmk_process_answer_run_ns(f, f->peak_ns), time),
                   tmk_step_text(f->p, f->peak_step, ", ", step));
    if (f->detail_lost)
        tmk_sheet_text(
            sheet,
            "The trace no longer has the blocks of that moment. The largest moment that it has is "
            "%s after %s%s:",
            tmk_size_text(tmk_peak_bytes(f->peak), size),
            tmk_time_text(tmk_process_answer_run_ns(f, tmk_peak_time_ns(f->peak)), time),
            tmk_step_text(f->p, tmk_peak_step(f->peak), ", ", step));
}

void tmk_report_peak_text(const struct tmk_process_answer *f, bool is_full, struct tmk_sheet *sheet)
{
    static const enum tmk_by more[] = {TMK_BY_COMPONENT, TMK_BY_STAGE, TMK_BY_STEP, TMK_BY_TENSOR};
    tmk_sheet_heading(sheet, "PEAK");
    if (!f->has_peak) {
        tmk_sheet_text(sheet, "No block was ever allocated.");
        return;
    }
    write_peak_moment(f, sheet);
    write_peak_by(f, sheet, TMK_BY_CATEGORY, is_full);
    if (is_full)
        write_parameters(f, sheet);
    write_peak_by(f, sheet, TMK_BY_SITE, is_full);
    write_peak_by(f, sheet, TMK_BY_MODULE, is_full);
    for (size_t i = 0; is_full && i < TMK_N(more); i++)
        write_peak_by(f, sheet, more[i], is_full);
}
