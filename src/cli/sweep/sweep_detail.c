/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_detail.c - detailed_memory_results.json: the allocated memory at each cell's
 * peak, down to modules and lines, and the needs of its stages and operations.
 *
 * The journal has a cell's shares; modules and lines are many and are read from the cell's trace.
 * If the trace is gone, they are taken from the earlier file. docs/sweep-files.md describes the
 * keys. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/answers/answer_json.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "cli/sweep/sweep_kept.h"
#include "kit/progress.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "sweep/cell_json.h"
#include "sweep/results.h"
#include "trace/reader.h"
#include "trace/replay.h"

enum { MOST_ROWS = 200 };

/* ---- from the trace ---- */

/* Find the process that the cell's figures come from: the one with its peak. */
static struct tmk_process *find_cell_process(struct tmk_run *run, const struct tmk_cell *c)
{
    for (uint32_t i = 0; i < c->n_ranks; i++)
        for (uint32_t k = 0; k < tmk_run_n_processes(run); k++) {
            struct tmk_process *p = tmk_run_process(run, k);
            if (c->ranks[i].peak_allocated == c->peak_allocated && p->pid == c->ranks[i].pid)
                return p;
        }
    return tmk_run_n_processes(run) == 1 ? tmk_run_process(run, 0) : NULL;
}

static struct tmk_peak *close_peak(struct tmk_peak *k)
{
    tmk_peak_close(k);
    return NULL;
}

/* Replay the peak of the cell's device; NULL: this is not possible. */
static struct tmk_peak *replay_peak(struct tmk_process *p, const struct tmk_cell *c)
{
    struct tmk_moment moment = {.kind = TMK_MOMENT_PEAK, .any_device = true};
    char name[24];
    for (uint64_t i = 0; c->device && i < tmk_reader_n_step_rows(p->reader); i++) {
        uint16_t device = tmk_reader_step_row(p->reader, i)->device;
        if (strcmp(tmk_device_name(device, name), c->device) == 0) {
            moment.any_device = false;
            moment.device = device;
        }
    }
    struct tmk_peak *k = NULL;
    struct tmk_replay rp;
    if (tmk_peak_open(p, &moment, &k) != 0)
        return NULL;
    struct tmk_visitor visitor = tmk_peak_visitor(k);
    if (tmk_process_sweep(p, &visitor, 1, &rp, NULL) != 0)
        return close_peak(k);
    int rc = tmk_peak_finish(k, &rp, NULL);
    tmk_replay_fini(&rp);
    return rc == 0 && tmk_peak_found(k) ? k : close_peak(k);
}

static void put_trace(struct tmk_tree *t, const struct tmk_results *r, uint32_t number,
                      struct tmk_sweep_kept *kept)
{
    static const struct {
        const char *key;
        enum tmk_by by;
    } parts[] = {{"modules", TMK_BY_MODULE}, {"lines", TMK_BY_SITE}};
    const struct tmk_cell *c = &r->cells[number];
    struct tmk_run *run = NULL;
    struct tmk_peak *k = NULL;
    const struct tmk_peak_row *rows;
    uint64_t n;
    if (c->run) {
        char *path = tmk_xformat("%s/%s", r->folder, c->run);
        if (tmk_run_open(path, &run, NULL) == 0) {
            struct tmk_process *p = find_cell_process(run, c);
            k = p ? replay_peak(p, c) : NULL;
        }
        free(path);
    }
    for (size_t i = 0; i < TMK_N(parts); i++)
        if (k && tmk_peak_group(k, parts[i].by, &rows, &n, NULL) == 0)
            tmk_answer_put_rows(t, parts[i].key, rows, n, MOST_ROWS);
        else
            tmk_sweep_kept_put(kept, t, parts[i].key, number + 1, c->peak_allocated);
    tmk_peak_close(k);
    tmk_run_close(run);
}

/* ---- a cell ---- */

/* Whether a stage is an operation: forward, backward and optimizer are; earlier stages are
 * set-up. */
static bool is_operation(const char *stage)
{
    return strcmp(stage, "forward") == 0 || strcmp(stage, "backward") == 0 ||
           strcmp(stage, "optimizer") == 0;
}

static void put_operation_rows(struct tmk_tree *t, const struct tmk_cell *c)
{
    tmk_tree_list(t, "operations");
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct tmk_cell_stage *s = &c->stages[i];
        if (!is_operation(s->name))
            continue;
        uint64_t alive = 0;
        for (uint32_t k = 0; k < c->at_stage.n; k++)
            if (strcmp(c->at_stage.rows[k].key, s->name) == 0)
                alive = c->at_stage.rows[k].bytes;
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "name", s->name);
        tmk_tree_u64(t, "peak", s->peak);
        tmk_tree_u64(t, "allocated", s->allocated);
        tmk_tree_u64(t, "alive_at_peak", alive);
        tmk_tree_u64(t, "times", s->n_times);
        tmk_tree_double(t, "seconds", (double)s->ns / 1e9);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
}

static void put_cell_detail(struct tmk_tree *t, const struct tmk_results *r, uint32_t number,
                            struct tmk_sweep_kept *kept)
{
    const struct tmk_cell *c = &r->cells[number];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "number", number + 1);
    tmk_sweep_json_config(t, r, c);
    tmk_tree_u64(t, "repeat", c->repeat + 1);
    tmk_tree_text(t, "outcome", tmk_cell_outcome_name(c->outcome));
    tmk_tree_bytes(t, "peak_allocated", c->peak_allocated);
    tmk_cell_json_shares(t, "by_component", &c->components);
    tmk_cell_json_shares(t, "by_category", &c->categories);
    tmk_cell_json_shares(t, "by_stage", &c->at_stage);
    tmk_cell_json_stages(t, c, true);
    put_operation_rows(t, c);
    tmk_cell_json_ranks(t, c);
    put_trace(t, r, number, kept);
    tmk_tree_end(t);
}

void tmk_sweep_write_detailed(FILE *out, const struct tmk_sweep_answer *v)
{
    struct tmk_tree t;
    struct tmk_progress progress;
    struct tmk_sweep_kept kept;
    char *before = tmk_xformat("%s/detailed_memory_results.json", v->r->folder);
    tmk_sweep_kept_read(&kept, before);
    free(before);
    tmk_progress_init(&progress, stderr, "reading the configurations' traces");
    tmk_tree_init_json(&t, out, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "tidemark", TMK_VERSION);
    tmk_tree_text(&t, "title", v->r->title);
    tmk_tree_list(&t, "results");
    for (uint32_t c = 0; c < v->r->n_cells; c++) {
        tmk_progress_tell(&progress, c, v->r->n_cells);
        if (tmk_cell_was_run(&v->r->cells[c]))
            put_cell_detail(&t, v->r, c, &kept);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
    tmk_progress_fini(&progress);
    tmk_sweep_kept_fini(&kept);
}
