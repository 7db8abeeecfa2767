/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_help.c - the manual on the screen. `--markdown`, which makes docs/commands.md, is for
 * us and not in the table: main() knows it. */
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/usage.h"
#include "cli/output/say.h"

static int run_help(const struct tmk_args *args)
{
    if (args->n_operands == 0) {
        tmk_help_all(stdout);
        return TMK_EXIT_OK;
    }
    const struct tmk_command *c = tmk_command_find(args->operands[0]);
    if (!c)
        return tmk_usage_no_manual(args->operands[0]);
    tmk_help_command(stdout, c);
    return TMK_EXIT_OK;
}

static const char *const examples[] = {
    "tidemark help", "the commands", "tidemark help peak", "the same as tidemark peak --help", NULL,
};

const struct tmk_command tmk_cmd_help = {
    .name = "help",
    .group = TMK_GROUP_HELP,
    .summary = "Show the manual of a command",
    .usage = "[COMMAND]",
    .max_operands = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_WORD,
    .examples = examples,
    .run = run_help,
};
