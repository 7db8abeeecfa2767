/* SPDX-License-Identifier: MIT */
/* loader_program.c - asks the loader in every way whose answer depends on who asks, and prints what
 * it was told. A library that is preloaded and defines dlsym and dlopen must not change a line.
 *
 *     loader_program FOLDER     where libloader_outer.so and its like lie */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define OLD_VERSION "GLIBC_2.2.5"
#else
#define OLD_VERSION "GLIBC_2.17" /* the oldest of aarch64 */
#endif

/* Seen by libraries through RTLD_DEFAULT: the program is linked with --export-dynamic. */
int loader_in_program(void);
int loader_in_program(void)
{
    return 1;
}

static const char *folder;

static void *open_library(const char *name, int flags)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    void *handle = dlopen(path, flags);
    if (!handle) {
        printf("dlopen %s: %s\n", name, dlerror());
        exit(1);
    }
    return handle;
}

/* Of which file an address is, without its folders. */
static const char *file_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return "none";
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static int call(void *handle, const char *name)
{
    int (*function)(void);
    *(void **)&function = dlsym(handle, name);
    return function ? function() : -1;
}

/* ---- what it asks ---- */

static void ask_scopes(void)
{
    printf("default qsort: %s\n", file_of(dlsym(RTLD_DEFAULT, "qsort")));
    printf("next qsort: %s\n", file_of(dlsym(RTLD_NEXT, "qsort")));
    printf("default of the program: %s\n", file_of(dlsym(RTLD_DEFAULT, "loader_in_program")));
    printf("next of the program: %s\n", file_of(dlsym(RTLD_NEXT, "loader_in_program")));
}

static void ask_for_what_is_not_there(void)
{
    void *nothing = dlsym(RTLD_DEFAULT, "loader_nowhere");
    printf("missing symbol: %d %s\n", !nothing, dlerror());
    printf("no second error: %d\n", dlerror() == NULL);
    printf("missing library: %d\n", dlopen("libloader_nowhere.so", RTLD_NOW) == NULL);
    printf("its error: %s\n", dlerror());
    printf("not loaded: %d\n", dlopen("libloader_nowhere.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
    (void)dlerror();
}

/* A symbol whose value is 0 is not an error; dlerror tells. */
static void ask_versions(void)
{
    printf("old qsort: %s\n", file_of(dlvsym(RTLD_DEFAULT, "qsort", OLD_VERSION)));
    printf("next old qsort: %s\n", file_of(dlvsym(RTLD_NEXT, "qsort", OLD_VERSION)));
    void *nothing = dlvsym(RTLD_DEFAULT, "qsort", "GLIBC_9.9");
    printf("no such version: %d %s\n", !nothing, dlerror());
}

/* Of a library that only its opener sees: its own symbols, those of what it needs, the program's.
 */
static void ask_from_local(int flags)
{
    void *local = open_library("libloader_local.so", RTLD_NOW | flags);
    printf("its own by default: %d\n", call(local, "loader_own_by_default"));
    printf("what it needs by default: %d\n", call(local, "loader_needed_by_default"));
    printf("what it needs by next: %d\n", call(local, "loader_needed_by_next"));
    printf("its own by next: %d\n", call(local, "loader_own_by_next"));
    printf("the program's by default: %d\n", call(local, "loader_program_by_default"));
    printf("seen from outside: %d\n", dlsym(RTLD_DEFAULT, "loader_own") != NULL);
    printf("through its handle: %d %d\n", call(local, "loader_own"), call(local, "loader_needed"));
    dlclose(local);
}

/* A library that opens another by name, which is found by the opener's RUNPATH, $ORIGIN/inner. */
static void ask_origin(void)
{
    printf("without the way to it: %d\n", dlopen("libloader_inner.so", RTLD_NOW) == NULL);
    (void)dlerror();
    void *outer = open_library("libloader_outer.so", RTLD_NOW | RTLD_LOCAL);
    printf("in its constructor: %d\n", call(outer, "loader_inner_at_start"));
    printf("by its origin: %d\n", call(outer, "loader_open_inner"));
    dlclose(outer);
}

static void ask_namespace(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/libloader_outer.so", folder);
    void *apart = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    printf("a namespace of its own: %s\n", apart ? "yes" : dlerror());
    if (!apart)
        return;
    printf("by its origin there: %d\n", call(apart, "loader_open_inner"));
    dlclose(apart);
}

/* dlsym and dlopen can be asked for, too. */
static void ask_through_pointers(void)
{
    void *(*its_dlsym)(void *, const char *);
    void *(*its_dlopen)(const char *, int);
    *(void **)&its_dlsym = dlsym(RTLD_DEFAULT, "dlsym");
    *(void **)&its_dlopen = its_dlsym(RTLD_DEFAULT, "dlopen");
    printf("qsort through a pointer: %s\n", file_of(its_dlsym(RTLD_DEFAULT, "qsort")));
    printf("next through a pointer: %s\n", file_of(its_dlsym(RTLD_NEXT, "qsort")));
    void *self = its_dlopen(NULL, RTLD_LAZY);
    printf("the program through a pointer: %d\n", call(self, "loader_in_program"));
    dlclose(self);
}

static void *ask_often(void *unused)
{
    for (int i = 0; i < 20000; i++)
        if (!dlsym(RTLD_DEFAULT, "qsort"))
            return (void *)"failed";
    return unused;
}

static void ask_from_threads(void)
{
    pthread_t threads[4];
    void *answer;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask_often, NULL);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &answer);
        printf("thread: %s\n", answer ? "failed" : "ok");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    folder = argv[1];
    ask_scopes();
    ask_for_what_is_not_there();
    ask_versions();
    ask_from_local(RTLD_LOCAL);
    ask_from_local(RTLD_GLOBAL);
    ask_origin();
    ask_namespace();
    ask_through_pointers();
    ask_from_threads();
    return 0;
}
