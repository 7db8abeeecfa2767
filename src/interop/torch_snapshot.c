/* SPDX-License-Identifier: MIT */
/* interop/torch_snapshot.c - see torch_snapshot.h; the format is that of torch's
 * memory_snapshot.cpp and memory.py.
 *
 * Words are looked up once for each text object of the pickle: a key that a million events share is
 * one object, whose tag is the word's number from then on. Frames and lists of frames have their
 * numbers in their tags likewise, and their content is given up. */
#include "interop/torch_snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/feed.h"
#include "interop/pickle.h"
#include "interop/torch_settings.h"
#include "kit/grow.h"
#include "model/run.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

/* Sizes and addresses beyond this are no memory of any device. */
#define NUMBER_MAX (INT64_C(1) << 56)

#define WORDS(X)                                                                                   \
    X(action)                                                                                      \
    X(addr)                                                                                        \
    X(address)                                                                                     \
    X(active_allocated)                                                                            \
    X(active_awaiting_free)                                                                        \
    X(active_pending_free)                                                                         \
    X(alloc)                                                                                       \
    X(annotate)                                                                                    \
    X(blocks)                                                                                      \
    X(category)                                                                                    \
    X(device)                                                                                      \
    X(device_free)                                                                                 \
    X(filename)                                                                                    \
    X(frames)                                                                                      \
    X(free)                                                                                        \
    X(free_completed)                                                                              \
    X(free_requested)                                                                              \
    X(history)                                                                                     \
    X(is_expandable)                                                                               \
    X(line)                                                                                        \
    X(name)                                                                                        \
    X(oom)                                                                                         \
    X(real_size)                                                                                   \
    X(requested_size)                                                                              \
    X(segment_alloc)                                                                               \
    X(segment_free)                                                                                \
    X(segment_map)                                                                                 \
    X(segment_unmap)                                                                               \
    X(size)                                                                                        \
    X(snapshot)                                                                                    \
    X(stage)                                                                                       \
    X(state)                                                                                       \
    X(stream)                                                                                      \
    X(time_us)                                                                                     \
    X(total_size)                                                                                  \
    X(user_metadata)                                                                               \
    X(END)                                                                                         \
    X(START)

enum word {
    W_NOT_ASKED, /* a tag of 0 */
#define X(name) W_##name,
    WORDS(X)
#undef X
        W_OTHER,
};

static const char *const words[] = {
#define X(name) [W_##name] = #name,
    WORDS(X)
#undef X
};

/* Lists of a snapshot that stream. */
enum { LIST_SEGMENTS = 1, LIST_ANNOTATIONS = 2, LIST_EVENTS = 16 /* + device */ };

struct reader {
    struct tmk_import_snapshot *s;
    struct tmk_pickle *pickle;
    const char *folder;
    void (*tell)(void *arg, uint32_t done, uint32_t total);
    void *tell_arg;
};

/* ---- values ---- */

static enum word word_of(const struct tmk_pickle_value *v)
{
    if (v->kind != TMK_PICKLE_TEXT)
        return W_OTHER;
    if (v->object->tag == W_NOT_ASKED) {
        v->object->tag = W_OTHER;
        for (enum word w = W_NOT_ASKED + 1; w < W_OTHER; w++)
            if (strcmp(words[w], v->object->text) == 0)
                v->object->tag = w;
    }
    return (enum word)v->object->tag;
}

/* A size, an address or a time. False: it is none. */
static bool is_amount(const struct tmk_pickle_value *v, uint64_t *ret)
{
    if (v->kind != TMK_PICKLE_INT || v->number < 0 || v->number > NUMBER_MAX)
        return false;
    *ret = (uint64_t)v->number;
    return true;
}

static uint32_t string_of(struct reader *r, const struct tmk_pickle_value *v)
{
    return v->kind == TMK_PICKLE_TEXT && v->object->n > 0
               ? tmk_names_string(&r->s->names, v->object->text, v->object->n)
               : 0;
}

/* ---- frames ---- */

static bool has_suffix(const char *text, size_t n, const char *suffix)
{
    size_t m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

/* A frame of C or C++: torch says "??", the library or the source's name, mostly without a line. */
static bool is_native(const char *file, size_t n)
{
    static const char *const suffixes[] = {".c",  ".cc",  ".cpp", ".cxx", ".cu", ".h",
                                           ".hh", ".hpp", ".cuh", ".S",   ".so"};
    if (n == 0 || strcmp(file, "??") == 0 || strstr(file, ".so."))
        return true;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (has_suffix(file, n, suffixes[i]))
            return true;
    return false;
}

/* Those of C++ get a file that no Python file is called, and that readers know (model/run.c). */
static uint32_t file_of(struct reader *r, const struct tmk_pickle_object *file)
{
    const char *text = file ? file->text : "";
    if (!is_native(text, file ? file->n : 0))
        return tmk_names_string(&r->s->names, text, file->n);
    char name[256];
    const char *slash = strrchr(text, '/');
    const char *base = slash ? slash + 1 : text;
    bool is_known = base[0] && strcmp(base, "??") != 0;
    int n = snprintf(name, sizeof name, TMK_CPP_FILE "%s%.200s>", is_known ? " " : "",
                     is_known ? base : "");
    return tmk_names_string(&r->s->names, name, (size_t)n);
}

static uint32_t frame_of(struct reader *r, struct tmk_pickle_object *dict)
{
    if (dict->tag)
        return dict->tag;
    const struct tmk_pickle_object *file = NULL;
    uint32_t function = 0;
    uint64_t line = 0;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        enum word key = word_of(&dict->items[i]);
        if (key == W_filename && value->kind == TMK_PICKLE_TEXT)
            file = value->object;
        else if (key == W_name)
            function = string_of(r, value);
        else if (key == W_line && !is_amount(value, &line))
            line = 0;
    }
    dict->tag = tmk_names_frame(&r->s->names, file_of(r, file), function,
                                line > INT32_MAX ? 0 : (uint32_t)line);
    return dict->tag;
}

/* Its tag is the stack + 1: a stack may be empty. */
static uint32_t stack_of(struct reader *r, const struct tmk_pickle_value *v)
{
    if (v->kind != TMK_PICKLE_LIST)
        return 0;
    struct tmk_pickle_object *list = v->object;
    if (list->is_folded)
        return list->tag - 1;
    uint32_t frames[TMK_NAMES_MAX_FRAMES], n = 0;
    for (uint32_t i = 0; i < list->n && n < TMK_NAMES_MAX_FRAMES; i++)
        if (list->items[i].kind == TMK_PICKLE_DICT)
            frames[n++] = frame_of(r, list->items[i].object);
    uint32_t stack = tmk_names_stack(&r->s->names, frames, n);
    tmk_pickle_fold(r->pickle, list, stack + 1);
    return stack;
}

/* ---- streams ---- */

/* The default stream is 0, as in a trace. */
static uint16_t stream_of(struct reader *r, uint16_t device, const struct tmk_pickle_value *v)
{
    struct tmk_import_snapshot *s = r->s;
    if (v->kind != TMK_PICKLE_INT || v->number == 0)
        return 0;
    uint64_t handle = (uint64_t)v->number;
    for (uint64_t i = 0; i < s->n_streams; i++)
        if (s->streams[i].handle == handle && s->streams[i].device == device)
            return (uint16_t)(i + 1);
    if (s->n_streams == UINT16_MAX)
        return 0;
    struct tmk_import_stream *more =
        tmk_grow(s->streams, s->n_streams + 1, &s->stream_room, sizeof *more);
    if (!more) {
        s->names.failed = true;
        return 0;
    }
    s->streams = more;
    s->streams[s->n_streams++] = (struct tmk_import_stream){.handle = handle, .device = device};
    return (uint16_t)s->n_streams;
}

/* ---- events ---- */

static uint8_t action_of(const struct tmk_pickle_value *v)
{
    switch (word_of(v)) {
    case W_alloc:
        return TMK_IMPORT_ALLOC;
    case W_free:
        return TMK_IMPORT_FREE;
    case W_free_requested:
        return TMK_IMPORT_FREE_REQUESTED;
    case W_free_completed:
        return TMK_IMPORT_FREE_COMPLETED;
    case W_segment_alloc:
        return TMK_IMPORT_SEGMENT_ALLOC;
    case W_segment_free:
        return TMK_IMPORT_SEGMENT_FREE;
    case W_segment_map:
        return TMK_IMPORT_SEGMENT_MAP;
    case W_segment_unmap:
        return TMK_IMPORT_SEGMENT_UNMAP;
    case W_oom:
        return TMK_IMPORT_OOM;
    case W_snapshot:
        return TMK_IMPORT_SNAPSHOT;
    case W_annotate:
        return TMK_IMPORT_ANNOTATE;
    default:
        return TMK_IMPORT_NO_ACTION;
    }
}

/* As our own export writes it. */
static uint8_t category_of(const struct tmk_pickle_value *v)
{
    for (unsigned i = 0; v->kind == TMK_PICKLE_TEXT && i <= TIDEMARK_OTHER; i++) {
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

static int set_field(struct reader *r, uint16_t device, struct tmk_import_event *ev,
                     const struct tmk_pickle_value *key, const struct tmk_pickle_value *value,
                     struct tmk_error *err)
{
    switch (word_of(key)) {
    case W_action:
        ev->action = action_of(value);
        break;
    case W_addr:
    case W_address:
    case W_device_free:
        if (!is_amount(value, &ev->address))
            return bad_number("address", err);
        break;
    case W_size:
        if (!is_amount(value, &ev->size_bytes))
            return bad_number("size", err);
        break;
    case W_time_us:
        if (!is_amount(value, &ev->time_us))
            return bad_number("time", err);
        break;
    case W_stream:
        ev->stream = stream_of(r, device, value);
        break;
    case W_frames:
        ev->stack = stack_of(r, value);
        break;
    case W_user_metadata:
        ev->name = string_of(r, value);
        break;
    case W_category:
        ev->category = category_of(value);
        break;
    default:
        break;
    }
    return 0;
}

static void note_time(struct tmk_import_snapshot *s, uint64_t time_us)
{
    if (time_us == 0)
        return; /* old files have no times */
    s->first_us = time_us < s->first_us ? time_us : s->first_us;
    s->last_us = time_us > s->last_us ? time_us : s->last_us;
}

static int add_event(struct reader *r, uint16_t device, const struct tmk_pickle_object *dict,
                     struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_event ev = {0};
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        int rc = set_field(r, device, &ev, &dict->items[i], &dict->items[i + 1], err);
        if (rc < 0)
            return rc;
    }
    note_time(s, ev.time_us);
    s->n_events++;
    if (ev.action == TMK_IMPORT_NO_ACTION) {
        s->n_unknown++;
        return 0;
    }
    return tmk_spool_put(s->events[device], &ev, err);
}

/* ---- segments and blocks ---- */

static uint8_t state_of(const struct tmk_pickle_value *v)
{
    switch (word_of(v)) {
    case W_active_allocated:
        return TMK_IMPORT_ALLOCATED;
    case W_active_pending_free:
    case W_active_awaiting_free: /* as the documentation has it */
        return TMK_IMPORT_PENDING_FREE;
    default:
        return TMK_IMPORT_INACTIVE;
    }
}

/* Old files: a list of what was at the address, the newest first. */
static void read_history(struct reader *r, const struct tmk_pickle_value *list,
                         struct tmk_import_block *b)
{
    if (list->kind != TMK_PICKLE_LIST || list->object->n == 0 ||
        list->object->items[0].kind != TMK_PICKLE_DICT)
        return;
    const struct tmk_pickle_object *newest = list->object->items[0].object;
    for (uint32_t i = 0; i + 1 < newest->n; i += 2) {
        const struct tmk_pickle_value *value = &newest->items[i + 1];
        enum word key = word_of(&newest->items[i]);
        if (key == W_real_size)
            (void)is_amount(value, &b->requested_bytes);
        else if (key == W_frames)
            b->stack = stack_of(r, value);
    }
}

/* `at` is where it lies if it does not say. False: it makes no sense. */
static bool read_block(struct reader *r, const struct tmk_pickle_value *v, uint64_t at,
                       struct tmk_import_block *ret)
{
    struct tmk_import_block b = {.address = at};
    bool is_good = v->kind == TMK_PICKLE_DICT;
    for (uint32_t i = 0; is_good && i + 1 < v->object->n; i += 2) {
        const struct tmk_pickle_value *value = &v->object->items[i + 1];
        switch (word_of(&v->object->items[i])) {
        case W_address:
            is_good = is_amount(value, &b.address);
            break;
        case W_size:
            is_good = is_amount(value, &b.size_bytes);
            break;
        case W_requested_size:
            (void)is_amount(value, &b.requested_bytes);
            break;
        case W_state:
            b.state = state_of(value);
            break;
        case W_frames:
            b.stack = stack_of(r, value);
            break;
        case W_history:
            read_history(r, value, &b);
            break;
        default:
            break;
        }
    }
    *ret = b;
    return is_good;
}

static int read_blocks(struct reader *r, const struct tmk_pickle_value *list,
                       struct tmk_import_segment *segment, struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    uint64_t at = segment->address;
    segment->first_block = s->n_blocks;
    for (uint32_t i = 0; list && list->kind == TMK_PICKLE_LIST && i < list->object->n; i++) {
        struct tmk_import_block b;
        if (!read_block(r, &list->object->items[i], at, &b))
            return tmk_fail(err, TMK_EFORMAT, "a block has no address or size that makes sense");
        at = b.address + b.size_bytes;
        struct tmk_import_block *more =
            tmk_grow(s->blocks, s->n_blocks + 1, &s->block_room, sizeof *more);
        if (!more)
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        s->blocks = more;
        s->blocks[s->n_blocks++] = b;
        segment->n_blocks++;
    }
    return 0;
}

static int set_device(struct tmk_import_snapshot *s, uint64_t device, struct tmk_error *err)
{
    if (device >= TMK_IMPORT_MAX_DEVICES)
        return tmk_fail(err, TMK_EFORMAT, "it has device %llu; %d are read",
                        (unsigned long long)device, TMK_IMPORT_MAX_DEVICES);
    if (device >= s->n_devices)
        s->n_devices = (uint32_t)device + 1;
    return 0;
}

static int add_segment(struct reader *r, const struct tmk_pickle_object *dict,
                       struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_segment segment = {0};
    const struct tmk_pickle_value *blocks = NULL, *stream = NULL;
    uint64_t device = 0;
    bool is_good = true;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        switch (word_of(&dict->items[i])) {
        case W_device:
            is_good = is_good && is_amount(value, &device);
            break;
        case W_address:
            is_good = is_good && is_amount(value, &segment.address);
            break;
        case W_total_size:
            is_good = is_good && is_amount(value, &segment.size_bytes);
            break;
        case W_stream:
            stream = value;
            break;
        case W_is_expandable:
            segment.is_expandable = value->kind == TMK_PICKLE_BOOL && value->number;
            break;
        case W_frames:
            segment.stack = stack_of(r, value);
            break;
        case W_blocks:
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
    int rc = set_device(s, device, err);
    if (rc == 0)
        rc = read_blocks(r, blocks, &segment, err);
    if (rc < 0)
        return rc;
    segment.device = (uint16_t)device;
    segment.stream = stream ? stream_of(r, segment.device, stream) : 0;
    struct tmk_import_segment *more =
        tmk_grow(s->segments, s->n_segments + 1, &s->segment_room, sizeof *more);
    if (!more)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s->segments = more;
    s->segments[s->n_segments++] = segment;
    return 0;
}

/* ---- annotations ---- */

static int add_annotation(struct reader *r, const struct tmk_pickle_object *dict,
                          struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_import_annotation a = {0};
    uint64_t device = 0;
    enum word stage = W_OTHER;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        enum word key = word_of(&dict->items[i]);
        if (key == W_name)
            a.name = string_of(r, value);
        else if (key == W_stage)
            stage = word_of(value);
        else if (key == W_device && !is_amount(value, &device))
            device = 0;
        else if (key == W_time_us && !is_amount(value, &a.time_us))
            return bad_number("time", err);
    }
    if ((stage != W_START && stage != W_END) || device >= TMK_IMPORT_MAX_DEVICES)
        return 0;
    a.is_end = stage == W_END;
    a.order = s->n_annotations;
    a.device = (uint16_t)device;
    note_time(s, a.time_us);
    struct tmk_import_annotation *more =
        tmk_grow(s->annotations, s->n_annotations + 1, &s->annotation_room, sizeof *more);
    if (!more)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    s->annotations = more;
    s->annotations[s->n_annotations++] = a;
    return 0;
}

/* Those of one moment stay as they came. */
static int compare_times(const void *va, const void *vb)
{
    const struct tmk_import_annotation *a = va, *b = vb;
    if (a->time_us != b->time_us)
        return a->time_us > b->time_us ? 1 : -1;
    return (a->order > b->order) - (a->order < b->order);
}

/* ---- the whole ---- */

static uint16_t on_list(void *arg, const char *key, unsigned level, uint64_t index)
{
    struct reader *r = arg;
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

static int on_item(void *arg, uint16_t stream, struct tmk_pickle_object *dict,
                   struct tmk_error *err)
{
    struct reader *r = arg;
    if (stream == LIST_SEGMENTS)
        return add_segment(r, dict, err);
    if (stream == LIST_ANNOTATIONS)
        return add_annotation(r, dict, err);
    uint16_t device = (uint16_t)(stream - LIST_EVENTS);
    if (!r->s->events[device])
        return tmk_fail(err, TMK_EIO, "cannot make a temporary file in %s", r->folder);
    int rc = set_device(r->s, device, err);
    return rc < 0 ? rc : add_event(r, device, dict, err);
}

static void on_progress(void *arg, uint64_t done, uint64_t total)
{
    struct reader *r = arg;
    if (r->tell && total > 0)
        r->tell(r->tell_arg, (uint32_t)(done * 900 / total), 1000);
}

/* What the file is, when it is no pickle. */
static int look_at_start(struct tmk_feed *f, struct tmk_error *err)
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

static int read_root(struct reader *r, struct tmk_error *err)
{
    struct tmk_import_snapshot *s = r->s;
    struct tmk_pickle_value root;
    int rc = tmk_pickle_read(r->pickle, &root, err);
    if (rc < 0)
        return rc;
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

static int read_once(struct reader *r, struct tmk_feed *feed, bool is_careful,
                     struct tmk_error *err)
{
    struct tmk_pickle_visitor visitor = {
        .arg = r, .stream = on_list, .item = on_item, .progress = on_progress};
    *r->s = (struct tmk_import_snapshot){.first_us = UINT64_MAX};
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
                             void (*tell)(void *arg, uint32_t done, uint32_t total), void *arg,
                             struct tmk_error *err)
{
    struct reader r = {.s = s, .folder = folder, .tell = tell, .tell_arg = arg};
    struct tmk_feed feed;
    int rc = tmk_feed_init(&feed, path, err);
    if (rc < 0)
        return rc;
    rc = look_at_start(&feed, err);
    if (rc == 0)
        rc = read_once(&r, &feed, false, err);
    if (rc == TMK_EAGAIN)
        rc = read_once(&r, &feed, true, err);
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
