/* SPDX-License-Identifier: MIT */
/* cli/front/command.c - see command.h: taking a command line apart. */
#include "cli/front/command.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "cli/front/usage.h"
#include "cli/output/say.h"
#include "kit/language.h"

const struct tmk_command *tmk_command_find(const char *name)
{
    for (unsigned i = 0; tmk_commands[i]; i++)
        if (strcmp(tmk_commands[i]->name, name) == 0)
            return tmk_commands[i];
    return NULL;
}

bool tmk_is_choice(const char *choices, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = choices; n > 0 && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, word, n) == 0 && (at[n] == '|' || at[n] == '\0'))
            return true;
    }
    return false;
}

/* Returns the option's place in the command's table. */
static unsigned number_of_option(const struct tmk_command *c, const char *name)
{
    for (unsigned i = 0; i < c->n_options; i++)
        if (strcmp(c->options[i].name, name) == 0)
            return i;
    assert(!"an option that is not in the command's table");
    return 0;
}

const char *tmk_args_get(const struct tmk_args *args, const char *name)
{
    return args->values[number_of_option(args->command, name)];
}

unsigned tmk_args_list(const struct tmk_args *args, const char *name, const char **to)
{
    unsigned n = 0, option = number_of_option(args->command, name);
    for (unsigned i = 0; i < args->n_listed; i++)
        if (args->listed_for[i] == option)
            to[n++] = args->listed[i];
    return n;
}

/* ---- options ---- */

/* Find the option of "--name", "--name=value", "-n" or "-nVALUE". *ret_value is what stands behind
 * '=', or behind the letter. */
static const struct tmk_option *find_option(const struct tmk_command *c, const char *argument,
                                            const char **ret_value)
{
    bool is_long = argument[1] == '-';
    size_t n = strcspn(argument, "=");
    *ret_value = argument[n] ? argument + n + 1 : NULL;
    for (unsigned i = 0; i < c->n_options; i++) {
        const struct tmk_option *o = &c->options[i];
        if (!*o->name)
            continue;
        if (is_long && strlen(o->name) == n - 2 && strncmp(o->name, argument + 2, n - 2) == 0)
            return o;
        if (is_long || !o->letter || argument[1] != o->letter || (n > 2 && !o->value))
            continue;
        if (n > 2)
            *ret_value = argument + 2;
        return o;
    }
    return NULL;
}

/* Returns whether a word is an option. SQL may begin with a comment: "-- text" is none. */
static bool is_option(const char *argument)
{
    size_t dashes = strspn(argument, "-");
    return dashes > 0 && argument[dashes] != '\0' && !isspace((unsigned char)argument[dashes]);
}

static bool has_several(const struct tmk_option *o)
{
    size_t n = o->value ? strlen(o->value) : 0;
    return n > 3 && strcmp(o->value + n - 3, "...") == 0;
}

/* Returns whether an option takes several values at once, without its name before each. */
static bool takes_several(const struct tmk_option *o)
{
    return has_several(o) && o->value[strlen(o->value) - 4] != ' ';
}

/* Returns whether this ends the values of an option that takes several. */
static bool ends_values(const char *argument)
{
    return !argument || strcmp(argument, "--") == 0 || is_option(argument);
}

/* Note one value. False after a message. */
static bool take_option_value(struct tmk_args *args, const struct tmk_option *o, const char *value)
{
    unsigned number = (unsigned)(o - args->command->options);
    args->values[number] = value;
    if (!has_several(o))
        return true;
    if (args->n_listed == TMK_MAX_VALUES) {
        tmk_say("--%s: '%s' is one value too many", o->name, value);
        return false;
    }
    args->listed[args->n_listed] = value;
    args->listed_for[args->n_listed++] = number;
    return true;
}

/* Take the further values of an option, from `argv` on. Returns how many, or -1 after a message. */
static int take_further(struct tmk_args *args, const struct tmk_option *o, char **argv)
{
    int n = 0;
    for (; takes_several(o) && !ends_values(argv[n]); n++)
        if (!take_option_value(args, o, argv[n]))
            return -1;
    return n;
}

/* Take the option at argv[0]. Returns how many arguments it has, or 0 after a message. */
static unsigned take_option(struct tmk_args *args, char **argv)
{
    const struct tmk_command *c = args->command;
    const char *value = NULL;
    const struct tmk_option *o = find_option(c, argv[0], &value);
    if (!o) {
        tmk_usage_unknown_option(c, argv[0]);
        return 0;
    }
    unsigned n = 1;
    if (o->value && !value) {
        value = takes_several(o) && ends_values(argv[1]) ? NULL : argv[1];
        n = 2;
    }
    if ((o->value && !value) || (!o->value && value) ||
        (o->choices && value && !tmk_is_choice(o->choices, value))) {
        tmk_usage_wrong_value(c, o, value);
        return 0;
    }
    int more = 0;
    if (!take_option_value(args, o, o->value ? value : "") ||
        (n == 2 && (more = take_further(args, o, argv + 2)) < 0))
        return 0;
    return n + (unsigned)more;
}

/* ---- the language ---- */

int tmk_take_language(char **argv)
{
    static const char option[] = "--lang";
    const char *name = argv[1];
    int n = 2;
    if (strncmp(argv[0], option, strlen(option)) != 0)
        return 0;
    if (argv[0][strlen(option)] == '=') {
        name = argv[0] + strlen(option) + 1;
        n = 1;
    } else if (argv[0][strlen(option)] != '\0') {
        return 0;
    }
    if (name && tmk_language_set(name) == 0)
        return n;
    if (name)
        tmk_say("--lang: '%s' is no language; it takes zh, en or a locale's name", name);
    else
        tmk_say("--lang needs a value: zh, en or a locale's name");
    return -1;
}

bool tmk_args_want_data(const struct tmk_args *args)
{
    const struct tmk_command *c = args->command;
    for (unsigned i = 0; i < c->n_options; i++) {
        const char *value = args->values[i];
        if (value && (strcmp(c->options[i].name, "json") == 0 || strcmp(value, "json") == 0 ||
                      strcmp(value, "csv") == 0 || strcmp(value, "html") == 0))
            return true;
    }
    return c->writes_data;
}

/* ---- operands ---- */

static int check_operands(const struct tmk_args *args)
{
    const struct tmk_command *c = args->command;
    if (args->n_operands < c->min_operands)
        return tmk_usage_missing_operand(c, args->n_operands);
    if (args->n_operands > c->max_operands)
        return tmk_usage_extra_operand(c, args->operands[c->max_operands]);
    return 0;
}

int tmk_args_parse(const struct tmk_command *command, char **argv, struct tmk_args *ret)
{
    struct tmk_args args = {.command = command, .operands = argv};
    bool runs_program = command->operand == TMK_OPERAND_PROGRAM;
    bool options_end = false;
    while (*argv) {
        if (!options_end && strcmp(*argv, "--") == 0) {
            options_end = true;
            argv++;
        } else if (options_end || !is_option(*argv)) {
            options_end |= runs_program;
            args.operands[args.n_operands++] = *argv++;
        } else if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0) {
            args.wants_help = true;
            argv++;
        } else {
            int language = tmk_take_language(argv);
            unsigned n = language ? (unsigned)language : take_option(&args, argv);
            if (n == 0 || language < 0)
                return TMK_EXIT_USAGE;
            argv += n;
        }
    }
    args.operands[args.n_operands] = NULL;
    int status = args.wants_help ? 0 : check_operands(&args);
    if (status == 0)
        *ret = args;
    return status;
}
