/* SPDX-License-Identifier: MIT */
/* record/host_memory.c - see host_memory.h. Limits are those of our control group and of all above
 * it, of either generation; file pages that the kernel can drop are not counted as used. */
#include "record/host_memory.h"

#include <string.h>

#include "base/fd.h"
#include "base/text.h"

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };

static const struct generation {
    const char *controller; /* as /proc/self/cgroup has it, between the colons */
    const char *mount, *limit, *used, *droppable;
} generations[] = {
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
};

#define NO_LIMIT (1ull << 62) /* v1 says a number near 2^63 */

/* The number at `text`, blanks left out; NO_LIMIT when there is none, as for "max". */
static uint64_t number_at(const char *text)
{
    uint64_t value = 0;
    while (*text == ' ')
        text++;
    if (*text < '0' || *text > '9')
        return NO_LIMIT;
    for (; *text >= '0' && *text <= '9' && value < NO_LIMIT; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value < NO_LIMIT ? value : NO_LIMIT;
}

/* What follows `name` at the start of a line; "" when there is none. */
static const char *field(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0)
            return line + n;
    }
    return "";
}

static void read_file(char *to, const char *root, const char *folder, const char *name)
{
    char path[2 * PATH_BYTES];
    struct tmk_text text;
    to[0] = '\0';
    tmk_text_init(&text, path, sizeof path);
    tmk_text_add(&text, "%s%s/%s", root, folder, name);
    to[text.cut ? 0 : tmk_fd_read_small(path, to, TEXT_BYTES - 1)] = '\0';
}

static bool read_host(const char *root, struct tmk_host_memory *ret)
{
    char text[TEXT_BYTES] = "";
    read_file(text, root, "/proc", "meminfo");
    uint64_t total = number_at(field(text, "MemTotal:"));
    uint64_t available = number_at(field(text, "MemAvailable:"));
    if (total >= NO_LIMIT / 1024 || available >= NO_LIMIT / 1024)
        return false;
    *ret = (struct tmk_host_memory){total * 1024, available * 1024};
    return true;
}

/* ---- control groups ---- */

/* Into `to` the folder of our group; false: it is in none of that generation. */
static bool find_group(const char *text, const struct generation *g, char *to)
{
    size_t n = strlen(g->controller);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *name = strchr(line, ':');
        if (!name || strncmp(name + 1, g->controller, n) != 0 || name[1 + n] != ':')
            continue;
        struct tmk_text out;
        tmk_text_init(&out, to, PATH_BYTES);
        tmk_text_string(&out, g->mount);
        tmk_text_bytes(&out, name + 2 + n, strcspn(name + 2 + n, "\n"));
        return !out.cut;
    }
    return false;
}

static void apply_limit(const char *root, const struct generation *g, const char *folder,
                        struct tmk_host_memory *ret)
{
    char text[TEXT_BYTES] = "";
    read_file(text, root, folder, g->limit);
    uint64_t limit = number_at(text);
    if (limit == NO_LIMIT)
        return;
    read_file(text, root, folder, g->used);
    uint64_t used = number_at(text);
    read_file(text, root, folder, "memory.stat");
    uint64_t droppable = number_at(field(text, g->droppable));
    used -= droppable < used ? droppable : 0;
    uint64_t left = used < limit ? limit - used : 0;
    ret->total_bytes = limit < ret->total_bytes ? limit : ret->total_bytes;
    ret->available_bytes = left < ret->available_bytes ? left : ret->available_bytes;
}

/* From our group up to the root of the mount. */
static void walk_up(const char *root, const struct generation *g, char *folder,
                    struct tmk_host_memory *ret)
{
    size_t least = strlen(g->mount);
    for (;;) {
        apply_limit(root, g, folder, ret);
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= least || !slash)
            return;
        *slash = '\0';
    }
}

bool tmk_host_memory_read_at(const char *root, struct tmk_host_memory *ret)
{
    char text[TEXT_BYTES] = "", folder[PATH_BYTES];
    if (!read_host(root, ret))
        return false;
    read_file(text, root, "/proc/self", "cgroup");
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (find_group(text, &generations[i], folder)) {
            walk_up(root, &generations[i], folder, ret);
            break;
        }
    return true;
}

bool tmk_host_memory_read(struct tmk_host_memory *ret)
{
    return tmk_host_memory_read_at("", ret);
}
