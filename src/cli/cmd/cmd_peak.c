/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_peak.c - what was alive at the high-water mark, or at a time or step. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/answers/answer_json.h"
#include "cli/answers/moment_answer.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/target.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/print.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/group.h"
#include "passes/peak.h"
#include "trace/defs.h"
#include "trace/reader.h"

enum { SHOWN_FRAMES = 4 };

/* What is asked for, and what is found. */
struct answer {
    struct tmk_moment_answer moment;
    enum tmk_by by;
    const char *by_name;
    const struct tmk_peak_row *rows;
    uint64_t n_rows;
};

/* ---- the question ---- */

static int ask_peak(struct answer *a, const struct tmk_args *args)
{
    const char *by = tmk_args_get(args, "by");
    a->by_name = by ? by : "category";
    if (!tmk_by_find(a->by_name, &a->by))
        return TMK_EXIT_USAGE; /* not one of the option's choices: the parser has said so */
    return tmk_moment_answer_ask(&a->moment, "at", tmk_args_get(args, "at"),
                                 tmk_args_get(args, "device"));
}

/* ---- printing ---- */

/* Returns "file:line function" of frame i, innermost first; the caller's. NULL behind the last. */
static char *frame_text(const struct answer *a, uint32_t stack, uint32_t i, bool short_file)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    char text[TMK_FRAME_TEXT_BYTES];
    if (!tmk_reader_stack(a->moment.p->reader, stack, &frames) || i >= frames.n_frames)
        return NULL;
    bool known = tmk_process_frame(a->moment.p, frames.frames[i], &f);
    return tmk_xstrdup(tmk_frame_text(known ? &f : NULL, short_file, text));
}

static void add_peak_object(struct tmk_tree *t, const struct answer *a,
                            const struct tmk_peak_row *row)
{
    tmk_tree_object(t, NULL);
    tmk_tree_text(t, "key", row->key);
    tmk_tree_u64(t, "bytes", row->bytes);
    tmk_tree_u64(t, "blocks", row->n_blocks);
    if (a->by == TMK_BY_STACK)
        tmk_answer_put_stack(t, "stack", a->moment.p, row->stack);
    tmk_tree_end(t);
}

static void print_peak_json(const struct answer *a)
{
    struct tmk_tree t;
    uint64_t reserved = 0;
    tmk_tree_init_json(&t, stdout, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_u64(&t, "time_ns", tmk_moment_answer_ns(&a->moment));
    tmk_answer_put_step(&t, "step", tmk_moment_answer_step(&a->moment));
    tmk_tree_u64(&t, "allocated", tmk_moment_answer_bytes(&a->moment));
    bool has_reserved = tmk_moment_answer_reserved(&a->moment, &reserved);
    tmk_tree_u64_if(&t, "reserved", has_reserved, reserved);
    tmk_answer_put_device(&t, tmk_moment_answer_device(&a->moment));
    tmk_answer_put_rank(&t, a->moment.p);
    tmk_answer_put_pid(&t, a->moment.p);
    bool is_other = a->moment.detail_lost && tmk_peak_found(a->moment.peak);
    if (tmk_tree_object_if(&t, "kept", is_other)) {
        tmk_tree_u64(&t, "time_ns", tmk_peak_time_ns(a->moment.peak) + a->moment.p->offset_ns);
        tmk_answer_put_step(&t, "step", tmk_peak_step(a->moment.peak));
        tmk_tree_u64(&t, "allocated", tmk_peak_bytes(a->moment.peak));
        tmk_tree_end(&t);
    }
    tmk_tree_list(&t, "by");
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_peak_object(&t, a, &a->rows[i]);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

static void print_headline(const struct answer *a)
{
    static const char *const what[] = {[TMK_MOMENT_PEAK] = "at the peak",
                                       [TMK_MOMENT_TIME] = "",
                                       [TMK_MOMENT_STEP] = "at the step's peak"};
    char size[TMK_AMOUNT_BYTES], time[TMK_AMOUNT_BYTES], device[24], step[TMK_STEP_TEXT_BYTES];
    const char *kind = what[a->moment.asked.kind];
    tmk_print(stdout, "%s on %s%s%s, after %s%s\n",
              tmk_size_text(tmk_moment_answer_bytes(&a->moment), size),
              tmk_device_name(tmk_moment_answer_device(&a->moment), device), *kind ? " " : "", kind,
              tmk_time_text(tmk_moment_answer_ns(&a->moment), time),
              tmk_step_text(a->moment.p, tmk_moment_answer_step(&a->moment), ", ", step));
}

/* Returns the frame to begin a line with: native frames would leave no room for the program's own.
 */
static uint32_t first_shown(const struct answer *a, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(a->moment.p->reader, stack, &frames))
        return 0;
    for (uint32_t i = 0; i < frames.n_frames; i++)
        if (tmk_reader_frame(a->moment.p->reader, frames.frames[i], &f) && !tmk_frame_is_native(&f))
            return i;
    return 0;
}

/* Add a stack in one line: the innermost frame < its caller < ..., as far as there is room. */
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
    char text[TMK_AMOUNT_BYTES];
    uint64_t whole = tmk_peak_bytes(a->moment.peak);
    if (a->by == TMK_BY_STACK)
        add_stack_cell(t, a, row);
    else
        tmk_table_cell(t, row->key);
    tmk_table_size(t, row->bytes);
    tmk_table_count(t, row->n_blocks);
    tmk_table_cell(t, tmk_percent_text(row->bytes, whole, text));
    if (has_bar)
        tmk_table_bar(t, row->bytes, whole);
}

static void print_peak_table(const struct answer *a)
{
    const struct tmk_column columns[] = {
        {a->by_name, TMK_LEFT, TMK_SHRINK},
        {"size", TMK_RIGHT, TMK_FIXED},
        {"blocks", TMK_RIGHT, TMK_FIXED},
        {"share", TMK_RIGHT, TMK_FIXED},
        {"", TMK_LEFT, TMK_BAR},
    };
    bool has_bar = a->by != TMK_BY_STACK; /* stacks need the room */
    struct tmk_table *t = tmk_table_open(columns, TMK_N(columns) - !has_bar);
    for (uint64_t i = 0; i < a->n_rows; i++)
        add_table_row(t, a, &a->rows[i], has_bar);
    struct tmk_sheet sheet = tmk_sheet_on(stdout);
    print_headline(a);
    tmk_sheet_table(&sheet, t);
}

static int answer_peak(struct answer *a, bool json)
{
    struct tmk_error err = {0};
    int status = tmk_moment_answer_sweep(&a->moment);
    if (status != 0)
        return status;
    if (tmk_peak_group(a->moment.peak, a->by, &a->rows, &a->n_rows, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    if (a->moment.detail_lost)
        tmk_moment_answer_say_lost(&a->moment);
    if (json)
        print_peak_json(a);
    else
        print_peak_table(a);
    return TMK_EXIT_OK;
}

static int run_peak(const struct tmk_args *args)
{
    struct tmk_run *target = NULL;
    struct answer a = {0};
    int status = tmk_target_open_one(args, &target, &a.moment.p);
    if (status == 0)
        status = ask_peak(&a, args);
    if (status == 0)
        status = answer_peak(&a, tmk_args_get(args, "json") != NULL);
    tmk_moment_answer_fini(&a.moment);
    tmk_run_close(target);
    return status;
}

static const struct tmk_option options[] = {
    {"at", 0, "TIME|STEP", NULL, "this moment instead: 1.5s, 300ms; 12, step:12"},
    {"by", 0, "KEY", "category|module|component|stage|step|stack|tensor",
     "category (default) or another key, see below"},
    {"device", 0, "NAME", NULL, "cpu, cuda:0 ... (the device with the largest peak)"},
    {"rank", 0, "N", NULL, "this rank (the rank with the largest peak)"},
    {"json", 0, NULL, NULL, "print one JSON object"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "A step stands for its own peak. Times count from the start of the run.",
    "category\tparameter, gradient, optimizer_state, activation, input ...",
    "module\tthe nn.Module that allocated the block, by its dotted path",
    "component\tattention, mlp, embedding, normalization, lora ...",
    "stage\tforward, backward, optimizer or another stage",
    "step\tthe training step in which the block was allocated",
    "stack\tthe allocation site, then its callers after '<'",
    "tensor\tthe name of the tensor, where it has one",
    "docs/owners.md says how a block gets these keys. The file that TIDEMARK_COMPONENTS names "
    "adds components.",
    NULL,
};

static const char *const json_keys[] = {
    "time_ns, step\tthe moment",
    "allocated, reserved\tbytes at that moment",
    "device, rank, pid\twhere",
    "by\ta list of key bytes blocks; with --by stack also stack: all frames, innermost first",
    "kept\tnull, or the moment that `by` describes (time_ns step allocated) when the trace no "
    "longer has the details of the peak (--max-size)",
    NULL,
};

static const char *const examples[] = {
    "tidemark peak train.tmk",
    "what filled the memory at the peak, by category",
    "tidemark peak train.tmk --by stack",
    "the same by the lines that allocated it",
    "tidemark peak train.tmk --by module --at step:12",
    "what filled it at the peak of step 12, by module",
    "tidemark peak 4711 --json",
    "a running process, for a script",
    NULL,
};

const struct tmk_command tmk_cmd_peak = {
    .name = "peak",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Show what was live at the peak of memory",
    .usage = "RUN|[HOST:]PID [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_RUN,
    .json = json_keys,
    .examples = examples,
    .run = run_peak,
};
