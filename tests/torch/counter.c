/* SPDX-License-Identifier: MIT */
/* counter.c - a library to be preloaded beside ours: writes down what torch says of its blocks.
 *
 * The truth for the tests: it stands in front of the same functions, in its own way, and writes
 * "a ADDRESS SIZE" or "f ADDRESS" for each host block to the file that COUNTER_FILE names. It calls
 * on to whoever comes next: another preloaded library, else torch. A script may put notes between
 * them (counter_note): "n TEXT", and begin a file of its own (counter_open). */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEW "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"
#define DELETE "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"
#define USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"

void counter_open(const char *path);
void counter_note(const char *text);

static FILE *out;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int nested;

void counter_open(const char *path)
{
    out = path ? fopen(path, "we") : NULL;
}

__attribute__((constructor)) static void start(void)
{
    counter_open(getenv("COUNTER_FILE"));
}

static void put(char what, const void *address, uint64_t size)
{
    pthread_mutex_lock(&lock);
    if (out) {
        fprintf(out, what == 'a' ? "%c %lu %lu\n" : "%c %lu\n", what, (unsigned long)address,
                (unsigned long)size);
        fflush(out);
    }
    pthread_mutex_unlock(&lock);
}

void counter_note(const char *text)
{
    pthread_mutex_lock(&lock);
    if (out) {
        fprintf(out, "n %s\n", text);
        fflush(out);
    }
    pthread_mutex_unlock(&lock);
}

static int find_c10(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (!slash || strncmp(slash, "/libc10.so", 10) != 0)
        return 0;
    *(void **)arg = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

static void *next(const char *name)
{
    void *handle = NULL, *found = dlsym(RTLD_NEXT, name);
    if (!found && dl_iterate_phdr(find_c10, &handle) && handle)
        found = dlsym(handle, name);
    return found;
}

void counter_new(void *self, void *address, size_t size) __asm__(NEW);
void counter_delete(void *self, void *address) __asm__(DELETE);
void counter_usage(void *address, int64_t size, int64_t a, int64_t r,
                   uint16_t device) __asm__(USAGE);

void counter_new(void *self, void *address, size_t size)
{
    if (size)
        put('a', address, size);
    nested++;
    ((void (*)(void *, void *, size_t))next(NEW))(self, address, size);
    nested--;
}

void counter_delete(void *self, void *address)
{
    if (address)
        put('f', address, 0);
    nested++;
    ((void (*)(void *, void *))next(DELETE))(self, address);
    nested--;
}

void counter_usage(void *address, int64_t size, int64_t a, int64_t r, uint16_t device)
{
    if ((device & 0xff) == 0 && size && !nested)
        put(size > 0 ? 'a' : 'f', address, (uint64_t)size);
    ((void (*)(void *, int64_t, int64_t, int64_t, uint16_t))next(USAGE))(address, size, a, r,
                                                                         device);
}
