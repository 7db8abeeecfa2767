/* SPDX-License-Identifier: MIT */
/* cli/front/help.c - the manual, from the table of commands: on the screen and as docs/commands.md.
 */
#include <string.h>

#include "cli/front/command.h"
#include "cli/output/sheet.h"

#define ABOUT "tidemark finds out what fills a GPU (or any memory a program tells it about)."

static const char run_note[] =
    "RUN is the folder that `tidemark run` made (NAME.tmk), one trace file in it, or\n"
    "the PID of a process that is being watched (`tidemark ps`): its trace as of now.\n"
    "HOST:PID or USER@HOST:PID is one on another machine: the command runs there,\n"
    "over your own ssh. A file of that name comes first (docs/probing.md).\n";

static const char status_note[] =
    "Exit status: 0 fine, 1 a finding or it could not be done, 2 wrong usage, 3 unreadable trace;\n"
    "`run` returns the status of the program it ran.\n";

/* Write "-o, --output FILE" into `text`. */
static void option_text(const struct tmk_option *o, char *text, size_t size)
{
    char letter[8] = "";
    if (o->letter)
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(text, size, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
             o->value ? o->value : "");
}

void tmk_help_all(FILE *out)
{
    fprintf(out, "%s\n\nusage: tidemark COMMAND [options] ...\n\n", ABOUT);
    for (unsigned i = 0; tmk_commands[i]; i++)
        fprintf(out, "  %-12s%s\n", tmk_commands[i]->name, tmk_commands[i]->summary);
    fprintf(out, "\n%s", run_note);
    fprintf(out, "More about a command: tidemark COMMAND --help\n"
                 "\nexamples:\n"
                 "  tidemark demo\n"
                 "  tidemark run -o a.tmk -- ./train --steps 100\n"
                 "  tidemark report a.tmk\n");
}

void tmk_help_command(FILE *out, const struct tmk_command *c)
{
    char lead[40];
    snprintf(lead, sizeof lead, "usage: tidemark %s ", c->name);
    fprintf(out, "%s\n\n", c->summary);
    tmk_sheet_wrap(out, c->usage, lead);
    if (c->n_options > 0)
        fputc('\n', out);
    for (unsigned i = 0; i < c->n_options; i++) {
        char text[80];
        option_text(&c->options[i], text, sizeof text);
        fprintf(out, "  %-22s %s\n", text, c->options[i].help);
    }
    if (c->notes)
        fprintf(out, "\n%s", c->notes);
    fputs("\nexamples:\n", out);
    for (unsigned i = 0; c->examples[i]; i += 2)
        fprintf(out, "  %s\n      %s\n", c->examples[i], c->examples[i + 1]);
}

/* ---- Markdown ---- */

static void write_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|' || *text == '<')
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void markdown_options(FILE *out, const struct tmk_command *c)
{
    fputs("\n| option | |\n|---|---|\n", out);
    for (unsigned i = 0; i < c->n_options; i++) {
        char text[80];
        option_text(&c->options[i], text, sizeof text);
        fprintf(out, "| `%s` | ", text);
        write_escaped(out, c->options[i].help);
        fputs(" |\n", out);
    }
}

static void markdown_command(FILE *out, const struct tmk_command *c)
{
    fprintf(out, "\n## tidemark %s\n\n%s.\n\n    tidemark %s %s\n", c->name, c->summary, c->name,
            c->usage);
    if (c->n_options > 0)
        markdown_options(out, c);
    if (c->notes)
        fprintf(out, "\n```text\n%s```\n", c->notes);
    fputs("\nExamples:\n\n", out);
    for (unsigned i = 0; c->examples[i]; i += 2)
        fprintf(out, "- `%s`:\n  %s\n", c->examples[i], c->examples[i + 1]);
}

void tmk_help_markdown(FILE *out)
{
    fprintf(
        out,
        "# Commands\n\nMade from the program's table of commands by `tidemark help --markdown`; "
        "a test keeps it true.\n\n%s\n\nData goes to stdout, talk to stderr. Sizes are bytes in "
        "machine output, times are nanoseconds since\nthe run's start, and what is not known is "
        "`null`.\n%s\n%s\n| command | |\n|---|---|\n",
        ABOUT, run_note, status_note);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        fprintf(out, "| [%s](#tidemark-%s) | ", tmk_commands[i]->name, tmk_commands[i]->name);
        write_escaped(out, tmk_commands[i]->summary);
        fputs(" |\n", out);
    }
    for (unsigned i = 0; tmk_commands[i]; i++)
        markdown_command(out, tmk_commands[i]);
}
