/* SPDX-License-Identifier: MIT */
/* cli/plot/plot_layers.c - see plot_layers.h. */
#include "cli/plot/plot_layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/plot/plot.h"
#include "draw/palette.h"
#include "passes/group.h"
#include "passes/timeline.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/reader.h"
#include "trace/replay.h"

#define THIN 0.004 /* share of the picture's height */

/* ---- stages ---- */

/* Whether a span joins the last one: several threads may have a stage open at once (backward, on
 * autograd's threads). */
static bool joins_last(struct tmk_plot_layers *l, const char *name, uint64_t start_ns,
                       uint64_t end_ns)
{
    uint64_t n = l->n_spans < TMK_LAYERS_MOST_SPANS ? l->n_spans : TMK_LAYERS_MOST_SPANS;
    struct tmk_stage_span *last = n ? &l->spans[n - 1] : NULL;
    if (!last || strcmp(last->name, name) != 0 || start_ns > last->end_ns)
        return false;
    last->start_ns = start_ns < last->start_ns ? start_ns : last->start_ns;
    last->end_ns = end_ns;
    return true;
}

static void on_owner_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                           struct tmk_block *b)
{
    (void)b;
    struct tmk_plot_layers *l = arg;
    if (ev->kind != TMK_KIND_POP || rp->closed.kind != TIDEMARK_STAGE)
        return;
    const char *name = tmk_reader_string(l->plot->p->reader, rp->closed.name);
    uint64_t start_ns = rp->closed.start_ns;
    bool is_seen =
        !l->plot->has_window || (ev->time_ns > l->plot->start_ns && start_ns < l->plot->end_ns);
    if (!name || !is_seen || joins_last(l, name, start_ns, ev->time_ns))
        return;
    if (l->n_spans < TMK_LAYERS_MOST_SPANS)
        l->spans[l->n_spans] = (struct tmk_stage_span){name, start_ns, ev->time_ns};
    l->n_spans++;
}

/* ---- the two sweeps ---- */

static int read_timeline(struct tmk_plot_layers *l, const struct tmk_plot *plot)
{
    struct tmk_error err = {0};
    struct tmk_replay rp;
    uint64_t *times = tmk_plot_axis_cut(&l->axis, l->n_parts);
    int rc = tmk_timeline_open_at(times, l->n_parts, &l->timeline);
    free(times);
    if (rc < 0 || tmk_ooms_open(plot->p, &l->ooms) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitors[] = {tmk_timeline_visitor(l->timeline),
                                     tmk_ooms_visitor(l->ooms),
                                     {.arg = l, .event = on_owner_event}};
    int status = tmk_plot_replay(plot, visitors, TMK_N(visitors), &rp);
    if (status != 0)
        return status;
    bool good = tmk_timeline_finish(l->timeline) == 0 && tmk_ooms_finish(l->ooms, &err) == 0 &&
                tmk_labels_init(&l->labels, plot->p, &rp.state) == 0;
    tmk_replay_fini(&rp);
    return good ? 0 : tmk_plot_failed(plot, &err);
}

/* Make the single sweep of --by owner. */
static int read_holdings(struct tmk_plot_layers *l, const struct tmk_plot *plot)
{
    struct tmk_error err = {0};
    struct tmk_replay rp;
    uint64_t *times = tmk_plot_axis_cut(&l->axis, l->n_parts);
    int rc = tmk_holdings_open(plot->p, plot->device, times, l->n_parts, &l->holdings);
    free(times);
    if (rc < 0 || tmk_ooms_open(plot->p, &l->ooms) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitors[] = {tmk_holdings_visitor(l->holdings),
                                     tmk_ooms_visitor(l->ooms),
                                     {.arg = l, .event = on_owner_event}};
    int status = tmk_plot_replay(plot, visitors, TMK_N(visitors), &rp);
    if (status != 0)
        return status;
    bool good = tmk_holdings_finish(l->holdings, &err) == 0 && tmk_ooms_finish(l->ooms, &err) == 0;
    tmk_replay_fini(&rp);
    l->parts = tmk_holdings_parts(l->holdings);
    return good ? 0 : tmk_plot_failed(plot, &err);
}

static int find_layers_device(struct tmk_plot_layers *l, const struct tmk_plot *plot, uint32_t *ret)
{
    for (uint32_t i = 0; i < tmk_timeline_n_devices(l->timeline); i++) {
        if (tmk_timeline_device(l->timeline, i) == plot->device) {
            l->parts = tmk_timeline_parts(l->timeline, i);
            *ret = i;
            return 0;
        }
    }
    return tmk_plot_nothing(plot);
}

static int read_block_layers(struct tmk_plot_layers *l, const struct tmk_plot *plot, enum tmk_by by)
{
    struct tmk_error err = {0};
    struct tmk_replay rp;
    uint32_t device = 0;
    int status = find_layers_device(l, plot, &device);
    if (status != 0)
        return status;
    if (tmk_layers_open(&l->labels, by, l->timeline, device, &l->block_layers) < 0)
        return tmk_plot_failed(plot, &err);
    struct tmk_visitor visitor = tmk_layers_visitor(l->block_layers);
    status = tmk_plot_replay(plot, &visitor, 1, &rp);
    if (status != 0)
        return status;
    int rc = tmk_layers_finish(l->block_layers, &rp, &err);
    tmk_replay_fini(&rp);
    return rc < 0 ? tmk_plot_failed(plot, &err) : 0;
}

/* ---- choosing layers ---- */

static void measure_layers(struct tmk_plot_layers *l)
{
    for (uint32_t i = 0; i < l->n_parts; i++) {
        uint64_t bytes = l->parts[i].max_bytes;
        l->most_bytes = bytes > l->most_bytes ? bytes : l->most_bytes;
    }
}

static int by_layer_most(const void *va, const void *vb)
{
    const struct tmk_layer *a = va, *b = vb;
    return a->most != b->most ? (a->most > b->most ? -1 : 1) : strcmp(a->key, b->key);
}

static int by_pile(const void *va, const void *vb)
{
    const struct tmk_layer *a = va, *b = vb;
    unsigned x = tmk_palette_rank(a->key), y = tmk_palette_rank(b->key);
    return x != y ? (x < y ? -1 : 1) : by_layer_most(va, vb);
}

static void add_plot_layer(struct tmk_plot_layers *l, const char *key, const uint64_t *bytes)
{
    struct tmk_layer *layer = &l->layers[l->n_layers++];
    layer->key = key ? key : "unknown";
    layer->bytes = tmk_xcalloc(l->n_parts, sizeof *layer->bytes);
    memcpy(layer->bytes, bytes, l->n_parts * sizeof *layer->bytes);
    for (uint32_t i = 0; i < l->n_parts; i++)
        layer->most = bytes[i] > layer->most ? bytes[i] : layer->most;
}

static void take_layers(struct tmk_plot_layers *l)
{
    uint32_t n = l->block_layers ? tmk_layers_n(l->block_layers) : tmk_holdings_n(l->holdings);
    l->layers = tmk_xcalloc((size_t)n + 1, sizeof *l->layers);
    for (uint32_t k = 0; k < n; k++)
        if (l->block_layers)
            add_plot_layer(l, tmk_layers_key(l->block_layers, k),
                           tmk_layers_bytes(l->block_layers, k));
        else
            add_plot_layer(l, tmk_holdings_owner(l->holdings, k),
                           tmk_holdings_bytes(l->holdings, k));
}

/* Merge the layers behind the largest `kept` into "other", which is made from one of them if there
 * is none. */
static void merge_from(struct tmk_plot_layers *l, uint32_t kept)
{
    struct tmk_layer *to = NULL;
    for (uint32_t k = 0; k < kept; k++)
        if (strcmp(l->layers[k].key, "other") == 0)
            to = &l->layers[k];
    if (!to && kept < l->n_layers) {
        to = &l->layers[kept++];
        to->key = "other";
    }
    for (uint32_t k = kept; k < l->n_layers; k++) {
        for (uint32_t i = 0; i < l->n_parts; i++)
            to->bytes[i] += l->layers[k].bytes[i];
        free(l->layers[k].bytes);
    }
    l->n_layers = kept;
}

static void merge_small(struct tmk_plot_layers *l, uint32_t most)
{
    qsort(l->layers, l->n_layers, sizeof *l->layers, by_layer_most);
    uint32_t kept = l->n_layers > most ? most - 1 : l->n_layers;
    while (kept > 1 && (double)l->layers[kept - 1].most < THIN * (double)l->most_bytes)
        kept--;
    merge_from(l, kept);
    qsort(l->layers, l->n_layers, sizeof *l->layers, by_pile);
}

int tmk_plot_layers_read(struct tmk_plot_layers *l, const struct tmk_plot *plot, const char *by,
                         uint32_t n_parts, uint32_t most)
{
    enum tmk_by key = TMK_BY_CATEGORY;
    bool is_owner = strcmp(by, "owner") == 0;
    *l = (struct tmk_plot_layers){.plot = plot, .n_parts = n_parts};
    if (!is_owner && !tmk_by_find(by, &key))
        return TMK_EXIT_USAGE; /* not one of the option's choices; the parser has reported it */
    l->spans = tmk_xcalloc(TMK_LAYERS_MOST_SPANS, sizeof *l->spans);
    int status = tmk_plot_axis_init(&l->axis, plot);
    if (status == 0)
        status = is_owner ? read_holdings(l, plot) : read_timeline(l, plot);
    if (status == 0 && !is_owner)
        status = read_block_layers(l, plot, key);
    if (status != 0)
        return status;
    measure_layers(l);
    take_layers(l);
    if (l->most_bytes == 0)
        return tmk_plot_nothing(plot);
    if (most)
        merge_small(l, most);
    return 0;
}

void tmk_plot_layers_fini(struct tmk_plot_layers *l)
{
    for (uint32_t k = 0; k < l->n_layers; k++)
        free(l->layers[k].bytes);
    free(l->layers);
    free(l->spans);
    tmk_plot_axis_fini(&l->axis);
    tmk_layers_close(l->block_layers);
    tmk_holdings_close(l->holdings);
    tmk_labels_fini(&l->labels);
    tmk_ooms_close(l->ooms);
    tmk_timeline_close(l->timeline);
}
