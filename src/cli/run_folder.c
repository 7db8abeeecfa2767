/* SPDX-License-Identifier: MIT */
/* cli/run_folder.c - see run_folder.h. */
#include "cli/run_folder.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/say.h"
#include "cli/xalloc.h"

enum { MAX_TRIES = 100000 };

static bool is_taken(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

char *tmk_run_folder_name(const char *program)
{
    const char *slash = strrchr(program, '/');
    char *base = tmk_xstrdup(slash ? slash + 1 : program);
    for (char *c = base; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-+", *c))
            *c = '_';
    time_t now = time(NULL);
    struct tm t;
    char date[32] = "";
    if (localtime_r(&now, &t))
        strftime(date, sizeof date, "%Y%m%d-%H%M%S", &t);
    char *name = tmk_xformat("%s-%s.tmk", base, date);
    for (int i = 2; is_taken(name) && i < MAX_TRIES; i++) {
        free(name);
        name = tmk_xformat("%s-%s-%d.tmk", base, date, i);
    }
    free(base);
    return name;
}

bool tmk_run_folder_clear(const char *folder, const char *name)
{
    if (!is_taken(folder))
        return true;
    for (int i = 1; i < MAX_TRIES; i++) {
        char *aside = tmk_xformat("%s.%d", folder, i);
        bool free_name = !is_taken(aside);
        bool moved = free_name && rename(folder, aside) == 0;
        int reason = errno;
        free(aside);
        if (moved) {
            tmk_say("%s was there already; it is %s.%d now", name, name, i);
            return true;
        }
        if (free_name) {
            tmk_say("%s is there already and cannot be moved: %s", name, strerror(reason));
            return false;
        }
    }
    tmk_say("%s is there already, and so are %s.1 to .%d", name, name, MAX_TRIES - 1);
    return false;
}
