/* SPDX-License-Identifier: MIT */
/* cli/front/completion.c - scripts that teach bash, zsh and fish our commands, from their table.
 *
 * The scripts are data: lists of words for each command. What a RUN is, the shells are told as
 * "folders and files"; after `run --` they complete a command line of its own. */
#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"

/* Commands that list watched processes for each shell: the first column of the table, without its
 * title. */
#define WATCHED_PIDS "tidemark ps 2>/dev/null | sed -n \"2,\\$ s/^ *\\([0-9]*\\).*/\\1/p\""

/* Write words, which the table separates by '|', separated by spaces. */
static void write_completion_words(FILE *out, const char *choices)
{
    for (; *choices; choices++)
        fputc(*choices == '|' ? ' ' : *choices, out);
}

static void write_command_names(FILE *out)
{
    for (unsigned i = 0; tmk_commands[i]; i++)
        fprintf(out, "%s%s", i ? " " : "", tmk_commands[i]->name);
}

static void write_operand_words(FILE *out, const struct tmk_command *c)
{
    if (c->operand != TMK_OPERAND_WORD)
        return;
    if (c->words)
        write_completion_words(out, c->words);
    else
        write_command_names(out);
}

/* ---- bash ---- */

static void bash_options(FILE *out, const struct tmk_command *c)
{
    fprintf(out, "    %s)\n        words=\"", c->name);
    for (unsigned i = 0; i < c->n_options; i++)
        if (*c->options[i].name)
            fprintf(out, "--%s ", c->options[i].name);
    fputs("--help\"\n", out);
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        if (!o->choices)
            continue;
        fprintf(out, "        [ \"$before\" != --%s ] || values=\"", o->name);
        write_completion_words(out, o->choices);
        fputs("\"\n", out);
    }
    if (c->operand == TMK_OPERAND_WORD) {
        fputs("        operands=\"", out);
        write_operand_words(out, c);
        fputs("\"\n", out);
    } else if (c->operand == TMK_OPERAND_PID) {
        fputs("        operands=\"$(" WATCHED_PIDS ")\"\n", out);
    }
    fputs("        ;;\n", out);
}

static void write_bash(FILE *out)
{
    fputs("# bash completion for tidemark: eval \"$(tidemark completion bash)\"\n"
          "_tidemark() {\n"
          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local words=\"\" values=\"\" operands=\"\" i\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"",
          out);
    write_command_names(out);
    fputs(" --help --version\" -- \"$current\")\n"
          "        return\n"
          "    fi\n"
          "    if [ \"${COMP_WORDS[1]}\" = run ]; then\n"
          "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "            if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
          "                mapfile -t COMPREPLY < <(compgen -c -f -- \"$current\")\n"
          "                return\n"
          "            fi\n"
          "        done\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          out);
    for (unsigned i = 0; tmk_commands[i]; i++)
        bash_options(out, tmk_commands[i]);
    fputs("    esac\n"
          "    if [ -n \"$values\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
          "    elif [ \"${current#-}\" != \"$current\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
          "    elif [ -n \"$operands\" ]; then\n"
          "        mapfile -t COMPREPLY < <(compgen -W \"$operands\" -- \"$current\")\n"
          "    else\n"
          "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _tidemark tidemark\n",
          out);
}

/* ---- zsh ---- */

/* Write a text to stand inside '...[...]', which takes no brackets, quotes or colons. */
static void zsh_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            fputc('\\', out);
        if (*text == '\'')
            fputs("'\\'", out);
        fputc(*text, out);
    }
}

static void zsh_option(FILE *out, const struct tmk_option *o)
{
    fprintf(out, "                '--%s%s[", o->name, o->value ? "=" : "");
    zsh_text(out, o->help);
    fputc(']', out);
    if (o->value)
        fprintf(out, ":%s:", o->value);
    if (o->choices) {
        fputc('(', out);
        write_completion_words(out, o->choices);
        fputc(')', out);
    } else if (o->value && strstr("FILE RUN", o->value)) {
        fputs("_files", out);
    }
    fputs("' \\\n", out);
}

static void zsh_operands(FILE *out, const struct tmk_command *c)
{
    fputs("                ", out);
    switch (c->operand) {
    case TMK_OPERAND_RUN:
        fputs("'*:run:_files'\n", out);
        break;
    case TMK_OPERAND_PROGRAM:
        fputs("'*::program:_normal'\n", out);
        break;
    case TMK_OPERAND_WORD:
        fputs("'1:word:(", out);
        write_operand_words(out, c);
        fputs(")'\n", out);
        break;
    case TMK_OPERAND_PID:
        fputs("\"1:pid:($(" WATCHED_PIDS "))\"\n", out);
        break;
    case TMK_OPERAND_NONE:
        fputs("'*: :'\n", out);
        break;
    }
}

static void write_zsh(FILE *out)
{
    fputs("#compdef tidemark\n"
          "# zsh completion for tidemark: tidemark completion zsh >DIRECTORY_OF_FPATH/_tidemark\n"
          "_tidemark() {\n"
          "    local -a commands\n"
          "    commands=(\n",
          out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        fprintf(out, "        '%s:", tmk_commands[i]->name);
        zsh_text(out, tmk_commands[i]->summary);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        _describe command commands\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $words[1] in\n",
          out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        const struct tmk_command *c = tmk_commands[i];
        fprintf(out, "        %s)\n            _arguments \\\n", c->name);
        for (unsigned o = 0; o < c->n_options; o++)
            if (*c->options[o].name)
                zsh_option(out, &c->options[o]);
        zsh_operands(out, c);
        fputs("            ;;\n", out);
    }
    fputs("    esac\n"
          "}\n"
          "_tidemark \"$@\"\n",
          out);
}

/* ---- fish ---- */

/* Write a text to stand inside '...', with a backslash before quotes and backslashes. */
static void fish_text(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void fish_option(FILE *out, const char *command, const struct tmk_option *o)
{
    fprintf(out, "complete -c tidemark -n '__fish_seen_subcommand_from %s' -l %s", command,
            o->name);
    if (o->letter)
        fprintf(out, " -s %c", o->letter);
    if (o->choices) {
        fputs(" -x -a '", out);
        write_completion_words(out, o->choices);
        fputc('\'', out);
    } else if (o->value) {
        fputs(" -r", out);
    }
    fputs(" -d ", out);
    fish_text(out, o->help);
    fputc('\n', out);
}

static void write_fish(FILE *out)
{
    fputs("# fish completion for tidemark: tidemark completion fish | source\n"
          "complete -c tidemark -n __fish_use_subcommand -l version -d 'print the version'\n",
          out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        const struct tmk_command *c = tmk_commands[i];
        fprintf(out, "complete -c tidemark -n __fish_use_subcommand -f -a %s -d ", c->name);
        fish_text(out, c->summary);
        fputc('\n', out);
        for (unsigned o = 0; o < c->n_options; o++)
            if (*c->options[o].name)
                fish_option(out, c->name, &c->options[o]);
        if (c->operand == TMK_OPERAND_PID)
            fprintf(out,
                    "complete -c tidemark -n '__fish_seen_subcommand_from %s' -f -a "
                    "'(" WATCHED_PIDS ")'\n",
                    c->name);
        if (c->operand != TMK_OPERAND_WORD)
            continue;
        fprintf(out, "complete -c tidemark -n '__fish_seen_subcommand_from %s' -f -a '", c->name);
        write_operand_words(out, c);
        fputs("'\n", out);
    }
}

bool tmk_completion_write(FILE *out, const char *shell)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *out);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < TMK_N(shells); i++) {
        if (strcmp(shells[i].shell, shell) != 0)
            continue;
        shells[i].write(out);
        return true;
    }
    return false;
}
