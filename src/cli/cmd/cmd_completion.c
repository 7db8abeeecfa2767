/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_completion.c - print a completion script. */
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"

static int run_completion(const struct tmk_args *args)
{
    if (!tmk_completion_write(stdout, args->operands[0])) {
        tmk_say("no completion for '%s': bash, zsh or fish", args->operands[0]);
        return TMK_EXIT_USAGE;
    }
    return TMK_EXIT_OK;
}

static const char *const description[] = {
    "Packages and `./dev install` put these scripts where the shells look for them. They "
    "complete commands, options, their values, runs, and the PIDs of recorded processes.",
    NULL,
};

static const char *const examples[] = {
    "eval \"$(tidemark completion bash)\"",
    "in ~/.bashrc",
    "source <(tidemark completion zsh)",
    "in ~/.zshrc, after compinit",
    "tidemark completion fish | source",
    "in ~/.config/fish/config.fish",
    NULL,
};

const struct tmk_command tmk_cmd_completion = {
    .name = "completion",
    .group = TMK_GROUP_HELP,
    .summary = "Print the completion script for your shell",
    .usage = "bash|zsh|fish",
    .min_operands = 1,
    .max_operands = 1,
    .operand = TMK_OPERAND_WORD,
    .words = "bash|zsh|fish",
    .description = description,
    .examples = examples,
    .writes_data = true,
    .run = run_completion,
};
