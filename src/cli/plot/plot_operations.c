/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_operations.c - the memory of each stage: at the left the peak while it was open,
 * and the part that was still allocated when it ended; at the right the bytes it allocated each
 * time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/gnuplot.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_bars.h"
#include "kit/amount.h"
#include "passes/stages.h"
#include "trace/replay.h"

enum { MOST_BARS = 24 };

/* Make "forward, 20 times 26.2 ms"; the caller's. */
static char *stage_row_name(const struct tmk_stage_row *row)
{
    char time[TMK_AMOUNT_BYTES];
    if (row->n_times == 0)
        return tmk_xstrdup(row->name);
    const char *each = tmk_time_text(row->ns / row->n_times, time);
    if (row->n_times == 1)
        return tmk_xformat("%s, %s", row->name, each);
    return tmk_xformat("%s, %" PRIu64 " times %s", row->name, row->n_times, each);
}

static void add_stage(struct tmk_bars *peaks, struct tmk_bars *asked,
                      const struct tmk_stage_row *row)
{
    uint64_t times = row->n_times ? row->n_times : 1;
    char *name = stage_row_name(row);
    tmk_bars_add(peaks, name, row->name, row->peak_bytes);
    tmk_bars_get(peaks, name)->mark = row->end_bytes;
    tmk_bars_add(asked, name, row->name, row->allocated_bytes / times);
    free(name);
}

static int draw_operations(const struct tmk_plot *plot, const struct tmk_bars *peaks,
                           const struct tmk_bars *asked)
{
    struct tmk_gnuplot *g = NULL;
    int status = tmk_gnuplot_open(plot->path, &plot->style, tmk_bars_height(peaks->n_bars), &g);
    if (status != 0)
        return status;
    FILE *out = tmk_gnuplot_script(g);
    char *title = tmk_plot_title(plot, "what each stage needs");
    tmk_gnuplot_heading(g, title, NULL);
    free(title);
    double left = tmk_bars_names_width(peaks), middle = left + (0.985 - left) * 0.54;
    fputs("unset key\nset multiplot\n", out);
    tmk_bars_put(peaks, out, tmk_gnuplot_theme(g),
                 &(struct tmk_bars_place){.left = left,
                                          .right = middle - 0.02,
                                          .no_key = true,
                                          .label = "most allocated in it; line: when it ended"});
    fputs("unset label\nunset arrow\nunset object\n", out);
    tmk_bars_put(asked, out, tmk_gnuplot_theme(g),
                 &(struct tmk_bars_place){.left = middle + 0.02,
                                          .right = 0.99,
                                          .no_names = true,
                                          .no_key = true,
                                          .label = "asked for, each time"});
    fputs("unset multiplot\n", out);
    return tmk_gnuplot_close(g);
}

static int draw_stages(const struct tmk_plot *plot, const struct tmk_stages *stages)
{
    struct tmk_bars peaks = {0}, asked = {0};
    uint32_t n = tmk_stages_n(stages);
    if (n == 0)
        return tmk_plot_nothing(plot);
    for (uint32_t i = 0; i < n && i < MOST_BARS; i++)
        add_stage(&peaks, &asked, tmk_stages_get(stages, i));
    if (n > MOST_BARS)
        tmk_say("of %u stages the first %d are drawn", n, MOST_BARS);
    int status = draw_operations(plot, &peaks, &asked);
    tmk_bars_fini(&peaks);
    tmk_bars_fini(&asked);
    return status;
}

int tmk_plot_operations(const struct tmk_plot *plot)
{
    struct tmk_error err = {0};
    struct tmk_stages *stages = NULL;
    struct tmk_replay rp;
    if (tmk_stages_open(plot->p, plot->device, &stages) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitor = tmk_stages_visitor(stages);
    int status = tmk_plot_replay(plot, &visitor, 1, &rp);
    if (status == 0) {
        int rc = tmk_stages_finish(stages, &rp, &err);
        tmk_replay_fini(&rp);
        status = rc < 0 ? tmk_plot_failed(plot, &err) : draw_stages(plot, stages);
    }
    tmk_stages_close(stages);
    return status;
}
