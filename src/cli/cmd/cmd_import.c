/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_import.c - a torch memory snapshot becomes a run. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/unfinished.h"
#include "cli/output/xalloc.h"
#include "cli/run/run_content.h"
#include "interop/torch/torch_import.h"
#include "interop/torch/torch_snapshot.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/progress.h"
#include "model/run.h"

/* ---- names ---- */

static const char *base_of_snapshot(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool cut_suffix(char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    if (n <= m || strcmp(name + n - m, suffix) != 0)
        return false;
    name[n - m] = '\0';
    return true;
}

/* Returns where a snapshot is imported to: "runs/x.pickle.gz" to "x.tmk" here. */
static char *default_output(const char *snapshot)
{
    char *name = tmk_xstrdup(strcmp(snapshot, "-") == 0 ? "snapshot" : base_of_snapshot(snapshot));
    cut_suffix(name, ".gz");
    if (!cut_suffix(name, ".pickle"))
        cut_suffix(name, ".pkl");
    char *output = tmk_xformat("%s.tmk", name);
    free(name);
    return output;
}

/* Returns the folder that a path lies in. */
static char *folder_of_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return tmk_xstrdup(".");
    char *folder = tmk_xstrdup(path);
    folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* Returns a name as the recorder names traces, as far as its parts are known. */
static char *trace_name(const char *folder, uint64_t first_us)
{
    time_t seconds = (time_t)(first_us / 1000000);
    struct tm t;
    char date[32] = "00000000T000000";
    if (first_us != UINT64_MAX && gmtime_r(&seconds, &t))
        strftime(date, sizeof date, "%Y%m%dT%H%M%S", &t);
    unsigned ms = first_us == UINT64_MAX ? 0 : (unsigned)(first_us / 1000 % 1000);
    return tmk_xformat("%s/torch.r-.0.%s.%03u.trace", folder, date, ms);
}

/* ---- what is there already ---- */

static bool names_a_trace(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".trace") == 0;
}

/* Returns whether a run may be replaced: nobody records into it, it belongs to this user, and it is
 * no link. False after a message. */
static bool may_be_replaced(const char *output)
{
    char text[TMK_RUN_CONTENT_TEXT_BYTES];
    enum tmk_run_content found = tmk_run_content_look(output, text);
    if (found != TMK_RUN_CONTENT_LIVING && found != TMK_RUN_CONTENT_FOREIGN)
        return true;
    tmk_say("%s %s; it is left as it is: please give another name with -o", output, text);
    return false;
}

/* Visit the entries of a run's folder: all must be traces; with `remove` they go. False after a
 * message. */
static bool clear_folder(const char *folder, bool remove)
{
    DIR *dir = opendir(folder);
    if (!dir) {
        tmk_say("%s is there already, and is no run: %s", folder, strerror(errno));
        return false;
    }
    bool good = true;
    const struct dirent *entry;
    while (good && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        good = names_a_trace(entry->d_name);
        if (!good)
            tmk_say("%s has %s, which is no trace; please give another name with -o", folder,
                    entry->d_name);
        else if (remove && unlinkat(dirfd(dir), entry->d_name, 0) < 0)
            good = false;
    }
    closedir(dir);
    return good && (!remove || rmdir(folder) == 0);
}

static int check_output(const char *output, bool force)
{
    struct stat st;
    if (lstat(output, &st) < 0)
        return TMK_EXIT_OK;
    if (!force) {
        tmk_say("%s is there already; --force replaces it, -o gives another name", output);
        return TMK_EXIT_USAGE;
    }
    return may_be_replaced(output) && clear_folder(output, false) ? TMK_EXIT_OK : TMK_EXIT_USAGE;
}

/* ---- the summary ---- */

static void say_device(const struct tmk_import_summary *sum, uint32_t i)
{
    char name[24], peak[TMK_AMOUNT_BYTES], reserved[TMK_AMOUNT_BYTES];
    tmk_say("%s: peak %s allocated, %s reserved", tmk_device_name(sum->devices[i].device, name),
            tmk_size_text(sum->devices[i].peak_bytes, peak),
            tmk_size_text(sum->devices[i].peak_reserved_bytes, reserved));
}

static void say_summary(const struct tmk_import_summary *sum, const char *source,
                        const char *output, uint64_t n_unknown)
{
    char count[TMK_AMOUNT_BYTES], text[TMK_AMOUNT_BYTES], more[TMK_AMOUNT_BYTES];
    tmk_say("%s: %s events over %s; at the end %s in %" PRIu64 " blocks", source,
            tmk_count_text(sum->n_events, count), tmk_time_text(sum->duration_us * 1000, text),
            tmk_size_text(sum->end_bytes, more), sum->n_live);
    for (uint32_t i = 0; i < sum->n_devices; i++)
        say_device(sum, i);
    if (sum->n_seeds > 0)
        tmk_say("%s blocks with %s were there before the first event (the history had lost, or "
                "never had, its beginning)",
                tmk_count_text(sum->n_seeds, count), tmk_size_text(sum->seed_bytes, text));
    if (n_unknown > 0)
        tmk_say("%s events of kinds that are not known were left out",
                tmk_count_text(n_unknown, count));
    if (sum->n_odd > 0 || sum->n_wrong > 0)
        tmk_say("%s events do not fit those before them, and %s blocks came out with another size: "
                "sizes are near, not exact",
                tmk_count_text(sum->n_odd, count), tmk_count_text(sum->n_wrong, text));
    struct tmk_arena words = {0};
    tmk_say("next: tidemark report %s", tmk_xshell_word(&words, output));
    tmk_arena_fini(&words);
}

/* ---- the import ---- */

static int fail_import(const char *source, int rc, const struct tmk_error *err)
{
    if (err->offset)
        tmk_say("%s: byte %" PRIu64 ": %s", source, err->offset, err->text);
    else
        tmk_say("%s: %s", source, err->text);
    return rc == TMK_EIO || rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
}

/* Make the folder, and arrange that the trace and then the folder are removed if the program is
 * ended meanwhile. 0, or -1 and errno. */
static int make_import_folder(const char *folder, const char *trace, int *ret_unfinished)
{
    sigset_t before;
    tmk_unfinished_hold(&before);
    int rc = mkdir(folder, 0777), reason = errno;
    if (rc == 0) {
        ret_unfinished[0] = tmk_unfinished_add(folder);
        ret_unfinished[1] = tmk_unfinished_add(trace);
    }
    tmk_unfinished_release(&before);
    errno = reason;
    return rc;
}

/* Write the run into a folder of its own, which takes the run's name when it is whole. */
static int write_run(struct tmk_import_snapshot *s, const char *source, const char *output,
                     bool force, struct tmk_progress *progress, struct tmk_import_summary *sum)
{
    struct tmk_error err = {0};
    char *part = tmk_xformat("%s.part-%ld", output, (long)getpid());
    char *path = trace_name(part, s->first_us);
    int status = TMK_EXIT_FINDING;
    int unfinished[2] = {-1, -1};
    if (make_import_folder(part, path, unfinished) < 0) {
        tmk_say("cannot make the folder %s: %s", part, strerror(errno));
    } else {
        int rc = tmk_import_write(s, path, base_of_snapshot(source), tmk_progress_tell, progress,
                                  sum, &err);
        tmk_progress_fini(progress);
        struct stat st;
        if (rc < 0)
            status = fail_import(source, rc, &err);
        else if (force && lstat(output, &st) == 0 &&
                 !(may_be_replaced(output) && clear_folder(output, true)))
            tmk_say("cannot replace %s", output);
        else if (rename(part, output) < 0)
            tmk_say("cannot give the run its name %s: %s", output, strerror(errno));
        else
            status = TMK_EXIT_OK;
        if (status != TMK_EXIT_OK) {
            unlink(path);
            rmdir(part);
        }
        tmk_unfinished_drop(unfinished[1]);
        tmk_unfinished_drop(unfinished[0]);
    }
    free(path);
    free(part);
    return status;
}

static int import_snapshot(const char *source, const char *output, bool force, bool no_limits)
{
    struct tmk_import_snapshot s;
    struct tmk_import_summary sum;
    struct tmk_error err = {0};
    struct tmk_progress progress;
    char *folder = folder_of_path(output);
    tmk_progress_init(&progress, stderr, source);
    int rc =
        tmk_import_snapshot_read(&s, source, folder, no_limits, tmk_progress_tell, &progress, &err);
    free(folder);
    if (rc < 0) {
        tmk_progress_fini(&progress);
        return fail_import(source, rc, &err);
    }
    uint64_t n_unknown = s.n_unknown;
    int status = write_run(&s, source, output, force, &progress, &sum);
    tmk_import_snapshot_fini(&s);
    if (status == TMK_EXIT_OK)
        say_summary(&sum, source, output, n_unknown);
    return status;
}

static int run_import(const struct tmk_args *args)
{
    const char *source = args->operands[0], *asked = tmk_args_get(args, "output");
    bool force = tmk_args_get(args, "force") != NULL;
    char *output = asked ? tmk_xstrdup(asked) : default_output(source);
    for (size_t n = strlen(output); n > 1 && output[n - 1] == '/'; n--)
        output[n - 1] = '\0';
    int status = check_output(output, force);
    if (status == TMK_EXIT_OK)
        status = import_snapshot(source, output, force, tmk_args_get(args, "no-limits") != NULL);
    free(output);
    return status;
}

static const struct tmk_option options[] = {
    {"output", 'o', "RUN", NULL, "the folder of the run (SNAPSHOT.tmk, here)"},
    {"force", 0, NULL, NULL, "replace a run of that name"},
    {"no-limits", 0, NULL, NULL, "accept any use of memory and time"},
};

static const char *const description[] = {
    "SNAPSHOT is what torch.cuda.memory._dump_snapshot() writes, gzipped or not; - is stdin. "
    "The result is a run that every command can read. Blocks get their real sizes, which a "
    "snapshot has only for blocks that are live at its end. Blocks older than its history are "
    "found from its end.",
    "The file is parsed, never executed: one that refers to code is refused. So is one that "
    "takes far more memory or time than its size suggests (docs/limits.md), unless --no-limits "
    "is given. A snapshot has no steps, modules or categories. docs/snapshots.md has more.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tsuccess",
    "1\tit could not be done",
    "2\twrong usage",
    "3\tSNAPSHOT is damaged, or not a snapshot",
    NULL,
};

static const char *const examples[] = {
    "tidemark import snapshot.pickle",
    "make snapshot.tmk; then: tidemark report snapshot.tmk",
    "tidemark import oom.pickle.gz -o /tmp/oom.tmk",
    "choose the folder of the run",
    "ssh node7 cat oom.pickle | tidemark import - -o oom.tmk",
    "read a snapshot from stdin",
    NULL,
};

const struct tmk_command tmk_cmd_import = {
    .name = "import",
    .group = TMK_GROUP_FILES,
    .summary = "Make a run of a torch memory snapshot",
    .usage = "SNAPSHOT.pickle[.gz] [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .operand = TMK_OPERAND_FILE,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_import,
};
