/* SPDX-License-Identifier: MIT */
/* sweep/results_in.c - read the journal of a sweep: see results.h.
 *
 * The first line must be good. Another line that does not parse, or is about a cell outside the
 * grid, is counted and skipped; its cell is then tried again. Of two lines about one cell the later
 * one counts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/json_in.h"
#include "kit/shell.h"
#include "sweep/journal_out.h"
#include "sweep/params.h"
#include "sweep/results.h"

enum { MAX_ROWS = 65536 };
#define MAX_JOURNAL_BYTES (1ull << 30)

/* ---- pieces ---- */

static bool is_null(struct tmk_json_in *j)
{
    if (tmk_json_in_peek(j) != 'n')
        return false;
    tmk_json_in_skip(j);
    return true;
}

static bool is_json_true(struct tmk_json_in *j)
{
    bool is = tmk_json_in_peek(j) == 't';
    tmk_json_in_skip(j);
    return is;
}

static uint64_t bytes_or_unknown(struct tmk_json_in *j)
{
    return is_null(j) ? TMK_BYTES_UNKNOWN : tmk_json_in_u64(j);
}

static int64_t number_or_none(struct tmk_json_in *j)
{
    uint64_t n = is_null(j) ? UINT64_MAX : tmk_json_in_u64(j);
    return n > INT64_MAX ? -1 : (int64_t)n;
}

static const char *read_text_or_null(struct tmk_json_in *j)
{
    return is_null(j) ? NULL : tmk_json_in_text(j);
}

static void complain_about_json(struct tmk_json_in *j, const char *problem)
{
    if (!j->problem)
        j->problem = problem;
}

/* Make room for one more row of an array that grows in the arena; NULL after a problem. */
static void *add_json_row(struct tmk_json_in *j, void **rows, uint32_t *n, size_t row_bytes)
{
    bool is_full = (*n & (*n - 1)) == 0; /* room grows in powers of two */
    if (*n == MAX_ROWS)
        complain_about_json(j, "there are too many of these");
    else if (is_full) {
        void *more = tmk_arena_take(j->texts, (*n ? 2 * (size_t)*n : 1) * row_bytes);
        if (!more)
            complain_about_json(j, "out of memory");
        else if (*rows)
            memcpy(more, *rows, *n * row_bytes);
        *rows = more ? more : *rows;
    }
    return j->problem ? NULL : (char *)*rows + (*n)++ * row_bytes;
}

static void read_texts(struct tmk_json_in *j, const char ***ret, uint32_t *ret_n)
{
    void *rows = NULL;
    *ret_n = 0;
    tmk_json_in_array(j);
    while (tmk_json_in_item(j)) {
        const char *text = tmk_json_in_text(j);
        const char **row = add_json_row(j, &rows, ret_n, sizeof *row);
        if (row)
            *row = text;
    }
    *ret = rows;
}

/* ---- the first line ---- */

static void read_json_param(struct tmk_json_in *j, struct tmk_sweep_param *p)
{
    const char *key, *name = NULL, **values = NULL;
    uint32_t n = 0;
    struct tmk_error err;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "name") == 0)
            name = tmk_json_in_text(j);
        else if (strcmp(key, "values") == 0)
            read_texts(j, &values, &n);
        else
            tmk_json_in_skip(j);
    if (!j->problem && (!name || tmk_param_make(name, values, n, j->texts, p, &err) < 0))
        complain_about_json(j, "a parameter cannot be read");
}

static void read_json_params(struct tmk_json_in *j, struct tmk_results *r)
{
    void *rows = NULL;
    r->n_params = 0; /* if a key comes twice, the later one counts */
    tmk_json_in_array(j);
    while (tmk_json_in_item(j)) {
        struct tmk_sweep_param *p = add_json_row(j, &rows, &r->n_params, sizeof *p);
        if (p)
            read_json_param(j, p);
    }
    r->params = rows;
}

static void read_head_value(struct tmk_json_in *j, struct tmk_results *r, const char *key,
                            uint64_t *version)
{
    if (strcmp(key, "tidemark_sweep") == 0)
        *version = tmk_json_in_u64(j);
    else if (strcmp(key, "title") == 0)
        r->title = tmk_json_in_text(j);
    else if (strcmp(key, "params") == 0)
        read_json_params(j, r);
    else if (strcmp(key, "where") == 0)
        read_texts(j, &r->wheres, &r->n_wheres);
    else if (strcmp(key, "command") == 0)
        read_texts(j, &r->command, &r->n_command);
    else if (strcmp(key, "options") == 0)
        read_texts(j, &r->options, &r->n_options);
    else if (strcmp(key, "cwd") == 0)
        r->cwd = read_text_or_null(j);
    else if (strcmp(key, "has_secret") == 0)
        r->has_secret = is_json_true(j);
    else if (strcmp(key, "repeats") == 0) {
        uint64_t n = tmk_json_in_u64(j);
        r->n_repeats = n > TMK_SWEEP_MAX_CELLS ? 0 : (uint32_t)n;
    } else
        tmk_json_in_skip(j);
}

static int read_head(struct tmk_results *r, const char *line, size_t n, struct tmk_error *err)
{
    struct tmk_json_in j;
    const char *key;
    uint64_t version = 0;
    tmk_json_in_init(&j, line, n, r->arena);
    tmk_json_in_object(&j);
    while ((key = tmk_json_in_key(&j)))
        read_head_value(&j, r, key, &version);
    tmk_json_in_end(&j);
    if (j.problem || version == 0 || r->n_repeats == 0)
        return tmk_fail(err, TMK_EFORMAT, "%s/%s is no journal of a sweep: %s", r->folder,
                        TMK_SWEEP_JOURNAL, j.problem ? j.problem : "its first line is another");
    if (version > TMK_JOURNAL_VERSION)
        return tmk_fail(err, TMK_EVERSION, "%s was made by a newer tidemark", r->folder);
    return tmk_results_lay_out(r, err);
}

/* ---- a cell ---- */

static void read_shares(struct tmk_json_in *j, struct tmk_shares *ret)
{
    void *rows = NULL;
    const char *key;
    ret->n = 0;
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j))) {
        uint64_t bytes = tmk_json_in_u64(j);
        struct tmk_share *s = add_json_row(j, &rows, &ret->n, sizeof *s);
        if (s)
            *s = (struct tmk_share){key, bytes};
    }
    ret->rows = rows;
}

static void read_stage(struct tmk_json_in *j, struct tmk_cell_stage *s)
{
    const char *key;
    s->name = "";
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "name") == 0)
            s->name = tmk_json_in_text(j);
        else if (strcmp(key, "peak") == 0)
            s->peak = tmk_json_in_u64(j);
        else if (strcmp(key, "end") == 0)
            s->end = tmk_json_in_u64(j);
        else if (strcmp(key, "allocated") == 0)
            s->allocated = tmk_json_in_u64(j);
        else if (strcmp(key, "times") == 0)
            s->n_times = tmk_json_in_u64(j);
        else if (strcmp(key, "ns") == 0)
            s->ns = tmk_json_in_u64(j);
        else
            tmk_json_in_skip(j);
}

static void read_rank(struct tmk_json_in *j, struct tmk_cell_rank *k)
{
    const char *key;
    *k = (struct tmk_cell_rank){
        .rank = -1, .peak_allocated = TMK_BYTES_UNKNOWN, .peak_reserved = TMK_BYTES_UNKNOWN};
    tmk_json_in_object(j);
    while ((key = tmk_json_in_key(j)))
        if (strcmp(key, "rank") == 0)
            k->rank = number_or_none(j);
        else if (strcmp(key, "pid") == 0)
            k->pid = tmk_json_in_u64(j);
        else if (strcmp(key, "device") == 0)
            k->device = read_text_or_null(j);
        else if (strcmp(key, "peak_allocated") == 0)
            k->peak_allocated = bytes_or_unknown(j);
        else if (strcmp(key, "peak_reserved") == 0)
            k->peak_reserved = bytes_or_unknown(j);
        else
            tmk_json_in_skip(j);
}

static void read_stages(struct tmk_json_in *j, struct tmk_cell *c)
{
    void *rows = NULL;
    c->n_stages = 0;
    tmk_json_in_array(j);
    while (tmk_json_in_item(j)) {
        struct tmk_cell_stage *s = add_json_row(j, &rows, &c->n_stages, sizeof *s);
        if (s)
            read_stage(j, s);
    }
    c->stages = rows;
}

static void read_ranks(struct tmk_json_in *j, struct tmk_cell *c)
{
    void *rows = NULL;
    c->n_ranks = 0;
    tmk_json_in_array(j);
    while (tmk_json_in_item(j)) {
        struct tmk_cell_rank *k = add_json_row(j, &rows, &c->n_ranks, sizeof *k);
        if (k)
            read_rank(j, k);
    }
    c->ranks = rows;
}

static void read_outcome(struct tmk_json_in *j, struct tmk_cell *c)
{
    const char *name = tmk_json_in_text(j);
    for (int o = TMK_CELL_PENDING; name && o <= TMK_CELL_HOPELESS; o++)
        if (strcmp(name, tmk_cell_outcome_name((enum tmk_cell_outcome)o)) == 0) {
            c->outcome = (enum tmk_cell_outcome)o;
            return;
        }
    complain_about_json(j, "this outcome is not known");
}

static const char *read_message(struct tmk_json_in *j)
{
    const char *text = read_text_or_null(j);
    char *own = text ? tmk_arena_text(j->texts, text, strlen(text)) : NULL;
    if (text && !own)
        complain_about_json(j, "out of memory");
    if (own)
        tmk_message_clean(own);
    return own;
}

static bool read_text_value(struct tmk_json_in *j, struct tmk_cell *c, const char *key)
{
    if (strcmp(key, "message") == 0)
        c->message = read_message(j);
    else if (strcmp(key, "run") == 0)
        c->run = read_text_or_null(j);
    else if (strcmp(key, "log") == 0)
        c->log = read_text_or_null(j);
    else if (strcmp(key, "device") == 0)
        c->device = read_text_or_null(j);
    else if (strcmp(key, "outcome") == 0)
        read_outcome(j, c);
    else
        return false;
    return true;
}

static bool read_number_value(struct tmk_json_in *j, struct tmk_cell *c, const char *key)
{
    if (strcmp(key, "exit_status") == 0)
        c->exit_status = (int)(tmk_json_in_u64(j) & 0xff);
    else if (strcmp(key, "ns") == 0)
        c->seconds = (double)tmk_json_in_u64(j) / 1e9;
    else if (strcmp(key, "capacity") == 0)
        c->capacity = bytes_or_unknown(j);
    else if (strcmp(key, "peak_allocated") == 0)
        c->peak_allocated = bytes_or_unknown(j);
    else if (strcmp(key, "peak_reserved") == 0)
        c->peak_reserved = bytes_or_unknown(j);
    else if (strcmp(key, "peak_device") == 0)
        c->peak_device = bytes_or_unknown(j);
    else if (strcmp(key, "peak_step") == 0)
        c->peak_step = number_or_none(j);
    else if (strcmp(key, "n_steps") == 0)
        c->n_steps = tmk_json_in_u64(j);
    else
        return false;
    return true;
}

static void read_cell_value(struct tmk_json_in *j, struct tmk_cell *c, const char *key)
{
    if (read_text_value(j, c, key) || read_number_value(j, c, key))
        return;
    if (strcmp(key, "categories") == 0)
        read_shares(j, &c->categories);
    else if (strcmp(key, "components") == 0)
        read_shares(j, &c->components);
    else if (strcmp(key, "at_stage") == 0)
        read_shares(j, &c->at_stage);
    else if (strcmp(key, "stages") == 0)
        read_stages(j, c);
    else if (strcmp(key, "ranks") == 0)
        read_ranks(j, c);
    else
        tmk_json_in_skip(j);
}

/* Whether shares add up to their whole. The line may have been written by anything. */
static bool is_sum(const struct tmk_shares *s, uint64_t whole)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (__builtin_add_overflow(sum, s->rows[i].bytes, &sum))
            return false;
    return s->n == 0 || sum == whole;
}

static bool is_sound(const struct tmk_cell *c)
{
    return c->outcome != TMK_CELL_PENDING && c->outcome != TMK_CELL_EXCLUDED &&
           is_sum(&c->categories, c->peak_allocated) && is_sum(&c->components, c->peak_allocated) &&
           is_sum(&c->at_stage, c->peak_allocated);
}

int tmk_results_apply(struct tmk_results *r, const char *line, size_t n, struct tmk_error *err)
{
    struct tmk_json_in j;
    const char *key;
    uint64_t number = UINT64_MAX;
    struct tmk_cell c = {.peak_step = -1,
                         .capacity = TMK_BYTES_UNKNOWN,
                         .peak_allocated = TMK_BYTES_UNKNOWN,
                         .peak_reserved = TMK_BYTES_UNKNOWN,
                         .peak_device = TMK_BYTES_UNKNOWN};
    tmk_json_in_init(&j, line, n, r->arena);
    tmk_json_in_object(&j);
    while ((key = tmk_json_in_key(&j)))
        if (strcmp(key, "cell") == 0)
            number = tmk_json_in_u64(&j);
        else
            read_cell_value(&j, &c, key);
    tmk_json_in_end(&j);
    if (j.problem)
        return tmk_fail(err, TMK_EDAMAGED, "%s", j.problem);
    if (number >= r->n_cells || !is_sound(&c) || r->cells[number].outcome == TMK_CELL_EXCLUDED)
        return tmk_fail(err, TMK_EDAMAGED, "this is about no cell of the grid");
    c.choice = r->cells[number].choice;
    c.repeat = r->cells[number].repeat;
    r->cells[number] = c;
    return (int)number;
}

/* ---- the file ---- */

static int read_journal_bytes(int fd, char *to, size_t n, size_t *ret_n, const char *path,
                              struct tmk_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = read(fd, to + done, n - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tmk_fail_os(err, TMK_EIO, errno, "cannot read %s", path);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_n = done;
    return 0;
}

static int read_open(int fd, const char *path, char **ret, size_t *ret_n, struct tmk_error *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot read %s", path);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > MAX_JOURNAL_BYTES)
        return tmk_fail(err, TMK_EFORMAT, "%s is no journal of a sweep", path);
    char *bytes = malloc((size_t)st.st_size + 1);
    if (!bytes)
        return TMK_ENOMEM;
    int rc = read_journal_bytes(fd, bytes, (size_t)st.st_size, ret_n, path, err);
    if (rc < 0)
        free(bytes);
    else
        *ret = bytes;
    return rc;
}

static int read_journal_file(const char *path, char **ret, size_t *ret_n, struct tmk_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* there may be any kind of file */
    if (fd < 0 && errno == ENOENT)
        return tmk_fail(err, TMK_ENOENT, "there is no %s: it is not the folder of a sweep", path);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open %s", path);
    int rc = read_open(fd, path, ret, ret_n, err);
    close(fd);
    return rc;
}

static int apply_lines(struct tmk_results *r, const char *bytes, size_t n, struct tmk_error *err)
{
    const char *at = bytes, *end = bytes + n, *line_end;
    int rc = 0;
    if (tmk_journal_is_stillborn(bytes, n)) {
        const char *folder = tmk_shell_word(r->arena, r->folder);
        return tmk_fail(err, TMK_ENOENT,
                        "%s/%s has no whole line: the sweep was killed as it began; give its "
                        "command again with -o %s",
                        r->folder, TMK_SWEEP_JOURNAL, folder ? folder : "DIR");
    }
    if (!memchr(at, '\n', n))
        return tmk_fail(err, TMK_EFORMAT, "%s/%s is no journal of a sweep", r->folder,
                        TMK_SWEEP_JOURNAL);
    while (rc == 0 && (line_end = memchr(at, '\n', (size_t)(end - at)))) {
        size_t length = (size_t)(line_end - at);
        if (at == bytes)
            rc = read_head(r, at, length, err);
        else if (tmk_results_apply(r, at, length, NULL) < 0)
            r->n_bad_lines++;
        at = line_end + 1;
    }
    r->journal_bytes = (uint64_t)(at - bytes);
    return rc;
}

int tmk_results_parse(const char *folder, const char *bytes, size_t n, struct tmk_results **ret,
                      struct tmk_error *err)
{
    struct tmk_results *r = tmk_results_new(folder);
    int rc = r ? apply_lines(r, bytes, n, err) : TMK_ENOMEM;
    if (rc < 0) {
        tmk_results_close(r);
        return rc == TMK_ENOMEM ? tmk_fail(err, rc, "no memory for the sweep") : rc;
    }
    *ret = r;
    return 0;
}

int tmk_results_load(const char *folder, struct tmk_results **ret, struct tmk_error *err)
{
    char *path = NULL, *bytes = NULL;
    size_t n = 0;
    if (asprintf(&path, "%s/%s", folder, TMK_SWEEP_JOURNAL) < 0)
        return tmk_fail(err, TMK_ENOMEM, "no memory for the sweep");
    int rc = read_journal_file(path, &bytes, &n, err);
    if (rc == 0 && bytes)
        rc = tmk_results_parse(folder, bytes, n, ret, err);
    free(bytes);
    free(path);
    return rc;
}
