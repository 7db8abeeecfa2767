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
#include "cli/plot/plot.h"
#include "cli/plot/plot_bars.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "kit/amount.h"
#include "passes/stages.h"
#include "trace/replay.h"

enum { MOST_BARS = 24, BETWEEN = 16, LEAST_HEIGHT = 110 /* points */ };

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

static int draw_operations(const struct tmk_plot *plot, const char *warning,
                           const struct tmk_bars *peaks, const struct tmk_bars *asked)
{
    struct tmk_picture p;
    double left = TMK_PICTURE_SIDE + tmk_bars_names_width(peaks),
           top = tmk_picture_top(NULL, warning);
    double width = TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - left,
           height = peaks->n_bars * TMK_BAR_ROW;
    height = height < LEAST_HEIGHT ? LEAST_HEIGHT : height;
    tmk_picture_open(&p, plot->path, &plot->style, TMK_PICTURE_WIDTH,
                     top + height + TMK_BARS_BELOW);
    char *title = tmk_plot_title(plot, "what each stage needs");
    tmk_picture_title(&p, title, NULL, warning);
    free(title);
    tmk_bars_draw(peaks, &p,
                  &(struct tmk_bars_place){.left = left,
                                           .top = top,
                                           .width = width * 0.54 - BETWEEN,
                                           .height = height,
                                           .label = "most allocated in it; line: when it ended"});
    tmk_bars_draw(asked, &p,
                  &(struct tmk_bars_place){.left = left + width * 0.54 + BETWEEN,
                                           .top = top,
                                           .width = width * 0.46 - BETWEEN,
                                           .height = height,
                                           .no_names = true,
                                           .label = "requested, each time"});
    return tmk_picture_save(&p);
}

static int draw_stages(const struct tmk_plot *plot, const char *warning,
                       const struct tmk_stages *stages)
{
    struct tmk_bars peaks = {0}, asked = {0};
    uint32_t n = tmk_stages_n(stages);
    if (n == 0)
        return tmk_plot_nothing(plot);
    for (uint32_t i = 0; i < n && i < MOST_BARS; i++)
        add_stage(&peaks, &asked, tmk_stages_get(stages, i));
    if (n > MOST_BARS)
        tmk_say("of %u stages the first %d are drawn", n, MOST_BARS);
    int status = draw_operations(plot, warning, &peaks, &asked);
    tmk_bars_fini(&peaks);
    tmk_bars_fini(&asked);
    return status;
}

int tmk_plot_operations(const struct tmk_plot *plot)
{
    struct tmk_error err = {0};
    struct tmk_stages *stages = NULL;
    struct tmk_replay rp;
    char *warning = NULL;
    if (tmk_stages_open(plot->p, plot->device, &stages) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitor = tmk_stages_visitor(stages);
    int status = tmk_plot_replay(plot, &visitor, 1, &rp);
    if (status == 0) {
        int rc = tmk_stages_finish(stages, &rp, &err);
        tmk_replay_fini(&rp);
        status = rc < 0 ? tmk_plot_failed(plot, &err) : tmk_plot_read_ooms(plot, &warning);
    }
    if (status == 0)
        status = draw_stages(plot, warning, stages);
    free(warning);
    tmk_stages_close(stages);
    return status;
}
