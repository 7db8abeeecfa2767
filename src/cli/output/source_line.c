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
#include "kit/language.h"

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
static FILE *open_source_file(const char *file, struct stat *ret_about)
{
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    FILE *f = fstat(fd, ret_about) == 0 && S_ISREG(ret_about->st_mode) &&
                      ret_about->st_size <= MAX_FILE_BYTES
                  ? fdopen(fd, "r")
                  : NULL;
    if (!f)
        close(fd);
    return f;
}

/* Returns whether the file was written to after the process began. */
static bool has_changed(const struct stat *about, const struct tmk_process *p)
{
    uint64_t written_ns =
        (uint64_t)about->st_mtim.tv_sec * 1000000000u + (uint64_t)about->st_mtim.tv_nsec;
    return written_ns > p->start_realtime_ns;
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

static const char *read_line(FILE *f, uint32_t line, char *buffer)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    do {
        n = getline(&text, &room, f);
    } while (n >= 0 && --line > 0);
    const char *found = n >= 0 ? cut_line(text, buffer) : NULL;
    free(text);
    return found;
}

/* As tmk_source_line(); tells a file that has changed from one that is not here. */
static const char *find_line(const struct tmk_process *p, const struct tmk_frame *frame,
                             char *buffer, bool *ret_has_changed)
{
    struct stat about;
    *ret_has_changed = false;
    if (!frame->file || frame->line == 0 || !is_source_file(frame->file))
        return NULL;
    FILE *f = open_source_file(frame->file, &about);
    if (!f)
        return NULL;
    bool is_dated = p->start_realtime_ns > 0;
    *ret_has_changed = is_dated && has_changed(&about, p);
    const char *found = is_dated && !*ret_has_changed ? read_line(f, frame->line, buffer) : NULL;
    fclose(f);
    return found;
}

const char *tmk_source_line(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer)
{
    bool is_new;
    return find_line(p, frame, buffer, &is_new);
}

const char *tmk_source_text(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer)
{
    bool is_new;
    const char *found = find_line(p, frame, buffer, &is_new);
    if (!is_new)
        return found;
    const char *slash = strrchr(frame->file, '/');
    snprintf(buffer, TMK_SOURCE_LINE_BYTES, _("(%.80s has changed since)"),
             slash ? slash + 1 : frame->file);
    return buffer;
}
