/* SPDX-License-Identifier: MIT */
/* loader_asan.c - built with AddressSanitizer, which finds what it wraps with dlsym. `good` ends
 * well, `bad` reads memory that it freed, which must be found. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *size)
{
    char *memory = malloc((size_t)size);
    memset(memory, 1, (size_t)size);
    return memory;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *memory;
    void *(*its_malloc)(size_t);
    *(void **)&its_malloc = dlsym(RTLD_DEFAULT, "malloc");
    free(its_malloc(100));
    printf("next: %d\n", dlsym(RTLD_NEXT, "qsort") != NULL);
    printf("no library: %d\n", dlopen("libloader_nowhere.so", RTLD_NOW) == NULL);
    if (pthread_create(&thread, NULL, work, (void *)1000) || pthread_join(thread, &memory))
        return 3;
    volatile char *byte = memory;
    printf("thread: %d\n", byte[10]);
    fflush(stdout);
    free(memory);
    if (argc > 1 && strcmp(argv[1], "bad") == 0)
        printf("freed: %d\n", byte[10]);
    return 0;
}
