/* SPDX-License-Identifier: MIT */
/* base/cgroup.h - limits of memory by control groups, of either generation.
 *
 * A process is held by the limit of its own group and by those of all groups above. File pages that
 * the kernel can drop do not count as used. */
#ifndef TMK_BASE_CGROUP_H
#define TMK_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* A group that has a limit; used_bytes is UINT64_MAX when it does not tell. */
typedef void tmk_cgroup_visit(void *arg, uint64_t limit_bytes, uint64_t used_bytes);

/* Visits the groups with a limit, from ours up to the root of the mount. `proc` and `sys` are where
 * these are mounted. False: we are in no group that counts memory. */
bool tmk_cgroup_limits(const char *proc, const char *sys, tmk_cgroup_visit *visit, void *arg);

#endif
