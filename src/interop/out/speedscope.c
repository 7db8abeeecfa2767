/* SPDX-License-Identifier: MIT */
/* interop/out/speedscope.c - writes bytes by stack as https://www.speedscope.app opens them
 * (file-format-schema.json): all frames once, then three profiles, each a list of stacks and
 * their weights: alive at the moment, allocated in all, alive at the end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "interop/out/export.h"
#include "interop/out/stack_sums.h"
#include "kit/amount.h"
#include "kit/json.h"
#include "model/run.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/reader.h"

struct page {
    const struct tmk_export *x;
    const struct tmk_stack_sums *sums;
    struct tmk_json json;
    uint32_t *frames; /* by id: number in the file + 1; the last stands for "no stack" */
    uint32_t n_ids, n_frames;
};

static bool is_used_sum(const struct tmk_stack_sum *s)
{
    return s->n_blocks[TMK_EXPORT_AT] || s->n_blocks[TMK_EXPORT_ALLOCATED] ||
           s->n_blocks[TMK_EXPORT_LEFT];
}

static bool stack_of_sum(const struct page *g, uint32_t stack, struct tmk_stack *ret)
{
    return tmk_reader_stack(g->x->p->reader, stack, ret) && ret->n_frames > 0;
}

/* ---- frames ---- */

static void write_profile_frame(struct page *g, uint32_t id)
{
    struct tmk_frame f = {0};
    char text[TMK_FRAME_TEXT_BYTES];
    uint32_t place = id < g->n_ids ? id : g->n_ids;
    if (g->frames[place])
        return;
    g->frames[place] = ++g->n_frames;
    bool is_known = place < g->n_ids && tmk_process_frame(g->x->p, id, &f);
    bool has_name = f.function && *f.function;
    tmk_json_object(&g->json, NULL);
    tmk_json_text(&g->json, "name",
                  place == g->n_ids ? "[no stack]"
                  : has_name        ? f.function
                                    : tmk_frame_text(is_known ? &f : NULL, true, text));
    if (f.file && *f.file)
        tmk_json_text(&g->json, "file", f.file);
    if (f.line)
        tmk_json_u64(&g->json, "line", f.line);
    tmk_json_end(&g->json);
}

static void write_shared_frames(struct page *g)
{
    struct tmk_stack frames;
    tmk_json_object(&g->json, "shared");
    tmk_json_array(&g->json, "frames");
    for (uint32_t i = 0; i < g->sums->n; i++) {
        if (!is_used_sum(&g->sums->stacks[i]))
            continue;
        if (!stack_of_sum(g, i, &frames))
            write_profile_frame(g, g->n_ids);
        else
            for (uint32_t k = 0; k < frames.n_frames; k++)
                write_profile_frame(g, frames.frames[k]);
    }
    tmk_json_end(&g->json);
    tmk_json_end(&g->json);
}

/* ---- profiles ---- */

static void write_profile_sample(struct page *g, uint32_t stack)
{
    struct tmk_stack frames;
    tmk_json_array(&g->json, NULL);
    if (!stack_of_sum(g, stack, &frames))
        tmk_json_u64(&g->json, NULL, g->frames[g->n_ids] - 1);
    else
        for (uint32_t k = frames.n_frames; k-- > 0;) {
            uint32_t id = frames.frames[k];
            tmk_json_u64(&g->json, NULL, g->frames[id < g->n_ids ? id : g->n_ids] - 1);
        }
    tmk_json_end(&g->json);
}

static void write_profile(struct page *g, enum tmk_export_what what, const char *name)
{
    tmk_json_object(&g->json, NULL);
    tmk_json_text(&g->json, "type", "sampled");
    tmk_json_text(&g->json, "name", name);
    tmk_json_text(&g->json, "unit", "bytes");
    tmk_json_u64(&g->json, "startValue", 0);
    tmk_json_u64(&g->json, "endValue", g->sums->total.bytes[what]);
    tmk_json_array(&g->json, "samples");
    for (uint32_t i = 0; i < g->sums->n; i++)
        if (g->sums->stacks[i].bytes[what])
            write_profile_sample(g, i);
    tmk_json_end(&g->json);
    tmk_json_array(&g->json, "weights");
    for (uint32_t i = 0; i < g->sums->n; i++)
        if (g->sums->stacks[i].bytes[what])
            tmk_json_u64(&g->json, NULL, g->sums->stacks[i].bytes[what]);
    tmk_json_end(&g->json);
    tmk_json_end(&g->json);
}

static void write_profiles(struct page *g)
{
    char device[24], time[TMK_AMOUNT_BYTES], name[128];
    (void)tmk_device_name(g->x->device, device);
    tmk_json_array(&g->json, "profiles");
    if (g->sums->is_found) {
        snprintf(name, sizeof name, "%s: alive %s%s", device,
                 g->x->moment.kind == TMK_MOMENT_PEAK ? "at the peak, after " : "after ",
                 tmk_time_text(g->sums->at_ns, time));
        write_profile(g, TMK_EXPORT_AT, name);
    }
    snprintf(name, sizeof name, "%s: allocated in all", device);
    write_profile(g, TMK_EXPORT_ALLOCATED, name);
    snprintf(name, sizeof name, "%s: alive at the end", device);
    write_profile(g, TMK_EXPORT_LEFT, name);
    tmk_json_end(&g->json);
}

static void write_page(struct page *g, FILE *out)
{
    tmk_json_init(&g->json, out, 3);
    tmk_json_object(&g->json, NULL);
    tmk_json_text(&g->json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    tmk_json_text(&g->json, "exporter", "tidemark " TMK_VERSION);
    tmk_json_text(&g->json, "name", g->x->p->command);
    tmk_json_u64(&g->json, "activeProfileIndex",
                 g->sums->is_found ? (unsigned)g->x->what
                 : g->x->what      ? (unsigned)g->x->what - 1
                                   : 0);
    write_shared_frames(g);
    write_profiles(g);
    tmk_json_end(&g->json);
}

int tmk_export_speedscope(const struct tmk_export *x, FILE *out, struct tmk_export_notes *ret,
                          struct tmk_error *err)
{
    struct tmk_stack_sums sums;
    int rc = tmk_stack_sums_make(x, &sums, err);
    struct page g = {.x = x, .sums = &sums, .n_ids = tmk_reader_n_frames(x->p->reader)};
    *ret = (struct tmk_export_notes){.at_bytes = sums.total.bytes[TMK_EXPORT_AT]};
    if (rc == 0)
        rc = tmk_stack_sums_check(x, &sums, err);
    if (rc == 0) {
        g.frames = calloc((size_t)g.n_ids + 1, sizeof *g.frames);
        rc = g.frames ? 0 : tmk_fail(err, TMK_ENOMEM, "no memory for the frames");
    }
    if (rc == 0)
        write_page(&g, out);
    for (uint32_t i = 0; rc == 0 && i < sums.n; i++)
        ret->n_events += is_used_sum(&sums.stacks[i]);
    free(g.frames);
    tmk_stack_sums_fini(&sums);
    return rc;
}
