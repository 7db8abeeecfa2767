/* SPDX-License-Identifier: MIT */
/* base/cgroup.c - see cgroup.h. */
#include "base/cgroup.h"

#include <string.h>

#include "base/fd.h"
#include "base/lines.h"
#include "base/text.h"

enum { TEXT_BYTES = 8192, PATH_BYTES = 2048, GROUP_BYTES = 1024 };

/* The two versions: where they are mounted and what their files are called. */
static const struct generation {
    const char *controller; /* as /proc/self/cgroup has it, between the colons */
    const char *mount, *limit, *used, *droppable;
} generations[] = {
    {"memory", "fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file "},
    {"", "fs/cgroup", "memory.max", "memory.current", "inactive_file "},
};

/* Reads one of the group's files; "" when it does not exist. */
static const char *read_group_file(char *to, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    struct tmk_text text;
    tmk_text_init(&text, path, sizeof path);
    tmk_text_add(&text, "%s/%s", folder, name);
    to[text.cut ? 0 : tmk_fd_read_small(path, to, TEXT_BYTES - 1)] = '\0';
    return to;
}

/* Finds the path of this process's group in the line "4:memory:/PATH" or "0::/PATH". Returns false
 * when there is no such line. */
static bool find_own_group(const char *text, const char *controller, char *to)
{
    size_t n = strlen(controller);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *name = line + strcspn(line, ":\n");
        if (*name != ':' || strncmp(name + 1, controller, n) != 0 || name[1 + n] != ':')
            continue;
        struct tmk_text out;
        tmk_text_init(&out, to, GROUP_BYTES);
        tmk_text_bytes(&out, name + 2 + n, strcspn(name + 2 + n, "\n"));
        return !out.cut;
    }
    return false;
}

static void visit_group_limit(const struct generation *g, const char *folder,
                              tmk_cgroup_visit *visit, void *arg)
{
    char text[TEXT_BYTES];
    uint64_t limit = tmk_lines_bytes(read_group_file(text, folder, g->limit));
    if (limit == UINT64_MAX)
        return;
    uint64_t used = tmk_lines_bytes(read_group_file(text, folder, g->used));
    uint64_t droppable = tmk_lines_bytes(
        tmk_lines_field(read_group_file(text, folder, "memory.stat"), g->droppable));
    if (used != UINT64_MAX && droppable != UINT64_MAX)
        used -= droppable < used ? droppable : used;
    visit(arg, limit, used);
}

/* Visits the group and those above it. In a container that has no namespace of its own for groups
 * the path is the host's, and only its root exists: the walk ends there. */
static void walk_up(const char *sys, const struct generation *g, char *group,
                    tmk_cgroup_visit *visit, void *arg)
{
    char folder[PATH_BYTES];
    for (;;) {
        struct tmk_text text;
        tmk_text_init(&text, folder, sizeof folder);
        tmk_text_add(&text, "%s/%s%s", sys, g->mount, group);
        if (!text.cut)
            visit_group_limit(g, folder, visit, arg);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

bool tmk_cgroup_limits(const char *proc, const char *sys, tmk_cgroup_visit *visit, void *arg)
{
    char text[TEXT_BYTES], group[GROUP_BYTES];
    read_group_file(text, proc, "self/cgroup");
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (find_own_group(text, generations[i].controller, group)) {
            walk_up(sys, &generations[i], group, visit, arg);
            return true;
        }
    return false;
}
