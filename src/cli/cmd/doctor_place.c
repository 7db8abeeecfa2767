/* SPDX-License-Identifier: MIT */
/* cli/cmd/doctor_place.c - doctor's rows about what is around a process: limits, the container, its
 * namespaces, the folder for sockets.
 *
 * All of it is read; nothing is made or started. What cannot be read is said to be unknown. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/cmd/doctor.h"
#include "device/device.h"
#include "fleet/container.h"
#include "kit/amount.h"
#include "kit/kernel_files.h"
#include "kit/language.h"

enum { TEXT_BYTES = 4096, FILES_WANTED = 1024 };

/* Numbers of the first namespaces, in the kernel since 3.8. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"
#define FIRST_USER_NAMESPACE "user:[4026531837]"

/* ---- limits ---- */

static const char *limit_text(rlim_t limit, bool is_size, char *buffer)
{
    if (limit == RLIM_INFINITY)
        return _("unlimited");
    return is_size ? tmk_size_text((uint64_t)limit, buffer)
                   : tmk_count_text((uint64_t)limit, buffer);
}

static void check_limits(struct tmk_doctor_row *r)
{
    struct rlimit files = {0}, locked = {0}, core = {0}, space = {0};
    char n_files[TMK_AMOUNT_BYTES], n_locked[TMK_AMOUNT_BYTES], least[TMK_AMOUNT_BYTES];
    getrlimit(RLIMIT_NOFILE, &files);
    getrlimit(RLIMIT_MEMLOCK, &locked);
    getrlimit(RLIMIT_CORE, &core);
    getrlimit(RLIMIT_AS, &space);
    tmk_doctor_say(r, TMK_GRADE_GOOD, "open files %s, locked memory %s, core files %s",
                   limit_text(files.rlim_cur, false, n_files),
                   limit_text(locked.rlim_cur, true, n_locked), core.rlim_cur ? "on" : "off");
    if (space.rlim_cur != RLIM_INFINITY && space.rlim_cur < 1ull << 30) {
        tmk_doctor_say(r, TMK_GRADE_BAD,
                       "a program may have only %s of address space: nothing is recorded",
                       tmk_size_text((uint64_t)space.rlim_cur, least));
        tmk_doctor_fix(r, "ulimit -v unlimited");
    } else if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < FILES_WANTED) {
        r->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(r, "too few open files for a run of many ranks: ulimit -n %u",
                       (unsigned)FILES_WANTED);
    }
}

/* ---- the container ---- */

static bool is_file(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Returns what keeps this process in a container; NULL when nothing says that there is one. */
static const char *container_kind(const char *cgroup)
{
    struct tmk_cgroup_name group;
    const char *said = getenv("container"); /* set by podman, LXC and systemd-nspawn */
    if (getenv("KUBERNETES_SERVICE_HOST") || strstr(cgroup, "kubepods"))
        return "Kubernetes";
    if (is_file("/run/.containerenv") || (said && strcmp(said, "podman") == 0))
        return "Podman";
    if (is_file("/.dockerenv") || strstr(cgroup, "docker"))
        return "Docker";
    if ((said && strncmp(said, "lxc", 3) == 0) || strstr(cgroup, "/lxc"))
        return "LXC";
    if (said && strcmp(said, "systemd-nspawn") == 0)
        return "systemd-nspawn";
    if (getenv("APPTAINER_CONTAINER") || getenv("SINGULARITY_CONTAINER"))
        return "Apptainer";
    return tmk_cgroup_name_parse(cgroup, &group) || (said && *said) ? _("a container") : NULL;
}

/* Returns 1 when this process is in a namespace of its own, 0 when in the first one, -1: unknown.
 */
static int has_namespace(const char *proc, const char *name, const char *first)
{
    char path[PATH_MAX], link[64];
    snprintf(path, sizeof path, "%s/self/ns/%s", proc, name);
    ssize_t n = readlink(path, link, sizeof link - 1);
    if (n < 0)
        return -1;
    link[n] = '\0';
    return strcmp(link, first) != 0;
}

static void check_container(struct tmk_doctor_row *r)
{
    struct tmk_device_roots roots = tmk_device_roots_get();
    char cgroup[TEXT_BYTES];
    bool is_known = tmk_kernel_file_read(cgroup, sizeof cgroup, "%s/self/cgroup", roots.proc) >= 0;
    const char *kind = container_kind(cgroup);
    int own_pids = has_namespace(roots.proc, "pid", FIRST_PID_NAMESPACE);
    int own_users = has_namespace(roots.proc, "user", FIRST_USER_NAMESPACE);
    if (!kind && !is_known && own_pids < 0) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "unknown: there is no %s here", roots.proc);
        tmk_doctor_fix(r, "mount -t proc proc /proc");
        return;
    }
    tmk_doctor_say(
        r, TMK_GRADE_GOOD, "%s%s%s", kind ? kind : "none",
        own_pids > 0 ? _("; PIDs of its own: a job is named by the PID that it has here") : "",
        own_users > 0 ? _("; users of its own: attach reaches what was started in here") : "");
}

/* Docker and Podman give a container 64 MiB of /dev/shm, of which each rank takes some 16. */
static void check_shared_memory(struct tmk_doctor_row *r)
{
    struct statvfs fs;
    char size[TMK_AMOUNT_BYTES];
    const uint64_t usual = 64ull << 20;
    if (statvfs("/dev/shm", &fs) < 0) {
        tmk_doctor_say(r, TMK_GRADE_FAIR,
                       "there is no /dev/shm: DataLoader workers and NCCL need it, too");
        tmk_doctor_fix(r, "mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
        return;
    }
    uint64_t total = (uint64_t)fs.f_blocks * fs.f_frsize;
    bool is_small = total <= usual;
    tmk_doctor_say(r, is_small ? TMK_GRADE_FAIR : TMK_GRADE_GOOD, "%s%s",
                   tmk_size_text(total, size),
                   is_small ? _(": room for the rings of three processes, and torch's DataLoader "
                                "workers want it, too")
                            : "");
    if (is_small)
        tmk_doctor_fix(r, "start the container with --shm-size=1g; Kubernetes: an emptyDir of "
                          "medium Memory at /dev/shm");
}

/* ---- sockets ---- */

/* Returns whether the recorder would take this folder: the user's own and closed to others. */
static bool is_private_folder(const char *path)
{
    struct stat st;
    return path && *path == '/' && lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 077) == 0 && access(path, W_OK | X_OK) == 0;
}

/* Look where watched programs put their sockets (record/socket/control_socket.c), without making
 * the folder as they would. */
static void check_sockets(struct tmk_doctor_row *r)
{
    static const char *const above[] = {"/dev/shm", "/tmp"};
    char of_user[64];
    const char *named = getenv("XDG_RUNTIME_DIR");
    snprintf(of_user, sizeof of_user, "/run/user/%u", (unsigned)geteuid());
    const char *const ready[] = {named, of_user};
    for (size_t i = 0; i < TMK_N(ready); i++) {
        if (!is_private_folder(ready[i]))
            continue;
        tmk_doctor_say(r, TMK_GRADE_GOOD, "in %s", ready[i]);
        return;
    }
    for (size_t i = 0; i < TMK_N(above); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/tidemark-%u", above[i], (unsigned)geteuid());
        bool can_make = !is_file(path) && access(above[i], W_OK | X_OK) == 0;
        if (!is_private_folder(path) && !can_make)
            continue;
        tmk_doctor_say(r, TMK_GRADE_GOOD, "in %s%s", path, can_make ? _(", made when needed") : "");
        return;
    }
    tmk_doctor_say(r, TMK_GRADE_FAIR,
                   "no folder for sockets: eval and detach cannot reach a job, nor can ps");
    tmk_doctor_fix(r, "export XDG_RUNTIME_DIR=FOLDER, one of this user with mode 0700");
}

void tmk_doctor_place(struct tmk_doctor *d)
{
    check_limits(tmk_doctor_add(d, "limits"));
    check_container(tmk_doctor_add(d, "container"));
    check_shared_memory(tmk_doctor_add(d, "/dev/shm"));
    check_sockets(tmk_doctor_add(d, "sockets"));
}
