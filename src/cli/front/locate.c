/* SPDX-License-Identifier: MIT */
/* cli/front/locate.c - see locate.h. */
#include "cli/front/locate.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/xalloc.h"

/* Find the path of this program; without /proc, as it was called. False: it is not known. */
static bool read_own_path(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n > 0) {
        path[n] = '\0';
        return true;
    }
    const char *called = (const char *)getauxval(AT_EXECFN);
    return called && realpath(called, path);
}

char *tmk_locate_here(void)
{
    char path[PATH_MAX];
    if (!read_own_path(path))
        return tmk_xstrdup(".");
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
    return tmk_xstrdup(path[0] ? path : "/");
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, R_OK) == 0;
}

char *tmk_absolute_path(const char *path)
{
    char folder[PATH_MAX];
    char *whole = path[0] == '/' || !getcwd(folder, sizeof folder)
                      ? tmk_xstrdup(path)
                      : tmk_xformat("%s/%s", folder, path);
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--)
        whole[n - 1] = '\0';
    return whole;
}

char *tmk_locate_library(void)
{
    static const char *const places[] = {"", "/../lib", "/../lib/tidemark"};
    const char *named = getenv("TIDEMARK_LIB");
    if (named && *named)
        return is_file(named) ? tmk_absolute_path(named) : NULL;
    char *here = tmk_locate_here();
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
        char *path = tmk_xformat("%s%s/libtidemark.so", here, places[i]);
        found = is_file(path) ? realpath(path, NULL) : NULL;
        free(path);
    }
    free(here);
    return found;
}

char *tmk_locate_program(const char *name)
{
    char *here = tmk_locate_here();
    char *path = tmk_xformat("%s/%s", here, name);
    free(here);
    if (is_file(path) && access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *tmk_locate_on_path(const char *name)
{
    if (strchr(name, '/'))
        return tmk_xstrdup(name);
    const char *path = getenv("PATH");
    char *folders = tmk_xstrdup(path ? path : "/bin:/usr/bin");
    char *found = NULL, *save = NULL;
    for (char *folder = strtok_r(folders, ":", &save); folder && !found;
         folder = strtok_r(NULL, ":", &save)) {
        found = tmk_xformat("%s/%s", folder, name);
        if (access(found, X_OK) < 0) {
            free(found);
            found = NULL;
        }
    }
    free(folders);
    return found;
}
