/* SPDX-License-Identifier: MIT */
/* base/cgroup.h - memory limits of control groups, version 1 and 2.
 *
 * A process is bound by the limits of its own group and of all groups above. File pages that the
 * kernel can drop do not count as used. */
#ifndef TMK_BASE_CGROUP_H
#define TMK_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Receives one group that has a limit; used_bytes is UINT64_MAX when the group does not tell. */
typedef void tmk_cgroup_visit(void *arg, uint64_t limit_bytes, uint64_t used_bytes);

/* Visits the groups with a limit, from this process's group up to the root of the mount. `proc` and
 * `sys` are the folders where these file systems are mounted. Returns false when this process is in
 * no group that counts memory. */
bool tmk_cgroup_limits(const char *proc, const char *sys, tmk_cgroup_visit *visit, void *arg);

#endif
