/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_snapshot_in.c - reads a torch snapshot; see torch_snapshot.h. torch's
 * memory_snapshot.cpp and memory.py write the format. */
#include "interop/torch/torch_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle.h"
#include "interop/pickle/pickle_value.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/spool.h"
#include "interop/torch/torch_names.h"
#include "interop/torch/torch_reader.h"
#include "kit/grow.h"
#include "model/run.h"
#include "tidemark/tidemark.h"

/* The lists of a snapshot that stream. */
enum { LIST_SEGMENTS = 1, LIST_ANNOTATIONS = 2, LIST_EVENTS = 16 /* + device */ };

/* For each byte read. Snapshots take about one at most: docs/limits.md. */
enum { STEPS_PER_BYTE = 4 };

/* ---- events ---- */

static uint8_t action_of(const struct tmk_pickle_value *v)
{
    switch (tmk_import_word_of(v)) {
    case TMK_WORD_alloc:
        return TMK_IMPORT_ALLOC;
    case TMK_WORD_free:
        return TMK_IMPORT_FREE;
    case TMK_WORD_free_requested:
        return TMK_IMPORT_FREE_REQUESTED;
    case TMK_WORD_free_completed:
        return TMK_IMPORT_FREE_COMPLETED;
    case TMK_WORD_segment_alloc:
        return TMK_IMPORT_SEGMENT_ALLOC;
    case TMK_WORD_segment_free:
        return TMK_IMPORT_SEGMENT_FREE;
    case TMK_WORD_segment_map:
        return TMK_IMPORT_SEGMENT_MAP;
    case TMK_WORD_segment_unmap:
        return TMK_IMPORT_SEGMENT_UNMAP;
    case TMK_WORD_oom:
        return TMK_IMPORT_OOM;
    case TMK_WORD_snapshot:
        return TMK_IMPORT_SNAPSHOT;
    case TMK_WORD_annotate:
        return TMK_IMPORT_ANNOTATE;
    default:
        return TMK_IMPORT_NO_ACTION;
    }
}

/* The category as our own export writes it. */
static uint8_t category_of_word(const struct tmk_pickle_value *v)
{
    for (unsigned i = 0; v->kind == TMK_PICKLE_TEXT && i <= TIDEMARK_KV_CACHE; i++) {
        const char *name = tmk_category_name((uint8_t)i);
        if (name && strcmp(name, v->object->text) == 0)
            return (uint8_t)i;
    }
    return TIDEMARK_UNKNOWN;
}

static int bad_number(const char *what, struct tmk_error *err)
{
    return tmk_fail(err, TMK_EFORMAT, "an event's %s is no number that fits a device's memory",
                    what);
}

static int set_field(struct tmk_import_reader *r, uint16_t device, struct tmk_import_event *ev,
                     const struct tmk_pickle_value *key, const struct tmk_pickle_value *value,
                     struct tmk_error *err)
{
    switch (tmk_import_word_of(key)) {
    case TMK_WORD_action:
        ev->action = action_of(value);
        break;
    case TMK_WORD_addr:
    case TMK_WORD_address:
    case TMK_WORD_device_free:
        if (!tmk_import_amount(value, &ev->address))
            return bad_number("address", err);
        break;
    case TMK_WORD_size:
        if (!tmk_import_amount(value, &ev->size_bytes))
            return bad_number("size", err);
        break;
    case TMK_WORD_time_us:
        if (!tmk_import_amount(value, &ev->time_us))
            return bad_number("time", err);
        break;
    case TMK_WORD_stream:
        ev->stream = tmk_import_stream(r, device, value);
        break;
    case TMK_WORD_frames:
        ev->stack = tmk_import_stack(r, value);
        break;
    case TMK_WORD_user_metadata:
        ev->name = tmk_import_string(r, value);
        break;
    case TMK_WORD_category:
        ev->category = category_of_word(value);
        break;
    default:
        break;
    }
    return 0;
}

static void note_snapshot_time(struct tmk_import_snapshot *s, uint64_t time_us)
{
    if (time_us == 0)
        return; /* old files have no times */
    s->first_us = time_us < s->first_us ? time_us : s->first_us;
    s->last_us = time_us > s->last_us ? time_us : s->last_us;
}

static int add_snapshot_event(struct tmk_import_reader *r, uint16_t device,
                              const struct tmk_pickle_object *dict, struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_event ev = {0};
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        int rc = set_field(r, device, &ev, &dict->items[i], &dict->items[i + 1], err);
        if (rc < 0)
            return rc;
    }
    note_snapshot_time(s, ev.time_us);
    s->n_events++;
    if (ev.action == TMK_IMPORT_NO_ACTION) {
        s->n_unknown++;
        return 0;
    }
    return tmk_spool_put(s->events[device], &ev, err);
}

/* ---- annotations ---- */

static int add_annotation(struct tmk_import_reader *r, const struct tmk_pickle_object *dict,
                          struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_annotation a = {0};
    uint64_t device = 0;
    enum tmk_import_word stage = TMK_WORD_OTHER;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        enum tmk_import_word key = tmk_import_word_of(&dict->items[i]);
        if (key == TMK_WORD_name)
            a.name = tmk_import_string(r, value);
        else if (key == TMK_WORD_stage)
            stage = tmk_import_word_of(value);
        else if (key == TMK_WORD_device && !tmk_import_amount(value, &device))
            device = 0;
        else if (key == TMK_WORD_time_us && !tmk_import_amount(value, &a.time_us))
            return bad_number("time", err);
    }
    if ((stage != TMK_WORD_START && stage != TMK_WORD_END) || device >= TMK_IMPORT_MAX_DEVICES)
        return 0;
    a.is_end = stage == TMK_WORD_END;
    a.order = s->n_annotations;
    a.device = (uint16_t)device;
    note_snapshot_time(s, a.time_us);
    if (TMK_GROW(s->annotations, s->n_annotations + 1, s->annotation_room) < 0)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s->annotations[s->n_annotations++] = a;
    return 0;
}

/* Annotations of one moment keep their order. */
static int compare_times(const void *va, const void *vb)
{
    const struct tmk_import_annotation *a = va, *b = vb;
    if (a->time_us != b->time_us)
        return a->time_us > b->time_us ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

/* ---- the whole ---- */

static uint16_t on_snapshot_list(void *arg, const char *key, unsigned level, uint64_t index)
{
    struct tmk_import_reader *r = arg;
    if (level == 1 && strcmp(key, "segments") == 0)
        return LIST_SEGMENTS;
    if (level == 1 && strcmp(key, "external_annotations") == 0)
        return LIST_ANNOTATIONS;
    if (level != 2 || strcmp(key, "device_traces") != 0 || index >= TMK_IMPORT_MAX_DEVICES)
        return 0;
    if (!r->s->events[index] &&
        tmk_spool_open(r->folder, sizeof(struct tmk_import_event), &r->s->events[index], NULL) < 0)
        r->s->names.failed = true;
    return (uint16_t)(LIST_EVENTS + index);
}

/* The same dict may come any number of times: each time costs what it contains. */
static int take_snapshot_item(struct tmk_import_reader *r, uint16_t stream,
                              struct tmk_pickle_object *dict, struct tmk_error *err)
{
    if (stream == LIST_SEGMENTS)
        return tmk_import_add_segment(r, dict, err);
    if (stream == LIST_ANNOTATIONS)
        return add_annotation(r, dict, err);
    uint16_t device = (uint16_t)(stream - LIST_EVENTS);
    if (!r->s->events[device])
        return tmk_fail(err, TMK_EIO, "cannot make a temporary file in %s", r->folder);
    int rc = tmk_import_set_device(r->s, device, err);
    return rc < 0 ? rc : add_snapshot_event(r, device, dict, err);
}

static int on_snapshot_item(void *arg, uint16_t stream, struct tmk_pickle_object *dict,
                            struct tmk_error *err)
{
    struct tmk_import_reader *r = arg;
    tmk_work_limit_pay(&r->s->work, tmk_feed_counted_bytes(r->feed));
    if (!tmk_work_take(&r->s->work, TMK_IMPORT_ITEM_STEPS + dict->n))
        return tmk_work_fail(&r->s->work, err);
    int rc = take_snapshot_item(r, stream, dict, err);
    return rc == 0 && !tmk_work_take(&r->s->work, 0) ? tmk_work_fail(&r->s->work, err) : rc;
}

static void on_feed_progress(void *arg, uint64_t done, uint64_t total)
{
    struct tmk_import_reader *r = arg;
    if (r->tell && total > 0)
        r->tell(r->tell_arg, (uint32_t)(done * 900 / total), 1000);
}

/* Say what the file is when it is no pickle. */
static int look_at_file_start(struct tmk_feed *f, struct tmk_error *err)
{
    int rc = tmk_feed_need(f, 4);
    if (rc < 0)
        return tmk_fail(err, rc, "%s", f->error.text);
    if (f->end == f->at)
        return tmk_fail(err, TMK_EFORMAT, "the file is empty");
    if (rc > 0 && memcmp(f->at, "PK\3\4", 4) == 0)
        return tmk_fail(err, TMK_EFORMAT,
                        "a zip file, as torch.save() writes checkpoints; a memory snapshot is what "
                        "torch.cuda.memory._dump_snapshot() writes");
    if (rc > 0 && memcmp(f->at, "TIDE", 4) == 0)
        return tmk_fail(err, TMK_EFORMAT,
                        "a trace of tidemark's already: ask it, as in tidemark "
                        "report");
    if (f->at[0] == '{' || f->at[0] == '[')
        return tmk_fail(err, TMK_EFORMAT,
                        "this looks like JSON; a memory snapshot is a pickle, as "
                        "torch.cuda.memory._dump_snapshot() writes");
    return 0;
}

static int read_root(struct tmk_import_reader *r, struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_pickle_value root;
    int rc = tmk_pickle_read(r->pickle, &root, err);
    if (rc < 0)
        return rc;
    tmk_work_limit_pay(&s->work, tmk_feed_counted_bytes(r->feed));
    if (root.kind != TMK_PICKLE_DICT)
        return tmk_fail(err, TMK_EFORMAT,
                        "a pickle, but not of a memory snapshot: it has no \"segments\"");
    const struct tmk_pickle_value *segments = tmk_pickle_get(root.object, "segments");
    if (!segments || segments->kind != TMK_PICKLE_LIST)
        return tmk_fail(err, TMK_EFORMAT,
                        "a pickle, but not of a memory snapshot: it has no \"segments\"");
    const struct tmk_pickle_value *settings = tmk_pickle_get(root.object, "allocator_settings");
    s->has_settings = settings && settings->kind == TMK_PICKLE_DICT;
    if (s->has_settings)
        tmk_import_settings_text(settings->object, s->alloc_conf, sizeof s->alloc_conf);
    if (s->n_annotations > 0)
        qsort(s->annotations, s->n_annotations, sizeof *s->annotations, compare_times);
    return s->names.failed ? tmk_fail(err, TMK_ENOMEM, "out of memory") : 0;
}

static int read_snapshot_once(struct tmk_import_reader *r, struct tmk_feed *feed, bool is_careful,
                              struct tmk_error *err)
{
    struct tmk_pickle_visitor visitor = {.arg = r,
                                         .stream = on_snapshot_list,
                                         .item = on_snapshot_item,
                                         .progress = on_feed_progress};
    *r->s = (struct tmk_import_snapshot){.first_us = UINT64_MAX};
    tmk_work_limit_init(&r->s->work, STEPS_PER_BYTE, feed->no_limits);
    r->feed = feed;
    int rc = tmk_feed_rewind(feed, err);
    if (rc == 0)
        rc = tmk_pickle_open(feed, &visitor, is_careful, &r->pickle);
    if (rc == 0)
        rc = read_root(r, err);
    r->pickle = tmk_pickle_close(r->pickle);
    if (rc < 0)
        tmk_import_snapshot_fini(r->s);
    return rc;
}

int tmk_import_snapshot_read(struct tmk_import_snapshot *s, const char *path, const char *folder,
                             bool no_limits, void (*tell)(void *arg, uint32_t done, uint32_t total),
                             void *arg, struct tmk_error *err)
{
    struct tmk_import_reader r = {.s = s, .folder = folder, .tell = tell, .tell_arg = arg};
    struct tmk_feed feed;
    int rc = tmk_feed_init(&feed, path, err);
    if (rc < 0)
        return rc;
    feed.no_limits = no_limits;
    rc = look_at_file_start(&feed, err);
    if (rc == 0)
        rc = read_snapshot_once(&r, &feed, false, err);
    if (rc == TMK_EAGAIN)
        rc = read_snapshot_once(&r, &feed, true, err);
    tmk_feed_fini(&feed);
    return rc;
}

void tmk_import_snapshot_fini(struct tmk_import_snapshot *s)
{
    tmk_names_fini(&s->names);
    free(s->segments);
    free(s->blocks);
    free(s->streams);
    free(s->annotations);
    for (uint32_t i = 0; i < TMK_IMPORT_MAX_DEVICES; i++)
        s->events[i] = tmk_spool_close(s->events[i]);
    *s = (struct tmk_import_snapshot){0};
}
