/* SPDX-License-Identifier: MIT */
/* fleet/process_facts.c - see process_facts.h. */
#include "fleet/process_facts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kit/kernel_files.h"

enum { MOST_ENVIRON_BYTES = 1 << 18, CGROUP_BYTES = 4096 };

#define ACCOUNT_NAMESPACE "var/run/secrets/kubernetes.io/serviceaccount/namespace"

/* Read the environment, as far as it fits; NULL: it may not be seen, or there is no memory. */
static char *read_environ(const char *proc, uint32_t pid, size_t *ret_n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%u/environ", proc, pid);
    FILE *file = fopen(path, "re");
    char *bytes = file ? malloc(MOST_ENVIRON_BYTES) : NULL;
    *ret_n = bytes ? fread(bytes, 1, MOST_ENVIRON_BYTES, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

/* Open a file as the process sees it. Its root is another program's: links there may lead anywhere,
 * and a file may be a pipe that nobody writes to. -1: not there, or not a plain file. */
static int open_in_root(const char *proc, uint32_t pid, const char *file)
{
    char path[128];
    struct stat st;
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    snprintf(path, sizeof path, "%s/%u/root", proc, pid);
    int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, root, file, &how, sizeof how);
    close(root);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    return -1;
}

/* The namespace of the process's service account; only a name as Kubernetes allows it counts. */
static void read_account_namespace(const char *proc, uint32_t pid, char *to, size_t size)
{
    int fd = open_in_root(proc, pid, ACCOUNT_NAMESPACE);
    ssize_t length = fd < 0 ? 0 : read(fd, to, size - 1);
    if (fd >= 0)
        close(fd);
    to[length > 0 ? length : 0] = '\0';
    size_t n = strspn(to, "abcdefghijklmnopqrstuvwxyz0123456789-");
    if (to[n] != '\0' && to[n] != '\n')
        n = 0;
    to[n] = '\0';
}

void tmk_job_name_of_environ(const char *environment, size_t n, char ret[TMK_JOB_NAME_BYTES])
{
    static const char *const names[] = {"TIDEMARK_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID",
                                        NULL};
    ret[0] = '\0';
    for (const char *const *name = names; *name && !ret[0]; name++) {
        const char *value = tmk_environ_get(environment, n, *name);
        if (value && strcmp(value, "none") != 0)
            snprintf(ret, TMK_JOB_NAME_BYTES, "%s", value);
    }
}

void tmk_job_name_of_run(const char *folder, char ret[TMK_JOB_NAME_BYTES])
{
    const char *slash = strrchr(folder, '/');
    snprintf(ret, TMK_JOB_NAME_BYTES, "%s", slash ? slash + 1 : folder);
    size_t n = strlen(ret);
    if (n > 4 && strcmp(ret + n - 4, ".tmk") == 0)
        ret[n - 4] = '\0';
}

static bool copy_variable(const char *environment, size_t n, const char *name, char *to,
                          size_t size)
{
    const char *value = tmk_environ_get(environment, n, name);
    if (value)
        snprintf(to, size, "%s", value);
    return value != NULL;
}

void tmk_process_facts_read(const char *proc, uint32_t pid, struct tmk_process_facts *ret)
{
    char groups[CGROUP_BYTES], account[TMK_CONTAINER_TEXT_BYTES] = "";
    struct tmk_cgroup_name group = {.is_pod = false};
    size_t n;
    char *environment = read_environ(proc, pid, &n);
    *ret = (struct tmk_process_facts){.job = ""};
    if (tmk_kernel_file_read(groups, sizeof groups, "%s/%u/cgroup", proc, pid) > 0 &&
        tmk_cgroup_name_parse(groups, &group)) {
        read_account_namespace(proc, pid, account, sizeof account);
        tmk_container_name(&group, environment, n, account, &ret->container);
    }
    tmk_job_name_of_environ(environment, n, ret->job);
    ret->has_cuda_visible = copy_variable(environment, n, "CUDA_VISIBLE_DEVICES", ret->cuda_visible,
                                          sizeof ret->cuda_visible) ||
                            copy_variable(environment, n, "HIP_VISIBLE_DEVICES", ret->cuda_visible,
                                          sizeof ret->cuda_visible);
    ret->has_nvidia_visible = copy_variable(environment, n, "NVIDIA_VISIBLE_DEVICES",
                                            ret->nvidia_visible, sizeof ret->nvidia_visible);
    free(environment);
}
