/* SPDX-License-Identifier: MIT */
/* cli/plot/plot.c - see plot.h. */
#include "cli/plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/progress.h"
#include "passes/oom/ooms.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { MOST_VISITORS = 8 };

bool tmk_plot_set_steps(struct tmk_plot *plot, int64_t first, int64_t last)
{
    const struct tmk_reader *r = plot->p->reader;
    bool found = false;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        if (row->device != plot->device || row->step == TMK_NO_STEP || row->step < first ||
            row->step > last)
            continue;
        plot->start_ns = found && plot->start_ns < row->start_ns ? plot->start_ns : row->start_ns;
        plot->end_ns = found && plot->end_ns > row->end_ns ? plot->end_ns : row->end_ns;
        found = true;
    }
    plot->has_window = found;
    plot->first_step = first;
    plot->last_step = last;
    return found;
}

struct tmk_plot_unit tmk_plot_size_unit(double most_bytes)
{
    static const struct tmk_plot_unit units[] = {
        {1099511627776.0, "TiB"}, {1073741824.0, "GiB"}, {1048576.0, "MiB"}, {1024.0, "KiB"}};
    for (size_t i = 0; i < TMK_N(units); i++)
        if (most_bytes >= 2 * units[i].size)
            return units[i];
    return (struct tmk_plot_unit){1, "bytes"};
}

struct tmk_plot_unit tmk_plot_time_unit(uint64_t ns)
{
    static const struct {
        double least_ns;
        struct tmk_plot_unit unit;
    } units[] = {{3 * 3600e9, {3600e9, "hours"}},
                 {300e9, {60e9, "minutes"}},
                 {1e9, {1e9, "seconds"}},
                 {1e6, {1e6, "milliseconds"}}};
    for (size_t i = 0; i < TMK_N(units); i++)
        if ((double)ns >= units[i].least_ns)
            return units[i].unit;
    return (struct tmk_plot_unit){1e3, "microseconds"};
}

double tmk_plot_tic(double range, unsigned n)
{
    double tic = range / (n ? n : 1), ten = pow(10, floor(log10(tic > 0 ? tic : 1)));
    return tic <= ten ? ten : tic <= 2 * ten ? 2 * ten : tic <= 5 * ten ? 5 * ten : 10 * ten;
}

/* ---- texts ---- */

/* The name of a run: the last part of its path, or the watched process. */
static char *plotted_run_name(const struct tmk_run *run)
{
    char *path = tmk_xstrdup(tmk_run_path(run));
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    const char *slash = strrchr(path, '/');
    const char *last = slash && slash[1] ? slash + 1 : path;
    bool is_pid = strspn(path, "0123456789") == n;
    char *name = tmk_xformat("%s%s", is_pid ? "process " : "", last);
    free(path);
    return name;
}

char *tmk_plot_title(const struct tmk_plot *plot, const char *format, ...)
{
    char *text = NULL, device[24], label[40];
    size_t n = 0;
    char *name = plotted_run_name(plot->run);
    FILE *out = tmk_xmemstream(&text, &n);
    fputs(name, out);
    if (plot->p && tmk_run_n_processes(plot->run) > 1)
        fprintf(out, ", %s", tmk_process_label(plot->p, label));
    if (plot->p)
        fprintf(out, ", %s", tmk_device_name(plot->device, device));
    fputs(": ", out);
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fclose(out);
    free(name);
    return text;
}

/* ---- OOMs ---- */

char *tmk_plot_oom_text(const struct tmk_oom *oom)
{
    char size[TMK_AMOUNT_BYTES];
    const char *file = oom->has_site ? oom->site.file : "", *slash = strrchr(file, '/');
    const char *what = tmk_size_text(oom->requested_bytes, size);
    if (!file[0])
        return tmk_xformat("out of memory: %s requested", what);
    return tmk_xformat("out of memory: %s requested, %s:%" PRIu32, what, slash ? slash + 1 : file,
                       oom->site.line);
}

char *tmk_plot_ooms_text(const struct tmk_plot *plot, const struct tmk_ooms *ooms)
{
    const struct tmk_oom *last = NULL;
    uint64_t n = 0;
    for (uint64_t i = 0; i < tmk_ooms_n_kept(ooms); i++)
        if (tmk_ooms_get(ooms, i)->device == plot->device) {
            last = tmk_ooms_get(ooms, i);
            n++;
        }
    if (!last)
        return NULL;
    char step[TMK_STEP_TEXT_BYTES], times[48] = "";
    char *text = tmk_plot_oom_text(last);
    if (n > 1)
        snprintf(times, sizeof times, "; the last of %s%" PRIu64,
                 n < tmk_ooms_n(ooms) ? "at least " : "", n);
    char *sentence =
        tmk_xformat("%s%s%s", text, tmk_step_text(plot->p, last->step, ", ", step), times);
    free(text);
    return sentence;
}

/* ---- the sweep ---- */

int tmk_plot_nothing(const struct tmk_plot *plot)
{
    tmk_say("no block was allocated in what can be read of %s: there is nothing to draw",
            plot->p->file);
    return TMK_EXIT_FINDING;
}

int tmk_plot_failed(const struct tmk_plot *plot, const struct tmk_error *err)
{
    tmk_say("%s: %s", plot->p->file, err->text[0] ? err->text : "out of memory");
    return TMK_EXIT_FINDING;
}

int tmk_plot_replay(const struct tmk_plot *plot, const struct tmk_visitor *visitors, uint32_t n,
                    struct tmk_replay *rp)
{
    struct tmk_visitor all[MOST_VISITORS + 1];
    struct tmk_progress progress;
    struct tmk_error err = {0};
    memcpy(all, visitors, n * sizeof *all);
    tmk_progress_init(&progress, stderr, plot->p->file);
    all[n] = (struct tmk_visitor){.arg = &progress, .progress = tmk_progress_tell};
    int rc = tmk_process_sweep(plot->p, all, n + 1, rp, &err);
    tmk_progress_fini(&progress);
    if (rc >= 0)
        return 0;
    tmk_say("%s: %s", plot->p->file, err.text[0] ? err.text : tmk_result_text(rc));
    return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

int tmk_plot_read_ooms(const struct tmk_plot *plot, char **ret_text)
{
    struct tmk_error err = {0};
    struct tmk_ooms *ooms = NULL;
    struct tmk_replay rp;
    if (tmk_ooms_open(plot->p, &ooms) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitor = tmk_ooms_visitor(ooms);
    int status = tmk_plot_replay(plot, &visitor, 1, &rp);
    if (status == 0) {
        if (tmk_ooms_finish(ooms, &err) < 0)
            status = tmk_plot_failed(plot, &err);
        else
            *ret_text = tmk_plot_ooms_text(plot, ooms);
        tmk_replay_fini(&rp);
    }
    tmk_ooms_close(ooms);
    return status;
}
