/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_attach.c - `attach`: loads the recorder into a process that already runs, and starts
 * it.
 *
 * The process may see other files than we do (a container). The run's folder is where *it* can
 * write: our folder when it sees the same one, else a folder of its own, and then the command says
 * how to reach it. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/filters.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "cli/run/filters_tried.h"
#include "cli/run/recording.h"
#include "cli/run/run_folder.h"
#include "cli/run/watch_options.h"
#include "inject/inject.h"
#include "inject/subject.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "model/watched.h"
#include "trace/layout.h"

enum { TIMEOUT_S = 10, MAX_TIMEOUT_S = 3600 };

struct attach {
    const struct tmk_args *args;
    struct tmk_subject subject;
    struct tmk_asker asker;
    struct tmk_presence presence;
    uint64_t max_size_bytes;
    const char *step_at; /* NULL: not given */
    uint64_t timeout_ns;
    char *name;   /* of the run, as the user shall write it */
    char *folder; /* absolute, as the process sees it */
};

/* ---- arguments ---- */

static bool parse_pid(const char *text, pid_t *ret)
{
    int64_t pid;
    if (tmk_integer_parse(text, &pid) < 0 || pid <= 0 || pid > INT32_MAX) {
        tmk_say("'%s' is not the number of a process; see: ps -e", text);
        return false;
    }
    *ret = (pid_t)pid;
    return true;
}

static bool parse_timeout(const char *text, uint64_t *ret_ns)
{
    char *end = NULL;
    double seconds = text ? strtod(text, &end) : TIMEOUT_S;
    if (text && (end == text || *end || !(seconds > 0 && seconds <= MAX_TIMEOUT_S))) {
        tmk_say("--timeout: '%s' is not a number of seconds up to %d", text, MAX_TIMEOUT_S);
        return false;
    }
    *ret_ns = (uint64_t)(seconds * 1e9);
    return true;
}

/* ---- what is there already ---- */

static bool read_ring_header(const struct attach *a, struct tmk_ring_header *ret)
{
    char *path = tmk_xformat("/proc/%d/root%s", (int)a->subject.pid, a->presence.ring);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && pread(fd, ret, sizeof *ret, 0) == (ssize_t)sizeof *ret;
    if (fd >= 0)
        close(fd);
    free(path);
    ret->trace_path[sizeof ret->trace_path - 1] = '\0';
    for (char *c = ret->trace_path; good && *c; c++)
        good = (unsigned char)*c >= ' '; /* the user's file, on our terminal */
    return good && strchr(ret->trace_path, '/');
}

/* Say that the process is watched already. That is fine when nothing else was asked for. */
static int already_watched(const struct attach *a)
{
    struct tmk_ring_header header;
    struct tmk_arena words = {0};
    char name[TMK_WATCHED_NAME_BYTES];
    int pid = (int)a->subject.pid;
    tmk_watched_name((uint32_t)pid, name);
    if (read_ring_header(a, &header)) {
        *strrchr(header.trace_path, '/') = '\0';
        tmk_say("process %d is watched already, its run is %s", pid, header.trace_path);
        tmk_say("next: tidemark report %s",
                tmk_xshell_word(&words, tmk_watched_host() ? name : header.trace_path));
    } else {
        tmk_say("process %d is watched already, into the ring %s", pid, a->presence.ring);
    }
    tmk_arena_fini(&words);
    return tmk_args_get(a->args, "output") ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

/* ---- the folder ---- */

/* Choose a folder in the process's own /tmp, when it does not see ours. */
static void choose_theirs(struct attach *a, const char *wanted)
{
    const char *slash = strrchr(wanted, '/');
    bool given = tmk_args_get(a->args, "output") && tmk_args_get(a->args, "output")[0] == '/';
    a->folder = given ? tmk_xstrdup(wanted) : tmk_xformat("/tmp%s", slash);
    free(a->name);
    a->name = tmk_xformat("/proc/%d/root%s", (int)a->subject.pid, a->folder);
    tmk_say("process %d sees other files (a container): its run is its own %s", (int)a->subject.pid,
            a->folder);
}

static bool choose_attach_folder(struct attach *a)
{
    a->name = tmk_recording_name(a->args, a->subject.name);
    char *wanted = tmk_absolute_path(a->name);
    char *parent = tmk_xstrdup(wanted);
    char *slash = strrchr(parent, '/');
    slash[slash == parent] = '\0';
    if (strchr(wanted, '\n')) {
        tmk_say("the folder's name has a line feed in it; choose another: -o RUN");
    } else if (tmk_subject_sees(&a->subject, parent)) {
        a->folder = tmk_run_folder_claim(wanted, a->name) ? tmk_xstrdup(wanted) : NULL;
    } else if (access(parent, F_OK) < 0 && a->subject.same_root) {
        tmk_say("there is no folder %s", parent);
    } else {
        choose_theirs(a, wanted);
    }
    free(parent);
    free(wanted);
    return a->folder != NULL;
}

/* Make the folder for the user of the process, who may not write here: root may attach to anybody's
 * process. It goes by descriptor, so that this user cannot put a link in its place. */
static void make_for_owner(const struct attach *a)
{
    if (a->asker.uid != 0 || a->subject.uid == 0 || strncmp(a->name, "/proc/", 6) == 0 ||
        mkdir(a->folder, 0755) < 0)
        return;
    int fd = open(a->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, a->subject.uid, (gid_t)-1) < 0)
        rmdir(a->folder);
    if (fd >= 0)
        close(fd);
}

/* ---- attaching ---- */

static char *make_options(const struct attach *a)
{
    char size[48] = "", filters[48] = "";
    if (a->max_size_bytes)
        snprintf(size, sizeof size, "max_size=%" PRIu64 "\n", a->max_size_bytes);
    if (a->asker.trusts_filters)
        snprintf(filters, sizeof filters, "seccomp=" TMK_FILTERS_TRUST "\n");
    else if (a->asker.n_filters > 0)
        snprintf(filters, sizeof filters, "seccomp=%" PRIu64 "\n", a->asker.n_filters);
    char *place = a->step_at ? tmk_xformat("step_at=%s\n", a->step_at) : tmk_xstrdup("");
    char *all = tmk_xformat("run=%s\ninjected=1\n%s%s%s%s%s%s%s%s", a->folder, place, size, filters,
                            tmk_args_get(a->args, "no-stacks") ? "no_stacks=1\n" : "",
                            tmk_args_get(a->args, "no-modules") ? "no_modules=1\n" : "",
                            tmk_args_get(a->args, "no-categories") ? "no_categories=1\n" : "",
                            tmk_args_get(a->args, "cpu-tensors") ? "cpu_tensors=1\n" : "",
                            tmk_args_get(a->args, "native") ? "native=1\n" : "");
    free(place);
    return all;
}

static void say_details(const struct attach *a, const struct tmk_injected *done)
{
    char one[TMK_AMOUNT_BYTES], all[TMK_AMOUNT_BYTES];
    tmk_say("thread %d was borrowed; %u thread%s stopped, one at a time, the longest for %s, all "
            "together %s; the others 0",
            (int)done->borrowed, done->n_held, done->n_held == 1 ? " was" : "s were",
            tmk_time_text(done->longest_held_ns, one), tmk_time_text(done->held_ns, all));
    tmk_say("the library %s", done->was_loaded  ? _("was there already")
                              : done->by_memory ? _("was put into its memory (memfd)")
                                                : _("was loaded from its file"));
    if (a->subject.inner_pid != a->subject.pid)
        tmk_say("in its own namespace it is process %d", (int)a->subject.inner_pid);
}

static void say_attached(const struct attach *a, const struct tmk_injected *done)
{
    char total[TMK_AMOUNT_BYTES], held[TMK_AMOUNT_BYTES], name[TMK_WATCHED_NAME_BYTES];
    struct tmk_arena words = {0};
    int pid = (int)a->subject.pid;
    tmk_watched_name((uint32_t)pid, name);
    tmk_say("process %d (%s) is watched now, after %s; one of its threads was stopped for %s", pid,
            a->subject.name, tmk_time_text(done->total_ns, total),
            tmk_time_text(done->longest_held_ns, held));
    if (tmk_args_get(a->args, "verbose"))
        say_details(a, done);
    if (done->message[0])
        tmk_say("%s", done->message);
    if (!a->presence.has_torch)
        tmk_say("note: there is no torch in it%s; what is recorded is what it reports itself, and "
                "torch once that is loaded",
                a->presence.has_python ? _(" yet") : _(", nor Python"));
    tmk_say("the run is %s%s%s; next: tidemark report %s", a->name,
            tmk_watched_host() ? _(" on ") : "", tmk_watched_host() ? tmk_watched_host() : "",
            tmk_xshell_word(&words, tmk_watched_host() ? name : a->name));
    tmk_say("until it ends, or: tidemark detach %s", name);
    tmk_arena_fini(&words);
}

/* Returns whether the process is watched now. An earlier attach that gave up may have succeeded
 * after all. */
static bool is_watched_meanwhile(struct attach *a)
{
    return tmk_presence_read(&a->subject, &a->asker, &a->presence, NULL) == 0 &&
           a->presence.ring[0];
}

static int attach_to_process(struct attach *a, const char *library)
{
    struct tmk_error err = {0};
    struct tmk_injected done = {0};
    char *options = make_options(a);
    struct tmk_injection in = {
        .subject = &a->subject,
        .asker = &a->asker,
        .library = library,
        .symbol = "tidemark_attach",
        .options = options,
        .timeout_ns = a->timeout_ns,
    };
    make_for_owner(a);
    int rc = tmk_inject(&in, &done, &err);
    free(options);
    if (rc < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    if (done.result < 0 && is_watched_meanwhile(a))
        return already_watched(a);
    if (done.result < 0) {
        tmk_say("process %d is not watched: %s", (int)a->subject.pid,
                done.message[0] ? done.message : _("the recorder gave no reason"));
        return TMK_EXIT_FINDING;
    }
    say_attached(a, &done);
    return TMK_EXIT_OK;
}

/* Check everything that can be known before the process is touched. 0, or an exit status. */
static int examine_process(struct attach *a, pid_t pid)
{
    struct tmk_error err = {0};
    tmk_asker_read(&a->asker);
    if (a->asker.n_filters > 0 && tmk_filters_refuse())
        a->asker.n_filters = 0; /* they are no good for another process, either */
    int rc = tmk_subject_read(pid, &a->subject, &err);
    if (rc == 0)
        rc = tmk_subject_check(&a->subject, &a->asker, &err);
    if (rc == 0)
        rc = tmk_presence_read(&a->subject, &a->asker, &a->presence, &err);
    if (rc < 0)
        tmk_say("%s", err.text);
    return rc < 0 ? TMK_EXIT_FINDING : 0;
}

static int run_attach(const struct tmk_args *args)
{
    struct attach a = {.args = args};
    pid_t pid;
    if (!parse_pid(args->operands[0], &pid) || !tmk_recording_max_size(args, &a.max_size_bytes) ||
        !tmk_watch_step_at(args, &a.step_at) ||
        !parse_timeout(tmk_args_get(args, "timeout"), &a.timeout_ns))
        return TMK_EXIT_USAGE;
    int status = examine_process(&a, pid);
    if (status != 0)
        return status;
    if (a.presence.ring[0])
        return already_watched(&a);
    char *library = tmk_recording_library(false);
    if (!library)
        return TMK_EXIT_FINDING;
    status = choose_attach_folder(&a) ? attach_to_process(&a, library) : TMK_EXIT_FINDING;
    tmk_run_folder_release();
    free(library);
    free(a.name);
    free(a.folder);
    return status;
}

static const struct tmk_option options_table[] = {
    {"output", 'o', "RUN", NULL, "the folder to record into (PROGRAM-DATE-TIME.tmk)"},
    {"timeout", 0, "S", NULL, "give up after S seconds (10)"},
    {"verbose", 'v', NULL, NULL, "print how it was done"},
    TMK_REMOTE_OPTION,
    TMK_OPTION_HEADING("what is recorded"),
    {"max-size", 0, "SIZE", NULL, "limit of the trace, e.g. 512MiB (2GiB)"},
    {"cpu-tensors", 0, NULL, NULL, "record CPU tensors too, all along"},
    {"native", 0, NULL, NULL, "record C and C++ frames in stacks"},
    TMK_WATCH_LESS,
};

static const char *const description[] = {
    "attach loads libtidemark.so into the process and starts the recorder there. It stops one "
    "thread for about a millisecond, at a safe point, to start a helper thread, which does the "
    "rest. All other threads run on. Registers, signals and system calls of the stopped thread "
    "are restored, by the thread itself if tidemark is killed meanwhile.",
    "You must have the right to trace the process: be its user, or root. Some systems allow "
    "only root to trace (kernel.yama.ptrace_scope), except processes under `tidemark run`. A "
    "process in a container is named by its PID outside the container.",
    "With HOST:PID everything happens on HOST, and RUN is a folder there, relative to your "
    "home. --remote-path \"sudo -n tidemark\" attaches as root there.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tthe process is recorded, or already was and no RUN was given",
    "1\tit is not; stderr says why",
    NULL,
};

static const char *const examples[] = {
    "tidemark attach 4711",
    "record process 4711 into PROGRAM-DATE-TIME.tmk, here",
    "tidemark attach -o train.tmk $(pgrep -n -f train.py)",
    "record the newest process that runs train.py",
    "tidemark attach --verbose 4711",
    "also print how long its threads were stopped",
    NULL,
};

const struct tmk_command tmk_cmd_attach = {
    .name = "attach",
    .group = TMK_GROUP_RECORD,
    .summary = "Attach to a running process and record its GPU memory",
    .usage = "[HOST:]PID [options]",
    .description = description,
    .options = options_table,
    .n_options = TMK_N(options_table),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .operand = TMK_OPERAND_PROCESS,
    .exit_status = exit_status,
    .examples = examples,
    .run = run_attach,
};
