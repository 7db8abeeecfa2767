/* SPDX-License-Identifier: MIT */
/* tests/tools/trace_dump.c - the events of a trace as lines, by our reader.
 *
 *     trace_dump [--as-is] [--definitions] TRACE
 *
 * The lines are those that tests/format_reader.py documents and prints: the two readers are
 * compared with diff. --as-is reads the file alone, without merging its ring. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

static void print_text(const char *text, size_t n)
{
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *found = NULL;
        for (size_t k = 0; k + 1 < sizeof escapes; k += 2)
            if ((unsigned char)escapes[k] == c)
                found = &escapes[k + 1];
        if (found)
            printf("\\%c", *found);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_name(const struct tmk_reader *r, const char *key, uint32_t id)
{
    const char *text = id ? tmk_reader_string(r, id) : NULL;
    printf(" %s=", key);
    if (text)
        print_text(text, strlen(text));
    else
        putchar('-');
}

static void print_block_event(const struct tmk_reader *r, const struct tmk_event *ev)
{
    printf(" device=%u address=0x%" PRIx64, ev->device, ev->address);
    if (ev->kind == TMK_KIND_ALLOC)
        printf(" size=%" PRIu64 " stack=%u stream=%u requested=%" PRIu64, ev->size_bytes, ev->stack,
               ev->stream, ev->requested_bytes);
    if (ev->kind != TMK_KIND_TAG)
        return;
    printf(" category=%u", ev->category);
    print_name(r, "name", ev->name);
}

static void print_fields(const struct tmk_reader *r, const struct tmk_event *ev)
{
    switch (ev->kind) {
    case TMK_KIND_ALLOC:
    case TMK_KIND_FREE:
    case TMK_KIND_TAG:
        print_block_event(r, ev);
        break;
    case TMK_KIND_PUSH:
        printf(" range=%u", ev->range_kind);
        print_name(r, "name", ev->name);
        break;
    case TMK_KIND_POP:
        printf(" range=%u", ev->range_kind);
        break;
    case TMK_KIND_STEP:
        printf(" step=%" PRId64, ev->step);
        break;
    case TMK_KIND_MARK:
        print_name(r, "name", ev->name);
        printf(" info=");
        print_text(ev->text, ev->text_bytes);
        break;
    case TMK_KIND_OOM:
        printf(" device=%u requested=%" PRIu64 " capacity=%" PRIu64 " stack=%u", ev->device,
               ev->size_bytes, ev->capacity_bytes, ev->stack);
        printf(ev->free_bytes == UINT64_MAX ? " free=-" : " free=%" PRIu64, ev->free_bytes);
        break;
    case TMK_KIND_DROP:
        printf(" count=%" PRIu64, ev->size_bytes);
        break;
    case TMK_KIND_RESERVED:
        printf(" device=%u bytes=%" PRIu64, ev->device, ev->size_bytes);
        break;
    case TMK_KIND_DEVICE_END:
        printf(" device=%u", ev->device);
        break;
    case TMK_KIND_SEGMENT:
    case TMK_KIND_SEGMENT_END:
        printf(" device=%u kind=%u address=%#" PRIx64, ev->device, ev->segment_kind, ev->address);
        if (ev->kind == TMK_KIND_SEGMENT)
            printf(" size=%" PRIu64 " stack=%u", ev->size_bytes, ev->stack);
        break;
    case TMK_KIND_HELD:
    case TMK_KIND_RELEASED:
        printf(" device=%u address=%#" PRIx64, ev->device, ev->address);
        if (ev->kind == TMK_KIND_HELD)
            printf(" size=%" PRIu64, ev->size_bytes);
        break;
    case TMK_KIND_SAMPLE:
        printf(" device=%u used=%" PRIu64 " total=%" PRIu64 " own=%" PRIu64 " others=%" PRIu64,
               ev->device, ev->sample.used_bytes, ev->sample.total_bytes, ev->sample.own_bytes,
               ev->sample.others_bytes);
        break;
    default:
        break;
    }
}

static void print_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                        struct tmk_block *b)
{
    static const char *const names[] = {
        [TMK_KIND_ALLOC] = "alloc",
        [TMK_KIND_FREE] = "free",
        [TMK_KIND_TAG] = "tag",
        [TMK_KIND_PUSH] = "push",
        [TMK_KIND_POP] = "pop",
        [TMK_KIND_STEP] = "step",
        [TMK_KIND_MARK] = "mark",
        [TMK_KIND_OOM] = "oom",
        [TMK_KIND_DROP] = "drop",
        [TMK_KIND_RESERVED] = "reserved",
        [TMK_KIND_DEVICE_END] = "device_end",
        [TMK_KIND_SEGMENT] = "segment",
        [TMK_KIND_SEGMENT_END] = "segment_end",
        [TMK_KIND_SAMPLE] = "sample",
        [TMK_KIND_HELD] = "held",
        [TMK_KIND_RELEASED] = "released",
    };
    (void)b;
    if (rp->implied)
        return;
    const char *name = ev->kind <= TMK_KIND_RELEASED ? names[ev->kind] : NULL;
    printf("%" PRIu64 " %s thread=%u", ev->time_ns, name ? name : "other", ev->thread);
    print_fields(arg, ev);
    putchar('\n');
}

static void print_quoted(const char *key, const char *text)
{
    printf(" %s=", key);
    if (text)
        print_text(text, strlen(text));
    else
        putchar('-');
}

static void print_frame(const struct tmk_reader *r, uint32_t id)
{
    struct tmk_frame f;
    struct tmk_native native;
    if (!tmk_reader_frame(r, id, &f) || f.address || tmk_reader_native(r, id, &native))
        return;
    printf("frame %u", id);
    print_quoted("file", f.file);
    print_quoted("function", f.function);
    printf(" line=%u\n", f.line);
}

static void print_native(const struct tmk_reader *r, uint32_t id)
{
    struct tmk_frame f;
    struct tmk_native native = {0};
    if (!tmk_reader_native(r, id, &native) && (!tmk_reader_frame(r, id, &f) || !f.address))
        return;
    printf("native %u", id);
    print_quoted("module", native.path);
    printf(" build=");
    for (uint32_t i = 0; i < native.build_id_bytes; i++)
        printf("%02x", native.build_id[i]);
    printf(" address=0x%" PRIx64 "\n", native.path ? native.address : f.address);
}

static void print_parameter(const struct tmk_reader *r, uint32_t id)
{
    struct tmk_parameter p;
    if (!tmk_reader_parameter(r, id, &p))
        return;
    printf("parameter %u", id);
    print_quoted("name", p.name);
    printf(" flags=%u device=%u address=0x%" PRIx64 " size=%" PRIu64, p.flags, p.device, p.address,
           p.size_bytes);
    print_quoted("shape", p.shape);
    putchar('\n');
}

static void print_class(const struct tmk_reader *r, uint32_t name)
{
    const char *class = tmk_reader_class(r, name);
    if (!class || !tmk_reader_string(r, name))
        return;
    printf("class %u", name);
    print_quoted("class", class);
    putchar('\n');
}

static int dump_definitions(const struct tmk_reader *r)
{
    struct tmk_stream stream;
    for (uint32_t id = 1; id < tmk_reader_n_frames(r); id++)
        print_frame(r, id);
    for (uint32_t id = 1; id < tmk_reader_n_frames(r); id++)
        print_native(r, id);
    for (uint32_t id = 1; id < 1 << 16; id++)
        if (tmk_reader_stream(r, id, &stream))
            printf("stream %u device=%u handle=%" PRIu64 "\n", id, stream.device, stream.handle);
    for (uint32_t id = 1; id < tmk_reader_n_strings(r); id++)
        print_class(r, id);
    for (uint32_t id = 1; id < tmk_reader_n_parameters(r); id++)
        print_parameter(r, id);
    return 0;
}

static int dump(struct tmk_reader *r)
{
    struct tmk_replay rp;
    struct tmk_error err = {0};
    struct tmk_visitor visitor = {.arg = r, .event = print_event};
    int rc = tmk_replay_init(&rp, &tmk_state_limits_tool);
    if (rc == 0)
        rc = tmk_replay_run(&rp, r, &visitor, &err);
    if (rc < 0)
        fprintf(stderr, "trace_dump: %s\n", err.text);
    tmk_replay_fini(&rp);
    return rc < 0 ? 3 : 0;
}

int main(int n_arguments, char **arguments)
{
    int at = 1;
    int as_is = at < n_arguments && strcmp(arguments[at], "--as-is") == 0;
    at += as_is;
    int definitions = at < n_arguments && strcmp(arguments[at], "--definitions") == 0;
    at += definitions;
    if (n_arguments != at + 1) {
        fprintf(stderr, "usage: trace_dump [--as-is] [--definitions] TRACE\n");
        return 2;
    }
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    const char *path = arguments[at];
    int rc = as_is ? tmk_reader_open(path, &r, &err) : tmk_merge_open(path, &r, NULL, &err);
    if (rc < 0) {
        fprintf(stderr, "trace_dump: %s\n", err.text);
        return 3;
    }
    int status = definitions ? dump_definitions(r) : dump(r);
    tmk_reader_close(r);
    return status;
}
