/* SPDX-License-Identifier: MIT */
/* tree_kit.c - see tree_kit.h. A tree that cannot be made ends the test program. */
#include "tree_kit.h"

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void need(bool good, const char *what)
{
    if (good)
        return;
    perror(what);
    abort();
}

static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

void tree_init(struct tree *t)
{
    memset(t, 0, sizeof *t);
    snprintf(t->root, sizeof t->root, "/tmp/tidemark-tree.XXXXXX");
    need(mkdtemp(t->root), t->root);
    snprintf(t->proc, sizeof t->proc, "%s/proc", t->root);
    snprintf(t->sys, sizeof t->sys, "%s/sys", t->root);
    snprintf(t->state, sizeof t->state, "%s/cards", t->root);
    need(mkdir(t->proc, 0700) == 0 && mkdir(t->sys, 0700) == 0, t->proc);
    t->roots = (struct tmk_device_roots){t->proc, t->sys, "libnvidia-ml-not-there.so.1"};
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

void tree_fini(struct tree *t)
{
    need(nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0, t->root);
}

static void path_of(const struct tree *t, char *to, const char *format, va_list args)
{
    int n = snprintf(to, PATH_MAX, "%s/", t->root);
    vsnprintf(to + n, PATH_MAX - (size_t)n, format, args);
    make_folders(to);
}

void tree_file(const struct tree *t, const char *text, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, format);
    path_of(t, path, format, args);
    va_end(args);
    FILE *out = fopen(path, "w");
    need(out && fputs(text, out) >= 0 && fclose(out) == 0, path);
}

void tree_link(const struct tree *t, const char *target, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, format);
    path_of(t, path, format, args);
    va_end(args);
    need(symlink(target, path) == 0, path);
}

void tree_cards(struct tree *t, const char *text)
{
    tree_file(t, text, "cards");
    setenv("FAKE_CUDA_STATE", t->state, 1);
    t->roots.nvml = getenv("FAKE_NVML");
    need(t->roots.nvml, "FAKE_NVML");
}

int tree_setup(void **state)
{
    struct tree *t = calloc(1, sizeof *t);
    if (!t)
        return -1;
    tree_init(t);
    *state = t;
    return 0;
}

int tree_teardown(void **state)
{
    tree_fini(*state);
    free(*state);
    return 0;
}
