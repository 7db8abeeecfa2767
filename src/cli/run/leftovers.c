/* SPDX-License-Identifier: MIT */
/* cli/run/leftovers.c - see leftovers.h. */
#include "cli/run/leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/wire.h"
#include "cli/front/refused.h"
#include "cli/output/xalloc.h"
#include "cli/run/refusal_watch.h"
#include "trace/account.h"
#include "trace/layout.h"
#include "trace/merge.h"
#include "trace/ring.h"
#include "trace/ring_rescue.h"
#include "trace/writer.h"

enum { SOCKET_S = 10 }; /* a younger socket may be about to be listened at */

struct search {
    struct tmk_leftovers *found;
    enum tmk_leftovers_way way;
    const char *run_folder; /* NULL: of all runs */
};

static bool is_of_run(const struct search *s, const struct tmk_ring_header *h)
{
    size_t n = s->run_folder ? strlen(s->run_folder) : 0;
    return n == 0 || (strncmp(h->trace_path, s->run_folder, n) == 0 && h->trace_path[n] == '/');
}

static void keep(const struct search *s, const struct tmk_ring_file *f,
                 const struct tmk_ring_header *h, int rc, const struct tmk_error *why)
{
    struct tmk_kept_rings *kept = &s->found->kept;
    if (kept->n++ == 0) {
        kept->rc = rc;
        kept->why = *why;
        snprintf(kept->trace_path, sizeof kept->trace_path, "%s", h->trace_path);
    }
    kept->bytes += (uint64_t)f->st.st_blocks * 512;
}

static bool is_there(const struct tmk_ring_file *f)
{
    struct stat st;
    return fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == f->st.st_ino;
}

/* Why a ring is there although nothing went wrong with its trace. */
static int fail_untouched(const char *trace_path, struct tmk_error *err)
{
    struct stat st;
    if (stat(trace_path, &st) == 0 && st.st_uid != geteuid())
        return tmk_fail(err, TMK_EINVAL, "its trace is another user's");
    return tmk_fail(err, TMK_EBUSY, "another process is at it, or its trace names another ring");
}

static bool settle(const struct search *s, const struct tmk_ring_file *f,
                   const struct tmk_ring_header *h)
{
    struct tmk_error err = {0};
    if (s->way != TMK_LEFTOVERS_CLEAN)
        return false;
    int rc = tmk_merge_settle(h->trace_path, &err);
    if (!is_there(f))
        return true;
    if (rc >= 0)
        rc = fail_untouched(h->trace_path, &err);
    else if (!err.text[0])
        tmk_fail(&err, rc, "%s", tmk_result_text(rc));
    keep(s, f, h, rc, &err);
    return false;
}

/* A process that is killed before its trace has a header leaves that under its first name. */
static void remove_part(const char *trace_path)
{
    char part[TMK_RING_PATH_BYTES + 8];
    struct stat st;
    tmk_writer_part_name(trace_path, part, sizeof part);
    if (lstat(part, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        st.st_size <= TMK_HEADER_MAX_BYTES)
        unlink(part);
}

static bool take_away(const struct search *s, const struct tmk_ring_file *f,
                      const struct tmk_ring_header *h)
{
    struct tmk_error err = {0};
    if (tmk_ring_file_lock(f, 0) == 0 && tmk_ring_file_remove(f))
        return true;
    if (s->way == TMK_LEFTOVERS_CLEAN && is_there(f))
        keep(s, f, h, tmk_fail(&err, TMK_EIO, "it has no trace, and cannot be removed"), &err);
    return false;
}

/* A ring without a trace. The run may have been moved or renamed, and then these events are nowhere
 * else: such a ring goes only when the user asks for it (doctor --clean). */
static bool remove_ring(const struct search *s, const struct tmk_ring_file *f,
                        const struct tmk_ring_header *h, bool is_full)
{
    bool is_asked = s->way == TMK_LEFTOVERS_CLEAN && !s->run_folder;
    if ((is_full && !is_asked) || !take_away(s, f, h))
        return false;
    if (h->trace_path[0]) {
        remove_part(h->trace_path);
        tmk_account_return(h->trace_path, tmk_ring_bytes(h->n_pages));
    }
    if (s->run_folder)
        tmk_refused_add(s->run_folder, h->pid, TMK_STOP_EARLY_END);
    return true;
}

/* A ring of another run is left alone, and so is one without a header unless all are looked for. */
static void look_at_ring(const struct search *s, const struct tmk_ring_file *f)
{
    struct tmk_ring_header h = {0};
    enum tmk_ring_owner owner = tmk_ring_owner(f, &h);
    if (owner == TMK_RING_OWNED || (s->run_folder && (!h.trace_path[0] || !is_of_run(s, &h))))
        return;
    bool is_full =
        owner == TMK_RING_ORPHAN && h.trace_path[0] && tmk_ring_file_n_used(f, h.n_pages) > 0;
    if (s->way != TMK_LEFTOVERS_COUNT &&
        !(owner == TMK_RING_DEAD ? settle(s, f, &h) : remove_ring(s, f, &h, is_full)))
        return;
    s->found->n_dead += owner == TMK_RING_DEAD;
    s->found->n_orphans += owner == TMK_RING_ORPHAN;
    s->found->n_full_orphans += is_full;
    s->found->bytes += (uint64_t)f->st.st_blocks * 512;
}

static void look_at_account(const struct search *s, int folder, const char *name)
{
    bool idle = s->way == TMK_LEFTOVERS_COUNT ? tmk_account_is_idle(folder, name)
                                              : tmk_account_remove_idle(folder, name);
    if (idle) {
        s->found->n_accounts++;
        s->found->bytes += TMK_ACCOUNT_BYTES;
    }
}

/* In a folder that others may have files in, names of other users are passed over. */
static bool may_be_ours(const char *name, bool is_shared)
{
    return is_shared ? tmk_ring_file_is_users_name(name) : strncmp(name, "tidemark.", 9) == 0;
}

static void look_in(const struct search *s, const char *path, bool is_shared)
{
    struct tmk_folder names;
    struct tmk_ring_file f;
    if (tmk_folder_open(&names, path) < 0)
        return;
    for (const char *name; (name = tmk_folder_next(&names)) != NULL;) {
        if (!may_be_ours(name, is_shared))
            continue;
        if (!s->run_folder && tmk_account_is_name(name)) {
            look_at_account(s, names.fd, name);
        } else if (tmk_ring_file_open_own_in(&f, names.fd, name, NULL) == 0) {
            look_at_ring(s, &f);
            tmk_ring_file_close(&f);
        }
    }
    tmk_folder_close(&names);
}

/* ---- sockets ---- */

static bool is_own_socket(int folder, const char *name, struct stat *ret)
{
    size_t n = strlen(name);
    return strncmp(name, "tidemark.", 9) == 0 && strcmp(name + n - 5, ".sock") == 0 &&
           fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(ret->st_mode) &&
           ret->st_uid == geteuid();
}

/* Does not wait: a process that is stopped accepts nobody, and then its queue is full (EAGAIN). */
static bool is_refused_at(int folder, const char *name)
{
    struct sockaddr_un address;
    tmk_wire_address(&address, folder, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 &&
                   errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

/* Nobody listens there, and it is still the same socket: another process may have made a new one
 * of this name. */
static bool is_dead_socket(int folder, const char *name)
{
    struct stat st, now;
    if (!is_own_socket(folder, name, &st))
        return false;
    time_t age = time(NULL) - st.st_ctime;
    return (age < 0 || age >= SOCKET_S) && is_refused_at(folder, name) &&
           is_own_socket(folder, name, &now) && now.st_dev == st.st_dev && now.st_ino == st.st_ino;
}

static void look_for_sockets(const struct search *s, const char *path)
{
    struct tmk_folder names;
    if (tmk_folder_open(&names, path) < 0)
        return;
    for (const char *name; (name = tmk_folder_next(&names)) != NULL;)
        if (is_dead_socket(names.fd, name))
            s->found->n_sockets +=
                s->way == TMK_LEFTOVERS_COUNT || unlinkat(names.fd, name, 0) == 0;
        else if (s->way != TMK_LEFTOVERS_COUNT && tmk_refusal_watch_is_name(name))
            (void)tmk_account_remove_idle(names.fd, name); /* locked like one; not counted: empty */
    tmk_folder_close(&names);
}

/* In the folder that watched processes make there (record/door.h). */
static void look_for_sockets_of_user(const struct search *s, const char *folder)
{
    char *own = tmk_xformat("%s/tidemark-%u", folder, (unsigned)geteuid());
    look_for_sockets(s, own);
    free(own);
}

/* ---- all ---- */

static void look_everywhere(const struct search *s)
{
    struct tmk_ring_folders folders;
    tmk_ring_folders(&folders);
    for (unsigned i = 0; i < folders.n; i++)
        look_in(s, folders.paths[i], true);
}

void tmk_leftovers_find(struct tmk_leftovers *ret, enum tmk_leftovers_way way)
{
    struct tmk_ring_folders folders;
    struct search s = {.found = ret, .way = way};
    *ret = (struct tmk_leftovers){0};
    look_everywhere(&s);
    look_for_sockets_of_user(&s, "/dev/shm");
    look_for_sockets_of_user(&s, "/tmp");
    tmk_ring_folders(&folders);
    for (unsigned i = 0; i < folders.n; i++)
        look_for_sockets(&s, folders.paths[i]);
}

void tmk_leftovers_settle(const char *folder)
{
    struct tmk_leftovers unused = {0};
    struct search s = {.found = &unused, .way = TMK_LEFTOVERS_CLEAN, .run_folder = folder};
    look_everywhere(&s);
    look_in(&s, folder, false); /* rings for which there was no room in memory */
}
