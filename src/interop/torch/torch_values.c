/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_values.c - see torch_reader.h.
 *
 * A word is looked up once for each text object of the pickle: a key that a million events share
 * is one object, and its tag is the word's number from then on. Frames and lists of frames also
 * have their numbers in their tags, and lists give up their content. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "interop/pickle/pickle.h"
#include "interop/pickle/pickle_value.h"
#include "interop/pickle/work_limit.h"
#include "interop/torch/torch_names.h"
#include "interop/torch/torch_reader.h"
#include "interop/torch/torch_snapshot.h"
#include "kit/grow.h"
#include "model/run.h"
#include "trace/layout.h"

/* Larger sizes and addresses belong to no device's memory. */
#define NUMBER_MAX (INT64_C(1) << 56)

/* Bytes of a text that are hashed, and streams that are compared, for one step. */
enum { HASHED_BYTES = 16, STREAMS_LOOKED_AT = 8 };

static const char *const words[] = {
#define X(name) [TMK_WORD_##name] = #name,
    TMK_IMPORT_WORDS(X)
#undef X
};

/* ---- values ---- */

enum tmk_import_word tmk_import_word_of(const struct tmk_pickle_value *v)
{
    if (v->kind != TMK_PICKLE_TEXT)
        return TMK_WORD_OTHER;
    if (v->object->tag == TMK_WORD_NOT_ASKED) {
        v->object->tag = TMK_WORD_OTHER;
        for (enum tmk_import_word w = TMK_WORD_NOT_ASKED + 1; w < TMK_WORD_OTHER; w++)
            if (strcmp(words[w], v->object->text) == 0)
                v->object->tag = w;
    }
    return (enum tmk_import_word)v->object->tag;
}

bool tmk_import_amount(const struct tmk_pickle_value *v, uint64_t *ret)
{
    if (v->kind != TMK_PICKLE_INT || v->number < 0 || v->number > NUMBER_MAX)
        return false;
    *ret = (uint64_t)v->number;
    return true;
}

static void count_text(struct tmk_import_reader *r, uint64_t bytes)
{
    tmk_work_take(&r->s->work, bytes / HASHED_BYTES);
}

uint32_t tmk_import_string(struct tmk_import_reader *r, const struct tmk_pickle_value *v)
{
    if (v->kind != TMK_PICKLE_TEXT || v->object->n == 0)
        return 0;
    count_text(r, v->object->n < TMK_STRING_MAX_BYTES ? v->object->n : TMK_STRING_MAX_BYTES);
    return tmk_names_string(&r->s->names, v->object->text, v->object->n);
}

/* ---- frames ---- */

static bool has_text_suffix(const char *text, size_t n, const char *suffix)
{
    size_t m = strlen(suffix);
    return n >= m && memcmp(text + n - m, suffix, m) == 0;
}

/* True for a C or C++ frame: torch writes "??", the library or the source's name, mostly without
 * a line. */
static bool is_native(const char *file, size_t n)
{
    static const char *const suffixes[] = {".c",  ".cc",  ".cpp", ".cxx", ".cu", ".h",
                                           ".hh", ".hpp", ".cuh", ".S",   ".so"};
    if (n == 0 || strcmp(file, "??") == 0 || strstr(file, ".so."))
        return true;
    for (size_t i = 0; i < TMK_N(suffixes); i++)
        if (has_text_suffix(file, n, suffixes[i]))
            return true;
    return false;
}

/* C++ frames get a file name that no Python file has, and that readers know (model/run.c). */
static uint32_t file_of_frame(struct tmk_import_reader *r, const struct tmk_pickle_object *file)
{
    const char *text = file ? file->text : "";
    size_t length = file ? file->n : 0;
    count_text(r, length);
    if (!is_native(text, length))
        return tmk_names_string(&r->s->names, text, length);
    char name[256];
    const char *slash = strrchr(text, '/');
    const char *base = slash ? slash + 1 : text;
    bool is_known = base[0] && strcmp(base, "??") != 0;
    int n = snprintf(name, sizeof name, TMK_CPP_FILE "%s%.200s>", is_known ? " " : "",
                     is_known ? base : "");
    return tmk_names_string(&r->s->names, name, (size_t)n);
}

static uint32_t frame_of(struct tmk_import_reader *r, struct tmk_pickle_object *dict)
{
    if (dict->tag)
        return dict->tag;
    const struct tmk_pickle_object *file = NULL;
    uint32_t function = 0;
    uint64_t line = 0;
    for (uint32_t i = 0; i + 1 < dict->n; i += 2) {
        const struct tmk_pickle_value *value = &dict->items[i + 1];
        enum tmk_import_word key = tmk_import_word_of(&dict->items[i]);
        if (key == TMK_WORD_filename && value->kind == TMK_PICKLE_TEXT)
            file = value->object;
        else if (key == TMK_WORD_name)
            function = tmk_import_string(r, value);
        else if (key == TMK_WORD_line && !tmk_import_amount(value, &line))
            line = 0;
    }
    dict->tag = tmk_names_frame(&r->s->names, file_of_frame(r, file), function,
                                line > INT32_MAX ? 0 : (uint32_t)line);
    return dict->tag;
}

/* The list's tag is the stack + 1: a stack may be empty. */
uint32_t tmk_import_stack(struct tmk_import_reader *r, const struct tmk_pickle_value *v)
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

uint16_t tmk_import_stream(struct tmk_import_reader *r, uint16_t device,
                           const struct tmk_pickle_value *v)
{
    struct tmk_import_snapshot *s = r->s;
    if (v->kind != TMK_PICKLE_INT || v->number == 0)
        return 0;
    uint64_t handle = (uint64_t)v->number;
    tmk_work_take(&s->work, s->n_streams / STREAMS_LOOKED_AT);
    for (uint64_t i = 0; i < s->n_streams; i++)
        if (s->streams[i].handle == handle && s->streams[i].device == device)
            return (uint16_t)(i + 1);
    if (s->n_streams == UINT16_MAX)
        return 0;
    if (TMK_GROW(s->streams, s->n_streams + 1, s->stream_room) < 0) {
        s->names.failed = true;
        return 0;
    }
    s->streams[s->n_streams++] = (struct tmk_import_stream){.handle = handle, .device = device};
    return (uint16_t)s->n_streams;
}
