/* SPDX-License-Identifier: MIT */
/* cli/front/nearest.c - finds what a word with a typing error was meant to be: the name with the
 * smallest edit distance. Two neighbouring letters in the wrong order count as one error. */
#include <ctype.h>
#include <string.h>

#include "cli/front/command.h"

enum { LONGEST = TMK_LONGEST_NEAR, FAR = 99 };

static unsigned least_of_three(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

static unsigned edit_distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    unsigned d[LONGEST + 1][LONGEST + 1];
    if (na > LONGEST || nb > LONGEST)
        return FAR;
    for (unsigned i = 0; i <= na; i++)
        d[i][0] = i;
    for (unsigned j = 0; j <= nb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        for (size_t j = 1; j <= nb; j++) {
            unsigned changed = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least_of_three(d[i - 1][j] + 1, d[i][j - 1] + 1, changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least_of_three(d[i][j], d[i - 2][j - 2] + 1, FAR);
        }
    }
    return d[na][nb];
}

static void copy_lower(const char *from, char *to)
{
    size_t n = 0;
    for (; n <= LONGEST && from[n]; n++)
        to[n] = (char)tolower((unsigned char)from[n]);
    to[n] = '\0';
}

unsigned tmk_name_distance(const char *a, const char *b)
{
    char lower_a[LONGEST + 2], lower_b[LONGEST + 2];
    copy_lower(a, lower_a);
    copy_lower(b, lower_b);
    return edit_distance(lower_a, lower_b);
}

/* Take `name` if it is nearer than the best so far. It may have two errors at most, a name of four
 * letters or fewer one, and fewer than it has letters. */
static void consider_name(const char *typed, const char *name, unsigned *best,
                          const char **ret_name)
{
    unsigned n = edit_distance(typed, name), most = strlen(name) > 4 ? 2 : 1;
    if (n <= most && n < *best && n < strlen(name)) {
        *best = n;
        *ret_name = name;
    }
}

const char *tmk_nearest_command(const char *typed)
{
    unsigned best = FAR;
    const char *name = NULL;
    for (unsigned i = 0; tmk_commands[i]; i++)
        consider_name(typed, tmk_commands[i]->name, &best, &name);
    return name;
}

const char *tmk_nearest_option(const struct tmk_command *command, const char *typed)
{
    unsigned best = FAR;
    const char *name = NULL;
    for (unsigned i = 0; i < command->n_options; i++)
        if (*command->options[i].name)
            consider_name(typed, command->options[i].name, &best, &name);
    return name;
}

const char *tmk_nearest_choice(const char *choices, const char *typed, char *buffer)
{
    unsigned best = FAR;
    const char *name = NULL;
    char choice[LONGEST + 1];
    for (const char *at = choices; *at;) {
        size_t n = strcspn(at, "|");
        if (n <= LONGEST) {
            memcpy(choice, at, n);
            choice[n] = '\0';
            unsigned before = best;
            consider_name(typed, choice, &best, &name);
            if (best < before)
                memcpy(buffer, choice, n + 1);
        }
        at += n + (at[n] == '|');
    }
    return name ? buffer : NULL;
}
