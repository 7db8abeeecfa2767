/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_import.c - see torch_import.h.
 *
 * A track is one device: its events, the history before them and its layout. The next event comes
 * from the track with the smallest time. */
#include "interop/torch/torch_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "interop/torch/spool.h"
#include "interop/torch/torch_history.h"
#include "interop/torch/torch_layout.h"
#include "interop/torch/torch_maker.h"
#include "model/alloc_conf.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/state.h"
#include "trace/writer.h"

enum { TELL_EVERY = 1 << 14 };

/* ---- what was there before ---- */

static uint32_t stack_of_segment(const struct tmk_import_maker *m, uint16_t device,
                                 uint64_t address)
{
    uint64_t low = 0, high = m->s->n_segments;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (m->by_address[middle]->address < address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->s->n_segments && m->by_address[low]->address == address; low++)
        if (tmk_cuda_device(m->by_address[low]->device) == device)
            return m->by_address[low]->stack;
    return 0;
}

/* Segments at the same address keep their order. */
static int compare_segment_addresses(const void *va, const void *vb)
{
    const struct tmk_import_segment *a = *(const struct tmk_import_segment *const *)va,
                                    *b = *(const struct tmk_import_segment *const *)vb;
    if (a->address != b->address)
        return a->address > b->address ? 1 : -1;
    return (a > b) - (a < b);
}

static int sort_segments(struct tmk_import_maker *m)
{
    uint64_t n = m->s->n_segments;
    m->by_address = calloc(n + 1, sizeof(const struct tmk_import_segment *));
    if (!m->by_address)
        return tmk_fail(m->err, TMK_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < n; i++)
        m->by_address[i] = &m->s->segments[i];
    qsort(m->by_address, n, sizeof(const struct tmk_import_segment *), compare_segment_addresses);
    return 0;
}

static int put_first_segments(struct tmk_import_maker *m, struct tmk_import_track *t)
{
    struct tmk_import_span span;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && tmk_import_layout_span(t->history.layout, i, &span); i++) {
        t->reserved_bytes += span.size_bytes;
        rc = tmk_import_put_segment(m, t, &span, stack_of_segment(m, t->device, span.address),
                                    false);
    }
    return rc < 0 || t->reserved_bytes == 0 ? rc : tmk_import_put_reserved(m, t);
}

static int put_seed(struct tmk_import_maker *m, struct tmk_import_track *t,
                    const struct tmk_import_seed *seed, struct tmk_import_summary *sum)
{
    sum->n_seeds++;
    if (seed->is_pending)
        return tmk_import_put_held(m, t, seed->address, TMK_KIND_HELD);
    sum->seed_bytes += seed->size_bytes;
    return tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_ALLOC,
                                                 .device = t->device,
                                                 .a = seed->address,
                                                 .b = seed->size_bytes,
                                                 .requested = seed->requested_bytes,
                                                 .id = seed->stack,
                                                 .stream = seed->stream,
                                                 .thread = t->thread});
}

static int put_initial_state(struct tmk_import_maker *m, struct tmk_import_track *t,
                             struct tmk_import_summary *sum)
{
    uint64_t n_before = sum->n_seeds, bytes_before = sum->seed_bytes;
    int rc = put_first_segments(m, t);
    for (uint64_t i = 0; i < t->history.n_seeds && rc == 0; i++)
        rc = put_seed(m, t, &t->history.seeds[i], sum);
    if (rc < 0 || sum->n_seeds == n_before)
        return rc;
    char info[96];
    snprintf(info, sizeof info, "%" PRIu64 " blocks with %" PRIu64 " bytes were there before",
             sum->n_seeds - n_before, sum->seed_bytes - bytes_before);
    return tmk_import_put_mark(m, t->thread, "history begins", info);
}

/* ---- in order of time ---- */

static int read_next_event(struct tmk_import_maker *m, struct tmk_import_track *t)
{
    const void *next;
    int rc = t->events ? tmk_spool_peek(t->events, 0, &next, m->err) : 0;
    t->has_next = rc > 0;
    if (rc <= 0)
        return rc;
    t->next = *(const struct tmk_import_event *)next;
    tmk_spool_take(t->events);
    return 0;
}

static struct tmk_import_track *earliest_track(struct tmk_import_maker *m)
{
    struct tmk_import_track *first = NULL;
    for (uint32_t i = 0; i < m->s->n_devices; i++) {
        struct tmk_import_track *t = &m->tracks[i];
        if (t->has_next && (!first || t->next.time_us < first->next.time_us))
            first = t;
    }
    return first;
}

static void set_import_time(struct tmk_import_maker *m, uint64_t time_us)
{
    uint64_t ns = time_us > m->s->first_us ? (time_us - m->s->first_us) * 1000 : 0;
    m->now_ns = ns > m->now_ns ? ns : m->now_ns;
}

/* Put the program's ranges that begin or end until then. */
static int put_annotations(struct tmk_import_maker *m, uint64_t until_us)
{
    int rc = 0;
    for (; m->next_annotation < m->s->n_annotations && rc == 0; m->next_annotation++) {
        const struct tmk_import_annotation *a = &m->s->annotations[m->next_annotation];
        if (a->time_us > until_us)
            break;
        set_import_time(m, a->time_us);
        rc = tmk_import_put(m, &(struct tmk_input){.kind = a->is_end ? TMK_KIND_POP : TMK_KIND_PUSH,
                                                   .id = a->is_end ? 0 : a->name,
                                                   .a = TIDEMARK_USER,
                                                   .thread = 1u + a->device});
    }
    return rc;
}

static void tell_import_progress(struct tmk_import_maker *m)
{
    uint64_t total = m->s->n_events ? m->s->n_events : 1;
    if (m->tell && m->n_done % TELL_EVERY == 0)
        m->tell(m->tell_arg, 900 + (uint32_t)(m->n_done * 100 / total), 1000);
    m->n_done++;
}

static int put_events(struct tmk_import_maker *m)
{
    int rc = 0;
    for (uint32_t i = 0; i < m->s->n_devices && rc == 0; i++)
        rc = read_next_event(m, &m->tracks[i]);
    struct tmk_import_track *t;
    while (rc == 0 && (t = earliest_track(m))) {
        struct tmk_import_event ev = t->next;
        if (m->next_annotation < m->s->n_annotations)
            rc = put_annotations(m, ev.time_us);
        set_import_time(m, ev.time_us);
        if (rc == 0)
            rc = tmk_import_apply(m, t, &ev);
        if (rc == 0)
            rc = read_next_event(m, t);
        tell_import_progress(m);
    }
    return rc < 0 ? rc : put_annotations(m, UINT64_MAX);
}

/* ---- the whole ---- */

static int open_tracks(struct tmk_import_maker *m)
{
    struct tmk_import_snapshot *s = m->s;
    struct tmk_alloc_conf conf;
    if (tmk_alloc_conf_parse(s->alloc_conf, &conf, NULL) < 0)
        tmk_alloc_conf_init(&conf);
    m->tracks = calloc((size_t)s->n_devices + 1, sizeof *m->tracks);
    if (!m->tracks)
        return tmk_fail(m->err, TMK_ENOMEM, "out of memory");
    int rc = 0;
    for (uint32_t i = 0; i < s->n_devices && rc == 0; i++) {
        struct tmk_import_track *t = &m->tracks[i];
        t->device = tmk_cuda_device(i);
        t->thread = 1 + i;
        t->events = s->events[i];
        rc = tmk_import_history_init(&t->history, s, (uint16_t)i, &conf, m->err);
        if (rc == 0 && t->events)
            rc = tmk_spool_rewind(t->events, m->err);
        if (rc == 0)
            t->odd_before = tmk_import_layout_n_odd(t->history.layout);
    }
    return rc;
}

/* Add a value to the header's text: newlines and backslashes are written as \n and \\. */
static void add_info(char *info, size_t room, const char *key, const char *value)
{
    size_t n = strlen(info);
    n += (size_t)snprintf(info + n, room - n, "%s=", key);
    for (; *value && n + 4 < room; value++) {
        if (*value == '\n' || *value == '\\')
            info[n++] = '\\';
        info[n++] = *value == '\n' ? 'n' : *value;
    }
    info[n++] = '\n';
    info[n] = '\0';
}

static int open_trace(struct tmk_import_maker *m, const char *path, const char *source)
{
    const struct tmk_import_snapshot *s = m->s;
    char info[2048] = "", text[400];
    uint8_t id[16];
    snprintf(text, sizeof text, "torch snapshot %s", source);
    add_info(info, sizeof info, "command", text);
    add_info(info, sizeof info, "imported", source);
    if (s->first_us <= s->last_us) {
        snprintf(text, sizeof text, "%" PRIu64 "000", s->first_us);
        add_info(info, sizeof info, "start_realtime_ns", text);
    }
    uint64_t n_seeds = 0;
    for (uint32_t i = 0; i < s->n_devices; i++)
        n_seeds += m->tracks[i].history.n_seeds;
    snprintf(text, sizeof text, "%" PRIu64, n_seeds);
    add_info(info, sizeof info, "older_blocks", text);
    if (s->has_settings)
        add_info(info, sizeof info, "alloc_conf", s->alloc_conf);
    add_info(info, sizeof info, "tidemark", TMK_VERSION);
    if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
        return tmk_fail(m->err, TMK_EIO, "the system has no random numbers");
    int rc = tmk_writer_create(&m->writer, path, id, info, 0, m->err);
    if (rc < 0)
        return rc;
    m->is_made = true;
    struct tmk_packer_options options = tmk_packer_options_for(0, &tmk_state_limits_tool);
    struct tmk_chunk_out out = tmk_writer_out(&m->writer);
    rc = tmk_packer_open(&options, &out, &m->packer);
    return rc < 0 ? tmk_fail(m->err, rc, "out of memory") : 0;
}

static int finish_trace(struct tmk_import_maker *m)
{
    int rc = tmk_packer_finish(m->packer);
    if (rc == 0) {
        m->writer.status.state = TMK_STATE_CLOSED;
        rc = tmk_writer_put_status(&m->writer, tmk_packer_state(m->packer));
    }
    if (rc < 0)
        *m->err = m->writer.error;
    return rc;
}

/* Compare the resulting blocks with those of the snapshot. */
static void compare_final_blocks(const struct tmk_import_maker *m, struct tmk_import_summary *sum)
{
    for (uint64_t i = 0; i < m->s->n_segments; i++) {
        const struct tmk_import_segment *g = &m->s->segments[i];
        const struct tmk_import_layout *l = m->tracks[g->device].history.layout;
        for (uint64_t k = g->first_block; k < g->first_block + g->n_blocks; k++) {
            const struct tmk_import_block *b = &m->s->blocks[k];
            sum->n_live += b->state == TMK_IMPORT_ALLOCATED;
            if (b->state != TMK_IMPORT_INACTIVE)
                sum->n_wrong += tmk_import_layout_block(l, b->address) != b->size_bytes;
        }
    }
}

static void sum_up_import(const struct tmk_import_maker *m, struct tmk_import_summary *sum)
{
    const struct tmk_state *state = tmk_packer_state(m->packer);
    compare_final_blocks(m, sum);
    sum->n_events = m->s->n_events;
    sum->duration_us = m->now_ns / 1000;
    sum->n_devices = state->n_devices;
    for (uint32_t i = 0; i < state->n_devices; i++) {
        sum->devices[i].device = state->devices[i].device;
        sum->devices[i].peak_bytes = state->devices[i].max_bytes;
        sum->devices[i].peak_reserved_bytes = state->devices[i].max_reserved_bytes;
        sum->end_bytes += state->devices[i].allocated_bytes;
    }
    for (uint32_t i = 0; i < m->s->n_devices; i++)
        sum->n_odd +=
            tmk_import_layout_n_odd(m->tracks[i].history.layout) - m->tracks[i].odd_before;
}

static int make_import_trace(struct tmk_import_maker *m, const char *path, const char *source,
                             struct tmk_import_summary *sum)
{
    int rc = open_tracks(m);
    if (rc == 0)
        rc = sort_segments(m);
    if (rc == 0)
        rc = open_trace(m, path, source);
    if (rc == 0)
        rc = tmk_import_define(m);
    for (uint32_t i = 0; i < m->s->n_devices && rc == 0; i++)
        rc = put_initial_state(m, &m->tracks[i], sum);
    if (rc == 0)
        rc = put_events(m);
    if (rc == 0)
        rc = finish_trace(m);
    if (rc == 0)
        sum_up_import(m, sum);
    return rc;
}

int tmk_import_write(struct tmk_import_snapshot *s, const char *path, const char *source,
                     void (*tell_function)(void *arg, uint32_t done, uint32_t total), void *arg,
                     struct tmk_import_summary *ret_summary, struct tmk_error *err)
{
    struct tmk_error why = {0};
    struct tmk_import_summary sum = {0};
    struct tmk_import_maker m = {
        .s = s, .writer = {.fd = -1}, .tell = tell_function, .tell_arg = arg, .err = &why};
    int rc = make_import_trace(&m, path, source, &sum);
    m.packer = tmk_packer_close(m.packer);
    if (m.is_made)
        tmk_writer_close(&m.writer);
    if (m.is_made && rc < 0)
        unlink(path);
    for (uint32_t i = 0; m.tracks && i < s->n_devices; i++)
        tmk_import_history_fini(&m.tracks[i].history);
    free(m.tracks);
    free(m.by_address);
    free(m.driver_stacks);
    if (rc == 0)
        *ret_summary = sum;
    else if (err)
        *err = why;
    return rc;
}
