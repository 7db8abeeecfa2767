/* SPDX-License-Identifier: MIT */
/* record/identity/host_memory.c - see host_memory.h. */
#include "record/identity/host_memory.h"

#include "base/cgroup.h"
#include "base/fd.h"
#include "base/lines.h"
#include "base/text.h"

enum { TEXT_BYTES = 8192, PATH_BYTES = 1024 };

static bool read_meminfo(const char *proc, struct tmk_host_memory *ret)
{
    char text[TEXT_BYTES], path[PATH_BYTES];
    struct tmk_text name;
    tmk_text_init(&name, path, sizeof path);
    tmk_text_add(&name, "%s/meminfo", proc);
    text[name.cut ? 0 : tmk_fd_read_small(path, text, sizeof text - 1)] = '\0';
    uint64_t total_kib = tmk_lines_bytes(tmk_lines_field(text, "MemTotal:"));
    uint64_t available_kib = tmk_lines_bytes(tmk_lines_field(text, "MemAvailable:"));
    if (total_kib > UINT64_MAX / 1024 || available_kib > UINT64_MAX / 1024)
        return false;
    *ret = (struct tmk_host_memory){total_kib * 1024, available_kib * 1024};
    return true;
}

/* Of a group that does not tell what is used, the whole may be. */
static void apply_cgroup_limit(void *arg, uint64_t limit_bytes, uint64_t used_bytes)
{
    struct tmk_host_memory *m = arg;
    uint64_t left = used_bytes == UINT64_MAX   ? limit_bytes
                    : used_bytes < limit_bytes ? limit_bytes - used_bytes
                                               : 0;
    m->total_bytes = limit_bytes < m->total_bytes ? limit_bytes : m->total_bytes;
    m->available_bytes = left < m->available_bytes ? left : m->available_bytes;
}

bool tmk_host_memory_read_at(const char *proc, const char *sys, struct tmk_host_memory *ret)
{
    if (!read_meminfo(proc, ret))
        return false;
    tmk_cgroup_limits(proc, sys, apply_cgroup_limit, ret);
    return true;
}

bool tmk_host_memory_read(struct tmk_host_memory *ret)
{
    return tmk_host_memory_read_at("/proc", "/sys", ret);
}
