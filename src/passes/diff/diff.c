/* SPDX-License-Identifier: MIT */
/* passes/diff/diff.c - see diff.h.
 *
 * Rows are those of the two peaks, joined by key. For the causes blocks become pieces
 * (diff_pieces.h), sorted so that those of one thing stand together: one walk compares them. */
#include "passes/diff/diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "passes/diff/diff_pieces.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/reader.h"

struct tmk_diff {
    struct tmk_arena memory;
    struct tmk_align *align;
    const struct tmk_reader *readers[2];
    struct tmk_diff_row *rows;
    uint64_t n_rows, row_room;
    struct tmk_diff_cause *causes;
    uint64_t n_causes, cause_room;
    struct tmk_pieces pieces;
    struct tmk_diff_split split;
    double attributed, unattributed; /* bytes of change, up or down */
};

/* ---- sums that stay within bounds, whatever a trace says ---- */

int64_t tmk_diff_change(uint64_t a, uint64_t b)
{
    uint64_t size = a > b ? a - b : b - a;
    int64_t held = size > INT64_MAX ? INT64_MAX : (int64_t)size;
    return a > b ? -held : held;
}

static void add_clamped(int64_t *sum, int64_t more)
{
    if (__builtin_add_overflow(*sum, more, sum))
        *sum = more < 0 ? INT64_MIN : INT64_MAX;
}

static void add_to_split(struct tmk_diff_split *sum, const struct tmk_diff_split *more)
{
    add_clamped(&sum->resized, more->resized);
    add_clamped(&sum->recounted, more->recounted);
    add_clamped(&sum->added, more->added);
    add_clamped(&sum->gone, more->gone);
}

/* ---- rows ---- */

static struct tmk_diff_row *add_diff_row(struct tmk_diff *d, const char *key)
{
    if (TMK_GROW(d->rows, d->n_rows + 1, d->row_room) < 0)
        return NULL;
    d->rows[d->n_rows] = (struct tmk_diff_row){.key = key};
    return &d->rows[d->n_rows++];
}

/* By stack, the number that both sides share decides; otherwise the text. */
struct row_index {
    struct tmk_textmap keys;
    uint32_t *by_stack; /* row + 1 */
};

static struct tmk_diff_row *stack_row(struct tmk_diff *d, struct row_index *index, uint32_t number,
                                      const char *key)
{
    struct tmk_diff_row *row =
        index->by_stack[number] ? &d->rows[index->by_stack[number] - 1] : add_diff_row(d, key);
    if (row)
        index->by_stack[number] = (uint32_t)(row - d->rows) + 1;
    return row;
}

static struct tmk_diff_row *text_row(struct tmk_diff *d, struct row_index *index, const char *key)
{
    uint32_t number;
    if (tmk_textmap_put(&index->keys, key, &number) < 0)
        return NULL;
    return number < d->n_rows ? &d->rows[number] : add_diff_row(d, key);
}

/* The peak's rows are borrowed until it is asked again, so texts are copied. */
static const char *keep_key(struct tmk_diff *d, enum tmk_by by, const char *key)
{
    const char *name =
        by == TMK_BY_MODULE || by == TMK_BY_TENSOR ? tmk_align_name(d->align, key) : key;
    return name ? tmk_arena_text(&d->memory, name, strlen(name)) : NULL;
}

static int add_side_rows(struct tmk_diff *d, struct row_index *index, enum tmk_by by,
                         enum tmk_side side, struct tmk_peak *k, struct tmk_error *err)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    int rc = tmk_peak_group(k, by, &rows, &n, err);
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        const char *key = keep_key(d, by, rows[i].key);
        struct tmk_diff_row *row = NULL;
        if (key || !rows[i].key)
            row = by == TMK_BY_STACK
                      ? stack_row(d, index, tmk_align_stack(d->align, side, rows[i].stack), key)
                      : text_row(d, index, key);
        if (!row)
            return TMK_ENOMEM;
        row->bytes[side] += rows[i].bytes;
        row->n_blocks[side] += rows[i].n_blocks;
        if (row->stack[side] == 0)
            row->stack[side] = rows[i].stack;
    }
    return rc;
}

static uint64_t size_of_change(const uint64_t bytes[2])
{
    return bytes[0] > bytes[1] ? bytes[0] - bytes[1] : bytes[1] - bytes[0];
}

static int compare_known_texts(const char *a, const char *b)
{
    if (!a || !b)
        return (a == NULL) - (b == NULL);
    return strcmp(a, b);
}

/* Order by change, largest first; then by size; then by key, unknown last. */
static int compare_changes(const void *va, const void *vb)
{
    const struct tmk_diff_row *a = va, *b = vb;
    uint64_t change_a = size_of_change(a->bytes), change_b = size_of_change(b->bytes);
    if (change_a != change_b)
        return change_a > change_b ? -1 : 1;
    if (a->bytes[1] != b->bytes[1])
        return a->bytes[1] > b->bytes[1] ? -1 : 1;
    return compare_known_texts(a->key, b->key);
}

static int make_diff_rows(struct tmk_diff *d, struct tmk_peak *const peaks[2], enum tmk_by by,
                          struct tmk_error *err)
{
    struct row_index index = {0};
    index.by_stack = calloc(tmk_align_n_stacks(d->align), sizeof *index.by_stack);
    int rc = index.by_stack ? 0 : TMK_ENOMEM;
    for (enum tmk_side side = TMK_SIDE_A; rc == 0 && side <= TMK_SIDE_B; side++)
        rc = add_side_rows(d, &index, by, side, peaks[side], err);
    if (rc == 0 && d->n_rows)
        qsort(d->rows, d->n_rows, sizeof *d->rows, compare_changes);
    tmk_textmap_fini(&index.keys);
    free(index.by_stack);
    return rc;
}

/* ---- things and causes ---- */

/* The pieces of one thing: those of A, then those of B, each from the largest down. */
struct thing {
    const struct tmk_piece *pieces[2];
    uint64_t n[2];
    uint64_t bytes[2];
    struct tmk_diff_split split;
    uint64_t n_resized;
    double least_factor, most_factor;
};

static struct thing take_thing(const struct tmk_piece *from, const struct tmk_piece *end)
{
    struct thing t = {.pieces = {from, from}, .least_factor = 1e300};
    for (const struct tmk_piece *at = from; at != end && tmk_pieces_are_one(at, from); at++) {
        t.n[at->side]++;
        t.bytes[at->side] += at->size_bytes;
    }
    t.pieces[1] = from + t.n[0];
    return t;
}

static void resize_pairs(struct thing *t, uint64_t a, uint64_t b)
{
    double factor = a ? (double)b / (double)a : 0;
    add_clamped(&t->split.resized, tmk_diff_change(a, b));
    t->n_resized++;
    t->least_factor = factor < t->least_factor ? factor : t->least_factor;
    t->most_factor = factor > t->most_factor ? factor : t->most_factor;
}

/* Find the next size of a side that the other has not as well; equal ones are passed over. */
static bool next_odd_size(const struct thing *t, uint64_t at[2], enum tmk_side side, uint64_t *ret)
{
    enum tmk_side other = side == TMK_SIDE_A ? TMK_SIDE_B : TMK_SIDE_A;
    while (at[side] < t->n[side]) {
        uint64_t size = t->pieces[side][at[side]].size_bytes;
        while (at[other] < t->n[other] && t->pieces[other][at[other]].size_bytes > size)
            at[other]++;
        at[side]++;
        if (at[other] < t->n[other] && t->pieces[other][at[other]].size_bytes == size) {
            at[other]++;
            continue;
        }
        *ret = size;
        return true;
    }
    return false;
}

static void compare_thing(struct thing *t)
{
    if (t->n[0] == 0 || t->n[1] == 0) {
        t->split.added = tmk_diff_change(0, t->bytes[1]);
        t->split.gone = tmk_diff_change(t->bytes[0], 0);
        return;
    }
    uint64_t at_a[2] = {0}, at_b[2] = {0}, a = 0, b = 0;
    for (;;) {
        bool has_a = next_odd_size(t, at_a, TMK_SIDE_A, &a),
             has_b = next_odd_size(t, at_b, TMK_SIDE_B, &b);
        if (!has_a && !has_b)
            return;
        if (has_a && has_b)
            resize_pairs(t, a, b);
        else
            add_clamped(&t->split.recounted, has_a ? tmk_diff_change(a, 0) : tmk_diff_change(0, b));
    }
}

/* True when the stack leads to a line of code. A thread's name alone does not. */
static bool has_line(const struct tmk_reader *r, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(r, stack, &frames))
        return false;
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (tmk_reader_frame(r, frames.frames[i], &f) && (f.line || f.address))
            return true;
    return false;
}

/* The cause that a thing is part of, which is made when new; NULL without memory. */
static struct tmk_diff_cause *cause_of_thing(struct tmk_diff *d, struct tmk_textmap *keys,
                                             const struct thing *t)
{
    const struct tmk_piece *piece = t->pieces[0]; /* B's stand behind A's */
    const char *owner = d->pieces.texts.texts[piece->owner];
    const char *pattern = owner ? tmk_name_pattern(&d->memory, owner) : NULL;
    const char *key =
        owner ? tmk_arena_format(&d->memory, "%u %s", piece->category, pattern ? pattern : "")
              : tmk_arena_format(&d->memory, "%u\n%u", piece->category, piece->stack);
    uint32_t number;
    if ((owner && !pattern) || !key || tmk_textmap_put(keys, key, &number) < 0)
        return NULL;
    if (number == d->n_causes) {
        if (TMK_GROW(d->causes, d->n_causes + 1, d->cause_room) < 0)
            return NULL;
        d->causes[d->n_causes++] = (struct tmk_diff_cause){
            .category = piece->category,
            .owner = owner,
            .least_factor = 1e300,
            .is_attributed = owner || has_line(d->readers[piece->side], piece->own_stack)};
    }
    struct tmk_diff_cause *c = &d->causes[number];
    for (uint64_t i = 0; owner && i < t->n[0] + t->n[1]; i++)
        if (strcmp(d->pieces.texts.texts[piece[i].owner], c->owner) != 0)
            c->owner = pattern; /* more than one module: what they have in common */
    return c;
}

static void add_thing(struct tmk_diff_cause *c, const struct thing *t, uint64_t *largest)
{
    uint64_t change = size_of_change(t->bytes);
    if (change > *largest || c->stack == 0) {
        enum tmk_side side = t->n[1] ? TMK_SIDE_B : TMK_SIDE_A;
        *largest = change;
        c->stack = t->pieces[side]->own_stack;
        c->stack_side = side;
    }
    for (unsigned side = 0; side < 2; side++) {
        c->bytes[side] += t->bytes[side];
        c->n_blocks[side] += t->n[side];
    }
    add_to_split(&c->split, &t->split);
    c->n_resized += t->n_resized;
    c->least_factor = t->least_factor < c->least_factor ? t->least_factor : c->least_factor;
    c->most_factor = t->most_factor > c->most_factor ? t->most_factor : c->most_factor;
}

/* Count the parameters that optimizer state belongs to, each once per cause and side. */
static int count_parameters(struct tmk_diff *d, struct tmk_textmap *keys, uint64_t cause,
                            const struct thing *t)
{
    for (uint64_t i = 0; i < t->n[0] + t->n[1]; i++) {
        const struct tmk_piece *piece = &t->pieces[0][i];
        uint64_t n_before = keys->n;
        uint32_t number;
        if (piece->parameter == 0)
            return 0;
        const char *key = tmk_arena_format(&d->memory, "%llu/%u/%u", (unsigned long long)cause,
                                           piece->side, piece->parameter);
        if (!key || tmk_textmap_put(keys, key, &number) < 0)
            return TMK_ENOMEM;
        d->causes[cause].n_parameters[piece->side] += keys->n > n_before;
    }
    return 0;
}

static int by_cause(const void *va, const void *vb)
{
    const struct tmk_diff_cause *a = va, *b = vb;
    uint64_t change_a = size_of_change(a->bytes), change_b = size_of_change(b->bytes);
    if (change_a != change_b)
        return change_a > change_b ? -1 : 1;
    if (a->category != b->category)
        return a->category < b->category ? -1 : 1;
    return compare_known_texts(a->owner, b->owner);
}

static int compare_things(struct tmk_diff *d, struct tmk_textmap *keys,
                          struct tmk_textmap *parameters, uint64_t *largest)
{
    const struct tmk_piece *at = d->pieces.items, *end = d->pieces.items + d->pieces.n;
    while (at != end) {
        struct thing t = take_thing(at, end);
        compare_thing(&t);
        struct tmk_diff_cause *c = cause_of_thing(d, keys, &t);
        if (!c || count_parameters(d, parameters, (uint64_t)(c - d->causes), &t) < 0)
            return TMK_ENOMEM;
        add_thing(c, &t, &largest[c - d->causes]);
        add_to_split(&d->split, &t.split);
        *(c->is_attributed ? &d->attributed : &d->unattributed) += (double)size_of_change(t.bytes);
        at += t.n[0] + t.n[1];
    }
    return 0;
}

static int find_causes(struct tmk_diff *d, struct tmk_peak *const peaks[2])
{
    struct tmk_textmap keys = {0}, parameters = {0};
    for (unsigned side = 0; side < 2; side++)
        d->readers[side] = tmk_peak_labels(peaks[side])->p->reader;
    int rc = tmk_pieces_add(&d->pieces, d->align, TMK_SIDE_A, peaks[0]);
    if (rc == 0)
        rc = tmk_pieces_add(&d->pieces, d->align, TMK_SIDE_B, peaks[1]);
    tmk_pieces_sort(&d->pieces);
    uint64_t *largest =
        calloc(d->pieces.n + 1, sizeof *largest); /* by cause: the bytes of its largest thing */
    if (rc == 0)
        rc = largest ? compare_things(d, &keys, &parameters, largest) : TMK_ENOMEM;
    if (rc == 0 && d->n_causes)
        qsort(d->causes, d->n_causes, sizeof *d->causes, by_cause);
    tmk_textmap_fini(&keys);
    tmk_textmap_fini(&parameters);
    free(largest);
    return rc;
}

/* ---- asking ---- */

uint64_t tmk_diff_n_rows(const struct tmk_diff *d)
{
    return d->n_rows;
}

const struct tmk_diff_row *tmk_diff_row(const struct tmk_diff *d, uint64_t i)
{
    return &d->rows[i];
}

uint64_t tmk_diff_n_causes(const struct tmk_diff *d)
{
    return d->n_causes;
}

const struct tmk_diff_cause *tmk_diff_cause(const struct tmk_diff *d, uint64_t i)
{
    return &d->causes[i];
}

uint64_t tmk_diff_bytes(const struct tmk_diff *d, enum tmk_side side)
{
    return d->pieces.bytes[side];
}

struct tmk_diff_split tmk_diff_split(const struct tmk_diff *d)
{
    return d->split;
}

double tmk_diff_attributed(const struct tmk_diff *d, uint64_t others)
{
    double all = d->attributed + d->unattributed + (double)others;
    return all > 0 ? d->attributed / all : 1;
}

bool tmk_diff_unwraps(const struct tmk_diff *d)
{
    return tmk_align_unwraps(d->align);
}

/* ---- opening and closing ---- */

int tmk_diff_open(struct tmk_peak *const peaks[2], enum tmk_by by, struct tmk_diff **ret_diff,
                  struct tmk_error *err)
{
    struct tmk_diff *d = calloc(1, sizeof *d);
    int rc = d ? tmk_align_open(peaks, &d->align, err) : TMK_ENOMEM;
    if (rc == 0)
        rc = make_diff_rows(d, peaks, by, err);
    if (rc == 0)
        rc = find_causes(d, peaks);
    if (rc < 0) {
        tmk_diff_close(d);
        return tmk_fail(err, rc, "no memory to compare two runs");
    }
    *ret_diff = d;
    return 0;
}

struct tmk_diff *tmk_diff_close(struct tmk_diff *d)
{
    if (!d)
        return NULL;
    tmk_align_close(d->align);
    tmk_pieces_fini(&d->pieces);
    tmk_arena_fini(&d->memory);
    free(d->rows);
    free(d->causes);
    free(d);
    return NULL;
}
