/* SPDX-License-Identifier: MIT */
/* cli/output/source_line.c - see source_line.h. */
#include "cli/output/source_line.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "kit/language.h"
#include "kit/utf8.h"

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

/* Adds a name to a list, once; "..." where there is no room. */
static void add_changed_file(char *changed, const char *name)
{
    size_t n = strlen(changed), length = strlen(name);
    for (const char *at = changed; (at = strstr(at, name)) != NULL; at += length)
        if ((at == changed || at[-1] == ' ') && (at[length] == '\0' || at[length] == ','))
            return;
    if (n + length + sizeof ", , ..." <= TMK_CHANGED_FILES_BYTES)
        snprintf(changed + n, TMK_CHANGED_FILES_BYTES - n, "%s%s", n ? ", " : "", name);
    else if (n < 3 || strcmp(changed + n - 3, "...") != 0)
        snprintf(changed + n, TMK_CHANGED_FILES_BYTES - n, "%s...", n ? ", " : "");
}

const char *tmk_source_cell(const struct tmk_process *p, const struct tmk_frame *frame,
                            char *buffer, char *changed)
{
    bool is_new;
    const char *found = find_line(p, frame, buffer, &is_new);
    if (is_new) {
        const char *slash = strrchr(frame->file, '/');
        add_changed_file(changed, slash ? slash + 1 : frame->file);
    }
    return found;
}

void tmk_source_changed_text(struct tmk_sheet *sheet, const char *changed)
{
    bool are_many = strstr(changed, ", ") != NULL;
    if (changed[0] && are_many)
        tmk_sheet_text(sheet, "%s have changed since; their lines are not shown.", changed);
    else if (changed[0])
        tmk_sheet_text(sheet, "%s has changed since; its lines are not shown.", changed);
}

size_t tmk_source_columns(size_t others, size_t width)
{
    enum { LEAST = 16 };
    return others + LEAST < width ? width - others : LEAST;
}

const char *tmk_source_cut(char *text, size_t columns)
{
    const char *at = text;
    size_t width = 0, n;
    for (const char *end = at; *end; at = end, width += n) {
        tmk_utf8_shown(&end, &n);
        if (width + n > columns - (*end ? 3 : 0)) {
            memcpy(text + (at - text), "...", 4);
            break;
        }
    }
    return text;
}

/* Returns what follows `folder` in an absolute path; NULL: the path is not below it. */
static const char *path_below(const char *path, const char *folder)
{
    size_t n = folder ? strlen(folder) : 0;
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* Returns the path's last two parts. */
static const char *name_with_parent(const char *path)
{
    const char *slash = strrchr(path, '/'), *at = slash ? slash : path;
    while (at > path && at[-1] != '/')
        at--;
    return at;
}

const char *tmk_frame_place_text(const struct tmk_frame *frame, char *buffer)
{
    struct tmk_frame f = *frame;
    char here[PATH_MAX], home[TMK_FRAME_TEXT_BYTES];
    bool is_absolute = f.file && f.file[0] == '/';
    const char *below = is_absolute && getcwd(here, sizeof here) ? path_below(f.file, here) : NULL;
    const char *at_home = is_absolute && !below ? path_below(f.file, getenv("HOME")) : NULL;
    if (below)
        f.file = below;
    else if (at_home) {
        snprintf(home, sizeof home, "~/%s", at_home);
        f.file = home;
    } else if (is_absolute)
        f.file = name_with_parent(f.file);
    return tmk_frame_text(&f, f.file && f.file[0] == '<', buffer);
}
