/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_entries.c - see torch_entries.h. */
#include "interop/torch/torch_entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "interop/out/out.h"
#include "kit/grow.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/reader.h"

static const char *const words[] = {
#define X(word) #word,
    TMK_TORCH_WORDS(X)
#undef X
};

/* ---- the file ---- */

/* Write all words as a list of their own: that is the only way to have them in the memo before
 * they are needed, and a category must have a known number to be changed. */
static void write_word_list(struct tmk_torch_file *f)
{
    struct tmk_pickler *k = &f->pickle;
    tmk_pickler_list(k);
    tmk_pickler_mark(k);
    for (unsigned i = 0; i < TMK_N_TORCH_WORDS; i++) {
        tmk_pickler_text(k, words[i]);
        f->words[i] = tmk_pickler_keep(k);
    }
    for (unsigned i = 0; i < TMK_N_CATEGORIES; i++) {
        tmk_pickler_text(k, tmk_category_name((uint8_t)i));
        f->categories[i] = tmk_pickler_keep(k);
    }
    tmk_pickler_append_items(k);
}

static void write_origin(struct tmk_torch_file *f)
{
    struct tmk_pickler *k = &f->pickle;
    tmk_torch_begin_item(f, "tidemark");
    tmk_pickler_dict(k);
    tmk_pickler_mark(k);
    tmk_pickler_text(k, "version");
    tmk_pickler_text(k, TMK_VERSION);
    tmk_pickler_text(k, "pid");
    tmk_pickler_u64(k, f->p->pid);
    tmk_pickler_text(k, "rank");
    if (f->p->rank >= 0)
        tmk_pickler_int(k, f->p->rank);
    else
        tmk_pickler_text(k, NULL);
    tmk_pickler_text(k, "command");
    tmk_pickler_text(k, f->p->command);
    tmk_pickler_text(k, "words");
    write_word_list(f);
    tmk_pickler_set_items(k);
    tmk_torch_end_item(f);
}

int tmk_torch_file_init(struct tmk_torch_file *f, const struct tmk_process *p, int fd)
{
    *f = (struct tmk_torch_file){.p = p};
    f->stacks = calloc((size_t)tmk_reader_n_stacks(p->reader) + 1, sizeof *f->stacks);
    f->frames = calloc((size_t)tmk_reader_n_frames(p->reader) + 1, sizeof *f->frames);
    f->strings = calloc((size_t)tmk_reader_n_strings(p->reader) + 1, sizeof *f->strings);
    if (!f->stacks || !f->frames || !f->strings || tmk_out_init(&f->out, fd) < 0)
        return TMK_ENOMEM;
    tmk_pickler_begin(&f->pickle, &f->out);
    tmk_pickler_dict(&f->pickle);
    write_origin(f);
    return 0;
}

void tmk_torch_file_fini(struct tmk_torch_file *f)
{
    free(f->stacks);
    free(f->frames);
    free(f->strings);
    free(f->contexts);
    tmk_out_fini(&f->out);
}

int tmk_torch_file_finish(struct tmk_torch_file *f, struct tmk_error *err)
{
    if (f->failed)
        return tmk_fail(err, TMK_ENOMEM, "no memory to write the snapshot");
    tmk_pickler_end(&f->pickle);
    return tmk_out_finish(&f->out, err);
}

/* ---- dicts and lists ---- */

void tmk_torch_begin_item(struct tmk_torch_file *f, const char *key)
{
    tmk_pickler_mark(&f->pickle);
    tmk_pickler_text(&f->pickle, key);
}

void tmk_torch_end_item(struct tmk_torch_file *f)
{
    tmk_pickler_set_items(&f->pickle);
}

void tmk_torch_begin_list(struct tmk_torch_file *f)
{
    tmk_pickler_list(&f->pickle);
    f->n_in_portion = 0;
}

void tmk_torch_next(struct tmk_torch_file *f)
{
    if (f->n_in_portion == TMK_PICKLER_PORTION)
        tmk_torch_end_list(f);
    if (f->n_in_portion++ == 0)
        tmk_pickler_mark(&f->pickle);
    f->n_entries++;
}

void tmk_torch_end_list(struct tmk_torch_file *f)
{
    if (f->n_in_portion > 0)
        tmk_pickler_append_items(&f->pickle);
    f->n_in_portion = 0;
}

void tmk_torch_begin_dict(struct tmk_torch_file *f)
{
    tmk_pickler_dict(&f->pickle);
    tmk_pickler_mark(&f->pickle);
}

void tmk_torch_end_dict(struct tmk_torch_file *f)
{
    tmk_pickler_set_items(&f->pickle);
}

/* ---- pairs ---- */

void tmk_torch_word(struct tmk_torch_file *f, enum tmk_torch_word word)
{
    tmk_pickler_get(&f->pickle, f->words[word]);
}

void tmk_torch_pair(struct tmk_torch_file *f, enum tmk_torch_word key, enum tmk_torch_word value)
{
    tmk_torch_word(f, key);
    tmk_torch_word(f, value);
}

void tmk_torch_number(struct tmk_torch_file *f, enum tmk_torch_word key, uint64_t value)
{
    tmk_torch_word(f, key);
    tmk_pickler_u64(&f->pickle, value);
}

void tmk_torch_time(struct tmk_torch_file *f, uint64_t trace_ns)
{
    tmk_torch_number(f, TMK_WORD_time_us, (f->p->start_realtime_ns + trace_ns) / 1000);
}

/* C++ frames of imported runs (TMK_CPP_FILE) get back their original file. */
static void write_frame_file(struct tmk_torch_file *f, const char *file)
{
    char inner[TMK_STRING_MAX_BYTES + 1];
    size_t n = sizeof TMK_CPP_FILE - 1, length = file ? strlen(file) : 0;
    bool is_cpp = file && strncmp(file, TMK_CPP_FILE, n) == 0 && length <= sizeof inner;
    if (is_cpp && file[n] == ' ') {
        snprintf(inner, sizeof inner, "%.*s", (int)(length - n - 2), file + n + 1);
        file = inner;
    } else if (is_cpp || length == 0) {
        file = "??";
    }
    tmk_torch_word(f, TMK_WORD_filename);
    tmk_pickler_text(&f->pickle, file);
}

/* True for the frame that an import puts under a segment's stack to name its owner. */
static bool is_import_frame(const struct tmk_torch_file *f, uint32_t frame)
{
    struct tmk_native native;
    return tmk_reader_native(f->p->reader, frame, &native) && native.address == 1 &&
           native.build_id_bytes == 0 && native.path && !strchr(native.path, '/');
}

static void write_torch_frame(struct tmk_torch_file *f, uint32_t id)
{
    bool is_kept = id < tmk_reader_n_frames(f->p->reader);
    if (is_kept && f->frames[id]) {
        tmk_pickler_get(&f->pickle, f->frames[id] - 1);
        return;
    }
    char text[TMK_FRAME_TEXT_BYTES];
    struct tmk_frame frame = {0};
    bool is_known = tmk_process_frame(f->p, id, &frame);
    tmk_torch_begin_dict(f);
    write_frame_file(f, frame.file);
    tmk_torch_number(f, TMK_WORD_line, frame.line);
    tmk_torch_word(f, TMK_WORD_name);
    tmk_pickler_text(&f->pickle, frame.function
                                     ? frame.function
                                     : tmk_frame_text(is_known ? &frame : NULL, true, text));
    tmk_torch_end_dict(f);
    if (is_kept)
        f->frames[id] = tmk_pickler_keep(&f->pickle) + 1;
}

void tmk_torch_frames(struct tmk_torch_file *f, uint32_t stack)
{
    struct tmk_stack frames;
    bool is_known = tmk_reader_stack(f->p->reader, stack, &frames);
    tmk_torch_word(f, TMK_WORD_frames);
    if (is_known && f->stacks[stack]) {
        tmk_pickler_get(&f->pickle, f->stacks[stack] - 1);
        return;
    }
    tmk_pickler_list(&f->pickle);
    if (!is_known)
        return;
    tmk_pickler_mark(&f->pickle);
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (!is_import_frame(f, frames.frames[i]))
            write_torch_frame(f, frames.frames[i]);
    tmk_pickler_append_items(&f->pickle);
    f->stacks[stack] = tmk_pickler_keep(&f->pickle) + 1;
}

/* The memo number + 1 of a context's text; 0: it has none yet. */
static uint32_t *context_memo(struct tmk_torch_file *f, uint32_t context)
{
    uint64_t old = f->context_room;
    if (TMK_GROW(f->contexts, (uint64_t)context + 1, f->context_room) < 0) {
        f->failed = true;
        return NULL;
    }
    memset(f->contexts + old, 0, (size_t)(f->context_room - old) * sizeof *f->contexts);
    return &f->contexts[context];
}

void tmk_torch_context(struct tmk_torch_file *f, const struct tmk_state *s, uint32_t context)
{
    char text[2 * TMK_STRING_MAX_BYTES + 16];
    const char *module = context ? tmk_context_module(f->p, s, context) : NULL;
    const char *stage = context ? tmk_context_stage(f->p, s, context) : NULL;
    uint32_t *memo = module || stage ? context_memo(f, context) : NULL;
    if (!memo)
        return;
    tmk_torch_word(f, TMK_WORD_user_metadata);
    if (*memo) {
        tmk_pickler_get(&f->pickle, *memo - 1);
        return;
    }
    snprintf(text, sizeof text, "%s%s%s", stage ? stage : "", stage && module ? ", " : "",
             module ? module : "");
    tmk_pickler_text(&f->pickle, text);
    *memo = tmk_pickler_keep(&f->pickle) + 1;
}

uint64_t tmk_torch_category(struct tmk_torch_file *f, uint8_t category)
{
    tmk_torch_word(f, TMK_WORD_category);
    return tmk_pickler_get_changeable(
        &f->pickle, f->categories[category < TMK_N_CATEGORIES ? category : TIDEMARK_UNKNOWN]);
}

void tmk_torch_change_category(struct tmk_torch_file *f, uint64_t place, uint8_t category)
{
    uint32_t number = f->categories[category < TMK_N_CATEGORIES ? category : TIDEMARK_UNKNOWN];
    tmk_out_change(&f->out, place, (uint8_t)number);
}

void tmk_torch_string(struct tmk_torch_file *f, uint32_t string)
{
    const char *text = tmk_reader_string(f->p->reader, string);
    if (text && f->strings[string]) {
        tmk_pickler_get(&f->pickle, f->strings[string] - 1);
        return;
    }
    tmk_pickler_text(&f->pickle, text ? text : "?");
    if (text)
        f->strings[string] = tmk_pickler_keep(&f->pickle) + 1;
}
