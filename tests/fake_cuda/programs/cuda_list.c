/* SPDX-License-Identifier: MIT */
#include "cuda_list.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

static struct entry {
    const char *family;
    int device;
    uint64_t address, size;
    bool is_freed;
} entries[MOST];
static int n_entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry *find(const char *family, uint64_t address)
{
    for (int i = n_entries - 1; i >= 0; i--)
        if (entries[i].address == address && !entries[i].is_freed &&
            strcmp(entries[i].family, family) == 0)
            return &entries[i];
    return NULL;
}

static void add(const char *family, int device, uint64_t address, uint64_t size)
{
    if (n_entries == MOST)
        abort();
    entries[n_entries++] = (struct entry){family, device, address, size, false};
}

void list_add(const char *family, int device, uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&lock);
    add(family, device, address, size);
    pthread_mutex_unlock(&lock);
}

void list_free(const char *family, uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = find(family, address);
    if (!entry)
        abort();
    entry->is_freed = true;
    pthread_mutex_unlock(&lock);
}

void list_pool(int device, uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = find("pool", address);
    if (!entry || entry->size != size) {
        if (entry)
            entry->is_freed = true;
        if (size > 0)
            add("pool", device, address, size);
    }
    pthread_mutex_unlock(&lock);
}

void list_print(void)
{
    for (int i = 0; i < n_entries; i++) {
        const struct entry *e = &entries[i];
        char device[12] = "null";
        if (e->device != LIST_NO_DEVICE)
            snprintf(device, sizeof device, "%d", e->device);
        printf("{\"pid\":%d,\"family\":\"%s\",\"device\":%s,\"address\":%" PRIu64
               ",\"size\":%" PRIu64 ",\"freed\":%s}\n",
               (int)getpid(), e->family, device, e->address, e->size,
               e->is_freed ? "true" : "false");
    }
    fflush(stdout);
}

void list_need(int got, int wanted, const char *call, int line)
{
    if (got == wanted)
        return;
    fprintf(stderr, "line %d: %s: %d, not %d\n", line, call, got, wanted);
    _exit(1);
}
