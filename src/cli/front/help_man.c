/* SPDX-License-Identifier: MIT */
/* cli/front/help_man.c - the manual as pages for man(1), from the table of commands.
 *
 * Written with the man macros, which every formatter knows. Lines are broken at 78 columns before
 * anything is escaped, so that the source can be read and a formatter has nothing to warn of. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/front/help.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/utf8.h"

enum { SOURCE_COLUMNS = 78 };

/* ---- troff ---- */

/* Write one line of text: nothing in it is a request, a font or a special character but `code`,
 * which is bold. */
static void write_line(FILE *out, const char *text, size_t n, bool *is_bold)
{
    static const char *const special[][2] = {
        {"\\", "\\e"}, {"-", "\\-"}, {"~", "\\(ti"}, {"^", "\\(ha"}, {"'", "\\(aq"},
    };
    if (n > 0 && text[0] == '.')
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++) {
        const char *instead = NULL, *at = text + i;
        if ((unsigned char)text[i] >= 0x80) {
            fprintf(out, "\\[u%04X]", (unsigned)tmk_utf8_next(&at));
            i = (size_t)(at - text) - 1;
            continue;
        }
        for (size_t s = 0; s < TMK_N(special) && !instead; s++)
            if (text[i] == special[s][0][0])
                instead = special[s][1];
        if (text[i] == '`') {
            *is_bold = !*is_bold;
            instead = *is_bold ? "\\fB" : "\\fR";
        }
        if (instead)
            fputs(instead, out);
        else
            fputc(text[i], out);
    }
}

/* Write a paragraph's text, in lines. */
static void write_text(FILE *out, const char *text)
{
    char *lines = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&lines, &size);
    if (!memory)
        abort();
    tmk_sheet_wrap_at(memory, text, "", SOURCE_COLUMNS);
    fclose(memory);
    bool is_bold = false;
    for (const char *at = lines; *at;) {
        size_t n = strcspn(at, "\n");
        write_line(out, at, n, &is_bold);
        fputc('\n', out);
        at += n + 1;
    }
    free(lines);
}

/* Write what the reader types, or a term, in bold. */
static void write_bold(FILE *out, const char *text)
{
    bool is_bold = true;
    fputs("\\fB", out);
    write_line(out, text, strlen(text), &is_bold);
    fputs("\\fR\n", out);
}

static void write_title(FILE *out, const char *name)
{
    fputs(".\\\" SPDX-License-Identifier: MIT\n"
          ".\\\" Made from the program's table of commands by `tidemark help --man`.\n"
          ".TH ",
          out);
    for (const char *at = name; *at; at++)
        fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, out);
    fprintf(out, " 1 \"%s\" \"tidemark %s\" \"tidemark manual\"\n", TMK_HELP_DATE, TMK_VERSION);
}

/* ---- parts ---- */

static void write_entry(FILE *out, const char *term, const char *meaning)
{
    fputs(".TP\n", out);
    write_bold(out, term);
    write_text(out, meaning);
}

static void write_paragraphs(FILE *out, const char *const *paragraphs)
{
    char term[80];
    for (bool is_first = true; *paragraphs; paragraphs++, is_first = false) {
        const char *meaning = tmk_help_meaning(*paragraphs, term, sizeof term);
        if (meaning) {
            write_entry(out, term, meaning);
            continue;
        }
        if (!is_first)
            fputs(".PP\n", out);
        write_text(out, *paragraphs);
    }
}

static void write_part(FILE *out, const char *title, const char *const *paragraphs)
{
    if (!paragraphs)
        return;
    fprintf(out, ".SH %s\n", title);
    write_paragraphs(out, paragraphs);
}

static void write_options(FILE *out, const struct tmk_command *c)
{
    fputs(".SH OPTIONS\n", out);
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        char text[80];
        tmk_help_option_text(o, text, sizeof text);
        if (*o->name)
            write_entry(out, text, o->help);
        else
            fprintf(out, ".SS %s\n", o->help);
    }
    if (c->n_options > 0 && !*c->options[0].name)
        fputs(".SS every command\n", out);
    write_entry(out, "--lang NAME", TMK_HELP_LANG);
    write_entry(out, "-h, --help", TMK_HELP_HELP);
}

static void write_examples(FILE *out, const char *const *examples)
{
    fputs(".SH EXAMPLES\n", out);
    for (unsigned i = 0; examples[i]; i += 2) {
        bool is_bold = false;
        if (i > 0)
            fputs(".PP\n", out);
        write_text(out, examples[i + 1]);
        fputs(".PP\n.RS 4\n.nf\n", out);
        write_line(out, examples[i], strlen(examples[i]), &is_bold);
        fputs("\n.fi\n.RE\n", out);
    }
}

/* Write links to the pages that go with this one; NULL: to all. */
static void write_links(FILE *out, const struct tmk_command *c)
{
    fputs(".SH SEE ALSO\n", out);
    if (c)
        fputs(".BR tidemark (1)", out);
    bool is_begun = c != NULL;
    for (unsigned i = 0; tmk_commands[i]; i++) {
        const struct tmk_command *other = tmk_commands[i];
        if (c && (other == c || other->group != c->group))
            continue;
        fprintf(out, "%s.BR tidemark\\-%s (1)", is_begun ? ",\n" : "", other->name);
        is_begun = true;
    }
    fputc('\n', out);
}

/* ---- pages ---- */

/* Write a sentence's beginning as it stands behind the name of a page. */
static void write_name(FILE *out, const char *name, const char *summary)
{
    bool is_bold = false;
    fputs(".SH NAME\n", out);
    write_line(out, name, strlen(name), &is_bold);
    fputs(" \\- ", out);
    if (summary[0] >= 'A' && summary[0] <= 'Z') {
        fputc(summary[0] - 'A' + 'a', out);
        summary++;
    }
    write_line(out, summary, strlen(summary), &is_bold);
    fputc('\n', out);
}

static void man_command(FILE *out, const struct tmk_command *c)
{
    char *name = tmk_xformat("tidemark-%s", c->name);
    char *line = tmk_xformat("tidemark %s", c->name);
    bool is_bold = false;
    write_title(out, name);
    write_name(out, name, c->summary);
    fputs(".SH SYNOPSIS\n.B ", out);
    write_line(out, line, strlen(line), &is_bold);
    fputc('\n', out);
    if (*c->usage)
        write_text(out, c->usage);
    write_part(out, "DESCRIPTION", c->description);
    write_options(out, c);
    write_part(out, "\"EXIT STATUS\"", c->exit_status ? c->exit_status : tmk_help_exit_status);
    write_part(out, "JSON", c->json);
    write_examples(out, c->examples);
    write_links(out, c);
    free(line);
    free(name);
}

static void man_all(FILE *out)
{
    static const char *const examples[] = {
        "tidemark run -- python train.py",
        "Record a training.",
        "tidemark run -- torchrun --nproc-per-node 8 train.py",
        "Record all ranks of one.",
        NULL,
    };
    write_title(out, "tidemark");
    write_name(out, "tidemark", "show what uses GPU memory in a PyTorch job");
    fputs(".SH SYNOPSIS\n.B tidemark\nCOMMAND [options]\n.SH DESCRIPTION\n", out);
    write_text(out, TMK_HELP_ABOUT);
    for (const char *const *p = tmk_help_run_note; *p; p++) {
        fputs(".PP\n", out);
        write_text(out, *p);
    }
    fputs(".SH COMMANDS\n", out);
    for (unsigned group = 0; group < TMK_N_GROUPS; group++) {
        fprintf(out, ".SS %s\n", tmk_help_groups[group]);
        for (unsigned i = 0; tmk_commands[i]; i++)
            if (tmk_commands[i]->group == group)
                write_entry(out, tmk_commands[i]->name, tmk_commands[i]->summary);
    }
    fputs(".SH OPTIONS\n", out);
    write_entry(out, "--version", TMK_HELP_VERSION);
    write_entry(out, "--color WHEN", TMK_HELP_COLOR);
    write_entry(out, "--no-pager", TMK_HELP_NO_PAGER);
    write_entry(out, "--lang NAME", TMK_HELP_LANG);
    write_entry(out, "-h, --help", TMK_HELP_HELP);
    write_part(out, "ENVIRONMENT", tmk_help_environment);
    write_part(out, "\"EXIT STATUS\"", tmk_help_exit_status);
    write_examples(out, examples);
    write_links(out, NULL);
}

void tmk_help_man(FILE *out, const struct tmk_command *c)
{
    if (c)
        man_command(out, c);
    else
        man_all(out);
}
