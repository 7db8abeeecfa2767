/* SPDX-License-Identifier: MIT */
/* inject/subject.c - see subject.h. */
#include "inject/subject.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/filters.h"
#include "base/lines.h"
#include "inject/arch.h"
#include "kit/kernel_files.h"
#include "kit/language.h"

enum { CAPABILITY_PTRACE = 19, STATUS_BYTES = 8192, NAMESPACES_MOST = 32 }; /* of the kernel */

/* ---- facts ---- */

/* Read a small file of /proc/PID as text; returns its length, -1: it cannot be read. */
static ssize_t read_small(pid_t pid, const char *name, char *to, size_t size)
{
    return tmk_kernel_file_read(to, size, "/proc/%d/%s", (int)pid, name);
}

static long status_number(const char *text)
{
    return strtol(text, NULL, 10);
}

/* The process's number in its own namespace: the last of its numbers, one for each namespace. */
static pid_t status_inner_pid(const char *status)
{
    long numbers[NAMESPACES_MOST];
    unsigned n = tmk_kernel_numbers(tmk_lines_field(status, "NSpid:"), numbers, NAMESPACES_MOST);
    return n ? (pid_t)numbers[n - 1] : 0;
}

static void take_status_fields(struct tmk_subject *s, const char *status)
{
    char *end;
    s->state = *tmk_lines_field(status, "State:");
    s->process = (pid_t)status_number(tmk_lines_field(status, "Tgid:"));
    s->tracer = (pid_t)status_number(tmk_lines_field(status, "TracerPid:"));
    s->inner_pid = status_inner_pid(status);
    s->has_seccomp = status_number(tmk_lines_field(status, "Seccomp:")) == 2;
    s->is_kernel =
        *tmk_lines_field(status, "VmSize:") == '\0' && s->state != 'Z' && s->state != 'X';
    s->uid = (uid_t)strtoul(tmk_lines_field(status, "Uid:"), &end, 10);
    for (int i = 0; i < 2; i++)
        s->mixed_uid |= (uid_t)strtoul(end, &end, 10) != s->uid;
    if (s->inner_pid == 0)
        s->inner_pid = s->pid;
}

/* Count the seccomp filters that are not the container's. */
static void take_filters(struct tmk_subject *s, const char *status)
{
    char path[64];
    struct tmk_filters own = {0}, first = {0};
    snprintf(path, sizeof path, "/proc/%d", (int)s->pid);
    bool has_own = tmk_filters_parse(status, true, &own);
    bool has_first = own.n > 0 && tmk_filters_read_first(path, &first);
    if (has_own && !tmk_filters_are_known(&own, has_first ? &first : NULL, NULL, false))
        s->n_unknown_filters = own.n;
}

static void take_program(struct tmk_subject *s)
{
    char path[64];
    unsigned char e[20];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)s->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && pread(fd, e, sizeof e, 0) == (ssize_t)sizeof e &&
                memcmp(e, ELFMAG, SELFMAG) == 0;
    if (fd >= 0)
        close(fd);
    s->is_elf64 = good && e[EI_CLASS] == ELFCLASS64;
    s->machine = good ? tmk_load_u16(e + 18) : 0;
}

/* The name it was started with, else the kernel's name for it. */
static void take_name(struct tmk_subject *s)
{
    char text[512];
    if (read_small(s->pid, "cmdline", text, sizeof text) <= 0 || !text[0])
        read_small(s->pid, "comm", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    const char *slash = strrchr(text, '/');
    snprintf(s->name, sizeof s->name, "%.60s", slash ? slash + 1 : text);
    if (!s->name[0])
        snprintf(s->name, sizeof s->name, "process");
}

bool tmk_subject_sees(const struct tmk_subject *s, const char *path)
{
    char theirs[PATH_MAX + 64];
    struct stat a, b;
    snprintf(theirs, sizeof theirs, "/proc/%d/root%s", (int)s->pid, path);
    return stat(path, &a) == 0 && stat(theirs, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int tmk_subject_read(pid_t pid, struct tmk_subject *ret, struct tmk_error *err)
{
    char status[STATUS_BYTES];
    struct tmk_subject s = {.pid = pid};
    if (pid <= 0 || read_small(pid, "status", status, sizeof status) <= 0)
        return tmk_fail(err, TMK_ENOENT, "there is no process %d; see: ps -e", (int)pid);
    take_status_fields(&s, status);
    take_program(&s);
    take_name(&s);
    take_filters(&s, status);
    s.same_root = tmk_subject_sees(&s, "/");
    if (s.tracer > 0 && read_small(s.tracer, "comm", s.tracer_name, sizeof s.tracer_name) > 0)
        s.tracer_name[strcspn(s.tracer_name, "\n")] = '\0';
    *ret = s;
    return 0;
}

bool tmk_subject_read_thread(pid_t tid, char *ret_state, pid_t *ret_inner)
{
    char status[STATUS_BYTES];
    struct tmk_subject s = {.pid = tid};
    if (read_small(tid, "status", status, sizeof status) <= 0)
        return false;
    take_status_fields(&s, status);
    *ret_state = s.state;
    *ret_inner = s.inner_pid;
    return true;
}

size_t tmk_subject_threads(pid_t pid, pid_t *ret, size_t max)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    size_t n = 0;
    struct dirent *entry;
    while (folder && n < max && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            ret[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
    if (folder)
        closedir(folder);
    return n;
}

void tmk_asker_read(struct tmk_asker *ret)
{
    char status[STATUS_BYTES] = "", scope[16] = "";
    *ret = (struct tmk_asker){.pid = getpid(), .uid = geteuid()};
    read_small(ret->pid, "status", status, sizeof status);
    ret->may_trace =
        strtoull(tmk_lines_field(status, "CapEff:"), NULL, 16) >> CAPABILITY_PTRACE & 1;
    tmk_kernel_file_read(scope, sizeof scope, "/proc/sys/kernel/yama/ptrace_scope");
    ret->ptrace_scope = (int)status_number(scope);
    struct tmk_filters own = {0};
    if (tmk_filters_parse(status, true, &own))
        ret->n_filters = own.n;
    const char *said = getenv(TMK_FILTERS_VARIABLE);
    ret->trusts_filters = said && strcmp(said, TMK_FILTERS_TRUST) == 0;
}

/* ---- conclusions ---- */

static const char *machine_name(uint16_t machine)
{
    switch (machine) {
    case EM_X86_64:
        return "x86-64";
    case EM_386:
        return _("32-bit x86");
    case EM_AARCH64:
        return _("aarch64");
    case EM_ARM:
        return _("32-bit Arm");
    default:
        return _("another processor");
    }
}

/* Check whether a process of this kind can be attached to at all. */
static int check_kind(const struct tmk_subject *s, const struct tmk_asker *us,
                      struct tmk_error *err)
{
    int pid = (int)s->pid;
    if (s->pid == us->pid)
        return tmk_fail(err, TMK_EINVAL, "process %d is this tidemark itself", pid);
    if (s->process != s->pid)
        return tmk_fail(err, TMK_EINVAL, "%d is a thread of process %d; try: tidemark attach %d",
                        pid, (int)s->process, (int)s->process);
    if (s->state == 'Z' || s->state == 'X')
        return tmk_fail(err, TMK_EINVAL,
                        "process %d has ended; only its parent has not yet taken note (a zombie)",
                        pid);
    if (s->is_kernel)
        return tmk_fail(err, TMK_EINVAL, "process %d is part of the kernel, not a program", pid);
    if (s->machine && (!s->is_elf64 || s->machine != tmk_arch_machine))
        return tmk_fail(err, TMK_EINVAL,
                        "process %d runs a program for %s, this tidemark is for %s; use the "
                        "tidemark built for that",
                        pid, machine_name(s->machine), machine_name(tmk_arch_machine));
    return 0;
}

static int check_owner_of_subject(const struct tmk_subject *s, const struct tmk_asker *us,
                                  struct tmk_error *err)
{
    if (us->may_trace || (s->uid == us->uid && !s->mixed_uid))
        return 0;
    if (us->uid == 0)
        return tmk_fail(err, TMK_EINVAL,
                        "process %d belongs to user %u and root lacks CAP_SYS_PTRACE here; in a "
                        "container start that with --cap-add=SYS_PTRACE",
                        (int)s->pid, (unsigned)s->uid);
    return tmk_fail(err, TMK_EINVAL,
                    "process %d belongs to another user (%u, you are %u); run tidemark as that "
                    "user, or with sudo",
                    (int)s->pid, (unsigned)s->uid, (unsigned)us->uid);
}

int tmk_subject_check(const struct tmk_subject *s, const struct tmk_asker *us,
                      struct tmk_error *err)
{
    int rc = check_kind(s, us, err);
    if (rc == 0)
        rc = check_owner_of_subject(s, us, err);
    if (rc < 0)
        return rc;
    if (s->tracer > 0)
        return tmk_fail(err, TMK_EINVAL,
                        "process %d is being traced by process %d (%s), and a process has one "
                        "tracer; end that first",
                        (int)s->pid, (int)s->tracer, s->tracer_name[0] ? s->tracer_name : "?");
    if (s->state == 'T')
        return tmk_fail(err, TMK_EINVAL,
                        "process %d is stopped and cannot load anything; first: kill -CONT %d",
                        (int)s->pid, (int)s->pid);
    if (s->n_unknown_filters > us->n_filters && !us->trusts_filters)
        return tmk_fail(err, TMK_EINVAL,
                        "process %d has a seccomp filter, which may kill it for what attaching "
                        "calls in it; start it with: tidemark run; if you know that the filter "
                        "kills nothing: " TMK_FILTERS_VARIABLE "=" TMK_FILTERS_TRUST
                        " tidemark attach %d",
                        (int)s->pid, (int)s->pid);
    if (us->ptrace_scope == 3)
        return tmk_fail(err, TMK_EINVAL,
                        "this machine forbids attaching until it is started again "
                        "(kernel.yama.ptrace_scope is 3); start the program with: tidemark run");
    if (us->ptrace_scope == 2 && !us->may_trace)
        return tmk_fail(err, TMK_EINVAL,
                        "this machine lets only root attach (kernel.yama.ptrace_scope is 2); try: "
                        "sudo tidemark attach %d",
                        (int)s->pid);
    return 0;
}

int tmk_subject_explain(const struct tmk_subject *s, const struct tmk_asker *us, int os_error,
                        struct tmk_error *err)
{
    int pid = (int)s->pid;
    if (os_error == ESRCH)
        return tmk_fail(err, TMK_EINVAL, "process %d has ended meanwhile", pid);
    if (os_error == ENOSYS)
        return tmk_fail(err, TMK_EINVAL,
                        "ptrace() is forbidden here, by a seccomp filter around this tidemark; run "
                        "it outside of the container (docker: --cap-add=SYS_PTRACE)");
    if (os_error != EPERM && os_error != EACCES)
        return tmk_fail_os(err, TMK_EIO, os_error, "cannot attach to process %d", pid);
    if (us->ptrace_scope == 1 && !us->may_trace)
        return tmk_fail(err, TMK_EINVAL,
                        "this machine lets a process be attached to by its parents only "
                        "(kernel.yama.ptrace_scope is 1); try: sudo tidemark attach %d, or: sudo "
                        "sysctl kernel.yama.ptrace_scope=0",
                        pid);
    if (us->may_trace)
        return tmk_fail(err, TMK_EINVAL,
                        "the kernel forbids attaching to process %d, even to root: a security "
                        "module, a seccomp filter or another user namespace; see dmesg",
                        pid);
    return tmk_fail(err, TMK_EINVAL,
                    "the kernel forbids attaching to process %d: it has more rights than you, or "
                    "has made itself undumpable (PR_SET_DUMPABLE); try: sudo tidemark attach %d",
                    pid, pid);
}
