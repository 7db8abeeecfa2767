/* SPDX-License-Identifier: MIT */
/* cli/run/run_folder.c - see run_folder.h. */
#include "cli/run/run_folder.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/leftovers.h"
#include "cli/run/run_content.h"
#include "cli/run/run_lock.h"

enum { MAX_TRIES = 100000 };

static bool was_there; /* the folder claimed last, empty */

static bool is_taken(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Returns "PROGRAM-DATE-TIME.tmk", with a number before ".tmk" unless it is the first; the
 * caller's. */
static char *make_folder_name(const char *program, int number)
{
    const char *slash = strrchr(program, '/');
    char *base = tmk_xstrdup(slash ? slash + 1 : program);
    for (char *c = base; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    if (*base == '-')
        *base = '_';
    time_t now = time(NULL);
    struct tm t;
    char date[32] = "", suffix[16] = "";
    if (localtime_r(&now, &t))
        strftime(date, sizeof date, "%Y%m%d-%H%M%S", &t);
    if (number > 1)
        snprintf(suffix, sizeof suffix, "-%d", number);
    char *name = tmk_xformat("%s-%s%s.tmk", base, date, suffix);
    free(base);
    return name;
}

char *tmk_run_folder_name(const char *program)
{
    char *name = make_folder_name(program, 1);
    for (int i = 2; is_taken(name) && i < MAX_TRIES; i++) {
        free(name);
        name = make_folder_name(program, i);
    }
    return name;
}

/* ---- making way ---- */

/* The name must be free: an empty folder would be replaced by rename(). */
static int rename_to_free(const char *from, const char *to)
{
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc == 0 || (errno != EINVAL && errno != ENOSYS))
        return rc; /* else the file system cannot promise that */
    if (is_taken(to)) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

/* Move an ended run to the first free of `folder`.1, .2 ... and say so. */
static bool move_aside(const char *folder, const char *name)
{
    for (int i = 1; i < MAX_TRIES; i++) {
        char *aside = tmk_xformat("%s.%d", folder, i);
        bool moved = rename_to_free(folder, aside) == 0;
        int reason = errno;
        free(aside);
        if (moved) {
            tmk_say("%s was there already; it is %s.%d now", name, name, i);
            return true;
        }
        if (reason != EEXIST) {
            tmk_say("%s is there already and cannot be moved: %s", name, strerror(reason));
            return false;
        }
    }
    tmk_say("%s is there already, and so are %s.1 to .%d", name, name, MAX_TRIES - 1);
    return false;
}

/* Returns whether the last part of the path names a folder in another one. */
static bool names_folder(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    const char *last = slash ? slash + 1 : folder;
    return *last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0;
}

static bool make_way(const char *folder, const char *name)
{
    char text[TMK_RUN_CONTENT_TEXT_BYTES];
    was_there = false;
    switch (tmk_run_content_look(folder, text)) {
    case TMK_RUN_CONTENT_EMPTY:
        was_there = true;
        return true;
    case TMK_RUN_CONTENT_NOTHING:
        return true;
    case TMK_RUN_CONTENT_ENDED:
        tmk_leftovers_settle(folder); /* rings know their traces by path */
        return move_aside(folder, name);
    case TMK_RUN_CONTENT_LIVING:
        tmk_say("%s %s; wait for its end, or name another folder: -o RUN", name, text);
        return false;
    case TMK_RUN_CONTENT_FOREIGN:
        break;
    }
    tmk_say("%s %s; it is left as it is: name another folder, -o RUN", name, text);
    return false;
}

bool tmk_run_folder_claim(const char *folder, const char *name)
{
    if (!*name || !names_folder(folder)) {
        tmk_say("'%s' is no name for a new folder; give one: -o NAME.tmk", name);
        return false;
    }
    if (tmk_run_lock_take(folder) == TMK_RUN_LOCK_BUSY) {
        tmk_say("another tidemark is recording into %s; wait for its end, or name another folder: "
                "-o RUN",
                name);
        tmk_say("to record several ranks into one run: tidemark run -o RUN -- mpirun ..., or "
                "tidemark env");
        return false;
    }
    if (make_way(folder, name))
        return true;
    tmk_run_lock_release();
    return false;
}

bool tmk_run_folder_claim_new(const char *program, char **ret_name, char **ret_folder)
{
    char text[TMK_RUN_CONTENT_TEXT_BYTES];
    for (int i = 1; i < MAX_TRIES; i++) {
        char *name = make_folder_name(program, i);
        char *folder = tmk_absolute_path(name);
        if (tmk_run_lock_take(folder) != TMK_RUN_LOCK_BUSY &&
            tmk_run_content_look(folder, text) == TMK_RUN_CONTENT_NOTHING) {
            was_there = false;
            *ret_name = name;
            *ret_folder = folder;
            return true;
        }
        free(name);
        free(folder);
    }
    tmk_say("there is no free name for the run; give one: -o NAME.tmk");
    return false;
}

bool tmk_run_folder_was_there(void)
{
    return was_there;
}

void tmk_run_folder_release(void)
{
    tmk_run_lock_release();
}
