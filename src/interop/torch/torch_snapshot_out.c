/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_snapshot_out.c - writes a process as a snapshot of torch's allocator, which
 * memory_viz opens:
 *
 *     {"tidemark": {...}, "allocator_settings": {...},
 *      "external_annotations": [steps, stages and marks],
 *      "device_traces": [[every allocation and free], ...], one list a device
 *      "segments": [what there is at the end, and the blocks in it]}
 *
 * Each list takes a sweep, since they follow each other in the file. Segments come last, because a
 * sweep knows them at its end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "interop/out/export.h"
#include "interop/out/pickle_out.h"
#include "interop/torch/torch_blocks.h"
#include "interop/torch/torch_entries.h"
#include "interop/torch/torch_segments.h"
#include "interop/torch/torch_trace.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "passes/steps.h"
#include "tidemark/tidemark.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum { MAX_INDEX = 256 };

/* ---- segments ---- */

static void write_snapshot_block(struct tmk_torch_file *f, uint64_t address, uint64_t size_bytes,
                                 const struct tmk_torch_block *block)
{
    tmk_torch_begin_dict(f);
    tmk_torch_number(f, TMK_WORD_address, address);
    tmk_torch_number(f, TMK_WORD_size, size_bytes);
    tmk_torch_number(f, TMK_WORD_requested_size, block ? block->requested_bytes : 0);
    tmk_torch_pair(f, TMK_WORD_state,
                   !block           ? TMK_WORD_inactive
                   : block->is_held ? TMK_WORD_active_pending_free
                                    : TMK_WORD_active_allocated);
    tmk_torch_frames(f, block ? block->stack : 0);
    tmk_torch_end_dict(f);
}

struct block_part { /* the blocks of one segment */
    const struct tmk_torch_block *blocks;
    uint64_t n;
};

/* Readers compute addresses as sums of sizes, so the gaps between blocks are written as blocks too.
 * */
static void write_snapshot_blocks(struct tmk_torch_file *f, const struct tmk_torch_segment *s,
                                  const struct block_part *part)
{
    struct tmk_pickler *k = &f->pickle;
    uint64_t at = s->address, end = s->address + s->size_bytes;
    tmk_torch_word(f, TMK_WORD_blocks);
    tmk_pickler_list(k);
    for (uint64_t i = 0; i < part->n; i++) {
        const struct tmk_torch_block *block = &part->blocks[i];
        if (block->address < at) /* it overlaps the one before: a free was lost */
            continue;
        tmk_pickler_mark(k);
        if (block->address > at)
            write_snapshot_block(f, at, block->address - at, NULL);
        write_snapshot_block(f, block->address, block->size_bytes, block);
        tmk_pickler_append_items(k);
        at = block->address + block->size_bytes;
    }
    tmk_pickler_mark(k);
    if (at < end)
        write_snapshot_block(f, at, end - at, NULL);
    tmk_pickler_append_items(k);
}

/* True for the small pool. The size of an expandable segment does not tell, because it grows with
 * the requests. Its blocks tell or, without blocks, that segments of the large pool grow by 20 MiB.
 * */
static bool is_small(const struct tmk_torch_segment *s, uint64_t largest_bytes)
{
    if (s->kind != TMK_TORCH_MAPPED || s->size_bytes <= TMK_ALLOC_SMALL_SEGMENT)
        return s->size_bytes <= TMK_ALLOC_SMALL_SEGMENT;
    return largest_bytes ? largest_bytes <= TMK_ALLOC_SMALL
                         : s->size_bytes % TMK_ALLOC_LARGE_SEGMENT != 0;
}

static void write_snapshot_segment(struct tmk_torch_file *f, const struct tmk_torch_segment *s,
                                   unsigned index, const struct block_part *part)
{
    uint64_t bytes = 0, active = 0, requested = 0, largest = 0;
    for (uint64_t i = 0; i < part->n; i++) {
        bool is_held = part->blocks[i].is_held;
        active += part->blocks[i].size_bytes;
        bytes += is_held ? 0 : part->blocks[i].size_bytes;
        requested += part->blocks[i].requested_bytes;
        if (part->blocks[i].size_bytes > largest)
            largest = part->blocks[i].size_bytes;
    }
    tmk_torch_next(f);
    tmk_torch_begin_dict(f);
    tmk_torch_number(f, TMK_WORD_device, index);
    tmk_torch_number(f, TMK_WORD_address, s->address);
    tmk_torch_number(f, TMK_WORD_total_size, s->size_bytes);
    tmk_torch_number(f, TMK_WORD_allocated_size, bytes);
    tmk_torch_number(f, TMK_WORD_active_size, active);
    tmk_torch_number(f, TMK_WORD_requested_size, requested);
    tmk_torch_number(f, TMK_WORD_stream, s->stream);
    tmk_torch_pair(f, TMK_WORD_segment_type,
                   is_small(s, largest) ? TMK_WORD_small : TMK_WORD_large);
    tmk_torch_word(f, TMK_WORD_segment_pool_id);
    tmk_pickler_int(&f->pickle, 0);
    tmk_pickler_int(&f->pickle, 0);
    tmk_pickler_pair(&f->pickle);
    tmk_torch_word(f, TMK_WORD_is_expandable);
    tmk_pickler_bool(&f->pickle, s->kind != TMK_TORCH_ALLOCATED);
    tmk_torch_frames(f, s->stack);
    write_snapshot_blocks(f, s, part);
    tmk_torch_end_dict(f);
}

/* True when memory that was mapped piece by piece is one segment. */
static bool continues_segment(const struct tmk_torch_segment *a, const struct tmk_torch_segment *b)
{
    return a->kind == b->kind && a->kind != TMK_TORCH_ALLOCATED && a->stream == b->stream &&
           a->address + a->size_bytes == b->address;
}

static void write_left_segments(struct tmk_torch_file *f, const struct tmk_torch_left *left,
                                unsigned index)
{
    uint64_t block = 0;
    for (uint64_t i = 0; i < left->n_segments;) {
        struct tmk_torch_segment s = left->segments[i++];
        while (i < left->n_segments && continues_segment(&s, &left->segments[i]))
            s.size_bytes += left->segments[i++].size_bytes;
        while (block < left->n_blocks && left->blocks[block].address < s.address)
            block++;
        struct block_part part = {.blocks = &left->blocks[block]};
        while (block < left->n_blocks && left->blocks[block].address - s.address < s.size_bytes) {
            block++;
            part.n++;
        }
        write_snapshot_segment(f, &s, index, &part);
    }
}

/* ---- annotations ---- */

struct annotations {
    struct tmk_torch_file *file;
    uint64_t from_ns, until_ns;
    unsigned device;
    int64_t step; /* the open one; TMK_NO_STEP: none */
    uint64_t last_ns;
};

/* Write a named annotation; with name 0 it is a step. */
static void write_annotation(struct annotations *a, uint32_t name, uint64_t ns,
                             enum tmk_torch_word stage)
{
    char text[40];
    tmk_torch_next(a->file);
    tmk_torch_begin_dict(a->file);
    tmk_torch_word(a->file, TMK_WORD_name);
    if (name) {
        tmk_torch_string(a->file, name);
    } else {
        snprintf(text, sizeof text, "step %" PRId64, a->step);
        tmk_pickler_text(&a->file->pickle, text);
    }
    tmk_torch_pair(a->file, TMK_WORD_stage, stage);
    tmk_torch_number(a->file, TMK_WORD_device, a->device);
    tmk_torch_time(a->file, ns);
    tmk_torch_end_dict(a->file);
}

static void on_step(struct annotations *a, const struct tmk_event *ev)
{
    if (a->step != TMK_NO_STEP)
        write_annotation(a, 0, ev->time_ns, TMK_WORD_END);
    a->step = ev->step;
    if (a->step != TMK_NO_STEP)
        write_annotation(a, 0, ev->time_ns, TMK_WORD_START);
}

static void on_annotation_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                                struct tmk_block *b)
{
    struct annotations *a = arg;
    (void)b;
    if (ev->time_ns < a->from_ns || ev->time_ns > a->until_ns)
        return;
    a->last_ns = ev->time_ns;
    if (ev->kind == TMK_KIND_STEP) {
        on_step(a, ev);
    } else if (ev->kind == TMK_KIND_PUSH && ev->range_kind != TIDEMARK_MODULE) {
        write_annotation(a, ev->name, ev->time_ns, TMK_WORD_START);
    } else if (ev->kind == TMK_KIND_POP && rp->closed.kind && rp->closed.kind != TIDEMARK_MODULE &&
               rp->closed.start_ns >= a->from_ns) {
        write_annotation(a, rp->closed.name, ev->time_ns, TMK_WORD_END);
    } else if (ev->kind == TMK_KIND_MARK && ev->name) {
        write_annotation(a, ev->name, ev->time_ns, TMK_WORD_START);
        write_annotation(a, ev->name, ev->time_ns, TMK_WORD_END);
    }
}

static int write_annotations(struct tmk_torch_file *f, const struct tmk_export *x, unsigned device,
                             struct tmk_error *err)
{
    struct annotations a = {.file = f,
                            .from_ns = tmk_export_trace_time(x->p, x->from_ns),
                            .until_ns = tmk_export_trace_time(x->p, x->until_ns),
                            .device = device,
                            .step = TMK_NO_STEP};
    struct tmk_visitor both[] = {{.arg = &a, .event = on_annotation_event}, x->progress};
    tmk_torch_begin_item(f, "external_annotations");
    tmk_torch_begin_list(f);
    int rc = tmk_process_sweep(x->p, both, 2, NULL, err);
    if (a.step != TMK_NO_STEP)
        write_annotation(&a, 0, a.last_ns, TMK_WORD_END);
    tmk_torch_end_list(f);
    tmk_torch_end_item(f);
    return rc;
}

/* ---- devices ---- */

struct devices {
    uint16_t by_index[MAX_INDEX];
    bool is_there[MAX_INDEX];
    unsigned n; /* all indices are smaller */
    bool is_host;
};

/* Choose GPUs by their index; the host becomes device 0 when nothing else was requested or
 * exists. */
static void choose_devices(const struct tmk_export *x, struct devices *d)
{
    *d = (struct devices){0};
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(x->p->reader); i++) {
        uint16_t device = tmk_reader_step_row(x->p->reader, i)->device;
        if (x->any_device ? device >> 8 == TMK_DEVICE_TYPE_CPU : device != x->device)
            continue;
        unsigned index = device & 0xff;
        d->by_index[index] = device;
        d->is_there[index] = true;
        d->n = d->n > index ? d->n : index + 1;
    }
    const struct tmk_step_row *row = d->n == 0 ? tmk_steps_peak(x->p, x->any_device, x->device) : 0;
    if (row) {
        d->by_index[0] = row->device;
        d->is_there[0] = true;
        d->n = 1;
    }
    d->is_host = d->n > 0 && d->is_there[0] && d->by_index[0] >> 8 == TMK_DEVICE_TYPE_CPU;
}

static unsigned first_device(const struct devices *d)
{
    unsigned i = 0;
    while (i + 1 < d->n && !d->is_there[i])
        i++;
    return i;
}

/* Write what follows from the settings, under torch's names. */
static void write_settings_known(struct tmk_pickler *k, const struct tmk_alloc_conf *conf)
{
    char interval[16];
    bool is_bounded = conf->max_split_bytes != TMK_ALLOC_NO_BOUND;
    tmk_pickler_text(k, "max_split_size");
    tmk_pickler_int(k, is_bounded ? (int64_t)conf->max_split_bytes : -1);
    tmk_pickler_text(k, "garbage_collection_threshold");
    tmk_pickler_double(k, conf->gc_threshold);
    tmk_pickler_text(k, "expandable_segments");
    tmk_pickler_bool(k, conf->expandable_segments);
    tmk_pickler_text(k, "roundup_power2_divisions");
    tmk_pickler_dict(k);
    tmk_pickler_mark(k);
    for (unsigned i = 0; i < TMK_ALLOC_N_INTERVALS; i++) {
        snprintf(interval, sizeof interval, "%u", 1u << i);
        tmk_pickler_text(k, interval);
        tmk_pickler_u64(k, conf->roundup_divisions[i]);
    }
    tmk_pickler_set_items(k);
}

/* Write the settings; an empty dict where nothing is known of them. */
static void write_settings(struct tmk_torch_file *f)
{
    struct tmk_pickler *k = &f->pickle;
    struct tmk_alloc_conf conf;
    const char *text = tmk_reader_info(f->p->reader, "alloc_conf");
    tmk_torch_begin_item(f, "allocator_settings");
    tmk_pickler_dict(k);
    tmk_pickler_mark(k);
    if (text) {
        tmk_pickler_text(k, "PYTORCH_CUDA_ALLOC_CONF");
        tmk_pickler_text(k, text);
        if (tmk_alloc_conf_parse(text, &conf, NULL) == 0)
            write_settings_known(k, &conf);
    }
    tmk_pickler_set_items(k);
    tmk_torch_end_item(f);
}

static int write_traces(struct tmk_torch_file *f, const struct tmk_export *x,
                        const struct devices *d, struct tmk_torch_left *left, struct tmk_error *err)
{
    int rc = 0;
    tmk_torch_begin_item(f, "device_traces");
    tmk_pickler_list(&f->pickle);
    for (unsigned i = 0; i < d->n && rc == 0; i++) {
        tmk_pickler_mark(&f->pickle);
        if (d->is_there[i])
            rc = tmk_torch_trace_write(f, x, d->by_index[i], &left[i], err);
        else
            tmk_pickler_list(&f->pickle);
        tmk_pickler_append_items(&f->pickle);
    }
    tmk_torch_end_item(f);
    return rc;
}

static int write_snapshot(struct tmk_torch_file *f, const struct tmk_export *x,
                          const struct devices *d, struct tmk_torch_left *left,
                          struct tmk_error *err)
{
    write_settings(f);
    int rc = write_annotations(f, x, first_device(d), err);
    f->n_entries = 0;
    if (rc == 0)
        rc = write_traces(f, x, d, left, err);
    if (rc < 0)
        return rc;
    uint64_t n_entries = f->n_entries;
    tmk_torch_begin_item(f, "segments");
    tmk_torch_begin_list(f);
    for (unsigned i = 0; i < d->n; i++)
        write_left_segments(f, &left[i], i);
    tmk_torch_end_list(f);
    tmk_torch_end_item(f);
    f->n_entries = n_entries;
    return tmk_torch_file_finish(f, err);
}

int tmk_export_torch_snapshot(const struct tmk_export *x, int fd, struct tmk_export_notes *ret,
                              struct tmk_error *err)
{
    struct devices d;
    struct tmk_torch_file f = {0};
    choose_devices(x, &d);
    if (d.n == 0)
        return tmk_fail(err, TMK_ENOENT, "no block was ever allocated in %s", x->p->file);
    struct tmk_torch_left *left = calloc(d.n, sizeof *left);
    int rc = left ? tmk_torch_file_init(&f, x->p, fd) : TMK_ENOMEM;
    rc = rc < 0 ? tmk_fail(err, rc, "no memory to write the snapshot")
                : write_snapshot(&f, x, &d, left, err);
    *ret = (struct tmk_export_notes){.n_events = f.n_entries, .is_host = d.is_host};
    for (unsigned i = 0; left && i < d.n; i++) {
        ret->made_up_segments |= left[i].made_up;
        tmk_torch_left_fini(&left[i]);
    }
    free(left);
    tmk_torch_file_fini(&f);
    return rc;
}
