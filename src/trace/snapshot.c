/* SPDX-License-Identifier: MIT */
/* trace/snapshot.c - see snapshot.h; layouts in docs/format.md 2.2 to 2.4. */
#include "trace/snapshot.h"

#include "base/error.h"
#include "base/region.h"
#include "trace/layout.h"
#include "trace/segments.h"

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

static void reopen_range(void *arg, uint32_t thread, uint8_t kind, uint32_t name, uint64_t start_ns)
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
    return tmk_context_read_ranges(in, start_ns, reopen_range, s);
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

/* The figures from one pass over the live blocks. */
struct block_sums {
    size_t detailed_bytes, brief_bytes; /* that listing all of them takes, about */
    unsigned shift;                     /* zero bits that all addresses end in */
    bool has_streams;
    uint32_t counts[65]; /* by size, in powers of two */
};

static unsigned size_class_of(uint64_t size_bytes)
{
    return size_bytes ? 64 - (unsigned)__builtin_clzll(size_bytes) : 0;
}

static size_t detailed_bytes(const struct tmk_block *b, uint64_t now_ns, uint64_t address_step)
{
    uint64_t step = b->step == TMK_NO_STEP ? 0 : tmk_zigzag(b->step);
    return tmk_varint_bytes(b->device) + tmk_varint_bytes(address_step) +
           tmk_varint_bytes(b->size_bytes) + tmk_varint_bytes(now_ns - b->alloc_ns) +
           tmk_varint_bytes(b->stack) + tmk_varint_bytes(b->context) + tmk_varint_bytes(b->thread) +
           1 + tmk_varint_bytes(step) + tmk_varint_bytes(b->category) + tmk_varint_bytes(b->name) +
           tmk_varint_bytes(b->serial) + tmk_varint_bytes(b->stream);
}

/* The shift of the blocks seen so far stands in for the shift of all, which is unknown until the
 * end. */
static struct block_sums sum_blocks(const struct tmk_state *s, uint64_t now_ns)
{
    struct block_sums sums = {0};
    uint64_t bits = 0, previous = 0;
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (!b->live)
            continue;
        bits |= b->address;
        unsigned shift = (unsigned)__builtin_ctzll(bits | 1ull << 63);
        uint64_t address_step = tmk_zigzag((int64_t)(b->address - previous));
        uint64_t brief_step = tmk_zigzag((int64_t)((b->address >> shift) - (previous >> shift)));
        sums.detailed_bytes += detailed_bytes(b, now_ns, address_step);
        sums.detailed_bytes += s->has_requested ? tmk_varint_bytes(s->requested[i]) : 0;
        sums.brief_bytes += tmk_varint_bytes(b->device) + tmk_varint_bytes(brief_step) +
                            tmk_varint_bytes(b->size_bytes + 1);
        sums.counts[size_class_of(b->size_bytes)]++;
        sums.has_streams |= b->stream != 0;
        previous = b->address;
    }
    sums.shift = bits ? (unsigned)__builtin_ctzll(bits) : 0;
    return sums;
}

/* The set of the largest blocks, by powers of two: all blocks of the classes above `size_class`,
 * and the first `n_left` of that class. */
struct block_cut {
    unsigned size_class;
    uint32_t n_left;
};

/* The cut with the `n` largest of the live blocks. */
static struct block_cut cut_at(const struct block_sums *sums, uint32_t n)
{
    unsigned size_class = 64;
    while (size_class > 0 && sums->counts[size_class] <= n)
        n -= sums->counts[size_class--];
    return (struct block_cut){.size_class = size_class, .n_left = n};
}

/* Whether a block is in the cut. The caller asks about all live blocks, in order. */
static bool is_in_cut(struct block_cut *cut, const struct tmk_block *b)
{
    unsigned size_class = size_class_of(b->size_bytes);
    if (size_class != cut->size_class)
        return size_class > cut->size_class;
    bool is_in = cut->n_left > 0;
    cut->n_left -= is_in;
    return is_in;
}

/* The part of the live blocks that a checkpoint lists. */
struct block_listing {
    const struct block_sums *sums;
    uint32_t n_detailed;
    uint32_t n_brief;
};

static void write_listed_block(struct tmk_sink *out, const struct tmk_block *b, uint64_t now_ns,
                               uint64_t previous)
{
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
}

static void write_listed_blocks(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns,
                                const struct block_listing *list)
{
    struct block_cut cut = cut_at(list->sums, list->n_detailed);
    uint64_t previous = 0;
    tmk_sink_varint(out, list->n_detailed);
    for (uint32_t i = 1; i <= s->n_entries && list->n_detailed > 0; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (!b->live || !is_in_cut(&cut, b))
            continue;
        write_listed_block(out, b, now_ns, previous);
        previous = b->address;
    }
}

static void write_block_streams(struct tmk_sink *out, const struct tmk_state *s,
                                const struct block_listing *list)
{
    struct block_cut cut = cut_at(list->sums, list->n_detailed);
    bool some = list->sums->has_streams && list->n_detailed > 0;
    for (uint32_t i = 1; i <= s->n_entries && some; i++)
        if (s->entries[i].live && is_in_cut(&cut, &s->entries[i]))
            tmk_sink_varint(out, s->entries[i].stream);
}

static void write_block_requests(struct tmk_sink *out, const struct tmk_state *s,
                                 const struct block_listing *list)
{
    struct block_cut cut = cut_at(list->sums, list->n_detailed);
    bool some = s->has_requested && list->n_detailed > 0;
    for (uint32_t i = 1; i <= s->n_entries && some; i++)
        if (s->entries[i].live && is_in_cut(&cut, &s->entries[i]))
            tmk_sink_varint(out, s->requested[i]);
}

/* Writes the blocks that follow the first `n_detailed` in size, in the form of an events chunk's
 * addresses. */
static void write_brief_blocks(struct tmk_sink *out, const struct tmk_state *s,
                               const struct block_listing *list)
{
    struct block_cut detailed = cut_at(list->sums, list->n_detailed);
    struct block_cut listed = cut_at(list->sums, list->n_detailed + list->n_brief);
    unsigned shift = list->sums->shift;
    uint64_t previous = 0;
    if (list->n_brief == 0)
        return;
    tmk_sink_varint(out, list->n_brief);
    tmk_sink_varint(out, shift);
    for (uint32_t i = 1; i <= s->n_entries; i++) {
        const struct tmk_block *b = &s->entries[i];
        if (!b->live)
            continue;
        bool is_detailed = is_in_cut(&detailed, b), is_listed = is_in_cut(&listed, b);
        if (is_detailed || !is_listed)
            continue;
        tmk_sink_varint(out, b->device);
        tmk_sink_zigzag(out, (int64_t)((b->address >> shift) - previous));
        tmk_sink_varint(out, b->size_bytes + 1);
        previous = b->address >> shift;
    }
}

/* Writes the segments. The number of segments so far comes first, since ids continue from it. */
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

void tmk_totals_write(struct tmk_sink *out, const struct tmk_state *s)
{
    tmk_sink_varint(out, s->n_events);
    tmk_sink_varint(out, s->n_allocs);
    tmk_sink_varint(out, s->n_frees);
    tmk_sink_varint(out, s->n_dropped);
    tmk_sink_varint(out, s->n_step_rows);
    tmk_sink_varint(out, s->n_replaced);
    tmk_sink_varint(out, s->n_unknown_free);
    tmk_sink_varint(out, s->n_live + s->n_outside);
    tmk_sink_varint(out, s->n_outside);
    tmk_sink_varint(out, s->n_untracked);
    tmk_sink_varint(out, s->segments.n_lost);
}

void tmk_open_rows_write(struct tmk_sink *out, const struct tmk_state *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(s, i);
        tmk_step_row_write(out, &row);
    }
}

static void write_contexts(struct tmk_sink *out, const struct tmk_state *s)
{
    tmk_sink_varint(out, s->n_contexts);
    for (uint32_t i = 1; i <= s->n_contexts; i++) {
        tmk_sink_varint(out, s->contexts[i].parent);
        tmk_sink_varint(out, ((uint64_t)s->contexts[i].name << 2) | s->contexts[i].kind);
    }
}

static void write_section(struct tmk_sink *section, uint64_t id, const struct tmk_state *s,
                          uint64_t now_ns, const struct block_listing *list)
{
    switch (id) {
    case TMK_SECTION_CONTEXT:
        tmk_context_write(section, s, now_ns);
        break;
    case TMK_SECTION_RESERVED:
        tmk_reserved_write(section, s);
        break;
    case TMK_SECTION_TOTALS:
        tmk_totals_write(section, s);
        break;
    case TMK_SECTION_STEP:
        tmk_open_rows_write(section, s);
        break;
    case TMK_SECTION_CONTEXTS:
        write_contexts(section, s);
        break;
    case TMK_SECTION_BLOCKS:
        write_listed_blocks(section, s, now_ns, list);
        break;
    case TMK_SECTION_BLOCK_STREAMS:
        write_block_streams(section, s, list);
        break;
    case TMK_SECTION_SEGMENTS:
        write_segments(section, s, now_ns);
        break;
    case TMK_SECTION_REQUESTED:
        write_block_requests(section, s, list);
        break;
    default:
        write_brief_blocks(section, s, list);
        break;
    }
}

/* Returns the payload's length; SIZE_MAX when the sink is too small. */
static size_t write_listing(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns,
                            void *scratch, const struct block_listing *list)
{
    static const uint8_t ids[] = {
        TMK_SECTION_CONTEXT,       TMK_SECTION_RESERVED, TMK_SECTION_TOTALS,
        TMK_SECTION_STEP,          TMK_SECTION_CONTEXTS, TMK_SECTION_BLOCKS,
        TMK_SECTION_BLOCK_STREAMS, TMK_SECTION_SEGMENTS, TMK_SECTION_REQUESTED,
        TMK_SECTION_BRIEF_BLOCKS,
    };
    out->at = out->start;
    out->full = false;
    for (size_t i = 0; i < sizeof ids; i++) {
        struct tmk_sink section = tmk_sink_of(scratch, tmk_checkpoint_bound(s));
        write_section(&section, ids[i], s, now_ns, list);
        tmk_section_write(out, ids[i], &section);
    }
    return out->full ? SIZE_MAX : tmk_sink_length(out);
}

/* Estimates how many of `n` items fit into `room`, when all of them take `bytes`. */
static uint32_t share_that_fits(uint32_t n, size_t bytes, size_t room)
{
    return bytes <= room ? n : (uint32_t)((double)n * 0.96 * (double)room / (double)bytes);
}

/* Lists as many blocks in detail as there is room for when all others are listed briefly; if not
 * even these fit, as many of them as do. */
static void choose_listing(struct block_listing *list, uint32_t n, size_t room)
{
    size_t brief = list->sums->brief_bytes, detailed = list->sums->detailed_bytes;
    if (detailed <= room) {
        list->n_detailed = n;
    } else if (brief < room) {
        list->n_detailed = share_that_fits(n, detailed - brief, room - brief);
        list->n_brief = n - list->n_detailed;
    } else {
        list->n_brief = share_that_fits(n, brief, room);
    }
}

/* Makes the listing smaller. Sizes vary, so the guess shrinks until it fits; an empty list always
 * does. */
static void shorten_listing(struct block_listing *list, uint32_t n)
{
    if (list->n_detailed > 0) {
        list->n_detailed -= list->n_detailed / 8 + 1;
        list->n_brief = n - list->n_detailed;
    } else {
        list->n_brief -= list->n_brief / 8 + 1;
    }
}

bool tmk_checkpoint_write(struct tmk_sink *out, const struct tmk_state *s, uint64_t now_ns,
                          void *scratch, size_t max_bytes, uint32_t *ret_n_detailed)
{
    struct block_sums sums = sum_blocks(s, now_ns);
    struct block_listing list = {.sums = &sums};
    size_t least = write_listing(out, s, now_ns, scratch, &list);
    if (least > max_bytes) {
        out->at = out->start;
        return false;
    }
    choose_listing(&list, s->n_live, max_bytes - least);
    while (write_listing(out, s, now_ns, scratch, &list) > max_bytes)
        shorten_listing(&list, s->n_live);
    if (ret_n_detailed)
        *ret_n_detailed = list.n_detailed;
    return true;
}

int tmk_totals_read(struct tmk_view in, struct tmk_state *s, struct tmk_written_live *ret_live)
{
    struct tmk_written_live live = {0};
    s->n_events = tmk_view_varint(&in);
    s->n_allocs = tmk_view_varint(&in);
    s->n_frees = tmk_view_varint(&in);
    s->n_dropped = tmk_view_varint(&in);
    s->n_step_rows = tmk_view_varint(&in);
    s->n_replaced = tmk_view_varint(&in);
    s->n_unknown_free = tmk_view_varint(&in);
    live.is_known = tmk_view_left(&in) > 0;
    if (live.is_known) {
        live.n = tmk_view_varint(&in);
        live.n_outside = tmk_view_varint(&in);
        s->n_untracked = tmk_view_varint(&in);
        s->segments.n_lost = tmk_view_varint(&in);
    }
    if (in.bad)
        return TMK_EDAMAGED;
    *ret_live = live;
    return 0;
}

void tmk_state_settle_outside(struct tmk_state *s, const struct tmk_written_live *live)
{
    if (live->is_known)
        s->n_outside = live->n > s->n_live ? live->n - s->n_live : 0;
}

void tmk_open_rows_restore(struct tmk_view in, struct tmk_state *s)
{
    struct tmk_step_row row;
    while (tmk_view_left(&in) > 0 && tmk_step_row_read(&in, &row) == 0) {
        struct tmk_device_use *d = tmk_state_device(s, row.device);
        if (!d)
            continue;
        row.open = false;
        row.step = tmk_state_step_of(s, row.step);
        d->row = row;
    }
}

/* The checkpoint numbers contexts 1..n; the state may have other numbers: ret_map translates. */
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

static uint32_t mapped_id(const struct tmk_region *map, uint64_t i)
{
    return i < map->size_bytes / sizeof(uint32_t) ? ((const uint32_t *)map->base)[i] : 0;
}

/* Reads section 35 and, where they are not empty, 36 and 38. */
static void read_listed_blocks(struct tmk_view *in, struct tmk_view *streams,
                               struct tmk_view *requested, uint64_t now_ns,
                               const struct tmk_region *map, struct tmk_state *s)
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
        block.context = mapped_id(map, tmk_view_varint(in)) & ((1u << TMK_CONTEXT_BITS) - 1);
        block.thread = (uint32_t)tmk_view_varint(in);
        uint64_t flags = tmk_view_varint(in);
        int64_t step = tmk_view_zigzag(in);
        block.step = flags & 1 ? tmk_state_step_of(s, step) : TMK_NO_STEP;
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

/* Reads section 39: blocks of which only the size is known. */
static void read_brief_blocks(struct tmk_view *in, uint64_t now_ns, struct tmk_state *s)
{
    uint64_t n = tmk_view_varint(in), shift = tmk_view_varint(in), address = 0;
    if (shift > 63)
        (void)tmk_view_fail(in);
    for (uint64_t i = 0; i < n && !in->bad; i++) {
        uint16_t device = (uint16_t)tmk_view_varint(in);
        address += (uint64_t)tmk_view_zigzag(in);
        uint64_t live = tmk_view_varint(in);
        struct tmk_block *b =
            in->bad || live == 0 ? NULL : tmk_state_entry(s, device, address << shift);
        if (b && !b->live)
            tmk_state_put_brief(s, b, live - 1, now_ns);
    }
}

/* Reads the segments. A segment that finds no room now may have found none before: it is not
 * counted twice. */
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
        g.context = mapped_id(map, tmk_view_varint(in));
        g.thread = (uint32_t)tmk_view_varint(in);
        uint64_t has_step = tmk_view_varint(in);
        int64_t step = tmk_view_zigzag(in);
        g.step = has_step ? tmk_state_step_of(s, step) : TMK_NO_STEP;
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
                             requested = blocks, brief = blocks;
    struct tmk_written_live live = {0};
    uint64_t id = 0;
    int rc;
    bool bad = false;
    while ((rc = tmk_section_next(&payload, &id, &section)) > 0) {
        if (id == TMK_SECTION_CONTEXT)
            bad |= tmk_context_restore(&section, now_ns, s) < 0;
        else if (id == TMK_SECTION_RESERVED)
            bad |= tmk_reserved_restore(section, s) < 0;
        else if (id == TMK_SECTION_TOTALS)
            bad |= tmk_totals_read(section, s, &live) < 0;
        else if (id == TMK_SECTION_STEP)
            tmk_open_rows_restore(section, s);
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
        else if (id == TMK_SECTION_BRIEF_BLOCKS)
            brief = section;
        bad |= section.bad;
    }
    if (tmk_view_left(&blocks) > 0)
        read_listed_blocks(&blocks, &streams, &requested, now_ns, &map, s);
    if (tmk_view_left(&segments) > 0)
        read_segments(&segments, now_ns, &map, s);
    if (tmk_view_left(&brief) > 0)
        read_brief_blocks(&brief, now_ns, s);
    tmk_state_settle_outside(s, &live);
    bad |= blocks.bad || streams.bad || segments.bad || requested.bad || brief.bad;
    tmk_region_fini(&map);
    return rc < 0 || bad ? TMK_EDAMAGED : 0;
}
