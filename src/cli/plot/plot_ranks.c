/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_ranks.c - the peaks of all processes side by side: allocated and reserved memory,
 * and how unequal they are.
 *
 * It reads the history of steps, which needs no sweep: a thousand ranks are drawn as quickly as
 * one. A process is shown with the device of its largest peak, or the device that the user
 * named. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "cli/front/target.h"
#include "cli/output/palette.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/steps.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { MOST_NAMES = 16 };

struct rank_bar {
    char label[40];
    uint16_t device;
    uint64_t allocated, reserved; /* 0: not known */
};

struct ranks_drawing {
    const struct tmk_plot *plot;
    struct rank_bar *bars;
    uint32_t n;
    uint64_t most; /* the largest figure that is drawn */
    uint32_t largest;
    double mean;
    bool has_reserved;
};

static uint64_t reserved_of(const struct tmk_process *p, uint16_t device)
{
    uint64_t most = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        if (row->device == device && row->has_reserved && row->peak_reserved_bytes > most)
            most = row->peak_reserved_bytes;
    }
    return most;
}

static void gather_ranks(struct ranks_drawing *d)
{
    uint32_t n = tmk_run_n_processes(d->plot->run);
    d->bars = tmk_xcalloc((size_t)n + 1, sizeof *d->bars);
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_process *p = tmk_run_process(d->plot->run, i);
        const struct tmk_step_row *peak = tmk_steps_peak(p, !d->plot->has_device, d->plot->device);
        struct rank_bar *bar = &d->bars[d->n];
        if (!peak || peak->peak_bytes == 0)
            continue; /* it allocated nothing: a launcher, a data loader */
        tmk_process_label(p, bar->label);
        bar->device = peak->device;
        bar->allocated = peak->peak_bytes;
        bar->reserved = reserved_of(p, peak->device);
        d->has_reserved |= bar->reserved > 0;
        d->mean += (double)bar->allocated;
        uint64_t height = bar->reserved > bar->allocated ? bar->reserved : bar->allocated;
        d->most = height > d->most ? height : d->most;
        d->largest = bar->allocated > d->bars[d->largest].allocated ? d->n : d->largest;
        d->n++;
    }
    d->mean /= d->n ? d->n : 1;
}

static void put_ranks_title(const struct ranks_drawing *d, struct tmk_gnuplot *g)
{
    char mean[TMK_AMOUNT_BYTES];
    const struct rank_bar *largest = &d->bars[d->largest];
    double more = d->mean > 0 ? 100 * ((double)largest->allocated / d->mean - 1) : 0;
    struct tmk_plot of_run = *d->plot;
    of_run.p = NULL;
    char *title = d->n == 1
                      ? tmk_plot_title(&of_run, "peak of its only process")
                      : tmk_plot_title(
                            &of_run, "peaks of %" PRIu32 " processes, mean %s; %s has %.0f %% more",
                            d->n, tmk_size_text((uint64_t)d->mean, mean), largest->label, more);
    tmk_gnuplot_title(g, title);
    free(title);
}

static void put_rank_names(const struct ranks_drawing *d, FILE *out)
{
    uint32_t every = (d->n + MOST_NAMES - 1) / MOST_NAMES;
    char device[24];
    fprintf(out, "set xtics scale 0 %s(", d->n > 12 ? "rotate by -35 " : "");
    for (uint32_t i = 0; i < d->n; i += every) {
        fputs(i ? ", " : "", out);
        char *text =
            tmk_xformat("%s, %s", d->bars[i].label, tmk_device_name(d->bars[i].device, device));
        tmk_gnuplot_tic(out, text, UINT_MAX);
        fprintf(out, " %u", i);
        free(text);
    }
    fputs(")\n", out);
}

static void put_rank_sizes(const struct ranks_drawing *d, FILE *out, const struct tmk_theme *theme,
                           double unit)
{
    char size[TMK_AMOUNT_BYTES];
    for (uint32_t i = 0; i < d->n && d->n <= MOST_NAMES; i++) {
        const struct rank_bar *bar = &d->bars[i];
        uint64_t top = bar->reserved > bar->allocated ? bar->reserved : bar->allocated;
        fprintf(out,
                "set label '%s' at first %u, first %.7g center front boxed offset 0,0.6 textcolor "
                "rgb '%s'\n",
                tmk_size_text(bar->allocated, size), i, (double)top / unit, theme->text);
    }
}

static int draw_ranks(const struct ranks_drawing *d)
{
    struct tmk_gnuplot *g = NULL;
    int status = tmk_gnuplot_open(d->plot->path, &d->plot->style, TMK_PICTURE_HEIGHT, &g);
    if (status != 0)
        return status;
    FILE *out = tmk_gnuplot_script(g);
    const struct tmk_theme *theme = tmk_gnuplot_theme(g);
    struct tmk_plot_unit unit = tmk_plot_size_unit((double)d->most);
    fputs("$d << EOD\n", out);
    for (uint32_t i = 0; i < d->n; i++)
        fprintf(out, "%u %.7g %.7g\n", i, (double)d->bars[i].allocated / unit.size,
                (double)d->bars[i].reserved / unit.size);
    fputs("EOD\n", out);
    put_ranks_title(d, g);
    put_rank_names(d, out);
    put_rank_sizes(d, out, theme, unit.size);
    double margin = d->n < 4 ? 1.2 : 0.7;
    fprintf(out,
            "set ylabel '%s'\nset yrange [0:%.7g]\nset xrange [%.1f:%.1f]\nset boxwidth 0.7\n"
            "set style fill solid 1 noborder\nplot ",
            unit.name, (double)d->most * 1.1 / unit.size, -margin, d->n - 1 + margin);
    if (d->has_reserved)
        fprintf(out, "$d using 1:3 with boxes fillcolor rgb '%s' title 'reserved', ", theme->grid);
    fprintf(out, "$d using 1:2 with boxes fillcolor rgb '%s' title 'allocated'",
            tmk_palette_colour(0));
    if (d->n > 1)
        fprintf(out,
                ", %.7g with lines dashtype 2 linewidth 1.5 linecolor rgb '%s' "
                "title 'mean allocated'",
                d->mean / unit.size, theme->text);
    fputc('\n', out);
    return tmk_gnuplot_close(g);
}

int tmk_plot_ranks(const struct tmk_plot *plot)
{
    struct ranks_drawing d = {.plot = plot};
    gather_ranks(&d);
    int status = TMK_EXIT_FINDING;
    if (d.n == 0)
        tmk_say("no process of %s ever allocated a block there: there is nothing to draw",
                tmk_run_path(plot->run));
    else
        status = draw_ranks(&d);
    free(d.bars);
    return status;
}
