/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_help.c - the manual on the screen. `--markdown`, which makes docs/commands.md, is for
 * us and not in the table: main() knows it. */
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"

static int run_help(const struct tmk_args *args)
{
    if (args->n_operands == 0) {
        tmk_help_all(stdout);
        return TMK_EXIT_OK;
    }
    const struct tmk_command *c = tmk_command_find(args->operands[0]);
    if (!c) {
        const char *nearest = tmk_nearest_command(args->operands[0]);
        tmk_say("there is no command '%s'%s%s; see: tidemark help", args->operands[0],
                nearest ? "; did you mean " : "", nearest ? nearest : "");
        return TMK_EXIT_USAGE;
    }
    tmk_help_command(stdout, c);
    return TMK_EXIT_OK;
}

static const char *const examples[] = {
    "tidemark help peak",
    "the same as tidemark peak --help",
    NULL,
};

const struct tmk_command tmk_cmd_help = {
    .name = "help",
    .group = TMK_GROUP_HELP,
    .summary = "Say what the commands do",
    .usage = "[COMMAND]",
    .max_operands = 1,
    .operand = TMK_OPERAND_WORD,
    .examples = examples,
    .run = run_help,
};
