/* SPDX-License-Identifier: MIT */
/* interop/out/perfetto.c - writes a run as a trace that ui.perfetto.dev opens: every process with
 * its steps, the stages and modules of its threads, marks and OOMs, and counters of what each
 * device had allocated, reserved and in use, and allocated by category.
 *
 * Protobuf was chosen over Chrome's JSON, which is five times the size and slow to load. Each
 * process takes two sweeps: categories come first (fates.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interop/out/export.h"
#include "interop/out/fates.h"
#include "interop/out/out.h"
#include "interop/out/perfetto_counter.h"
#include "interop/out/perfetto_packets.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

enum {
    N_CATEGORIES = TIDEMARK_KV_CACHE + 1,
    EXACT_EVENTS = 1000000, /* up to this many events counters have every change */
    N_PARTS = 200000,       /* beyond that, they have this many parts */
    NAME_BYTES = 512,
};

struct device {
    uint16_t device;
    uint64_t category_bytes[N_CATEGORIES];
    struct tmk_counter allocated, reserved, used, categories[N_CATEGORIES];
};

struct thread {
    uint32_t depth; /* open slices */
    bool is_named;
};

struct view { /* of a process */
    const struct tmk_export *x;
    struct tmk_process *p;
    struct tmk_packets packets;
    struct tmk_fates fates;
    uint64_t tracks;            /* ids of its tracks are above this one */
    uint64_t pid;               /* as the file has it */
    uint64_t from_ns, until_ns; /* trace time */
    uint64_t part_ns;
    struct device *devices; /* ordered as in the state */
    struct thread *threads;
    uint32_t n_threads;
    bool *is_name_known;
    int64_t step;
    uint64_t last_ns; /* the last moment shown */
    bool has_begun, is_over;
};

/* ---- tracks ---- */

enum { TRACK_PROCESS = 1, TRACK_STEPS = 2, FIRST_COUNTER = 16 };
static const uint64_t first_thread = UINT64_C(1) << 20;

static uint64_t run_time_of(const struct view *v, uint64_t ns)
{
    return ns + v->p->offset_ns;
}

static void describe_process_track(struct view *v)
{
    char name[NAME_BYTES], rank[40] = "";
    if (v->p->rank >= 0)
        snprintf(rank, sizeof rank, "rank %" PRId64 ": ", v->p->rank);
    snprintf(name, sizeof name, "%s%s", rank, v->p->command ? v->p->command : "");
    tmk_packets_track(&v->packets, &(struct tmk_track){.kind = TMK_TRACK_PROCESS,
                                                       .id = v->tracks + TRACK_PROCESS,
                                                       .name = name,
                                                       .pid = v->pid});
    tmk_packets_track(&v->packets, &(struct tmk_track){.kind = TMK_TRACK_PLAIN,
                                                       .id = v->tracks + TRACK_STEPS,
                                                       .parent = v->tracks + TRACK_PROCESS,
                                                       .name = "steps"});
}

static uint64_t thread_track(struct view *v, uint32_t thread)
{
    uint64_t id = v->tracks + first_thread + thread;
    if (thread < v->n_threads && !v->threads[thread].is_named) {
        struct tmk_thread_info info = {0};
        bool is_known = tmk_reader_thread(v->p->reader, thread, &info);
        tmk_packets_track(&v->packets,
                          &(struct tmk_track){.kind = TMK_TRACK_THREAD,
                                              .id = id,
                                              .parent = v->tracks + TRACK_PROCESS,
                                              .name = info.name ? info.name : "thread",
                                              .pid = v->pid,
                                              .tid = is_known ? info.system_id : thread});
        v->threads[thread].is_named = true;
    }
    return id;
}

static void set_counter(struct view *v, struct tmk_counter *c, uint16_t device, const char *what,
                        int64_t order, uint64_t ns, uint64_t value)
{
    if (!c->is_named && value == 0)
        return; /* a category that never comes needs no track */
    if (!c->is_named) {
        char name[NAME_BYTES], text[24];
        snprintf(name, sizeof name, "%s %s", tmk_device_name(device, text), what);
        c->track = v->tracks + FIRST_COUNTER + ((uint64_t)device << 5) + (uint64_t)order;
        c->part_ns = v->part_ns;
        tmk_packets_track(&v->packets,
                          &(struct tmk_track){.kind = TMK_TRACK_COUNTER,
                                              .id = c->track,
                                              .parent = v->tracks + TRACK_PROCESS,
                                              .name = name,
                                              .order = ((int64_t)device << 5) + order});
        c->is_named = true;
    }
    tmk_counter_set(c, &v->packets, run_time_of(v, ns), value);
}

/* ---- counters ---- */

enum { ORDER_USED = 1, ORDER_RESERVED, ORDER_ALLOCATED, ORDER_CATEGORIES };

static struct device *find_counted_device(struct view *v, const struct tmk_state *s,
                                          uint16_t device)
{
    if (!v->x->any_device && device != v->x->device)
        return NULL;
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].device == device) {
            v->devices[i].device = device;
            return &v->devices[i];
        }
    return NULL;
}

static void show_category(struct view *v, struct device *d, unsigned category, uint64_t ns)
{
    char what[64];
    snprintf(what, sizeof what, "of which %s", tmk_category_name((uint8_t)category));
    set_counter(v, &d->categories[category], d->device, what, ORDER_CATEGORIES + (int64_t)category,
                ns, d->category_bytes[category]);
}

static void show_blocks(struct view *v, struct device *d, const struct tmk_state *s, uint64_t ns)
{
    const struct tmk_device_use *use = &s->devices[d - v->devices];
    set_counter(v, &d->allocated, d->device, "allocated", ORDER_ALLOCATED, ns,
                use->allocated_bytes);
}

static void show_reserved(struct view *v, struct device *d, const struct tmk_state *s, uint64_t ns)
{
    const struct tmk_device_use *use = &s->devices[d - v->devices];
    if (use->has_reserved)
        set_counter(v, &d->reserved, d->device, "reserved by the framework", ORDER_RESERVED, ns,
                    use->reserved_bytes);
}

/* Write all counters as of now. */
static void show_devices(struct view *v, const struct tmk_state *s, uint64_t ns)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct device *d = find_counted_device(v, s, s->devices[i].device);
        if (!d)
            continue;
        show_reserved(v, d, s, ns);
        show_blocks(v, d, s, ns);
        for (unsigned k = 0; k < N_CATEGORIES; k++)
            show_category(v, d, k, ns);
    }
}

/* The category that the event's block adds to or subtracts from; N_CATEGORIES: none. A block's
 * entry keeps it (`row`, from 1). */
static unsigned count_block(struct view *v, const struct tmk_event *ev, struct tmk_block *b,
                            struct device *d)
{
    if (ev->kind == TMK_KIND_ALLOC) {
        uint8_t category = tmk_fates_next(&v->fates);
        b->row = (category < N_CATEGORIES ? category : TIDEMARK_UNKNOWN) + 1u;
    }
    unsigned category = b->row > 0 && b->row <= N_CATEGORIES ? b->row - 1 : TIDEMARK_UNKNOWN;
    if (!d)
        return N_CATEGORIES;
    uint64_t *bytes = &d->category_bytes[category];
    if (ev->kind == TMK_KIND_ALLOC)
        *bytes += b->size_bytes;
    else
        *bytes -= *bytes < b->size_bytes ? *bytes : b->size_bytes;
    return category;
}

/* ---- slices ---- */

static void begin_slice(struct view *v, uint32_t thread, uint32_t name, uint64_t ns)
{
    bool is_new = name < tmk_reader_n_strings(v->p->reader) && !v->is_name_known[name];
    const char *text = is_new ? tmk_reader_string(v->p->reader, name) : NULL;
    struct tmk_packet_name n = {.number = name + UINT64_C(1),
                                .text = is_new ? (text ? text : "?") : NULL};
    uint64_t track = thread_track(v, thread);
    tmk_packets_begin(&v->packets, track, run_time_of(v, ns), &n);
    if (is_new)
        v->is_name_known[name] = true;
    v->threads[thread].depth++;
}

static uint32_t open_depth(const struct tmk_state *s, uint32_t thread)
{
    uint32_t depth = 0;
    for (uint32_t i = thread < s->n_threads ? s->thread_top[thread] : 0; i;
         i = s->ranges[i - 1].outer)
        depth++;
    return depth;
}

static void end_slices(struct view *v, uint32_t thread, uint32_t depth, uint64_t ns)
{
    for (; v->threads[thread].depth > depth; v->threads[thread].depth--)
        tmk_packets_end(&v->packets, thread_track(v, thread), run_time_of(v, ns));
}

/* Begin the open slices, outermost first; links lead outwards. */
static void begin_open_slices(struct view *v, const struct tmk_state *s, uint32_t thread,
                              uint64_t ns)
{
    for (uint32_t depth = open_depth(s, thread); depth > v->threads[thread].depth;) {
        uint32_t i = s->thread_top[thread];
        for (uint32_t k = depth - v->threads[thread].depth - 1; k > 0; k--)
            i = s->ranges[i - 1].outer;
        begin_slice(v, thread, s->ranges[i - 1].name, ns);
    }
}

/* Make room for the thread; false: there is none, and the thread is not shown. */
static bool has_thread_room(struct view *v, uint32_t thread)
{
    if (thread < v->n_threads)
        return true;
    uint64_t room = v->n_threads;
    if (TMK_GROW(v->threads, (uint64_t)thread + 1, room) < 0)
        return false;
    memset(v->threads + v->n_threads, 0, (size_t)(room - v->n_threads) * sizeof *v->threads);
    v->n_threads = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
    return thread < v->n_threads;
}

static void show_step(struct view *v, int64_t step, uint64_t ns)
{
    char name[40];
    if (v->step != TMK_NO_STEP)
        tmk_packets_end(&v->packets, v->tracks + TRACK_STEPS, run_time_of(v, ns));
    v->step = step;
    if (step == TMK_NO_STEP)
        return;
    snprintf(name, sizeof name, "step %" PRId64, step);
    tmk_packets_say(&v->packets, v->tracks + TRACK_STEPS, run_time_of(v, ns), name, NULL, 0, true);
}

/* ---- instants ---- */

static void show_mark(struct view *v, const struct tmk_event *ev)
{
    char text[TMK_STRING_MAX_BYTES + 1];
    size_t n = ev->text_bytes < sizeof text - 1 ? ev->text_bytes : sizeof text - 1;
    const char *name = tmk_reader_string(v->p->reader, ev->name);
    if (n > 0)
        memcpy(text, ev->text, n);
    text[n] = '\0';
    struct tmk_packet_note note = {.key = "info", .text = text};
    uint64_t track =
        has_thread_room(v, ev->thread) ? thread_track(v, ev->thread) : v->tracks + TRACK_PROCESS;
    tmk_packets_say(&v->packets, track, run_time_of(v, ev->time_ns), name ? name : "?", &note,
                    n > 0, false);
}

static void show_oom(struct view *v, const struct tmk_event *ev)
{
    char device[24];
    struct tmk_packet_note notes[] = {
        {.key = "device", .text = tmk_device_name(ev->device, device)},
        {.key = "requested", .number = ev->size_bytes},
        {.key = "refused by", .text = ev->is_of_driver ? "the driver" : "the framework"},
        {.key = "capacity", .number = ev->capacity_bytes},
    };
    tmk_packets_say(&v->packets, v->tracks + TRACK_PROCESS, run_time_of(v, ev->time_ns),
                    "out of memory", notes, ev->capacity_bytes ? 4 : 3, false);
}

/* ---- the sweep ---- */

/* The requested time begins: write everything that is open and counted at this moment. */
static void begin_view(struct view *v, const struct tmk_state *s, uint64_t ns)
{
    v->has_begun = true;
    show_step(v, s->step, ns);
    show_devices(v, s, ns);
    for (uint32_t i = 0; i < s->n_threads; i++)
        if (s->thread_top[i] && has_thread_room(v, i))
            begin_open_slices(v, s, i, ns);
}

static void flush_device(struct view *v, struct device *d)
{
    tmk_counter_flush(&d->used, &v->packets);
    tmk_counter_flush(&d->reserved, &v->packets);
    tmk_counter_flush(&d->allocated, &v->packets);
    for (unsigned k = 0; k < N_CATEGORIES; k++)
        tmk_counter_flush(&d->categories[k], &v->packets);
}

static void end_view(struct view *v)
{
    if (v->is_over)
        return;
    v->is_over = true;
    for (uint32_t i = 0; i < TMK_MAX_DEVICES; i++)
        flush_device(v, &v->devices[i]);
    for (uint32_t i = 0; i < v->n_threads; i++)
        end_slices(v, i, 0, v->last_ns);
    if (v->step != TMK_NO_STEP)
        tmk_packets_end(&v->packets, v->tracks + TRACK_STEPS, run_time_of(v, v->last_ns));
}

static void show_range(struct view *v, const struct tmk_state *s, const struct tmk_event *ev)
{
    if (!has_thread_room(v, ev->thread))
        return;
    end_slices(v, ev->thread, open_depth(s, ev->thread), ev->time_ns);
    begin_open_slices(v, s, ev->thread, ev->time_ns);
}

static void show_sample(struct view *v, const struct tmk_state *s, const struct tmk_event *ev)
{
    struct device *d = find_counted_device(v, s, ev->device);
    if (d && ev->sample.used_bytes != UINT64_MAX)
        set_counter(v, &d->used, d->device, "in use, by all", ORDER_USED, ev->time_ns,
                    ev->sample.used_bytes);
}

static void show_event(struct view *v, const struct tmk_state *s, const struct tmk_event *ev,
                       struct device *d, unsigned category)
{
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
    case TMK_KIND_FREE:
        if (d)
            show_blocks(v, d, s, ev->time_ns);
        if (d && category < N_CATEGORIES)
            show_category(v, d, category, ev->time_ns);
        break;
    case TMK_KIND_RESERVED:
        if (d)
            show_reserved(v, d, s, ev->time_ns);
        break;
    case TMK_KIND_PUSH:
    case TMK_KIND_POP:
        show_range(v, s, ev);
        break;
    case TMK_KIND_STEP:
        show_step(v, ev->step, ev->time_ns);
        break;
    case TMK_KIND_MARK:
        show_mark(v, ev);
        break;
    case TMK_KIND_OOM:
        show_oom(v, ev);
        break;
    case TMK_KIND_SAMPLE:
        show_sample(v, s, ev);
        break;
    default:
        break;
    }
}

static void on_perfetto_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                              struct tmk_block *b)
{
    struct view *v = arg;
    const struct tmk_state *s = &rp->state;
    if (v->is_over)
        return;
    if (ev->time_ns > v->until_ns) {
        end_view(v);
        return;
    }
    bool is_of_block = ev->kind == TMK_KIND_ALLOC || ev->kind == TMK_KIND_FREE;
    struct device *d =
        is_of_block || ev->kind == TMK_KIND_RESERVED ? find_counted_device(v, s, ev->device) : NULL;
    unsigned category = is_of_block && b ? count_block(v, ev, b, d) : N_CATEGORIES;
    if (ev->time_ns < v->from_ns)
        return;
    v->last_ns = ev->time_ns;
    if (v->has_begun)
        show_event(v, s, ev, d, category);
    else
        begin_view(v, s, ev->time_ns);
}

/* After a gap, start again with new sums and with the slices open now. */
static void on_perfetto_restored(void *arg, const struct tmk_replay *rp)
{
    struct view *v = arg;
    const struct tmk_state *s = &rp->state;
    if (v->is_over)
        return;
    for (uint32_t i = 0; i < TMK_MAX_DEVICES; i++)
        memset(v->devices[i].category_bytes, 0, sizeof v->devices[i].category_bytes);
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        struct tmk_block *b = &s->entries[i];
        struct device *d = b->live ? find_counted_device(v, s, b->device) : NULL;
        if (!d)
            continue;
        if (b->row == 0 || b->row > N_CATEGORIES) {
            struct tmk_block settled = tmk_state_settled(s, b);
            b->row = tmk_block_category(v->p, s->contexts, &settled) + 1u;
        }
        d->category_bytes[b->row - 1 < N_CATEGORIES ? b->row - 1 : 0] += b->size_bytes;
    }
    if (!v->has_begun || s->now_ns > v->until_ns)
        return;
    for (uint32_t i = 0; i < v->n_threads; i++) {
        end_slices(v, i, 0, s->now_ns);
        begin_open_slices(v, s, i, s->now_ns);
    }
    show_devices(v, s, s->now_ns);
}

/* ---- processes ---- */

/* The length of a counter's part; 0 where there are few enough events. */
static uint64_t counter_part_ns(const struct view *v)
{
    const struct tmk_reader *r = v->p->reader;
    uint64_t n_events = 0;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        if (h->kind == TMK_CHUNK_EVENTS && h->end_ns >= v->from_ns && h->start_ns <= v->until_ns)
            n_events += h->n_items;
    }
    uint64_t end_ns = v->until_ns < v->p->end_ns ? v->until_ns : v->p->end_ns;
    uint64_t span_ns = end_ns > v->from_ns ? end_ns - v->from_ns : 0;
    return n_events > EXACT_EVENTS ? span_ns / N_PARTS + 1 : 0;
}

static int sweep_perfetto_process(struct view *v, struct tmk_error *err)
{
    struct tmk_visitor both[] = {
        {.arg = v, .event = on_perfetto_event, .restored = on_perfetto_restored}, v->x->progress};
    describe_process_track(v);
    int rc = tmk_fates_make(&v->fates, v->p, &v->x->progress, err);
    if (rc == 0)
        rc = tmk_process_sweep(v->p, both, 2, NULL, err);
    if (rc == 0)
        end_view(v);
    return rc;
}

/* Processes of several machines may have the same pid; a viewer would take them for one process. */
static uint64_t unique_pid(const struct tmk_export *x, uint32_t i)
{
    uint64_t pid = tmk_run_process(x->run, i)->pid;
    for (uint32_t k = 0; k < i; k++)
        if (tmk_run_process(x->run, k)->pid == pid)
            return UINT64_C(100000000) * (i + 1) + pid;
    return pid;
}

static int write_process_packets(const struct tmk_export *x, uint32_t i, struct tmk_out *out,
                                 struct tmk_export_notes *notes, struct tmk_error *err)
{
    struct tmk_process *p = tmk_run_process(x->run, i);
    struct view v = {.x = x,
                     .p = p,
                     .packets = {.out = out, .sequence = i + 1},
                     .tracks = (uint64_t)(i + 1) << 40,
                     .pid = unique_pid(x, i),
                     .from_ns = tmk_export_trace_time(p, x->from_ns),
                     .until_ns = tmk_export_trace_time(p, x->until_ns),
                     .step = TMK_NO_STEP};
    v.part_ns = counter_part_ns(&v);
    v.devices = calloc(TMK_MAX_DEVICES, sizeof *v.devices);
    v.is_name_known = calloc((size_t)tmk_reader_n_strings(p->reader) + 1, sizeof(bool));
    int rc = v.devices && v.is_name_known ? sweep_perfetto_process(&v, err)
                                          : tmk_fail(err, TMK_ENOMEM, "no memory for the counters");
    notes->n_events += v.packets.n_events;
    notes->resolution_ns = v.part_ns > notes->resolution_ns ? v.part_ns : notes->resolution_ns;
    tmk_fates_fini(&v.fates);
    free(v.devices);
    free(v.is_name_known);
    free(v.threads);
    return rc;
}

int tmk_export_perfetto(const struct tmk_export *x, int fd, struct tmk_export_notes *ret,
                        struct tmk_error *err)
{
    struct tmk_out out;
    *ret = (struct tmk_export_notes){0};
    int rc = tmk_out_init(&out, fd);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to write");
    for (uint32_t i = 0; i < tmk_run_n_processes(x->run) && rc == 0; i++)
        if (!x->p || x->p == tmk_run_process(x->run, i))
            rc = write_process_packets(x, i, &out, ret, err);
    if (rc == 0)
        rc = tmk_out_finish(&out, err);
    tmk_out_fini(&out);
    return rc;
}
