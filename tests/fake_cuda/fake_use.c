/* SPDX-License-Identifier: MIT */
#include "fake_use.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { MOST = 2048 };

static int open_file(int flags)
{
    const char *state = getenv("FAKE_CUDA_STATE");
    char path[PATH_MAX];
    if (!state)
        return -1;
    snprintf(path, sizeof path, "%s.use", state);
    return open(path, flags | O_CLOEXEC, 0666);
}

/* Not dead, and no zombie either: the real driver takes all back when a process ends, not when its
 * parent looks. */
static bool is_alive(uint32_t pid)
{
    char path[32], text[512], state = 'X';
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* a name may have any character */
    if (name_end && name_end[1] == ' ')
        state = name_end[2];
    return state != 'Z' && state != 'X';
}

/* The file's entries, the dead's freed. */
static int read_entries(int fd, struct fake_use *uses)
{
    ssize_t n_bytes = pread(fd, uses, MOST * sizeof *uses, 0);
    int n = n_bytes > 0 ? (int)((size_t)n_bytes / sizeof *uses) : 0;
    for (int i = 0; i < n; i++)
        if (uses[i].pid != 0 && !is_alive(uses[i].pid))
            uses[i] = (struct fake_use){0};
    return n;
}

int fake_use_list(struct fake_use *to, int most)
{
    int fd = open_file(O_RDONLY), n_listed = 0;
    if (fd < 0)
        return 0;
    struct fake_use *uses = calloc(MOST, sizeof *uses);
    flock(fd, LOCK_SH);
    int n = read_entries(fd, uses);
    close(fd);
    for (int i = 0; i < n && n_listed < most; i++)
        if (uses[i].pid != 0)
            to[n_listed++] = uses[i];
    free(uses);
    return n_listed;
}

/* This process's entry for the card, or one that is free; the array has room for one more. */
static struct fake_use *own_entry(struct fake_use *uses, int *n, unsigned card)
{
    struct fake_use *unused = NULL;
    uint32_t self = (uint32_t)getpid();
    for (int i = 0; i < *n; i++) {
        if (uses[i].pid == self && uses[i].card == card)
            return &uses[i];
        if (uses[i].pid == 0 && !unused)
            unused = &uses[i];
    }
    if (!unused)
        unused = &uses[(*n)++];
    *unused = (struct fake_use){.pid = self, .card = card};
    return unused;
}

static void write_entries(int fd, const struct fake_use *uses, int n)
{
    size_t n_bytes = (size_t)n * sizeof *uses;
    if (n > MOST || pwrite(fd, uses, n_bytes, 0) != (ssize_t)n_bytes) {
        fprintf(stderr, "fake_use: cannot write $FAKE_CUDA_STATE.use\n");
        abort();
    }
}

static bool change(unsigned card, int64_t bytes, uint64_t capacity)
{
    int fd = open_file(O_RDWR | O_CREAT);
    struct fake_use *uses = calloc(MOST + 1, sizeof *uses);
    uint64_t sum = (uint64_t)bytes;
    flock(fd, LOCK_EX);
    int n = read_entries(fd, uses);
    struct fake_use *own = own_entry(uses, &n, card);
    for (int i = 0; i < n; i++)
        if (uses[i].card == card)
            sum += uses[i].bytes;
    bool fits = bytes < 0 || sum <= capacity;
    if (fits) {
        own->bytes += (uint64_t)bytes;
        if (own->bytes == 0)
            own->pid = 0;
        write_entries(fd, uses, n);
    }
    close(fd);
    free(uses);
    return fits;
}

bool fake_use_take(unsigned card, uint64_t bytes, uint64_t capacity)
{
    return change(card, (int64_t)bytes, capacity);
}

void fake_use_give_back(unsigned card, uint64_t bytes)
{
    change(card, -(int64_t)bytes, 0);
}

void fake_use_reset(void)
{
    int fd = open_file(O_RDWR);
    if (fd < 0)
        return;
    struct fake_use *uses = calloc(MOST, sizeof *uses);
    flock(fd, LOCK_EX);
    int n = read_entries(fd, uses);
    for (int i = 0; i < n; i++)
        if (uses[i].pid == (uint32_t)getpid())
            uses[i] = (struct fake_use){0};
    write_entries(fd, uses, n);
    close(fd);
    free(uses);
}
