/* SPDX-License-Identifier: MIT */
/* cli/front/help_markdown.c - the manual as docs/commands.md, from the table of commands. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/front/command.h"
#include "cli/front/help.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"

enum { PROSE_COLUMNS = 100 };

/* Returns `text` with a backslash before what Markdown would take for its own; code is left alone.
 * The caller's, for free(). */
static char *escaped(const char *text, const char *special)
{
    char *to = tmk_xcalloc(2 * strlen(text) + 1, 1), *at = to;
    bool is_code = false;
    for (; *text; text++) {
        is_code ^= *text == '`';
        if (strchr(special, *text) && (!is_code || *text == '|'))
            *at++ = '\\';
        *at++ = *text;
    }
    return to;
}

static void write_cell(FILE *out, const char *text)
{
    char *safe = escaped(text, "|<*");
    fputs(safe, out);
    free(safe);
}

static void write_options(FILE *out, const struct tmk_command *c)
{
    bool is_open = false;
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        char text[80];
        if (!*o->name) {
            fprintf(out, "\n| %s | |\n|---|---|\n", o->help);
            is_open = true;
            continue;
        }
        if (!is_open)
            fputs("\n| option | |\n|---|---|\n", out);
        is_open = true;
        tmk_help_option_text(o, text, sizeof text);
        fputs("| `", out);
        for (const char *at = text; *at; at++)
            fprintf(out, *at == '|' ? "\\|" : "%c", *at);
        fputs("` | ", out);
        write_cell(out, o->help);
        fputs(" |\n", out);
    }
}

static void write_paragraphs(FILE *out, const char *const *paragraphs)
{
    char term[80];
    bool is_list = false;
    for (; *paragraphs; paragraphs++) {
        const char *meaning = tmk_help_meaning(*paragraphs, term, sizeof term);
        char *text = meaning ? tmk_xformat("`%s`: %s", term, meaning) : tmk_xstrdup(*paragraphs);
        char *safe = escaped(text, "<*");
        if (!(meaning && is_list))
            fputc('\n', out);
        is_list = meaning != NULL;
        tmk_sheet_wrap_at(out, safe, is_list ? "- " : "", PROSE_COLUMNS);
        free(safe);
        free(text);
    }
}

static void write_part(FILE *out, const char *title, const char *const *paragraphs)
{
    if (!paragraphs)
        return;
    if (title)
        fprintf(out, "\n%s\n", title);
    write_paragraphs(out, paragraphs);
}

static void write_command(FILE *out, const struct tmk_command *c)
{
    fprintf(out, "\n## tidemark %s\n\n%s.\n\n    tidemark %s%s%s\n\n", c->name, c->summary, c->name,
            *c->usage ? " " : "", c->usage);
    for (unsigned i = 0; c->examples[i]; i += 2)
        fprintf(out, "- `%s`:\n  %s\n", c->examples[i], c->examples[i + 1]);
    write_options(out, c);
    write_part(out, NULL, c->description);
    write_part(out, "Exit status:", c->exit_status);
    write_part(out, "JSON:", c->json);
}

static void write_overview(FILE *out)
{
    for (unsigned group = 0; group < TMK_N_GROUPS; group++) {
        fprintf(out, "\n| %s | |\n|---|---|\n", tmk_help_groups[group]);
        for (unsigned i = 0; tmk_commands[i]; i++) {
            const struct tmk_command *c = tmk_commands[i];
            if (c->group != group)
                continue;
            fprintf(out, "| [%s](#tidemark-%s) | ", c->name, c->name);
            write_cell(out, c->summary);
            fputs(" |\n", out);
        }
    }
}

void tmk_help_markdown(FILE *out)
{
    fputs(
        "# Commands\n\n"
        "Made from the program's table of commands by `tidemark help --markdown`; a test keeps it "
        "true.\n\n" TMK_HELP_ABOUT "\n\n"
        "Data goes to stdout, messages to stderr. Sizes are bytes in machine output, times are\n"
        "nanoseconds since the run's start, and what is not known is `null`.\n",
        out);
    write_paragraphs(out, tmk_help_run_note);
    fputs("\nExit status, unless a command says otherwise (`run` returns its command's):\n", out);
    write_paragraphs(out, tmk_help_exit_status);
    write_overview(out);
    for (unsigned i = 0; tmk_commands[i]; i++)
        write_command(out, tmk_commands[i]);
}
