/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_help.c - the manual on the screen, or as pages for man(1). Other forms, which make
 * files of ours, are not in the table: main() knows them. */
#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/usage.h"
#include "cli/output/say.h"

static int run_help(const struct tmk_args *args)
{
    const struct tmk_command *c = NULL;
    if (args->n_operands > 0 && !(c = tmk_command_find(args->operands[0])))
        return tmk_usage_no_manual(args->operands[0]);
    if (tmk_args_get(args, "man"))
        tmk_help_man(stdout, c);
    else if (c)
        tmk_help_command(stdout, c);
    else
        tmk_help_all(stdout);
    return TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"man", 0, NULL, NULL, "write the page for man(1)"},
};

static const char *const examples[] = {
    "tidemark help", "the commands", "tidemark help peak", "the same as tidemark peak --help", NULL,
};

const struct tmk_command tmk_cmd_help = {
    .name = "help",
    .group = TMK_GROUP_HELP,
    .summary = "Show the manual of a command",
    .usage = "[COMMAND]",
    .options = options,
    .n_options = TMK_N(options),
    .max_operands = 1,
    .is_paged = true,
    .operand = TMK_OPERAND_WORD,
    .examples = examples,
    .run = run_help,
};
