/* SPDX-License-Identifier: MIT */
/* sweep/journal_out.c - see journal_out.h. */
#include "sweep/journal_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "kit/tree.h"
#include "sweep/cell_json.h"

/* ---- lines ---- */

static void put_texts(struct tmk_tree *t, const char *key, const char *const *texts, uint32_t n)
{
    tmk_tree_list(t, key);
    for (uint32_t i = 0; i < n; i++)
        tmk_tree_text(t, NULL, texts[i]);
    tmk_tree_end(t);
}

static void put_journal_head(struct tmk_tree *t, const struct tmk_results *r)
{
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "tidemark_sweep", TMK_JOURNAL_VERSION);
    tmk_tree_text(t, "title", r->title);
    tmk_tree_list(t, "params");
    for (uint32_t i = 0; i < r->n_params; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_text(t, "name", r->params[i].name);
        put_texts(t, "values", r->params[i].values, r->params[i].n_values);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    put_texts(t, "where", r->wheres, r->n_wheres);
    tmk_tree_u64(t, "repeats", r->n_repeats);
    put_texts(t, "command", r->command, r->n_command);
    tmk_tree_bool(t, "has_secret", r->has_secret);
    tmk_tree_text(t, "cwd", r->cwd);
    put_texts(t, "options", r->options, r->n_options);
    tmk_tree_end(t);
}

static void put_measures(struct tmk_tree *t, const struct tmk_cell *c)
{
    tmk_tree_text(t, "run", c->run);
    tmk_tree_text(t, "log", c->log);
    tmk_tree_text(t, "device", c->device);
    tmk_tree_bytes(t, "capacity", c->capacity);
    tmk_cell_json_peaks(t, c);
    tmk_tree_number(t, "peak_step", c->peak_step);
    tmk_tree_u64(t, "n_steps", c->n_steps);
    tmk_cell_json_shares(t, "categories", &c->categories);
    tmk_cell_json_shares(t, "components", &c->components);
    tmk_cell_json_shares(t, "at_stage", &c->at_stage);
    tmk_cell_json_stages(t, c, false);
    tmk_cell_json_ranks(t, c);
}

static void put_journal_cell(struct tmk_tree *t, const struct tmk_results *r, uint32_t number)
{
    const struct tmk_cell *c = &r->cells[number];
    tmk_tree_object(t, NULL);
    tmk_tree_u64(t, "cell", number);
    tmk_tree_object(t, "params");
    for (uint32_t i = 0; i < r->n_params; i++)
        tmk_tree_text(t, r->params[i].name, r->params[i].values[c->choice[i]]);
    tmk_tree_end(t);
    tmk_tree_u64(t, "repeat", c->repeat);
    tmk_tree_text(t, "outcome", tmk_cell_outcome_name(c->outcome));
    tmk_tree_i64(t, "exit_status", c->exit_status);
    tmk_tree_text(t, "message", c->message);
    tmk_tree_u64(t, "ns", (uint64_t)(c->seconds * 1e9 + 0.5));
    put_measures(t, c);
    tmk_tree_end(t);
}

/* ---- the file ---- */

static int fail_writing(const struct tmk_results *r, struct tmk_error *err)
{
    return tmk_fail_os(err, TMK_EIO, errno, "cannot write %s/%s", r->folder, TMK_SWEEP_JOURNAL);
}

static int write_to_journal(int fd, const struct tmk_results *r, const char *bytes, size_t n,
                            struct tmk_error *err)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_writing(r, err);
        bytes += done;
        n -= (size_t)done;
    }
    return fdatasync(fd) == 0 || errno == EINVAL ? 0 : fail_writing(r, err);
}

/* Add the line of a cell, or with `number` UINT32_MAX the first line. */
static int add_journal_line(int fd, const struct tmk_results *r, uint32_t number,
                            struct tmk_error *err)
{
    char *text = NULL;
    size_t n = 0;
    struct tmk_tree t;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return tmk_fail(err, TMK_ENOMEM, "no memory for a line of the journal");
    tmk_tree_init_json(&t, out, 0);
    if (number == UINT32_MAX)
        put_journal_head(&t, r);
    else
        put_journal_cell(&t, r, number);
    int rc = fclose(out) == 0 ? write_to_journal(fd, r, text, n, err)
                              : tmk_fail(err, TMK_ENOMEM, "no memory for a line of the journal");
    free(text);
    return rc;
}

int tmk_journal_add(int fd, const struct tmk_results *r, uint32_t number, struct tmk_error *err)
{
    return add_journal_line(fd, r, number, err);
}

static int open_locked_journal(const struct tmk_results *r, int flags, int *ret_fd,
                               struct tmk_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", r->folder, TMK_SWEEP_JOURNAL) < 0)
        return TMK_ENOMEM;
    int fd = open(path, flags | O_RDWR | O_APPEND | O_CLOEXEC, 0666);
    free(path);
    if (fd < 0)
        return fail_writing(r, err);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        close(fd);
        return tmk_fail(err, TMK_EBUSY, "another sweep is at work in %s", r->folder);
    }
    *ret_fd = fd;
    return 0;
}

bool tmk_journal_is_stillborn(const char *bytes, size_t n)
{
    static const char begin[] = "{\"tidemark_sweep\"";
    size_t n_begin = strlen(begin) < n ? strlen(begin) : n;
    return memcmp(bytes, begin, n_begin) == 0 && !memchr(bytes, '\n', n);
}

static int clear_stillborn(int fd, const struct tmk_results *r, struct tmk_error *err)
{
    char bytes[4096];
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);
    if (n < 0)
        return fail_writing(r, err);
    if (!tmk_journal_is_stillborn(bytes, (size_t)n) || n == sizeof bytes)
        return tmk_fail(err, TMK_EIO, "%s/%s is there already", r->folder, TMK_SWEEP_JOURNAL);
    return ftruncate(fd, 0) == 0 ? 0 : fail_writing(r, err);
}

int tmk_journal_make(const struct tmk_results *r, int *ret_fd, struct tmk_error *err)
{
    int fd = -1;
    int rc = open_locked_journal(r, O_CREAT, &fd, err);
    if (rc == 0 && ((rc = clear_stillborn(fd, r, err)) < 0 ||
                    (rc = add_journal_line(fd, r, UINT32_MAX, err)) < 0))
        close(fd);
    if (rc == 0)
        *ret_fd = fd;
    return rc;
}

/* Cut off a torn line. The journal was read before we had the lock, so nothing else may follow what
 * was read. */
static int cut_torn(int fd, const struct tmk_results *r, struct tmk_error *err)
{
    char bytes[4096];
    off_t at = (off_t)r->journal_bytes;
    for (ssize_t got; (got = pread(fd, bytes, sizeof bytes, at)) != 0; at += got) {
        if (got < 0)
            return fail_writing(r, err);
        if (memchr(bytes, '\n', (size_t)got))
            return tmk_fail(err, TMK_EBUSY, "another sweep was at work in %s; try again",
                            r->folder);
    }
    return ftruncate(fd, (off_t)r->journal_bytes) == 0 ? 0 : fail_writing(r, err);
}

int tmk_journal_go_on(const struct tmk_results *r, int *ret_fd, struct tmk_error *err)
{
    int fd = -1;
    int rc = open_locked_journal(r, 0, &fd, err);
    if (rc == 0 && (rc = cut_torn(fd, r, err)) < 0)
        close(fd);
    if (rc == 0)
        *ret_fd = fd;
    return rc;
}
