/* SPDX-License-Identifier: MIT */
/* trace/snapshot.c - see snapshot.h; layouts in docs/format.md 2.2 to 2.4. */
#include "trace/snapshot.h"

#include "base/error.h"
#include "trace/layout.h"

/* ---- sections ---- */

int tmk_section_next(struct tmk_view *payload, uint64_t *id, struct tmk_view *ret_section)
{
    if (tmk_view_left(payload) == 0)
        return payload->bad ? TMK_EDAMAGED : 0;
    uint64_t next = tmk_view_varint(payload);
    uint64_t length = tmk_view_varint(payload);
    struct tmk_view section = tmk_view_take(payload, length);
    if (payload->bad || section.bad || next <= *id)
        return TMK_EDAMAGED;
    *id = next;
    *ret_section = section;
    return 1;
}

void tmk_section_write(struct tmk_sink *out, uint64_t id, const struct tmk_sink *content)
{
    size_t length = tmk_sink_length(content);
    if (content->full)
        out->full = true;
    if (length == 0)
        return;
    tmk_sink_varint(out, id);
    tmk_sink_varint(out, length);
    tmk_sink_bytes(out, content->start, length);
}

/* ---- context ---- */

static void write_ranges(struct tmk_sink *out, const struct tmk_state *s, uint32_t range,
                         uint64_t start_ns)
{
    const struct tmk_open_range *r = &s->ranges[range - 1];
    if (r->outer)
        write_ranges(out, s, r->outer, start_ns);
    tmk_sink_varint(out, ((uint64_t)r->name << 2) | r->kind);
    tmk_sink_varint(out, start_ns - r->start_ns);
}

/* Recursion above is bounded by this: a thread nested deeper is left out. */
enum { MAX_WRITTEN_DEPTH = 1000 };

static uint32_t depth_of(const struct tmk_state *s, uint32_t range)
{
    uint32_t depth = 0;
    for (; range; range = s->ranges[range - 1].outer)
        depth++;
    return depth;
}

static void write_threads(struct tmk_sink *out, const struct tmk_state *s, uint64_t start_ns)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < s->n_threads; t++)
        n += s->thread_top[t] != 0 && depth_of(s, s->thread_top[t]) <= MAX_WRITTEN_DEPTH;
    tmk_sink_varint(out, n);
    for (uint32_t t = 0; t < s->n_threads && n > 0; t++) {
        uint32_t depth = depth_of(s, s->thread_top[t]);
        if (depth == 0 || depth > MAX_WRITTEN_DEPTH)
            continue;
        tmk_sink_varint(out, t);
        tmk_sink_varint(out, depth);
        write_ranges(out, s, s->thread_top[t], start_ns);
        n--;
    }
}

void tmk_context_write(struct tmk_sink *out, const struct tmk_state *s, uint64_t start_ns)
{
    tmk_sink_varint(out, s->n_devices);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        tmk_sink_varint(out, s->devices[i].device);
        tmk_sink_varint(out, s->devices[i].allocated_bytes);
        tmk_sink_varint(out, s->devices[i].max_bytes);
    }
    tmk_sink_varint(out, start_ns - s->step_start_ns);
    tmk_sink_varint(out, s->n_step_module_events);
    write_threads(out, s, start_ns);
}

int tmk_context_read_head(struct tmk_view *in, uint64_t start_ns, struct tmk_context_head *ret)
{
    uint64_t n = tmk_view_varint(in);
    if (n > TMK_MAX_DEVICES)
        return TMK_EDAMAGED;
    ret->n_devices = (uint32_t)n;
    for (uint32_t i = 0; i < n; i++) {
        ret->devices[i] = (struct tmk_context_device){.device = (uint16_t)tmk_view_varint(in)};
        ret->devices[i].allocated_bytes = tmk_view_varint(in);
        ret->devices[i].max_bytes = tmk_view_varint(in);
    }
    ret->step_start_ns = start_ns - tmk_view_varint(in);
    ret->n_step_module_events = tmk_view_varint(in);
    return in->bad ? TMK_EDAMAGED : 0;
}

int tmk_context_read_ranges(struct tmk_view *in, uint64_t start_ns,
                            void (*range)(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                                          uint64_t start_ns),
                            void *arg)
{
    uint64_t n = tmk_view_varint(in);
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        uint64_t thread = tmk_view_varint(in);
        uint64_t depth = tmk_view_varint(in);
        for (uint64_t k = 0; k < depth && !in->bad; k++) {
            uint64_t what = tmk_view_varint(in);
            uint64_t age = tmk_view_varint(in);
            if (!in->bad)
                range(arg, (uint32_t)thread, what & 3, (uint32_t)(what >> 2), start_ns - age);
        }
    }
    return in->bad ? TMK_EDAMAGED : 0;
}

static void restore_range(void *arg, uint32_t thread, uint8_t kind, uint32_t name,
                          uint64_t start_ns)
{
    tmk_state_open_range(arg, thread, kind, name, start_ns);
}

int tmk_context_restore(struct tmk_view *in, uint64_t start_ns, struct tmk_state *s)
{
    struct tmk_context_head head;
    int rc = tmk_context_read_head(in, start_ns, &head);
    if (rc < 0)
        return rc;
    s->step_start_ns = head.step_start_ns;
    s->n_step_module_events = head.n_step_module_events;
    for (uint32_t i = 0; i < head.n_devices; i++) {
        struct tmk_device_use *d = tmk_state_device(s, head.devices[i].device);
        if (!d)
            continue;
        d->allocated_bytes = head.devices[i].allocated_bytes;
        d->max_bytes = head.devices[i].max_bytes;
        if (d->row.peak_bytes < d->allocated_bytes)
            d->row.peak_bytes = d->allocated_bytes;
    }
    tmk_state_forget_ranges(s);
    return tmk_context_read_ranges(in, start_ns, restore_range, s);
}

/* ---- reserved bytes ---- */

void tmk_reserved_write(struct tmk_sink *out, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        const struct tmk_device_use *d = &s->devices[i];
        if (!d->has_reserved)
            continue;
        tmk_sink_varint(out, d->device);
        tmk_sink_varint(out, d->reserved_bytes);
        tmk_sink_varint(out, d->max_reserved_bytes);
    }
}

static struct tmk_context_device *head_device(struct tmk_context_head *head, uint16_t device)
{
    for (uint32_t i = 0; i < head->n_devices; i++)
        if (head->devices[i].device == device)
            return &head->devices[i];
    return NULL;
}

int tmk_reserved_read(struct tmk_view in, struct tmk_context_head *head)
{
    while (tmk_view_left(&in) > 0) {
        struct tmk_context_device *d = head_device(head, (uint16_t)tmk_view_varint(&in));
        uint64_t bytes = tmk_view_varint(&in), max_bytes = tmk_view_varint(&in);
        if (in.bad)
            return TMK_EDAMAGED;
        if (!d)
            continue;
        d->has_reserved = true;
        d->reserved_bytes = bytes;
        d->max_reserved_bytes = max_bytes;
    }
    return 0;
}

int tmk_reserved_restore(struct tmk_view in, struct tmk_state *s)
{
    while (tmk_view_left(&in) > 0) {
        struct tmk_device_use *d = tmk_state_find_device(s, (uint16_t)tmk_view_varint(&in));
        uint64_t bytes = tmk_view_varint(&in), max_bytes = tmk_view_varint(&in);
        if (in.bad)
            return TMK_EDAMAGED;
        if (d)
            tmk_device_set_reserved(d, bytes, max_bytes);
    }
    return 0;
}

/* ---- step rows ---- */

void tmk_step_row_write(struct tmk_sink *out, const struct tmk_step_row *row)
{
    uint8_t buffer[15 * TMK_VARINT_MAX_BYTES];
    struct tmk_sink body = tmk_sink_of(buffer, sizeof buffer);
    bool has_number = row->step != TMK_NO_STEP;
    tmk_sink_varint(&body, row->ordinal);
    tmk_sink_varint(&body,
                    (has_number ? TMK_STEP_HAS_NUMBER : 0u) | (row->open ? TMK_STEP_OPEN : 0u));
    tmk_sink_zigzag(&body, has_number ? row->step : 0);
    tmk_sink_varint(&body, row->device);
    tmk_sink_varint(&body, row->start_ns);
    tmk_sink_varint(&body, row->end_ns - row->start_ns);
    tmk_sink_varint(&body, row->peak_bytes);
    tmk_sink_varint(&body, row->peak_ns - row->start_ns);
    tmk_sink_varint(&body, row->end_bytes);
    tmk_sink_varint(&body, row->n_allocs);
    tmk_sink_varint(&body, row->n_frees);
    tmk_sink_varint(&body, row->alloc_bytes);
    tmk_sink_varint(&body, row->free_bytes);
    if (row->has_reserved) {
        tmk_sink_varint(&body, row->peak_reserved_bytes);
        tmk_sink_varint(&body, row->end_reserved_bytes);
    }
    tmk_sink_varint(out, tmk_sink_length(&body));
    tmk_sink_bytes(out, buffer, tmk_sink_length(&body));
}

int tmk_step_row_read(struct tmk_view *in, struct tmk_step_row *ret)
{
    uint64_t length = tmk_view_varint(in);
    struct tmk_view body = tmk_view_take(in, length);
    struct tmk_step_row row = {.ordinal = tmk_view_varint(&body)};
    uint64_t flags = tmk_view_varint(&body);
    int64_t step = tmk_view_zigzag(&body);
    row.step = flags & TMK_STEP_HAS_NUMBER ? step : TMK_NO_STEP;
    row.open = (flags & TMK_STEP_OPEN) != 0;
    row.device = (uint16_t)tmk_view_varint(&body);
    row.start_ns = tmk_view_varint(&body);
    row.end_ns = row.start_ns + tmk_view_varint(&body);
    row.peak_bytes = tmk_view_varint(&body);
    row.peak_ns = row.start_ns + tmk_view_varint(&body);
    row.end_bytes = tmk_view_varint(&body);
    row.n_allocs = tmk_view_varint(&body);
    row.n_frees = tmk_view_varint(&body);
    row.alloc_bytes = tmk_view_varint(&body);
    row.free_bytes = tmk_view_varint(&body);
    row.has_reserved = tmk_view_left(&body) > 0;
    if (row.has_reserved) {
        row.peak_reserved_bytes = tmk_view_varint(&body);
        row.end_reserved_bytes = tmk_view_varint(&body);
    }
    if (body.bad || in->bad)
        return TMK_EDAMAGED;
    *ret = row;
    return 0;
}

/* ---- checkpoints ---- */

enum {
    BLOCK_BOUND = 3 + 10 + 10 + 10 + 5 + 5 + 5 + 1 + 10 + 2 + 5 + 10 + 3 + 10,
    SEGMENT_BOUND = 3 + 2 + 10 + 10 + 10 + 10 + 5 + 5 + 5 + 1 + 10,
    CONTEXT_BOUND = 12,
};

size_t tmk_checkpoint_bound(const struct tmk_state *s)
{
    size_t ranges = (size_t)s->n_ranges * 16 + (size_t)s->n_threads * 12;
    return 65536 + ranges + (size_t)s->n_live * BLOCK_BOUND +
           (size_t)s->segments.n * SEGMENT_BOUND + (size_t)s->n_contexts * CONTEXT_BOUND;
}

static void write_blocks(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns)
{
    uint64_t previous = 0;
    tmk_sink_varint(out, s->n_live);
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (!b->live)
            continue;
        bool has_step = b->step != TMK_NO_STEP;
        tmk_sink_varint(out, b->device);
        tmk_sink_zigzag(out, (int64_t)(b->address - previous));
        tmk_sink_varint(out, b->size_bytes);
        tmk_sink_varint(out, now_ns - b->alloc_ns);
        tmk_sink_varint(out, b->stack);
        tmk_sink_varint(out, b->context);
        tmk_sink_varint(out, b->thread);
        tmk_sink_varint(out, has_step);
        tmk_sink_zigzag(out, has_step ? b->step : 0);
        tmk_sink_varint(out, b->category);
        tmk_sink_varint(out, b->name);
        tmk_sink_varint(out, b->serial);
        previous = b->address;
    }
}

static void write_block_streams(struct tmk_sink *out, const struct tmk_state *s)
{
    bool some = false;
    for (uint32_t i = 1; i <= s->n_entries && !some; i++)
        some = s->entries[i].live && s->entries[i].stream;
    for (uint32_t i = 1; i <= s->n_entries && some; i++)
        if (s->entries[i].live)
            tmk_sink_varint(out, s->entries[i].stream);
}

static void write_block_requests(struct tmk_sink *out, const struct tmk_state *s)
{
    for (uint32_t i = 1; i <= s->n_entries && s->has_requested; i++)
        if (s->entries[i].live)
            tmk_sink_varint(out, s->requested[i]);
}

/* First how many there were until now, since ids count on. */
static void write_segments(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns)
{
    if (s->segments.n_begun == 0)
        return;
    tmk_sink_varint(out, s->segments.n_begun);
    for (uint32_t i = 0; i < s->segments.n; i++) {
        const struct tmk_driver_segment *g = &s->segments.items[i];
        bool has_step = g->step != TMK_NO_STEP;
        tmk_sink_varint(out, g->device);
        tmk_sink_varint(out, g->kind);
        tmk_sink_varint(out, g->address);
        tmk_sink_varint(out, g->size_bytes);
        tmk_sink_varint(out, now_ns - g->alloc_ns);
        tmk_sink_varint(out, g->serial);
        tmk_sink_varint(out, g->stack);
        tmk_sink_varint(out, g->context);
        tmk_sink_varint(out, g->thread);
        tmk_sink_varint(out, has_step);
        tmk_sink_zigzag(out, has_step ? g->step : 0);
    }
}

static void write_totals(struct tmk_sink *out, const struct tmk_state *s)
{
    tmk_sink_varint(out, s->n_events);
    tmk_sink_varint(out, s->n_allocs);
    tmk_sink_varint(out, s->n_frees);
    tmk_sink_varint(out, s->n_dropped);
    tmk_sink_varint(out, s->n_step_rows);
    tmk_sink_varint(out, s->n_replaced);
    tmk_sink_varint(out, s->n_unknown_free);
}

void tmk_checkpoint_write(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns,
                          void *scratch)
{
    size_t room = tmk_checkpoint_bound(s);
    struct tmk_sink section = tmk_sink_of(scratch, room);
    tmk_context_write(&section, s, now_ns);
    tmk_section_write(out, TMK_SECTION_CONTEXT, &section);

    section = tmk_sink_of(scratch, room);
    tmk_reserved_write(&section, s);
    tmk_section_write(out, TMK_SECTION_RESERVED, &section);

    section = tmk_sink_of(scratch, room);
    write_totals(&section, s);
    tmk_section_write(out, TMK_SECTION_TOTALS, &section);

    section = tmk_sink_of(scratch, room);
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(s, i);
        tmk_step_row_write(&section, &row);
    }
    tmk_section_write(out, TMK_SECTION_STEP, &section);

    section = tmk_sink_of(scratch, room);
    tmk_sink_varint(&section, s->n_contexts);
    for (uint32_t i = 1; i <= s->n_contexts; i++) {
        tmk_sink_varint(&section, s->contexts[i].parent);
        tmk_sink_varint(&section, ((uint64_t)s->contexts[i].name << 2) | s->contexts[i].kind);
    }
    tmk_section_write(out, TMK_SECTION_CONTEXTS, &section);

    section = tmk_sink_of(scratch, room);
    write_blocks(&section, s, now_ns);
    tmk_section_write(out, TMK_SECTION_BLOCKS, &section);

    section = tmk_sink_of(scratch, room);
    write_block_streams(&section, s);
    tmk_section_write(out, TMK_SECTION_BLOCK_STREAMS, &section);

    section = tmk_sink_of(scratch, room);
    write_segments(&section, s, now_ns);
    tmk_section_write(out, TMK_SECTION_SEGMENTS, &section);

    section = tmk_sink_of(scratch, room);
    write_block_requests(&section, s);
    tmk_section_write(out, TMK_SECTION_REQUESTED, &section);
}

static void read_totals(struct tmk_view *in, struct tmk_state *s)
{
    s->n_events = tmk_view_varint(in);
    s->n_allocs = tmk_view_varint(in);
    s->n_frees = tmk_view_varint(in);
    s->n_dropped = tmk_view_varint(in);
    s->n_step_rows = tmk_view_varint(in);
    s->n_replaced = tmk_view_varint(in);
    s->n_unknown_free = tmk_view_varint(in);
}

static void read_step(struct tmk_view *in, struct tmk_state *s)
{
    struct tmk_step_row row;
    while (tmk_view_left(in) > 0 && tmk_step_row_read(in, &row) == 0) {
        struct tmk_device_use *d = tmk_state_device(s, row.device);
        if (!d)
            continue;
        row.open = false;
        d->row = row;
    }
}

/* The checkpoint numbers contexts 1..n; the state has perhaps others: ret_map translates. */
static void read_contexts(struct tmk_view *in, struct tmk_state *s, struct tmk_region *ret_map)
{
    uint64_t n = tmk_view_varint(in);
    if (n > tmk_view_left(in) || tmk_region_init(ret_map, ((size_t)n + 1) * sizeof(uint32_t)) < 0) {
        (void)tmk_view_fail(in);
        return;
    }
    uint32_t *map = ret_map->base;
    for (uint64_t i = 1; i <= n && !in->bad; i++) {
        uint64_t parent = tmk_view_varint(in);
        uint64_t what = tmk_view_varint(in);
        if (parent >= i)
            (void)tmk_view_fail(in);
        else
            map[i] = tmk_state_context(s, map[parent], what & 3, (uint32_t)(what >> 2));
    }
}

static uint32_t mapped(const struct tmk_region *map, uint64_t i)
{
    return i < map->size_bytes / sizeof(uint32_t) ? ((const uint32_t *)map->base)[i] : 0;
}

/* Sections 35 and, where they are not empty, 36 and 38. */
static void read_blocks(struct tmk_view *in, struct tmk_view *streams, struct tmk_view *requested,
                        uint64_t now_ns, const struct tmk_region *map, struct tmk_state *s)
{
    bool has_streams = tmk_view_left(streams) > 0, has_requested = tmk_view_left(requested) > 0;
    uint64_t n = tmk_view_varint(in);
    uint64_t address = 0;
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        struct tmk_block block = {.device = (uint16_t)tmk_view_varint(in)};
        block.address = address += (uint64_t)tmk_view_zigzag(in);
        block.size_bytes = tmk_view_varint(in);
        block.alloc_ns = now_ns - tmk_view_varint(in);
        block.stack = (uint32_t)tmk_view_varint(in);
        block.context = mapped(map, tmk_view_varint(in)) & ((1u << TMK_CONTEXT_BITS) - 1);
        block.thread = (uint32_t)tmk_view_varint(in);
        uint64_t flags = tmk_view_varint(in);
        int64_t step = tmk_view_zigzag(in);
        block.step = flags & 1 ? step : TMK_NO_STEP;
        block.category = (uint8_t)tmk_view_varint(in);
        block.name = (uint32_t)tmk_view_varint(in);
        block.serial = tmk_view_varint(in);
        block.stream = has_streams ? (uint16_t)tmk_view_varint(streams) : 0;
        uint64_t asked = has_requested ? tmk_view_varint(requested) : 0;
        struct tmk_block *b = in->bad ? NULL : tmk_state_entry(s, block.device, block.address);
        if (b) {
            block.live = b->live;
            *b = block;
            tmk_state_set_requested(s, b, asked);
            tmk_state_put(s, b);
        }
    }
}

/* Those that find no room now may have found none before: they are not counted twice. */
static void read_segments(struct tmk_view *in, uint64_t now_ns, const struct tmk_region *map,
                          struct tmk_state *s)
{
    uint64_t n_begun = tmk_view_varint(in), n_lost = s->segments.n_lost;
    s->segments.n_lost = 0;
    while (tmk_view_left(in) > 0 && !in->bad) {
        struct tmk_driver_segment g = {.device = (uint16_t)tmk_view_varint(in)};
        g.kind = (uint8_t)tmk_view_varint(in);
        g.address = tmk_view_varint(in);
        g.size_bytes = tmk_view_varint(in);
        g.alloc_ns = now_ns - tmk_view_varint(in);
        g.serial = tmk_view_varint(in);
        g.stack = (uint32_t)tmk_view_varint(in);
        g.context = mapped(map, tmk_view_varint(in));
        g.thread = (uint32_t)tmk_view_varint(in);
        uint64_t has_step = tmk_view_varint(in);
        int64_t step = tmk_view_zigzag(in);
        g.step = has_step ? step : TMK_NO_STEP;
        if (!in->bad)
            tmk_segments_begin(&s->segments, &g);
    }
    s->segments.n_begun = n_begun;
    if (s->segments.n_lost < n_lost)
        s->segments.n_lost = n_lost;
}

int tmk_checkpoint_restore(struct tmk_view payload, uint64_t now_ns, int64_t step,
                           struct tmk_state *s)
{
    tmk_state_forget_blocks(s);
    tmk_segments_forget(&s->segments);
    s->step = step;
    s->now_ns = now_ns;
    struct tmk_region map = {0};
    struct tmk_view section, blocks = tmk_view_of("", 0), streams = blocks, segments = blocks,
                             requested = blocks;
    uint64_t id = 0;
    int rc;
    bool bad = false;
    while ((rc = tmk_section_next(&payload, &id, &section)) > 0) {
        if (id == TMK_SECTION_CONTEXT)
            bad |= tmk_context_restore(&section, now_ns, s) < 0;
        else if (id == TMK_SECTION_RESERVED)
            bad |= tmk_reserved_restore(section, s) < 0;
        else if (id == TMK_SECTION_TOTALS)
            read_totals(&section, s);
        else if (id == TMK_SECTION_STEP)
            read_step(&section, s);
        else if (id == TMK_SECTION_CONTEXTS)
            read_contexts(&section, s, &map);
        else if (id == TMK_SECTION_BLOCKS)
            blocks = section;
        else if (id == TMK_SECTION_BLOCK_STREAMS)
            streams = section;
        else if (id == TMK_SECTION_SEGMENTS)
            segments = section;
        else if (id == TMK_SECTION_REQUESTED)
            requested = section;
        bad |= section.bad;
    }
    if (tmk_view_left(&blocks) > 0)
        read_blocks(&blocks, &streams, &requested, now_ns, &map, s);
    if (tmk_view_left(&segments) > 0)
        read_segments(&segments, now_ns, &map, s);
    bad |= blocks.bad || streams.bad || segments.bad || requested.bad;
    tmk_region_fini(&map);
    return rc < 0 || bad ? TMK_EDAMAGED : 0;
}
