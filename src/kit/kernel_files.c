/* SPDX-License-Identifier: MIT */
/* kit/kernel_files.c - see kernel_files.h. */
#include "kit/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t tmk_kernel_file_read(char *to, size_t size, const char *format, ...)
{
    char path[PATH_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    errno = ENAMETOOLONG;
    int fd = length < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);
    int why = errno;
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    errno = why;
    return n;
}

/* The process's name, in parentheses, may contain anything: fields are counted from behind it. */
uint64_t tmk_process_start_ticks(const char *proc, pid_t pid)
{
    enum { STAT_BYTES = 1024, FIELDS_BEFORE = 20 };
    char text[STAT_BYTES];
    if (tmk_kernel_file_read(text, sizeof text, "%s/%d/stat", proc, (int)pid) <= 0)
        return 0;
    const char *at = strrchr(text, ')');
    for (unsigned i = 0; at && i < FIELDS_BEFORE; i++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

unsigned tmk_kernel_numbers(const char *text, long *to, unsigned room)
{
    unsigned n = 0;
    char *end;
    for (; n < room; text = end) {
        long next = strtol(text, &end, 10);
        if (end == text || memchr(text, '\n', (size_t)(end - text)))
            break;
        to[n++] = next;
    }
    return n;
}
