/* SPDX-License-Identifier: MIT */
/* A library whose constructor takes its time, with the loader locked, and then allocates
 * (ODD=allocate) or forks (ODD=fork). */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((constructor)) static void start(void)
{
    const char *what = getenv("ODD");
    usleep(300000);
    if (what && strcmp(what, "allocate") == 0) {
        int (*alloc)(uint64_t *, size_t);
        uint64_t p;
        *(void **)&alloc = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
        alloc(&p, 5 << 20);
    } else if (what) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}
