/* SPDX-License-Identifier: MIT */
/* passes/diff/align.c - see align.h.
 *
 * A place is a chain of functions and the lines in them. The places of both sides are sorted by
 * chain; within a chain those with equal lines are one. Where the lines of the two sides differ,
 * the function may have been edited: then the cheapest way to match the two lists in order is
 * searched (the cost is the bytes that do not match). */
#include "passes/diff/align.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "kit/textmap.h"
#include "model/run.h"
#include "passes/diff/renamed_files.h"
#include "passes/group.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/state.h"

enum { MAX_FRAMES = 128, MAX_CELLS = 1 << 16 };

struct code_place {
    uint32_t chain; /* number of its text */
    uint32_t site;  /* likewise, of its innermost frame alone, with its line */
    uint32_t n_lines;
    const uint32_t *lines; /* innermost first */
    enum tmk_side side;
    uint32_t number; /* what tmk_align_stack returns; 0: not yet */
    uint64_t bytes, n_blocks;
};

struct tmk_align {
    struct tmk_arena memory;
    uint32_t *place_of[2]; /* by stack: place + 1; 0: not met */
    uint32_t n_stacks[2];
    struct code_place *places;
    uint64_t n_places, place_room;
    uint32_t n_numbers;
    struct tmk_renamed_files renamed;
    bool is_same_program; /* two moments of one process: no line has moved */
    bool unwraps;
};

/* ---- places ---- */

/* Write a frame without its line. Of a native frame only the library's file counts, not its
 * symbols. */
static void write_place_frame(FILE *out, const struct tmk_renamed_files *renamed,
                              const struct tmk_frame *f)
{
    const char *file = tmk_short_file(f->file ? f->file : "");
    if (renamed)
        file = tmk_renamed_file(renamed, file);
    if (f->address)
        fprintf(out, "%s+%llx\n", file, (unsigned long long)f->address);
    else
        fprintf(out, "%s %s\n", file, f->function ? f->function : "");
}

static uint32_t line_in_function(const struct tmk_frame *f)
{
    return f->first_line && f->line >= f->first_line ? f->line - f->first_line : f->line;
}

/* Write the chain of a stack, and its lines into `lines`. Returns how many lines there are. */
static uint32_t write_chain(FILE *out, const struct tmk_renamed_files *renamed,
                            const struct tmk_reader *r, const struct tmk_stack *stack,
                            bool user_only, uint32_t lines[MAX_FRAMES])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < stack->n_frames && n < MAX_FRAMES; i++) {
        struct tmk_frame f;
        if (!tmk_reader_frame(r, stack->frames[i], &f) || (user_only && !tmk_frame_is_users(&f)))
            continue;
        write_place_frame(out, renamed, &f);
        lines[n++] = line_in_function(&f);
    }
    return n;
}

static char *chain_text(const struct tmk_renamed_files *renamed, const struct tmk_reader *r,
                        const struct tmk_stack *stack, uint32_t lines[MAX_FRAMES], uint32_t *ret_n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    *ret_n = write_chain(out, renamed, r, stack, true, lines);
    if (*ret_n == 0)
        *ret_n = write_chain(out, renamed, r, stack, false, lines);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* The key that tells a place from others of its side: the chain's number and the lines. */
static const char *place_key(struct tmk_arena *memory, const struct code_place *place)
{
    char *key = tmk_arena_take(memory, 9 * (place->n_lines + 2));
    if (!key)
        return NULL;
    char *at = key + sprintf(key, "%x", (unsigned)place->chain);
    for (uint32_t i = 0; i < place->n_lines; i++)
        at += sprintf(at, " %x", (unsigned)place->lines[i]);
    return key;
}

/* Texts met so far while places are searched. */
struct place_index {
    struct tmk_textmap chains;  /* of both sides */
    struct tmk_textmap sites;   /* likewise */
    struct tmk_textmap keys[2]; /* of places */
    uint64_t first[2];          /* the place of a side's first key */
};

/* The place of a stack, which is made when new: its number + 1, or 0 without memory. Stacks that
 * differ only in frames that are not the user's share a place. */
static uint32_t place_of_stack(struct tmk_align *x, struct place_index *index, enum tmk_side side,
                               const struct tmk_reader *r, const struct tmk_stack *stack)
{
    struct code_place place = {.side = side};
    uint32_t lines[MAX_FRAMES], number;
    const struct tmk_renamed_files *renamed = side == TMK_SIDE_B ? &x->renamed : NULL;
    char *text = chain_text(renamed, r, stack, lines, &place.n_lines);
    char *chain = text ? tmk_arena_text(&x->memory, text, strlen(text)) : NULL;
    uint32_t *kept = tmk_arena_take(&x->memory, (place.n_lines + 1) * sizeof *kept);
    free(text);
    if (!chain || !kept || tmk_textmap_put(&index->chains, chain, &place.chain) < 0)
        return 0;
    memcpy(kept, lines, place.n_lines * sizeof *lines);
    place.lines = kept;
    const char *key = place_key(&x->memory, &place);
    const char *site = tmk_arena_format(&x->memory, "%.*s %u", (int)strcspn(chain, "\n"), chain,
                                        (unsigned)place.lines[0]);
    if (!key || !site || tmk_textmap_put(&index->keys[side], key, &number) < 0 ||
        tmk_textmap_put(&index->sites, site, &place.site) < 0)
        return 0;
    if (index->first[side] + number == x->n_places) {
        if (TMK_GROW(x->places, x->n_places + 1, x->place_room) < 0)
            return 0;
        x->places[x->n_places++] = place;
    }
    return (uint32_t)index->first[side] + number + 1;
}

static int find_peak_places(struct tmk_align *x, struct place_index *index, enum tmk_side side,
                            const struct tmk_peak *k)
{
    const struct tmk_reader *r = tmk_peak_labels(k)->p->reader;
    x->n_stacks[side] = tmk_reader_n_stacks(r) + 1;
    x->place_of[side] = calloc(x->n_stacks[side], sizeof *x->place_of[side]);
    if (!x->place_of[side])
        return TMK_ENOMEM;
    index->first[side] = x->n_places;
    for (uint64_t i = 0; i < tmk_peak_n_blocks(k); i++) {
        const struct tmk_block *b = tmk_peak_block(k, i);
        struct tmk_stack stack;
        if (b->stack >= x->n_stacks[side] || !tmk_reader_stack(r, b->stack, &stack) ||
            stack.n_frames == 0)
            continue;
        uint32_t *place = &x->place_of[side][b->stack];
        if (*place == 0 && (*place = place_of_stack(x, index, side, r, &stack)) == 0)
            return TMK_ENOMEM;
        x->places[*place - 1].bytes += b->size_bytes;
        x->places[*place - 1].n_blocks++;
    }
    return 0;
}

/* ---- matching ---- */

/* Compare in the order of the program: outermost lines first. */
static int compare_lines(const struct code_place *a, const struct code_place *b)
{
    if (a->n_lines != b->n_lines)
        return a->n_lines < b->n_lines ? -1 : 1;
    for (uint32_t i = a->n_lines; i > 0; i--)
        if (a->lines[i - 1] != b->lines[i - 1])
            return a->lines[i - 1] < b->lines[i - 1] ? -1 : 1;
    return 0;
}

static int by_place(const void *va, const void *vb)
{
    const struct code_place *a = *(struct code_place *const *)va,
                            *b = *(struct code_place *const *)vb;
    if (a->chain != b->chain)
        return a->chain < b->chain ? -1 : 1;
    if (a->side != b->side)
        return a->side < b->side ? -1 : 1;
    return compare_lines(a, b);
}

/* The places of one chain and side, sorted. */
struct place_list {
    struct code_place **items;
    uint32_t n;
};

static struct place_list take_list(struct code_place **from, uint64_t n, enum tmk_side side)
{
    struct place_list list = {.items = from};
    while (list.n < n && from[list.n]->chain == from[0]->chain && from[list.n]->side == side)
        list.n++;
    return list;
}

static void pair_places(struct tmk_align *x, struct code_place *a, struct code_place *b)
{
    a->number = b->number = ++x->n_numbers;
}

/* True when both have the same lines: then nothing has moved. */
static bool are_lists_equal(struct place_list a, struct place_list b)
{
    for (uint32_t i = 0; a.n == b.n && i < a.n; i++)
        if (compare_lines(a.items[i], b.items[i]) != 0)
            return false;
    return a.n == b.n;
}

static void pair_equal_places(struct tmk_align *x, struct place_list a, struct place_list b)
{
    for (uint32_t i = 0, j = 0; i < a.n && j < b.n;) {
        int order = compare_lines(a.items[i], b.items[j]);
        if (order == 0)
            pair_places(x, a.items[i], b.items[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

/* The cost of taking two places for the same: the bytes in which they differ, plus half of those
 * in which they do not, because a line must have moved; that is still less than the cost of two
 * separate places. Negative: they are not the same. */
static double pairing_cost(const struct code_place *a, const struct code_place *b)
{
    double difference = (double)a->bytes - (double)b->bytes;
    double cost = difference < 0 ? -difference : difference;
    if (compare_lines(a, b) == 0)
        return cost;
    bool is_alike = a->n_blocks == b->n_blocks || a->bytes == b->bytes;
    return is_alike ? cost + (double)(a->bytes < b->bytes ? a->bytes : b->bytes) / 2 + 1 : -1;
}

/* cost[i][j] is the cost of the first i places of a and the first j of b. */
static void fill_costs(struct place_list a, struct place_list b, double *cost)
{
    size_t width = b.n + 1;
    for (uint32_t i = 0; i <= a.n; i++)
        for (uint32_t j = 0; j <= b.n; j++) {
            double best = i || j ? 1e300 : 0;
            double together = i && j ? pairing_cost(a.items[i - 1], b.items[j - 1]) : -1;
            if (together >= 0)
                best = cost[(i - 1) * width + j - 1] + together;
            if (i && cost[(i - 1) * width + j] + (double)a.items[i - 1]->bytes + 1 < best)
                best = cost[(i - 1) * width + j] + (double)a.items[i - 1]->bytes + 1;
            if (j && cost[i * width + j - 1] + (double)b.items[j - 1]->bytes + 1 < best)
                best = cost[i * width + j - 1] + (double)b.items[j - 1]->bytes + 1;
            cost[i * width + j] = best;
        }
}

static void pair_cheapest_places(struct tmk_align *x, struct place_list a, struct place_list b,
                                 double *cost)
{
    size_t width = b.n + 1;
    fill_costs(a, b, cost);
    for (uint32_t i = a.n, j = b.n; i && j;) {
        double here = cost[i * width + j];
        double together = pairing_cost(a.items[i - 1], b.items[j - 1]);
        if (together >= 0 && cost[(i - 1) * width + j - 1] + together <= here)
            pair_places(x, a.items[--i], b.items[--j]);
        else if (cost[(i - 1) * width + j] + (double)a.items[i - 1]->bytes + 1 <= here)
            i--;
        else
            j--;
    }
}

static void match_lists(struct tmk_align *x, struct place_list a, struct place_list b, double *cost)
{
    bool is_large = (uint64_t)(a.n + 1) * (b.n + 1) > MAX_CELLS;
    if (x->is_same_program || is_large || are_lists_equal(a, b))
        pair_equal_places(x, a, b);
    else
        pair_cheapest_places(x, a, b, cost);
}

static void match_chains(struct tmk_align *x, struct code_place **sorted, double *cost)
{
    for (uint64_t i = 0; i < x->n_places;) {
        struct place_list a = take_list(sorted + i, x->n_places - i, TMK_SIDE_A);
        struct place_list b = {.items = sorted + i + a.n};
        if (i + a.n < x->n_places && b.items[0]->chain == sorted[i]->chain)
            b = take_list(b.items, x->n_places - i - a.n, TMK_SIDE_B);
        match_lists(x, a, b, cost);
        i += a.n + b.n;
    }
}

/* Match what is left of both sides by allocation site: the same line was called in another way
 * (through a wrapper, or again in backward). */
static void match_sites(struct tmk_align *x, uint32_t *number_of_site)
{
    for (uint64_t i = 0; i < x->n_places; i++) {
        struct code_place *p = &x->places[i];
        if (p->number)
            continue;
        if (number_of_site[p->site] == 0)
            number_of_site[p->site] = ++x->n_numbers;
        p->number = number_of_site[p->site];
    }
}

static int match_all_sites(struct tmk_align *x, uint64_t n_sites)
{
    struct code_place **sorted =                 /* an array of pointers */
        calloc(x->n_places + 1, sizeof *sorted); /* NOLINT(bugprone-sizeof-expression) */
    double *cost = malloc(MAX_CELLS * sizeof *cost);
    uint32_t *number_of_site = calloc(n_sites + 1, sizeof *number_of_site);
    int rc = sorted && cost && number_of_site ? 0 : TMK_ENOMEM;
    if (rc == 0 && x->n_places) {
        for (uint64_t i = 0; i < x->n_places; i++)
            sorted[i] = &x->places[i];
        qsort(sorted, x->n_places, sizeof *sorted, /* NOLINT(bugprone-sizeof-expression) */
              by_place);
        match_chains(x, sorted, cost);
        match_sites(x, number_of_site);
    }
    free(sorted);
    free(cost);
    free(number_of_site);
    return rc;
}

uint32_t tmk_align_stack(const struct tmk_align *x, enum tmk_side side, uint32_t stack)
{
    uint32_t place = stack < x->n_stacks[side] ? x->place_of[side][stack] : 0;
    return place ? x->places[place - 1].number : 0;
}

uint32_t tmk_align_n_stacks(const struct tmk_align *x)
{
    return x->n_numbers + 1;
}

/* ---- names ---- */

static bool is_path_word(const char *at, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(at, word, n) == 0;
}

/* True for a part of a name that a wrapper adds wherever it stands. */
static bool is_wrapper(const char *at, size_t n)
{
    static const char *const words[] = {"_orig_mod", "_fsdp_wrapped_module",
                                        "_checkpoint_wrapped_module", "base_layer"};
    for (size_t i = 0; i < TMK_N(words); i++)
        if (is_path_word(at, n, words[i]))
            return true;
    return false;
}

/* The bytes of the parts at `at` that a wrapper adds in front, including the dot after them; 0:
 * none. */
static size_t wrapper_in_front(const char *at)
{
    static const char *const words[] = {"module.", "base_model.model."};
    for (size_t i = 0; i < TMK_N(words); i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

void tmk_name_unwrap(const char *name, char *ret)
{
    char *to = ret;
    for (const char *at = name; *at;) {
        size_t skip = to == ret ? wrapper_in_front(at) : 0, n = strcspn(at, ".");
        if (skip == 0 && is_wrapper(at, n))
            skip = n + (at[n] == '.');
        if (skip) {
            at += skip;
            continue;
        }
        if (to != ret)
            *to++ = '.';
        memcpy(to, at, n);
        to += n;
        at += n + (at[n] == '.');
    }
    *to = '\0';
    if (to == ret) /* nothing but wrappers: the model itself */
        strcpy(ret, name);
}

static const char *unwrapped_name(struct tmk_align *x, const char *name)
{
    char *text = tmk_arena_take(&x->memory, strlen(name) + 1);
    if (text)
        tmk_name_unwrap(name, text);
    return text;
}

const char *tmk_align_name(struct tmk_align *x, const char *name)
{
    return name && x->unwraps ? unwrapped_name(x, name) : name;
}

bool tmk_align_unwraps(const struct tmk_align *x)
{
    return x->unwraps;
}

/* List the module names of a peak in `names`, as they are or unwrapped. Returns 0 or TMK_ENOMEM. */
static int list_names(struct tmk_align *x, struct tmk_peak *k, bool unwrap,
                      struct tmk_textmap *names, struct tmk_error *err)
{
    const struct tmk_peak_row *rows;
    uint64_t n;
    int rc = tmk_peak_group(k, TMK_BY_MODULE, &rows, &n, err);
    for (uint64_t i = 0; rc == 0 && i < n; i++) {
        const char *kept =
            rows[i].key ? tmk_arena_text(&x->memory, rows[i].key, strlen(rows[i].key)) : NULL;
        uint32_t number;
        if (kept && unwrap)
            kept = unwrapped_name(x, kept);
        if (rows[i].key)
            rc = kept ? tmk_textmap_put(names, kept, &number) : TMK_ENOMEM;
    }
    return rc;
}

/* Count the names that both have. */
static int count_common_names(struct tmk_align *x, struct tmk_peak *const peaks[2], bool unwrap,
                              uint64_t *ret, struct tmk_error *err)
{
    struct tmk_textmap names[2] = {{0}, {0}};
    uint32_t number;
    int rc = list_names(x, peaks[0], unwrap, &names[0], err);
    if (rc == 0)
        rc = list_names(x, peaks[1], unwrap, &names[1], err);
    *ret = 0;
    for (uint64_t i = 0; rc == 0 && i < names[0].n; i++)
        *ret += tmk_textmap_find(&names[1], names[0].texts[i], &number);
    tmk_textmap_fini(&names[0]);
    tmk_textmap_fini(&names[1]);
    return rc;
}

/* ---- opening and closing ---- */

static int align_places(struct tmk_align *x, struct tmk_peak *const peaks[2], struct tmk_error *err)
{
    struct place_index index = {0};
    uint64_t plain = 0, without = 0;
    x->is_same_program = tmk_peak_labels(peaks[0])->p == tmk_peak_labels(peaks[1])->p;
    int rc = tmk_renamed_files_find(peaks, &x->memory, &x->renamed);
    if (rc == 0)
        rc = find_peak_places(x, &index, TMK_SIDE_A, peaks[0]);
    if (rc == 0)
        rc = find_peak_places(x, &index, TMK_SIDE_B, peaks[1]);
    if (rc == 0)
        rc = match_all_sites(x, index.sites.n);
    tmk_textmap_fini(&index.chains);
    tmk_textmap_fini(&index.sites);
    tmk_textmap_fini(&index.keys[0]);
    tmk_textmap_fini(&index.keys[1]);
    if (rc < 0)
        return tmk_fail(err, rc, "no memory to compare the stacks");
    rc = count_common_names(x, peaks, false, &plain, err);
    if (rc == 0)
        rc = count_common_names(x, peaks, true, &without, err);
    x->unwraps = rc == 0 && without > plain;
    return rc < 0 ? tmk_fail(err, rc, "no memory to compare the modules' names") : 0;
}

int tmk_align_open(struct tmk_peak *const peaks[2], struct tmk_align **ret_align,
                   struct tmk_error *err)
{
    struct tmk_align *x = calloc(1, sizeof *x);
    if (!x)
        return tmk_fail(err, TMK_ENOMEM, "no memory to compare two runs");
    int rc = align_places(x, peaks, err);
    if (rc < 0)
        tmk_align_close(x);
    else
        *ret_align = x;
    return rc;
}

struct tmk_align *tmk_align_close(struct tmk_align *x)
{
    if (!x)
        return NULL;
    free(x->place_of[0]);
    free(x->place_of[1]);
    free(x->places);
    tmk_arena_fini(&x->memory);
    free(x);
    return NULL;
}
