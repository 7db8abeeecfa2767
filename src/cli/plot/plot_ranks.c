/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_ranks.c - the peaks of all processes side by side: allocated and reserved memory,
 * and how unequal they are.
 *
 * It reads the history of steps, which needs no sweep: a thousand ranks are drawn as quickly as
 * one. A process is shown with the device of its largest peak, or the device that the user
 * named. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_frame.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "draw/palette.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/steps.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum {
    LAST_CHUNKS = 8,
    LEFT = 62, /* points */
    BOTTOM = 56,
    NARROWEST = 78, /* bar with its size above */
};

struct rank_bar {
    char label[40];
    uint16_t device;
    uint64_t allocated, reserved; /* 0: not known */
    bool has_oom;
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

/* Whether the framework's allocator ran out of memory in these events. */
static bool has_oom_event(struct tmk_cursor *c, uint16_t device)
{
    struct tmk_event ev;
    while (tmk_view_left(&c->data[TMK_KIND_OTHER]) > 0 && tmk_cursor_read_other(c, &ev))
        if (ev.kind == TMK_KIND_OOM && !ev.is_of_driver && ev.device == device)
            return true;
    return false;
}

/* Whether it ran out of memory near its end: an OOM that a program catches may be earlier, but then
 * it is not why the job ended, and a thousand ranks would have to be read in full. */
static bool has_oom(const struct tmk_process *p, uint16_t device)
{
    struct tmk_reader *r = p->reader;
    struct tmk_cursor cursor = {0};
    bool found = false;
    unsigned n_left = LAST_CHUNKS;
    for (uint32_t i = tmk_reader_n_chunks(r); i-- > 0 && n_left > 0 && !found;) {
        const struct tmk_chunk_ref *chunk = tmk_reader_chunk(r, i);
        struct tmk_view payload;
        if (chunk->header.kind != TMK_CHUNK_EVENTS || tmk_reader_payload(r, i, &payload, NULL) ||
            tmk_cursor_begin(&cursor, &chunk->header, payload, NULL))
            continue;
        found = has_oom_event(&cursor, device);
        n_left--;
    }
    tmk_cursor_fini(&cursor);
    return found;
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
        bar->has_oom = has_oom(p, peak->device);
        d->has_reserved |= bar->reserved > 0;
        d->mean += (double)bar->allocated;
        uint64_t height = bar->reserved > bar->allocated ? bar->reserved : bar->allocated;
        d->most = height > d->most ? height : d->most;
        d->largest = bar->allocated > d->bars[d->largest].allocated ? d->n : d->largest;
        d->n++;
    }
    d->mean /= d->n ? d->n : 1;
}

/* ---- texts ---- */

static char *make_ranks_title(const struct ranks_drawing *d)
{
    char mean[TMK_AMOUNT_BYTES];
    const struct rank_bar *largest = &d->bars[d->largest];
    double more = d->mean > 0 ? 100 * ((double)largest->allocated / d->mean - 1) : 0;
    struct tmk_plot of_run = *d->plot;
    of_run.p = NULL;
    return d->n == 1
               ? tmk_plot_title(&of_run, "peak of its only process")
               : tmk_plot_title(&of_run,
                                "peaks of %" PRIu32 " processes, mean %s; %s has %.0f %% more",
                                d->n, tmk_size_text((uint64_t)d->mean, mean), largest->label, more);
}

/* Name the processes that ran out of memory: "out of memory: rank 2, rank 5"; the caller's, NULL:
 * none did. */
static char *make_ranks_warning(const struct ranks_drawing *d)
{
    char *text = NULL;
    size_t n = 0;
    const char *between = "out of memory: ";
    FILE *out = tmk_xmemstream(&text, &n);
    for (uint32_t i = 0; i < d->n; i++)
        if (d->bars[i].has_oom) {
            fprintf(out, "%s%s", between, d->bars[i].label);
            between = ", ";
        }
    fclose(out);
    if (n == 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* ---- drawing ---- */

static uint64_t rank_top(const struct rank_bar *bar)
{
    return bar->reserved > bar->allocated ? bar->reserved : bar->allocated;
}

/* Draw names below the bars: all of them, or as many as have room. */
static void draw_rank_names(const struct ranks_drawing *d, const struct tmk_plot_frame *f)
{
    char device[24];
    double widest = 1;
    for (uint32_t i = 0; i < d->n; i++)
        widest = fmax(widest, tmk_text_width(d->bars[i].label, 12, false));
    uint32_t every = (uint32_t)ceil((widest + 12) * d->n / f->width);
    for (uint32_t i = 0; i < d->n; i += every ? every : 1) {
        tmk_plot_frame_tic(f, i, d->bars[i].label);
        tmk_canvas_text(f->picture->canvas, tmk_plot_frame_x(f, i), f->top + f->height + 32,
                        tmk_device_name(d->bars[i].device, device),
                        &(struct tmk_text_style){.colour = f->picture->theme->faint,
                                                 .anchor = TMK_ANCHOR_MIDDLE});
    }
}

static void draw_rank_bar(const struct tmk_plot_frame *f, const struct rank_bar *bar, uint32_t i)
{
    char size[TMK_AMOUNT_BYTES], reserved[TMK_AMOUNT_BYTES];
    struct tmk_canvas *c = f->picture->canvas;
    double left = tmk_plot_frame_x(f, i - 0.35), width = tmk_plot_frame_x(f, i + 0.35) - left;
    double bottom = f->top + f->height, y = tmk_plot_frame_y(f, (double)bar->allocated);
    double higher = tmk_plot_frame_y(f, (double)bar->reserved);
    char *title = tmk_xformat("%s: %s allocated%s%s%s", bar->label,
                              tmk_size_text(bar->allocated, size), bar->reserved ? ", " : "",
                              bar->reserved ? tmk_size_text(bar->reserved, reserved) : "",
                              bar->reserved ? " reserved" : "");
    tmk_canvas_group(c, title);
    if (bar->reserved)
        tmk_canvas_rect(c, left, higher, width, bottom - higher,
                        &(struct tmk_paint){.fill = f->picture->theme->grid});
    tmk_canvas_rect(c, left, y, width, bottom - y,
                    &(struct tmk_paint){.fill = tmk_palette_colour(0)});
    tmk_canvas_ungroup(c);
    free(title);
}

/* Write the size above a bar, and whether its process ran out of memory. */
static void draw_rank_texts(const struct tmk_plot_frame *f, const struct rank_bar *bar, uint32_t i,
                            bool has_size)
{
    char size[TMK_AMOUNT_BYTES];
    const struct tmk_theme *theme = f->picture->theme;
    double x = tmk_plot_frame_x(f, i), y = tmk_plot_frame_y(f, (double)rank_top(bar));
    const struct tmk_text_style style = {.colour = bar->has_oom ? theme->warning : theme->text,
                                         .halo = theme->background,
                                         .is_bold = bar->has_oom,
                                         .anchor = TMK_ANCHOR_MIDDLE};
    if (has_size)
        tmk_canvas_text(f->picture->canvas, x, y - 7, tmk_size_text(bar->allocated, size), &style);
    if (bar->has_oom)
        tmk_canvas_text(f->picture->canvas, x, y - (has_size ? 22 : 7), has_size ? "OOM" : "×",
                        &style);
}

static void draw_ranks_legend(const struct ranks_drawing *d, const struct tmk_picture *p,
                              double top)
{
    const struct tmk_theme *theme = p->theme;
    struct tmk_legend_item items[3] = {{.text = "allocated", .colour = tmk_palette_colour(0)}};
    uint32_t n = 1;
    if (d->has_reserved)
        items[n++] = (struct tmk_legend_item){.text = "reserved", .colour = theme->grid};
    if (d->n > 1)
        items[n++] = (struct tmk_legend_item){
            .text = "mean allocated", .colour = theme->text, .mark = TMK_LEGEND_DASHED};
    tmk_legend_draw(&(struct tmk_legend){.items = items,
                                         .n = n,
                                         .left = TMK_PICTURE_SIDE,
                                         .width = p->width - 2 * TMK_PICTURE_SIDE},
                    p, top);
}

static int draw_ranks(const struct ranks_drawing *d)
{
    struct tmk_picture p;
    char *title = make_ranks_title(d), *warning = make_ranks_warning(d);
    tmk_picture_open(&p, d->plot->path, &d->plot->style, TMK_PICTURE_WIDTH, TMK_PICTURE_HEIGHT);
    double top = tmk_picture_title(&p, title, NULL, warning), margin = d->n < 4 ? 1.2 : 0.7;
    struct tmk_plot_frame f = {.picture = &p,
                               .left = LEFT,
                               .top = top + TMK_LEGEND_ROW + 14,
                               .width = TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - LEFT,
                               .from = -margin,
                               .to = d->n - 1 + margin};
    f.height = TMK_PICTURE_HEIGHT - BOTTOM - f.top;
    f.most = (double)d->most / (1 - 40 / f.height);
    draw_ranks_legend(d, &p, top);
    tmk_plot_frame_sizes(&f);
    for (uint32_t i = 0; i < d->n; i++)
        draw_rank_bar(&f, &d->bars[i], i);
    if (d->n > 1)
        tmk_canvas_line(
            p.canvas, f.left, tmk_plot_frame_y(&f, d->mean), f.left + f.width,
            tmk_plot_frame_y(&f, d->mean),
            &(struct tmk_paint){.stroke = p.theme->text, .width = 1.5, .dash = TMK_DASH_LONG});
    for (uint32_t i = 0; i < d->n; i++)
        draw_rank_texts(&f, &d->bars[i], i, f.width / (f.to - f.from) > NARROWEST);
    tmk_plot_frame_bottom(&f, "");
    draw_rank_names(d, &f);
    free(title);
    free(warning);
    return tmk_picture_save(&p);
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
