/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_heatmap.c - memory by module over time: a row for each module, time from left to
 * right.
 *
 * By default it shows the step with the peak: there one sees which layers keep the memory that
 * forward allocates, and when backward frees it. Modules are cut at the depth that gives as many
 * rows as can be read, so a deep model shows its layers and a small one every module. Rows are in
 * the order of the model's parameters, which is the model's order. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/palette.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_axis.h"
#include "cli/plot/plot_layers.h"
#include "kit/amount.h"
#include "kit/textmap.h"
#include "model/owners.h"
#include "passes/steps.h"
#include "trace/layout.h"
#include "trace/state.h"

enum {
    COLUMNS = 400,
    COLOURS = 150,
    MOST_ROWS = 48,
    DEEPEST = 16,    /* dots in a module's name */
    LABEL = 38,      /* columns of a row's name */
    ROW_HEIGHT = 19, /* points */
    LEAST_HEIGHT = 360,
    MOST_HEIGHT = 1160,
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
    FILE *out;
    const struct tmk_theme *theme;
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

/* ---- the script ---- */

/* Whether two sizes have the same colour. */
static bool are_sizes_alike(uint64_t a, uint64_t b, uint64_t most)
{
    return (double)(a > b ? a - b : b - a) < (double)most / COLOURS;
}

/* Write a box for each stretch of a row with one colour: left, right, row, value. Viewers of an SVG
 * would smooth a picture of cells. */
static void put_heatmap_data(const struct heatmap_drawing *d, struct tmk_plot_unit unit,
                             uint64_t most)
{
    const struct tmk_plot_axis *axis = &d->layers.axis;
    uint32_t n = d->layers.n_parts;
    double start = tmk_plot_axis_start(axis), end = tmk_plot_axis_end(axis);
    fputs("$d << EOD\n", d->out);
    for (uint32_t r = 0; r < d->n_rows; r++) {
        const uint64_t *bytes = d->rows[r].bytes;
        for (uint32_t i = 0, next; i < n; i = next) {
            for (next = i + 1; next < n && are_sizes_alike(bytes[i], bytes[next], most); next++)
                ;
            fprintf(d->out, "%.7g %.7g %u %.5g\n", start + (end - start) * i / n,
                    start + (end - start) * next / n, d->n_rows - 1 - r,
                    (double)bytes[i] / unit.size);
        }
    }
    fputs("EOD\n", d->out);
}

/* Write names at the left, each row's maximum at the right. */
static void put_heatmap_names(const struct heatmap_drawing *d)
{
    char size[TMK_AMOUNT_BYTES];
    bool is_module = strcmp(d->by, "module") == 0;
    fputs("set ytics scale 0 (", d->out);
    for (uint32_t r = 0; r < d->n_rows; r++) {
        const char *name = d->rows[r].name;
        bool is_none = is_module && strcmp(name, "unknown") == 0;
        fputs(r ? ", " : "", d->out);
        tmk_gnuplot_tail_tic(d->out, is_none ? "(no module)" : name, LABEL);
        fprintf(d->out, " %u", d->n_rows - 1 - r);
    }
    fprintf(d->out, ")\nset y2range [-0.5:%u.5]\nset y2tics scale 0 textcolor rgb '%s' (",
            d->n_rows - 1, d->theme->faint);
    for (uint32_t r = 0; r < d->n_rows; r++)
        fprintf(d->out, "%s'%s' %u", r ? ", " : "", tmk_size_text(d->rows[r].most, size),
                d->n_rows - 1 - r);
    fputs(")\n", d->out);
}

/* Mark where stages begin, with their names as far as there is room. */
static void put_stages(const struct heatmap_drawing *d)
{
    const struct tmk_plot_layers *l = &d->layers;
    const struct tmk_plot_axis *axis = &l->axis;
    double start = tmk_plot_axis_start(axis), width = tmk_plot_axis_end(axis) - start;
    for (uint64_t i = 0; i < l->n_spans && l->n_spans <= MOST_ROWS; i++) {
        double from = tmk_plot_axis_x(axis, l->spans[i].start_ns);
        double to = tmk_plot_axis_x(axis, l->spans[i].end_ns);
        fprintf(d->out,
                "set arrow from first %.9g, graph 0 to first %.9g, graph 1.02 nohead front "
                "linewidth 1 linecolor rgb '%s'\n",
                from, from, d->theme->axis);
        if (to - from < width / 14)
            continue;
        fputs("set label ", d->out);
        tmk_gnuplot_short_text(d->out, l->spans[i].name, 24);
        fprintf(d->out, " at first %.9g, graph 1 left offset 0.4,0.7 textcolor rgb '%s'\n", from,
                d->theme->faint);
    }
}

static void put_heatmap_title(const struct heatmap_drawing *d, struct tmk_gnuplot *g)
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
    tmk_gnuplot_heading(g, title, NULL);
    free(title);
}

static int draw_heatmap(struct heatmap_drawing *d)
{
    struct tmk_gnuplot *g = NULL;
    const struct tmk_plot_axis *axis = &d->layers.axis;
    unsigned height = 150 + ROW_HEIGHT * d->n_rows;
    height = height < LEAST_HEIGHT ? LEAST_HEIGHT : height > MOST_HEIGHT ? MOST_HEIGHT : height;
    int status = tmk_gnuplot_open(d->plot->path, &d->plot->style, height, &g);
    if (status != 0)
        return status;
    d->out = tmk_gnuplot_script(g);
    d->theme = tmk_gnuplot_theme(g);
    uint64_t most = 0;
    for (uint32_t r = 0; r < d->n_rows; r++)
        most = d->rows[r].most > most ? d->rows[r].most : most;
    struct tmk_plot_unit unit = tmk_plot_size_unit((double)most);
    put_heatmap_data(d, unit, most);
    put_heatmap_title(d, g);
    tmk_plot_axis_put(axis, d->out, d->theme);
    put_heatmap_names(d);
    put_stages(d);
    fprintf(d->out,
            "set style fill solid 1 noborder\nunset key\nunset grid\nset border 0\nset xtics "
            "out\nset yrange [-0.5:%u.5]\n"
            "set rmargin 19\n"
            "set palette defined (%s)\nset cbrange [0:%.9g]\n"
            "set label '%s' at screen 0.94, graph 1 left offset 0,0.9 textcolor rgb '%s'\n"
            "set colorbox user origin screen 0.94, graph 0 size screen 0.012, graph 1 noborder\n"
            "set cbtics scale 0 textcolor rgb '%s'\n",
            d->n_rows - 1, d->theme->ramp, (double)most / unit.size, unit.name, d->theme->faint,
            d->theme->faint);
    fputs(
        "plot $d using (($1+$2)/2):3:1:2:($3-0.47):($3+0.47):4 with boxxyerror fillcolor palette\n",
        d->out);
    return tmk_gnuplot_close(g);
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
    int status = tmk_plot_layers_read(&d.layers, &of_step, d.by, COLUMNS, 0);
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
