/* SPDX-License-Identifier: MIT */
/* A library in the place of libtidemark.so, with the function that `tidemark attach` calls. It puts
 * down in RUN/calls how it was called: the test reads that. What the folder's name begins with says
 * what else to do: refuse, slow (until FOLDER.go is there). */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int tidemark_attach(const char *options, char *message, size_t size);

static int n_calls;

static int n_blocked(void)
{
    sigset_t set;
    int n = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    for (int i = 1; i < 32; i++)
        n += sigismember(&set, i) == 1;
    return n;
}

/* Wait until there is a file of the folder's name with this end, for a minute at most. */
static void wait_for_file(const char *folder, const char *end)
{
    char path[600];
    snprintf(path, sizeof path, "%s%s", folder, end);
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++)
        usleep(10000);
}

int tidemark_attach(const char *options, char *message, size_t size)
{
    char folder[512] = "", path[600];
    const char *run = strstr(options, "run=");
    if (run)
        snprintf(folder, sizeof folder, "%.*s", (int)strcspn(run + 4, "\n"), run + 4);
    const char *name = strrchr(folder, '/');
    n_calls++;
    if (!name || strncmp(name, "/refuse", 7) == 0) {
        snprintf(message, size, "no recorder today; try tomorrow");
        return -1;
    }
    if (strncmp(name, "/slow", 5) == 0)
        wait_for_file(folder, ".go");
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/calls", folder);
    FILE *out = fopen(path, "a");
    if (!out) {
        snprintf(message, size, "cannot write %s", path);
        return -2;
    }
    void *memory = malloc(100000);
    fprintf(out, "call %d pid %d main %d blocked %d size %zu memory %d\n%s", n_calls, getpid(),
            syscall(SYS_gettid) == getpid(), n_blocked(), size, memory != NULL, options);
    free(memory);
    fclose(out);
    return 0;
}
