/* SPDX-License-Identifier: MIT */
/* base/filters.c - see filters.h. */
#include "base/filters.h"

#include <stddef.h>
#include <string.h>

#include "base/fd.h"
#include "base/lines.h"
#include "base/text.h"

enum {
    STATUS_BYTES = 16384, /* a process may be in hundreds of groups, which are listed first */
    MOUNTS_BYTES = 16384, /* in a container the root is among the first */
};

static uint64_t parse_decimal(const char *text)
{
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9' && value < UINT32_MAX; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

bool tmk_filters_parse(const char *status, bool is_whole, struct tmk_filters *ret)
{
    const char *mode = tmk_lines_field(status, "Seccomp:");
    const char *count = tmk_lines_field(status, "Seccomp_filters:");
    if (!*mode && !is_whole)
        return false;
    bool has_any = parse_decimal(mode) != 0; /* without that line the kernel has no seccomp */
    ret->n = !has_any ? 0 : parse_decimal(count) > 0 ? parse_decimal(count) : 1;
    ret->pid = (uint32_t)parse_decimal(tmk_lines_field(status, "Pid:"));
    ret->no_new_privileges = parse_decimal(tmk_lines_field(status, "NoNewPrivs:")) != 0;
    return true;
}

bool tmk_filters_read(const char *path, struct tmk_filters *ret)
{
    char text[STATUS_BYTES];
    size_t n = tmk_fd_read_small(path, text, sizeof text - 1);
    text[n] = '\0';
    return n > 0 && tmk_filters_parse(text, n < sizeof text - 1, ret);
}

/* A container's filter is also on its first process, as the only one. But a sandbox that makes a
 * PID namespace for one program has this too: so the container must have its runtime's mark. */
bool tmk_filters_are_known(const struct tmk_filters *own, const struct tmk_filters *first,
                           const char *said, bool is_launched)
{
    if (own->n == 0 || (said && strcmp(said, TMK_FILTERS_TRUST) == 0))
        return true;
    if (said && strcmp(said, TMK_FILTERS_REFUSE) == 0)
        return false;
    if (said && own->n <= parse_decimal(said))
        return true;
    return first && first->n == 1 && own->n == 1 && !(is_launched && own->no_new_privileges);
}

/* Whether the line of mountinfo describes "/" as an overlay, as container runtimes make it: "36 25
 * 0:31 / / rw,relatime - overlay overlay rw,...". */
static bool is_overlay_root(const char *line, const char *end)
{
    static const char kind[] = " - overlay ";
    for (int field = 0; field < 4 && line < end; line++)
        field += *line == ' ';
    if (end - line < 2 || line[0] != '/' || line[1] != ' ')
        return false;
    for (; end - line >= (ptrdiff_t)sizeof kind - 1; line++)
        if (memcmp(line, kind, sizeof kind - 1) == 0)
            return true;
    return false;
}

static bool has_overlay_root(const char *process)
{
    char path[128], text[MOUNTS_BYTES];
    struct tmk_text t;
    tmk_text_init(&t, path, sizeof path);
    tmk_text_add(&t, "%s/mountinfo", process);
    size_t n = tmk_fd_read_small(path, text, sizeof text);
    if (n == 0)
        return false;
    for (const char *line = text, *end; (end = memchr(line, '\n', n - (size_t)(line - text)));
         line = end + 1)
        if (is_overlay_root(line, end))
            return true;
    return false;
}

static bool has_mark(const char *process)
{
    static const char *const marks[] = {"/.dockerenv", "/run/.containerenv"};
    char path[128];
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        struct tmk_text text;
        tmk_text_init(&text, path, sizeof path);
        tmk_text_add(&text, "%s/root%s", process, marks[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            return true;
        }
    }
    return false;
}

bool tmk_filters_read_first(const char *process, struct tmk_filters *ret)
{
    char path[128];
    struct tmk_text text;
    tmk_text_init(&text, path, sizeof path);
    tmk_text_add(&text, "%s/root/proc/1/status", process);
    return has_mark(process) && has_overlay_root(process) && tmk_filters_read(path, ret);
}
