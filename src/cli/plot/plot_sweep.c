/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_sweep.c - see plot_sweep.h. */
#include "cli/plot/plot_sweep.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "cli/plot/plot_picture.h"
#include "cli/plot/plot_survey.h"
#include "kit/amount.h"
#include "kit/progress.h"
#include "model/run.h"
#include "sweep/results.h"
#include "trace/reader.h"
#include "trace/state.h"

static const struct picture {
    const char *file;
    unsigned set;
    const struct tmk_survey_picture *how;
} pictures[TMK_N_SWEEP_PICTURES] = {
    [TMK_SWEEP_OVERVIEW] = {"memory_analysis_overview.png", TMK_PLOT_BASIC, &tmk_survey_overview},
    [TMK_SWEEP_HEATMAP] = {"memory_heatmap.png", TMK_PLOT_BASIC, &tmk_survey_heatmap},
    [TMK_SWEEP_COMPONENTS] = {"detailed_memory_analysis.png", TMK_PLOT_DETAILED,
                              &tmk_survey_components},
    [TMK_SWEEP_OPERATIONS] = {"operation_level_breakdown.png", TMK_PLOT_DETAILED,
                              &tmk_survey_operations},
};

/* ---- one picture ---- */

int tmk_plot_sweep_picture(const struct tmk_survey *g, enum tmk_sweep_picture which,
                           const struct tmk_plot_style *style, const char *path)
{
    const struct tmk_survey_picture *how = pictures[which].how;
    struct tmk_picture p;
    if (!g->largest) {
        tmk_say("%s: no configuration has ended well: there is nothing to draw", g->r->folder);
        return TMK_EXIT_FINDING;
    }
    int status = tmk_picture_check(path);
    if (status != 0)
        return status;
    how->draw(g, path, style, &p);
    return tmk_picture_save(&p);
}

/* ---- timelines of the runs ---- */

/* Choose the process and device with the cell's peak. */
static int choose_peak_process(struct tmk_plot *plot, const struct tmk_cell *cell)
{
    const struct tmk_step_row *best = NULL;
    char name[24];
    for (uint32_t i = 0; i < tmk_run_n_processes(plot->run); i++) {
        struct tmk_process *p = tmk_run_process(plot->run, i);
        for (uint64_t k = 0; k < tmk_reader_n_step_rows(p->reader); k++) {
            const struct tmk_step_row *row = tmk_reader_step_row(p->reader, k);
            bool is_it =
                !cell->device || strcmp(tmk_device_name(row->device, name), cell->device) == 0;
            if (!is_it || (best && row->peak_bytes <= best->peak_bytes))
                continue;
            best = row;
            plot->p = p;
            plot->device = row->device;
        }
    }
    return best ? 0 : TMK_EXIT_FINDING; /* the process ended before its first block */
}

static int plot_timeline(const struct tmk_results *r, const struct tmk_cell *cell,
                         const struct tmk_plot_style *style, const char *path)
{
    char name[256], size[TMK_AMOUNT_BYTES];
    char *run = tmk_xformat("%s/%s", r->folder, cell->run);
    char *title =
        tmk_xformat("%s: allocated%s%s", tmk_cell_text(r, cell, name, sizeof name),
                    tmk_cell_is_measured(cell) ? ", at most " : "",
                    tmk_cell_is_measured(cell) ? tmk_size_text(cell->peak_allocated, size) : "");
    struct tmk_plot plot = {.has_blocks = true, .style = *style, .path = path};
    plot.style.title = style->title ? style->title : title;
    int status = tmk_target_open(run, &plot.run);
    if (status == 0 && choose_peak_process(&plot, cell) == 0)
        status = tmk_plot_timeline(&plot);
    tmk_run_close(plot.run);
    free(title);
    free(run);
    return status;
}

/* Draw the timelines; missing traces are reported once. */
static int plot_timelines(const struct tmk_results *r, const struct tmk_plot_style *style)
{
    struct tmk_progress progress;
    int status = 0;
    uint32_t n_without = 0, first = 0;
    tmk_progress_init(&progress, stderr, "drawing timelines");
    for (uint32_t i = 0; i < r->n_cells; i++) {
        tmk_progress_tell(&progress, i, r->n_cells);
        if (!r->cells[i].run)
            continue;
        if (!tmk_cell_has_trace(r, &r->cells[i])) {
            first = n_without++ ? first : i;
            continue;
        }
        char *path = tmk_xformat("%s/memory_timeline_config_%u.png", r->folder, i + 1);
        int rc = plot_timeline(r, &r->cells[i], style, path);
        status = status ? status : rc;
        free(path);
    }
    tmk_progress_fini(&progress);
    if (n_without)
        tmk_say("%u configuration%s no trace in %s (the first: %s): no timeline of %s", n_without,
                n_without == 1 ? " has" : "s have", r->folder, r->cells[first].run,
                n_without == 1 ? "it" : "these");
    return status;
}

/* ---- all pictures ---- */

int tmk_plot_sweep(const struct tmk_survey *g, unsigned sets, const struct tmk_plot_style *style)
{
    int status = 0;
    for (unsigned i = 0; status == 0 && i < TMK_N(pictures); i++) {
        if (!(pictures[i].set & sets))
            continue;
        char *path = tmk_xformat("%s/%s", g->r->folder, pictures[i].file);
        status = tmk_plot_sweep_picture(g, i, style, path);
        free(path);
    }
    return status == 0 && sets & TMK_PLOT_BASIC ? plot_timelines(g->r, style) : status;
}
