/* SPDX-License-Identifier: MIT */
/* cli/output/source_line.c - see source_line.h. */
#include "cli/output/source_line.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

enum { MAX_FILE_BYTES = 16 << 20 };

static bool is_source_file(const char *file)
{
    static const char *const ends[] = {".py", ".c", ".cc", ".cpp", ".cu", ".h"};
    const char *dot = strrchr(file, '.');
    for (size_t i = 0; dot && i < TMK_N(ends); i++)
        if (strcmp(dot, ends[i]) == 0)
            return true;
    return false;
}

/* Opens a regular file that is not too large; NULL: it is none. A FIFO must not make us wait. */
static FILE *open_source_file(const char *file)
{
    struct stat about;
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    FILE *f = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= MAX_FILE_BYTES
                  ? fdopen(fd, "r")
                  : NULL;
    if (!f)
        close(fd);
    return f;
}

static const char *cut_line(const char *text, char *buffer)
{
    text += strspn(text, " \t\f");
    size_t n = strcspn(text, "\r\n");
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    if (n == 0)
        return NULL;
    bool is_long = n >= TMK_SOURCE_LINE_BYTES;
    n = is_long ? TMK_SOURCE_LINE_BYTES - 4 : n;
    while (is_long && n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    memcpy(buffer, text, n);
    strcpy(buffer + n, is_long ? "..." : "");
    return buffer;
}

const char *tmk_source_line(const char *file, uint32_t line, char *buffer)
{
    if (!file || line == 0 || !is_source_file(file))
        return NULL;
    FILE *f = open_source_file(file);
    if (!f)
        return NULL;
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    do {
        n = getline(&text, &room, f);
    } while (n >= 0 && --line > 0);
    const char *found = n >= 0 ? cut_line(text, buffer) : NULL;
    free(text);
    fclose(f);
    return found;
}
