/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_detach.c - stop watching a process that goes on. */
#include "base/array.h"
#include "base/error.h"
#include "base/wire.h"
#include "cli/answers/ask.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/remote/remote.h"
#include "model/watched.h"

static void hear_detached(void *arg, enum tmk_wire_kind kind, const char *bytes, size_t n)
{
    bool *failed = arg;
    if (kind == TMK_WIRE_FAIL)
        *failed = true;
    tmk_say("%.*s", (int)n, bytes);
}

static int run_detach(const struct tmk_args *args)
{
    struct tmk_watched process;
    struct tmk_error err = {0};
    bool failed = false;
    int status = tmk_ask_find(args->operands[0], &process);
    if (status != 0)
        return status;
    struct tmk_ask ask = {
        .verb = TMK_WIRE_DETACH, .code = "", .hear = hear_detached, .arg = &failed};
    if (tmk_ask(&process, &ask, &err) < 0) {
        tmk_say("%s", err.text);
        failed = true;
    }
    return failed ? TMK_EXIT_FINDING : TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    TMK_REMOTE_OPTION,
};

static const char *const description[] = {
    "The trace is closed and complete. The process runs on as if it had never been recorded. "
    "Only its user, or root, may do this.",
    NULL,
};

static const char *const examples[] = {
    "tidemark detach 4711",
    "stop recording process 4711",
    "tidemark detach node7:4711",
    "the same on another machine, over your own ssh",
    NULL,
};

const struct tmk_command tmk_cmd_detach = {
    .name = "detach",
    .group = TMK_GROUP_RECORD,
    .summary = "Stop recording a process, which runs on",
    .usage = "[HOST:]PID [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 1,
    .max_operands = 1,
    .n_targets = 1,
    .operand = TMK_OPERAND_PID,
    .examples = examples,
    .run = run_detach,
};
