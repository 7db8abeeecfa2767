/* SPDX-License-Identifier: MIT */
/* cli/cmd_peak.c - what was alive at the high-water mark, or at a time or step. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chart.h"
#include "cli/commands.h"
#include "cli/sheet.h"
#include "cli/target.h"
#include "cli/xalloc.h"
#include "kit/amount.h"
#include "kit/json.h"
#include "kit/progress.h"
#include "passes/peak.h"
#include "passes/quality.h"
#include "passes/steps.h"

enum { BAR_WIDTH = 16, SHOWN_FRAMES = 4 };

static const struct {
    const char *name;
    enum tmk_by by;
} keys[] = {
    {"category", TMK_BY_CATEGORY}, {"module", TMK_BY_MODULE}, {"component", TMK_BY_COMPONENT},
    {"stage", TMK_BY_STAGE},       {"step", TMK_BY_STEP},     {"stack", TMK_BY_STACK},
    {"tensor", TMK_BY_TENSOR},
};

/* What is asked and what is answered. */
struct answer {
    struct tmk_process *p;
    struct tmk_moment moment;
    enum tmk_by by;
    const char *by_name;
    struct tmk_peak *peak;
    struct tmk_quality quality;
    const struct tmk_step_row *exact; /* the history's row of the moment; NULL: none */
    bool detail_lost;                 /* it had more than the largest moment kept */
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
};

/* ---- the question ---- */

/* "300ms", "1.5s": a time since the run's start; "12", "step:12": a step. */
static bool parse_moment(const char *text, const struct tmk_process *p, struct tmk_moment *m)
{
    uint64_t run_ns;
    const char *number = strncmp(text, "step:", 5) == 0 ? text + 5 : text;
    if (tmk_integer_parse(number, &m->step) == 0) {
        m->kind = TMK_MOMENT_STEP;
        return true;
    }
    if (tmk_time_parse(text, &run_ns) == 0) {
        m->kind = TMK_MOMENT_TIME;
        m->time_ns = run_ns > p->offset_ns ? run_ns - p->offset_ns : 0;
        return true;
    }
    tmk_say("--at: '%s' is neither a step (12, step:12) nor a time (1.5s, 300ms, 42ns)", text);
    return false;
}

/* The history's row that has the peak asked for. */
static const struct tmk_step_row *exact_row(const struct answer *a)
{
    const struct tmk_step_row *best = NULL;
    const struct tmk_reader *r = a->p->reader;
    if (a->moment.kind == TMK_MOMENT_PEAK)
        return tmk_steps_peak(a->p, a->moment.any_device, a->moment.device);
    for (uint64_t i = 0; a->moment.kind == TMK_MOMENT_STEP && i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        bool fits = row->step == a->moment.step &&
                    (a->moment.any_device || row->device == a->moment.device);
        if (fits && (!best || row->peak_bytes > best->peak_bytes))
            best = row;
    }
    return best;
}

static int ask(struct answer *a, const struct tmk_args *args)
{
    const char *at = tmk_args_get(args, "at"), *device = tmk_args_get(args, "device");
    const char *by = tmk_args_get(args, "by");
    a->moment = (struct tmk_moment){.kind = TMK_MOMENT_PEAK, .any_device = !device};
    if (at && !parse_moment(at, a->p, &a->moment))
        return TMK_EXIT_USAGE;
    if (device && !tmk_target_device(a->p, device, &a->moment.device))
        return TMK_EXIT_USAGE;
    for (size_t i = 0; i < TMK_N(keys); i++)
        if (strcmp(keys[i].name, by ? by : "category") == 0) {
            a->by = keys[i].by;
            a->by_name = keys[i].name;
        }
    /* The device is decided before the sweep, so that a moment is one device's. */
    a->exact = exact_row(a);
    const struct tmk_step_row *row = a->exact ? a->exact : tmk_steps_peak(a->p, true, 0);
    if (a->moment.any_device && row) {
        a->moment.any_device = false;
        a->moment.device = row->device;
    }
    return 0;
}

/* ---- the answer ---- */

static int sweep(struct answer *a, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_peak_open(a->p, &a->moment, &a->peak);
    if (rc < 0)
        return rc;
    tmk_progress_init(&progress, stderr, a->p->file);
    struct tmk_visitor visitor = tmk_peak_visitor(a->peak);
    struct tmk_visitor both[] = {visitor, {.arg = &progress, .progress = tmk_progress_tell}};
    rc = tmk_process_sweep(a->p, both, TMK_N(both), &rp, err);
    tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    a->quality = tmk_quality_of(a->p, &rp);
    rc = tmk_peak_finish(a->peak, &rp, err);
    tmk_replay_fini(&rp);
    if (rc == 0)
        rc = tmk_peak_group(a->peak, a->by, &a->rows, &a->n_rows, err);
    uint64_t found = tmk_peak_found(a->peak) ? tmk_peak_bytes(a->peak) : 0;
    a->detail_lost = a->exact && a->exact->peak_bytes > found;
    return rc;
}

/* Why there is nothing to show. */
static int complain_not_found(const struct answer *a)
{
    const struct tmk_moment *m = &a->moment;
    char time[TMK_AMOUNT_BYTES];
    if (m->kind == TMK_MOMENT_TIME)
        tmk_say("the detail of that time was given up to stay under --max-size; it begins at %s",
                tmk_time_text(a->quality.detail_from_ns + a->p->offset_ns, time));
    else if (m->kind == TMK_MOMENT_STEP && !a->exact)
        tmk_say("there is no step %" PRId64 " in %s", m->step, a->p->file);
    else
        tmk_say("no block was ever allocated in %s", a->p->file);
    return TMK_EXIT_FINDING;
}

static void say_detail_lost(const struct answer *a)
{
    char kept[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES];
    const char *why = a->quality.n_given_up ? "was given up to stay under --max-size"
                                            : "is in a part of the trace that cannot be read";
    if (!tmk_peak_found(a->peak)) {
        tmk_say("what was alive then %s", why);
        return;
    }
    tmk_say("what was alive then %s; shown is the largest moment that is left, %s after %s", why,
            tmk_size_text(tmk_peak_bytes(a->peak), kept),
            tmk_time_text(tmk_peak_time_ns(a->peak) + a->p->offset_ns, time));
}

static uint64_t answer_bytes(const struct answer *a)
{
    return a->detail_lost ? a->exact->peak_bytes : tmk_peak_bytes(a->peak);
}

static uint64_t answer_ns(const struct answer *a)
{
    uint64_t ns = a->detail_lost ? a->exact->peak_ns : tmk_peak_time_ns(a->peak);
    return ns + a->p->offset_ns;
}

static int64_t answer_step(const struct answer *a)
{
    return a->detail_lost ? a->exact->step : tmk_peak_step(a->peak);
}

static uint16_t answer_device(const struct answer *a)
{
    return a->exact ? a->exact->device : tmk_peak_device(a->peak);
}

/* ---- printing ---- */

static void add_step(struct tmk_json *j, int64_t step)
{
    if (step == TMK_NO_STEP)
        tmk_json_null(j, "step");
    else
        tmk_json_i64(j, "step", step);
}

/* "file:line function" of frame i, innermost first; the caller's. NULL behind the last. */
static char *frame_text(const struct answer *a, uint32_t stack, uint32_t i, bool short_file)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    char text[TMK_FRAME_TEXT_BYTES];
    if (!tmk_reader_stack(a->p->reader, stack, &frames) || i >= frames.n_frames)
        return NULL;
    bool known = tmk_process_frame(a->p, frames.frames[i], &f);
    return tmk_xstrdup(tmk_frame_text(known ? &f : NULL, short_file, text));
}

static void add_row(struct tmk_json *j, const struct answer *a, const struct tmk_peak_row *row)
{
    tmk_json_object(j, NULL);
    tmk_json_text(j, "key", row->key);
    tmk_json_u64(j, "bytes", row->bytes);
    tmk_json_u64(j, "blocks", row->n_blocks);
    if (a->by == TMK_BY_STACK) {
        tmk_json_array(j, "stack");
        char *text;
        for (uint32_t i = 0; (text = frame_text(a, row->stack, i, false)) != NULL; i++) {
            tmk_json_text(j, NULL, text);
            free(text);
        }
        tmk_json_end(j);
    }
    tmk_json_end(j);
}

static void print_json(const struct answer *a)
{
    struct tmk_json j;
    char device[24];
    uint64_t reserved;
    tmk_json_init(&j, stdout, 2);
    tmk_json_object(&j, NULL);
    tmk_json_u64(&j, "time_ns", answer_ns(a));
    add_step(&j, answer_step(a));
    tmk_json_u64(&j, "allocated", answer_bytes(a));
    if (!a->detail_lost && tmk_peak_reserved(a->peak, &reserved))
        tmk_json_u64(&j, "reserved", reserved);
    else
        tmk_json_null(&j, "reserved");
    tmk_json_text(&j, "device", tmk_device_name(answer_device(a), device));
    if (a->p->rank >= 0)
        tmk_json_i64(&j, "rank", a->p->rank);
    else
        tmk_json_null(&j, "rank");
    tmk_json_u64(&j, "pid", a->p->pid);
    if (a->detail_lost && tmk_peak_found(a->peak)) {
        tmk_json_object(&j, "kept");
        tmk_json_u64(&j, "time_ns", tmk_peak_time_ns(a->peak) + a->p->offset_ns);
        add_step(&j, tmk_peak_step(a->peak));
        tmk_json_u64(&j, "allocated", tmk_peak_bytes(a->peak));
        tmk_json_end(&j);
    } else {
        tmk_json_null(&j, "kept");
    }
    tmk_json_array(&j, "by");
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_row(&j, a, &a->rows[i]);
    tmk_json_end(&j);
    tmk_json_end(&j);
}

static void print_headline(const struct answer *a)
{
    static const char *const what[] = {[TMK_MOMENT_PEAK] = "at the peak",
                                       [TMK_MOMENT_TIME] = "",
                                       [TMK_MOMENT_STEP] = "at the step's peak"};
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24];
    const char *kind = what[a->moment.kind];
    printf("%s on %s%s%s, after %s", tmk_size_text(answer_bytes(a), size),
           tmk_device_name(answer_device(a), device), *kind ? " " : "", kind,
           tmk_time_text(answer_ns(a), time));
    if (answer_step(a) == TMK_NO_STEP)
        printf(", before the first step\n");
    else
        printf(", in step %" PRId64 "\n", answer_step(a));
}

/* Where to begin in a line: native frames would leave no room for the program's own. */
static uint32_t first_shown(const struct answer *a, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(a->p->reader, stack, &frames))
        return 0;
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (tmk_reader_frame(a->p->reader, frames.frames[i], &f) && !tmk_frame_is_native(&f))
            return i;
    return 0;
}

/* A stack in one line: the innermost frame < its caller < ..., as far as there is room. */
static void add_stack_cell(struct tmk_table *t, const struct answer *a,
                           const struct tmk_peak_row *row)
{
    uint32_t first = first_shown(a, row->stack);
    char *line = frame_text(a, row->stack, first, true);
    for (uint32_t i = 1; line && i < SHOWN_FRAMES; i++) {
        char *caller = frame_text(a, row->stack, first + i, true);
        char *longer = caller ? tmk_xformat("%s < %s", line, caller) : tmk_xstrdup(line);
        free(caller);
        free(line);
        line = longer;
    }
    tmk_table_cell(t, line);
    free(line);
}

static void add_table_row(struct tmk_table *t, const struct answer *a,
                          const struct tmk_peak_row *row, bool has_bar)
{
    char text[TMK_AMOUNT_BYTES], bar[3 * BAR_WIDTH + 4];
    uint64_t whole = tmk_peak_bytes(a->peak);
    if (a->by == TMK_BY_STACK)
        add_stack_cell(t, a, row);
    else
        tmk_table_cell(t, row->key);
    tmk_table_cell(t, tmk_size_text(row->bytes, text));
    tmk_table_cell(t, tmk_count_text(row->n_blocks, text));
    tmk_table_cell(t, tmk_percent_text(row->bytes, whole, text));
    if (has_bar)
        tmk_table_cell(t, tmk_bar(row->bytes, whole, BAR_WIDTH, bar));
}

static void print_table(const struct answer *a)
{
    const struct tmk_column columns[] = {
        {a->by_name, TMK_LEFT, TMK_SHRINK}, {"size", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},   {"share", TMK_RIGHT, TMK_FIXED},
        {"", TMK_LEFT, TMK_FIXED},
    };
    bool has_bar = a->by != TMK_BY_STACK; /* stacks need the room */
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns) - !has_bar);
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_table_row(t, a, &a->rows[i], has_bar);
    struct tmk_sheet sheet = {.out = stdout, .colour = tmk_wants_colour(stdout)};
    print_headline(a);
    tmk_sheet_table(&sheet, t);
}

static int answer(struct answer *a, bool json)
{
    struct tmk_error err = {0};
    int rc = sweep(a, &err);
    if (rc < 0) {
        tmk_say("%s: %s", a->p->file, err.text[0] ? err.text : tmk_result_text(rc));
        return rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    }
    if (!tmk_peak_found(a->peak) && !a->detail_lost)
        return complain_not_found(a);
    if (a->detail_lost)
        say_detail_lost(a);
    if (json)
        print_json(a);
    else
        print_table(a);
    return TMK_EXIT_OK;
}

static int run(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    int status = tmk_target_open(args->operands[0], &target);
    if (status != 0)
        return status;
    struct answer a = {.p = tmk_target_pick(target, tmk_args_get(args, "rank"))};
    status = a.p ? ask(&a, args) : TMK_EXIT_USAGE;
    if (status == 0)
        status = answer(&a, tmk_args_get(args, "json") != NULL);
    tmk_peak_close(a.peak);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"at", 0, "TIME|STEP", NULL, "not the peak but this moment: 1.5s, 300ms; 12, step:12"},
    {"by", 0, "KEY", "category|module|component|stage|step|stack|tensor",
     "category (the default) or another key, see below"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (the one with the largest peak)"},
    {"rank", 0, "N", NULL, "of this rank (the one with the largest peak)"},
    {"json", 0, NULL, NULL, "one JSON object"},
};

static const char notes[] =
    "A step stands for its own peak. Times count from the start of the run.\n"
    "\n"
    "Keys: category, module, component (attention, mlp, embedding ...), stage, step\n"
    "(that a block was made in), stack and tensor. docs/owners.md says how a block\n"
    "gets them, and how a file that TIDEMARK_COMPONENTS names adds components.\n"
    "\n"
    "A stack is shown from the line that allocated outwards, callers behind '<'.\n"
    "\n"
    "json: {\"time_ns\", \"step\", \"allocated\", \"reserved\", \"device\", \"rank\", \"pid\",\n"
    "\"kept\", \"by\": [{\"key\", \"bytes\", \"blocks\"}]}. `by` is what was alive at that\n"
    "moment; when the trace no longer has it (--max-size), `kept` says which moment\n"
    "`by` is about: time_ns, step, allocated; else it is null. Rows of --by stack\n"
    "have \"stack\" too: all frames, innermost first.\n";

static const char *const examples[] = {
    "tidemark peak a.tmk",
    "what filled the memory at its fullest, by category",
    "tidemark peak a.tmk --by stack",
    "the same by the line that allocated it",
    "tidemark peak a.tmk --by component",
    "the same by what part of the model it belongs to",
    "tidemark peak a.tmk --at step:12 --by module --json",
    "the peak of step 12 by module, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_peak = {
    .name = "peak",
    .summary = "Show what was alive at the high-water mark",
    .usage = "RUN|PID [--at TIME|STEP] [--by KEY] [--device NAME] [--rank N] [--json]",
    .notes = notes,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .operand = TMK_OPERAND_RUN,
    .examples = examples,
    .run = run,
};
