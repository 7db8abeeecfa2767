/* SPDX-License-Identifier: MIT */
/* tests/kit/trace_kit.c - see trace_kit.h. A test that cannot make its files is meaningless, so
 * every failing system call here ends the program. */
#include "trace_kit.h"
#include "base/array.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/valid.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/segments.h"
#include "trace/state.h"

const uint16_t kit_devices[KIT_DEVICES] = {0, 0x100, 0x101};

/* ---- chance ---- */

uint64_t kit_random_next(struct kit_random *r)
{
    r->state += 0x9e3779b97f4a7c15u;
    return tmk_hash_u64(r->state);
}

uint64_t kit_random_below(struct kit_random *r, uint64_t n)
{
    return kit_random_next(r) % n;
}

/* ---- records ---- */

void kit_source_init(struct kit_source *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->random.state = seed;
    s->step = -3;
}

static uint64_t below(struct kit_source *s, uint64_t n)
{
    return kit_random_below(&s->random, n);
}

static uint64_t address_of(uint64_t i)
{
    return 0x7f0000000000u + i * 512;
}

/* Choose a size as programs have them: few different ones, now and then an odd or an extreme
 * one. */
static uint64_t size_of_block(struct kit_source *s)
{
    switch (below(s, 50)) {
    case 0:
        return 0;
    case 1:
        return 1 + below(s, 1u << 20);
    case 2:
        return 1ull << (20 + below(s, 20));
    default:
        return 512u << below(s, 12);
    }
}

/* Pick an address that is live or free as wanted, if chance finds one, else any. So a few frees
 * free nothing, and a few allocations hit a live block. */
static void pick_place(struct kit_source *s, bool live, struct tmk_input *ret, bool **ret_live)
{
    uint64_t device = below(s, KIT_DEVICES), place = below(s, KIT_ADDRESSES);
    for (int try = 0; try < 30 && s->live[device][place] != live; try++)
        place = below(s, KIT_ADDRESSES);
    ret->device = kit_devices[device];
    ret->a = address_of(place);
    *ret_live = &s->live[device][place];
}

static uint32_t any_id(struct kit_source *s, uint32_t n)
{
    return (uint32_t)below(s, n + 1u);
}

static void make_text(struct kit_source *s, struct tmk_input *ret, size_t most)
{
    uint32_t n = (uint32_t)(below(s, 40) == 0 ? below(s, most + 1) : below(s, 30));
    for (uint32_t i = 0; i < n; i++)
        s->text[i] = (uint8_t)(1 + below(s, 255));
    ret->text = s->text;
    ret->text_bytes = n;
}

static void make_stack(struct kit_source *s, struct tmk_input *ret)
{
    uint32_t n = 1 + (uint32_t)below(s, 20);
    for (uint32_t i = 0; i < n; i++)
        tmk_store_u32(s->text + 4 * i, any_id(s, s->n_frames));
    ret->id = ++s->n_stacks;
    ret->text = s->text;
    ret->text_bytes = 4 * n;
}

/* Whether a code's line table mostly consists of complete entries of layout 311. */
static bool has_entries(uint32_t code)
{
    return code % 2 == 0;
}

/* A byte of a code's line table, the same each time: pairs with a meaning in every layout, and now
 * and then anything. */
static uint8_t line_byte(uint32_t code, uint64_t at)
{
    uint64_t chance = tmk_hash_mix(code, at);
    if (chance % 200 == 0 && (code % 10 == 0 || !has_entries(code)))
        return (uint8_t)(chance >> 8);
    if (at % 2 == 0 && has_entries(code))
        return (uint8_t)(0x80 | (chance >> 16 & 1 ? 13u : 4u) << 3 | (chance >> 24 & 7));
    if (at % 2 == 1)
        return chance >> 8 & 63;
    uint64_t form = (chance >> 16) % 12;
    return (uint8_t)(0x80 | (form < 10 ? form : form == 10 ? 13 : 15) << 3 | (chance >> 24 & 7));
}

/* Make a part of a line table. Make a part of a line table. Parts overlap, come twice or leave a
 * hole. */
static void make_lines(struct kit_source *s, struct tmk_input *ret)
{
    ret->id = any_id(s, s->n_codes);
    bool is_whole = has_entries(ret->id) != (below(s, 40) == 0);
    ret->kind = is_whole ? TMK_KIND_DEF_LINES_311 : TMK_KIND_DEF_LINES;
    ret->a = below(s, 4) ? 100 * below(s, 3) : below(s, 50) ? 0 : 1 << 20;
    ret->text = s->text;
    ret->text_bytes = 100 + 2 * (uint32_t)below(s, 150);
    for (uint32_t i = 0; i < ret->text_bytes; i++)
        s->text[i] = line_byte(ret->id, ret->a + i);
}

static void make_module(struct kit_source *s, struct tmk_input *ret)
{
    ret->id = ++s->n_modules;
    make_text(s, ret, TMK_STRING_MAX_BYTES);
    ret->a = below(s, ret->text_bytes < 20 ? ret->text_bytes + 1u : 21);
}

/* Define a module. It gets its class once, so that the order of chunks does not matter. */
static void make_torch_module(struct kit_source *s, struct tmk_input *ret)
{
    ret->id = ++s->n_torch_modules;
    ret->a = any_id(s, s->n_strings);
}

static void make_parameter(struct kit_source *s, struct tmk_input *ret)
{
    struct tmk_parameter_head head = {.address = kit_random_next(&s->random),
                                      .size_bytes = below(s, 1ull << 40),
                                      .name = any_id(s, s->n_strings)};
    make_text(s, ret, TMK_STRING_MAX_BYTES - sizeof head);
    memmove(s->text + sizeof head, s->text, ret->text_bytes);
    memcpy(s->text, &head, sizeof head);
    ret->text_bytes += (uint32_t)sizeof head;
    ret->id = ++s->n_parameters;
    ret->a = below(s, 8) << 16 | kit_devices[below(s, KIT_DEVICES)];
}

/* Define what Python and native frames need, streams, torch's modules and parameters. */
static void make_further_definition(struct kit_source *s, struct tmk_input *ret)
{
    static const uint64_t layouts[] = {TMK_PY_LINES_39, TMK_PY_LINES_310, TMK_PY_LINES_311, 7};
    if (ret->kind == TMK_KIND_DEF_CODE) {
        ret->id = ++s->n_codes;
        ret->a = (uint64_t)any_id(s, s->n_strings) << 32 | any_id(s, s->n_strings);
        ret->b = layouts[has_entries(ret->id) && below(s, 8) ? 2 : below(s, 4)] << 32;
        ret->b |= below(s, 1000);
    } else if (ret->kind == TMK_KIND_DEF_LINES) {
        make_lines(s, ret);
    } else if (ret->kind == TMK_KIND_DEF_MODULE) {
        make_module(s, ret);
    } else if (ret->kind == TMK_KIND_DEF_TORCH_MODULE) {
        make_torch_module(s, ret);
    } else if (ret->kind == TMK_KIND_DEF_PARAMETER) {
        make_parameter(s, ret);
    } else if (ret->kind == TMK_KIND_DEF_STREAM) {
        ret->id = ++s->n_streams;
        ret->device = kit_devices[below(s, KIT_DEVICES)];
        ret->a = kit_random_next(&s->random);
    } else {
        bool is_code = ret->kind == TMK_KIND_DEF_CODE_FRAME;
        ret->id = ++s->n_frames;
        ret->a = any_id(s, is_code ? s->n_codes : s->n_modules);
        ret->b = is_code ? below(s, 1500) : kit_random_next(&s->random);
    }
}

/* Make any text, or the name of a stage, which has a meaning. */
static void make_string(struct kit_source *s, struct tmk_input *ret)
{
    static const char *const stages[] = {"forward", "backward", "optimizer",
                                         "eval",    "data",     "wrap"};
    ret->id = ++s->n_strings;
    if (below(s, 2)) {
        make_text(s, ret, TMK_STRING_MAX_BYTES);
        return;
    }
    const char *stage = stages[below(s, TMK_N(stages))];
    ret->text = (const uint8_t *)stage;
    ret->text_bytes = (uint32_t)strlen(stage);
}

static void make_definition(struct kit_source *s, struct tmk_input *ret)
{
    ret->kind = (uint8_t)(TMK_KIND_DEF_STRING + below(s, 12));
    if (ret->kind > TMK_KIND_DEF_THREAD) {
        make_further_definition(s, ret);
        return;
    }
    if (ret->kind == TMK_KIND_DEF_STRING) {
        make_string(s, ret);
    } else if (ret->kind == TMK_KIND_DEF_FRAME) {
        ret->id = ++s->n_frames;
        ret->a = (uint64_t)(any_id(s, s->n_strings) + 1) << 32 | any_id(s, s->n_strings);
        ret->b = below(s, 100000);
    } else if (ret->kind == TMK_KIND_DEF_STACK) {
        make_stack(s, ret);
    } else {
        ret->id = ret->thread;
        ret->a = 1000 + below(s, 100000);
        make_text(s, ret, 15);
    }
}

static void make_block_event(struct kit_source *s, struct tmk_input *ret)
{
    bool *live;
    if (ret->kind == TMK_KIND_ALLOC) {
        pick_place(s, below(s, 100) == 0, ret, &live);
        ret->b = size_of_block(s);
        ret->requested = ret->b % 7 < 4 ? 0 : ret->b - ret->b / 8; /* known for some blocks */
        ret->id = any_id(s, s->n_stacks);
        ret->stream = (uint16_t)(below(s, 4) ? 0 : any_id(s, s->n_streams));
        *live = true;
    } else if (ret->kind == TMK_KIND_FREE) {
        pick_place(s, below(s, 100) != 0, ret, &live);
        *live = false;
    } else {
        pick_place(s, true, ret, &live);
        ret->b = below(s, 3) ? below(s, 10) : 5 * below(s, 2); /* often unknown or input */
        ret->id = any_id(s, s->n_strings);
    }
}

/* Make an event with a device's reserved bytes, or now and then its end. */
static void make_device_event(struct kit_source *s, struct tmk_input *ret)
{
    uint64_t device = below(s, KIT_DEVICES);
    ret->device = kit_devices[device];
    ret->a = below(s, 10) ? below(s, 1ull << 36) : 0;
    if (below(s, 30) != 0)
        return;
    ret->kind = TMK_KIND_DEVICE_END;
    ret->a = 0;
    memset(s->live[device], 0, sizeof s->live[device]);
}

/* Begin or end one of a few segments, or sample a device. */
static void make_driver_event(struct kit_source *s, struct tmk_input *ret)
{
    ret->device = kit_devices[below(s, KIT_DEVICES)];
    ret->stream = (uint16_t)(1 + below(s, TMK_N_SEGMENT_KINDS - 1));
    ret->a = 0x700000000000 + below(s, 40) * (2 << 20);
    if (below(s, 5) == 0) {
        ret->kind = below(s, 2) ? TMK_KIND_HELD : TMK_KIND_RELEASED;
        ret->b = ret->kind == TMK_KIND_HELD ? below(s, 1ull << 30) : 0;
        ret->stream = 0;
    } else if (below(s, 3) == 0) {
        ret->kind = TMK_KIND_SEGMENT_END;
    } else if (below(s, 3) != 0) {
        ret->b = below(s, 1ull << 38);
        ret->id = any_id(s, s->n_stacks);
    } else {
        struct tmk_sample_body sample = {.used_bytes = below(s, 1ull << 38),
                                         .total_bytes = 1ull << 38,
                                         .own_bytes = below(s, 2) ? UINT64_MAX : below(s, 1000),
                                         .others_bytes = UINT64_MAX};
        ret->kind = TMK_KIND_SAMPLE;
        ret->a = ret->stream = 0;
        ret->id = ret->device;
        ret->device = 0;
        memcpy(s->text, &sample, sizeof sample);
        ret->text = s->text;
        ret->text_bytes = sizeof sample;
    }
}

static void make_rare_event(struct kit_source *s, struct tmk_input *ret)
{
    if (ret->kind == TMK_KIND_STEP) {
        s->step += below(s, 10) == 0 ? 1000 : 1;
        ret->a = (uint64_t)s->step;
    } else if (ret->kind == TMK_KIND_MARK) {
        ret->id = any_id(s, s->n_strings);
        make_text(s, ret, TMK_STRING_MAX_BYTES);
    } else if (ret->kind == TMK_KIND_OOM) {
        ret->device = kit_devices[below(s, KIT_DEVICES)];
        ret->a = kit_random_next(&s->random);
        ret->b = below(s, 2) ? 0 : kit_random_next(&s->random);
        ret->requested = below(s, 2) ? 0 : 1 + below(s, 1ull << 38);
        ret->id = any_id(s, s->n_stacks);
    } else if (ret->kind == TMK_KIND_RESERVED) {
        make_device_event(s, ret);
    } else if (ret->kind == TMK_KIND_SEGMENT) {
        make_driver_event(s, ret);
    } else {
        ret->thread = 0;
        ret->a = 1 + below(s, 1000);
    }
}

static uint8_t pick_kind(struct kit_source *s)
{
    static const struct {
        uint8_t kind, weight; /* in hundredths */
    } kinds[] = {
        {TMK_KIND_ALLOC, 33},   {TMK_KIND_FREE, 31},   {TMK_KIND_TAG, 7},
        {TMK_KIND_PUSH, 6},     {TMK_KIND_POP, 10},    {TMK_KIND_STEP, 2},
        {TMK_KIND_MARK, 2},     {TMK_KIND_OOM, 1},     {TMK_KIND_DROP, 1},
        {TMK_KIND_RESERVED, 1}, {TMK_KIND_SEGMENT, 2}, {TMK_KIND_NONE, 4}, /* a definition */
    };
    uint64_t at = below(s, 100);
    size_t i = 0;
    for (; at >= kinds[i].weight; i++)
        at -= kinds[i].weight;
    if (kinds[i].kind == TMK_KIND_STEP && s->steps_rarer && below(s, s->steps_rarer) != 0)
        return TMK_KIND_FREE;
    return kinds[i].kind;
}

void kit_source_next(struct kit_source *s, struct tmk_input *ret)
{
    *ret = (struct tmk_input){.thread = 1 + (uint32_t)below(s, 2), .kind = pick_kind(s)};
    if (below(s, 20) == 0)
        ret->thread = 1 + (uint32_t)below(s, KIT_THREADS);
    s->now_ns += below(s, 8) ? below(s, 2000) : below(s, 100) ? 0 : below(s, 1ull << 34);
    ret->ns = s->now_ns;
    if (ret->kind == TMK_KIND_NONE)
        make_definition(s, ret);
    else if (ret->kind <= TMK_KIND_TAG)
        make_block_event(s, ret);
    else if (ret->kind == TMK_KIND_PUSH || ret->kind == TMK_KIND_POP)
        ret->a = 1 + below(s, 3);
    else
        make_rare_event(s, ret);
    if (ret->kind == TMK_KIND_PUSH)
        ret->id = any_id(s, s->n_strings < 3 ? s->n_strings : 3);
}

bool kit_is_event(const struct tmk_input *in)
{
    return in->kind < TMK_KIND_DEF_STRING;
}

/* ---- meaning ---- */

static void apply_block_event(struct tmk_state *s, const struct tmk_input *in)
{
    struct tmk_block *b = tmk_state_entry(s, in->device, in->a);
    if (in->kind == TMK_KIND_ALLOC) {
        if (b && b->live)
            tmk_state_replace(s, b);
        struct tmk_shape shape = {.size_bytes = in->b,
                                  .requested_bytes = in->requested,
                                  .stack = in->id,
                                  .stream = in->stream};
        tmk_state_alloc(s, b, in->ns, in->device, in->thread, &shape);
    } else if (in->kind == TMK_KIND_FREE) {
        tmk_state_free(s, b, in->ns, in->device, in->thread);
    } else {
        tmk_state_tag(s, b, in->ns, (uint8_t)in->b, in->id);
    }
}

void kit_apply(struct tmk_state *s, const struct tmk_input *in)
{
    if (!kit_is_event(in))
        return;
    if (in->kind <= TMK_KIND_TAG)
        apply_block_event(s, in);
    else if (in->kind == TMK_KIND_PUSH)
        tmk_state_push(s, in->ns, in->thread, (uint8_t)in->a, in->id);
    else if (in->kind == TMK_KIND_POP)
        tmk_state_pop(s, in->ns, in->thread, (uint8_t)in->a, NULL);
    else if (in->kind == TMK_KIND_STEP)
        tmk_state_step(s, in->ns, (int64_t)in->a);
    else if (in->kind == TMK_KIND_RESERVED)
        tmk_state_reserved(s, in->ns, in->device, in->a);
    else if (in->kind == TMK_KIND_DEVICE_END)
        tmk_state_device_end(s, in->ns, in->device);
    else if (in->kind == TMK_KIND_SEGMENT)
        tmk_state_segment(s, in->ns, in->thread,
                          &(struct tmk_driver_segment){.address = in->a,
                                                       .size_bytes = in->b,
                                                       .stack = in->id,
                                                       .device = in->device,
                                                       .kind = (uint8_t)in->stream});
    else if (in->kind == TMK_KIND_SEGMENT_END)
        tmk_state_segment_end(s, in->ns, in->stream, in->a, NULL);
    else
        tmk_state_other(s, in->ns);
    if (in->kind == TMK_KIND_DROP)
        s->n_dropped += in->a;
    TMK_ASSERT_VALID(tmk_state_adds_up(s), (s->n_devices + 1) * (uint64_t)s->n_entries);
}

/* ---- comparing ---- */

static char difference[256];

static const char *differs(const char *what, uint64_t a, uint64_t b)
{
    snprintf(difference, sizeof difference, "%s: %llu and %llu", what, (unsigned long long)a,
             (unsigned long long)b);
    return difference;
}

static bool is_same_context(const struct tmk_state *a, uint32_t ca, const struct tmk_state *b,
                            uint32_t cb)
{
    for (; ca && cb; ca = a->contexts[ca].parent, cb = b->contexts[cb].parent)
        if (a->contexts[ca].name != b->contexts[cb].name ||
            a->contexts[ca].kind != b->contexts[cb].kind)
            return false;
    return ca == cb;
}

static bool is_same_block(const struct tmk_state *sa, const struct tmk_block *a,
                          const struct tmk_state *sb, const struct tmk_block *b)
{
    return a->size_bytes == b->size_bytes && a->alloc_ns == b->alloc_ns && a->serial == b->serial &&
           a->step == b->step && a->stack == b->stack && a->thread == b->thread &&
           a->name == b->name && a->category == b->category && a->stream == b->stream &&
           tmk_state_requested(sa, a) == tmk_state_requested(sb, b) &&
           is_same_context(sa, a->context, sb, b->context);
}

static const char *compare_blocks(struct tmk_state *a, struct tmk_state *b)
{
    if (a->n_live != b->n_live)
        return differs("live blocks", a->n_live, b->n_live);
    for (uint32_t i = 1; i <= a->n_entries; i++) {
        const struct tmk_block *one = &a->entries[i];
        if (!one->live)
            continue;
        const struct tmk_block *two = tmk_state_find(b, one->device, one->address);
        if (!two || !two->live || !is_same_block(a, one, b, two))
            return differs("the block with serial", one->serial, two ? two->serial : 0);
    }
    return NULL;
}

static bool is_same_row(const struct tmk_step_row *a, const struct tmk_step_row *b)
{
    return a->ordinal == b->ordinal && a->step == b->step && a->open == b->open &&
           a->device == b->device && a->start_ns == b->start_ns && a->end_ns == b->end_ns &&
           a->peak_bytes == b->peak_bytes && a->peak_ns == b->peak_ns &&
           a->end_bytes == b->end_bytes && a->n_allocs == b->n_allocs && a->n_frees == b->n_frees &&
           a->alloc_bytes == b->alloc_bytes && a->free_bytes == b->free_bytes &&
           a->has_reserved == b->has_reserved && a->peak_reserved_bytes == b->peak_reserved_bytes &&
           a->end_reserved_bytes == b->end_reserved_bytes;
}

static const char *compare_devices(const struct tmk_state *a, const struct tmk_state *b)
{
    if (a->n_devices != b->n_devices)
        return differs("devices", a->n_devices, b->n_devices);
    for (uint32_t i = 0; i < a->n_devices; i++) {
        const struct tmk_device_use *one = &a->devices[i], *two = &b->devices[i];
        if (one->device != two->device || one->allocated_bytes != two->allocated_bytes)
            return differs("allocated bytes", one->allocated_bytes, two->allocated_bytes);
        if (one->max_bytes != two->max_bytes)
            return differs("most bytes", one->max_bytes, two->max_bytes);
        if (one->has_reserved != two->has_reserved || one->reserved_bytes != two->reserved_bytes)
            return differs("reserved bytes", one->reserved_bytes, two->reserved_bytes);
        if (one->max_reserved_bytes != two->max_reserved_bytes)
            return differs("most reserved", one->max_reserved_bytes, two->max_reserved_bytes);
        struct tmk_step_row row = tmk_state_open_row(a, i), other = tmk_state_open_row(b, i);
        if (!is_same_row(&row, &other))
            return differs("the open step of device", one->device, two->device);
    }
    return NULL;
}

static const char *compare_ranges(const struct tmk_state *a, const struct tmk_state *b)
{
    uint32_t n = a->n_threads > b->n_threads ? a->n_threads : b->n_threads;
    for (uint32_t t = 0; t < n; t++) {
        uint32_t one = t < a->n_threads ? a->thread_top[t] : 0;
        uint32_t two = t < b->n_threads ? b->thread_top[t] : 0;
        for (; one && two; one = a->ranges[one - 1].outer, two = b->ranges[two - 1].outer) {
            const struct tmk_open_range *x = &a->ranges[one - 1], *y = &b->ranges[two - 1];
            if (x->start_ns != y->start_ns || x->name != y->name || x->kind != y->kind ||
                !is_same_context(a, x->context, b, y->context))
                return differs("an open range of thread", t, t);
        }
        if (one != two)
            return differs("depth of ranges of thread", t, t);
    }
    return NULL;
}

static const char *compare_totals(const struct tmk_state *a, const struct tmk_state *b)
{
    const struct {
        const char *what;
        uint64_t a, b;
    } totals[] = {
        {"events", a->n_events, b->n_events},
        {"allocations", a->n_allocs, b->n_allocs},
        {"frees", a->n_frees, b->n_frees},
        {"dropped", a->n_dropped, b->n_dropped},
        {"replaced", a->n_replaced, b->n_replaced},
        {"unknown frees", a->n_unknown_free, b->n_unknown_free},
        {"step rows", a->n_step_rows, b->n_step_rows},
        {"time", a->now_ns, b->now_ns},
        {"step", (uint64_t)a->step, (uint64_t)b->step},
        {"start of the step", a->step_start_ns, b->step_start_ns},
        {"module events", a->n_step_module_events, b->n_step_module_events},
    };
    for (size_t i = 0; i < TMK_N(totals); i++)
        if (totals[i].a != totals[i].b)
            return differs(totals[i].what, totals[i].a, totals[i].b);
    return NULL;
}

const char *kit_state_difference(struct tmk_state *a, struct tmk_state *b)
{
    const char *found = compare_totals(a, b);
    if (!found)
        found = compare_devices(a, b);
    if (!found)
        found = compare_blocks(a, b);
    return found ? found : compare_ranges(a, b);
}

static bool is_same_rare(const struct tmk_input *in, const struct tmk_event *ev)
{
    switch (in->kind) {
    case TMK_KIND_STEP:
        return (int64_t)in->a == ev->step;
    case TMK_KIND_MARK:
        return in->id == ev->name && in->text_bytes == ev->text_bytes &&
               (in->text_bytes == 0 || memcmp(in->text, ev->text, in->text_bytes) == 0);
    case TMK_KIND_OOM:
        return in->device == ev->device && in->a == ev->size_bytes && in->b == ev->capacity_bytes &&
               in->id == ev->stack && in->requested - 1 == ev->free_bytes;
    case TMK_KIND_HELD:
    case TMK_KIND_RELEASED:
        return in->device == ev->device && in->a == ev->address && in->b == ev->size_bytes;
    case TMK_KIND_RESERVED:
        return in->device == ev->device && in->a == ev->size_bytes;
    case TMK_KIND_DEVICE_END:
        return in->device == ev->device;
    case TMK_KIND_SEGMENT:
        if (in->b != ev->size_bytes || in->id != ev->stack)
            return false;
        __attribute__((fallthrough));
    case TMK_KIND_SEGMENT_END:
        return in->device == ev->device && in->stream == ev->segment_kind && in->a == ev->address;
    case TMK_KIND_SAMPLE:
        return in->id == ev->device && memcmp(in->text, &ev->sample, sizeof ev->sample) == 0;
    default:
        return in->a == ev->size_bytes;
    }
}

bool kit_is_same_event(const struct tmk_input *in, const struct tmk_event *ev)
{
    if (in->kind != ev->kind || in->ns != ev->time_ns || in->thread != ev->thread)
        return false;
    switch (in->kind) {
    case TMK_KIND_ALLOC:
        return in->device == ev->device && in->a == ev->address && in->b == ev->size_bytes &&
               in->id == ev->stack && in->stream == ev->stream &&
               in->requested == ev->requested_bytes;
    case TMK_KIND_FREE:
        return in->device == ev->device && in->a == ev->address;
    case TMK_KIND_TAG:
        return in->device == ev->device && in->a == ev->address && in->b == ev->category &&
               in->id == ev->name;
    case TMK_KIND_PUSH:
        return in->a == ev->range_kind && in->id == ev->name;
    case TMK_KIND_POP:
        return in->a == ev->range_kind;
    default:
        return is_same_rare(in, ev);
    }
}

/* ---- files ---- */

_Noreturn static void give_up(const char *what)
{
    perror(what);
    exit(99);
}

const char *kit_folder_make(void)
{
    static char folder[512];
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tidemark-test.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        give_up(folder);
    return folder;
}

void kit_folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir)
        give_up(folder);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    if (rmdir(folder) < 0)
        give_up(folder);
}

uint8_t *kit_file_read(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    struct stat st;
    if (!file || fstat(fileno(file), &st) < 0)
        give_up(path);
    size_t n = (size_t)st.st_size;
    uint8_t *bytes = malloc(n + 1);
    if (!bytes || fread(bytes, 1, n, file) != n)
        give_up(path);
    fclose(file);
    *ret_n = n;
    return bytes;
}

void kit_file_write(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0)
        give_up(path);
}

void kit_file_copy(const char *from, const char *to)
{
    size_t n;
    uint8_t *bytes = kit_file_read(from, &n);
    kit_file_write(to, bytes, n);
    free(bytes);
}
