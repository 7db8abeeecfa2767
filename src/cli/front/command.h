/* SPDX-License-Identifier: MIT */
/* cli/front/command.h - a command: one const entry, from which come dispatch, --help, shell
 * completion and docs/commands.md. */
#ifndef TMK_CLI_FRONT_COMMAND_H
#define TMK_CLI_FRONT_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

enum { TMK_MAX_OPTIONS = 36, TMK_MAX_VALUES = 128 };

struct tmk_option {
    const char *name;    /* without "--"; "": a heading, which is in `help` (TMK_OPTION_HEADING) */
    char letter;         /* 0: none */
    const char *value;   /* how help calls it; NULL: a switch; "N...": takes one or more;
                          * "N ...": takes one and may be given again */
    const char *choices; /* "text|json"; NULL: anything */
    const char *help;
};

/* A row among the options that begins a part of them. */
#define TMK_OPTION_HEADING(title)                                                                  \
    {                                                                                              \
        "", 0, NULL, NULL, title                                                                   \
    }

/* Where a command stands in the overview. */
enum tmk_command_group {
    TMK_GROUP_RECORD,
    TMK_GROUP_UNDERSTAND,
    TMK_GROUP_LIVE,
    TMK_GROUP_CLUSTER,
    TMK_GROUP_FILES,
    TMK_GROUP_HELP,
    TMK_N_GROUPS,
};

/* The kind of arguments that are no options. Completion uses it. */
enum tmk_operand {
    TMK_OPERAND_NONE,
    TMK_OPERAND_RUN,
    TMK_OPERAND_PROGRAM,
    TMK_OPERAND_WORD,
    TMK_OPERAND_PID,     /* of a process that is recorded */
    TMK_OPERAND_PROCESS, /* the PID of any */
    TMK_OPERAND_FILE,
    TMK_OPERAND_TABLE,
};

struct tmk_args;

/* Texts of the manual are lists of paragraphs that end in NULL. A paragraph is one line, however
 * long; help wraps it. "TERM\tmeaning" is an entry of a list of terms. NULL: there is no such part.
 */
struct tmk_command {
    const char *name;
    enum tmk_command_group group;
    const char *summary;            /* one imperative line, no full stop */
    const char *usage;              /* after "tidemark NAME " */
    const char *const *examples;    /* pairs: command line, what it does; ends in NULL */
    const char *const *description; /* how it works, what the words of its output mean */
    const struct tmk_option *options;
    unsigned n_options;
    const char *const *exit_status; /* NULL: as every command's */
    const char *const *json;        /* the keys of --json */
    unsigned min_operands, max_operands;
    unsigned n_targets; /* the first operands; they may be HOST:PID (cli/remote/remote.h) */
    bool asks_there;    /* run() itself calls tmk_remote_run() for a target that is HOST:PID */
    bool is_paged;      /* long output goes through a pager (cli/output/pager.h) */
    bool takes_hosts;   /* the operands are names of machines */
    bool writes_data;   /* in English whatever its options are; else see tmk_args_want_data() */
    enum tmk_operand operand;
    const char *words; /* of TMK_OPERAND_WORD: "bash|zsh|fish"; NULL: command names */
    int (*run)(const struct tmk_args *args);
};

/* All of them, in the order of the manual; ends in NULL. */
extern const struct tmk_command *const tmk_commands[];

const struct tmk_command *tmk_command_find(const char *name);

/* ---- a command line, taken apart ---- */

struct tmk_args {
    const struct tmk_command *command;
    const char *values[TMK_MAX_OPTIONS]; /* by option, the last one; NULL: not given */
    const char *listed[TMK_MAX_VALUES];  /* of options that have several, as they came */
    unsigned listed_for[TMK_MAX_VALUES]; /* the option of each */
    unsigned n_listed;
    char **operands; /* ends in NULL */
    unsigned n_operands;
    bool wants_help;
};

/* Take `argv` (which ends in NULL) apart; it is reordered, operands last. Options may stand
 * anywhere, except that a command that runs a program stops at the first operand. An option that
 * takes several values has all that follow, up to the next option or "--"; given again, it adds to
 * them. 0, or TMK_EXIT_USAGE after saying what is wrong. */
int tmk_args_parse(const struct tmk_command *command, char **argv, struct tmk_args *ret);

/* Returns the value of an option ("" for a switch), NULL when not given. The name must be in the
 * table. */
const char *tmk_args_get(const struct tmk_args *args, const char *name);
/* Write all values of an option that has several into `to` of TMK_MAX_VALUES. Returns how many. */
unsigned tmk_args_list(const struct tmk_args *args, const char *name, const char **to);

/* Take "--lang NAME" or "--lang=NAME" at argv[0], which every command has. Returns how many
 * arguments that is, 0 for another argument, -1 after a message. */
int tmk_take_language(char **argv);
/* Returns whether the command's output is for machines: it has no language (kit/language.h). */
bool tmk_args_want_data(const struct tmk_args *args);

/* ---- what is made from the table ---- */

void tmk_help_all(FILE *out);
void tmk_help_command(FILE *out, const struct tmk_command *command);
void tmk_help_markdown(FILE *out);
/* Write the page for man(1) of a command; NULL: of the program. */
void tmk_help_man(FILE *out, const struct tmk_command *command);

/* Returns the name in the table that `typed` was most likely meant to be; NULL when none is near.
 */
const char *tmk_nearest_command(const char *typed);
const char *tmk_nearest_option(const struct tmk_command *command, const char *typed);
/* Returns likewise one of the choices "a|b|c", in the caller's buffer of TMK_LONGEST_NEAR + 1
 * bytes. */
enum { TMK_LONGEST_NEAR = 24 };
const char *tmk_nearest_choice(const char *choices, const char *typed, char *buffer);

/* Returns how many letters are to be changed to make one name of the other, without regard to case;
 * very many for names that are longer than TMK_LONGEST_NEAR. */
unsigned tmk_name_distance(const char *a, const char *b);

/* Returns whether `word` is one of the choices "a|b|c". */
bool tmk_is_choice(const char *choices, const char *word);

#endif
