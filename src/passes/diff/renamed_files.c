/* SPDX-License-Identifier: MIT */
/* passes/diff/renamed_files.c - see renamed_files.h. */
#include "passes/diff/renamed_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/textmap.h"
#include "model/run.h"
#include "trace/defs.h"
#include "trace/reader.h"

enum { MOST_FILES = 256 };

#define ALIKE 0.6 /* share of the functions of both that have the same name */

struct source_file {
    const char *name;
    struct tmk_textmap functions;
};

struct side_files {
    struct source_file files[MOST_FILES];
    uint32_t n;
    uint8_t *seen; /* by stack */
};

const char *tmk_short_file(const char *file)
{
    const char *packages = strstr(file, "-packages/"), *slash = strrchr(file, '/');
    if (packages)
        return packages + strlen("-packages/");
    return slash ? slash + 1 : file;
}

static struct source_file *find_source_file(struct side_files *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (strcmp(s->files[i].name, name) == 0)
            return &s->files[i];
    return NULL;
}

static int note_function(struct side_files *s, const struct tmk_frame *f, struct tmk_arena *memory)
{
    const char *name = tmk_short_file(f->file);
    struct source_file *file = find_source_file(s, name);
    uint32_t number;
    if (!file && s->n == MOST_FILES)
        return 0;
    if (!file) {
        file = &s->files[s->n++];
        file->name = tmk_arena_text(memory, name, strlen(name));
    }
    const char *function = tmk_arena_text(memory, f->function, strlen(f->function));
    return file->name && function && tmk_textmap_put(&file->functions, function, &number) >= 0
               ? 0
               : TMK_ENOMEM;
}

static int list_side_files(const struct tmk_peak *k, struct side_files *s, struct tmk_arena *memory)
{
    const struct tmk_reader *r = tmk_peak_labels(k)->p->reader;
    uint32_t n_stacks = tmk_reader_n_stacks(r) + 1;
    int rc = (s->seen = calloc(n_stacks, 1)) != NULL ? 0 : TMK_ENOMEM;
    for (uint64_t i = 0; i < tmk_peak_n_blocks(k) && rc == 0; i++) {
        uint32_t number = tmk_peak_block(k, i)->stack;
        struct tmk_stack stack;
        if (number >= n_stacks || s->seen[number] || !tmk_reader_stack(r, number, &stack))
            continue;
        s->seen[number] = 1;
        for (uint32_t j = 0; j < stack.n_frames && rc == 0; j++) {
            struct tmk_frame f;
            if (tmk_reader_frame(r, stack.frames[j], &f) && tmk_frame_is_users(&f) && f.file &&
                f.function && !f.address)
                rc = note_function(s, &f, memory);
        }
    }
    return rc;
}

/* The share of the functions that both have. */
static double likeness_of_files(const struct source_file *a, const struct source_file *b)
{
    uint64_t n_common = 0;
    uint32_t number;
    for (uint64_t i = 0; i < a->functions.n; i++)
        n_common += tmk_textmap_find(&b->functions, a->functions.texts[i], &number);
    uint64_t n_all = a->functions.n + b->functions.n - n_common;
    return n_all ? (double)n_common / (double)n_all : 0;
}

/* The file of `others` that is most like this one and has no partner in its own side. */
static const struct source_file *most_alike(const struct source_file *file,
                                            struct side_files *others, struct side_files *own)
{
    const struct source_file *best = NULL;
    double most = 0;
    for (uint32_t i = 0; i < others->n; i++) {
        double likeness = find_source_file(own, others->files[i].name)
                              ? 0
                              : likeness_of_files(file, &others->files[i]);
        if (likeness > most) {
            most = likeness;
            best = &others->files[i];
        }
    }
    return most >= ALIKE ? best : NULL;
}

static int match_renamed(struct side_files *a, struct side_files *b, struct tmk_arena *memory,
                         struct tmk_renamed_files *ret)
{
    ret->from = tmk_arena_take(memory, (b->n + 1) * sizeof *ret->from);
    ret->to = tmk_arena_take(memory, (b->n + 1) * sizeof *ret->to);
    if (!ret->from || !ret->to)
        return TMK_ENOMEM;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct source_file *file = &b->files[i];
        const struct source_file *other =
            find_source_file(a, file->name) ? NULL : most_alike(file, a, b);
        if (!other || most_alike(other, b, a) != file) /* each is the other's best */
            continue;
        ret->from[ret->n] = file->name;
        ret->to[ret->n++] = other->name;
    }
    return 0;
}

static void forget_side_files(struct side_files *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        tmk_textmap_fini(&s->files[i].functions);
    free(s->seen);
}

int tmk_renamed_files_find(struct tmk_peak *const peaks[2], struct tmk_arena *memory,
                           struct tmk_renamed_files *ret)
{
    struct side_files *sides = calloc(2, sizeof *sides);
    if (!sides)
        return TMK_ENOMEM;
    *ret = (struct tmk_renamed_files){0};
    int rc = list_side_files(peaks[0], &sides[0], memory);
    if (rc == 0)
        rc = list_side_files(peaks[1], &sides[1], memory);
    if (rc == 0)
        rc = match_renamed(&sides[0], &sides[1], memory, ret);
    forget_side_files(&sides[0]);
    forget_side_files(&sides[1]);
    free(sides);
    return rc;
}

const char *tmk_renamed_file(const struct tmk_renamed_files *r, const char *file)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(r->from[i], file) == 0)
            return r->to[i];
    return file;
}
