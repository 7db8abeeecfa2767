/* SPDX-License-Identifier: MIT */
/* interop/torch_import.c - see torch_import.h.
 *
 * A track is one device: its events, the history before them and the layout that goes along. The
 * next event is that of the track whose time is the smallest. */
#include "interop/torch_import.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "interop/torch_history.h"
#include "kit/grow.h"
#include "tidemark/tidemark.h"
#include "trace/packer.h"
#include "trace/writer.h"

enum {
    TELL_EVERY = 1 << 14,
    C10_MODULE = 1, /* the only module: torch's allocator, which asked for every segment */
    C10_ADDRESS = 1,
};
static const char c10_path[] = "libc10_cuda.so";

struct track {
    struct tmk_import_history history;
    struct tmk_spool *events; /* NULL: none */
    uint64_t odd_before;      /* of the layout, before the first event */
    uint64_t reserved_bytes;
    uint32_t thread;
    uint16_t device; /* a trace's number */
    bool has_next;
    bool is_completing; /* the next event completes the free before it */
    struct tmk_import_event next;
};

struct maker {
    struct tmk_import_snapshot *s;
    struct tmk_writer writer;
    struct tmk_packer *packer;
    struct track *tracks;
    uint64_t next_annotation;
    uint64_t now_ns;
    uint32_t c10_frame;
    uint32_t *driver_stacks; /* by stack: the same, asked for by torch's allocator; 0: not made */
    uint64_t n_driver_stacks, driver_stack_room;
    void (*tell)(void *arg, uint32_t done, uint32_t total);
    void *tell_arg;
    uint64_t n_done;
    bool is_made; /* the file is */
    struct tmk_error *err;
};

/* ---- putting records ---- */

static int put(struct maker *m, struct tmk_input *in)
{
    in->ns = m->now_ns;
    int rc = tmk_packer_add(m->packer, in);
    if (rc > 0)
        rc = tmk_packer_flush(m->packer);
    if (rc < 0 && m->writer.error.text[0])
        *m->err = m->writer.error;
    else if (rc < 0)
        tmk_fail(m->err, rc, "%s", tmk_result_text(rc));
    return rc;
}

static int put_text(struct maker *m, uint8_t kind, uint32_t id, uint64_t a, const void *text,
                    size_t bytes)
{
    return put(m, &(struct tmk_input){
                      .kind = kind, .id = id, .a = a, .text = text, .text_bytes = (uint32_t)bytes});
}

static int put_stack(struct maker *m, uint32_t id)
{
    const struct tmk_name_stack *stack = &m->s->names.stacks[id - 1];
    return put_text(m, TMK_KIND_DEF_STACK, id, 0, m->s->names.stack_frames + stack->first,
                    (size_t)stack->n * sizeof(uint32_t));
}

/* ---- definitions ---- */

static int define_frames(struct maker *m)
{
    const struct tmk_names *names = &m->s->names;
    int rc = 0;
    for (uint64_t i = 0; i < names->n_frames && rc == 0; i++) {
        const struct tmk_name_frame *f = &names->frames[i];
        rc = put(m, &(struct tmk_input){.kind = TMK_KIND_DEF_FRAME,
                                        .id = (uint32_t)i + 1,
                                        .a = (uint64_t)f->file << 32 | f->function,
                                        .b = f->line});
    }
    if (rc == 0)
        rc = put_text(m, TMK_KIND_DEF_MODULE, C10_MODULE, 0, c10_path, strlen(c10_path));
    m->c10_frame = (uint32_t)names->n_frames + 1;
    if (rc == 0)
        rc = put(m, &(struct tmk_input){.kind = TMK_KIND_DEF_NATIVE_FRAME,
                                        .id = m->c10_frame,
                                        .a = C10_MODULE,
                                        .b = C10_ADDRESS});
    return rc;
}

static int define(struct maker *m)
{
    const struct tmk_names *names = &m->s->names;
    int rc = 0;
    for (uint64_t i = 0; i < names->n_strings && rc == 0; i++)
        rc = put_text(m, TMK_KIND_DEF_STRING, (uint32_t)i + 1, 0, names->strings[i].text,
                      names->strings[i].bytes);
    if (rc == 0)
        rc = define_frames(m);
    for (uint64_t i = 0; i < names->n_stacks && rc == 0; i++)
        rc = put_stack(m, (uint32_t)i + 1);
    for (uint64_t i = 0; i < m->s->n_streams && rc == 0; i++)
        rc = put(m, &(struct tmk_input){.kind = TMK_KIND_DEF_STREAM,
                                        .id = (uint32_t)i + 1,
                                        .device = tmk_cuda_device(m->s->streams[i].device),
                                        .a = m->s->streams[i].handle});
    return rc;
}

/* A string that the snapshot does not have. */
static uint32_t own_string(struct maker *m, const char *text)
{
    uint64_t n = m->s->names.n_strings;
    uint32_t id = tmk_names_string(&m->s->names, text, strlen(text));
    if (id > n && put_text(m, TMK_KIND_DEF_STRING, id, 0, text, strlen(text)) < 0)
        return 0;
    return id;
}

/* The stack with torch's allocator on top: it is what asked the driver. */
static uint32_t driver_stack(struct maker *m, uint32_t stack)
{
    uint64_t room = m->driver_stack_room;
    uint32_t *more =
        tmk_grow(m->driver_stacks, (uint64_t)stack + 1, &m->driver_stack_room, sizeof *more);
    if (!more)
        return 0;
    m->driver_stacks = more;
    if (m->driver_stack_room > room)
        memset(more + room, 0, (size_t)(m->driver_stack_room - room) * sizeof *more);
    if (more[stack])
        return more[stack];
    struct tmk_names *names = &m->s->names;
    uint32_t frames[TMK_NAMES_MAX_FRAMES] = {m->c10_frame}, n = 1;
    const struct tmk_name_stack *old = stack ? &names->stacks[stack - 1] : NULL;
    for (uint32_t i = 0; old && i < old->n && n < TMK_NAMES_MAX_FRAMES; i++)
        frames[n++] = names->stack_frames[old->first + i];
    uint32_t id = tmk_names_stack(names, frames, n);
    if (id == 0 || put_stack(m, id) < 0)
        return 0;
    return more[stack] = id;
}

/* ---- segments ---- */

static int put_segment(struct maker *m, struct track *t, const struct tmk_import_span *span,
                       uint32_t stack, bool is_end)
{
    static const uint8_t plain[] = {TMK_SEGMENT_DEVICE};
    static const uint8_t expandable[] = {TMK_SEGMENT_PHYSICAL, TMK_SEGMENT_MAPPING};
    const uint8_t *kinds = span->is_expandable ? expandable : plain;
    size_t n = span->is_expandable ? sizeof expandable : sizeof plain;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put(m, &(struct tmk_input){.kind = is_end ? TMK_KIND_SEGMENT_END : TMK_KIND_SEGMENT,
                                        .device = t->device,
                                        .stream = kinds[i],
                                        .a = span->address,
                                        .b = is_end ? 0 : span->size_bytes,
                                        .id = is_end ? 0 : driver_stack(m, stack),
                                        .thread = t->thread});
    return rc;
}

static int put_reserved(struct maker *m, struct track *t)
{
    return put(m, &(struct tmk_input){.kind = TMK_KIND_RESERVED,
                                      .device = t->device,
                                      .a = t->reserved_bytes,
                                      .thread = t->thread});
}

/* All spans that reach into [from, to) begin, or end, in the trace. */
static int put_spans(struct maker *m, struct track *t, const struct tmk_import_span *window,
                     uint32_t stack, bool is_end)
{
    const struct tmk_import_layout *l = t->history.layout;
    uint64_t end = window->address + window->size_bytes;
    struct tmk_import_span span;
    int rc = 0;
    for (uint64_t i = tmk_import_layout_first_span(l, window->address);
         rc == 0 && tmk_import_layout_span(l, i, &span) && span.address < end; i++) {
        if (span.is_expandable != window->is_expandable)
            continue;
        t->reserved_bytes += is_end ? 0 - span.size_bytes : span.size_bytes;
        rc = put_segment(m, t, &span, stack, is_end);
    }
    return rc;
}

/* Memory that an expandable segment gains joins its neighbours: these are looked at too. */
static int change_segments(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    bool is_gain = ev->action == TMK_IMPORT_SEGMENT_ALLOC || ev->action == TMK_IMPORT_SEGMENT_MAP;
    bool is_expandable =
        ev->action == TMK_IMPORT_SEGMENT_MAP || ev->action == TMK_IMPORT_SEGMENT_UNMAP;
    uint64_t margin = is_expandable && ev->address > 0;
    struct tmk_import_span window = {.address = ev->address - margin,
                                     .size_bytes = ev->size_bytes + 2 * margin,
                                     .is_expandable = is_expandable};
    struct tmk_import_layout *l = t->history.layout;
    int rc = put_spans(m, t, &window, 0, true);
    if (rc == 0)
        rc = is_gain ? tmk_import_layout_map(l, ev->address, ev->size_bytes, is_expandable)
                     : tmk_import_layout_unmap(l, ev->address, ev->size_bytes);
    if (rc == 0)
        rc = put_spans(m, t, &window, ev->stack, false);
    return rc < 0 ? rc : put_reserved(m, t);
}

/* ---- blocks ---- */

static int put_tag(struct maker *m, const struct track *t, const struct tmk_import_event *ev)
{
    return put(m, &(struct tmk_input){.kind = TMK_KIND_TAG,
                                      .device = t->device,
                                      .a = ev->address,
                                      .b = ev->category,
                                      .id = ev->name,
                                      .thread = t->thread});
}

static int begin_block(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    uint64_t real = tmk_import_history_real_bytes(&t->history, ev->address), size;
    int rc = tmk_import_layout_alloc(t->history.layout, ev->address, ev->size_bytes, real, &size);
    if (rc < 0)
        return tmk_fail(m->err, rc, "out of memory");
    rc = put(m, &(struct tmk_input){.kind = TMK_KIND_ALLOC,
                                    .device = t->device,
                                    .a = ev->address,
                                    .b = size,
                                    .requested = ev->size_bytes,
                                    .id = ev->stack,
                                    .stream = ev->stream,
                                    .thread = t->thread});
    return rc == 0 && (ev->name || ev->category) ? put_tag(m, t, ev) : rc;
}

static int put_held(struct maker *m, const struct track *t, uint64_t address, uint8_t kind)
{
    return put(m, &(struct tmk_input){.kind = kind,
                                      .device = t->device,
                                      .a = address,
                                      .b = kind == TMK_KIND_HELD
                                               ? tmk_import_layout_block(t->history.layout, address)
                                               : 0,
                                      .thread = t->thread});
}

/* Is the event after this one the completion of this free? */
static int is_completed_next(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    const void *next;
    int rc = tmk_spool_peek(t->events, 0, &next, m->err);
    if (rc <= 0)
        return rc;
    const struct tmk_import_event *after = next;
    return after->action == TMK_IMPORT_FREE_COMPLETED && after->address == ev->address;
}

static int end_block(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    int rc = put(
        m, &(struct tmk_input){
               .kind = TMK_KIND_FREE, .device = t->device, .a = ev->address, .thread = t->thread});
    if (rc < 0)
        return rc;
    if (ev->action == TMK_IMPORT_FREE) {
        tmk_import_layout_free(t->history.layout, ev->address);
        return 0;
    }
    rc = is_completed_next(m, t, ev);
    if (rc < 0)
        return rc;
    t->is_completing = rc > 0;
    return t->is_completing ? 0 : put_held(m, t, ev->address, TMK_KIND_HELD);
}

static int complete_free(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    tmk_import_layout_free(t->history.layout, ev->address);
    bool was_held = !t->is_completing;
    t->is_completing = false;
    return was_held ? put_held(m, t, ev->address, TMK_KIND_RELEASED) : 0;
}

/* ---- other events ---- */

static int put_oom(struct maker *m, const struct track *t, const struct tmk_import_event *ev)
{
    return put(m, &(struct tmk_input){.kind = TMK_KIND_OOM,
                                      .device = t->device,
                                      .a = ev->size_bytes,
                                      .requested = ev->address ? ev->address + 1 : 0,
                                      .id = ev->stack,
                                      .thread = t->thread});
}

static int put_mark(struct maker *m, uint32_t thread, const char *event, const char *info)
{
    return put(m, &(struct tmk_input){.kind = TMK_KIND_MARK,
                                      .id = own_string(m, event),
                                      .text = (const uint8_t *)info,
                                      .text_bytes = (uint32_t)strlen(info),
                                      .thread = thread});
}

static int annotate(struct maker *m, const struct track *t, const struct tmk_import_event *ev)
{
    if (ev->address)
        return put_tag(m, t, ev);
    const char *info = ev->name ? m->s->names.strings[ev->name - 1].text : "";
    return put_mark(m, t->thread, "annotate", info);
}

static int apply(struct maker *m, struct track *t, const struct tmk_import_event *ev)
{
    switch (ev->action) {
    case TMK_IMPORT_ALLOC:
        return begin_block(m, t, ev);
    case TMK_IMPORT_FREE:
    case TMK_IMPORT_FREE_REQUESTED:
        return end_block(m, t, ev);
    case TMK_IMPORT_FREE_COMPLETED:
        return complete_free(m, t, ev);
    case TMK_IMPORT_SEGMENT_ALLOC:
    case TMK_IMPORT_SEGMENT_FREE:
    case TMK_IMPORT_SEGMENT_MAP:
    case TMK_IMPORT_SEGMENT_UNMAP:
        return change_segments(m, t, ev);
    case TMK_IMPORT_OOM:
        return put_oom(m, t, ev);
    case TMK_IMPORT_SNAPSHOT:
        return put_mark(m, t->thread, "snapshot", "");
    case TMK_IMPORT_ANNOTATE:
        return annotate(m, t, ev);
    default:
        return 0;
    }
}

/* ---- what was there before ---- */

static uint32_t stack_of_segment(const struct maker *m, uint16_t device, uint64_t address)
{
    for (uint64_t i = 0; i < m->s->n_segments; i++)
        if (m->s->segments[i].address == address &&
            tmk_cuda_device(m->s->segments[i].device) == device)
            return m->s->segments[i].stack;
    return 0;
}

static int put_first_segments(struct maker *m, struct track *t)
{
    struct tmk_import_span span;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && tmk_import_layout_span(t->history.layout, i, &span); i++) {
        t->reserved_bytes += span.size_bytes;
        rc = put_segment(m, t, &span, stack_of_segment(m, t->device, span.address), false);
    }
    return rc < 0 || t->reserved_bytes == 0 ? rc : put_reserved(m, t);
}

static int put_seed(struct maker *m, struct track *t, const struct tmk_import_seed *seed,
                    struct tmk_import_summary *sum)
{
    sum->n_seeds++;
    if (seed->is_pending)
        return put_held(m, t, seed->address, TMK_KIND_HELD);
    sum->seed_bytes += seed->size_bytes;
    return put(m, &(struct tmk_input){.kind = TMK_KIND_ALLOC,
                                      .device = t->device,
                                      .a = seed->address,
                                      .b = seed->size_bytes,
                                      .requested = seed->requested_bytes,
                                      .id = seed->stack,
                                      .stream = seed->stream,
                                      .thread = t->thread});
}

static int put_beginning(struct maker *m, struct track *t, struct tmk_import_summary *sum)
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
    return put_mark(m, t->thread, "history begins", info);
}

/* ---- in order of time ---- */

static int read_next(struct maker *m, struct track *t)
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

static struct track *earliest(struct maker *m)
{
    struct track *first = NULL;
    for (uint32_t i = 0; i < m->s->n_devices; i++) {
        struct track *t = &m->tracks[i];
        if (t->has_next && (!first || t->next.time_us < first->next.time_us))
            first = t;
    }
    return first;
}

static void set_time(struct maker *m, uint64_t time_us)
{
    uint64_t ns = time_us > m->s->first_us ? (time_us - m->s->first_us) * 1000 : 0;
    m->now_ns = ns > m->now_ns ? ns : m->now_ns;
}

/* Ranges of the program's that begin or end until then. */
static int put_annotations(struct maker *m, uint64_t until_us)
{
    int rc = 0;
    for (; m->next_annotation < m->s->n_annotations && rc == 0; m->next_annotation++) {
        const struct tmk_import_annotation *a = &m->s->annotations[m->next_annotation];
        if (a->time_us > until_us)
            break;
        set_time(m, a->time_us);
        rc = put(m, &(struct tmk_input){.kind = a->is_end ? TMK_KIND_POP : TMK_KIND_PUSH,
                                        .id = a->is_end ? 0 : a->name,
                                        .a = TIDEMARK_USER,
                                        .thread = 1u + a->device});
    }
    return rc;
}

static void tell(struct maker *m)
{
    uint64_t total = m->s->n_events ? m->s->n_events : 1;
    if (m->tell && m->n_done % TELL_EVERY == 0)
        m->tell(m->tell_arg, 900 + (uint32_t)(m->n_done * 100 / total), 1000);
    m->n_done++;
}

static int put_events(struct maker *m)
{
    int rc = 0;
    for (uint32_t i = 0; i < m->s->n_devices && rc == 0; i++)
        rc = read_next(m, &m->tracks[i]);
    struct track *t;
    while (rc == 0 && (t = earliest(m))) {
        struct tmk_import_event ev = t->next;
        if (m->next_annotation < m->s->n_annotations)
            rc = put_annotations(m, ev.time_us);
        set_time(m, ev.time_us);
        if (rc == 0)
            rc = apply(m, t, &ev);
        if (rc == 0)
            rc = read_next(m, t);
        tell(m);
    }
    return rc < 0 ? rc : put_annotations(m, UINT64_MAX);
}

/* ---- the whole ---- */

static int open_tracks(struct maker *m)
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
        struct track *t = &m->tracks[i];
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

/* A value of the header's text: newlines and backslashes are written as \n and \\. */
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

static int open_trace(struct maker *m, const char *path, const char *source)
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

static int finish(struct maker *m)
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

/* Blocks as they came out, held against what the snapshot has. */
static void compare_end(const struct maker *m, struct tmk_import_summary *sum)
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

static void sum_up(const struct maker *m, struct tmk_import_summary *sum)
{
    const struct tmk_state *state = tmk_packer_state(m->packer);
    compare_end(m, sum);
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

static int make(struct maker *m, const char *path, const char *source,
                struct tmk_import_summary *sum)
{
    int rc = open_tracks(m);
    if (rc == 0)
        rc = open_trace(m, path, source);
    if (rc == 0)
        rc = define(m);
    for (uint32_t i = 0; i < m->s->n_devices && rc == 0; i++)
        rc = put_beginning(m, &m->tracks[i], sum);
    if (rc == 0)
        rc = put_events(m);
    if (rc == 0)
        rc = finish(m);
    if (rc == 0)
        sum_up(m, sum);
    return rc;
}

int tmk_import_write(struct tmk_import_snapshot *s, const char *path, const char *source,
                     void (*tell_function)(void *arg, uint32_t done, uint32_t total), void *arg,
                     struct tmk_import_summary *ret_summary, struct tmk_error *err)
{
    struct tmk_error why = {0};
    struct tmk_import_summary sum = {0};
    struct maker m = {
        .s = s, .writer = {.fd = -1}, .tell = tell_function, .tell_arg = arg, .err = &why};
    int rc = make(&m, path, source, &sum);
    m.packer = tmk_packer_close(m.packer);
    if (m.is_made)
        tmk_writer_close(&m.writer);
    if (m.is_made && rc < 0)
        unlink(path);
    for (uint32_t i = 0; m.tracks && i < s->n_devices; i++)
        tmk_import_history_fini(&m.tracks[i].history);
    free(m.tracks);
    free(m.driver_stacks);
    if (rc == 0)
        *ret_summary = sum;
    else if (err)
        *err = why;
    return rc;
}
