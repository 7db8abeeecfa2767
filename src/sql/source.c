/* SPDX-License-Identifier: MIT */
/* sql/source.c - see source.h. */
#include "sql/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "kit/grow.h"
#include "model/owners.h"
#include "sql/rows.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/snapshot.h"
#include "trace/state.h"

enum { N_DEVICES = 1 << 16, ID_SHIFT = 40 };

/* ---- chunks ---- */

/* After a cut, replay begins at the oldest checkpoint: no table uses earlier events, so that all
 * of them describe the same time. */
static uint32_t first_event_chunk(const struct tmk_reader *r)
{
    uint32_t n = tmk_reader_n_chunks(r);
    if (tmk_reader_status(r)->n_given_up == 0)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (tmk_reader_chunk(r, i)->header.kind == TMK_CHUNK_CHECKPOINT)
            return i;
    return 0;
}

static int list_chunks(struct tmk_source *s)
{
    const struct tmk_reader *r = s->p->reader;
    uint32_t n = tmk_reader_n_chunks(r);
    s->chunks = calloc((size_t)n + 1, sizeof *s->chunks);
    if (!s->chunks)
        return TMK_ENOMEM;
    uint64_t last_seq = 0;
    bool gap = false;
    for (uint32_t i = first_event_chunk(r); i < n; i++) {
        const struct tmk_chunk_header *h = &tmk_reader_chunk(r, i)->header;
        gap = gap || h->seq != last_seq + 1;
        last_seq = h->seq;
        if (h->kind != TMK_CHUNK_EVENTS || h->codec != 0)
            continue;
        s->chunks[s->n_chunks++] =
            (struct tmk_source_chunk){.header = h, .index = i, .after_gap = gap};
        gap = false;
    }
    return 0;
}

int tmk_source_init(struct tmk_source *s, struct tmk_process *p, uint32_t index,
                    struct tmk_textpool *pool)
{
    uint32_t n_strings = tmk_reader_n_strings(p->reader);
    *s = (struct tmk_source){.p = p, .index = index, .pool = pool, .n_strings = n_strings};
    s->text_ids = calloc((size_t)n_strings + 1, sizeof *s->text_ids);
    s->stages = calloc((size_t)n_strings + 1, sizeof *s->stages);
    s->device_ids = calloc(N_DEVICES, sizeof *s->device_ids);
    s->component_ids = calloc((size_t)n_strings + 1, sizeof *s->component_ids);
    if (!s->text_ids || !s->stages || !s->device_ids || !s->component_ids || list_chunks(s) < 0) {
        tmk_source_fini(s);
        return TMK_ENOMEM;
    }
    return 0;
}

void tmk_source_fini(struct tmk_source *s)
{
    free(s->chunks);
    free(s->text_ids);
    free(s->stages);
    free(s->device_ids);
    free(s->component_ids);
    free(s->steps);
    *s = (struct tmk_source){0};
}

/* ---- names ---- */

uint32_t tmk_source_text_slow(struct tmk_source *s, uint32_t string)
{
    uint32_t id = tmk_textpool_put(s->pool, tmk_reader_string(s->p->reader, string));
    if (string < s->n_strings && !s->pool->failed)
        s->text_ids[string] = id + 1;
    return id;
}

enum tmk_stage tmk_source_stage_slow(struct tmk_source *s, uint32_t string)
{
    const char *text = tmk_reader_string(s->p->reader, string);
    enum tmk_stage stage = text ? tmk_stage_of(text) : TMK_STAGE_OTHER;
    if (string < s->n_strings)
        s->stages[string] = (uint8_t)(stage + 1);
    return stage;
}

uint32_t tmk_source_device(struct tmk_source *s, uint16_t device)
{
    if (s->device_ids[device] == 0) {
        char buffer[24];
        tmk_device_name(device, buffer);
        s->device_ids[device] = tmk_textpool_copy(s->pool, buffer, strlen(buffer));
    }
    return s->device_ids[device];
}

uint32_t tmk_source_category(struct tmk_source *s, uint8_t category)
{
    if (s->category_ids[category] == 0)
        s->category_ids[category] = tmk_textpool_put(s->pool, tmk_category_name(category));
    return s->category_ids[category];
}

uint32_t tmk_source_component(struct tmk_source *s, uint32_t name)
{
    if (name >= s->n_strings)
        return tmk_textpool_put(s->pool, tmk_name_component(s->p, name));
    if (s->component_ids[name] == 0)
        s->component_ids[name] = tmk_textpool_put(s->pool, tmk_name_component(s->p, name)) + 1;
    return s->component_ids[name] - 1;
}

int64_t tmk_source_thread(const struct tmk_source *s, uint32_t thread)
{
    struct tmk_thread_info info;
    return tmk_reader_thread(s->p->reader, thread, &info) ? tmk_int_of(info.system_id)
                                                          : TMK_NULL_INT;
}

int64_t tmk_source_pid(const struct tmk_source *s)
{
    return s->p->pid ? tmk_int_of(s->p->pid) : TMK_NULL_INT;
}

int64_t tmk_source_rank(const struct tmk_source *s)
{
    return s->p->rank < 0 ? TMK_NULL_INT : s->p->rank;
}

int64_t tmk_source_id(const struct tmk_source *s, uint64_t id)
{
    if (id == 0)
        return TMK_NULL_INT;
    return (int64_t)((((uint64_t)s->index << ID_SHIFT) + id) & INT64_MAX);
}

/* ---- steps ---- */

static int note_step(struct tmk_source *s, uint64_t start_ns, int64_t step)
{
    if (TMK_GROW(s->steps, s->n_steps + 1, s->step_room) < 0)
        return TMK_ENOMEM;
    s->steps[s->n_steps++] = (struct tmk_step_start){.start_ns = start_ns, .step = step};
    return 0;
}

/* Take the steps of the history, and *ret_end_ns, the time up to which it is complete: 0 when it
 * does not begin with the time before the first step. */
static int steps_of_history(struct tmk_source *s, uint64_t *ret_end_ns)
{
    const struct tmk_reader *r = s->p->reader;
    uint64_t n = tmk_reader_n_step_rows(r);
    *ret_end_ns = 0;
    if (n == 0 || tmk_reader_step_row(r, 0)->step != TMK_NO_STEP)
        return 0;
    for (uint64_t i = 0; i < n; i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        const struct tmk_step_start *last = s->n_steps ? &s->steps[s->n_steps - 1] : NULL;
        if (row->ordinal != i + 1)
            return 0;
        *ret_end_ns = row->end_ns;
        bool same = last && last->start_ns == row->start_ns && last->step == row->step;
        if (row->step != TMK_NO_STEP && !same && note_step(s, row->start_ns, row->step) < 0)
            return TMK_ENOMEM;
    }
    return 0;
}

/* Take the steps that begin in one chunk, after those noted. Damage ends it: what follows is a
 * gap. */
static int steps_of_chunk(struct tmk_source *s, const struct tmk_source_chunk *chunk,
                          struct tmk_cursor *cursor, struct tmk_error *err)
{
    struct tmk_view payload;
    struct tmk_event ev = {0};
    int rc = tmk_reader_payload(s->p->reader, chunk->index, &payload, err);
    if (rc == 0)
        rc = tmk_cursor_begin(cursor, chunk->header, payload, err);
    while (rc == 0 && (rc = tmk_cursor_next(cursor, &ev)) > 0) {
        const struct tmk_step_start *last = s->n_steps ? &s->steps[s->n_steps - 1] : NULL;
        rc = 0;
        if (ev.kind == TMK_KIND_STEP && ev.step == tmk_reader_tail_step(s->p->reader))
            continue; /* it was none */
        if (ev.kind == TMK_KIND_STEP && (!last || ev.time_ns > last->start_ns))
            rc = note_step(s, ev.time_ns, ev.step);
    }
    return rc;
}

static int steps_of_events(struct tmk_source *s, uint64_t after_ns, bool *ret_all,
                           struct tmk_error *err)
{
    struct tmk_cursor cursor = {0};
    int rc = 0;
    *ret_all = after_ns > 0 || tmk_reader_status(s->p->reader)->n_given_up == 0;
    for (uint32_t i = 0; rc == 0 && i < s->n_chunks; i++) {
        if (s->chunks[i].header->end_ns <= after_ns)
            continue;
        if (s->chunks[i].after_gap && s->chunks[i].header->start_ns > after_ns)
            *ret_all = false;
        rc = steps_of_chunk(s, &s->chunks[i], &cursor, err);
        if (rc == TMK_EDAMAGED) {
            *ret_all = false;
            rc = 0;
        }
    }
    tmk_cursor_fini(&cursor);
    return rc;
}

static void judge_steps(struct tmk_source *s)
{
    s->steps_in_order = s->steps_distinct = s->steps_known;
    for (uint64_t i = 1; i < s->n_steps; i++) {
        s->steps_in_order &= s->steps[i].step >= s->steps[i - 1].step;
        s->steps_distinct &= s->steps[i].step > s->steps[i - 1].step;
    }
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        const struct tmk_chunk_header *h = s->chunks[i].header;
        s->steps_in_order &= h->first_step <= h->last_step;
        s->steps_in_order &= i == 0 || s->chunks[i - 1].header->last_step <= h->first_step;
    }
    s->steps_distinct &= s->steps_in_order;
}

int tmk_source_read_steps(struct tmk_source *s, struct tmk_error *err)
{
    if (s->steps_read)
        return 0;
    uint64_t whole_until_ns = 0;
    s->n_steps = 0;
    int rc = steps_of_history(s, &whole_until_ns);
    if (whole_until_ns == 0)
        s->n_steps = 0;
    if (rc == 0)
        rc = steps_of_events(s, whole_until_ns, &s->steps_known, err);
    if (rc < 0)
        return tmk_fail(err, rc, "cannot read the steps of %s", s->p->file);
    judge_steps(s);
    s->steps_read = true;
    return 0;
}

int64_t tmk_source_local_step(const struct tmk_source *s, uint64_t start_ns, int64_t step)
{
    uint64_t low = 0, high = s->n_steps;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (s->steps[middle].start_ns < start_ns)
            low = middle + 1;
        else
            high = middle;
    }
    for (; s->steps_known && low < s->n_steps && s->steps[low].start_ns == start_ns; low++)
        if (s->steps[low].step == step)
            return (int64_t)low;
    return TMK_NULL_INT;
}

/* ---- the main device ---- */

struct device_choice {
    bool any;
    uint16_t device;
    uint64_t max_bytes;
};

static void consider_main_device(struct device_choice *c, uint16_t device, uint64_t max_bytes)
{
    bool is_host = device == TIDEMARK_HOST, was_host = c->device == TIDEMARK_HOST;
    bool better = is_host == was_host ? max_bytes > c->max_bytes : was_host;
    if (!c->any || better)
        *c = (struct device_choice){.any = true, .device = device, .max_bytes = max_bytes};
}

/* Add an accelerator to the sorted list, which has room for as many as a trace may have. */
static void note_used_device(struct tmk_source *s, uint16_t device, uint64_t max_bytes)
{
    uint32_t at = 0;
    if (device == TIDEMARK_HOST || max_bytes == 0 || s->n_devices == TMK_MAX_DEVICES)
        return;
    while (at < s->n_devices && s->devices[at] < device)
        at++;
    if (at < s->n_devices && s->devices[at] == device)
        return;
    for (uint32_t i = s->n_devices++; i > at; i--)
        s->devices[i] = s->devices[i - 1];
    s->devices[at] = device;
}

/* Consider the last chunk's figures too: the history may end before it. */
static int consider_last_chunk(struct tmk_source *s, struct device_choice *c, struct tmk_error *err)
{
    if (s->n_chunks == 0)
        return 0;
    const struct tmk_source_chunk *last = &s->chunks[s->n_chunks - 1];
    struct tmk_cursor cursor = {0};
    struct tmk_context_head head;
    struct tmk_view payload;
    int rc = tmk_reader_payload(s->p->reader, last->index, &payload, err);
    if (rc == 0)
        rc = tmk_cursor_begin(&cursor, last->header, payload, err);
    if (rc == 0)
        rc = tmk_context_read_head(&cursor.context, last->header->start_ns, &head);
    for (uint32_t i = 0; rc == 0 && i < head.n_devices; i++) {
        consider_main_device(c, head.devices[i].device, head.devices[i].max_bytes);
        note_used_device(s, head.devices[i].device, head.devices[i].max_bytes);
    }
    for (uint32_t i = 0; rc == 0 && i < cursor.n_addresses; i++) {
        consider_main_device(c, cursor.addresses[i].device, 0);
        note_used_device(s, cursor.addresses[i].device, 1);
    }
    tmk_cursor_fini(&cursor);
    return rc == TMK_EDAMAGED ? 0 : rc;
}

int tmk_source_read_device(struct tmk_source *s, struct tmk_error *err)
{
    if (s->device_read)
        return 0;
    struct device_choice best = {0};
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(s->p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(s->p->reader, i);
        consider_main_device(&best, row->device, row->peak_bytes);
        note_used_device(s, row->device, row->peak_bytes);
    }
    int rc = consider_last_chunk(s, &best, err);
    if (rc < 0)
        return rc;
    s->has_device = best.any;
    s->main_device = best.device;
    if (best.any && s->n_devices == 0)
        s->devices[s->n_devices++] = best.device;
    s->device_read = true;
    return 0;
}
