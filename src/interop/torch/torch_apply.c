/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_apply.c - turns events of a snapshot into events of a trace; see
 * torch_maker.h. */
#include <string.h>

#include "base/error.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/spool.h"
#include "interop/torch/torch_history.h"
#include "interop/torch/torch_layout.h"
#include "interop/torch/torch_maker.h"
#include "interop/torch/torch_snapshot.h"
#include "trace/kinds.h"
#include "trace/packer.h"
#include "trace/segments.h"

/* ---- segments ---- */

int tmk_import_put_segment(struct tmk_import_maker *m, struct tmk_import_track *t,
                           const struct tmk_import_span *span, uint32_t stack, bool is_end)
{
    static const uint8_t plain[] = {TMK_SEGMENT_DEVICE};
    static const uint8_t expandable[] = {TMK_SEGMENT_PHYSICAL, TMK_SEGMENT_MAPPING};
    const uint8_t *kinds = span->is_expandable ? expandable : plain;
    size_t n = span->is_expandable ? sizeof expandable : sizeof plain;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = tmk_import_put(
            m, &(struct tmk_input){.kind = is_end ? TMK_KIND_SEGMENT_END : TMK_KIND_SEGMENT,
                                   .device = t->device,
                                   .stream = kinds[i],
                                   .a = span->address,
                                   .b = is_end ? 0 : span->size_bytes,
                                   .id = is_end ? 0 : tmk_import_driver_stack(m, stack),
                                   .thread = t->thread});
    return rc;
}

int tmk_import_put_reserved(struct tmk_import_maker *m, struct tmk_import_track *t)
{
    return tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_RESERVED,
                                                 .device = t->device,
                                                 .a = t->reserved_bytes,
                                                 .thread = t->thread});
}

/* Begin or end in the trace all spans that reach into [from, to). */
static int put_spans(struct tmk_import_maker *m, struct tmk_import_track *t,
                     const struct tmk_import_span *window, uint32_t stack, bool is_end)
{
    const struct tmk_import_layout *l = t->history.layout;
    uint64_t end = window->address + window->size_bytes;
    struct tmk_import_span span;
    int rc = 0;
    for (uint64_t i = tmk_import_layout_first_span(l, window->address);
         rc == 0 && tmk_import_layout_span(l, i, &span) && span.address < end; i++) {
        if (!tmk_work_take(&m->s->work, TMK_IMPORT_RECORD_STEPS))
            return TMK_EFULL;
        if (span.is_expandable != window->is_expandable)
            continue;
        t->reserved_bytes += is_end ? 0 - span.size_bytes : span.size_bytes;
        rc = tmk_import_put_segment(m, t, &span, stack, is_end);
    }
    return rc;
}

/* Memory that an expandable segment gains joins its neighbours, so these are looked at too. */
static int change_segments(struct tmk_import_maker *m, struct tmk_import_track *t,
                           const struct tmk_import_event *ev)
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
    return rc < 0 ? rc : tmk_import_put_reserved(m, t);
}

/* ---- blocks ---- */

static int put_tag(struct tmk_import_maker *m, const struct tmk_import_track *t,
                   const struct tmk_import_event *ev)
{
    return tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_TAG,
                                                 .device = t->device,
                                                 .a = ev->address,
                                                 .b = ev->category,
                                                 .id = ev->name,
                                                 .thread = t->thread});
}

static int put_block_alloc(struct tmk_import_maker *m, struct tmk_import_track *t,
                           const struct tmk_import_event *ev)
{
    uint64_t real = tmk_import_history_real_bytes(&t->history, ev->address), size;
    int rc = tmk_import_layout_alloc(t->history.layout, ev->address, ev->size_bytes, real, &size);
    if (rc < 0)
        return rc;
    rc = tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_ALLOC,
                                               .device = t->device,
                                               .a = ev->address,
                                               .b = size,
                                               .requested = ev->size_bytes,
                                               .id = ev->stack,
                                               .stream = ev->stream,
                                               .thread = t->thread});
    return rc == 0 && (ev->name || ev->category) ? put_tag(m, t, ev) : rc;
}

int tmk_import_put_held(struct tmk_import_maker *m, const struct tmk_import_track *t,
                        uint64_t address, uint8_t kind)
{
    return tmk_import_put(
        m, &(struct tmk_input){
               .kind = kind,
               .device = t->device,
               .a = address,
               .b = kind == TMK_KIND_HELD ? tmk_import_layout_block(t->history.layout, address) : 0,
               .thread = t->thread});
}

/* Returns 1 when the next event completes this free. */
static int is_completed_next(struct tmk_import_maker *m, struct tmk_import_track *t,
                             const struct tmk_import_event *ev)
{
    const void *next;
    int rc = tmk_spool_peek(t->events, 0, &next, m->err);
    if (rc <= 0)
        return rc;
    const struct tmk_import_event *after = next;
    return after->action == TMK_IMPORT_FREE_COMPLETED && after->address == ev->address;
}

static int put_block_free(struct tmk_import_maker *m, struct tmk_import_track *t,
                          const struct tmk_import_event *ev)
{
    int rc = tmk_import_put(
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
    return t->is_completing ? 0 : tmk_import_put_held(m, t, ev->address, TMK_KIND_HELD);
}

static int complete_block_free(struct tmk_import_maker *m, struct tmk_import_track *t,
                               const struct tmk_import_event *ev)
{
    tmk_import_layout_free(t->history.layout, ev->address);
    bool was_held = !t->is_completing;
    t->is_completing = false;
    return was_held ? tmk_import_put_held(m, t, ev->address, TMK_KIND_RELEASED) : 0;
}

/* ---- other events ---- */

static int apply_oom(struct tmk_import_maker *m, const struct tmk_import_track *t,
                     const struct tmk_import_event *ev)
{
    return tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_OOM,
                                                 .device = t->device,
                                                 .a = ev->size_bytes,
                                                 .requested = ev->address ? ev->address + 1 : 0,
                                                 .id = ev->stack,
                                                 .thread = t->thread});
}

int tmk_import_put_mark(struct tmk_import_maker *m, uint32_t thread, const char *event,
                        const char *info)
{
    return tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_MARK,
                                                 .id = tmk_import_own_string(m, event),
                                                 .text = (const uint8_t *)info,
                                                 .text_bytes = (uint32_t)strlen(info),
                                                 .thread = thread});
}

static int apply_annotation(struct tmk_import_maker *m, const struct tmk_import_track *t,
                            const struct tmk_import_event *ev)
{
    if (ev->address)
        return put_tag(m, t, ev);
    const char *info = ev->name ? m->s->names.strings[ev->name - 1].text : "";
    return tmk_import_put_mark(m, t->thread, "annotate", info);
}

static int apply_event(struct tmk_import_maker *m, struct tmk_import_track *t,
                       const struct tmk_import_event *ev)
{
    switch (ev->action) {
    case TMK_IMPORT_ALLOC:
        return put_block_alloc(m, t, ev);
    case TMK_IMPORT_FREE:
    case TMK_IMPORT_FREE_REQUESTED:
        return put_block_free(m, t, ev);
    case TMK_IMPORT_FREE_COMPLETED:
        return complete_block_free(m, t, ev);
    case TMK_IMPORT_SEGMENT_ALLOC:
    case TMK_IMPORT_SEGMENT_FREE:
    case TMK_IMPORT_SEGMENT_MAP:
    case TMK_IMPORT_SEGMENT_UNMAP:
        return change_segments(m, t, ev);
    case TMK_IMPORT_OOM:
        return apply_oom(m, t, ev);
    case TMK_IMPORT_SNAPSHOT:
        return tmk_import_put_mark(m, t->thread, "snapshot", "");
    case TMK_IMPORT_ANNOTATE:
        return apply_annotation(m, t, ev);
    default:
        return 0;
    }
}

int tmk_import_apply(struct tmk_import_maker *m, struct tmk_import_track *t,
                     const struct tmk_import_event *ev)
{
    int rc = apply_event(m, t, ev);
    if (rc == TMK_EFULL && !m->err->text[0])
        return tmk_work_fail(&m->s->work, m->err);
    return rc < 0 && !m->err->text[0] ? tmk_fail(m->err, rc, "%s", tmk_result_text(rc)) : rc;
}
