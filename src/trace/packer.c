/* SPDX-License-Identifier: MIT */
/* trace/packer.c - see packer.h; the layout of chunks is docs/format.md 2.
 *
 * Every section of the events chunk grows in a buffer of its own, sized for the worst case of
 * max_events, so adding never fails for lack of room; flush strings the sections together. All of
 * them lie in one region, which lay_out_packer() cuts up. The dictionary of addresses costs no
 * clearing: a mark counts only if it carries the current chunk's stamp. The dictionary of shapes
 * begins small in each chunk. */
#include "trace/packer.h"

#include <assert.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/region.h"
#include "trace/kinds.h"
#include "trace/pylines.h"
#include "trace/segments.h"
#include "trace/snapshot.h"

enum {
    DEFS_BYTES = TMK_PERMANENT_MAX_BYTES - TMK_CHUNK_HEADER_BYTES,
    STEPS_BYTES = TMK_PERMANENT_MAX_BYTES - TMK_CHUNK_HEADER_BYTES,
    STEP_ROW_BOUND = 16 * TMK_VARINT_MAX_BYTES,
    OTHER_SLACK = 2 * TMK_STRING_MAX_BYTES,
    SINK_SLACK = 16, /* a sink wants room for a whole varint, however short the last one is */
    CONTEXT_BYTES = 1 << 20,
    N_DATA = TMK_KIND_OTHER + 1,
    ADDRESS_BOUND = 3 + 2 * TMK_VARINT_MAX_BYTES, /* an entry of the dictionary */
    SECTION_HEADS = 4096,                         /* what all sections' types and lengths need */
    FIRST_SHAPE_SLOTS = 1024,
};

/* The most bytes that an event of each kind adds to its data section. */
static const uint32_t data_bound[N_DATA] = {0, 10, 5, 5 + 2 + 5, 6, 1, 10, 56};

struct dictionary_mark { /* by entry: its number in the chunk with that stamp */
    uint32_t stamp;
    uint32_t index;
};

struct tmk_packer {
    struct tmk_state state;
    struct tmk_packer_options options;
    struct tmk_chunk_out out;
    void (*commit)(void *arg, uint64_t seq);
    void *commit_arg;

    /* The chunk being filled. */
    uint32_t stamp;
    uint32_t n_events;
    uint64_t start_ns;
    uint64_t last_ns;
    int64_t first_step;
    uint32_t run_thread;
    uint32_t run_length;
    uint32_t n_addresses;
    uint64_t address_bits; /* all addresses or-ed: gives the common alignment */
    uint32_t n_shapes;
    bool has_streams; /* some shape's stream is not 0 */
    bool has_requested;
    bool device_ended; /* and with it the chunk: `live` of its addresses is found by looking now */
    struct tmk_sink threads, context, heads, shapes, streams, requested, reserved, data[N_DATA];
    struct tmk_sink totals, open_rows; /* before its first event */
    uint64_t *addresses; /* of the dictionary, with device and live beside: written at flush */
    uint16_t *address_devices;
    uint64_t *address_lives;

    uint32_t n_defs;
    struct tmk_sink defs;
    uint32_t n_steps;
    struct tmk_sink steps;
    uint64_t steps_start_ns, steps_end_ns;
    uint64_t rows_written; /* ordinal of the last step row that is, or will be, in the file */

    struct dictionary_mark *marks;
    struct tmk_shape *known_shapes; /* those of the chunk */
    struct tmk_index shape_index;   /* of them; the number is the one in the chunk + 1 */

    uint64_t bytes_since_checkpoint;
    uint64_t last_checkpoint_bytes;
    uint64_t permanent_bytes; /* of the file, in definitions and step rows */
    int failed;               /* the out's error, sticky */

    struct tmk_sink payload;
    struct tmk_region memory;
    struct tmk_region self;
};

/* ---- opening ---- */

struct tmk_packer_options tmk_packer_options_for(uint64_t max_size_bytes,
                                                 const struct tmk_state_limits *limits)
{
    struct tmk_packer_options o = {
        .limits = *limits, .max_events = 32768, .max_size_bytes = max_size_bytes};
    if (max_size_bytes == 0)
        return o;
    uint64_t events = max_size_bytes / 256;
    if (events < o.max_events)
        o.max_events = events < 512 ? 512 : (uint32_t)events;
    o.checkpoint_bytes = max_size_bytes / 16;
    return o;
}

/* Memory that is cut up from its beginning. Without a base it is only counted. */
struct cutter {
    uint8_t *base;
    size_t n_bytes;
};

static void *cut_buffer(struct cutter *c, size_t n)
{
    void *at = c->base ? c->base + c->n_bytes : NULL;
    c->n_bytes += (n + 63) & ~(size_t)63;
    return at;
}

static struct tmk_sink cut_sink(struct cutter *c, size_t n)
{
    uint8_t *at = cut_buffer(c, n);
    return at ? tmk_sink_of(at, n) : (struct tmk_sink){0};
}

/* Lays out every buffer that becomes a section, except the dictionary of addresses. */
static void lay_out_sections(struct tmk_packer *p, struct cutter *c)
{
    size_t n = p->options.max_events;
    p->threads = cut_sink(c, n * 10 + SINK_SLACK);
    p->context = cut_sink(c, CONTEXT_BYTES);
    p->heads = cut_sink(c, n * 10 + SINK_SLACK);
    p->shapes = cut_sink(c, n * 15 + SINK_SLACK);
    p->streams = cut_sink(c, n * 3 + SINK_SLACK);
    p->requested = cut_sink(c, n * 10 + SINK_SLACK);
    p->reserved = cut_sink(c, TMK_RESERVED_BOUND);
    p->totals = cut_sink(c, TMK_TOTALS_BOUND);
    p->open_rows = cut_sink(c, TMK_ROWS_BOUND);
    for (int k = 1; k < N_DATA; k++)
        p->data[k] =
            cut_sink(c, n * data_bound[k] + (k == TMK_KIND_OTHER ? OTHER_SLACK : 0) + SINK_SLACK);
}

/* Places all buffers of the packer at `base`; with NULL it only counts their bytes. Returns the
 * count. */
static size_t lay_out_packer(struct tmk_packer *p, uint8_t *base)
{
    struct cutter c = {.base = base};
    size_t n = p->options.max_events;
    lay_out_sections(p, &c);
    p->payload = cut_sink(&c, c.n_bytes + n * ADDRESS_BOUND + SECTION_HEADS);
    p->defs = cut_sink(&c, DEFS_BYTES);
    p->steps = cut_sink(&c, STEPS_BYTES);
    p->addresses = cut_buffer(&c, n * sizeof *p->addresses);
    p->address_lives = cut_buffer(&c, n * sizeof *p->address_lives);
    p->address_devices = cut_buffer(&c, n * sizeof *p->address_devices);
    p->known_shapes = cut_buffer(&c, n * sizeof *p->known_shapes);
    p->shape_index.slots = cut_buffer(&c, (size_t)tmk_index_slots_for(n, FIRST_SHAPE_SLOTS) *
                                              sizeof *p->shape_index.slots);
    p->marks = cut_buffer(&c, ((size_t)p->options.limits.max_blocks + 1) * sizeof *p->marks);
    return c.n_bytes;
}

static void note_step_row(void *arg, const struct tmk_step_row *row);
static bool is_chunk_due(const struct tmk_packer *p);

int tmk_packer_open(const struct tmk_packer_options *options, const struct tmk_chunk_out *out,
                    struct tmk_packer **ret_packer)
{
    struct tmk_region self = {0};
    int rc = tmk_region_init(&self, sizeof(struct tmk_packer));
    if (rc < 0)
        return rc;
    struct tmk_packer *p = self.base;
    p->self = self;
    p->options = *options;
    p->out = *out;
    p->stamp = 1;
    p->first_step = TMK_NO_STEP;
    rc = tmk_state_init(&p->state, &options->limits);
    if (rc == 0)
        rc = tmk_region_init(&p->memory, lay_out_packer(p, NULL));
    if (rc < 0) {
        tmk_packer_close(p);
        return rc;
    }
    lay_out_packer(p, p->memory.base);
    p->state.on_step_row = note_step_row;
    p->state.on_step_row_arg = p;
    *ret_packer = p;
    return 0;
}

struct tmk_packer *tmk_packer_close(struct tmk_packer *p)
{
    if (p) {
        tmk_state_fini(&p->state);
        tmk_region_fini(&p->memory);
        struct tmk_region self = p->self;
        tmk_region_fini(&self);
    }
    return NULL;
}

void tmk_packer_on_commit(struct tmk_packer *p, void (*commit)(void *arg, uint64_t seq), void *arg)
{
    p->commit = commit;
    p->commit_arg = arg;
}

struct tmk_state *tmk_packer_state(struct tmk_packer *p)
{
    return &p->state;
}

void tmk_packer_bound(struct tmk_packer *p, uint64_t max_size_bytes)
{
    struct tmk_packer_options o = tmk_packer_options_for(max_size_bytes, &p->options.limits);
    p->options.checkpoint_bytes = o.checkpoint_bytes;
    p->options.max_size_bytes = max_size_bytes;
    if (p->bytes_since_checkpoint < o.checkpoint_bytes)
        p->bytes_since_checkpoint = o.checkpoint_bytes;
    p->last_checkpoint_bytes = 0;
}

void tmk_packer_skip_rows(struct tmk_packer *p, uint64_t ordinal)
{
    p->rows_written = ordinal;
}

void tmk_packer_count_permanent(struct tmk_packer *p, uint64_t n_bytes)
{
    p->permanent_bytes += n_bytes;
}

/* ---- writing chunks ---- */

static struct tmk_chunk_header header_of(enum tmk_chunk_kind kind, uint32_t n_items,
                                         uint64_t start_ns, uint64_t end_ns)
{
    return (struct tmk_chunk_header){
        .magic = TMK_CHUNK_MAGIC,
        .kind = (uint16_t)kind,
        .flags = kind == TMK_CHUNK_DEFS || kind == TMK_CHUNK_STEPS ? TMK_CHUNK_PERMANENT : 0,
        .n_items = n_items,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .first_step = TMK_NO_STEP,
        .last_step = TMK_NO_STEP,
    };
}

static int write_chunk(struct tmk_packer *p, struct tmk_chunk_header *header,
                       const uint8_t *payload, size_t n, bool decisive)
{
    uint64_t seq = 0;
    int rc = p->out.reserve(p->out.arg, n, &seq);
    if (rc == 0 && decisive && p->commit)
        p->commit(p->commit_arg, seq);
    header->payload_bytes = (uint32_t)n;
    if (rc == 0)
        rc = p->out.append(p->out.arg, header, payload);
    if (rc < 0)
        p->failed = rc;
    p->bytes_since_checkpoint += n + TMK_CHUNK_HEADER_BYTES;
    if (rc == 0 && header->flags & TMK_CHUNK_PERMANENT)
        tmk_packer_count_permanent(p, tmk_chunk_bytes(n));
    return rc;
}

static int write_defs(struct tmk_packer *p, bool decisive)
{
    if (p->n_defs == 0)
        return 0;
    struct tmk_chunk_header h =
        header_of(TMK_CHUNK_DEFS, p->n_defs, p->state.now_ns, p->state.now_ns);
    int rc = write_chunk(p, &h, p->defs.start, tmk_sink_length(&p->defs), decisive);
    p->defs.at = p->defs.start;
    p->n_defs = 0;
    return rc;
}

static int write_step_rows(struct tmk_packer *p)
{
    if (p->n_steps == 0)
        return 0;
    struct tmk_chunk_header h =
        header_of(TMK_CHUNK_STEPS, p->n_steps, p->steps_start_ns, p->steps_end_ns);
    int rc = write_chunk(p, &h, p->steps.start, tmk_sink_length(&p->steps), false);
    p->steps.at = p->steps.start;
    p->n_steps = 0;
    return rc;
}

static void end_run(struct tmk_packer *p)
{
    if (p->run_length == 0)
        return;
    tmk_sink_varint(&p->threads, p->run_thread);
    tmk_sink_varint(&p->threads, p->run_length);
    p->run_length = 0;
}

/* Writes the address dictionary into the payload directly: its length is not known before. */
static void write_addresses(struct tmk_packer *p)
{
    if (p->n_addresses == 0)
        return;
    unsigned shift = p->address_bits ? (unsigned)__builtin_ctzll(p->address_bits) : 0;
    struct tmk_sink body = {
        .start = p->payload.at + 12, .at = p->payload.at + 12, .end = p->payload.end};
    tmk_sink_varint(&body, p->n_addresses);
    tmk_sink_varint(&body, shift);
    uint64_t previous = 0;
    for (uint32_t i = 0; i < p->n_addresses; i++) {
        uint64_t address = p->addresses[i] >> shift;
        tmk_sink_varint(&body, p->address_devices[i]);
        tmk_sink_zigzag(&body, (int64_t)(address - previous));
        tmk_sink_varint(&body, p->address_lives[i]);
        previous = address;
    }
    size_t n = tmk_sink_length(&body);
    tmk_sink_varint(&p->payload, TMK_SECTION_ADDRESSES);
    tmk_sink_varint(&p->payload, n);
    memmove(p->payload.at, body.start, n);
    p->payload.at += n;
}

static void write_shapes(struct tmk_packer *p)
{
    size_t n = tmk_sink_length(&p->shapes);
    if (n == 0)
        return;
    tmk_sink_varint(&p->payload, TMK_SECTION_SHAPES);
    tmk_sink_varint(&p->payload, n + tmk_varint_bytes(p->n_shapes));
    tmk_sink_varint(&p->payload, p->n_shapes);
    tmk_sink_bytes(&p->payload, p->shapes.start, n);
}

static int write_events(struct tmk_packer *p)
{
    if (p->n_events == 0)
        return 0;
    end_run(p);
    p->payload.at = p->payload.start;
    tmk_section_write(&p->payload, TMK_SECTION_THREADS, &p->threads);
    tmk_section_write(&p->payload, TMK_SECTION_CONTEXT, &p->context);
    write_addresses(p);
    write_shapes(p);
    tmk_section_write(&p->payload, TMK_SECTION_HEADS, &p->heads);
    if (p->has_streams)
        tmk_section_write(&p->payload, TMK_SECTION_STREAMS, &p->streams);
    tmk_section_write(&p->payload, TMK_SECTION_RESERVED, &p->reserved);
    for (unsigned k = 1; k < N_DATA; k++)
        tmk_section_write(&p->payload, TMK_SECTION_DATA + k, &p->data[k]);
    tmk_section_write(&p->payload, TMK_SECTION_TOTALS, &p->totals);
    tmk_section_write(&p->payload, TMK_SECTION_STEP, &p->open_rows);
    if (p->has_requested)
        tmk_section_write(&p->payload, TMK_SECTION_REQUESTED, &p->requested);
    if (p->payload.full || p->context.full)
        return p->failed = TMK_EFULL;
    struct tmk_chunk_header h = header_of(TMK_CHUNK_EVENTS, p->n_events, p->start_ns, p->last_ns);
    h.first_step = p->first_step;
    h.last_step = p->state.step;
    return write_chunk(p, &h, p->payload.start, tmk_sink_length(&p->payload), true);
}

static void begin_chunk(struct tmk_packer *p)
{
    p->stamp++;
    p->n_events = p->n_addresses = p->n_shapes = 0;
    p->address_bits = 0;
    tmk_index_reset(&p->shape_index, FIRST_SHAPE_SLOTS);
    p->has_streams = p->has_requested = p->device_ended = false;
    p->threads.at = p->threads.start;
    p->heads.at = p->heads.start;
    p->shapes.at = p->shapes.start;
    p->streams.at = p->streams.start;
    p->requested.at = p->requested.start;
    for (int k = 1; k < N_DATA; k++)
        p->data[k].at = p->data[k].start;
    tmk_state_compact(&p->state);
}

/* A checkpoint is due after `checkpoint_bytes` of chunks, but at most half of the written bytes are
 * checkpoints. */
static bool is_checkpoint_due(const struct tmk_packer *p)
{
    uint64_t due = p->options.checkpoint_bytes;
    return due && p->bytes_since_checkpoint >= due &&
           p->bytes_since_checkpoint >= p->last_checkpoint_bytes;
}

/* The bytes that a checkpoint may take. The file, without its permanent chunks, must have room for
 * the last checkpoint, as many bytes of events, the next checkpoint, and a gap at its end: so the
 * circle never gives up the last checkpoint before the next is written. */
static size_t checkpoint_room(const struct tmk_packer *p)
{
    uint64_t size = p->options.max_size_bytes;
    uint64_t taken = p->permanent_bytes + 4 * TMK_PERMANENT_MAX_BYTES + size / 16;
    uint64_t room = size > taken ? (size - taken) / 4 : 0;
    return size == 0 || room > TMK_CHUNK_MAX_PAYLOAD ? TMK_CHUNK_MAX_PAYLOAD : (size_t)room;
}

/* Without memory or room no checkpoint is written now: events chunks have the totals, the open step
 * rows and the number of live blocks. */
static int write_checkpoint(struct tmk_packer *p)
{
    size_t bound = tmk_checkpoint_bound(&p->state);
    struct tmk_region buffer = {0};
    uint32_t n_detailed = 0;
    int rc = 0;
    p->bytes_since_checkpoint = 0;
    if (tmk_region_init(&buffer, bound * 2) < 0) {
        p->state.is_cut = true;
        return 0;
    }
    struct tmk_sink out = tmk_sink_of(buffer.base, bound);
    if (tmk_checkpoint_write(&out, &p->state, p->state.now_ns, (uint8_t *)buffer.base + bound,
                             checkpoint_room(p), &n_detailed)) {
        struct tmk_chunk_header h =
            header_of(TMK_CHUNK_CHECKPOINT, n_detailed, p->state.now_ns, p->state.now_ns);
        h.first_step = h.last_step = p->state.step;
        rc = write_chunk(p, &h, out.start, tmk_sink_length(&out), false);
        p->last_checkpoint_bytes = tmk_sink_length(&out);
        p->bytes_since_checkpoint = 0;
    }
    p->state.is_cut |= n_detailed < p->state.n_live;
    tmk_region_fini(&buffer);
    return rc;
}

int tmk_packer_flush(struct tmk_packer *p)
{
    if (p->failed)
        return p->failed;
    int rc = write_defs(p, p->n_events == 0);
    if (rc == 0)
        rc = write_events(p);
    if (rc == 0)
        rc = write_step_rows(p);
    begin_chunk(p);
    if (rc == 0 && is_checkpoint_due(p))
        rc = write_checkpoint(p);
    return rc;
}

int tmk_packer_finish(struct tmk_packer *p)
{
    int rc = is_chunk_due(p) ? tmk_packer_flush(p) : 0; /* so that there is room for the rows */
    for (uint32_t i = 0; rc == 0 && i < p->state.n_devices; i++) {
        struct tmk_step_row row = tmk_state_open_row(&p->state, i);
        note_step_row(p, &row);
    }
    return rc < 0 ? rc : tmk_packer_flush(p);
}

/* ---- adding records ---- */

static void note_step_row(void *arg, const struct tmk_step_row *row)
{
    struct tmk_packer *p = arg;
    if (row->ordinal <= p->rows_written || p->steps.end - p->steps.at < STEP_ROW_BOUND)
        return; /* no room: only when a damaged trace is merged, and then a row is missing */
    if (p->n_steps == 0)
        p->steps_start_ns = row->start_ns;
    p->steps_end_ns = row->end_ns;
    tmk_step_row_write(&p->steps, row);
    p->n_steps++;
    p->rows_written = row->ordinal;
}

/* Writes name, flags, device, address and size, which stand before the text in the ring too. */
static void write_parameter(struct tmk_sink *body, const struct tmk_input *in)
{
    struct tmk_parameter_head head;
    memcpy(&head, in->text, sizeof head);
    tmk_sink_varint(body, head.name);
    tmk_sink_varint(body, in->a >> 16);
    tmk_sink_varint(body, in->a & 0xffff);
    tmk_sink_varint(body, head.address);
    tmk_sink_varint(body, head.size_bytes);
}

/* Writes the numbers between a definition's id and its text. */
static void write_def_numbers(struct tmk_sink *body, const struct tmk_input *in)
{
    switch (in->kind) {
    case TMK_KIND_DEF_FRAME:
    case TMK_KIND_DEF_CODE:
        tmk_sink_varint(body, in->a >> 32);
        tmk_sink_varint(body, (uint32_t)in->a);
        tmk_sink_varint(body, in->kind == TMK_KIND_DEF_CODE ? (uint32_t)in->b : in->b);
        if (in->kind == TMK_KIND_DEF_CODE)
            tmk_sink_varint(body, in->b >> 32);
        break;
    case TMK_KIND_DEF_THREAD:
    case TMK_KIND_DEF_LINES:
    case TMK_KIND_DEF_MODULE:
    case TMK_KIND_DEF_TORCH_MODULE:
        tmk_sink_varint(body, in->a);
        break;
    case TMK_KIND_DEF_CODE_FRAME:
    case TMK_KIND_DEF_NATIVE_FRAME:
    case TMK_KIND_DEF_LINES_311:
        tmk_sink_varint(body, in->a);
        tmk_sink_varint(body, in->b);
        break;
    case TMK_KIND_DEF_STREAM:
        tmk_sink_varint(body, in->device);
        tmk_sink_varint(body, in->a);
        break;
    case TMK_KIND_DEF_PARAMETER:
        write_parameter(body, in);
        break;
    default: /* a string has its text only */
        break;
    }
}

static void add_def(struct tmk_packer *p, const struct tmk_input *in)
{
    uint8_t head[6 * TMK_VARINT_MAX_BYTES];
    struct tmk_sink body = tmk_sink_of(head, sizeof head);
    uint32_t skip = in->kind == TMK_KIND_DEF_PARAMETER ? sizeof(struct tmk_parameter_head) : 0;
    tmk_sink_varint(&body, in->id);
    write_def_numbers(&body, in);
    tmk_sink_varint(&p->defs, in->kind - TMK_KIND_OF_DEF);
    tmk_sink_varint(&p->defs, tmk_sink_length(&body) + in->text_bytes - skip);
    tmk_sink_bytes(&p->defs, head, tmk_sink_length(&body));
    tmk_sink_bytes(&p->defs, in->text + skip, in->text_bytes - skip);
    p->n_defs++;
}

/* Adds a line table as runs of a line, which need a tenth of the bytes. A table that cannot be
 * written so stays as it is. */
static void add_lines_311(struct tmk_packer *p, const struct tmk_input *in)
{
    uint8_t runs[TMK_STRING_MAX_BYTES + SINK_SLACK];
    struct tmk_sink out = tmk_sink_of(runs, sizeof runs);
    struct tmk_input def = *in;
    if (tmk_pylines_runs(in->text, in->text_bytes, &out)) {
        def.b = in->text_bytes; /* of the table, that they stand for */
        def.text = runs;
        def.text_bytes = (uint32_t)tmk_sink_length(&out);
    } else {
        def.kind = TMK_KIND_DEF_LINES;
    }
    add_def(p, &def);
}

static void add_stack_def(struct tmk_packer *p, const struct tmk_input *in)
{
    uint32_t n = in->text_bytes / 4;
    size_t length = tmk_varint_bytes(in->id);
    for (uint32_t i = 0; i < n; i++)
        length += tmk_varint_bytes(tmk_load_u32(in->text + 4 * i));
    tmk_sink_varint(&p->defs, TMK_DEF_STACK);
    tmk_sink_varint(&p->defs, length);
    tmk_sink_varint(&p->defs, in->id);
    for (uint32_t i = 0; i < n; i++)
        tmk_sink_varint(&p->defs, tmk_load_u32(in->text + 4 * i));
    p->n_defs++;
}

/* The address's number in this chunk's dictionary. `b` may be NULL: then it gets a new one. */
static uint32_t dictionary_index(struct tmk_packer *p, const struct tmk_block *b,
                                 const struct tmk_input *in)
{
    struct dictionary_mark *mark = b ? &p->marks[tmk_state_index(&p->state, b)] : NULL;
    if (mark && mark->stamp == p->stamp)
        return mark->index;
    uint32_t i = p->n_addresses++;
    p->addresses[i] = in->a;
    p->address_devices[i] = in->device;
    p->address_lives[i] = b && b->live ? b->size_bytes + 1 : 0;
    p->address_bits |= in->a;
    if (mark)
        *mark = (struct dictionary_mark){.stamp = p->stamp, .index = i};
    return i;
}

static bool is_same_shape(const struct tmk_shape *a, const struct tmk_shape *b)
{
    return a->size_bytes == b->size_bytes && a->stack == b->stack && a->stream == b->stream &&
           a->requested_bytes == b->requested_bytes;
}

static uint64_t shape_hash(const struct tmk_shape *shape)
{
    return tmk_hash_u64(shape->size_bytes ^ ((uint64_t)shape->stack << 40) ^
                        (uint64_t)shape->stream << 24 ^ shape->requested_bytes << 8);
}

static void index_shapes(struct tmk_packer *p, uint32_t n_slots)
{
    tmk_index_reset(&p->shape_index, n_slots);
    for (uint32_t i = 0; i < p->n_shapes; i++)
        tmk_index_add(&p->shape_index, shape_hash(&p->known_shapes[i]), i + 1);
}

static void add_shape(struct tmk_packer *p, const struct tmk_shape *shape, uint64_t hash)
{
    if (!tmk_index_has_room(&p->shape_index))
        index_shapes(p, 2 * tmk_index_n_slots(&p->shape_index));
    p->known_shapes[p->n_shapes++] = *shape;
    tmk_index_add(&p->shape_index, hash, p->n_shapes);
    tmk_sink_varint(&p->shapes, shape->size_bytes);
    tmk_sink_varint(&p->shapes, shape->stack);
    tmk_sink_varint(&p->streams, shape->stream);
    p->has_streams |= shape->stream != 0;
    tmk_sink_varint(&p->requested, shape->requested_bytes);
    p->has_requested |= shape->requested_bytes != 0;
}

/* The shape's number in this chunk's dictionary. */
static uint32_t shape_number(struct tmk_packer *p, const struct tmk_shape *shape)
{
    uint64_t hash = shape_hash(shape);
    struct tmk_probe probe = tmk_index_probe(&p->shape_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (is_same_shape(&p->known_shapes[i - 1], shape))
            return i - 1;
    add_shape(p, shape, hash);
    return p->n_shapes - 1;
}

static void apply_other(struct tmk_packer *p, const struct tmk_input *in, uint64_t ns)
{
    if (in->kind == TMK_KIND_RESERVED) {
        tmk_state_reserved(&p->state, ns, in->device, in->a);
    } else if (in->kind == TMK_KIND_DEVICE_END) {
        tmk_state_device_end(&p->state, ns, in->device);
        p->device_ended = true;
    } else if (in->kind == TMK_KIND_SEGMENT) {
        tmk_state_segment(&p->state, ns, in->thread,
                          &(struct tmk_driver_segment){.address = in->a,
                                                       .size_bytes = in->b,
                                                       .stack = in->id,
                                                       .device = in->device,
                                                       .kind = (uint8_t)in->stream});
    } else if (in->kind == TMK_KIND_SEGMENT_END) {
        tmk_state_segment_end(&p->state, ns, (uint8_t)in->stream, in->a, NULL);
    } else {
        if (in->kind == TMK_KIND_DROP)
            p->state.n_dropped += in->a;
        tmk_state_other(&p->state, ns);
    }
}

/* Numbers that may be unknown are written one higher: 0 is unknown. */
static void write_sample_event(struct tmk_sink *body, const struct tmk_input *in)
{
    struct tmk_sample_body sample;
    memcpy(&sample, in->text, sizeof sample);
    tmk_sink_varint(body, sample.used_bytes + 1);
    tmk_sink_varint(body, sample.total_bytes + 1);
    tmk_sink_varint(body, sample.own_bytes + 1);
    tmk_sink_varint(body, sample.others_bytes + 1);
}

/* An event's fields in the order of their bits, but for its text. */
static void write_fields(struct tmk_sink *body, const struct tmk_input *in)
{
    unsigned has = tmk_kind_fields(in->kind);
    if (has & TMK_HAS_DEVICE)
        tmk_sink_varint(body, has & TMK_HAS_SAMPLE ? in->id : in->device);
    if (has & TMK_HAS_SEGMENT_KIND)
        tmk_sink_varint(body, in->stream);
    if (has & TMK_HAS_ADDRESS)
        tmk_sink_varint(body, in->a);
    if (has & TMK_HAS_SIZE)
        tmk_sink_varint(body, has & TMK_HAS_ADDRESS ? in->b : in->a);
    if (has & TMK_HAS_CAPACITY)
        tmk_sink_varint(body, in->b);
    if (has & (TMK_HAS_STACK | TMK_HAS_NAME))
        tmk_sink_varint(body, in->id);
    if (has & TMK_HAS_FREE && in->requested)
        tmk_sink_varint(body, in->requested);
    if (has & TMK_HAS_SAMPLE)
        write_sample_event(body, in);
}

static void add_other(struct tmk_packer *p, const struct tmk_input *in, uint64_t ns)
{
    uint8_t head[5 * TMK_VARINT_MAX_BYTES];
    struct tmk_sink body = tmk_sink_of(head, sizeof head);
    uint32_t text_bytes = tmk_kind_fields(in->kind) & TMK_HAS_TEXT ? in->text_bytes : 0;
    write_fields(&body, in);
    struct tmk_sink *out = &p->data[TMK_KIND_OTHER];
    tmk_sink_varint(out, in->kind);
    tmk_sink_varint(out, tmk_sink_length(&body) + text_bytes);
    tmk_sink_bytes(out, head, tmk_sink_length(&body));
    tmk_sink_bytes(out, in->text, text_bytes);
    apply_other(p, in, ns);
}

static void add_block_event(struct tmk_packer *p, const struct tmk_input *in, uint64_t ns)
{
    struct tmk_block *b = tmk_state_entry(&p->state, in->device, in->a);
    uint32_t index = dictionary_index(p, b, in);
    struct tmk_sink *out = &p->data[in->kind];
    tmk_sink_varint(out, index);
    if (in->kind == TMK_KIND_ALLOC) {
        struct tmk_shape shape = {.size_bytes = in->b,
                                  .requested_bytes = in->requested,
                                  .stack = in->id,
                                  .stream = in->stream};
        tmk_sink_varint(out, shape_number(p, &shape));
        if (b && b->live)
            tmk_state_replace(&p->state, b);
        tmk_state_alloc(&p->state, b, ns, in->device, in->thread, &shape);
    } else if (in->kind == TMK_KIND_FREE) {
        tmk_state_free(&p->state, b, ns, in->device, in->thread);
    } else {
        tmk_sink_varint(out, (uint8_t)in->b);
        tmk_sink_varint(out, in->id);
        tmk_state_tag(&p->state, b, ns, (uint8_t)in->b, in->id);
    }
}

static void add_range_event(struct tmk_packer *p, const struct tmk_input *in, uint64_t ns)
{
    uint8_t kind = in->a & 3;
    if (in->kind == TMK_KIND_PUSH) {
        tmk_sink_varint(&p->data[TMK_KIND_PUSH], ((uint64_t)in->id << 2) | kind);
        tmk_state_push(&p->state, ns, in->thread, kind, in->id);
    } else {
        tmk_sink_varint(&p->data[TMK_KIND_POP], kind);
        tmk_state_pop(&p->state, ns, in->thread, kind, NULL);
    }
}

/* The part common to all events: time, kind, thread; the first one fixes the chunk's context. */
static uint64_t add_head(struct tmk_packer *p, const struct tmk_input *in)
{
    uint64_t ns = in->ns > p->state.now_ns ? in->ns : p->state.now_ns;
    if (p->n_events == 0) {
        p->start_ns = p->last_ns = ns;
        p->first_step = p->state.step;
        p->context.at = p->context.start;
        tmk_context_write(&p->context, &p->state, ns);
        p->reserved.at = p->reserved.start;
        tmk_reserved_write(&p->reserved, &p->state);
        p->totals.at = p->totals.start;
        tmk_totals_write(&p->totals, &p->state);
        p->open_rows.at = p->open_rows.start;
        tmk_open_rows_write(&p->open_rows, &p->state);
    }
    if (p->run_length > 0 && p->run_thread != in->thread)
        end_run(p);
    p->run_thread = in->thread;
    p->run_length++;
    uint8_t kind = in->kind < TMK_KIND_OTHER ? in->kind : TMK_KIND_OTHER;
    tmk_sink_varint(&p->heads, ((ns - p->last_ns) << 3) | kind);
    p->last_ns = ns;
    p->n_events++;
    return ns;
}

static bool is_chunk_due(const struct tmk_packer *p)
{
    const struct tmk_sink *other = &p->data[TMK_KIND_OTHER];
    return p->device_ended || p->n_events >= p->options.max_events ||
           other->end - other->at < OTHER_SLACK ||
           p->defs.end - p->defs.at < 4 * TMK_STRING_MAX_BYTES ||
           p->steps.end - p->steps.at < TMK_MAX_DEVICES * STEP_ROW_BOUND;
}

int tmk_packer_add(struct tmk_packer *p, const struct tmk_input *in)
{
    assert(!is_chunk_due(p));
    switch (in->kind) {
    case TMK_KIND_ALLOC:
    case TMK_KIND_FREE:
    case TMK_KIND_TAG:
        add_block_event(p, in, add_head(p, in));
        break;
    case TMK_KIND_PUSH:
    case TMK_KIND_POP:
        add_range_event(p, in, add_head(p, in));
        break;
    case TMK_KIND_STEP: {
        uint64_t ns = add_head(p, in);
        tmk_sink_zigzag(&p->data[TMK_KIND_STEP], (int64_t)in->a);
        tmk_state_step(&p->state, ns, (int64_t)in->a);
        break;
    }
    case TMK_KIND_DEF_LINES_311:
        add_lines_311(p, in);
        break;
    case TMK_KIND_DEF_STACK:
        add_stack_def(p, in);
        break;
    default:
        if (!tmk_kind_takes_text(in->kind, in->a, in->text_bytes))
            return TMK_EINVAL;
        if (tmk_kind_is_definition(in->kind))
            add_def(p, in);
        else if (tmk_kind_is_other(in->kind))
            add_other(p, in, add_head(p, in));
        else
            return TMK_EINVAL;
    }
    return is_chunk_due(p);
}
