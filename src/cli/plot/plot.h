/* SPDX-License-Identifier: MIT */
/* cli/plot/plot.h - the pictures of a run, one file each: plot_timeline.c, plot_heatmap.c and so
 * on; and the functions they share (plot.c): units, titles, the sweep.
 *
 * Each picture takes the request, reads the trace as often as needed, and draws. 0, or an exit
 * status after a message. */
#ifndef TMK_CLI_PLOT_PLOT_H
#define TMK_CLI_PLOT_PLOT_H

#include "cli/plot/plot_style.h"
#include "model/run.h"

/* The request. */
struct tmk_plot {
    struct tmk_run *run;
    struct tmk_process *p;
    bool has_device; /* the user named the device */
    bool has_blocks; /* else only segments from the driver are known */
    uint16_t device;
    const char *by; /* NULL: the picture's own choice */
    bool by_time;   /* by time, even if there are steps */
    bool has_window;
    uint64_t start_ns, end_ns; /* trace time */
    int64_t first_step, last_step;
    struct tmk_plot_style style;
    const char *path;
};

int tmk_plot_timeline(const struct tmk_plot *plot);
int tmk_plot_heatmap(const struct tmk_plot *plot);
int tmk_plot_components(const struct tmk_plot *plot);
int tmk_plot_operations(const struct tmk_plot *plot);
int tmk_plot_ranks(const struct tmk_plot *plot);
int tmk_plot_forecast(const struct tmk_plot *plot);

/* Set the window from the first of these steps to the last; false: none of them exists. */
bool tmk_plot_set_steps(struct tmk_plot *plot, int64_t first, int64_t last);

/* ---- units ---- */

struct tmk_plot_unit {
    double size;      /* one unit, in bytes or ns */
    const char *name; /* "GiB", "seconds" */
};

/* Choose the unit in which amounts up to `most_bytes` are easiest to read: 1.2 GiB in MiB. */
struct tmk_plot_unit tmk_plot_size_unit(double most_bytes);
struct tmk_plot_unit tmk_plot_time_unit(uint64_t ns);

/* The distance between tics for about `n` of them in the range: 1, 2 or 5 times a power of ten. */
double tmk_plot_tic(double range, unsigned n);

/* ---- texts ---- */

/* Make the title "a.tmk, rank 1, cuda:0: " with the rest behind; the caller's. */
char *tmk_plot_title(const struct tmk_plot *plot, const char *format, ...)
    __attribute__((returns_nonnull, format(printf, 2, 3)));

/* ---- OOMs ---- */

struct tmk_oom;
struct tmk_ooms;

/* Make "out of memory: 27.0 MiB requested, train.py:20"; the caller's. */
char *tmk_plot_oom_text(const struct tmk_oom *oom) __attribute__((returns_nonnull));
/* Make a sentence about the last OOM of the plot's device and the number of them; the caller's,
 * NULL: there was none. */
char *tmk_plot_ooms_text(const struct tmk_plot *plot, const struct tmk_ooms *ooms);
/* The same for a picture that has no other use for the OOMs: it replays the process. 0, or an exit
 * status after a message. */
int tmk_plot_read_ooms(const struct tmk_plot *plot, char **ret_text);

/* ---- the sweep ---- */

/* Replay the process for these visitors, with progress on stderr. 0, or an exit status after a
 * message; then *rp is the caller's to fini. */
int tmk_plot_replay(const struct tmk_plot *plot, const struct tmk_visitor *visitors, uint32_t n,
                    struct tmk_replay *rp);
/* Say that there is nothing to draw. Returns TMK_EXIT_FINDING. */
int tmk_plot_nothing(const struct tmk_plot *plot);
/* Say why drawing failed, mostly for lack of memory. Returns TMK_EXIT_FINDING. */
int tmk_plot_failed(const struct tmk_plot *plot, const struct tmk_error *err);

#endif
