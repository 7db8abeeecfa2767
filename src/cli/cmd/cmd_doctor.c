/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_doctor.c - what works on this machine, and how to fix the rest.
 *
 * A table of checks; each looks at one thing and says good, fair (works, but) or bad; those of the
 * devices are in doctor_devices.c. The last one is the proof: it records a real, very short
 * training and verifies the trace. */
#include <errno.h>
#include <ftw.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/filters.h"
#include "base/lines.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/doctor.h"
#include "cli/front/command.h"
#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/run/filters_tried.h"
#include "cli/run/leftovers.h"
#include "cli/run/summary.h"
#include "cli/run/watch.h"
#include "inject/subject.h"
#include "kit/amount.h"
#include "kit/kernel_files.h"
#include "kit/language.h"
#include "kit/print.h"
#include "kit/tree.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "passes/verify.h"
#include "trace/layout.h"

/* In JSON, and for people. */
static const char *const grade_keys[] = {"ok", "fair", "bad"};
static const char *const grade_names[] = {N_("ok"), N_("warning"), N_("BAD")};

struct tmk_doctor_row *tmk_doctor_add(struct tmk_doctor *d, const char *format, ...)
{
    /* The last row is written over when there is no other: there are fewer things to look at. */
    struct tmk_doctor_row *row = &d->rows[d->n < TMK_DOCTOR_ROWS_MOST ? d->n++ : d->n - 1];
    va_list args;
    memset(row, 0, sizeof *row);
    va_start(args, format);
    vsnprintf(row->name, sizeof row->name, _(format), args);
    va_end(args);
    return row;
}

void tmk_doctor_say(struct tmk_doctor_row *row, enum tmk_grade grade, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(row->text, sizeof row->text, _(format), args);
    va_end(args);
    row->grade = grade;
}

void tmk_doctor_fix(struct tmk_doctor_row *row, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(row->fix, sizeof row->fix, _(format), args);
    va_end(args);
}

/* ---- the checks ---- */

static void check_library(struct tmk_doctor_row *r)
{
    char *library = tmk_locate_library();
    if (library && !library[strcspn(library, " :")]) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s", library);
    } else if (library) {
        tmk_doctor_say(r, TMK_GRADE_BAD,
                       "%s has a space or colon in its path, which LD_PRELOAD cannot take",
                       library);
        tmk_doctor_fix(r, "put a copy elsewhere and set TIDEMARK_LIB to it");
    } else {
        tmk_doctor_say(r, TMK_GRADE_BAD, "libtidemark.so is not beside the program, nor in ../lib");
        tmk_doctor_fix(r, "install again, or set TIDEMARK_LIB to its path");
    }
    free(library);
}

static void check_clock(struct tmk_doctor_row *r)
{
    const char *name = tmk_clock_name();
    if (tmk_clock_has_counter()) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s, the processor's own", name);
        return;
    }
    tmk_doctor_say(r, TMK_GRADE_FAIR,
                   "%s: the processor's counter is not steady, each event costs some 20 ns more",
                   name);
    tmk_doctor_fix(r, "nothing, on this machine");
}

static uint64_t free_bytes_of_folder(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

static bool is_folder_tmpfs(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 && fs.f_type == 0x01021994; /* TMPFS_MAGIC */
}

/* Check the folder for rings as the recorder looks for it (trace/account.h). */
static void check_ring(struct tmk_doctor_row *r)
{
    const char *folders[] = {getenv("TIDEMARK_RING_DIR"), getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    const uint64_t wanted = 40ull << 20;
    char size[TMK_AMOUNT_BYTES], need[TMK_AMOUNT_BYTES];
    for (size_t i = 0; i < TMK_N(folders); i++) {
        const char *folder = folders[i];
        if (!folder || *folder != '/' || !is_folder_tmpfs(folder) ||
            access(folder, W_OK | X_OK) < 0 || free_bytes_of_folder(folder) < wanted)
            continue;
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s, %s free", folder,
                       tmk_size_text(free_bytes_of_folder(folder), size));
        return;
    }
    tmk_doctor_say(r, TMK_GRADE_FAIR,
                   "no folder in memory with %s free: rings are on the disk, where writing may "
                   "stall the program",
                   tmk_size_text(wanted, need));
    tmk_doctor_fix(
        r, "make /dev/shm larger (containers: --shm-size=1g) or set XDG_RUNTIME_DIR to a tmpfs");
}

static bool clean_leftovers; /* --clean */

/* Says how many of the rings without a trace hold events; "" for none. */
static const char *orphans_text(const struct tmk_leftovers *left, char text[64])
{
    *text = '\0';
    if (left->n_full_orphans)
        snprintf(text, 64, _("; %u ring%s with events that no trace has"), left->n_full_orphans,
                 left->n_full_orphans == 1 ? "" : "s");
    return text;
}

static unsigned n_leftovers(const struct tmk_leftovers *left)
{
    return left->n_dead + left->n_orphans + left->n_accounts + left->n_sockets;
}

static void say_leftovers(struct tmk_doctor_row *r, const struct tmk_leftovers *left)
{
    char size[TMK_AMOUNT_BYTES], full[64];
    unsigned n_rings = left->n_dead + left->n_orphans;
    tmk_doctor_say(r, clean_leftovers ? TMK_GRADE_GOOD : TMK_GRADE_FAIR,
                   "%s%u ring%s of killed processes (%u without a trace), %u account%s, %u "
                   "socket%s: %s of memory%s",
                   clean_leftovers ? "removed " : "", n_rings, n_rings == 1 ? "" : "s",
                   left->n_orphans, left->n_accounts, left->n_accounts == 1 ? "" : "s",
                   left->n_sockets, left->n_sockets == 1 ? "" : "s",
                   tmk_size_text(left->bytes, size), orphans_text(left, full));
}

/* Say which rings were kept, behind what was removed. */
static void say_kept(struct tmk_doctor_row *r, const struct tmk_leftovers *left)
{
    const struct tmk_kept_rings *kept = &left->kept;
    const char *slash = strrchr(kept->trace_path, '/');
    char size[TMK_AMOUNT_BYTES], *before = tmk_xstrdup(r->text);
    tmk_doctor_say(r, TMK_GRADE_FAIR, "%s%s%u ring%s (%s) could not be merged: %s", before,
                   *before ? "; " : "", kept->n, kept->n == 1 ? "" : "s",
                   tmk_size_text(kept->bytes, size), kept->why.text);
    tmk_doctor_fix(r, "%s %.*s%s, then again: tidemark doctor --clean",
                   kept->rc == TMK_EFULL ? _("make room for") : _("see to, or remove,"),
                   slash ? (int)(slash - kept->trace_path) : 0, kept->trace_path,
                   kept->n > 1 ? _(", the first of their runs") : "");
    free(before);
}

static void check_leftovers(struct tmk_doctor_row *r)
{
    struct tmk_leftovers left;
    tmk_leftovers_find(&left, clean_leftovers ? TMK_LEFTOVERS_CLEAN : TMK_LEFTOVERS_COUNT);
    if (n_leftovers(&left) > 0)
        say_leftovers(r, &left);
    if (left.kept.n > 0)
        say_kept(r, &left);
    else if (n_leftovers(&left) == 0)
        tmk_doctor_say(r, TMK_GRADE_GOOD, "nothing left behind by killed processes");
    else if (!clean_leftovers)
        tmk_doctor_fix(r, "tidemark doctor --clean merges rings into their traces and removes the "
                          "rest");
}

static void check_disk(struct tmk_doctor_row *r)
{
    char size[TMK_AMOUNT_BYTES], most[TMK_AMOUNT_BYTES];
    uint64_t space = free_bytes_of_folder(".");
    if (access(".", W_OK | X_OK) < 0) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "the current folder cannot be written to: %s",
                       strerror(errno));
        tmk_doctor_fix(r, "go elsewhere, or give another folder: tidemark run -o FOLDER/a.tmk");
    } else if (space / 10 < TMK_MAX_SIZE_LEAST) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "only %s free here", tmk_size_text(space, size));
        tmk_doctor_fix(r, "make room, or record elsewhere: tidemark run -o FOLDER/a.tmk");
    } else {
        uint64_t bound = space / 10 < (2ull << 30) ? space / 10 : 2ull << 30;
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s free here; a trace takes at most %s",
                       tmk_size_text(space, size), tmk_size_text(bound, most));
    }
}

static void check_memory_limit(struct tmk_doctor_row *r)
{
    struct rlimit limit;
    char size[TMK_AMOUNT_BYTES];
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "files may have any size");
        return;
    }
    bool tiny = limit.rlim_cur < TMK_MAX_SIZE_LEAST;
    tmk_doctor_say(r, tiny ? TMK_GRADE_BAD : TMK_GRADE_FAIR,
                   "files may have at most %s: recording stops there",
                   tmk_size_text((uint64_t)limit.rlim_cur, size));
    tmk_doctor_fix(r, "ulimit -f unlimited");
}

static bool has_proc(void)
{
    return access("/proc/self/status", R_OK) == 0;
}

static void say_no_proc(struct tmk_doctor_row *r, enum tmk_grade grade, const char *what)
{
    tmk_doctor_say(r, grade, "%s", _(what));
    tmk_doctor_fix(r, "mount -t proc proc /proc");
}

/* Check by the setting of Yama (kernel.yama.ptrace_scope) whether attach can work. */
static void check_attach(struct tmk_doctor_row *r)
{
    static const char *const others[] = {
        [0] = N_("to any program of this user"),
        [1] = N_("only to programs under `tidemark run`, and as root to any"),
        [2] = N_("as root only"),
        [3] = N_("not at all, until the machine is started with another kernel.yama.ptrace_scope"),
    };
    struct tmk_asker us;
    if (!has_proc()) {
        say_no_proc(r, TMK_GRADE_FAIR, "unknown: there is no /proc, which attach needs");
        return;
    }
    tmk_asker_read(&us);
    unsigned scope = us.ptrace_scope >= 0 && us.ptrace_scope <= 3 ? (unsigned)us.ptrace_scope : 3;
    if (us.may_trace && scope < 3) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "to any program");
        return;
    }
    tmk_doctor_say(r, scope == 0 ? TMK_GRADE_GOOD : TMK_GRADE_FAIR, "%s", _(others[scope]));
    if (scope == 1 || scope == 2)
        tmk_doctor_fix(r, "sudo sysctl kernel.yama.ptrace_scope=0, or: sudo tidemark attach PID");
    else if (scope == 3)
        tmk_doctor_fix(r, "start the program with: tidemark run");
}

/* Try the seccomp filters around this tidemark in a child process. */
static void check_filters(struct tmk_doctor_row *r)
{
    if (!has_proc()) {
        say_no_proc(r, TMK_GRADE_FAIR, "unknown: there is no /proc, which counts filters");
        return;
    }
    char *said = tmk_filters_said();
    if (!said)
        tmk_doctor_say(r, TMK_GRADE_GOOD, "no filter around this");
    else if (strcmp(said, TMK_FILTERS_REFUSE) == 0)
        tmk_doctor_say(r, TMK_GRADE_BAD,
                       "a filter kills for calls of the recorder: nothing is recorded");
    else if (strcmp(said, TMK_FILTERS_TRUST) == 0)
        tmk_doctor_say(r, TMK_GRADE_FAIR, "filters are not checked (" TMK_FILTERS_VARIABLE ")");
    else
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s filter%s around this, tried: the recorder works",
                       said, strcmp(said, "1") == 0 ? "" : "s");
    free(said);
}

static void check_sqlite(struct tmk_doctor_row *r)
{
    tmk_doctor_say(r, TMK_GRADE_GOOD, "%s", sqlite3_libversion());
}

/* ---- the proof ---- */

static void judge_trace(struct tmk_doctor_row *r, const char *folder)
{
    struct tmk_run *run = NULL;
    struct tmk_verify *v = NULL;
    struct tmk_error err = {0};
    char count[TMK_AMOUNT_BYTES];
    int rc = tmk_run_open(folder, &run, &err);
    if (rc == 0)
        rc = tmk_verify_open(tmk_run_process(run, 0), NULL, &v, &err);
    if (rc < 0) {
        tmk_doctor_say(r, TMK_GRADE_BAD, "the trace cannot be read: %s", err.text);
    } else {
        const struct tmk_trace_verdict *d = tmk_verify_verdict(v);
        if (d->n_findings)
            tmk_doctor_say(r, TMK_GRADE_BAD, "the trace is wrong: %s", d->findings[0].text);
        else
            tmk_doctor_say(r, TMK_GRADE_GOOD, "one step of tinytrain, %s events, verified",
                           tmk_count_text(d->n_events, count));
    }
    tmk_verify_close(v);
    tmk_run_close(run);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *place)
{
    (void)st, (void)type, (void)place;
    remove(path);
    return 0;
}

/* Make a folder for the proof where files may be made; false when there is no such place. */
static bool make_proof_folder(char *to, size_t size)
{
    const char *const places[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    for (size_t i = 0; i < TMK_N(places); i++) {
        if (!places[i] || *places[i] != '/')
            continue;
        int n = snprintf(to, size, "%s/tidemark-doctor.XXXXXX", places[i]);
        if (n > 0 && (size_t)n < size && mkdtemp(to))
            return true;
    }
    return false;
}

/* Record one step. The folder for sockets is the proof's, too: nothing else is left behind. */
static struct tmk_outcome record_proof(const char *place, const char *folder, const char *library,
                                       char *program)
{
    const char *set = getenv("XDG_RUNTIME_DIR");
    char *before = set ? tmk_xstrdup(set) : NULL;
    char *argv[] = {program, (char[]){"--steps"}, (char[]){"1"}, (char[]){"--quiet"}, NULL};
    struct tmk_watch w = {.argv = argv, .folder = folder, .library = library};
    setenv("XDG_RUNTIME_DIR", place, 1);
    struct tmk_outcome o = tmk_watch_run(&w);
    if (before)
        setenv("XDG_RUNTIME_DIR", before, 1);
    else
        unsetenv("XDG_RUNTIME_DIR");
    free(before);
    return o;
}

static void check_recording(struct tmk_doctor_row *r)
{
    enum { FILES_AT_ONCE = 8 };
    const char *said = getenv(TMK_FILTERS_VARIABLE);
    if (!has_proc() && !(said && strcmp(said, TMK_FILTERS_TRUST) == 0)) {
        say_no_proc(r, TMK_GRADE_BAD,
                    "not tried: without /proc the recorder cannot see seccomp filters, and records "
                    "nothing");
        return;
    }
    char place[PATH_MAX];
    char *library = tmk_locate_library(), *program = tmk_locate_program("tinytrain");
    if (!library || !program || !make_proof_folder(place, sizeof place)) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "not tried: %s",
                       !library   ? _("no library")
                       : !program ? _("tinytrain is not there")
                                  : _("no folder for files: /tmp"));
    } else {
        char *folder = tmk_xformat("%s/a.tmk", place);
        struct tmk_outcome o = record_proof(place, folder, library, program);
        if (o.status != 0)
            tmk_doctor_say(r, TMK_GRADE_BAD, "tinytrain ended with status %d when watched",
                           o.status);
        else if (!tmk_summary_settle(folder))
            tmk_doctor_say(r, TMK_GRADE_BAD, "a watched program left no trace");
        else
            judge_trace(r, folder);
        free(folder);
        nftw(place, remove_entry, FILES_AT_ONCE, FTW_DEPTH | FTW_PHYS);
    }
    if (r->grade == TMK_GRADE_BAD)
        tmk_doctor_fix(r, "look at the other lines first; then please report it");
    free(library);
    free(program);
}

static const struct {
    const char *name;
    void (*check)(struct tmk_doctor_row *r);
    void (*add)(struct tmk_doctor *d); /* or this, which adds rows of its own names */
} checks[] = {
    {N_("library"), check_library, NULL},     {N_("clock"), check_clock, NULL},
    {N_("ring in memory"), check_ring, NULL}, {N_("leftovers"), check_leftovers, NULL},
    {N_("disk"), check_disk, NULL},           {N_("file size"), check_memory_limit, NULL},
    {N_("attach"), check_attach, NULL},       {N_("seccomp"), check_filters, NULL},
    {NULL, NULL, tmk_doctor_place},           {N_("SQLite"), check_sqlite, NULL},
    {NULL, NULL, tmk_doctor_devices},         {NULL, NULL, tmk_doctor_screen},
    {N_("recording"), check_recording, NULL},
};

/* ---- printing ---- */

static void print_doctor_json(const struct tmk_doctor *d)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_list(&t, "checks");
    for (unsigned i = 0; i < d->n; i++) {
        const struct tmk_doctor_row *row = &d->rows[i];
        tmk_tree_object(&t, NULL);
        tmk_tree_text(&t, "name", row->name);
        tmk_tree_text(&t, "grade", grade_keys[row->grade]);
        tmk_tree_text(&t, "text", row->text);
        tmk_tree_label(&t, "fix", row->fix);
        tmk_tree_end(&t);
    }
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

/* Returns `text` with "~" for the user's home, which often is a person's name; unchanged when
 * `home` is empty. The caller's. */
static char *text_without(const char *text, const char *home)
{
    size_t n = strlen(home), n_text;
    char *result = NULL;
    FILE *out = tmk_xmemstream(&result, &n_text);
    for (const char *at = n ? strstr(text, home) : NULL; at; at = strstr(text, home)) {
        fprintf(out, "%.*s~", (int)(at - text), text);
        text = at + n;
    }
    fputs(text, out);
    if (fclose(out) != 0)
        tmk_die("out of memory");
    return result;
}

/* Print a text behind its lead, in as many lines as a screen needs; elsewhere in one. */
static void print_behind(const char *lead, const char *text)
{
    if (tmk_is_screen(stdout))
        tmk_sheet_wrap(stdout, text, lead);
    else
        tmk_print(stdout, "%s%s\n", lead, text); /* it may have names of others' files */
}

/* Returns the caller's "warning disk            ". */
static char *lead_of(const struct tmk_doctor_row *row)
{
    const char *grade = _(grade_names[row->grade]);
    size_t n_grade = tmk_utf8_width(grade), n_name = tmk_utf8_width(row->name);
    return tmk_xformat("%s%*s%s%*s ", grade, n_grade < 8 ? (int)(8 - n_grade) : 0, "", row->name,
                       n_name < 15 ? (int)(15 - n_name) : 0, "");
}

static void print_doctor_rows(const struct tmk_doctor *d, const char *home)
{
    static const enum tmk_role roles[] = {TMK_ROLE_PLAIN, TMK_ROLE_WARN, TMK_ROLE_BAD};
    for (unsigned i = 0; i < d->n; i++) {
        const struct tmk_doctor_row *row = &d->rows[i];
        char *text = text_without(row->text, home), *fix = text_without(row->fix, home);
        char *lead = lead_of(row);
        fputs(tmk_role_on(stdout, roles[row->grade]), stdout);
        print_behind(lead, text);
        fputs(tmk_role_off(stdout, roles[row->grade]), stdout);
        if (*fix)
            print_behind(_("                        fix: "), fix);
        free(text);
        free(fix);
        free(lead);
    }
}

/* Print a block for a bug report, with what we would ask for first. */
static void print_report(const struct tmk_doctor *d)
{
    struct utsname kernel = {0};
    char text[4096];
    const char *home = getenv("HOME");
    tmk_kernel_file_read(text, sizeof text, "/etc/os-release");
    const char *name = tmk_lines_field(text, "PRETTY_NAME=");
    name += *name == '"';
    uname(&kernel);
    printf("```\ntidemark %s\n%.*s, Linux %s %s, glibc %s\n", TMK_VERSION,
           (int)strcspn(name, "\"\n"), name, kernel.release, kernel.machine,
           gnu_get_libc_version());
    print_doctor_rows(d, home && home[0] == '/' && home[1] ? home : "");
    printf("```\n");
}

static int run_doctor(const struct tmk_args *args)
{
    struct tmk_doctor *d = tmk_xcalloc(1, sizeof *d);
    bool bad = false;
    d->python = tmk_args_get(args, "python");
    if (tmk_args_get(args, "report"))
        tmk_language_begin_data(); /* it is for who gets the report */
    clean_leftovers = tmk_args_get(args, "clean") != NULL;
    for (size_t i = 0; i < TMK_N(checks); i++) {
        if (checks[i].check)
            checks[i].check(tmk_doctor_add(d, "%s", _(checks[i].name)));
        else
            checks[i].add(d);
    }
    for (unsigned i = 0; i < d->n; i++)
        bad |= d->rows[i].grade == TMK_GRADE_BAD;
    if (tmk_args_get(args, "json"))
        print_doctor_json(d);
    else if (tmk_args_get(args, "report"))
        print_report(d);
    else
        print_doctor_rows(d, "");
    free(d);
    return bad ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "print one JSON object"},
    {"report", 0, NULL, NULL, "print a block to paste into a bug report"},
    {"python", 0, "PROGRAM", NULL, "the Python whose torch to check; it is not run"},
    {"clean", 0, NULL, NULL, "merge or remove what killed processes left in memory"},
};

static const char *const description[] = {
    "In a container that has the host's /proc and /sys under other names, set "
    "TIDEMARK_PROC_DIR and TIDEMARK_SYS_DIR to them. Processes on the GPUs are then found by "
    "the host's PIDs.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tno check is BAD",
    "1\ta check is BAD",
    "2\twrong usage",
    NULL,
};

static const char *const json_keys[] = {
    "checks\teach: name grade text fix",
    NULL,
};

static const char *const examples[] = {
    "tidemark doctor",
    "one line for each check; exit status 1 if one is BAD",
    "tidemark doctor --python ~/env/bin/python",
    "check the torch of that Python too",
    "tidemark doctor --clean",
    "also clean up after killed processes in /dev/shm",
    NULL,
};

const struct tmk_command tmk_cmd_doctor = {
    .name = "doctor",
    .group = TMK_GROUP_HELP,
    .summary = "Check this machine: what works, and how to fix the rest",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_doctor,
};
