/* SPDX-License-Identifier: MIT */
/* trace/defs.c - see defs.h; docs/format.md 2.1.
 *
 * Parts of line tables stay where they were copied to until settle() sorts the parts of each code
 * that has frames and joins them; the frames are sorted by code and offset, so that one walk
 * through the table finds the lines of all. */
#include "trace/defs.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/pylines.h"

enum {
    MAX_IDS = 1 << 24, /* more is damage; bounded by the address space that a table may take */
    MAX_CODES = 1 << 22,
    MAX_MODULES = 1 << 20,
    MAX_STREAMS = 1 << 16,
    MAX_PARAMETERS = 1 << 22,
    ARENA_BYTES = 1 << 18,
};

struct tmk_defs_block {
    struct tmk_defs_block *next;
    size_t used, size;
    uint8_t bytes[];
};

enum frame_kind { FRAME_NONE, FRAME_PLAIN, FRAME_CODE, FRAME_NATIVE };

struct frame_def {
    uint32_t kind;     /* enum frame_kind */
    uint32_t base;     /* file, code or module */
    uint32_t function; /* PLAIN */
    uint32_t line;     /* PLAIN; CODE: found by settle() */
    uint64_t where;    /* CODE: offset; NATIVE: address */
};

struct table_part { /* of a line table */
    const struct table_part *next;
    const uint8_t *bytes;
    uint32_t offset, n; /* of the table as the program had it */
    uint32_t n_bytes;   /* the same, but for runs */
};

struct code_def {
    uint32_t file, function, first_line, layout; /* layout 0: not defined */
    const struct table_part *parts;
    bool is_cut;              /* a part beyond the bound was left out */
    bool has_bytes, has_runs; /* parts of either type; with both, the table counts as missing */
};

struct module_def {
    const char *path; /* NULL: not defined */
    const uint8_t *build_id;
    uint32_t build_id_bytes;
};

struct stream_def {
    struct tmk_stream stream;
    bool is_defined;
};

struct parameter_def {
    uint64_t address, size_bytes;
    const char *shape; /* NULL: not defined */
    uint32_t name, flags;
    uint16_t device;
};

/* ---- memory ---- */

static void *arena_take(struct tmk_defs *d, size_t n)
{
    n = (n + 7) & ~(size_t)7;
    if (!d->arena || d->arena->size - d->arena->used < n) {
        size_t size = n > ARENA_BYTES ? n : ARENA_BYTES;
        struct tmk_defs_block *block = malloc(sizeof *block + size);
        if (!block)
            return NULL;
        *block = (struct tmk_defs_block){.next = d->arena, .size = size};
        d->arena = block;
    }
    void *p = d->arena->bytes + d->arena->used;
    d->arena->used += n;
    return p;
}

/* The table's slot for `id`, NULL when the id is out of bounds. */
static void *table_slot(struct tmk_defs_table *t, uint64_t id, size_t item_bytes)
{
    if (id == 0 || id >= t->memory.size_bytes / item_bytes)
        return NULL;
    if (id >= t->n)
        t->n = (uint32_t)id + 1;
    return (uint8_t *)t->memory.base + id * item_bytes;
}

static const void *table_get(const struct tmk_defs_table *t, uint32_t id, size_t item_bytes)
{
    return id < t->n ? (const uint8_t *)t->memory.base + (size_t)id * item_bytes : NULL;
}

int tmk_defs_init(struct tmk_defs *d)
{
    *d = (struct tmk_defs){.tail_step = TMK_NO_STEP};
    const struct {
        struct tmk_defs_table *table;
        size_t n, item_bytes;
    } tables[] = {
        {&d->strings, MAX_IDS, sizeof(const char *)},
        {&d->frames, MAX_IDS, sizeof(struct frame_def)},
        {&d->stacks, MAX_IDS, sizeof(struct tmk_stack)},
        {&d->threads, MAX_IDS, sizeof(struct tmk_thread_info)},
        {&d->codes, MAX_CODES, sizeof(struct code_def)},
        {&d->modules, MAX_MODULES, sizeof(struct module_def)},
        {&d->streams, MAX_STREAMS, sizeof(struct stream_def)},
        {&d->classes, MAX_IDS, sizeof(uint32_t)},
        {&d->parameters, MAX_PARAMETERS, sizeof(struct parameter_def)},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof tables / sizeof tables[0]; i++)
        rc = tmk_region_init(&tables[i].table->memory, tables[i].n * tables[i].item_bytes);
    return rc;
}

void tmk_defs_fini(struct tmk_defs *d)
{
    while (d->arena) {
        struct tmk_defs_block *next = d->arena->next;
        free(d->arena);
        d->arena = next;
    }
    struct tmk_defs_table *tables[] = {&d->strings, &d->frames,  &d->stacks,
                                       &d->threads, &d->codes,   &d->modules,
                                       &d->streams, &d->classes, &d->parameters};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        tmk_region_fini(&tables[i]->memory);
}

/* ---- reading ---- */

static int define_text(struct tmk_defs *d, struct tmk_view body, const char **ret)
{
    size_t n = tmk_view_left(&body);
    char *text = arena_take(d, n + 1);
    if (!text)
        return TMK_ENOMEM;
    memcpy(text, body.at, n);
    text[n] = '\0';
    *ret = text;
    return 0;
}

static int define_stack(struct tmk_defs *d, struct tmk_view body, struct tmk_stack *ret)
{
    uint32_t *frames = arena_take(d, tmk_view_left(&body) * sizeof *frames);
    if (!frames)
        return TMK_ENOMEM;
    uint32_t n = 0;
    while (tmk_view_left(&body) > 0 && !body.bad)
        frames[n++] = (uint32_t)tmk_view_varint(&body);
    *ret = (struct tmk_stack){.frames = frames, .n_frames = body.bad && n ? n - 1 : n};
    return 0;
}

static void define_frame(struct tmk_defs *d, uint64_t type, uint64_t id, struct tmk_view body)
{
    struct frame_def frame = {.base = (uint32_t)tmk_view_varint(&body)};
    if (type == TMK_DEF_FRAME) {
        frame.kind = FRAME_PLAIN;
        frame.function = (uint32_t)tmk_view_varint(&body);
        frame.line = (uint32_t)tmk_view_varint(&body);
    } else {
        frame.kind = type == TMK_DEF_CODE_FRAME ? FRAME_CODE : FRAME_NATIVE;
        frame.where = tmk_view_varint(&body);
    }
    if (body.bad)
        return;
    struct frame_def *slot = table_slot(&d->frames, id, sizeof *slot);
    if (slot)
        *slot = frame;
}

static void define_code(struct tmk_defs *d, uint64_t id, struct tmk_view body)
{
    struct code_def code = {.file = (uint32_t)tmk_view_varint(&body)};
    code.function = (uint32_t)tmk_view_varint(&body);
    code.first_line = (uint32_t)tmk_view_varint(&body);
    code.layout = (uint32_t)tmk_view_varint(&body);
    struct code_def *slot = body.bad ? NULL : table_slot(&d->codes, id, sizeof *slot);
    if (!slot)
        return;
    code.parts = slot->parts; /* they may have come before */
    code.is_cut = slot->is_cut;
    code.has_bytes = slot->has_bytes;
    code.has_runs = slot->has_runs;
    *slot = code;
}

static int define_lines(struct tmk_defs *d, uint64_t type, uint64_t id, struct tmk_view body)
{
    bool is_runs = type == TMK_DEF_LINE_RUNS;
    uint64_t offset = tmk_view_varint(&body);
    uint64_t length = is_runs ? tmk_view_varint(&body) : tmk_view_left(&body);
    size_t n = tmk_view_left(&body);
    struct code_def *code = body.bad ? NULL : table_slot(&d->codes, id, sizeof *code);
    if (!code || length == 0)
        return 0;
    if (offset > TMK_LINES_MAX_BYTES || length > TMK_LINES_MAX_BYTES - offset || n > length) {
        code->is_cut = true;
        return 0;
    }
    struct table_part *part = arena_take(d, sizeof *part + n);
    if (!part)
        return TMK_ENOMEM;
    uint8_t *bytes = (uint8_t *)(part + 1);
    memcpy(bytes, body.at, n);
    *part =
        (struct table_part){code->parts, bytes, (uint32_t)offset, (uint32_t)length, (uint32_t)n};
    code->parts = part;
    *(is_runs ? &code->has_runs : &code->has_bytes) = true;
    return 0;
}

static int define_module(struct tmk_defs *d, uint64_t id, struct tmk_view body)
{
    uint64_t n = tmk_view_varint(&body);
    struct tmk_view build_id = tmk_view_take(&body, n);
    struct module_def *slot = body.bad ? NULL : table_slot(&d->modules, id, sizeof *slot);
    if (!slot)
        return 0;
    uint8_t *copy = arena_take(d, (size_t)n + 1);
    if (!copy)
        return TMK_ENOMEM;
    memcpy(copy, build_id.at, (size_t)n);
    slot->build_id = copy;
    slot->build_id_bytes = (uint32_t)n;
    return define_text(d, body, &slot->path);
}

static int define_thread(struct tmk_defs *d, uint64_t id, struct tmk_view body)
{
    struct tmk_thread_info *slot = table_slot(&d->threads, id, sizeof *slot);
    uint64_t system_id = tmk_view_varint(&body);
    if (!slot)
        return 0;
    slot->system_id = system_id;
    return define_text(d, body, &slot->name);
}

static void define_stream(struct tmk_defs *d, uint64_t id, struct tmk_view body)
{
    struct tmk_stream stream = {.device = (uint16_t)tmk_view_varint(&body)};
    stream.handle = tmk_view_varint(&body);
    struct stream_def *slot = body.bad ? NULL : table_slot(&d->streams, id, sizeof *slot);
    if (slot)
        *slot = (struct stream_def){.stream = stream, .is_defined = true};
}

static void define_class(struct tmk_defs *d, uint64_t name, struct tmk_view body)
{
    uint64_t class = tmk_view_varint(&body);
    uint32_t *slot = body.bad ? NULL : table_slot(&d->classes, name, sizeof *slot);
    if (slot)
        *slot = (uint32_t) class;
}

static int define_parameter(struct tmk_defs *d, uint64_t id, struct tmk_view body)
{
    struct parameter_def def = {.name = (uint32_t)tmk_view_varint(&body)};
    def.flags = (uint32_t)tmk_view_varint(&body);
    def.device = (uint16_t)tmk_view_varint(&body);
    def.address = tmk_view_varint(&body);
    def.size_bytes = tmk_view_varint(&body);
    struct parameter_def *slot = body.bad ? NULL : table_slot(&d->parameters, id, sizeof *slot);
    if (!slot)
        return 0;
    int rc = define_text(d, body, &def.shape);
    if (rc == 0)
        *slot = def;
    return rc;
}

static int define_entry(struct tmk_defs *d, uint64_t type, struct tmk_view body)
{
    uint64_t id = tmk_view_varint(&body);
    void *slot;
    switch (type) {
    case TMK_DEF_STRING:
        slot = table_slot(&d->strings, id, sizeof(const char *));
        return slot ? define_text(d, body, slot) : 0;
    case TMK_DEF_STACK:
        slot = table_slot(&d->stacks, id, sizeof(struct tmk_stack));
        return slot ? define_stack(d, body, slot) : 0;
    case TMK_DEF_THREAD:
        return define_thread(d, id, body);
    case TMK_DEF_FRAME:
    case TMK_DEF_CODE_FRAME:
    case TMK_DEF_NATIVE_FRAME:
        define_frame(d, type, id, body);
        return 0;
    case TMK_DEF_CODE:
        define_code(d, id, body);
        return 0;
    case TMK_DEF_LINES:
    case TMK_DEF_LINE_RUNS:
        return define_lines(d, type, id, body);
    case TMK_DEF_MODULE:
        return define_module(d, id, body);
    case TMK_DEF_STREAM:
        define_stream(d, id, body);
        return 0;
    case TMK_DEF_TORCH_MODULE:
        define_class(d, id, body);
        return 0;
    case TMK_DEF_PARAMETER:
        return define_parameter(d, id, body);
    case TMK_DEF_TAIL:
        if (!body.bad && id <= INT64_MAX)
            d->tail_step = (int64_t)id;
        return 0;
    default:
        return 0;
    }
}

int tmk_defs_read(struct tmk_defs *d, struct tmk_view payload)
{
    while (tmk_view_left(&payload) > 0) {
        uint64_t type = tmk_view_varint(&payload);
        uint64_t length = tmk_view_varint(&payload);
        struct tmk_view body = tmk_view_take(&payload, length);
        if (payload.bad)
            return TMK_EDAMAGED;
        int rc = define_entry(d, type, body);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- lines ---- */

struct wanted_line { /* the line of a frame */
    uint64_t offset;
    uint32_t code, frame;
};

struct table_maker {          /* kept from code to code */
    struct table_part *parts; /* copies */
    size_t part_room;
    uint8_t *bytes; /* TMK_LINES_MAX_BYTES */
};

static int by_code_and_offset(const void *va, const void *vb)
{
    const struct wanted_line *a = va, *b = vb;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Parts at one offset are ordered with the longest first. */
static int by_part_offset(const void *va, const void *vb)
{
    const struct table_part *a = va, *b = vb;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->n < b->n) - (a->n > b->n);
}

static int list_parts(struct table_maker *m, const struct code_def *code, size_t *ret_n)
{
    size_t n = 0;
    for (const struct table_part *part = code->parts; part; part = part->next)
        n++;
    if (n > m->part_room) {
        struct table_part *more = realloc(m->parts, n * sizeof *more);
        if (!more)
            return TMK_ENOMEM;
        m->parts = more;
        m->part_room = n;
    }
    *ret_n = 0;
    for (const struct table_part *part = code->parts; part; part = part->next)
        m->parts[(*ret_n)++] = *part;
    if (n > 1)
        qsort(m->parts, n, sizeof *m->parts, by_part_offset);
    return 0;
}

/* Copies the parts in order. When a part begins before the last one ended, the bytes that are there
 * already are left out; runs cannot be cut, and are left out whole. */
static size_t join_parts(struct table_maker *m, size_t n_parts, bool is_runs)
{
    size_t n = 0, n_bytes = 0; /* n: of the table as the program had it */
    for (size_t i = 0; i < n_parts; i++) {
        const struct table_part *part = &m->parts[i];
        if (part->offset > n)
            return 0;
        size_t have = n - part->offset;
        if (have >= part->n || (is_runs && have > 0))
            continue;
        memcpy(m->bytes + n_bytes, part->bytes + have, part->n_bytes - have);
        n_bytes += part->n_bytes - have;
        n += part->n - have;
    }
    return n_bytes;
}

/* Joins the parts: the bytes are in m->bytes. There are none when a part is missing. */
static int make_line_table(struct table_maker *m, const struct code_def *code, size_t *ret_n)
{
    size_t n_parts;
    if (!m->bytes && !(m->bytes = malloc(TMK_LINES_MAX_BYTES)))
        return TMK_ENOMEM;
    if (list_parts(m, code, &n_parts) < 0)
        return TMK_ENOMEM;
    bool is_lost = code->is_cut || (code->has_bytes && code->has_runs);
    *ret_n = is_lost ? 0 : join_parts(m, n_parts, code->has_runs);
    return 0;
}

/* The layout of the bytes of make_line_table(). Runs stand for tables of one layout only. */
static uint32_t layout_of(const struct code_def *code)
{
    if (code->has_runs)
        return code->layout == TMK_PY_LINES_311 ? TMK_PY_LINES_RUNS : 0;
    return code->layout == TMK_PY_LINES_RUNS ? 0 : code->layout;
}

static int find_lines(struct tmk_defs *d, const struct wanted_line *wanted, uint32_t n)
{
    static const uint8_t nothing[1];
    struct table_maker maker = {0};
    struct frame_def *frames = d->frames.memory.base;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0;) {
        uint32_t id = wanted[i].code;
        const struct code_def *code = table_get(&d->codes, id, sizeof *code);
        struct tmk_pylines lines;
        size_t n_bytes = 0;
        if (code)
            rc = make_line_table(&maker, code, &n_bytes);
        tmk_pylines_init(&lines, code ? layout_of(code) : 0, code ? code->first_line : 0,
                         maker.bytes ? maker.bytes : nothing, n_bytes);
        for (; i < n && wanted[i].code == id; i++)
            frames[wanted[i].frame].line = tmk_pylines_at(&lines, wanted[i].offset);
    }
    free(maker.parts);
    free(maker.bytes);
    return rc;
}

int tmk_defs_settle(struct tmk_defs *d)
{
    const struct frame_def *frames = d->frames.memory.base;
    uint32_t n = 0;
    for (uint32_t id = 1; id < d->frames.n; id++)
        n += frames[id].kind == FRAME_CODE;
    if (n == 0)
        return 0;
    struct wanted_line *wanted = malloc(n * sizeof *wanted);
    if (!wanted)
        return TMK_ENOMEM;
    n = 0;
    for (uint32_t id = 1; id < d->frames.n; id++)
        if (frames[id].kind == FRAME_CODE)
            wanted[n++] = (struct wanted_line){
                .offset = frames[id].where, .code = frames[id].base, .frame = id};
    qsort(wanted, n, sizeof *wanted, by_code_and_offset);
    int rc = find_lines(d, wanted, n);
    free(wanted);
    return rc;
}

/* ---- asking ---- */

const char *tmk_defs_string(const struct tmk_defs *d, uint32_t id)
{
    const char *const *slot = table_get(&d->strings, id, sizeof *slot);
    return slot ? *slot : NULL;
}

bool tmk_defs_frame(const struct tmk_defs *d, uint32_t id, struct tmk_frame *ret)
{
    const struct frame_def *f = table_get(&d->frames, id, sizeof *f);
    if (!f || f->kind == FRAME_NONE)
        return false;
    uint32_t file = f->base, function = f->function, first_line = 0;
    if (f->kind == FRAME_NATIVE) {
        const struct module_def *module = table_get(&d->modules, f->base, sizeof *module);
        *ret = (struct tmk_frame){.file = module ? module->path : NULL, .address = f->where};
        return true;
    }
    if (f->kind == FRAME_CODE) {
        const struct code_def *code = table_get(&d->codes, f->base, sizeof *code);
        file = code ? code->file : 0;
        function = code ? code->function : 0;
        first_line = code ? code->first_line : 0;
    }
    *ret = (struct tmk_frame){.file = tmk_defs_string(d, file),
                              .function = tmk_defs_string(d, function),
                              .line = f->line,
                              .first_line = first_line};
    return true;
}

bool tmk_defs_native(const struct tmk_defs *d, uint32_t frame, struct tmk_native *ret)
{
    const struct frame_def *f = table_get(&d->frames, frame, sizeof *f);
    if (!f || f->kind != FRAME_NATIVE)
        return false;
    const struct module_def *module = table_get(&d->modules, f->base, sizeof *module);
    if (!module || !module->path)
        return false;
    *ret = (struct tmk_native){.path = module->path,
                               .build_id = module->build_id,
                               .build_id_bytes = module->build_id_bytes,
                               .address = f->where};
    return true;
}

bool tmk_defs_stack(const struct tmk_defs *d, uint32_t id, struct tmk_stack *ret)
{
    const struct tmk_stack *slot = table_get(&d->stacks, id, sizeof *slot);
    if (!slot || !slot->frames)
        return false;
    *ret = *slot;
    return true;
}

bool tmk_defs_thread(const struct tmk_defs *d, uint32_t id, struct tmk_thread_info *ret)
{
    const struct tmk_thread_info *slot = table_get(&d->threads, id, sizeof *slot);
    if (!slot || !slot->name)
        return false;
    *ret = *slot;
    return true;
}

bool tmk_defs_stream(const struct tmk_defs *d, uint32_t id, struct tmk_stream *ret)
{
    const struct stream_def *slot = table_get(&d->streams, id, sizeof *slot);
    if (!slot || !slot->is_defined)
        return false;
    *ret = slot->stream;
    return true;
}

bool tmk_defs_parameter(const struct tmk_defs *d, uint32_t id, struct tmk_parameter *ret)
{
    const struct parameter_def *slot = table_get(&d->parameters, id, sizeof *slot);
    if (!slot || !slot->shape)
        return false;
    *ret = (struct tmk_parameter){.name = tmk_defs_string(d, slot->name),
                                  .shape = slot->shape,
                                  .address = slot->address,
                                  .size_bytes = slot->size_bytes,
                                  .flags = slot->flags,
                                  .device = slot->device};
    return true;
}

const char *tmk_defs_class(const struct tmk_defs *d, uint32_t name)
{
    const uint32_t *slot = table_get(&d->classes, name, sizeof *slot);
    return slot ? tmk_defs_string(d, *slot) : NULL;
}
