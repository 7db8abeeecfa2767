/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_peak.c - what was alive at the high-water mark, or at a time or step. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/answers/moment_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/json.h"
#include "kit/print.h"

enum { BAR_WIDTH = 16, SHOWN_FRAMES = 4 };

/* What is asked and what is answered. */
struct answer {
    struct tmk_look look;
    enum tmk_by by;
    const char *by_name;
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
};

/* ---- the question ---- */

static int ask(struct answer *a, const struct tmk_args *args)
{
    const char *by = tmk_args_get(args, "by");
    a->by_name = by ? by : "category";
    if (!tmk_by_find(a->by_name, &a->by))
        return TMK_EXIT_USAGE; /* not one of the option's choices: the parser has said so */
    return tmk_look_ask(&a->look, "at", tmk_args_get(args, "at"), tmk_args_get(args, "device"));
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
    if (!tmk_reader_stack(a->look.p->reader, stack, &frames) || i >= frames.n_frames)
        return NULL;
    bool known = tmk_process_frame(a->look.p, frames.frames[i], &f);
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
    tmk_json_u64(&j, "time_ns", tmk_look_ns(&a->look));
    add_step(&j, tmk_look_step(&a->look));
    tmk_json_u64(&j, "allocated", tmk_look_bytes(&a->look));
    if (tmk_look_reserved(&a->look, &reserved))
        tmk_json_u64(&j, "reserved", reserved);
    else
        tmk_json_null(&j, "reserved");
    tmk_json_text(&j, "device", tmk_device_name(tmk_look_device(&a->look), device));
    if (a->look.p->rank >= 0)
        tmk_json_i64(&j, "rank", a->look.p->rank);
    else
        tmk_json_null(&j, "rank");
    tmk_process_json_pid(&j, a->look.p);
    if (a->look.detail_lost && tmk_peak_found(a->look.peak)) {
        tmk_json_object(&j, "kept");
        tmk_json_u64(&j, "time_ns", tmk_peak_time_ns(a->look.peak) + a->look.p->offset_ns);
        add_step(&j, tmk_peak_step(a->look.peak));
        tmk_json_u64(&j, "allocated", tmk_peak_bytes(a->look.peak));
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
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    const char *kind = what[a->look.moment.kind];
    tmk_print(stdout, "%s on %s%s%s, after %s%s\n", tmk_size_text(tmk_look_bytes(&a->look), size),
              tmk_device_name(tmk_look_device(&a->look), device), *kind ? " " : "", kind,
              tmk_time_text(tmk_look_ns(&a->look), time),
              tmk_step_text(a->look.p, tmk_look_step(&a->look), ", ", step));
}

/* Where to begin in a line: native frames would leave no room for the program's own. */
static uint32_t first_shown(const struct answer *a, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(a->look.p->reader, stack, &frames))
        return 0;
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (tmk_reader_frame(a->look.p->reader, frames.frames[i], &f) && !tmk_frame_is_native(&f))
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
    uint64_t whole = tmk_peak_bytes(a->look.peak);
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
    int status = tmk_look_sweep(&a->look);
    if (status != 0)
        return status;
    if (tmk_peak_group(a->look.peak, a->by, &a->rows, &a->n_rows, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    if (a->look.detail_lost)
        tmk_look_say_lost(&a->look);
    if (json)
        print_json(a);
    else
        print_table(a);
    return TMK_EXIT_OK;
}

static int run(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    struct answer a = {0};
    int status = tmk_target_open_one(args, &target, &a.look.p);
    if (status == 0)
        status = ask(&a, args);
    if (status == 0)
        status = answer(&a, tmk_args_get(args, "json") != NULL);
    tmk_look_fini(&a.look);
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
