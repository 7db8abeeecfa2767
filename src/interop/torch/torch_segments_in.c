/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_segments_in.c - reads segments and blocks of a snapshot; see
 * torch_reader.h. */
#include "base/error.h"
#include "interop/pickle/pickle_value.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/torch_reader.h"
#include "interop/torch/torch_snapshot.h"
#include "kit/grow.h"

static uint8_t state_of_block(const struct tmk_pickle_value *v)
{
    switch (tmk_import_word_of(v)) {
    case TMK_WORD_active_allocated:
        return TMK_IMPORT_ALLOCATED;
    case TMK_WORD_active_pending_free:
    case TMK_WORD_active_awaiting_free: /* spelled as in the documentation */
        return TMK_IMPORT_PENDING_FREE;
    default:
        return TMK_IMPORT_INACTIVE;
    }
}

/* Old files have a list of what was at the address, the newest first. */
static void read_history(struct tmk_import_reader *r, const struct tmk_pickle_value *list,
                         struct tmk_import_block *b)
{
    if (list->kind != TMK_PICKLE_LIST || list->object->n == 0 ||
        list->object->items[0].kind != TMK_PICKLE_DICT)
        return;
    const struct tmk_pickle_object *newest = list->object->items[0].object;
    tmk_work_take(&r->s->work, newest->n);
    for (uint32_t i = 0; i + 1 < newest->n; i += 2) {
        const struct tmk_pickle_value *value = &newest->items[i + 1];
        enum tmk_import_word key = tmk_import_word_of(&newest->items[i]);
        if (key == TMK_WORD_real_size)
            (void)tmk_import_amount(value, &b->requested_bytes);
        else if (key == TMK_WORD_frames)
            b->stack = tmk_import_stack(r, value);
    }
}

/* Read a block, which lies at `at` if it does not say where. Returns false when it makes no
 * sense. */
static bool read_block(struct tmk_import_reader *r, const struct tmk_pickle_value *v, uint64_t at,
                       struct tmk_import_block *ret)
{
    struct tmk_import_block b = {.address = at};
    bool is_good = v->kind == TMK_PICKLE_DICT;
    for (uint32_t i = 0; is_good && i + 1 < v->object->n; i += 2) {
        const struct tmk_pickle_value *value = &v->object->items[i + 1];
        switch (tmk_import_word_of(&v->object->items[i])) {
        case TMK_WORD_address:
            is_good = tmk_import_amount(value, &b.address);
            break;
        case TMK_WORD_size:
            is_good = tmk_import_amount(value, &b.size_bytes);
            break;
        case TMK_WORD_requested_size:
            (void)tmk_import_amount(value, &b.requested_bytes);
            break;
        case TMK_WORD_state:
            b.state = state_of_block(value);
            break;
        case TMK_WORD_frames:
            b.stack = tmk_import_stack(r, value);
            break;
        case TMK_WORD_history:
            read_history(r, value, &b);
            break;
        default:
            break;
        }
    }
    *ret = b;
    return is_good;
}

static int read_segment_blocks(struct tmk_import_reader *r, const struct tmk_pickle_value *list,
                               struct tmk_import_segment *segment, struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    uint64_t at = segment->address;
    segment->first_block = s->n_blocks;
    for (uint32_t i = 0; list && list->kind == TMK_PICKLE_LIST && i < list->object->n; i++) {
        struct tmk_import_block b;
        const struct tmk_pickle_value *v = &list->object->items[i];
        uint64_t n = v->kind == TMK_PICKLE_DICT ? v->object->n : 0;
        if (!tmk_work_take(&s->work, TMK_IMPORT_ITEM_STEPS + n))
            return tmk_work_fail(&s->work, err);
        if (!read_block(r, v, at, &b))
            return tmk_fail(err, TMK_EFORMAT, "a block has no address or size that makes sense");
        at = b.address + b.size_bytes;
        if (TMK_GROW(s->blocks, s->n_blocks + 1, s->block_room) < 0)
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        s->blocks[s->n_blocks++] = b;
        segment->n_blocks++;
    }
    return 0;
}

int tmk_import_set_device(struct tmk_import_snapshot *s, uint64_t device, struct tmk_error *err)
{
    if (device >= TMK_IMPORT_MAX_DEVICES)
        return tmk_fail(err, TMK_EFORMAT, "it has a device %llu; devices 0 to %d can be read",
                        (unsigned long long)device, TMK_IMPORT_MAX_DEVICES - 1);
    if (device >= s->n_devices)
        s->n_devices = (uint32_t)device + 1;
    return 0;
}

int tmk_import_add_segment(struct tmk_import_reader *r, const struct tmk_pickle_object *dict,
                           struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_segment segment = {0};
    const struct tmk_pickle_value *blocks = NULL, *stream = NULL;
    uint64_t device = 0;
    bool is_good = true;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        switch (tmk_import_word_of(&dict->items[i])) {
        case TMK_WORD_device:
            is_good = is_good && tmk_import_amount(value, &device);
            break;
        case TMK_WORD_address:
            is_good = is_good && tmk_import_amount(value, &segment.address);
            break;
        case TMK_WORD_total_size:
            is_good = is_good && tmk_import_amount(value, &segment.size_bytes);
            break;
        case TMK_WORD_stream:
            stream = value;
            break;
        case TMK_WORD_is_expandable:
            segment.is_expandable = value->kind == TMK_PICKLE_BOOL && value->number;
            break;
        case TMK_WORD_frames:
            segment.stack = tmk_import_stack(r, value);
            break;
        case TMK_WORD_blocks:
            blocks = value;
            break;
        default:
            break;
        }
    }
    if (!is_good)
        return tmk_fail(err, TMK_EFORMAT,
                        "a segment has no device, address or size that makes "
                        "sense");
    int rc = tmk_import_set_device(s, device, err);
    if (rc == 0)
        rc = read_segment_blocks(r, blocks, &segment, err);
    if (rc < 0)
        return rc;
    segment.device = (uint16_t)device;
    segment.stream = stream ? tmk_import_stream(r, segment.device, stream) : 0;
    if (TMK_GROW(s->segments, s->n_segments + 1, s->segment_room) < 0)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s->segments[s->n_segments++] = segment;
    return 0;
}
