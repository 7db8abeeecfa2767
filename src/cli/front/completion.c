/* SPDX-License-Identifier: MIT */
/* cli/front/completion.c - scripts that teach bash, zsh and fish our commands, from their table.
 *
 * A script is a short program with data made from the table: for each command its options, what
 * their values are and what its operands are. What only the moment knows, PIDs and tables, it asks
 * `tidemark completion` for, which reads no trace. After `run --` a command line of its own begins,
 * and the shell completes that. */
#include "cli/front/completion.h"

#include <string.h>

#include "base/array.h"
#include "cli/front/command.h"
#include "cli/front/help.h"

/* Returns what the values of an option are, by the word that help has for them; "": no shell can
 * know. With choices it is "words". */
static const char *kind_of_value(const struct tmk_option *o)
{
    static const char *const kinds[][2] = {
        {"FILE", "file"}, {"FILE:LINE", "file"}, {"RUN", "folder"},      {"DIR", "folder"},
        {"PID", "pid"},   {"TABLE", "table"},    {"PROGRAM", "program"},
    };
    if (o->choices)
        return "words";
    for (size_t i = 0; o->value && i < TMK_N(kinds); i++)
        if (strcmp(o->value, kinds[i][0]) == 0)
            return kinds[i][1];
    return "";
}

static const char *kind_of_operand(const struct tmk_command *c)
{
    static const char *const kinds[] = {
        [TMK_OPERAND_NONE] = "",           [TMK_OPERAND_RUN] = "run",
        [TMK_OPERAND_PROGRAM] = "program", [TMK_OPERAND_WORD] = "words",
        [TMK_OPERAND_PID] = "pid",         [TMK_OPERAND_PROCESS] = "process",
        [TMK_OPERAND_FILE] = "file",       [TMK_OPERAND_TABLE] = "table",
    };
    return kinds[c->operand];
}

/* Returns how many operands are of that kind. */
static unsigned n_completed(const struct tmk_command *c)
{
    return c->n_targets ? c->n_targets : c->max_operands;
}

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
    if (c->words)
        write_completion_words(out, c->words);
    else
        write_command_names(out);
}

/* ---- bash ---- */

static const char bash_begin[] =
    "# bash completion for tidemark: eval \"$(tidemark completion bash)\"\n"
    "\n"
    "# offer KIND [WORD...]\n"
    "_tidemark_offer() {\n"
    "    local kind=$1 pids pid\n"
    "    shift\n"
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$*\" -- \"$cur\") ;;\n"
    "    table) _tidemark_offer words \"$(tidemark completion tables 2>/dev/null)\" ;;\n"
    "    program) mapfile -t COMPREPLY < <(compgen -c -f -- \"$cur\") ;;\n"
    "    process) _tidemark_offer words \"$(pgrep -U \"$(id -ru)\" -f python)\" ;;\n"
    "    pid)\n"
    "        mapfile -t pids < <(tidemark completion pids 2>/dev/null)\n"
    "        for pid in \"${pids[@]}\"; do\n"
    "            [[ $pid == \"$cur\"* ]] || continue\n"
    "            # What stands behind a PID is shown in a list, and not inserted.\n"
    "            [[ $COMP_TYPE == 63 ]] || pid=${pid%%$'\\t'*}\n"
    "            COMPREPLY+=(\"${pid/$'\\t'/  }\")\n"
    "        done\n"
    "        [[ ${#COMPREPLY[@]} != 1 ]] || COMPREPLY=(\"${COMPREPLY[0]%%  *}\")\n"
    "        ;;\n"
    "    run)\n"
    "        [[ -n ${cur//[0-9]/} ]] || _tidemark_offer pid\n"
    "        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(\n"
    "            compgen -d -X '!*.tmk' -- \"$cur\"\n"
    "            compgen -f -X '!*.trace' -- \"$cur\")\n"
    "        if [[ ${#COMPREPLY[@]} == 0 ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "        fi\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        ;;\n"
    "    folder | file)\n"
    "        if [[ $kind == file ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "        else\n"
    "            mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
    "        fi\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# The command line of a program begins at word $1.\n"
    "_tidemark_program() {\n"
    "    if declare -F _comp_command_offset >/dev/null; then\n"
    "        _comp_command_offset \"$1\"\n"
    "    elif declare -F _command_offset >/dev/null; then\n"
    "        _command_offset \"$1\"\n"
    "    elif [[ $1 == \"$COMP_CWORD\" ]]; then\n"
    "        _tidemark_offer program\n"
    "    else\n"
    "        _tidemark_offer file\n"
    "    fi\n"
    "}\n"
    "\n"
    "_tidemark() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    local name='' options='' valued='' kind='' most=0 words='' value='' i word skip='' n=0\n"
    "    COMPREPLY=()\n"
    "    if [[ $cur == = ]]; then\n"
    "        cur=\n"
    "    elif [[ $prev == = ]]; then\n"
    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
    "    fi\n"
    "    if [[ $prev == --lang ]]; then\n"
    "        _tidemark_offer words zh en\n"
    "        return\n"
    "    elif [[ $prev == --color ]]; then\n"
    "        _tidemark_offer words always never auto\n"
    "        return\n"
    "    fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [[ $word == = || $word == --lang || $word == --color ]]; then\n"
    "            skip=1\n"
    "        elif [[ -n $skip ]]; then\n"
    "            skip=\n"
    "        elif [[ $word != -* ]]; then\n"
    "            name=$word\n"
    "            break\n"
    "        fi\n"
    "    done\n"
    "    case $name in\n";

static const char bash_end[] = "    esac\n"
                               "    for ((i++; i < COMP_CWORD; i++)); do\n"
                               "        word=${COMP_WORDS[i]}\n"
                               "        if [[ $word == = ]]; then\n"
                               "            skip=1\n"
                               "        elif [[ -n $skip ]]; then\n"
                               "            skip=\n"
                               "        elif [[ $word == -- && $kind == program ]]; then\n"
                               "            _tidemark_program $((i + 1))\n"
                               "            return\n"
                               "        elif [[ $word == -?* ]]; then\n"
                               "            [[ $valued != *\" $word \"* ]] || skip=1\n"
                               "        elif [[ $kind == program ]]; then\n"
                               "            _tidemark_program \"$i\"\n"
                               "            return\n"
                               "        else\n"
                               "            n=$((n + 1))\n"
                               "        fi\n"
                               "    done\n"
                               "    if [[ -n $value ]]; then\n"
                               "        # shellcheck disable=SC2086 # a list of words\n"
                               "        _tidemark_offer $value\n"
                               "    elif [[ $valued == *\" $prev \"* ]]; then\n"
                               "        return\n"
                               "    elif [[ $cur == -* ]]; then\n"
                               "        _tidemark_offer words \"$options\"\n"
                               "    elif [[ $n -lt $most ]]; then\n"
                               "        _tidemark_offer \"$kind\" \"$words\"\n"
                               "    fi\n"
                               "}\n"
                               "complete -F _tidemark tidemark\n";

static void bash_values(FILE *out, const struct tmk_command *c)
{
    fputs("        case $prev in\n", out);
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        const char *kind = kind_of_value(o);
        if (!*kind)
            continue;
        fputs("        ", out);
        if (o->letter)
            fprintf(out, "-%c | ", o->letter);
        fprintf(out, "--%s) value='%s%s", o->name, kind, o->choices ? " " : "");
        if (o->choices)
            write_completion_words(out, o->choices);
        fputs("' ;;\n", out);
    }
    fputs("        esac\n", out);
}

static void bash_command(FILE *out, const struct tmk_command *c)
{
    fprintf(out, "    %s)\n        options='", c->name);
    for (unsigned i = 0; i < c->n_options; i++)
        if (*c->options[i].name)
            fprintf(out, "--%s ", c->options[i].name);
    fputs("--lang --help'\n        valued=' ", out);
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        if (o->value && o->letter)
            fprintf(out, "-%c ", o->letter);
        if (o->value)
            fprintf(out, "--%s ", o->name);
    }
    fprintf(out, "'\n        kind='%s' most=%u words='", kind_of_operand(c), n_completed(c));
    if (c->operand == TMK_OPERAND_WORD)
        write_operand_words(out, c);
    fputs("'\n", out);
    bash_values(out, c);
    fputs("        ;;\n", out);
}

static void write_bash(FILE *out)
{
    fputs(bash_begin, out);
    fputs("    '')\n        options='--help --version --lang --color --no-pager' kind=words most=1 "
          "words='",
          out);
    write_command_names(out);
    fputs("'\n        i=$COMP_CWORD\n        ;;\n", out);
    for (unsigned i = 0; tmk_commands[i]; i++)
        bash_command(out, tmk_commands[i]);
    fputs(bash_end, out);
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

/* Write how zsh completes what is of this kind. */
static void zsh_action(FILE *out, const char *kind)
{
    static const char *const actions[][2] = {
        {"file", "_files"},        {"folder", "_files -/"},       {"program", "_command_names -e"},
        {"pid", "_tidemark_pids"}, {"table", "_tidemark_tables"}, {"run", "_tidemark_runs"},
        {"process", "_pids"},
    };
    for (size_t i = 0; i < TMK_N(actions); i++)
        if (strcmp(actions[i][0], kind) == 0)
            fputs(actions[i][1], out);
}

static void zsh_option(FILE *out, const struct tmk_option *o)
{
    fputs("                ", out);
    if (o->letter)
        fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter,
                o->value ? "+" : "", o->name, o->value ? "=" : "");
    else
        fprintf(out, "'--%s%s[", o->name, o->value ? "=" : "");
    zsh_text(out, o->help);
    fputc(']', out);
    if (o->value) {
        fputc(':', out);
        zsh_text(out, o->value);
        fputc(':', out);
    }
    if (o->choices) {
        fputc('(', out);
        write_completion_words(out, o->choices);
        fputc(')', out);
    } else {
        zsh_action(out, kind_of_value(o));
    }
    fputs("' \\\n", out);
}

static void zsh_operands(FILE *out, const struct tmk_command *c)
{
    const char *kind = kind_of_operand(c);
    fputs("                '--lang=[" TMK_HELP_LANG "]:NAME:(zh en)' \\\n"
          "                '(-h --help)'{-h,--help}'[" TMK_HELP_HELP "]'",
          out);
    if (c->operand == TMK_OPERAND_PROGRAM)
        fputs(" \\\n                '(-):program: _command_names -e' '*::arguments: _normal'", out);
    for (unsigned i = 0; *kind && c->operand != TMK_OPERAND_PROGRAM && i < n_completed(c); i++) {
        bool is_many = n_completed(c) > 2;
        fprintf(out, is_many ? " \\\n                '*:%s:" : " \\\n                '%s:%s:",
                is_many ? kind
                : i     ? "2"
                        : "1",
                kind);
        if (c->operand == TMK_OPERAND_WORD) {
            fputc('(', out);
            write_operand_words(out, c);
            fputc(')', out);
        } else {
            zsh_action(out, kind);
        }
        fputc('\'', out);
        if (is_many)
            break;
    }
    fputc('\n', out);
}

static const char zsh_begin[] =
    "#compdef tidemark\n"
    "# zsh completion for tidemark: source <(tidemark completion zsh), or as _tidemark in $fpath\n"
    "\n"
    "_tidemark_pids() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(tidemark completion pids 2>/dev/null)\"})\n"
    "    found=(${${found//:/\\\\:}/$'\\t'/:})\n"
    "    _describe -V 'recorded process' found\n"
    "}\n"
    "\n"
    "_tidemark_tables() {\n"
    "    local -a found\n"
    "    found=(${(f)\"$(tidemark completion tables 2>/dev/null)\"})\n"
    "    _describe table found\n"
    "}\n"
    "\n"
    "_tidemark_runs() {\n"
    "    _alternative 'runs:run:_files -g \"*.(tmk|trace)(-.,-/)\"' "
    "'pids:recorded process:_tidemark_pids'\n"
    "}\n"
    "\n"
    "_tidemark() {\n"
    "    local -a verbs\n"
    "    verbs=(\n";

static void write_zsh(FILE *out)
{
    fputs(zsh_begin, out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        fprintf(out, "        '%s:", tmk_commands[i]->name);
        zsh_text(out, tmk_commands[i]->summary);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then\n"
          "        if [[ $PREFIX == -* ]]; then\n"
          "            _arguments '--version[" TMK_HELP_VERSION "]' '--help[" TMK_HELP_HELP
          "]' \\\n"
          "                '--lang=[" TMK_HELP_LANG "]:NAME:(zh en)' '--no-pager[" TMK_HELP_NO_PAGER
          "]' \\\n"
          "                '--color=[" TMK_HELP_COLOR "]:WHEN:(always never auto)'\n"
          "        else\n"
          "            _describe command verbs\n"
          "        fi\n"
          "        return\n"
          "    fi\n"
          "    shift words\n"
          "    (( CURRENT-- ))\n"
          "    case $words[1] in\n"
          "        run|sweep)\n"
          "            # Behind -- another command line begins.\n"
          "            local -i at=${words[(i)--]}\n"
          "            if (( at < CURRENT )); then\n"
          "                words=(\"${(@)words[at+1,-1]}\")\n"
          "                (( CURRENT -= at ))\n"
          "                _normal -P\n"
          "                return\n"
          "            fi\n"
          "            ;|\n",
          out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        const struct tmk_command *c = tmk_commands[i];
        fprintf(out, "        %s)\n            _arguments -S \\\n", c->name);
        for (unsigned o = 0; o < c->n_options; o++)
            if (*c->options[o].name)
                zsh_option(out, &c->options[o]);
        zsh_operands(out, c);
        fputs("            ;;\n", out);
    }
    fputs("    esac\n"
          "}\n"
          "\n"
          "if [[ $funcstack[1] == _tidemark ]]; then\n"
          "    _tidemark \"$@\"\n"
          "else\n"
          "    compdef _tidemark tidemark\n"
          "fi\n",
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

/* Write how fish completes what is of this kind: an option's value, or an operand. */
static void fish_action(FILE *out, const char *kind)
{
    static const char *const actions[][2] = {
        {"file", " -F"},
        {"folder", " -x -a '(__fish_complete_directories)'"},
        {"program", " -x -a '(__fish_complete_command)'"},
        {"pid", " -x -k -a '(tidemark completion pids 2>/dev/null)'"},
        {"table", " -x -a '(tidemark completion tables 2>/dev/null)'"},
        {"run", " -k -x -a '(__fish_complete_suffix .tmk; tidemark completion pids 2>/dev/null)'"},
        {"process", " -x -a '(__fish_complete_pids)'"},
    };
    for (size_t i = 0; i < TMK_N(actions); i++)
        if (strcmp(actions[i][0], kind) == 0)
            fputs(actions[i][1], out);
}

static void fish_option(FILE *out, const char *command, const struct tmk_option *o)
{
    fprintf(out, "complete -c tidemark -n '__tidemark_in %s' -l %s", command, o->name);
    if (o->letter)
        fprintf(out, " -s %c", o->letter);
    if (o->value)
        fputs(" -r", out);
    if (o->choices) {
        fputs(" -x -a '", out);
        write_completion_words(out, o->choices);
        fputc('\'', out);
    } else if (o->value && *kind_of_value(o)) {
        fish_action(out, kind_of_value(o));
    } else if (o->value) {
        fputs(" -f", out);
    }
    fputs(" -d ", out);
    fish_text(out, o->help);
    fputc('\n', out);
}

static void fish_operands(FILE *out, const struct tmk_command *c)
{
    fprintf(out, "complete -c tidemark -n '__tidemark_in %s", c->name);
    if (c->operand == TMK_OPERAND_PROGRAM) {
        fputs("' -x -a '(__tidemark_program)'\n", out);
    } else if (c->operand == TMK_OPERAND_NONE) {
        fputs("' -f\n", out);
    } else if (c->operand == TMK_OPERAND_WORD) {
        fputs("' -x -a '", out);
        write_operand_words(out, c);
        fputs("'\n", out);
    } else {
        fputc('\'', out);
        fish_action(out, kind_of_operand(c));
        fputc('\n', out);
    }
}

static const char fish_begin[] =
    "# fish completion for tidemark: tidemark completion fish | source\n"
    "\n"
    "# Is this the command? What stands behind -- is another command line.\n"
    "function __tidemark_in\n"
    "    set -l words (commandline -opc)\n"
    "    test \"$words[2]\" = $argv[1]; and not contains -- -- $words\n"
    "end\n"
    "\n"
    "# Complete the command line of the program that run and sweep start.\n"
    "function __tidemark_program\n"
    "    set -l words (commandline -opc)\n"
    "    set -l at (contains -i -- -- $words)\n"
    "    if test -n \"$at\"; and test (count $words) -gt $at\n"
    "        set -l rest (string escape -- $words[(math $at + 1)..-1]) (commandline -ct)\n"
    "        complete -C \"$rest\"\n"
    "    else\n"
    "        __fish_complete_command\n"
    "    end\n"
    "end\n"
    "\n"
    "complete -c tidemark -n __fish_use_subcommand -f -l version -d '" TMK_HELP_VERSION "'\n"
    "complete -c tidemark -f -s h -l help -d '" TMK_HELP_HELP "'\n"
    "complete -c tidemark -n __fish_use_subcommand -x -l color -a 'always never auto' -d "
    "'" TMK_HELP_COLOR "'\n"
    "complete -c tidemark -n __fish_use_subcommand -f -l no-pager -d '" TMK_HELP_NO_PAGER "'\n"
    "complete -c tidemark -x -l lang -a 'zh en' -d \"" TMK_HELP_LANG "\"\n"
    "complete -c tidemark -n 'contains -- -- (commandline -opc)' -x -a '(__tidemark_program)'\n";

static void write_fish(FILE *out)
{
    fputs(fish_begin, out);
    for (unsigned i = 0; tmk_commands[i]; i++) {
        const struct tmk_command *c = tmk_commands[i];
        fprintf(out, "complete -c tidemark -n __fish_use_subcommand -f -a %s -d ", c->name);
        fish_text(out, c->summary);
        fputc('\n', out);
        for (unsigned o = 0; o < c->n_options; o++)
            if (*c->options[o].name)
                fish_option(out, c->name, &c->options[o]);
        fish_operands(out, c);
    }
}

const struct tmk_completion_shell tmk_completion_shells[] = {
    {"bash", "tidemark", write_bash},
    {"zsh", "_tidemark", write_zsh},
    {"fish", "tidemark.fish", write_fish},
    {NULL, NULL, NULL},
};
