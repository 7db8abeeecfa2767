/* SPDX-License-Identifier: MIT */
/* cli/cmd_doctor.c - what works on this machine, and how to fix the rest.
 *
 * A table of checks; each looks at one thing and says good, fair (works, but) or bad. The last one
 * is the proof: it records a real, very short training and verifies the trace. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/leftovers.h"
#include "cli/locate.h"
#include "cli/sheet.h"
#include "cli/summary.h"
#include "cli/target.h"
#include "cli/xalloc.h"
#include "kit/amount.h"
#include "kit/json.h"
#include "passes/verify.h"
#include "trace/layout.h"
#include "trace/ring.h"

enum grade { GOOD, FAIR, BAD };

static const char *const grade_names[] = {"ok", "fair", "BAD"};

struct result {
    enum grade grade;
    char text[320];
    char fix[320]; /* "" when there is nothing to fix */
};

__attribute__((format(printf, 3, 4))) static void say(struct result *r, enum grade grade,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->text, sizeof r->text, format, args);
    va_end(args);
    r->grade = grade;
}

static void fix(struct result *r, const char *text)
{
    snprintf(r->fix, sizeof r->fix, "%s", text);
}

/* ---- the checks ---- */

static void check_library(struct result *r)
{
    char *library = tmk_locate_library();
    if (library && !library[strcspn(library, " :")]) {
        say(r, GOOD, "%s", library);
    } else if (library) {
        say(r, BAD, "%s has a space or colon in its path, which LD_PRELOAD cannot take", library);
        fix(r, "put a copy elsewhere and set TIDEMARK_LIB to it");
    } else {
        say(r, BAD, "libtidemark.so is not beside the program, nor in ../lib");
        fix(r, "install again, or set TIDEMARK_LIB to its path");
    }
    free(library);
}

static void check_clock(struct result *r)
{
    const char *name = tmk_clock_name();
    if (tmk_clock_has_counter()) {
        say(r, GOOD, "%s, the processor's own", name);
        return;
    }
    say(r, FAIR, "%s: the processor's counter is not steady, each event costs some 20 ns more",
        name);
    fix(r, "nothing, on this machine");
}

static uint64_t free_bytes(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : 0;
}

static bool is_tmpfs(const char *folder)
{
    struct statfs fs;
    return statfs(folder, &fs) == 0 && fs.f_type == 0x01021994; /* TMPFS_MAGIC */
}

/* As the recorder looks for it: three times the ring must be free. */
static void check_ring(struct result *r)
{
    const char *folders[] = {getenv("TIDEMARK_RING_DIR"), getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    const uint64_t wanted = 3ull * TMK_RING_PAGES * TMK_PAGE_BYTES;
    char size[TMK_AMOUNT_BYTES], need[TMK_AMOUNT_BYTES];
    for (size_t i = 0; i < TMK_N(folders); i++) {
        const char *folder = folders[i];
        if (!folder || *folder != '/' || !is_tmpfs(folder) || access(folder, W_OK | X_OK) < 0 ||
            free_bytes(folder) < wanted)
            continue;
        say(r, GOOD, "%s, %s free", folder, tmk_size_text(free_bytes(folder), size));
        return;
    }
    say(r, FAIR,
        "no folder in memory with %s free: the ring is smaller, or on the disk, where "
        "writing may stall the program",
        tmk_size_text(wanted, need));
    fix(r, "make /dev/shm larger (containers: --shm-size=1g) or set XDG_RUNTIME_DIR to a tmpfs");
}

static void check_leftovers(struct result *r)
{
    struct tmk_leftovers left;
    char size[TMK_AMOUNT_BYTES];
    tmk_leftovers_find(&left);
    if (left.n_rings == 0) {
        say(r, GOOD, "nothing left behind in memory");
        return;
    }
    say(r, FAIR, "%u ring%s (%s) of killed processes whose traces are gone", left.n_rings,
        left.n_rings == 1 ? "" : "s", tmk_size_text(left.bytes, size));
    fix(r, left.command);
}

static void check_disk(struct result *r)
{
    char size[TMK_AMOUNT_BYTES], most[TMK_AMOUNT_BYTES];
    uint64_t space = free_bytes(".");
    if (access(".", W_OK | X_OK) < 0) {
        say(r, FAIR, "the current folder cannot be written to: %s", strerror(errno));
        fix(r, "go elsewhere, or give another folder: tidemark run -o FOLDER/a.tmk");
    } else if (space / 10 < TMK_MAX_SIZE_LEAST) {
        say(r, FAIR, "only %s free here", tmk_size_text(space, size));
        fix(r, "make room, or record elsewhere: tidemark run -o FOLDER/a.tmk");
    } else {
        uint64_t bound = space / 10 < (2ull << 30) ? space / 10 : 2ull << 30;
        say(r, GOOD, "%s free here; a trace takes at most %s", tmk_size_text(space, size),
            tmk_size_text(bound, most));
    }
}

static void check_limit(struct result *r)
{
    struct rlimit limit;
    char size[TMK_AMOUNT_BYTES];
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY) {
        say(r, GOOD, "files may have any size");
        return;
    }
    bool tiny = limit.rlim_cur < TMK_MAX_SIZE_LEAST;
    say(r, tiny ? BAD : FAIR, "files may have at most %s: recording stops there",
        tmk_size_text((uint64_t)limit.rlim_cur, size));
    fix(r, "ulimit -f unlimited");
}

static void check_sqlite(struct result *r)
{
    say(r, GOOD, "%s", sqlite3_libversion());
}

/* ---- the proof ---- */

static void judge_trace(struct result *r, const char *folder)
{
    struct tmk_run *run = NULL;
    struct tmk_verify *v = NULL;
    struct tmk_error err = {0};
    char count[TMK_AMOUNT_BYTES];
    int rc = tmk_run_open(folder, &run, &err);
    if (rc == 0)
        rc = tmk_verify_open(tmk_run_process(run, 0), NULL, &v, &err);
    if (rc < 0) {
        say(r, BAD, "the trace cannot be read: %s", err.text);
    } else {
        const struct tmk_verdict *d = tmk_verify_verdict(v);
        if (d->n_findings)
            say(r, BAD, "the trace is wrong: %s", d->findings[0].text);
        else
            say(r, GOOD, "one step of tinytrain, %s events, verified",
                tmk_count_text(d->n_events, count));
    }
    tmk_verify_close(v);
    tmk_run_close(run);
}

/* Remove a run's folder that we made: its traces, then itself. */
static void remove_run(const char *folder)
{
    char *command[] = {(char[]){"rm"}, (char[]){"-rf"}, (char[]){"--"}, tmk_xstrdup(folder), NULL};
    struct tmk_watch w = {.argv = command, .folder = folder, .library = ""};
    (void)tmk_watch_run(&w);
    free(command[3]);
}

static void check_recording(struct result *r)
{
    char place[] = "/tmp/tidemark-doctor.XXXXXX";
    char *library = tmk_locate_library(), *program = tmk_locate_program("tinytrain");
    if (!library || !program || !mkdtemp(place)) {
        say(r, FAIR, "not tried: %s",
            !library   ? "no library"
            : !program ? "tinytrain is not there"
                       : "no /tmp");
    } else {
        char *folder = tmk_xformat("%s/a.tmk", place);
        char *argv[] = {program, (char[]){"--steps"}, (char[]){"1"}, (char[]){"--quiet"}, NULL};
        struct tmk_watch w = {.argv = argv, .folder = folder, .library = library};
        struct tmk_outcome o = tmk_watch_run(&w);
        if (o.status != 0)
            say(r, BAD, "tinytrain ended with status %d when watched", o.status);
        else if (!tmk_summary_settle(folder))
            say(r, BAD, "a watched program left no trace");
        else
            judge_trace(r, folder);
        free(folder);
        remove_run(place);
    }
    if (r->grade == BAD)
        fix(r, "look at the other lines first; then please report it");
    free(library);
    free(program);
}

static const struct {
    const char *name;
    void (*check)(struct result *r);
} checks[] = {
    {"library", check_library},     {"clock", check_clock},         {"ring in memory", check_ring},
    {"leftovers", check_leftovers}, {"disk", check_disk},           {"file size", check_limit},
    {"SQLite", check_sqlite},       {"recording", check_recording},
};

/* ---- printing ---- */

static void print_json(const struct result *results)
{
    struct tmk_json j;
    tmk_json_init(&j, stdout, 2);
    tmk_json_object(&j, NULL);
    tmk_json_array(&j, "checks");
    for (size_t i = 0; i < TMK_N(checks); i++) {
        tmk_json_object(&j, NULL);
        tmk_json_text(&j, "name", checks[i].name);
        tmk_json_text(&j, "grade", results[i].grade == BAD ? "bad" : grade_names[results[i].grade]);
        tmk_json_text(&j, "text", results[i].text);
        tmk_json_text(&j, "fix", results[i].fix[0] ? results[i].fix : NULL);
        tmk_json_end(&j);
    }
    tmk_json_end(&j);
    tmk_json_end(&j);
}

static void print_text(const struct result *results)
{
    for (size_t i = 0; i < TMK_N(checks); i++) {
        printf("%-5s %-15s %s\n", grade_names[results[i].grade], checks[i].name, results[i].text);
        if (results[i].fix[0])
            printf("%-21s fix: %s\n", "", results[i].fix);
    }
}

static int run(const struct tmk_args *args)
{
    struct result results[TMK_N(checks)];
    bool bad = false;
    memset(results, 0, sizeof results);
    for (size_t i = 0; i < TMK_N(checks); i++) {
        checks[i].check(&results[i]);
        bad |= results[i].grade == BAD;
    }
    if (tmk_args_get(args, "json"))
        print_json(results);
    else
        print_text(results);
    return bad ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"json", 0, NULL, NULL, "one object: checks, with name grade text fix"},
};

static const char *const examples[] = {
    "tidemark doctor",
    "a line for each thing looked at; exit status 1 when one is BAD",
    NULL,
};

const struct tmk_command tmk_cmd_doctor = {
    .name = "doctor",
    .summary = "Say what works on this machine and how to fix the rest",
    .usage = "[--json]",
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .run = run,
};
