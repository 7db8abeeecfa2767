/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_export.c - a run in the formats of other tools. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/moment_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/export_file.h"
#include "cli/output/heartbeat.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "interop/out/export.h"
#include "interop/out/tables_out.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/progress.h"
#include "model/run.h"
#include "model/watched.h"
#include "passes/peak.h"
#include "sql/sql.h"
#include "sql/table_doc.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

struct job {
    const struct tmk_args *args;
    const struct format *format;
    struct tmk_export x;
    struct tmk_moment_answer shown; /* of formats that show a moment */
    struct tmk_export_table table;
    struct tmk_export_file file;
    struct tmk_export_notes notes;
};

/* Which options a format has. */
enum { HAS_PROCESS = 1, HAS_RANGE = 2, HAS_MOMENT = 4, HAS_TABLE = 8, HAS_CELLS = 16 };

struct format {
    const char *name;
    const char *ending; /* of the file's name */
    unsigned options;
    enum tmk_export_needs needs;
    bool is_binary; /* no good on a screen */
    const char *unit;
    const char *open_with;
    int (*write)(struct job *j, struct tmk_error *err);
};

/* ---- writing ---- */

static int write_torch(struct job *j, struct tmk_error *err)
{
    return tmk_export_torch_snapshot(&j->x, j->file.fd, &j->notes, err);
}

static int write_perfetto(struct job *j, struct tmk_error *err)
{
    return tmk_export_perfetto(&j->x, j->file.fd, &j->notes, err);
}

/* Let `write` write to the file as a stream. Its errors count as errors of the stream. */
static int write_stream(struct job *j, int (*write_to)(struct job *, FILE *, struct tmk_error *),
                        struct tmk_error *err)
{
    int fd = dup(j->file.fd);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot write");
    int rc = write_to(j, out, err);
    bool is_bad = ferror(out) != 0;
    int reason = errno;
    if (fclose(out) != 0) {
        is_bad = true;
        reason = errno;
    }
    return rc == 0 && is_bad ? tmk_fail_os(err, TMK_EIO, reason, "cannot write") : rc;
}

static int speedscope_to(struct job *j, FILE *out, struct tmk_error *err)
{
    return tmk_export_speedscope(&j->x, out, &j->notes, err);
}

static int folded_to(struct job *j, FILE *out, struct tmk_error *err)
{
    return tmk_export_folded(&j->x, out, &j->notes, err);
}

static int table_to(struct job *j, FILE *out, struct tmk_error *err)
{
    return tmk_export_table(&j->x, &j->table, out, &j->notes, err);
}

static int write_speedscope(struct job *j, struct tmk_error *err)
{
    return write_stream(j, speedscope_to, err);
}

static int write_folded(struct job *j, struct tmk_error *err)
{
    return write_stream(j, folded_to, err);
}

/* Write a table, with a heartbeat: SQL cannot say how far it is. */
static int write_export_table(struct job *j, struct tmk_error *err)
{
    struct tmk_heartbeat heartbeat;
    tmk_heartbeat_start(&heartbeat, j->table.name);
    int rc = write_stream(j, table_to, err);
    tmk_heartbeat_stop(&heartbeat);
    return rc;
}

static int write_sqlite(struct job *j, struct tmk_error *err)
{
    struct tmk_heartbeat heartbeat;
    tmk_heartbeat_start(&heartbeat, "copying tables");
    int rc = tmk_export_sqlite(&j->x, j->file.path, &j->notes, err);
    tmk_heartbeat_stop(&heartbeat);
    return rc;
}

static const struct format formats[] = {
    {"torch-snapshot", "pickle", HAS_PROCESS | HAS_RANGE, TMK_EXPORT_PLAIN, true, "entries",
     "https://pytorch.org/memory_viz", write_torch},
    {"perfetto", "perfetto-trace", HAS_PROCESS | HAS_RANGE, TMK_EXPORT_PLAIN, true, "events",
     "https://ui.perfetto.dev", write_perfetto},
    {"speedscope", "speedscope.json", HAS_PROCESS | HAS_MOMENT, TMK_EXPORT_ANY, false, "stacks",
     "https://www.speedscope.app", write_speedscope},
    {"folded", "folded", HAS_PROCESS | HAS_MOMENT, TMK_EXPORT_ANY, false, "stacks",
     "flamegraph.pl --countname bytes", write_folded},
    {"csv", "csv", HAS_PROCESS | HAS_TABLE | HAS_CELLS, TMK_EXPORT_ANY, false, "rows", NULL,
     write_export_table},
    {"json", "json", HAS_PROCESS | HAS_TABLE, TMK_EXPORT_ANY, false, "rows", NULL,
     write_export_table},
    {"sqlite", "sqlite", 0, TMK_EXPORT_NAMED, true, "rows", "sqlite3", write_sqlite},
};

/* ---- the question ---- */

static const struct {
    const char *name;
    unsigned needs;
} limited[] = {
    {"rank", HAS_PROCESS}, {"device", HAS_PROCESS}, {"from", HAS_RANGE},  {"until", HAS_RANGE},
    {"at", HAS_MOMENT},    {"what", HAS_MOMENT},    {"table", HAS_TABLE}, {"csv-safe", HAS_CELLS},
};

static int check_export_options(const struct job *j)
{
    for (size_t i = 0; i < TMK_N(limited); i++) {
        if (!tmk_args_get(j->args, limited[i].name) || (j->format->options & limited[i].needs))
            continue;
        tmk_say("--%s means nothing for %s; see: tidemark export --help", limited[i].name,
                j->format->name);
        return TMK_EXIT_USAGE;
    }
    return 0;
}

/* Find the start or end of a step, in time of the run. False: there is no such step. */
static bool step_time(const struct tmk_process *p, int64_t step, bool is_end, uint64_t *ret_ns)
{
    bool is_found = false;
    uint64_t best = 0;
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(p->reader); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(p->reader, i);
        uint64_t ns = is_end ? row->end_ns : row->start_ns;
        if (row->step != step || (is_found && (is_end ? ns <= best : ns >= best)))
            continue;
        is_found = true;
        best = ns;
    }
    *ret_ns = best + p->offset_ns;
    return is_found;
}

/* Read --from or --until: a time, or the start or end of a step. */
static int ask_edge(const struct job *j, struct tmk_process *p, const char *option, uint64_t *ret)
{
    const char *text = tmk_args_get(j->args, option);
    struct tmk_moment_answer shown = {.p = p};
    if (!text)
        return 0;
    int status = tmk_moment_answer_ask(&shown, option, text, NULL);
    if (status != 0)
        return status;
    if (shown.asked.kind == TMK_MOMENT_TIME) {
        *ret = shown.asked.time_ns + p->offset_ns;
        return 0;
    }
    if (step_time(p, shown.asked.step, *ret != 0, ret))
        return 0;
    tmk_say("--%s: there is no step %" PRId64 " in %s", option, shown.asked.step, p->file);
    return TMK_EXIT_USAGE;
}

static int ask_range(struct job *j, struct tmk_process *p)
{
    j->x.until_ns = UINT64_MAX;
    int status = ask_edge(j, p, "from", &j->x.from_ns);
    if (status == 0)
        status = ask_edge(j, p, "until", &j->x.until_ns);
    if (status == 0 && j->x.from_ns > j->x.until_ns) {
        tmk_say("--until is before --from: nothing is between");
        status = TMK_EXIT_USAGE;
    }
    return status;
}

static int ask_moment(struct job *j)
{
    static const char *const whats[] = {"peak", "allocated", "left"};
    const char *what = tmk_args_get(j->args, "what"), *at = tmk_args_get(j->args, "at");
    if (at && strcmp(at, "peak") == 0)
        at = NULL;
    for (unsigned i = 0; what && i < TMK_N(whats); i++)
        if (strcmp(what, whats[i]) == 0)
            j->x.what = (enum tmk_export_what)i;
    if (at && j->x.what != TMK_EXPORT_AT) {
        tmk_say("--at says when, --what %s covers the whole run: give one of them", what);
        return TMK_EXIT_USAGE;
    }
    j->shown.p = j->x.p;
    int status = tmk_moment_answer_ask(&j->shown, "at", at, tmk_args_get(j->args, "device"));
    j->x.moment = j->shown.asked;
    j->x.any_device = false;
    j->x.device = j->shown.asked.device;
    return status;
}

static int complain_table(const char *name)
{
    char buffer[TMK_LONGEST_NEAR + 1];
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    char *all = tmk_xstrdup("");
    for (size_t i = 0; i < n; i++) {
        const char *dot = strchr(tables[i].name, '.'), *known = dot ? dot + 1 : tables[i].name;
        char *more = tmk_xformat("%s%s%.*s", all, i ? "|" : "", (int)strcspn(known, "("), known);
        free(all);
        all = more;
    }
    const char *nearest = tmk_nearest_choice(all, name, buffer);
    free(all);
    if (nearest)
        tmk_say("there is no table '%s'; did you mean %s?", name, nearest);
    else
        tmk_say("there is no table '%s'; what there is: tidemark tables", name);
    return TMK_EXIT_USAGE;
}

/* Read which table to export, how, and whether to export all ranks or one. */
static int ask_table(struct job *j)
{
    const char *name = tmk_args_get(j->args, "table"), *rank = tmk_args_get(j->args, "rank");
    j->table = (struct tmk_export_table){.name = name ? name : "allocations",
                                         .is_json = strcmp(j->format->name, "json") == 0,
                                         .is_safe = tmk_args_get(j->args, "csv-safe") != NULL,
                                         .rank = -1};
    const struct tmk_sql_table *table = tmk_export_find_table(j->table.name);
    if (!table)
        return complain_table(j->table.name);
    if (rank && (tmk_integer_parse(rank, &j->table.rank) < 0 || j->table.rank < 0)) {
        tmk_say("--rank: '%s' is not a rank: 0, 1, 2 ...", rank);
        return TMK_EXIT_USAGE;
    }
    static const char *const columns[] = {"rank", "device"};
    for (size_t i = 0; i < TMK_N(columns); i++)
        if (tmk_args_get(j->args, columns[i]) && !tmk_export_has_column(table, columns[i])) {
            tmk_say("--%s: %s has no column of that name", columns[i], table->name);
            return TMK_EXIT_USAGE;
        }
    return 0;
}

/* Find the device by its name, in the process or, where all are shown, in any. */
static int ask_device(struct job *j)
{
    const char *name = tmk_args_get(j->args, "device");
    struct tmk_process *p = j->x.p ? j->x.p : tmk_run_process(j->x.run, 0);
    char text[24];
    j->x.any_device = name == NULL;
    for (uint32_t i = 0; name && !j->x.p && i < tmk_run_n_processes(j->x.run); i++) {
        const struct tmk_reader *r = tmk_run_process(j->x.run, i)->reader;
        for (uint64_t k = 0; k < tmk_reader_n_step_rows(r); k++)
            if (strcmp(tmk_device_name(tmk_reader_step_row(r, k)->device, text), name) == 0)
                p = tmk_run_process(j->x.run, i);
    }
    return !name || tmk_target_device(p, name, &j->x.device) ? 0 : TMK_EXIT_USAGE;
}

/* Read processes, devices and times, as far as the format has them. */
static int ask_export(struct job *j)
{
    const char *rank = tmk_args_get(j->args, "rank");
    unsigned has = j->format->options;
    bool is_of_one = (has & HAS_MOMENT) || strcmp(j->format->name, "torch-snapshot") == 0;
    if (is_of_one || (rank && (has & HAS_RANGE))) {
        j->x.p = tmk_target_pick(j->x.run, rank);
        if (!j->x.p)
            return TMK_EXIT_USAGE;
    }
    if (has & HAS_MOMENT)
        return ask_moment(j);
    int status = has & HAS_TABLE ? ask_table(j) : 0;
    if (status == 0)
        status = ask_device(j);
    if (status == 0 && (has & HAS_RANGE))
        status = ask_range(j, j->x.p ? j->x.p : tmk_run_process(j->x.run, 0));
    return status;
}

/* ---- the answer ---- */

/* Returns "a" for "runs/a.tmk/"; the caller's. */
static char *base_of_path(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    if (end - start > 4 && strncmp(path + end - 4, ".tmk", 4) == 0)
        end -= 4;
    bool is_name = end > start && path[start] != '.';
    return is_name ? tmk_xformat("%.*s", (int)(end - start), path + start) : tmk_xstrdup("run");
}

/* Returns a path in the current folder, named after the run, the rank and the table; the caller's.
 */
static char *default_path(const struct job *j)
{
    const char *rank = tmk_args_get(j->args, "rank"), *table = tmk_args_get(j->args, "table");
    bool has_table = j->format->options & HAS_TABLE;
    char *base = base_of_path(tmk_run_path(j->x.run));
    char *path = tmk_xformat("%s%s%s%s%.*s.%s", base, rank ? ".rank" : "", rank ? rank : "",
                             has_table ? "." : "",
                             has_table ? (int)strcspn(table ? table : "allocations", "(") : 0,
                             table ? table : "allocations", j->format->ending);
    free(base);
    return path;
}

static void say_notes(const struct job *j)
{
    char text[TMK_AMOUNT_BYTES];
    if (j->notes.is_host)
        tmk_say("the CPU's blocks stand in the file as those of device 0, in made-up segments");
    else if (j->notes.made_up_segments)
        tmk_say("not all blocks lie in a segment that was recorded: around those, segments are "
                "made up");
    if (j->notes.resolution_ns)
        tmk_say("there are too many events for a viewer: counters have the most and the last of "
                "every %s; --from and --until give all of a shorter time",
                tmk_time_text(j->notes.resolution_ns, text));
    if ((j->format->options & HAS_MOMENT) && j->x.what == TMK_EXPORT_AT && j->shown.exact &&
        j->shown.exact->peak_bytes > j->notes.at_bytes)
        tmk_say(
            "what was alive at the peak (%s) is no longer in the trace, or not all of it can be "
            "read; exported is the largest moment that is left",
            tmk_size_text(j->shown.exact->peak_bytes, text));
}

static void say_exported(const struct job *j)
{
    char count[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    struct stat found;
    say_notes(j);
    if (j->file.is_stdout || stat(j->file.name, &found) < 0 || !S_ISREG(found.st_mode))
        return;
    tmk_say("%s: %s %s, %s%s%s", j->file.name, tmk_count_text(j->notes.n_events, count),
            j->format->unit, tmk_size_text((uint64_t)found.st_size, size),
            j->format->open_with ? _("; to be opened with ") : "",
            j->format->open_with ? j->format->open_with : "");
}

static int complain_of_export(const struct job *j, int rc, const struct tmk_error *err)
{
    tmk_say("%s: %s", rc == TMK_EIO ? j->file.name : tmk_run_path(j->x.run),
            err->text[0] ? err->text : tmk_result_text(rc));
    return rc == TMK_EDAMAGED || rc == TMK_EFORMAT ? TMK_EXIT_BAD_TRACE : TMK_EXIT_FINDING;
}

static int answer_export(struct job *j, const char *path)
{
    struct tmk_progress progress;
    struct tmk_error err = {0};
    if (j->format->is_binary && strcmp(path, "-") == 0 && tmk_is_screen(stdout)) {
        tmk_say("%s is nothing for a screen: give -o FILE, or pipe it on", j->format->name);
        return TMK_EXIT_USAGE;
    }
    int status = tmk_export_file_open(&j->file, path, j->format->needs);
    if (status != 0)
        return status;
    tmk_progress_init(&progress, stderr, tmk_run_path(j->x.run));
    j->x.progress = (struct tmk_visitor){.arg = &progress, .progress = tmk_progress_tell};
    int rc = j->format->write(j, &err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        status = complain_of_export(j, rc, &err);
    int closed = tmk_export_file_close(&j->file, rc == 0);
    if (status == 0 && closed == 0)
        say_exported(j);
    return status != 0 ? status : closed;
}

static int run_export(const struct tmk_args *args)
{
    struct job j = {.args = args};
    const char *to = tmk_args_get(args, "to"), *path = tmk_args_get(args, "output");
    for (size_t i = 0; to && i < TMK_N(formats); i++)
        if (strcmp(formats[i].name, to) == 0)
            j.format = &formats[i];
    if (!j.format) {
        struct tmk_arena words = {0};
        tmk_say(
            "export wants a format: tidemark export %s --to FORMAT; see: tidemark export --help",
            tmk_xshell_word(&words, args->operands[0]));
        tmk_arena_fini(&words);
        return TMK_EXIT_USAGE;
    }
    int status = check_export_options(&j);
    if (status == 0 && !path && tmk_watched_host()) {
        tmk_say("of a process on another machine export wants -o FILE (-: stdout)");
        status = TMK_EXIT_USAGE;
    }
    if (status == 0)
        status = tmk_target_open(args->operands[0], &j.x.run);
    if (status != 0)
        return status;
    status = ask_export(&j);
    if (status == 0) {
        char *chosen = path ? tmk_xstrdup(path) : default_path(&j);
        status = answer_export(&j, chosen);
        free(chosen);
    }
    tmk_run_close(j.x.run);
    return status;
}

static const struct tmk_option options[] = {
    {"to", 0, "FORMAT", "torch-snapshot|perfetto|speedscope|folded|csv|json|sqlite",
     "the format, see below"},
    {"output", 'o', "FILE", NULL, "the file; - is stdout (named after RUN, here)"},
    TMK_REMOTE_OPTION,
    TMK_OPTION_HEADING("what is written"),
    {"rank", 0, "N", NULL, "this rank (the largest peak, or all)"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (all, or the largest peak)"},
    {"from", 0, "TIME|STEP", NULL, "from this moment on: 1.5s; 12, step:12"},
    {"until", 0, "TIME|STEP", NULL, "up to this moment, or to the end of this step"},
    {"at", 0, "TIME|STEP", NULL, "stacks that were live at this moment (peak)"},
    {"what", 0, "WHAT", "peak|allocated|left",
     "stacks live at the peak, allocated in all, or left"},
    {"table", 0, "TABLE", NULL, "of csv and json (allocations)"},
    {"csv-safe", 0, NULL, NULL, "csv: put an apostrophe before cells that begin a formula"},
};

static const char *const description[] = {
    "torch-snapshot\twhat torch.cuda.memory._dump_snapshot() writes, with categories, for "
    "https://pytorch.org/memory_viz: one process, all its GPUs or one (--device). --from and "
    "--until make it small enough for the viewer.",
    "perfetto\tfor https://ui.perfetto.dev: memory as counters by category; steps, stages and "
    "modules as slices; marks and OOMs; all ranks",
    "speedscope\tfor https://www.speedscope.app: bytes by stack, live at the peak (or --at), "
    "allocated in all, and live at the end",
    "folded\tthe same for flamegraph.pl, one stack a line: outer;inner BYTES",
    "csv, json\tone table (tidemark tables lists them); json as in `tidemark query`",
    "sqlite\tall tables in one file, for any tool that reads SQLite",
    "A file gets its name when it is complete. docs/export.md describes the formats.",
    NULL,
};

static const char *const examples[] = {
    "tidemark export train.tmk --to torch-snapshot",
    "train.pickle, to drop on https://pytorch.org/memory_viz",
    "tidemark export train.tmk --to perfetto -o train.perfetto-trace",
    "counters and steps on a time line, all ranks",
    "tidemark export train.tmk --to folded -o - | flamegraph.pl >peak.svg",
    "what filled the memory at the peak, as a flame graph",
    "tidemark export train.tmk --to csv --table steps -o -",
    "the history of steps on stdout",
    NULL,
};

const struct tmk_command tmk_cmd_export = {
    .name = "export",
    .group = TMK_GROUP_FILES,
    .summary = "Write a run in the format of another tool",
    .usage = "RUN|[HOST:]PID --to FORMAT [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .operand = TMK_OPERAND_RUN,
    .examples = examples,
    .writes_data = true,
    .run = run_export,
};
