/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_heatmap.c - memory by module over time: a row for each module, time from left to
 * right.
 *
 * By default it shows the step with the peak: there one sees which layers keep the memory that
 * forward allocates, and when backward frees it. Modules are cut at the depth that gives as many
 * rows as can be read, so a deep model shows its layers and a small one every module. Rows are in
 * the order of the model's parameters, which is the model's order. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_axis.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_layers.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/oom/ooms.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/state.h"

enum {
    COLUMNS = 400,
    COLOURS = 150,
    MOST_ROWS = 48,
    DEEPEST = 16, /* dots in a module's name */
    LABEL = 280,  /* points of a row's name, and so are the next ones */
    ROW_HEIGHT = 19,
    LEAST_HEIGHT = 160, /* of all rows */
    ABOVE = 26,
    BOTTOM = 52,
    SIZES = 90, /* for the maximum of each row */
    SCALE = 14,
    SCALE_SIZES = 46,
};

#define SMALL 0.005 /* share of the largest row */

struct heatmap_row {
    char *name;
    uint64_t *bytes; /* by column */
    uint64_t most;
    uint64_t order; /* number of its first parameter; UINT64_MAX: none */
};

struct heatmap_drawing {
    const struct tmk_plot *plot;
    struct tmk_plot_layers layers;
    struct heatmap_row *rows;
    uint32_t n_rows;
    const char *by;
    struct tmk_picture picture;
    struct tmk_plot_frame frame;
    double row_height;
    uint64_t most; /* of a row */
};

/* ---- rows ---- */

/* The length of `name` up to its `depth`-th dot; 0 if it is no module. */
static size_t prefix_bytes(const char *name, unsigned depth)
{
    size_t n = 0;
    if (name[0] == '(')
        return strlen(name);
    for (; name[n]; n++)
        if (name[n] == '.' && --depth == 0)
            break;
    return n;
}

/* Count the rows at a depth. The map borrows the names, so all of them stay until the end. */
static uint32_t count_rows(const struct tmk_plot_layers *l, unsigned depth)
{
    struct tmk_textmap names = {0};
    char **prefixes = tmk_xcalloc((size_t)l->n_layers + 1, sizeof *prefixes);
    uint32_t row, n = 0;
    for (uint32_t k = 0; k < l->n_layers; k++) {
        prefixes[k] = tmk_xstrdup(l->layers[k].key);
        prefixes[k][prefix_bytes(prefixes[k], depth)] = '\0';
        if (tmk_textmap_put(&names, prefixes[k], &row) >= 0 && row >= n)
            n = row + 1;
    }
    tmk_textmap_fini(&names);
    for (uint32_t k = 0; k < l->n_layers; k++)
        free(prefixes[k]);
    free(prefixes);
    return n;
}

static unsigned choose_depth(const struct heatmap_drawing *d)
{
    unsigned depth = 1;
    while (depth < DEEPEST && count_rows(&d->layers, depth + 1) <= MOST_ROWS)
        depth++;
    return depth;
}

static struct heatmap_row *row_named(struct heatmap_drawing *d, const char *name, size_t n)
{
    for (uint32_t i = 0; i < d->n_rows; i++)
        if (strncmp(d->rows[i].name, name, n) == 0 && d->rows[i].name[n] == '\0')
            return &d->rows[i];
    struct heatmap_row *row = &d->rows[d->n_rows++];
    row->name = tmk_xformat("%.*s", (int)n, name);
    row->bytes = tmk_xcalloc(d->layers.n_parts, sizeof *row->bytes);
    row->order = UINT64_MAX;
    return row;
}

/* The number of the module's first parameter. */
static uint64_t order_of(const struct tmk_process *p, const char *name)
{
    size_t n = strlen(name);
    for (uint32_t i = 0; i < tmk_parameters_n(p); i++) {
        const char *module = tmk_parameter_module(p, i);
        if (module && strncmp(module, name, n) == 0 && (module[n] == '\0' || module[n] == '.'))
            return i;
    }
    return UINT64_MAX;
}

/* The rank of a row: rows outside the model come last. */
static int row_rank(const struct heatmap_row *row)
{
    return strcmp(row->name, "unknown") == 0 ? 2 : row->name[0] == '(';
}

static int by_order(const void *va, const void *vb)
{
    const struct heatmap_row *a = va, *b = vb;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    int x = row_rank(a), y = row_rank(b);
    return x != y ? x - y : strverscmp(a->name, b->name);
}

static int by_row_most(const void *va, const void *vb)
{
    const struct heatmap_row *a = va, *b = vb;
    return a->most != b->most ? (a->most > b->most ? -1 : 1) : strverscmp(a->name, b->name);
}

static void add_to(struct heatmap_row *to, const struct heatmap_row *row, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        to->bytes[i] += row->bytes[i];
        to->most = to->bytes[i] > to->most ? to->bytes[i] : to->most;
    }
}

/* Merge rows that have almost nothing, or are too many. */
static void join_small(struct heatmap_drawing *d)
{
    qsort(d->rows, d->n_rows, sizeof *d->rows, by_row_most);
    uint32_t kept = d->n_rows > MOST_ROWS ? MOST_ROWS : d->n_rows;
    while (kept > 1 && (double)d->rows[kept - 1].most < SMALL * (double)d->rows[0].most)
        kept--;
    if (kept + 1 >= d->n_rows)
        return;
    struct heatmap_row *rest = &d->rows[kept];
    free(rest->name);
    rest->name = tmk_xformat("(%u small ones)", d->n_rows - kept);
    for (uint32_t r = kept + 1; r < d->n_rows; r++) {
        add_to(rest, &d->rows[r], d->layers.n_parts);
        free(d->rows[r].name);
        free(d->rows[r].bytes);
    }
    d->n_rows = kept + 1;
}

static void make_heatmap_rows(struct heatmap_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    unsigned depth = strcmp(d->by, "module") == 0 ? choose_depth(d) : DEEPEST;
    d->rows = tmk_xcalloc((size_t)l->n_layers + 1, sizeof *d->rows);
    for (uint32_t k = 0; k < l->n_layers; k++) {
        const char *key = l->layers[k].key;
        struct heatmap_row *row = row_named(d, key, prefix_bytes(key, depth));
        add_to(row, &(struct heatmap_row){.bytes = l->layers[k].bytes}, l->n_parts);
    }
    join_small(d);
    for (uint32_t i = 0; i < d->n_rows; i++)
        d->rows[i].order = order_of(d->plot->p, d->rows[i].name);
    qsort(d->rows, d->n_rows, sizeof *d->rows, by_order);
}

/* ---- drawing ---- */

/* Whether two sizes have the same colour. */
static bool are_sizes_alike(uint64_t a, uint64_t b, uint64_t most)
{
    return (double)(a > b ? a - b : b - a) < (double)most / COLOURS;
}

static double row_top(const struct heatmap_drawing *d, uint32_t r)
{
    return d->frame.top + r * d->row_height;
}

/* Draw a rectangle for each stretch of a row with one colour. */
static void draw_row(const struct heatmap_drawing *d, const struct heatmap_row *row, uint32_t r)
{
    char size[TMK_AMOUNT_BYTES];
    struct tmk_canvas *c = d->picture.canvas;
    uint32_t n = d->layers.n_parts;
    char *title = tmk_xformat("%s: at most %s", row->name, tmk_size_text(row->most, size));
    tmk_canvas_group(c, title);
    for (uint32_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && are_sizes_alike(row->bytes[i], row->bytes[next], d->most);)
            next++;
        double left = d->frame.left + d->frame.width * i / n;
        double right = d->frame.left + d->frame.width * next / n;
        uint32_t colour =
            tmk_palette_ramp(d->picture.theme, (double)row->bytes[i] / (double)d->most);
        tmk_canvas_rect(c, left, row_top(d, r), right - left, d->row_height - 1,
                        &(struct tmk_paint){.fill = colour});
    }
    tmk_canvas_ungroup(c);
    free(title);
}

/* Draw names at the left, each row's maximum at the right. */
static void draw_row_texts(const struct heatmap_drawing *d, uint32_t r)
{
    char size[TMK_AMOUNT_BYTES];
    const char *name = d->rows[r].name;
    bool is_none = strcmp(d->by, "module") == 0 && strcmp(name, "unknown") == 0;
    double y = row_top(d, r) + d->row_height / 2 + 4;
    tmk_canvas_text(d->picture.canvas, d->frame.left - 7, y, is_none ? "(no module)" : name,
                    &(struct tmk_text_style){
                        .colour = d->picture.theme->text, .anchor = TMK_ANCHOR_END, .most = LABEL});
    tmk_canvas_text(
        d->picture.canvas, d->frame.left + d->frame.width + SIZES - 16, y,
        tmk_size_text(d->rows[r].most, size),
        &(struct tmk_text_style){.colour = d->picture.theme->faint, .anchor = TMK_ANCHOR_END});
}

/* Mark where stages begin, with their names as far as there is room. */
static void draw_stages_above(const struct heatmap_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    const struct tmk_plot_frame *f = &d->frame;
    for (uint64_t i = 0; i < l->n_spans && l->n_spans <= MOST_ROWS; i++) {
        double from = tmk_plot_frame_x(f, tmk_plot_axis_x(&l->axis, l->spans[i].start_ns));
        double to = tmk_plot_frame_x(f, tmk_plot_axis_x(&l->axis, l->spans[i].end_ns));
        tmk_canvas_line(d->picture.canvas, from, f->top - 14, from, f->top + f->height,
                        &(struct tmk_paint){.stroke = d->picture.theme->axis});
        if (to - from > tmk_text_width(l->spans[i].name, 11, false) + 8)
            tmk_canvas_text(
                d->picture.canvas, from + 4, f->top - 5, l->spans[i].name,
                &(struct tmk_text_style){.size = 11, .colour = d->picture.theme->faint});
    }
}

static void draw_heatmap_ooms(const struct heatmap_drawing *d)
{
    const struct tmk_plot_frame *f = &d->frame;
    for (uint64_t i = 0; i < tmk_ooms_n_kept(d->layers.ooms); i++) {
        const struct tmk_oom *oom = tmk_ooms_get(d->layers.ooms, i);
        double x = tmk_plot_frame_x(f, tmk_plot_axis_x(&d->layers.axis, oom->time_ns));
        if (oom->device == d->plot->device && tmk_plot_axis_has(&d->layers.axis, oom->time_ns))
            tmk_canvas_line(d->picture.canvas, x, f->top - 14, x, f->top + f->height,
                            &(struct tmk_paint){.stroke = d->picture.theme->warning, .width = 2});
    }
}

/* Draw the colours of the sizes at the right. */
static void draw_scale(const struct heatmap_drawing *d)
{
    struct tmk_plot_frame scale = d->frame;
    scale.left = d->picture.width - TMK_PICTURE_SIDE - SCALE;
    scale.width = SCALE;
    scale.most = (double)d->most;
    tmk_plot_frame_scale(&scale);
}

static double draw_heatmap_title(const struct heatmap_drawing *d, const char *warning)
{
    char size[TMK_AMOUNT_BYTES], when[80];
    const struct tmk_plot *plot = d->plot;
    if (!plot->has_window)
        snprintf(when, sizeof when, "over the run");
    else if (plot->first_step == plot->last_step)
        snprintf(when, sizeof when, "in step %" PRId64, plot->first_step);
    else
        snprintf(when, sizeof when, "in steps %" PRId64 " to %" PRId64, plot->first_step,
                 plot->last_step);
    char *title = tmk_plot_title(plot, "allocated by %s %s, at most %s", d->by, when,
                                 tmk_size_text(d->layers.most_bytes, size));
    double top = tmk_picture_title(&d->picture, title, NULL, warning);
    free(title);
    return top;
}

static void lay_out_heatmap(struct heatmap_drawing *d, double top)
{
    double names = 40;
    for (uint32_t r = 0; r < d->n_rows; r++) {
        d->most = d->rows[r].most > d->most ? d->rows[r].most : d->most;
        names = fmax(names, tmk_text_width(d->rows[r].name, 12, false));
    }
    d->row_height = fmax(ROW_HEIGHT, (double)LEAST_HEIGHT / d->n_rows);
    d->frame = (struct tmk_plot_frame){.picture = &d->picture,
                                       .left = TMK_PICTURE_SIDE + fmin(names, LABEL) + 7,
                                       .top = top + ABOVE,
                                       .height = d->row_height * d->n_rows,
                                       .from = tmk_plot_axis_start(&d->layers.axis),
                                       .to = tmk_plot_axis_end(&d->layers.axis)};
    d->frame.width =
        TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - SCALE - SCALE_SIZES - SIZES - d->frame.left;
}

static int draw_heatmap(struct heatmap_drawing *d)
{
    char *warning = tmk_plot_ooms_text(d->plot, d->layers.ooms);
    lay_out_heatmap(d, tmk_picture_top(NULL, warning));
    tmk_picture_open(&d->picture, d->plot->path, &d->plot->style, TMK_PICTURE_WIDTH,
                     d->frame.top + d->frame.height + BOTTOM);
    draw_heatmap_title(d, warning);
    free(warning);
    for (uint32_t r = 0; r < d->n_rows; r++) {
        draw_row(d, &d->rows[r], r);
        draw_row_texts(d, r);
    }
    draw_stages_above(d);
    draw_heatmap_ooms(d);
    tmk_plot_axis_draw(&d->layers.axis, &d->frame);
    draw_scale(d);
    return tmk_picture_save(&d->picture);
}

/* Choose the step with the peak, if there are steps. */
static void choose_step(struct tmk_plot *plot)
{
    const struct tmk_step_row *peak = tmk_steps_peak(plot->p, false, plot->device);
    if (!plot->has_window && peak && peak->step != TMK_NO_STEP)
        tmk_plot_set_steps(plot, peak->step, peak->step);
}

int tmk_plot_heatmap(const struct tmk_plot *plot)
{
    struct tmk_plot of_step = *plot;
    struct heatmap_drawing d = {.plot = &of_step, .by = plot->by ? plot->by : "module"};
    choose_step(&of_step);
    int status = tmk_picture_check(plot->path);
    if (status == 0)
        status = tmk_plot_layers_read(&d.layers, &of_step, d.by, COLUMNS, 0);
    if (status == 0) {
        make_heatmap_rows(&d);
        status = draw_heatmap(&d);
    }
    for (uint32_t i = 0; i < d.n_rows; i++) {
        free(d.rows[i].name);
        free(d.rows[i].bytes);
    }
    free(d.rows);
    tmk_plot_layers_fini(&d.layers);
    return status;
}
