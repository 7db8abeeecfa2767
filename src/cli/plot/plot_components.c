/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_components.c - the allocated memory at the peak: a bar for each component (or
 * module, or stage), with the categories as its pieces. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/answers/moment_answer.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_bars.h"
#include "cli/plot/plot_legend.h"
#include "cli/plot/plot_picture.h"
#include "draw/canvas.h"
#include "kit/amount.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/state.h"

enum { MOST_BARS = 28 };

/* Add every block to its component's bar and its category's piece. */
static int add_blocks(struct tmk_bars *bars, const struct tmk_peak *peak, enum tmk_by by)
{
    struct tmk_group *rows = NULL, *pieces = NULL;
    int rc = tmk_group_open(tmk_peak_labels(peak), by, &rows);
    if (rc == 0)
        rc = tmk_group_open(tmk_peak_labels(peak), TMK_BY_CATEGORY, &pieces);
    for (uint64_t i = 0; rc == 0 && i < tmk_peak_n_blocks(peak); i++) {
        const struct tmk_block *b = tmk_peak_block(peak, i);
        const char *name = tmk_group_key(rows, b), *key = tmk_group_key(pieces, b);
        tmk_bars_add(bars, name ? name : "unknown", key ? key : "unknown", b->size_bytes);
    }
    tmk_group_close(rows);
    tmk_group_close(pieces);
    return rc;
}

static void add_component_notes(struct tmk_bars *bars, uint64_t whole)
{
    char size[TMK_AMOUNT_BYTES], share[TMK_AMOUNT_BYTES];
    for (uint32_t i = 0; i < bars->n_bars; i++)
        bars->bars[i].note = tmk_xformat("%s  %s", tmk_size_text(bars->bars[i].total, size),
                                         tmk_percent_text(bars->bars[i].total, whole, share));
}

static int draw_components(const struct tmk_plot *plot, const struct tmk_moment_answer *shown,
                           const char *by, const char *warning, const struct tmk_bars *bars)
{
    char size[TMK_AMOUNT_BYTES], step[TMK_STEP_TEXT_BYTES];
    struct tmk_picture p;
    struct tmk_legend legend = {.left = TMK_PICTURE_SIDE,
                                .width = TMK_PICTURE_WIDTH - 2 * TMK_PICTURE_SIDE};
    struct tmk_legend_item *items = tmk_bars_legend(bars, &legend.n);
    legend.items = items;
    double above = tmk_legend_rows(&legend) * TMK_LEGEND_ROW + 12;
    struct tmk_bars_place place = {.left = TMK_PICTURE_SIDE + tmk_bars_names_width(bars),
                                   .top = tmk_picture_top(NULL, warning) + above,
                                   .height = bars->n_bars * TMK_BAR_ROW};
    place.width = TMK_PICTURE_WIDTH - TMK_PICTURE_SIDE - place.left;
    tmk_picture_open(&p, plot->path, &plot->style, TMK_PICTURE_WIDTH,
                     place.top + place.height + TMK_BARS_BELOW);
    char *title =
        tmk_plot_title(plot, "%s %s by %s%s", tmk_size_text(tmk_peak_bytes(shown->peak), size),
                       shown->detail_lost ? "at the largest moment kept" : "at the peak", by,
                       tmk_step_text(plot->p, tmk_peak_step(shown->peak), ", ", step));
    tmk_legend_draw(&legend, &p, tmk_picture_title(&p, title, NULL, warning));
    tmk_bars_draw(bars, &p, &place);
    free(title);
    free(items);
    return tmk_picture_save(&p);
}

int tmk_plot_components(const struct tmk_plot *plot)
{
    const char *by_name = plot->by ? plot->by : "component";
    struct tmk_moment_answer shown = {.p = plot->p};
    struct tmk_bars bars = {0};
    char device[24], *warning = NULL;
    enum tmk_by by;
    if (!tmk_by_find(by_name, &by))
        return TMK_EXIT_USAGE; /* not one of the option's choices; the parser has reported it */
    int status = tmk_moment_answer_ask(&shown, "at", NULL, tmk_device_name(plot->device, device));
    if (status == 0)
        status = tmk_moment_answer_sweep(&shown);
    if (status == 0 && shown.detail_lost)
        tmk_moment_answer_say_lost(&shown);
    if (status == 0 && add_blocks(&bars, shown.peak, by) < 0)
        status = tmk_plot_failed(plot, &(struct tmk_error){0});
    if (status == 0 && bars.n_bars == 0)
        status = tmk_plot_nothing(plot);
    if (status == 0) {
        tmk_bars_tidy(&bars, MOST_BARS);
        add_component_notes(&bars, tmk_peak_bytes(shown.peak));
        status = tmk_plot_read_ooms(plot, &warning);
    }
    if (status == 0)
        status = draw_components(plot, &shown, by_name, warning, &bars);
    free(warning);
    tmk_bars_fini(&bars);
    tmk_moment_answer_fini(&shown);
    return status;
}
