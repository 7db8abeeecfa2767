/* SPDX-License-Identifier: MIT */
/* trace/events.c - see events.h; docs/format.md 2.2. */
#include "trace/events.h"

#include <stdlib.h>

#include "trace/kinds.h"
#include "trace/snapshot.h"

static int grow_event_array(void **array, uint32_t *room, uint64_t n, size_t item_bytes)
{
    if (n <= *room)
        return 0;
    void *bigger = realloc(*array, (size_t)n * item_bytes);
    if (!bigger)
        return TMK_ENOMEM;
    *array = bigger;
    *room = (uint32_t)n;
    return 0;
}

static int read_addresses(struct tmk_cursor *c, struct tmk_view in)
{
    uint64_t n = tmk_view_varint(&in);
    uint64_t shift = tmk_view_varint(&in);
    if (in.bad || n > tmk_view_left(&in) / 3 || shift > 63)
        return TMK_EDAMAGED;
    if (grow_event_array((void **)&c->addresses, &c->address_room, n, sizeof *c->addresses) < 0)
        return TMK_ENOMEM;
    uint64_t address = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t device = tmk_view_varint(&in);
        address += (uint64_t)tmk_view_zigzag(&in);
        c->addresses[i].device = (uint16_t)device;
        c->addresses[i].address = address << shift;
        c->addresses[i].live = tmk_view_varint(&in);
    }
    c->n_addresses = (uint32_t)n;
    return in.bad ? TMK_EDAMAGED : 0;
}

static int read_shapes(struct tmk_cursor *c, struct tmk_view in)
{
    uint64_t n = tmk_view_varint(&in);
    if (in.bad || n > tmk_view_left(&in) / 2)
        return TMK_EDAMAGED;
    if (grow_event_array((void **)&c->shapes, &c->shape_room, n, sizeof *c->shapes) < 0)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < n; i++) {
        c->shapes[i].size_bytes = tmk_view_varint(&in);
        c->shapes[i].stack = (uint32_t)tmk_view_varint(&in);
        c->shapes[i].stream = 0;
        c->shapes[i].requested_bytes = 0;
    }
    c->n_shapes = (uint32_t)n;
    return in.bad ? TMK_EDAMAGED : 0;
}

static int read_streams(struct tmk_cursor *c, struct tmk_view in)
{
    for (uint32_t i = 0; i < c->n_shapes; i++)
        c->shapes[i].stream = (uint16_t)tmk_view_varint(&in);
    return in.bad ? TMK_EDAMAGED : 0;
}

static int read_requested(struct tmk_cursor *c, struct tmk_view in)
{
    for (uint32_t i = 0; i < c->n_shapes; i++)
        c->shapes[i].requested_bytes = tmk_view_varint(&in);
    return in.bad ? TMK_EDAMAGED : 0;
}

static int take_section(struct tmk_cursor *c, uint64_t id, struct tmk_view section)
{
    switch (id) {
    case TMK_SECTION_THREADS:
        c->threads = section;
        return 0;
    case TMK_SECTION_CONTEXT:
        c->context = section;
        return 0;
    case TMK_SECTION_ADDRESSES:
        return read_addresses(c, section);
    case TMK_SECTION_SHAPES:
        return read_shapes(c, section);
    case TMK_SECTION_STREAMS:
        return read_streams(c, section);
    case TMK_SECTION_REQUESTED:
        return read_requested(c, section);
    case TMK_SECTION_RESERVED:
        c->reserved = section;
        return 0;
    case TMK_SECTION_TOTALS:
        c->totals = section;
        return 0;
    case TMK_SECTION_STEP:
        c->open_rows = section;
        return 0;
    case TMK_SECTION_HEADS:
        c->heads = section;
        return 0;
    default:
        if (id > TMK_SECTION_DATA && id <= TMK_SECTION_DATA + TMK_KIND_OTHER)
            c->data[id - TMK_SECTION_DATA] = section;
        return 0;
    }
}

int tmk_cursor_begin(struct tmk_cursor *c, const struct tmk_chunk_header *chunk,
                     struct tmk_view payload, struct tmk_error *err)
{
    static const uint8_t nothing[1];
    struct tmk_view empty = tmk_view_of(nothing, 0);
    c->chunk = chunk;
    c->n_addresses = c->n_shapes = 0;
    c->now_ns = chunk->start_ns;
    c->n_left = chunk->n_items;
    c->run_left = 0;
    c->context = c->reserved = c->threads = c->heads = empty;
    c->totals = c->open_rows = empty;
    for (int k = 0; k <= TMK_KIND_OTHER; k++)
        c->data[k] = empty;
    struct tmk_view section;
    uint64_t id = 0;
    int rc;
    while ((rc = tmk_section_next(&payload, &id, &section)) > 0) {
        rc = take_section(c, id, section);
        if (rc < 0)
            break;
    }
    if (rc == 0 && tmk_view_left(&c->heads) < c->n_left)
        rc = TMK_EDAMAGED;
    if (rc < 0)
        return tmk_fail(err, rc, "an events chunk has sections that do not fit");
    return 0;
}

void tmk_cursor_fini(struct tmk_cursor *c)
{
    free(c->addresses);
    free(c->shapes);
    *c = (struct tmk_cursor){0};
}

/* The address of an ALLOC, FREE or TAG. */
static inline bool read_slot(struct tmk_cursor *c, struct tmk_view *in, struct tmk_event *ret)
{
    uint64_t slot = tmk_view_varint(in);
    if (slot >= c->n_addresses)
        return false;
    ret->slot = (uint32_t)slot;
    ret->address = c->addresses[slot].address;
    ret->device = c->addresses[slot].device;
    return true;
}

static void read_sample(struct tmk_view *body, struct tmk_sample_body *ret)
{
    ret->used_bytes = tmk_view_varint(body) - 1;
    ret->total_bytes = tmk_view_varint(body) - 1;
    ret->own_bytes = tmk_view_varint(body) - 1;
    ret->others_bytes = tmk_view_varint(body) - 1;
}

/* The device of an OOM says too who has refused. */
static void read_device(struct tmk_view *body, struct tmk_event *ret)
{
    uint16_t device = (uint16_t)tmk_view_varint(body);
    uint16_t flag = ret->kind == TMK_KIND_OOM ? TMK_OOM_OF_DRIVER : 0;
    ret->is_of_driver = (device & flag) != 0;
    ret->device = (uint16_t)(device & ~flag);
}

/* The fields that the event's kind has, in the order of their bits. */
static void read_fields(struct tmk_view *body, struct tmk_event *ret)
{
    unsigned has = tmk_kind_fields(ret->kind);
    if (has & TMK_HAS_DEVICE)
        read_device(body, ret);
    if (has & TMK_HAS_SEGMENT_KIND)
        ret->segment_kind = (uint8_t)tmk_view_varint(body);
    if (has & TMK_HAS_ADDRESS)
        ret->address = tmk_view_varint(body);
    ret->size_bytes = has & TMK_HAS_SIZE ? tmk_view_varint(body) : 0;
    if (has & TMK_HAS_CAPACITY)
        ret->capacity_bytes = tmk_view_varint(body);
    if (has & TMK_HAS_STACK)
        ret->stack = (uint32_t)tmk_view_varint(body);
    if (has & TMK_HAS_NAME)
        ret->name = (uint32_t)tmk_view_varint(body);
    if (has & TMK_HAS_FREE)
        ret->free_bytes = tmk_view_left(body) > 0 ? tmk_view_varint(body) - 1 : UINT64_MAX;
    if (has & TMK_HAS_SAMPLE)
        read_sample(body, &ret->sample);
    if (has & TMK_HAS_TEXT) {
        ret->text = (const char *)body->at;
        ret->text_bytes = (uint32_t)tmk_view_left(body);
    }
}

bool tmk_cursor_read_other(struct tmk_cursor *c, struct tmk_event *ret)
{
    struct tmk_view *in = &c->data[TMK_KIND_OTHER];
    uint64_t type = tmk_view_varint(in);
    uint64_t length = tmk_view_varint(in);
    struct tmk_view body = tmk_view_take(in, length);
    bool is_known = type < TMK_N_KINDS && tmk_kind_is_other((unsigned)type);
    ret->kind = is_known ? (uint8_t)type : TMK_KIND_NONE;
    read_fields(&body, ret);
    return !in->bad && !body.bad;
}

static inline bool read_data(struct tmk_cursor *c, struct tmk_event *ret)
{
    struct tmk_view *in = &c->data[ret->kind];
    uint64_t v;
    switch (ret->kind) {
    case TMK_KIND_ALLOC:
        if (!read_slot(c, in, ret) || (v = tmk_view_varint(in)) >= c->n_shapes)
            return false;
        ret->size_bytes = c->shapes[v].size_bytes;
        ret->stack = c->shapes[v].stack;
        ret->stream = c->shapes[v].stream;
        ret->requested_bytes = c->shapes[v].requested_bytes;
        break;
    case TMK_KIND_FREE:
        if (!read_slot(c, in, ret))
            return false;
        break;
    case TMK_KIND_TAG:
        if (!read_slot(c, in, ret))
            return false;
        ret->category = (uint8_t)tmk_view_varint(in);
        ret->name = (uint32_t)tmk_view_varint(in);
        break;
    case TMK_KIND_PUSH:
        v = tmk_view_varint(in);
        ret->range_kind = v & 3;
        ret->name = (uint32_t)(v >> 2);
        break;
    case TMK_KIND_POP:
        ret->range_kind = tmk_view_varint(in) & 3;
        break;
    case TMK_KIND_STEP:
        ret->step = tmk_view_zigzag(in);
        break;
    case TMK_KIND_OTHER:
        return tmk_cursor_read_other(c, ret);
    default:
        return false;
    }
    return !in->bad;
}

int tmk_cursor_next(struct tmk_cursor *c, struct tmk_event *ret)
{
    if (c->n_left == 0)
        return 0;
    if (__builtin_expect(c->run_left == 0, 0)) {
        c->thread = (uint32_t)tmk_view_varint(&c->threads);
        uint64_t run = tmk_view_varint(&c->threads);
        if (c->threads.bad || run == 0 || run > c->n_left)
            return TMK_EDAMAGED;
        c->run_left = (uint32_t)run;
    }
    c->run_left--;
    c->n_left--;
    uint64_t head = tmk_view_varint(&c->heads);
    c->now_ns += head >> 3;
    ret->time_ns = c->now_ns;
    ret->thread = c->thread;
    ret->kind = head & 7;
    return read_data(c, ret) && !c->heads.bad ? 1 : TMK_EDAMAGED;
}
