/* SPDX-License-Identifier: MIT */
/* fleet/container.h - the container that a process runs in, as far as it can be told without asking
 * a container runtime or Kubernetes: by the process's control group and its environment.
 *
 * Docker, Podman, containerd and CRI-O put the container's id, 64 hexadecimal digits, into the name
 * of the group; Kubernetes adds the pod's uid. Names of pod and namespace are in no kernel file:
 * the downward API may put them into the environment, and a service account's folder has the
 * namespace. */
#ifndef TMK_FLEET_CONTAINER_H
#define TMK_FLEET_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TMK_CONTAINER_TEXT_BYTES = 128, TMK_CONTAINER_ID_BYTES = 65, TMK_POD_UID_BYTES = 37 };

struct tmk_container { /* "": not known, or none */
    char namespace[TMK_CONTAINER_TEXT_BYTES];
    char pod[TMK_CONTAINER_TEXT_BYTES];
    char container[TMK_CONTAINER_TEXT_BYTES];
};

struct tmk_cgroup_name {
    char id[TMK_CONTAINER_ID_BYTES]; /* of the container */
    char pod_uid[TMK_POD_UID_BYTES]; /* with '-' */
    bool is_pod;
};

/* Find both in the text of /proc/PID/cgroup. Returns whether the process is in a container. */
bool tmk_cgroup_name_parse(const char *text, struct tmk_cgroup_name *ret);

/* The value of a variable in the `n` bytes of /proc/PID/environ; NULL: not set. */
const char *tmk_environ_get(const char *bytes, size_t n, const char *name);

/* Name the container from the group, the environment, and the namespace that the service account's
 * folder has ("" or NULL: none). Of the environment NAMESPACE may be called POD_NAMESPACE,
 * K8S_NAMESPACE or KUBERNETES_NAMESPACE, the pod POD_NAME, K8S_POD_NAME, KUBERNETES_POD_NAME or in
 * a pod HOSTNAME, and the container CONTAINER_NAME or K8S_CONTAINER_NAME. */
void tmk_container_name(const struct tmk_cgroup_name *group, const char *environment, size_t n,
                        const char *account_namespace, struct tmk_container *ret);

#endif
