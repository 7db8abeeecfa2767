/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_eval.c - run Python in a watched process and show what it prints. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/wire.h"
#include "cli/answers/ask.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/remote/remote.h"
#include "kit/amount.h"
#include "kit/tree.h"
#include "model/watched.h"

#define SECOND_NS 1000000000u
#define DEFAULT_TIMEOUT_NS (10ull * SECOND_NS)
#define MAX_TIMEOUT_NS (86400ull * SECOND_NS)

struct order {
    struct tmk_watched process;
    char *code;
    size_t n_code;
    bool on_main;
    bool wants_json;
    uint64_t timeout_ns;
    uint64_t every_ns; /* 0: once */
    uint64_t count;    /* 0: until the process ends */
};

/* ---- the command line ---- */

/* Read "1.5" (seconds) or a time with its unit. False after a message. */
static bool parse_seconds(const struct tmk_args *args, const char *option, uint64_t *ret_ns)
{
    const char *text = tmk_args_get(args, option);
    uint64_t ns = 0;
    if (!text)
        return true;
    char *with_unit = tmk_xformat("%ss", text);
    bool good = tmk_time_parse(with_unit, &ns) == 0 || tmk_time_parse(text, &ns) == 0;
    free(with_unit);
    if (!good || ns < 1000000 || ns > MAX_TIMEOUT_NS) {
        tmk_say("--%s: '%s' is not a time, such as 10 (seconds) or 500ms", option, text);
        return false;
    }
    *ret_ns = ns;
    return true;
}

static bool parse_count(const struct tmk_args *args, uint64_t *ret)
{
    const char *text = tmk_args_get(args, "count");
    int64_t n = 0;
    if (!text)
        return true;
    if (!tmk_args_get(args, "every")) {
        tmk_say("--count goes with --every: how often, and how many times");
        return false;
    }
    if (tmk_integer_parse(text, &n) < 0 || n < 1) {
        tmk_say("--count: '%s' is not a number of times", text);
        return false;
    }
    *ret = (uint64_t)n;
    return true;
}

/* Read all of stdin, or as much as may be sent and one byte more. */
static char *read_stdin(size_t *ret_n)
{
    char *text = tmk_xcalloc(TMK_WIRE_CODE_MAX + 1, 1);
    *ret_n = fread(text, 1, TMK_WIRE_CODE_MAX + 1, stdin);
    return text;
}

static bool read_eval_code(const char *operand, struct order *order)
{
    if (strcmp(operand, "-") == 0) {
        order->code = read_stdin(&order->n_code);
    } else {
        order->code = tmk_xstrdup(operand);
        order->n_code = strlen(operand);
    }
    if (order->n_code <= TMK_WIRE_CODE_MAX)
        return true;
    tmk_say("the code is longer than 1 MiB; put it into a file that the process can import");
    return false;
}

/* ---- one eval ---- */

struct heard {
    bool wants_json;
    bool failed;
    FILE *text[TMK_WIRE_DONE]; /* by kind; JSON only */
    char *bytes[TMK_WIRE_DONE];
    size_t n_bytes[TMK_WIRE_DONE];
};

static void show_heard(void *arg, enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    struct heard *h = arg;
    h->failed |= kind == TMK_WIRE_ERROR || kind == TMK_WIRE_FAIL;
    if (h->wants_json) {
        if (kind > 0 && kind < TMK_WIRE_DONE && h->text[kind])
            fwrite(bytes, 1, n, h->text[kind]);
        return;
    }
    if (kind == TMK_WIRE_FAIL || kind == TMK_WIRE_NOTE) {
        tmk_say("%.*s", (int)n, bytes);
        return;
    }
    FILE *out = kind == TMK_WIRE_STDERR || kind == TMK_WIRE_ERROR ? stderr : stdout;
    fwrite(bytes, 1, n, out);
    fflush(out);
}

static void begin_json(struct heard *h)
{
    for (unsigned kind = 1; kind < TMK_WIRE_DONE; kind++) {
        h->text[kind] = open_memstream(&h->bytes[kind], &h->n_bytes[kind]);
        if (!h->text[kind])
            tmk_die("out of memory");
    }
}

/* Returns the text of a kind without its last newline; NULL when there was none. */
static const char *heard_text(const struct heard *h, enum tmk_wire_kind kind, bool whole)
{
    size_t n = h->n_bytes[kind];
    if (n > 0 && !whole && h->bytes[kind][n - 1] == '\n')
        h->bytes[kind][n - 1] = '\0';
    return n > 0 ? h->bytes[kind] : whole ? "" : NULL;
}

static void print_eval_json(struct heard *h, const struct order *order)
{
    struct tmk_tree t;
    for (unsigned kind = 1; kind < TMK_WIRE_DONE; kind++)
        fclose(h->text[kind]);
    tmk_tree_init_json(&t, stdout, 0);
    tmk_tree_object(&t, NULL);
    tmk_tree_u64(&t, "pid", order->process.pid);
    tmk_tree_bool(&t, "ok", !h->failed);
    tmk_tree_text(&t, "stdout", heard_text(h, TMK_WIRE_STDOUT, true));
    tmk_tree_text(&t, "stderr", heard_text(h, TMK_WIRE_STDERR, true));
    tmk_tree_text(&t, "value", heard_text(h, TMK_WIRE_VALUE, false));
    tmk_tree_text(&t, "error", heard_text(h, TMK_WIRE_ERROR, false));
    tmk_tree_text(&t, "reason", heard_text(h, TMK_WIRE_FAIL, false));
    tmk_tree_text(&t, "note", heard_text(h, TMK_WIRE_NOTE, false));
    tmk_tree_end(&t);
    fflush(stdout);
    for (unsigned kind = 1; kind < TMK_WIRE_DONE; kind++)
        free(h->bytes[kind]);
}

/* Run the code once. Returns an exit status; *ret_gone when the process cannot be asked any more.
 */
static int eval_once(const struct order *order, bool *ret_gone)
{
    struct heard heard = {.wants_json = order->wants_json};
    struct tmk_error err = {0};
    struct tmk_ask ask = {
        .verb = TMK_WIRE_EVAL,
        .flags = order->on_main ? TMK_WIRE_ON_MAIN : 0,
        .timeout_ms = (uint32_t)(order->timeout_ns / 1000000u),
        .code = order->code,
        .n_code = order->n_code,
        .hear = show_heard,
        .arg = &heard,
    };
    if (heard.wants_json)
        begin_json(&heard);
    int rc = tmk_ask(&order->process, &ask, &err);
    if (rc < 0)
        show_heard(&heard, TMK_WIRE_FAIL, err.text, strlen(err.text));
    if (heard.wants_json)
        print_eval_json(&heard, order);
    *ret_gone = rc < 0;
    return heard.failed ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

/* ---- again and again ---- */

static void sleep_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Run the code again and again until it was done often enough or the process has ended, which is no
 * failure. */
static int eval_every(const struct order *order)
{
    uint64_t next = tmk_clock_monotonic_ns();
    int status = TMK_EXIT_OK;
    for (uint64_t i = 0; order->count == 0 || i < order->count; i++) {
        struct tmk_watched again;
        bool gone = false;
        if (i > 0) {
            next += order->every_ns;
            if (next < tmk_clock_monotonic_ns()) /* it took longer: no hurry afterwards */
                next = tmk_clock_monotonic_ns();
            sleep_until(next);
            if (tmk_watched_find(order->process.pid, &again, NULL) < 0) {
                tmk_say("process %" PRIu32 " is no longer watched", order->process.pid);
                return order->count ? TMK_EXIT_FINDING : status;
            }
        }
        int one = eval_once(order, &gone);
        status = one > status ? one : status;
        if (gone)
            return TMK_EXIT_FINDING;
    }
    return status;
}

static int run_eval(const struct tmk_args *args)
{
    struct order order = {.timeout_ns = DEFAULT_TIMEOUT_NS};
    bool gone;
    if (!parse_seconds(args, "timeout", &order.timeout_ns) ||
        !parse_seconds(args, "every", &order.every_ns) || !parse_count(args, &order.count))
        return TMK_EXIT_USAGE;
    order.on_main = tmk_args_get(args, "main") != NULL;
    order.wants_json = tmk_args_get(args, "json") != NULL;
    int status = tmk_ask_find(args->operands[0], &order.process);
    if (status != 0)
        return status;
    if (!read_eval_code(args->operands[1], &order))
        status = TMK_EXIT_USAGE;
    else
        status = order.every_ns ? eval_every(&order) : eval_once(&order, &gone);
    free(order.code);
    return status;
}

static const struct tmk_option options[] = {
    {"main", 0, NULL, NULL, "run on the main thread instead of a thread of its own"},
    {"timeout", 0, "S", NULL, "give up after S seconds (10)"},
    {"every", 0, "S", NULL, "repeat every S seconds, until the process ends"},
    {"count", 0, "N", NULL, "with --every: N times"},
    {"json", 0, NULL, NULL, "print one JSON object for each run, one a line"},
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "CODE sees the names of the script that runs (`__main__`). What it prints, and the value of "
    "its last expression, go to stdout; what it writes to stderr, and the traceback of an "
    "exception, go to stderr. The output of the program itself is not touched. With - CODE is "
    "read from stdin.",
    "CODE runs on a thread of its own and takes turns with Python's other threads. When the "
    "time is up, it is stopped by an exception. Inside a call into C that is not possible: it "
    "ends by itself, and no other eval is accepted until then. What has not started by then "
    "never runs. --main waits until the main thread is between two instructions.",
    "With HOST:PID the code goes over your own ssh and runs there; ^C ends it there. Only the "
    "user of the process, or root, may do this.",
    NULL,
};

static const char *const exit_status[] = {
    "0\tsuccess",
    "1\tan exception, or CODE did not run",
    "2\twrong usage",
    NULL,
};

static const char *const json_keys[] = {
    "pid, ok\tthe process; whether CODE ran to its end",
    "stdout, stderr, value\twhat CODE printed and its last value",
    "error, reason, note\tthe exception; why it did not run; remarks",
    NULL,
};

static const char *const examples[] = {
    "tidemark eval 4711 \"print(trainer.current_step)\"",
    "look at a variable of the script",
    "tidemark eval 4711 \"import gc; gc.collect()\"",
    "collect garbage and print how many objects that freed",
    "tidemark eval 4711 --every 5 --count 12 \"torch.cuda.memory_allocated()\"",
    "every five seconds for a minute",
    "tidemark eval node7:4711 - <snippet.py",
    "run a file in a process on another machine",
    NULL,
};

const struct tmk_command tmk_cmd_eval = {
    .name = "eval",
    .group = TMK_GROUP_LIVE,
    .summary = "Run Python in a recorded process and print its output",
    .usage = "[HOST:]PID CODE|- [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 2,
    .max_operands = 2,
    .n_targets = 1,
    .operand = TMK_OPERAND_PID,
    .exit_status = exit_status,
    .json = json_keys,
    .examples = examples,
    .run = run_eval,
};
