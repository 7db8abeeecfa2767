/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_layers.h - allocated memory over time, read from a process for a picture: two
 * sweeps of the trace (one by owner), then the layers in stacking order.
 *
 * Layers that are too thin to be seen, and all but the largest if there are many, are merged into
 * "other". So the stack still adds up to the allocated bytes. */
#ifndef TMK_CLI_PLOT_PLOT_LAYERS_H
#define TMK_CLI_PLOT_PLOT_LAYERS_H

#include "cli/plot/plot_axis.h"
#include "passes/group.h"
#include "passes/holdings.h"
#include "passes/layers.h"
#include "passes/oom/ooms.h"

struct tmk_layer {
    const char *key; /* never NULL: "unknown" */
    uint64_t *bytes; /* by part */
    uint64_t most;
};

/* A stage that ended, as far as it lies in the window. */
struct tmk_stage_span {
    const char *name;
    uint64_t start_ns, end_ns; /* trace time */
};

struct tmk_plot_layers {
    const struct tmk_plot *plot;
    struct tmk_plot_axis axis;
    struct tmk_timeline *timeline;
    struct tmk_ooms *ooms;
    struct tmk_labels labels;
    struct tmk_layers *block_layers;
    struct tmk_holdings *holdings; /* by owner: instead of timeline, labels and block_layers */
    const struct tmk_timeline_part *parts;
    uint32_t n_parts;
    struct tmk_layer *layers;
    uint32_t n_layers;
    struct tmk_stage_span *spans; /* the first ones; n_spans counts all */
    uint64_t n_spans;
    uint64_t most_bytes; /* allocated */
};

enum { TMK_LAYERS_MOST_SPANS = 256 };

/* Read the layers of the plot's process and device, in `n_parts` parts of time, by a key of
 * tmk_by_find() or, for segments from the driver, by "owner". At most `most` layers; 0: all of
 * them, without "other". 0, or an exit status after a message; call fini in both cases. */
int tmk_plot_layers_read(struct tmk_plot_layers *l, const struct tmk_plot *plot, const char *by,
                         uint32_t n_parts, uint32_t most);
void tmk_plot_layers_fini(struct tmk_plot_layers *l);

#endif
