/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_text.c - see diff_answer.h: for people. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/diff_answer.h"
#include "cli/answers/moment_answer.h"
#include "cli/front/target.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/table.h"
#include "model/run.h"
#include "passes/diff/diff.h"
#include "passes/diff/diff_steps.h"
#include "passes/diff/gates.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/reader.h"

enum { SHOWN_STEPS = 6, SHOWN_FRAMES = 3 };

/* ---- amounts ---- */

const char *tmk_change_text(int64_t bytes, char *buffer)
{
    char size[TMK_AMOUNT_BYTES];
    uint64_t magnitude = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    snprintf(buffer, TMK_AMOUNT_BYTES, "%s%s",
             bytes < 0   ? "-"
             : bytes > 0 ? "+"
                         : "",
             tmk_size_text(magnitude, size));
    return buffer;
}

const char *tmk_growth_text(uint64_t a, uint64_t b, char *buffer)
{
    double percent = a ? 100.0 * ((double)b - (double)a) / (double)a : 0;
    if (a == b)
        return strcpy(buffer, "=");
    if (a == 0 || b == 0)
        return strcpy(buffer, a == 0 ? _("new") : _("gone"));
    if (fabs(percent) < 0.05)
        return strcpy(buffer, percent < 0 ? "-<0.1 %" : "+<0.1 %");
    if (percent > 999)
        snprintf(buffer, TMK_AMOUNT_BYTES, "x %.0f", (double)b / (double)a);
    else
        snprintf(buffer, TMK_AMOUNT_BYTES, fabs(percent) < 10 ? "%+.1f %%" : "%+.0f %%", percent);
    return buffer;
}

static void add_sizes(struct tmk_table *t, const bool known[2], const uint64_t bytes[2])
{
    char text[TMK_AMOUNT_BYTES];
    bool both = known[0] && known[1];
    for (unsigned side = 0; side < 2; side++)
        tmk_table_size(t, known[side] ? bytes[side] : TMK_BYTES_UNKNOWN);
    tmk_table_cell(t, both ? tmk_change_text(tmk_diff_change(bytes[0], bytes[1]), text) : NULL);
    tmk_table_cell(t, both ? tmk_growth_text(bytes[0], bytes[1], text) : NULL);
}

static const bool both_known[2] = {true, true};

/* ---- totals ---- */

static void add_total(struct tmk_table *t, const char *what, const struct tmk_two *two)
{
    if (!two->known[0] && !two->known[1])
        return;
    tmk_table_cell(t, _(what));
    add_sizes(t, two->known, two->bytes);
}

/* Returns what is reserved but not allocated. */
static struct tmk_two cached_of_side(const struct tmk_two *allocated,
                                     const struct tmk_two *reserved)
{
    struct tmk_two two = *reserved;
    for (unsigned side = 0; side < 2; side++)
        two.bytes[side] = reserved->bytes[side] > allocated->bytes[side]
                              ? reserved->bytes[side] - allocated->bytes[side]
                              : 0;
    return two;
}

static void print_totals(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    static const struct tmk_column columns[] = {
        {"", TMK_LEFT, TMK_SHRINK},       {"A", TMK_RIGHT, TMK_FIXED}, {"B", TMK_RIGHT, TMK_FIXED},
        {"change", TMK_RIGHT, TMK_FIXED}, {"", TMK_RIGHT, TMK_FIXED},
    };
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_two reserved = tmk_diff_answer_reserved(c);
    struct tmk_two allocated = {.known = {true, true}}, settled = {0};
    for (unsigned side = 0; side < 2; side++) {
        allocated.bytes[side] = tmk_moment_answer_bytes(&c->shown->sides[side]);
        settled.known[side] = tmk_diff_steps_settled(c->steps, side, &settled.bytes[side]);
    }
    struct tmk_two cached = cached_of_side(&allocated, &reserved);
    struct tmk_two most = tmk_diff_answer_most_reserved(c);
    add_total(t, "allocated", &allocated);
    add_total(t, "reserved then", &reserved);
    add_total(t, "  cached", &cached);
    if (c->is_peak[0] && c->is_peak[1])
        add_total(t, "reserved at most", &most);
    if (c->is_peak[0] && c->is_peak[1])
        add_total(t, "median step's peak", &settled);
    tmk_sheet_table(sheet, t);
}

static const char *without_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* Returns the name of a run without its folder, unless the folder tells the two apart. */
static const char *name_of_side(const struct tmk_diff_answer *c, unsigned side)
{
    const char *names[2] = {without_folder(c->paths[0]), without_folder(c->paths[1])};
    return strcmp(names[0], names[1]) == 0 ? c->paths[side] : names[side];
}

static void add_side_cells(struct tmk_table *t, const struct tmk_diff_answer *c, unsigned side)
{
    const struct tmk_moment_answer *l = &c->shown->sides[side];
    char time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    tmk_step_text(l->p, tmk_moment_answer_step(l), "", step);
    tmk_table_cell(t, side ? "B" : "A");
    tmk_table_cell(t, name_of_side(c, side));
    if (l->p->rank >= 0)
        tmk_table_cellf(t, _("rank %" PRId64), l->p->rank);
    else
        tmk_table_cell(t, "");
    tmk_table_cell(t, tmk_device_name(tmk_moment_answer_device(l), device));
    tmk_table_cellf(t, _("%s%s%safter %s"), c->is_peak[side] ? _("at the peak, ") : "", step,
                    step[0] ? ", " : "", tmk_time_text(tmk_moment_answer_ns(l), time));
}

static void print_sides(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    static const struct tmk_column columns[] = {{NULL, TMK_LEFT, TMK_FIXED},
                                                {NULL, TMK_LEFT, TMK_SHRINK},
                                                {NULL, TMK_LEFT, TMK_FIXED},
                                                {NULL, TMK_LEFT, TMK_FIXED},
                                                {NULL, TMK_LEFT, TMK_FIXED}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    add_side_cells(t, c, 0);
    add_side_cells(t, c, 1);
    tmk_sheet_table(sheet, t);
    fputc('\n', sheet->out);
    sheet->is_begun = true;
}

static bool are_names_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static char *place_text(const char *stage, const char *module)
{
    return tmk_xformat("%s%s%s", stage ? stage : _("no stage"), module ? _(" of ") : "",
                       module ? module : "");
}

/* Say where each moment lies if that differs: what only one has by then (gradients, say) is no
 * difference of the programs. */
static void print_places(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    const char *stage[2], *module[2];
    if (c->shown->sides[0].detail_lost || c->shown->sides[1].detail_lost)
        return; /* the blocks are of another moment */
    for (unsigned side = 0; side < 2; side++)
        tmk_peak_place(c->shown->sides[side].peak, &stage[side], &module[side]);
    if (are_names_equal(stage[0], stage[1]) && are_names_equal(module[0], module[1]))
        return;
    char *a = place_text(stage[0], module[0]), *b = place_text(stage[1], module[1]);
    fputc('\n', sheet->out);
    tmk_sheet_text(
        sheet,
        "The two are at different places in a step, A in %s, B in %s. What one of them has "
        "not allocated yet, or has freed, is listed as a change too.",
        a, b);
    free(a);
    free(b);
}

/* ---- rows ---- */

static const struct tmk_frame *user_frame(const struct tmk_process *p, const struct tmk_stack *s,
                                          uint32_t *at, bool user_only, struct tmk_frame *ret)
{
    for (; *at < s->n_frames; ++*at)
        if (tmk_process_frame(p, s->frames[*at], ret) && (!user_only || tmk_frame_is_users(ret))) {
            ++*at;
            return ret;
        }
    return NULL;
}

static bool is_moved(const struct tmk_frame *a, const struct tmk_frame *b)
{
    return a->line && b->line && a->line != b->line && a->function && b->function &&
           strcmp(a->function, b->function) == 0;
}

/* Write the user's frames of a stack, innermost first, callers behind '<'. Where the two sides
 * differ in lines, both are written: "train.py:12/14 step". */
static void write_stacks(FILE *out, const struct tmk_diff_answer *c, const uint32_t stack[2])
{
    struct tmk_stack frames[2] = {{0}, {0}};
    struct tmk_frame f[2];
    uint32_t at[2] = {0, 0};
    char text[TMK_FRAME_TEXT_BYTES];
    unsigned first = stack[0] ? 0 : 1, n = 0;
    for (unsigned side = 0; side < 2; side++)
        if (!stack[side] ||
            !tmk_reader_stack(c->shown->sides[side].p->reader, stack[side], &frames[side]))
            frames[side].n_frames = 0;
    bool user_only = user_frame(c->shown->sides[first].p, &frames[first], at, true, f) != NULL;
    at[0] = 0;
    while (n < SHOWN_FRAMES &&
           user_frame(c->shown->sides[first].p, &frames[first], &at[0], user_only, &f[0])) {
        bool has_other =
            first == 0 && user_frame(c->shown->sides[1].p, &frames[1], &at[1], user_only, &f[1]);
        fputs(n++ ? " < " : "", out);
        if (has_other && is_moved(&f[0], &f[1]))
            tmk_print(out, "%s:%u/%u %s", without_folder(f[0].file ? f[0].file : "?"),
                      (unsigned)f[0].line, (unsigned)f[1].line, f[0].function);
        else
            tmk_print(out, "%s", tmk_frame_text(&f[0], true, text));
    }
}

static void add_key(struct tmk_table *t, const struct tmk_diff_answer *c,
                    const struct tmk_diff_row *row)
{
    if (c->by != TMK_BY_STACK || (!row->stack[0] && !row->stack[1])) {
        tmk_table_cell(t, c->by == TMK_BY_CATEGORY ? _(row->key) : row->key);
        return;
    }
    char *text = NULL;
    size_t n = 0;
    FILE *out = tmk_xmemstream(&text, &n);
    write_stacks(out, c, row->stack);
    fclose(out);
    tmk_table_cell(t, n ? text : NULL);
    free(text);
}

static void print_diff_rows(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    const struct tmk_column columns[] = {
        {c->by_name, TMK_LEFT, TMK_SHRINK}, {"A", TMK_RIGHT, TMK_FIXED},
        {"B", TMK_RIGHT, TMK_FIXED},        {"change", TMK_RIGHT, TMK_FIXED},
        {"", TMK_RIGHT, TMK_FIXED},
    };
    char *heading = tmk_xformat(_("By %s"), _(c->by_name));
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint64_t n_same = 0, same[2] = {0, 0};
    for (uint64_t i = 0; i < tmk_diff_n_rows(c->diff); i++) {
        const struct tmk_diff_row *row = tmk_diff_row(c->diff, i);
        if (row->bytes[0] == row->bytes[1] && c->by != TMK_BY_CATEGORY) {
            n_same++;
            same[0] = same[1] += row->bytes[1];
            continue;
        }
        add_key(t, c, row);
        add_sizes(t, both_known, row->bytes);
    }
    if (n_same) {
        tmk_table_cellf(t, _("(%" PRIu64 " unchanged)"), n_same);
        add_sizes(t, both_known, same);
    }
    if (tmk_table_n_rows(t) > 0)
        tmk_sheet_heading(sheet, heading);
    tmk_sheet_table(sheet, t);
    free(heading);
}

/* ---- steps, ranks, gates ---- */

static void print_steps(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    static const struct tmk_column columns[] = {
        {"step", TMK_RIGHT, TMK_FIXED},   {"A", TMK_RIGHT, TMK_FIXED}, {"B", TMK_RIGHT, TMK_FIXED},
        {"change", TMK_RIGHT, TMK_FIXED}, {"", TMK_RIGHT, TMK_FIXED},
    };
    uint64_t picked[SHOWN_STEPS];
    int64_t apart;
    bool has_apart = tmk_diff_steps_apart(c->steps, &apart);
    if (c->shown->sides[0].p == c->shown->sides[1].p || tmk_diff_steps_n(c->steps) == 0)
        return; /* one run, or no steps */
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    uint64_t n = has_apart ? tmk_diff_steps_pick(c->steps, SHOWN_STEPS, picked) : 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_diff_step *row = tmk_diff_steps_get(c->steps, picked[i]);
        tmk_table_cellf(t, "%" PRId64, row->step);
        add_sizes(t, row->has, row->peak_bytes);
    }
    tmk_sheet_heading(sheet, "Peaks of steps");
    if (has_apart)
        tmk_sheet_text(sheet, "They differ by over 1 %% from step %" PRId64 " on.", apart);
    else
        tmk_sheet_text(sheet, "No step that both have differs by over 1 %%.");
    tmk_sheet_table(sheet, t);
}

static void print_ranks(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    static const struct tmk_column columns[] = {
        {"rank", TMK_RIGHT, TMK_FIXED},   {"A", TMK_RIGHT, TMK_FIXED}, {"B", TMK_RIGHT, TMK_FIXED},
        {"change", TMK_RIGHT, TMK_FIXED}, {"", TMK_RIGHT, TMK_FIXED},
    };
    if (c->n_pairs < 2)
        return;
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    struct tmk_two total = {.known = {true, true}};
    for (uint32_t i = 0; i < c->n_pairs; i++) {
        const struct tmk_diff_pair *pair = &c->pairs[i];
        tmk_table_cellf(t, "%" PRId64, pair->sides[1].p->rank);
        add_sizes(t, pair->known, pair->bytes);
        for (unsigned side = 0; side < 2; side++) {
            total.known[side] &= pair->known[side];
            total.bytes[side] += pair->bytes[side];
        }
    }
    add_total(t, "all", &total);
    tmk_sheet_heading(sheet, "Ranks");
    tmk_sheet_table(sheet, t);
}

char *tmk_verdict_text(const struct tmk_gate_verdict *v)
{
    char a[TMK_AMOUNT_BYTES], b[TMK_AMOUNT_BYTES], change[TMK_AMOUNT_BYTES];
    char growth[TMK_AMOUNT_BYTES];
    const struct tmk_gate_measure *m = &v->measure;
    const char *comma = v->note ? ", " : "", *note = v->note ? v->note : "";
    bool is_leak = v->gate.kind == TMK_GATE_LEAK;
    tmk_size_text(m->bytes[1], b);
    if (!m->known[1] || (!is_leak && !m->known[0]))
        return tmk_xformat(_("not known%s%s"), v->note ? ": " : "", note);
    if (is_leak)
        return tmk_xformat(_("%s a step%s%s"), b, comma, note);
    return tmk_xformat("%s -> %s, %s, %s%s%s", tmk_size_text(m->bytes[0], a), b,
                       tmk_change_text(tmk_diff_change(m->bytes[0], m->bytes[1]), change),
                       tmk_growth_text(m->bytes[0], m->bytes[1], growth), comma, note);
}

static void print_gates(struct tmk_sheet *sheet, const struct tmk_diff_answer *c)
{
    static const struct tmk_column columns[] = {
        {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_FIXED}, {NULL, TMK_LEFT, TMK_SHRINK}};
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns));
    char label[40];
    if (c->n_verdicts)
        tmk_sheet_heading(sheet, "Gates");
    for (unsigned i = 0; i < c->n_verdicts; i++) {
        const struct tmk_gate_verdict *v = &c->verdicts[i];
        char *text = tmk_verdict_text(v);
        tmk_table_cell(t, v->passed ? _("passed") : _("FAILED"));
        tmk_table_cell(t, v->gate.text);
        tmk_table_cellf(t, "%s%s%s", text, c->n_pairs > 1 ? ", " : "",
                        c->n_pairs > 1 ? tmk_process_label(v->of, label) : "");
        free(text);
    }
    tmk_sheet_table(sheet, t);
}

void tmk_diff_text(const struct tmk_diff_answer *c)
{
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    print_sides(&sheet, c);
    print_totals(&sheet, c);
    print_places(&sheet, c);
    tmk_diff_causes_text(c, &sheet);
    print_diff_rows(&sheet, c);
    print_steps(&sheet, c);
    print_ranks(&sheet, c);
    print_gates(&sheet, c);
}
