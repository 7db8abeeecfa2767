/* SPDX-License-Identifier: MIT */
/* cli/front/manual.c - see manual.h. One process writes all files: the build runs it each time that
 * the program has changed. */
#include "cli/front/manual.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/front/command.h"
#include "cli/front/completion.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"

/* Open a file of the folder to write; takes `name`. NULL after a message. */
static FILE *open_in(const char *folder, const char *name)
{
    char *path = tmk_xformat("%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (!out)
        tmk_say("cannot write %s: %s", path, strerror(errno));
    free(path);
    return out;
}

/* Returns 0, or an exit status after a message. */
static int write_page(const char *folder, const struct tmk_command *c)
{
    char *name = c ? tmk_xformat("tidemark-%s.1", c->name) : tmk_xstrdup("tidemark.1");
    FILE *out = open_in(folder, name);
    int status = TMK_EXIT_FINDING;
    if (out) {
        tmk_help_man(out, c);
        status = tmk_close_output(out, name, TMK_EXIT_OK);
    }
    free(name);
    return status;
}

static int write_script(const char *folder, const struct tmk_completion_shell *s)
{
    FILE *out = open_in(folder, s->file);
    if (!out)
        return TMK_EXIT_FINDING;
    s->write(out);
    return tmk_close_output(out, s->file, TMK_EXIT_OK);
}

int tmk_manual_write(const char *folder)
{
    int status = write_page(folder, NULL);
    for (unsigned i = 0; status == 0 && tmk_commands[i]; i++)
        status = write_page(folder, tmk_commands[i]);
    for (unsigned i = 0; status == 0 && tmk_completion_shells[i].shell; i++)
        status = write_script(folder, &tmk_completion_shells[i]);
    return status;
}
