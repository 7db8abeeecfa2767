/* SPDX-License-Identifier: MIT */
/* record/socket/control_socket.c - see control_socket.h.
 *
 * The socket is bound through /proc/self/fd/FOLDER/NAME: so the folder that was looked at is the
 * one that is used, and its path may be longer than the 107 bytes that an address has room for.
 * The mode comes from fchmod() before bind(), which keeps it; umask() would be the program's too.
 *
 * Programs close descriptors that they do not know and open others under the same number: before
 * the number is used, the inode behind it is compared. */
#include "record/socket/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/wire.h"
#include "record/core/helper.h"
#include "record/core/parts.h"
#include "record/core/recorder.h"
#include "record/socket/eval.h"

#ifndef TMK_VERSION
#define TMK_VERSION "unknown"
#endif

enum { STACK_BYTES = 512 * 1024, BACKLOG = 16, NAME_TRIES = 10, SAY_S = 2, HEAR_S = 5 };

struct control_socket {
    pid_t owner; /* whose it is: a forked child's copy is not */
    int fd;      /* -1: none */
    ino_t inode;
    bool is_served;  /* the thread has it, and closes it */
    bool is_private; /* the packer thread has a descriptor of its own, of the same number */
    char path[512];
    char trace_path[3584];
};

static struct control_socket control = {.fd = -1};
static _Atomic uint32_t n_servers;

static bool is_socket(int fd, ino_t inode)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == inode;
}

/* ---- opening ---- */

/* A folder that nobody else can look into or write to, as a descriptor; -1 when it is not that. */
static int open_private_folder(const char *path, bool make)
{
    struct stat st;
    if (*path != '/' || (make && mkdir(path, 0700) < 0 && errno != EEXIST))
        return -1;
    int fd = tmk_fd_raise(open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The first folder that will do; its path is added to `path`. */
static int choose_socket_folder(struct tmk_text *path)
{
    static const char *const places[] = {"/run/user/", "/dev/shm/tidemark-", "/tmp/tidemark-"};
    char place[64];
    int fd = open_private_folder(tmk_recorder.runtime_folder, false);
    if (fd >= 0) {
        tmk_text_string(path, tmk_recorder.runtime_folder);
        return fd;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct tmk_text text;
        tmk_text_init(&text, place, sizeof place);
        tmk_text_add(&text, "%s%u", places[i], (unsigned)geteuid());
        fd = open_private_folder(place, i > 0);
        if (fd >= 0) {
            tmk_text_string(path, place);
            return fd;
        }
    }
    return -1;
}

/* Left by a process of the same number that was killed, or by this one before an exec. */
static bool is_abandoned(int folder, const char *name)
{
    int fd = tmk_wire_connect(folder, name);
    bool refused = fd < 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return refused;
}

static int bind_in(int fd, int folder, const char *name)
{
    struct sockaddr_un address;
    tmk_wire_address(&address, folder, name);
    const struct sockaddr *to = (const struct sockaddr *)&address;
    if (fchmod(fd, 0600) < 0)
        return -1;
    if (bind(fd, to, sizeof address) == 0)
        return 0;
    if (errno != EADDRINUSE || !is_abandoned(folder, name) || unlinkat(folder, name, 0) < 0)
        return -1;
    return bind(fd, to, sizeof address);
}

static int make_socket(int folder, const char *name)
{
    struct stat st;
    int fd = tmk_fd_raise(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && bind_in(fd, folder, name) == 0) {
        if (listen(fd, BACKLOG) == 0) {
            control.inode = st.st_ino;
            return fd;
        }
        unlinkat(folder, name, 0);
    }
    close(fd);
    return -1;
}

/* What a child inherits: the descriptor, if it still is that. */
static void forget_parent(void)
{
    if (control.owner != getpid() && is_socket(control.fd, control.inode))
        close(control.fd);
    if (control.owner != getpid())
        atomic_store(&n_servers, 0);
    control = (struct control_socket){.owner = getpid(), .fd = -1};
}

/* tidemark.PID.sock or, where another living process has that (containers that share a folder),
 * tidemark.PID.1.sock and so on. */
static void make_socket_name(char *name, size_t size, unsigned try)
{
    struct tmk_text text;
    tmk_text_init(&text, name, size);
    tmk_text_add(&text, "tidemark.%d.", (int)getpid());
    if (try > 0)
        tmk_text_add(&text, "%u.", try);
    tmk_text_string(&text, "sock");
}

int tmk_control_socket_open(struct tmk_text *ret_path)
{
    char name[64];
    struct tmk_text path;
    forget_parent();
    tmk_text_init(&path, control.path, sizeof control.path);
    int folder = choose_socket_folder(&path);
    if (folder < 0)
        return TMK_EIO;
    for (unsigned try = 0; try < NAME_TRIES && control.fd < 0; try++) {
        make_socket_name(name, sizeof name, try);
        control.fd = make_socket(folder, name);
    }
    close(folder);
    if (control.fd < 0)
        return TMK_EIO;
    tmk_text_add(&path, "/%s", name);
    tmk_text_string(ret_path, control.path);
    return 0;
}

/* ---- serving ---- */

static void send_answer(int client, enum tmk_wire_kind kind, const char *text)
{
    (void)tmk_wire_send(client, kind, text, strlen(text));
}

static void do_ping(int client, const struct tmk_wire_request *request)
{
    char text[sizeof control.trace_path + 128];
    struct tmk_text out;
    (void)request;
    tmk_text_init(&out, text, sizeof text);
    tmk_text_add(&out, "pid=%d\ntidemark=%s\ntrace=%s\n", (int)getpid(), TMK_VERSION,
                 control.trace_path);
    send_answer(client, TMK_WIRE_TEXT, text);
}

static void do_detach(int client, const struct tmk_wire_request *request)
{
    char message[512] = "";
    (void)request;
    int rc = tmk_parts.detach(message, sizeof message);
    send_answer(client, rc < 0 ? TMK_WIRE_FAIL : TMK_WIRE_TEXT, message);
}

static void do_eval(int client, const struct tmk_wire_request *request)
{
    char reason[256];
    char *code = tmk_eval_claim(reason, sizeof reason);
    if (!code)
        send_answer(client, TMK_WIRE_FAIL, reason);
    else if (tmk_wire_read(client, code, request->n_bytes) == 0)
        tmk_eval_run(&(struct tmk_eval_order){
            .client = client,
            .on_main = request->flags & TMK_WIRE_ON_MAIN,
            .timeout_ms = request->timeout_ms,
            .n_bytes = request->n_bytes,
        });
}

static void obey_request(int client, const struct tmk_wire_request *request)
{
    static void (*const verbs[])(int client, const struct tmk_wire_request *request) = {
        [TMK_WIRE_PING] = do_ping, [TMK_WIRE_EVAL] = do_eval, [TMK_WIRE_DETACH] = do_detach};
    if (request->version != TMK_WIRE_VERSION || request->verb == 0 ||
        request->verb >= sizeof verbs / sizeof verbs[0])
        send_answer(client, TMK_WIRE_FAIL,
                    "the process was started with tidemark " TMK_VERSION
                    ", which does not know that; use its own tidemark");
    else if (request->n_bytes > TMK_WIRE_CODE_MAX)
        send_answer(client, TMK_WIRE_FAIL, "the code is longer than 1 MiB");
    else
        verbs[request->verb](client, request);
}

static bool is_peer_allowed(int client)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void serve_client(int client)
{
    const struct timeval to_say = {.tv_sec = SAY_S}, to_hear = {.tv_sec = HEAR_S};
    struct tmk_wire_request request = {0};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &to_say, sizeof to_say);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &to_hear, sizeof to_hear);
    if (!is_peer_allowed(client))
        send_answer(client, TMK_WIRE_FAIL,
                    "only the user of the process, or root, may ask it anything");
    else if (tmk_wire_read(client, &request, sizeof request) == 0 &&
             request.magic == TMK_WIRE_MAGIC)
        obey_request(client, &request);
    send_answer(client, TMK_WIRE_DONE, "");
}

/* Wait for who comes next; -1 when the door is closed, -2 when it was nothing. */
static int next_client(int fd, ino_t inode)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, -1) < 0 && errno != EINTR)
        return -1;
    if ((wait.revents & POLLHUP) || !is_socket(fd, inode)) /* shut down, or the program's now */
        return -1;
    int client = tmk_fd_raise(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
    if (client >= 0)
        return client;
    if (errno != EAGAIN && errno != EINTR) /* no descriptor to be had: not in a loop */
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    return -2;
}

static void *serve_main(void *arg)
{
    int fd = (int)(intptr_t)arg;
    ino_t inode = control.inode;
    prctl(PR_SET_NAME, "tidemark-door", 0, 0, 0);
    for (int client; (client = next_client(fd, inode)) != -1;) {
        if (client < 0)
            continue;
        serve_client(client);
        close(client);
    }
    if (is_socket(fd, inode))
        close(fd);
    atomic_fetch_sub(&n_servers, 1);
    return NULL;
}

void tmk_control_socket_serve(const char *trace_path)
{
    struct tmk_text text;
    if (control.fd < 0)
        return;
    tmk_text_init(&text, control.trace_path, sizeof control.trace_path);
    tmk_text_string(&text, trace_path);
    atomic_fetch_add(&n_servers, 1);
    control.is_served = true;
    if (!tmk_helper_start(serve_main, (void *)(intptr_t)control.fd, STACK_BYTES)) {
        atomic_fetch_sub(&n_servers, 1);
        control.is_served = false;
        tmk_control_socket_close();
    }
}

bool tmk_control_socket_keep_only(void)
{
    control.is_private = tmk_fd_leave_all_but(control.fd);
    return control.is_private;
}

void tmk_control_socket_close(void)
{
    if (control.owner != getpid() || control.fd < 0)
        return;
    unlink(control.path);
    if (is_socket(control.fd, control.inode)) {
        shutdown(control.fd, SHUT_RDWR); /* wakes the thread, which closes it */
        if (!control.is_served || control.is_private)
            close(control.fd);
    }
    control.fd = -1;
}

unsigned tmk_control_socket_n_threads(void)
{
    return atomic_load(&n_servers) + tmk_eval_n_threads();
}
