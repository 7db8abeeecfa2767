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
#include "cli/front/command.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_json.h"
#include "cli/sweep/sweep_kept.h"
#include "kit/progress.h"
#include "passes/peak.h"

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

/* Write rows; false: they are not available. */
static bool put_peak_rows(struct tmk_json *j, const char *key, struct tmk_peak *k, enum tmk_by by)
{
    const struct tmk_peak_row *rows;
    uint64_t n = 0;
    if (!k || tmk_peak_group(k, by, &rows, &n, NULL) != 0)
        return false;
    tmk_json_array(j, key);
    for (uint64_t i = 0; i < n && i < MOST_ROWS; i++) {
        tmk_json_object(j, NULL);
        tmk_json_text(j, "key", rows[i].key);
        tmk_json_u64(j, "bytes", rows[i].bytes);
        tmk_json_u64(j, "blocks", rows[i].n_blocks);
        tmk_json_end(j);
    }
    tmk_json_end(j);
    return true;
}

static void put_trace(struct tmk_json *j, const struct tmk_results *r, uint32_t number,
                      struct tmk_sweep_kept *kept)
{
    static const struct {
        const char *key;
        enum tmk_by by;
    } parts[] = {{"modules", TMK_BY_MODULE}, {"lines", TMK_BY_SITE}};
    const struct tmk_cell *c = &r->cells[number];
    struct tmk_run *run = NULL;
    struct tmk_peak *k = NULL;
    if (c->run) {
        char *path = tmk_xformat("%s/%s", r->folder, c->run);
        if (tmk_run_open(path, &run, NULL) == 0) {
            struct tmk_process *p = find_cell_process(run, c);
            k = p ? replay_peak(p, c) : NULL;
        }
        free(path);
    }
    for (size_t i = 0; i < TMK_N(parts); i++)
        if (!put_peak_rows(j, parts[i].key, k, parts[i].by) &&
            !tmk_sweep_kept_put(kept, j, parts[i].key, number + 1, c->peak_allocated))
            tmk_json_null(j, parts[i].key);
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

static void put_operation_rows(struct tmk_json *j, const struct tmk_cell *c)
{
    tmk_json_array(j, "operations");
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct tmk_cell_stage *s = &c->stages[i];
        if (!is_operation(s->name))
            continue;
        uint64_t alive = 0;
        for (uint32_t k = 0; k < c->at_stage.n; k++)
            if (strcmp(c->at_stage.rows[k].key, s->name) == 0)
                alive = c->at_stage.rows[k].bytes;
        tmk_json_object(j, NULL);
        tmk_json_text(j, "name", s->name);
        tmk_json_u64(j, "peak", s->peak);
        tmk_json_u64(j, "allocated", s->allocated);
        tmk_json_u64(j, "alive_at_peak", alive);
        tmk_json_u64(j, "times", s->n_times);
        tmk_json_double(j, "seconds", (double)s->ns / 1e9);
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void put_cell_detail(struct tmk_json *j, const struct tmk_results *r, uint32_t number,
                            struct tmk_sweep_kept *kept)
{
    const struct tmk_cell *c = &r->cells[number];
    tmk_json_object(j, NULL);
    tmk_json_u64(j, "number", number + 1);
    tmk_sweep_json_config(j, r, c);
    tmk_json_u64(j, "repeat", c->repeat + 1);
    tmk_json_text(j, "outcome", tmk_cell_outcome_name(c->outcome));
    tmk_cell_json_bytes(j, "peak_allocated", c->peak_allocated);
    tmk_cell_json_shares(j, "by_component", &c->components);
    tmk_cell_json_shares(j, "by_category", &c->categories);
    tmk_cell_json_shares(j, "by_stage", &c->at_stage);
    tmk_cell_json_stages(j, c, true);
    put_operation_rows(j, c);
    tmk_cell_json_ranks(j, c);
    put_trace(j, r, number, kept);
    tmk_json_end(j);
}

void tmk_sweep_write_detailed(FILE *out, const struct tmk_sweep_answer *v)
{
    struct tmk_json j;
    struct tmk_progress progress;
    struct tmk_sweep_kept kept;
    char *before = tmk_xformat("%s/detailed_memory_results.json", v->r->folder);
    tmk_sweep_kept_read(&kept, before);
    free(before);
    tmk_progress_init(&progress, stderr, "reading the configurations' traces");
    tmk_json_init(&j, out, 2);
    tmk_json_object(&j, NULL);
    tmk_json_text(&j, "tidemark", TMK_VERSION);
    tmk_json_text(&j, "title", v->r->title);
    tmk_json_array(&j, "results");
    for (uint32_t c = 0; c < v->r->n_cells; c++) {
        tmk_progress_tell(&progress, c, v->r->n_cells);
        if (tmk_cell_was_run(&v->r->cells[c]))
            put_cell_detail(&j, v->r, c, &kept);
    }
    tmk_json_end(&j);
    tmk_json_end(&j);
    tmk_progress_fini(&progress);
    tmk_sweep_kept_fini(&kept);
}
