/* SPDX-License-Identifier: MIT */
/* cli/front/help.c - the manual on the screen, from the table of commands. */
#include "cli/front/help.h"

#include <string.h>

#include "cli/front/command.h"
#include "cli/output/sheet.h"
#include "kit/language.h"

const char *const tmk_help_groups[TMK_N_GROUPS] = {
    [TMK_GROUP_RECORD] = "record", [TMK_GROUP_UNDERSTAND] = "understand",
    [TMK_GROUP_LIVE] = "live",     [TMK_GROUP_CLUSTER] = "cluster",
    [TMK_GROUP_FILES] = "files",   [TMK_GROUP_HELP] = "help",
};

const char *const tmk_help_run_note[] = {
    "RUN is the folder that `tidemark run` made (NAME.tmk), one trace file in it, or the PID of a "
    "watched process (`tidemark ps`), whose trace is read as it grows. HOST:PID or USER@HOST:PID "
    "is a process on another machine: the command runs there, over your own ssh.",
    NULL,
};

const char *const tmk_help_exit_status[] = {
    "0\tsuccess",
    "1\ta finding, or it could not be done",
    "2\twrong usage",
    "3\ta trace that cannot be read",
    NULL,
};

const char *const tmk_help_environment[] = {
    "NO_COLOR\tno colours",
    "TIDEMARK\t0: `import tidemark` records nothing",
    "TIDEMARK_LANG\tthe language, as --lang; else the locale's (LC_ALL, LC_MESSAGES, LANG)",
    "TIDEMARK_LIB\tlibtidemark.so, where it is not beside the program or in ../lib",
    "TIDEMARK_COMPONENTS\ta file that adds components to `peak --by component` (docs/owners.md)",
    "TIDEMARK_DEBUG_DIR\ta folder with debug information for native stacks",
    "TIDEMARK_RING_DIR\ta folder in memory for rings, instead of /dev/shm",
    "TIDEMARK_SSH\tthe command for ssh, with its options",
    "TIDEMARK_PROMETHEUS\tthe address that `fleet` asks",
    NULL,
};

void tmk_help_option_text(const struct tmk_option *o, char *text, size_t size)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(text, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
             o->value ? o->value : "");
}

const char *tmk_help_meaning(const char *paragraph, char *term, size_t size)
{
    const char *tab = strchr(paragraph, '\t');
    if (!tab)
        return NULL;
    snprintf(term, size, "%.*s", (int)(tab - paragraph), paragraph);
    return tab + 1;
}

/* ---- one command ---- */

enum { TERM_COLUMNS = 22, OPTION_COLUMNS = 24 };

/* Write an entry of two columns; a first one that is too wide has a line of its own. */
static void write_entry(FILE *out, const char *first, const char *second, int columns)
{
    char lead[160];
    if ((int)strlen(first) <= columns - 2) {
        snprintf(lead, sizeof lead, "  %-*s", columns, first);
    } else {
        fprintf(out, "  %s\n", first);
        snprintf(lead, sizeof lead, "  %-*s", columns, "");
    }
    tmk_sheet_wrap(out, _(second), lead);
}

/* Returns the columns that the terms of these paragraphs take. */
static int term_columns(const char *const *paragraphs)
{
    size_t widest = 0;
    char term[80];
    for (; *paragraphs; paragraphs++)
        if (tmk_help_meaning(*paragraphs, term, sizeof term) && strlen(term) > widest)
            widest = strlen(term);
    return widest + 2 < TERM_COLUMNS ? (int)widest + 2 : TERM_COLUMNS;
}

static void write_paragraphs(FILE *out, const char *const *paragraphs)
{
    char term[80];
    int columns = term_columns(paragraphs);
    bool is_list = false;
    for (unsigned i = 0; paragraphs[i]; i++) {
        const char *meaning = tmk_help_meaning(paragraphs[i], term, sizeof term);
        if (i > 0 && !(meaning && is_list))
            fputc('\n', out);
        is_list = meaning != NULL;
        if (meaning)
            write_entry(out, term, meaning, columns);
        else
            tmk_sheet_wrap(out, _(paragraphs[i]), "");
    }
}

static void write_options(FILE *out, const struct tmk_command *c)
{
    if (c->n_options > 0 && *c->options[0].name)
        fputs(_("\noptions:\n"), out);
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        char text[80];
        tmk_help_option_text(o, text, sizeof text);
        if (*o->name)
            write_entry(out, text, o->help, OPTION_COLUMNS);
        else
            fprintf(out, _("\n%s:\n"), _(o->help));
    }
}

static void write_part(FILE *out, const char *title, const char *const *paragraphs)
{
    if (!paragraphs)
        return;
    fprintf(out, "\n%s", _(title));
    write_paragraphs(out, paragraphs);
}

void tmk_help_command(FILE *out, const struct tmk_command *c)
{
    char lead[40];
    snprintf(lead, sizeof lead, _("usage: tidemark %s "), c->name);
    fprintf(out, _("%s.\n\n"), _(c->summary));
    tmk_sheet_wrap(out, c->usage, lead);
    fputs(_("\nexamples:\n"), out);
    for (unsigned i = 0; c->examples[i]; i += 2)
        fprintf(out, "  %s\n      %s\n", c->examples[i], _(c->examples[i + 1]));
    write_options(out, c);
    write_part(out, "", c->description);
    write_part(out, N_("exit status:\n"), c->exit_status ? c->exit_status : tmk_help_exit_status);
    write_part(out, N_("JSON:\n"), c->json);
}

/* ---- all of them ---- */

static void write_commands(FILE *out, enum tmk_command_group group)
{
    fprintf(out, "\n%s\n", _(tmk_help_groups[group]));
    for (unsigned i = 0; tmk_commands[i]; i++)
        if (tmk_commands[i]->group == group)
            fprintf(out, "  %-12s%s\n", tmk_commands[i]->name, _(tmk_commands[i]->summary));
}

void tmk_help_all(FILE *out)
{
    fprintf(out,
            "%s\n\n  tidemark run -- python train.py\n"
            "  tidemark run -- torchrun --nproc-per-node 8 train.py\n",
            _(TMK_HELP_ABOUT));
    for (unsigned group = 0; group < TMK_N_GROUPS; group++)
        write_commands(out, group);
    fputs(_("\nMore about a command: tidemark COMMAND --help; in Chinese: --lang zh\n"), out);
    fputs(_("Before any command: --no-pager, --color always|never|auto, --lang en|zh\n"), out);
}
