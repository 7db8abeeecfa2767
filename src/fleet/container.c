/* SPDX-License-Identifier: MIT */
/* fleet/container.c - see container.h. The path of a group is read from its end, where the
 * container is; what a runtime puts in front of the id ("docker-", "cri-containerd-") does not
 * matter. */
#include "fleet/container.h"

#include <stdio.h>
#include <string.h>

enum { ID_DIGITS = 64, SHORT_ID_DIGITS = 12, UID_BYTES = 36 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Copy the 64 hexadecimal digits in the `n` bytes that no further one follows or precedes. */
static bool find_id(const char *text, size_t n, char *ret)
{
    size_t run = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && is_hex(text[i])) {
            run++;
            continue;
        }
        if (run == ID_DIGITS) {
            memcpy(ret, text + i - run, run);
            ret[run] = '\0';
            return true;
        }
        run = 0;
    }
    return false;
}

/* Whether a pod's uid begins here: 8-4-4-4-12 digits; systemd's slices have '_' for '-'. */
static bool take_uid(const char *text, size_t n, char *ret)
{
    if (n < UID_BYTES)
        return false;
    for (size_t i = 0; i < UID_BYTES; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? text[i] != '-' && text[i] != '_' : !is_hex(text[i]))
            return false;
        ret[i] = is_dash ? '-' : text[i];
    }
    ret[UID_BYTES] = '\0';
    return true;
}

static void find_pod(const char *text, size_t n, struct tmk_cgroup_name *ret)
{
    for (size_t i = 0; i + 3 <= n; i++) {
        char uid[TMK_POD_UID_BYTES];
        if (memcmp(text + i, "pod", 3) == 0 && take_uid(text + i + 3, n - i - 3, uid)) {
            ret->is_pod = true;
            memcpy(ret->pod_uid, uid, sizeof uid);
            return;
        }
    }
}

/* The id in the last part of the path that has one. */
static bool find_last_id(const char *path, size_t n, char *ret)
{
    while (n > 0) {
        size_t start = n;
        while (start > 0 && path[start - 1] != '/')
            start--;
        if (find_id(path + start, n - start, ret))
            return true;
        n = start > 0 ? start - 1 : 0;
    }
    return false;
}

bool tmk_cgroup_name_parse(const char *text, struct tmk_cgroup_name *ret)
{
    *ret = (struct tmk_cgroup_name){.is_pod = false};
    while (*text) {
        size_t n = strcspn(text, "\n");
        const char *path = memchr(text, ':', n); /* "12:memory:/path" */
        path = path ? memchr(path + 1, ':', (size_t)(text + n - path - 1)) : NULL;
        if (path && !ret->id[0]) {
            size_t length = (size_t)(text + n - path - 1);
            (void)find_last_id(path + 1, length, ret->id);
            find_pod(path + 1, length, ret);
        }
        text += n + (text[n] == '\n');
    }
    return ret->id[0] || ret->is_pod;
}

const char *tmk_environ_get(const char *bytes, size_t n, const char *name)
{
    size_t length = strlen(name);
    const char *end = bytes + n;
    while (bytes < end) {
        const char *zero = memchr(bytes, '\0', (size_t)(end - bytes));
        if (!zero) /* it was cut: the value is not whole */
            return NULL;
        if ((size_t)(zero - bytes) > length && memcmp(bytes, name, length) == 0 &&
            bytes[length] == '=')
            return bytes + length + 1;
        bytes = zero + 1;
    }
    return NULL;
}

static const char *first_set(const char *environment, size_t n, const char *const *names)
{
    for (; *names; names++) {
        const char *value = tmk_environ_get(environment, n, *names);
        if (value && *value)
            return value;
    }
    return NULL;
}

static void put_container_text(char *to, const char *text)
{
    snprintf(to, TMK_CONTAINER_TEXT_BYTES, "%s", text ? text : "");
}

void tmk_container_name(const struct tmk_cgroup_name *group, const char *environment, size_t n,
                        const char *account_namespace, struct tmk_container *ret)
{
    static const char *const namespaces[] = {"POD_NAMESPACE", "K8S_NAMESPACE",
                                             "KUBERNETES_NAMESPACE", NULL};
    static const char *const pods[] = {"POD_NAME", "K8S_POD_NAME", "KUBERNETES_POD_NAME", NULL};
    static const char *const containers[] = {"CONTAINER_NAME", "K8S_CONTAINER_NAME", NULL};
    *ret = (struct tmk_container){.pod = ""};
    if (!group->id[0] && !group->is_pod)
        return;
    const char *container = first_set(environment, n, containers);
    if (container)
        put_container_text(ret->container, container);
    else
        snprintf(ret->container, sizeof ret->container, "%.*s", SHORT_ID_DIGITS, group->id);
    bool is_pod = group->is_pod || (account_namespace && account_namespace[0]) ||
                  tmk_environ_get(environment, n, "KUBERNETES_SERVICE_HOST");
    if (!is_pod)
        return;
    const char *namespace = first_set(environment, n, namespaces);
    const char *pod = first_set(environment, n, pods);
    put_container_text(ret->namespace, namespace ? namespace : account_namespace);
    put_container_text(ret->pod, pod ? pod : tmk_environ_get(environment, n, "HOSTNAME"));
}
