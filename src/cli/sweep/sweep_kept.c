/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_kept.c - see sweep_kept.h.
 *
 * Rows are read completely before anything is written: the file may have been edited or damaged,
 * and a foreign row must not become one with zeros in it. */
#include "cli/sweep/sweep_kept.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/answers/answer_json.h"
#include "kit/amount.h"
#include "kit/grow.h"
#include "kit/json_in.h"
#include "passes/group.h"

struct kept_rows {
    bool are_known; /* else they are null, or missing */
    struct tmk_peak_row *all;
    uint64_t n, room;
};

struct tmk_kept_cell {
    uint64_t number, peak;
    struct kept_rows modules, lines;
};

/* ---- rows ---- */

static const char *kept_text_or_null(struct tmk_json_in *j)
{
    if (tmk_json_in_peek(j) != 'n')
        return tmk_json_in_text(j);
    tmk_json_in_skip(j);
    return NULL;
}

/* Read a row exactly as we write it: a key and two whole numbers, each once. */
static bool read_kept_row(struct tmk_json_in *j, struct tmk_peak_row *ret)
{
    enum { KEY = 1, BYTES = 2, BLOCKS = 4 };
    unsigned seen = 0, n = 0;
    const char *key;
    tmk_json_in_object(j);
    for (; (key = tmk_json_in_key(j)); n++)
        if (strcmp(key, "key") == 0) {
            ret->key = kept_text_or_null(j);
            seen |= KEY;
        } else if (strcmp(key, "bytes") == 0) {
            ret->bytes = tmk_json_in_u64(j);
            seen |= BYTES;
        } else if (strcmp(key, "blocks") == 0) {
            ret->n_blocks = tmk_json_in_u64(j);
            seen |= BLOCKS;
        } else {
            tmk_json_in_skip(j);
        }
    return !j->problem && n == 3 && seen == (KEY | BYTES | BLOCKS);
}

/* Read the next value, and skip it in any case. False: it is neither null nor rows, or rows came
 * before. */
static bool read_kept_rows(struct tmk_json_in *from, struct kept_rows *ret)
{
    struct tmk_json_in j;
    char first = tmk_json_in_peek(from);
    const char *start = from->at;
    tmk_json_in_skip(from);
    if (from->problem || ret->are_known || first != '[')
        return first == 'n' && !ret->are_known;
    tmk_json_in_init(&j, start, (size_t)(from->at - start), from->texts);
    tmk_json_in_array(&j);
    while (tmk_json_in_item(&j)) {
        if (TMK_GROW(ret->all, ret->n + 1, ret->room) < 0)
            return false;
        if (!read_kept_row(&j, &ret->all[ret->n++]))
            return false;
    }
    ret->are_known = !j.problem;
    return ret->are_known;
}

/* ---- cells ---- */

static uint64_t number_or_unknown(struct tmk_json_in *j)
{
    char c = tmk_json_in_peek(j);
    if (c >= '0' && c <= '9')
        return tmk_json_in_u64(j);
    tmk_json_in_skip(j);
    return TMK_BYTES_UNKNOWN;
}

/* Read a cell; false: something in it is not as we write it. */
static bool read_cell(struct tmk_json_in *j, struct tmk_kept_cell *ret)
{
    bool good = true;
    const char *key;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "number") == 0)
            ret->number = number_or_unknown(j);
        else if (strcmp(key, "peak_allocated") == 0)
            ret->peak = number_or_unknown(j);
        else if (strcmp(key, "modules") == 0)
            good = read_kept_rows(j, &ret->modules) && good;
        else if (strcmp(key, "lines") == 0)
            good = read_kept_rows(j, &ret->lines) && good;
        else
            tmk_json_in_skip(j);
    return good && !j->problem;
}

static void fini_cell(struct tmk_kept_cell *c)
{
    free(c->modules.all);
    free(c->lines.all);
}

static void keep_cell(struct tmk_sweep_kept *k, struct tmk_json_in *j)
{
    struct tmk_kept_cell c = {.peak = TMK_BYTES_UNKNOWN};
    if (!read_cell(j, &c) || TMK_GROW(k->cells, k->n + 1, k->room) < 0) {
        fini_cell(&c);
        return;
    }
    k->cells[k->n++] = c;
}

static void forget_cells(struct tmk_sweep_kept *k)
{
    while (k->n > 0)
        fini_cell(&k->cells[--k->n]);
}

static void read_cells(struct tmk_sweep_kept *k, const char *bytes, size_t n)
{
    struct tmk_json_in j;
    const char *key;
    tmk_json_in_init(&j, bytes, n, &k->arena);
    tmk_json_in_object(&j);
    while ((key = tmk_json_in_key(&j)))
        if (strcmp(key, "results") == 0) {
            tmk_json_in_array(&j);
            while (tmk_json_in_item(&j))
                keep_cell(k, &j);
        } else {
            tmk_json_in_skip(&j);
        }
    tmk_json_in_end(&j);
    if (j.problem)
        forget_cells(k); /* not as we write it: nothing in the file is trusted */
}

/* Open a regular file only: reading a FIFO of that name would never end. */
static FILE *open_regular_file(const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *in = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!in && fd >= 0)
        close(fd);
    return in;
}

void tmk_sweep_kept_read(struct tmk_sweep_kept *k, const char *path)
{
    *k = (struct tmk_sweep_kept){0};
    FILE *in = open_regular_file(path);
    char *bytes = NULL;
    size_t room = 0;
    if (!in)
        return;
    ssize_t n = getdelim(&bytes, &room, '\0', in);
    fclose(in);
    if (n > 0)
        read_cells(k, bytes, (size_t)n);
    free(bytes);
}

void tmk_sweep_kept_fini(struct tmk_sweep_kept *k)
{
    forget_cells(k);
    free(k->cells);
    tmk_arena_fini(&k->arena);
}

/* ---- writing ---- */

static const struct kept_rows *find_rows(const struct tmk_sweep_kept *k, const char *key,
                                         uint32_t number, uint64_t peak)
{
    for (uint64_t i = 0; i < k->n && peak != TMK_BYTES_UNKNOWN; i++) {
        const struct tmk_kept_cell *c = &k->cells[i];
        const struct kept_rows *rows = strcmp(key, "modules") == 0 ? &c->modules : &c->lines;
        if (c->number == number && c->peak == peak && rows->are_known)
            return rows;
    }
    return NULL;
}

void tmk_sweep_kept_put(const struct tmk_sweep_kept *k, struct tmk_tree *t, const char *key,
                        uint32_t number, uint64_t peak)
{
    const struct kept_rows *rows = find_rows(k, key, number, peak);
    if (rows)
        tmk_answer_put_rows(t, key, rows->all, rows->n, rows->n);
    else
        tmk_tree_unknown(t, key);
}
