/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_plan.c - see sweep_plan.h.
 *
 * For --resume, the original command line is taken from the journal and the present options are
 * added to it, so both ways lead to the same parsed arguments. */
#include "cli/sweep/sweep_plan.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "sweep/journal_out.h"
#include "sweep/params.h"
#include "sweep/words.h"

enum { LOCK_TRIES = 50, LOCK_WAIT_US = 100000 };

/* ---- the grid, from the command line ---- */

static const char *kept_redacted(const struct tmk_sweep_plan *p, const char *text)
{
    char *shown = tmk_sweep_redacted(p, text);
    const char *kept = tmk_arena_text(p->results->arena, shown, strlen(shown));
    free(shown);
    if (!kept)
        tmk_die("out of memory");
    return kept;
}

static void *take_plan_memory(struct tmk_results *r, size_t n)
{
    void *memory = tmk_arena_take(r->arena, n);
    if (!memory)
        tmk_die("out of memory");
    return memory;
}

static int read_plan_params(struct tmk_results *r, const struct tmk_args *args)
{
    const char *texts[TMK_MAX_VALUES];
    unsigned n = tmk_args_list(args, "param", texts);
    r->params = take_plan_memory(r, (n + 1) * sizeof *r->params);
    for (unsigned i = 0; i < n; i++) {
        struct tmk_error err = {0};
        if (tmk_param_parse(texts[i], r->arena, &r->params[i], &err) < 0) {
            tmk_say("--param %s: %s", texts[i], err.text);
            return TMK_EXIT_USAGE;
        }
        r->n_params++;
    }
    return 0;
}

static void read_plan_wheres(struct tmk_results *r, const struct tmk_args *args)
{
    const char *texts[TMK_MAX_VALUES];
    r->n_wheres = tmk_args_list(args, "where", texts);
    r->wheres = take_plan_memory(r, (r->n_wheres + 1) * sizeof *r->wheres);
    memcpy(r->wheres, texts, r->n_wheres * sizeof *r->wheres);
}

/* Report a constraint's error, with a caret below the position. */
static int complain_where(const struct tmk_results *r, const struct tmk_error *err)
{
    struct tmk_results alone = *r;
    alone.n_wheres = 0;
    for (uint32_t i = 0; i < r->n_wheres && tmk_results_lay_out(&alone, NULL) == 0; i++) {
        struct tmk_error again = {0};
        alone.wheres = r->wheres + i;
        alone.n_wheres = 1;
        int rc = tmk_results_lay_out(&alone, &again);
        alone.n_wheres = 0;
        if (rc == 0)
            continue;
        tmk_say("--where: %s", again.text);
        fprintf(stderr, "    %s\n    %*s^\n", r->wheres[i], (int)again.offset, "");
        return TMK_EXIT_USAGE;
    }
    tmk_say("%s", err->text);
    return TMK_EXIT_USAGE;
}

static int check_some_left(const struct tmk_results *r)
{
    for (uint32_t i = 0; i < r->n_cells; i++)
        if (r->cells[i].outcome != TMK_CELL_EXCLUDED)
            return 0;
    tmk_say("--where leaves none of the %u configurations", r->n_cells);
    return TMK_EXIT_USAGE;
}

static int check_words(const struct tmk_results *r, char *const *words)
{
    struct tmk_error err = {0};
    for (; *words; words++)
        if (tmk_word_check(*words, r, &err) < 0) {
            tmk_say("%s", err.text);
            return TMK_EXIT_USAGE;
        }
    return 0;
}

/* Make the title: the command's words, with the program without its folder. */
static const char *make_title(const struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    const char *given = tmk_args_get(args, "title");
    if (given)
        return kept_redacted(p, given);
    char *text = NULL;
    size_t n;
    FILE *f = tmk_xmemstream(&text, &n);
    for (unsigned i = 0; p->command[i]; i++) {
        const char *slash = i == 0 ? strrchr(p->command[i], '/') : NULL;
        fprintf(f, "%s%s", i ? " " : "", slash ? slash + 1 : p->command[i]);
    }
    fclose(f);
    const char *title = kept_redacted(p, text);
    free(text);
    return title;
}

/* Whether an option about how to run is kept in the journal. */
static bool is_kept_option(const char *name)
{
    static const char *const others[] = {"param",  "where",        "repeats",    "output",
                                         "resume", "retry-failed", "retry-oom",  "dry-run",
                                         "redact", "title",        "no-pictures"};
    for (size_t i = 0; i < TMK_N(others); i++)
        if (strcmp(others[i], name) == 0)
            return false;
    return true;
}

static void keep_options(struct tmk_results *r, const struct tmk_args *args)
{
    const struct tmk_command *c = args->command;
    r->options = take_plan_memory(r, c->n_options * sizeof *r->options);
    for (unsigned i = 0; i < c->n_options; i++) {
        if (!args->values[i] || !is_kept_option(c->options[i].name))
            continue;
        const char *text =
            c->options[i].value
                ? tmk_arena_format(r->arena, "--%s=%s", c->options[i].name, args->values[i])
                : tmk_arena_format(r->arena, "--%s", c->options[i].name);
        if (!text)
            tmk_die("out of memory");
        r->options[r->n_options++] = text;
    }
}

/* The folder that the command runs in; NULL: it is gone. */
static const char *current_folder(const struct tmk_results *r)
{
    char *cwd = getcwd(NULL, 0);
    const char *kept = cwd ? tmk_arena_text(r->arena, cwd, strlen(cwd)) : NULL;
    free(cwd);
    return kept;
}

static int make_grid(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    struct tmk_results *r = p->results;
    struct tmk_error err = {0};
    r->n_repeats = 1;
    read_plan_wheres(r, args);
    int status = read_plan_params(r, args);
    if (status == 0)
        status = tmk_sweep_read_count(args, "repeats", TMK_SWEEP_MAX_CELLS, &r->n_repeats);
    if (status == 0 && tmk_results_lay_out(r, &err) < 0)
        status = complain_where(r, &err);
    if (status == 0)
        status = check_words(r, p->command);
    if (status == 0)
        status = check_some_left(r);
    if (status == 0)
        status = tmk_sweep_check_secrets(p);
    if (status != 0)
        return status;
    r->command = take_plan_memory(r, (args->n_operands + 1) * sizeof *r->command);
    for (r->n_command = 0; p->command[r->n_command]; r->n_command++) {
        r->command[r->n_command] = kept_redacted(p, p->command[r->n_command]);
        r->has_secret = r->has_secret || tmk_sweep_has_secret(p, p->command[r->n_command]);
    }
    r->cwd = current_folder(r);
    r->title = make_title(p, args);
    keep_options(r, args);
    return 0;
}

/* ---- the folder ---- */

static char *folder_name(const struct tmk_args *args)
{
    const char *given = tmk_args_get(args, "output");
    if (given)
        return tmk_absolute_path(given);
    time_t now = time(NULL);
    struct tm t;
    char name[64] = "sweep";
    if (localtime_r(&now, &t))
        strftime(name, sizeof name, "sweep-%Y%m%d-%H%M%S", &t);
    return tmk_absolute_path(name);
}

static int make_sweep_folder(const char *folder)
{
    static const char *const parts[] = {"", "/runs", "/logs"};
    for (size_t i = 0; i < TMK_N(parts); i++) {
        char *path = tmk_xformat("%s%s", folder, parts[i]);
        int rc = mkdir(path, 0777);
        int reason = errno;
        free(path);
        if (rc < 0 && reason != EEXIST) {
            tmk_say("cannot make %s%s: %s", folder, parts[i], strerror(reason));
            return TMK_EXIT_FINDING;
        }
    }
    return 0;
}

/* Lock the journal. A sweep that was just killed may still be ending its programs, so wait a
 * little. */
static int lock_journal(struct tmk_sweep_plan *p)
{
    struct tmk_error err = {0};
    int rc = 0;
    for (int i = 0; i < LOCK_TRIES; i++) {
        rc = p->goes_on ? tmk_journal_go_on(p->results, &p->journal, &err)
                        : tmk_journal_make(p->results, &p->journal, &err);
        if (rc != TMK_EBUSY)
            break;
        usleep(LOCK_WAIT_US);
    }
    if (rc == 0)
        return 0;
    tmk_say("%s", err.text);
    return TMK_EXIT_FINDING;
}

/* ---- a sweep that was begun ---- */

/* Check that a folder without a journal is empty. */
static int check_empty(const char *folder)
{
    static const char *const ours[] = {".", "..", "runs", "logs", TMK_SWEEP_JOURNAL};
    DIR *dir = opendir(folder);
    bool is_ours = true;
    if (!dir)
        return 0; /* it is missing, or making it reports the error */
    for (struct dirent *entry; is_ours && (entry = readdir(dir));) {
        is_ours = false;
        for (size_t i = 0; i < TMK_N(ours); i++)
            is_ours = is_ours || strcmp(entry->d_name, ours[i]) == 0;
    }
    closedir(dir);
    if (is_ours)
        return 0;
    tmk_say("%s has other files and no sweep in it (%s); give a new or empty folder with -o",
            folder, TMK_SWEEP_JOURNAL);
    return TMK_EXIT_USAGE;
}

/* Use the journal's results, if there are any, instead of those made from the command line. */
static int look_for_journal(struct tmk_sweep_plan *p)
{
    struct tmk_results *then = NULL;
    struct tmk_error err = {0};
    int rc = tmk_results_load(p->results->folder, &then, &err);
    if (rc == TMK_ENOENT)
        return check_empty(p->results->folder);
    if (rc < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_BAD_TRACE;
    }
    int status = tmk_sweep_compare(then, p->results);
    if (status != 0) {
        tmk_results_close(then);
        return status;
    }
    tmk_results_close(p->results);
    p->results = then;
    p->goes_on = true;
    return 0;
}

/* ---- both ways to begin ---- */

/* Apply --retry-failed and --retry-oom. */
static void forget_failed(struct tmk_results *r, const struct tmk_args *args)
{
    bool failed = tmk_args_get(args, "retry-failed"), oom = tmk_args_get(args, "retry-oom");
    for (uint32_t i = 0; i < r->n_cells; i++) {
        enum tmk_cell_outcome *o = &r->cells[i].outcome;
        bool is_failed = *o == TMK_CELL_FAILED || *o == TMK_CELL_TIMEOUT || *o == TMK_CELL_HOPELESS;
        if ((failed && is_failed) || (oom && *o == TMK_CELL_OOM))
            *o = TMK_CELL_PENDING;
    }
}

static void copy_command(struct tmk_sweep_plan *p, char *const *words, unsigned n)
{
    p->command = tmk_xcalloc(n + 1, sizeof *p->command);
    for (unsigned i = 0; i < n; i++)
        p->command[i] = tmk_xstrdup(words[i]);
}

static int begin_new(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    if (args->n_operands == 0) {
        tmk_say("usage: tidemark sweep %s", args->command->usage);
        return TMK_EXIT_USAGE;
    }
    char *folder = folder_name(args);
    p->results = tmk_results_new(folder);
    free(folder);
    if (!p->results)
        tmk_die("out of memory");
    copy_command(p, args->operands, args->n_operands);
    int status = make_grid(p, args);
    if (status == 0)
        status = look_for_journal(p);
    if (status == 0)
        status = tmk_sweep_read_how(p, args);
    return status;
}

/* Join the options and command of the journal and the present ones into one command line. */
static char **join_arguments(const struct tmk_results *r, const struct tmk_args *args)
{
    const struct tmk_command *c = args->command;
    char **argv = tmk_xcalloc(r->n_options + c->n_options + r->n_command + 2, sizeof *argv);
    unsigned n = 0;
    for (uint32_t i = 0; i < r->n_options; i++)
        argv[n++] = tmk_xstrdup(r->options[i]);
    for (unsigned i = 0; i < c->n_options; i++)
        if (args->values[i] && strcmp(c->options[i].name, "redact") != 0)
            argv[n++] = c->options[i].value
                            ? tmk_xformat("--%s=%s", c->options[i].name, args->values[i])
                            : tmk_xformat("--%s", c->options[i].name);
    argv[n++] = tmk_xstrdup("--");
    for (uint32_t i = 0; i < r->n_command; i++)
        argv[n++] = tmk_xstrdup(r->command[i]);
    return argv;
}

static int check_resume(const struct tmk_args *args)
{
    static const char *const not_with[] = {"param", "where", "repeats", "output", "title"};
    for (size_t i = 0; i < TMK_N(not_with); i++)
        if (tmk_args_get(args, not_with[i])) {
            tmk_say("--resume goes on with the sweep as it was begun; --%s has no place there",
                    not_with[i]);
            return TMK_EXIT_USAGE;
        }
    if (args->n_operands > 0) {
        tmk_say("--resume takes the command from the folder: leave '%s' out, or give -o instead",
                args->operands[0]);
        return TMK_EXIT_USAGE;
    }
    return 0;
}

static int check_resumed_command(const struct tmk_results *r)
{
    if (r->n_command == 0) {
        tmk_say("%s has no command to go on with", r->folder);
        return TMK_EXIT_FINDING;
    }
    if (!r->has_secret)
        return 0;
    tmk_say("the command has a secret, which %s does not keep; give the same command again with "
            "-o %s",
            TMK_SWEEP_JOURNAL, tmk_xshell_word(r->arena, r->folder));
    return TMK_EXIT_USAGE;
}

static int resume_with(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    char **all = join_arguments(p->results, args);
    unsigned n = 0;
    while (all[n])
        n++;
    char **argv = tmk_xcalloc(n + 1, sizeof *argv); /* the parser reorders it */
    memcpy(argv, all, n * sizeof *argv);
    struct tmk_args joined;
    int status = tmk_args_parse(args->command, argv, &joined);
    if (status == 0) {
        copy_command(p, joined.operands, joined.n_operands);
        status = check_words(p->results, p->command);
    }
    if (status == 0)
        status = tmk_sweep_read_how(p, &joined);
    if (p->watch.ranks) /* everything else that is kept of the arguments has been copied or read by
                           now */
        p->watch.ranks = tmk_arena_text(p->results->arena, p->watch.ranks, strlen(p->watch.ranks));
    for (unsigned i = 0; i < n; i++)
        free(all[i]);
    free(all);
    free(argv);
    return status;
}

static int begin_again(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    struct tmk_error err = {0};
    int status = check_resume(args);
    if (status != 0)
        return status;
    char *folder = tmk_absolute_path(tmk_args_get(args, "resume"));
    int rc = tmk_results_load(folder, &p->results, &err);
    free(folder);
    if (rc < 0) {
        tmk_say("%s", err.text);
        return rc == TMK_ENOENT ? TMK_EXIT_USAGE : TMK_EXIT_BAD_TRACE;
    }
    p->goes_on = true;
    status = check_resumed_command(p->results);
    return status == 0 ? resume_with(p, args) : status;
}

/* Go to the folder where the sweep was begun, so that the command finds its files. */
static int go_to_command_folder(const struct tmk_results *r)
{
    const char *now = current_folder(r);
    if (!r->cwd || (now && strcmp(now, r->cwd) == 0))
        return 0;
    if (chdir(r->cwd) < 0) {
        tmk_say("the sweep was begun in %s, from where its command is run: %s", r->cwd,
                strerror(errno));
        return TMK_EXIT_FINDING;
    }
    tmk_say("the command is run in %s, where the sweep was begun", r->cwd);
    return 0;
}

int tmk_sweep_plan_init(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    *p = (struct tmk_sweep_plan){.journal = -1};
    int status = tmk_sweep_read_secrets(p, args);
    if (status == 0)
        status = tmk_args_get(args, "resume") ? begin_again(p, args) : begin_new(p, args);
    if (status == 0)
        forget_failed(p->results, args);
    if (status == 0 && tmk_results_has_pending(p->results))
        status = go_to_command_folder(p->results);
    if (status != 0 || p->dry_run)
        return status;
    const char *folder = tmk_xshell_word(p->results->arena, p->results->folder);
    p->resume = p->results->has_secret ? tmk_xformat(_("the same command with -o %s"), folder)
                                       : tmk_xformat(_("tidemark sweep --resume %s"), folder);
    status = make_sweep_folder(p->results->folder);
    return status == 0 ? lock_journal(p) : status;
}

void tmk_sweep_plan_fini(struct tmk_sweep_plan *p)
{
    if (p->journal >= 0)
        close(p->journal);
    tmk_results_close(p->results);
    for (unsigned i = 0; p->command && p->command[i]; i++)
        free(p->command[i]);
    free(p->command);
    for (unsigned i = 0; p->devices && p->devices[i]; i++)
        free(p->devices[i]);
    free(p->devices);
    for (unsigned i = 0; i < p->n_secrets; i++)
        free(p->secrets[i]);
    free((char *)p->watch.library);
    free(p->resume);
}
