/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_completion.c - print a completion script. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/completion.h"
#include "cli/front/usage.h"
#include "cli/output/say.h"
#include "kit/kernel_files.h"
#include "kit/print.h"
#include "model/watched.h"
#include "sql/sql.h"
#include "sql/table_doc.h"

/* List the processes that are recorded, "PID<tab>COMMAND": what is in /proc, no trace is read. */
static int list_pids(void)
{
    struct tmk_watched *list = NULL;
    struct tmk_error err = {0};
    uint32_t n = 0;
    if (tmk_watched_list(&list, &n, &err) < 0) {
        tmk_say("%s", err.text);
        return TMK_EXIT_FINDING;
    }
    for (uint32_t i = 0; i < n; i++) {
        char line[72];
        ssize_t length = tmk_kernel_file_read(line, sizeof line, "/proc/%u/cmdline", list[i].pid);
        for (ssize_t at = 0; at + 1 < length; at++)
            if (!line[at] || line[at] == '\t')
                line[at] = ' ';
        printf("%" PRIu32 "\t", list[i].pid);
        tmk_print(stdout, "%s\n", length > 0 ? line : "");
    }
    free(list);
    return TMK_EXIT_OK;
}

static int list_tables(void)
{
    size_t n;
    const struct tmk_sql_table *tables = tmk_sql_tables(&n);
    for (size_t i = 0; i < n; i++)
        printf("%s\n", tables[i].name);
    return TMK_EXIT_OK;
}

static int run_completion(const struct tmk_args *args)
{
    const char *word = args->operands[0];
    if (strcmp(word, "pids") == 0)
        return list_pids();
    if (strcmp(word, "tables") == 0)
        return list_tables();
    for (const struct tmk_completion_shell *s = tmk_completion_shells; s->shell; s++) {
        if (strcmp(word, s->shell) != 0)
            continue;
        s->write(stdout);
        return TMK_EXIT_OK;
    }
    tmk_say("there is no completion for '%s', but for bash, zsh and fish", word);
    return tmk_usage_see(args->command);
}

static const char *const description[] = {
    "Packages and `./dev install` put these scripts where the shells look for them. They "
    "complete commands, options, their values, runs, and the PIDs of recorded processes.",
    "pids\tlist the recorded processes, as the scripts offer them",
    "tables\tlist the tables of `tidemark query`",
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
    .usage = "bash|zsh|fish|pids|tables",
    .min_operands = 1,
    .max_operands = 1,
    .operand = TMK_OPERAND_WORD,
    .words = "bash|zsh|fish",
    .description = description,
    .examples = examples,
    .writes_data = true,
    .run = run_completion,
};
