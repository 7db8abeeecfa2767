/* SPDX-License-Identifier: MIT */
/* cli/front/usage.c - see usage.h.
 *
 * Guesses go from the sure to the likely: a path that exists, a number, a typing error, a program
 * on the PATH. Nothing is run or opened for them. */
#include "cli/front/usage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "kit/print.h"
#include "model/watched.h"

int tmk_usage_see(const struct tmk_command *c)
{
    if (c)
        tmk_print(stderr, _("help: tidemark %s --help\n"), c->name);
    else
        tmk_print(stderr, _("help: tidemark --help\n"));
    return TMK_EXIT_USAGE;
}

static void write_usage(const struct tmk_command *c)
{
    tmk_print(stderr, _("usage: tidemark %s %s\n"), c->name, c->usage);
}

/* ---- options and operands ---- */

int tmk_usage_unknown_option(const struct tmk_command *c, const char *argument)
{
    const char *nearest = argument[1] == '-' ? tmk_nearest_option(c, argument + 2) : NULL;
    if (nearest)
        tmk_say("%s has no option '%s'; did you mean --%s?", c->name, argument, nearest);
    else
        tmk_say("%s has no option '%s'", c->name, argument);
    return tmk_usage_see(c);
}

/* Returns "a, b, c" for "a|b|c"; the caller's. */
static char *listed_choices(const char *choices)
{
    char *text = tmk_xcalloc(2 * strlen(choices) + 1, 1), *at = text;
    for (; *choices; choices++) {
        *at++ = *choices == '|' ? ',' : *choices;
        if (*choices == '|')
            *at++ = ' ';
    }
    return text;
}

int tmk_usage_wrong_value(const struct tmk_command *c, const struct tmk_option *o,
                          const char *value)
{
    char buffer[TMK_LONGEST_NEAR + 1];
    char *choices = o->choices ? listed_choices(o->choices) : NULL;
    const char *nearest = choices && value ? tmk_nearest_choice(o->choices, value, buffer) : NULL;
    if (!o->value)
        tmk_say("--%s takes no value", o->name);
    else if (!value && choices)
        tmk_say("--%s needs a value: %s", o->name, choices);
    else if (!value)
        tmk_say("--%s needs a value: --%s %s", o->name, o->name, o->value);
    else if (nearest)
        tmk_say("--%s: '%s' is not one of %s; did you mean %s?", o->name, value, choices, nearest);
    else
        tmk_say("--%s: '%s' is not one of %s", o->name, value, choices);
    free(choices);
    return tmk_usage_see(c);
}

/* Returns whether a word of the usage is "[options]", "--" or the like, and no operand. */
static bool is_optional(const char *word, size_t n)
{
    return (word[0] == '[' && memchr(word, ']', n) == word + n - 1) || word[0] == '-';
}

/* Returns the operands that are missing, as the usage calls them, separated by "and"; the caller's.
 */
static char *missing_operands(const struct tmk_command *c, unsigned n_given)
{
    char *text = tmk_xstrdup("");
    unsigned n_operands = 0;
    for (const char *at = c->usage; n_operands < c->min_operands && *at;) {
        size_t n = strcspn(at, " ");
        if (!is_optional(at, n) && n_operands++ >= n_given) {
            char *longer = tmk_xformat("%s%s%.*s", text, *text ? _(" and ") : "", (int)n, at);
            free(text);
            text = longer;
        }
        at += n;
        at += strspn(at, " ");
    }
    return text;
}

int tmk_usage_missing_operand(const struct tmk_command *c, unsigned n_given)
{
    char *missing = missing_operands(c, n_given);
    tmk_say("%s needs %s", c->name, missing);
    free(missing);
    write_usage(c);
    return tmk_usage_see(c);
}

int tmk_usage_extra_operand(const struct tmk_command *c, const char *operand)
{
    tmk_say("'%s' is one argument too many for %s", operand, c->name);
    write_usage(c);
    return tmk_usage_see(c);
}

/* ---- commands ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

char *tmk_usage_script(const char *program)
{
    struct stat st;
    if (!ends_with(program, ".py") || stat(program, &st) != 0 || !S_ISREG(st.st_mode))
        return NULL;
    return tmk_xformat("python3 %s", program);
}

/* Returns the command that reads a file or folder of this name; NULL: none does. */
static const char *reader_of(const char *path, mode_t mode)
{
    static const char *const by_end[][2] = {
        {".trace", "report"},     {".tmk", "report"},        {".pickle", "import"},
        {".pickle.gz", "import"}, {".safetensors", "model"}, {".pt", "model"},
        {".pth", "model"},
    };
    for (size_t i = 0; i < sizeof by_end / sizeof *by_end; i++)
        if (ends_with(path, by_end[i][0]))
            return by_end[i][1];
    return S_ISDIR(mode) ? "report" : NULL;
}

/* Say how to record this command line. */
static void tell_to_run(const char *what, const char *before, char **argv)
{
    struct tmk_arena arena = {0};
    char *line = tmk_xstrdup(before);
    for (; *argv; argv++) {
        char *longer = tmk_xformat("%s %s", line, tmk_xshell_word(&arena, *argv));
        free(line);
        line = longer;
    }
    tmk_say("'%s' is not a command of tidemark; to record it: tidemark run --%s", what, line);
    free(line);
    tmk_arena_fini(&arena);
}

/* Returns whether argv[0] was an existing path or a PID, after naming the command for it. */
static bool tell_reader(char **argv)
{
    struct stat st;
    struct tmk_arena arena = {0};
    bool is_path = stat(argv[0], &st) == 0, is_pid = tmk_watched_parse(argv[0]) != 0;
    const char *reader = is_path ? reader_of(argv[0], st.st_mode) : is_pid ? "report" : NULL;
    const char *word = tmk_xshell_word(&arena, argv[0]);
    if (reader && !is_path)
        tmk_say("'%s' is a PID, not a command; did you mean: tidemark %s %s?", word, reader, word);
    else if (reader && S_ISDIR(st.st_mode))
        tmk_say("'%s' is a folder, not a command; did you mean: tidemark %s %s?", word, reader,
                word);
    else if (reader)
        tmk_say("'%s' is a file, not a command; did you mean: tidemark %s %s?", word, reader, word);
    tmk_arena_fini(&arena);
    return reader != NULL;
}

int tmk_usage_unknown_command(char **argv)
{
    const char *name = argv[0] + strspn(argv[0], "-");
    char *script = tmk_usage_script(argv[0]);
    char *program = script ? NULL : tmk_locate_on_path(argv[0]);
    bool is_command_line = program && argv[1] && !ends_with(argv[0], ".tmk");
    if (!is_command_line && tell_reader(argv)) {
        free(script);
        free(program);
        return tmk_usage_see(NULL);
    }
    const char *nearest = tmk_command_find(name) ? name : tmk_nearest_command(name);
    if (script)
        tell_to_run(argv[0], " python3", argv);
    else if (nearest)
        tmk_say("there is no command '%s'; did you mean %s?", argv[0], nearest);
    else if (program)
        tell_to_run(argv[0], "", argv);
    else
        tmk_say("there is no command '%s'", argv[0]);
    free(script);
    free(program);
    return tmk_usage_see(NULL);
}

int tmk_usage_no_manual(const char *name)
{
    const char *nearest = tmk_nearest_command(name);
    if (nearest)
        tmk_say("there is no command '%s'; did you mean %s?", name, nearest);
    else
        tmk_say("there is no command '%s'", name);
    return tmk_usage_see(NULL);
}
