/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_env.c - print the environment that watches a job which somebody else starts. */
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/run_folder.h"
#include "cli/run/watch.h"
#include "cli/run/watch_options.h"

/* Print a text in single quotes, which keep everything except themselves. */
static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        putchar(*text);
    }
    putchar('\'');
}

static void print_export(const char *name, const char *value)
{
    printf("export %s=", name);
    print_quoted(value);
    putchar('\n');
}

/* Print that settings which were not asked for are unset, so that a second `env` in one shell means
 * what it says. */
static void print_unset(const struct tmk_setting *settings)
{
    const char *before = "unset";
    for (unsigned i = 0; i < TMK_N_SETTINGS; i++) {
        if (settings[i].value)
            continue;
        printf("%s %s", before, settings[i].name);
        before = "";
    }
    if (!*before)
        putchar('\n');
}

static void print_all(const struct tmk_watch *w)
{
    struct tmk_setting settings[TMK_N_SETTINGS];
    tmk_watch_settings(w, settings);
    print_unset(settings);
    for (unsigned i = 0; i < TMK_N_SETTINGS; i++) {
        if (settings[i].value)
            print_export(settings[i].name, settings[i].value);
        free(settings[i].value);
    }
    printf("export LD_PRELOAD=");
    print_quoted(w->library);
    puts("${LD_PRELOAD:+:$LD_PRELOAD}");
}

static int run_env(const struct tmk_args *args)
{
    struct tmk_watch w = {0};
    int status = tmk_watch_options_read(args, &w);
    if (status != 0)
        return status;
    const char *named = tmk_args_get(args, "output");
    char *name = named ? tmk_xstrdup(named) : tmk_run_folder_name("job");
    char *folder = tmk_absolute_path(name);
    w.folder = folder;
    print_all(&w);
    if (isatty(STDOUT_FILENO))
        tmk_say("for a shell to take: eval \"$(tidemark env ...)\"");
    free((char *)w.library);
    free(folder);
    free(name);
    return TMK_EXIT_OK;
}

static const struct tmk_option options[] = {
    {"output", 'o', "RUN", NULL, "the folder to record into (job-DATE-TIME.tmk)"},
    TMK_OPTION_HEADING("what is recorded"),
    TMK_WATCH_OPTIONS,
};

static const char *const description[] = {
    "Every process started with this environment is recorded as under `tidemark run`, each "
    "into its own trace. It is for sbatch, srun, mpirun, torchrun and services. RUN should be "
    "on a file system that all nodes share. A RUN that exists is not renamed: traces are added "
    "to it.",
    "What a killed process leaves in memory stays there until RUN is read on its node.",
    "The rank is taken from RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK or PMI_RANK. A process "
    "without a rank is recorded whatever --ranks says.",
    NULL,
};

static const char *const examples[] = {
    "eval \"$(tidemark env -o /shared/a.tmk)\"; srun python train.py",
    "in an sbatch script: record all ranks",
    "eval \"$(tidemark env -o /shared/a.tmk --ranks 0,8)\"; mpirun python train.py",
    "record ranks 0 and 8 only",
    NULL,
};

const struct tmk_command tmk_cmd_env = {
    .name = "env",
    .group = TMK_GROUP_RECORD,
    .summary = "Print the environment that records jobs of sbatch, srun or mpirun",
    .usage = "[options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .operand = TMK_OPERAND_NONE,
    .examples = examples,
    .run = run_env,
};
