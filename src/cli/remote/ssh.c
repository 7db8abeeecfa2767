/* SPDX-License-Identifier: MIT */
/* cli/remote/ssh.c - see ssh.h.
 *
 * Logging in is a step of its own, with `true` as the command: while ssh may ask for a password, ^C
 * must act on it, and while tidemark runs there, ^C must reach that and not ssh. A socket that can
 * be connected to saves this step.
 *
 * The socket's name is made from the host and TIDEMARK_SSH as they were typed, not by ssh's %C: a
 * %C is too long for many folders, and only ssh could tell us what it is. */
#include "cli/remote/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/hash.h"
#include "cli/front/locate.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/private_folder.h"
#include "kit/language.h"

extern char **environ;

enum {
    SSH_FAILED = 255, /* ssh's own status: no connection */
    NOT_FOUND = 127,  /* of the shell there */
    NOT_A_PROGRAM = 126,
    TEMPORARY_BYTES = 18, /* ssh makes the socket under a longer name first */
    MOST_OWN_WORDS = 24,  /* of TIDEMARK_SSH and TIDEMARK_REMOTE */
};

/* Where tidemark is there when nobody says so. `./dev install` and pip put it into ~/.local/bin,
 * which is not on the PATH of commands over ssh on most systems. The login shell may be any: this
 * has no sign inside the quotes that csh or fish would read. */
static const char default_remote[] =
    "sh -c 'PATH=$PATH:$HOME/.local/bin; command -v tidemark >/dev/null || exit 127; "
    "exec tidemark " TMK_REMOTE_END "'";

/* ---- words ---- */

static void add_ssh_word(struct tmk_ssh *s, const char *word)
{
    if (s->n_words < TMK_SSH_WORDS - 2) /* the command and NULL come behind */
        s->words[s->n_words++] = word;
}

static void add_ssh_option(struct tmk_ssh *s, const char *name, const char *value)
{
    add_ssh_word(s, "-o");
    add_ssh_word(s, tmk_xarena_format(&s->texts, "%s=%s", name, value));
}

/* Split a setting at blanks. Returns how many words there are, at most `most`. */
static unsigned split_at_blanks(struct tmk_ssh *s, const char *text, const char **to, unsigned most)
{
    unsigned n = 0;
    for (text += strspn(text, " \t"); *text && n < most; text += strspn(text, " \t")) {
        size_t length = strcspn(text, " \t");
        to[n++] = tmk_xarena_text(&s->texts, text, length);
        text += length;
    }
    return n;
}

/* Add the user's ssh with its options. False after a message. */
static bool add_program(struct tmk_ssh *s)
{
    const char *own = getenv("TIDEMARK_SSH"), *words[MOST_OWN_WORDS];
    unsigned n = split_at_blanks(s, own ? own : "", words, MOST_OWN_WORDS);
    if (n == 0)
        words[n++] = "ssh";
    char *path = tmk_locate_on_path(words[0]);
    bool is_there = path && access(path, X_OK) == 0;
    free(path);
    for (unsigned i = 0; is_there && i < n; i++)
        add_ssh_word(s, words[i]);
    if (!is_there)
        tmk_say("%s is reached over ssh, and there is no program %s here: install OpenSSH's client "
                "(openssh-client), or name one: TIDEMARK_SSH=\"ssh -F FILE\"",
                s->host, words[0]);
    return is_there;
}

/* ---- the connection that is kept ---- */

static bool is_plain_path(const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
    return path[strspn(path, plain)] == '\0';
}

/* Choose the path of the socket. It stays "" where there is no folder for it. */
static void choose_socket(struct tmk_ssh *s)
{
    char folder[TMK_SSH_SOCKET_BYTES - sizeof "/tidemark-ssh." - 16];
    const char *own = getenv("TIDEMARK_SSH");
    _Static_assert(TMK_SSH_SOCKET_BYTES + TEMPORARY_BYTES <=
                       sizeof((struct sockaddr_un){0}.sun_path),
                   "ssh could not make the socket");
    int fd = tmk_private_folder_open(folder, sizeof folder);
    if (fd < 0)
        return;
    close(fd);
    uint64_t name = tmk_hash_mix(tmk_hash_bytes(s->host, strlen(s->host)),
                                 own ? tmk_hash_bytes(own, strlen(own)) : 0);
    if (is_plain_path(folder)) /* ssh would expand % and split at blanks */
        snprintf(s->socket, sizeof s->socket, "%s/tidemark-ssh.%016" PRIx64, folder, name);
}

/* Returns whether somebody listens on the socket: an ssh that is logged in. */
static bool is_connected(const struct tmk_ssh *s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!s->socket[0])
        return false;
    memcpy(address.sun_path, s->socket, strlen(s->socket) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool good = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* ---- init, start ---- */

int tmk_ssh_init(struct tmk_ssh *s, const char *host, const char *remote_path,
                 enum tmk_ssh_prompts prompts)
{
    static const char *const options[][2] = {
        {"ConnectTimeout", "10"},     {"ServerAliveInterval", "15"},  {"ServerAliveCountMax", "3"},
        {"RemoteCommand", "none"},    {"ClearAllForwardings", "yes"}, {"ForwardAgent", "no"},
        {"PermitLocalCommand", "no"},
    };
    const char *own = getenv("TIDEMARK_REMOTE");
    *s = (struct tmk_ssh){.host = host, .remote_path = remote_path};
    signal(SIGCHLD, SIG_DFL); /* whoever started us may ignore it; then there would be no status */
    if (!remote_path && own && *own)
        s->remote_path = own;
    if (!add_program(s))
        return TMK_EXIT_FINDING;
    add_ssh_word(s, "-T");
    add_ssh_word(s, "-x");
    for (size_t i = 0; i < TMK_N(options); i++)
        add_ssh_option(s, options[i][0], options[i][1]);
    choose_socket(s);
    if (s->socket[0]) {
        add_ssh_option(s, "ControlPath", s->socket);
        add_ssh_option(s, "ControlMaster", "auto");
        add_ssh_option(s, "ControlPersist", "600");
    }
    s->is_batch = prompts == TMK_SSH_BATCH || !has_terminal();
    if (s->is_batch)
        add_ssh_option(s, "BatchMode", "yes");
    add_ssh_word(s, "--"); /* whatever follows is no option */
    add_ssh_word(s, host);
    return 0;
}

void tmk_ssh_fini(struct tmk_ssh *s)
{
    tmk_arena_fini(&s->texts);
}

/* Write the command for the login shell there: the words of --remote-path, each quoted; ~/ is the
 * shell's own. */
static const char *command_there(struct tmk_ssh *s)
{
    const char *words[MOST_OWN_WORDS], *command = "";
    unsigned n = split_at_blanks(s, s->remote_path ? s->remote_path : "", words, MOST_OWN_WORDS);
    if (n == 0)
        return default_remote;
    for (unsigned i = 0; i < n; i++) {
        bool is_home = strncmp(words[i], "~/", 2) == 0;
        command = tmk_xarena_format(&s->texts, "%s%s%s ", command, is_home ? "~/" : "",
                                    tmk_xshell_word(&s->texts, words[i] + (is_home ? 2 : 0)));
    }
    return tmk_xarena_format(&s->texts, "%s" TMK_REMOTE_END, command);
}

/* Start ssh with `command`. Returns its PID, -1 after a message. */
static pid_t spawn_ssh(const struct tmk_ssh *s, const char *command,
                       const struct tmk_ssh_files *files)
{
    char *words[TMK_SSH_WORDS + 1];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    sigset_t mask;
    pid_t pid = -1;
    for (unsigned i = 0; i < s->n_words; i++)
        words[i] = (char *)(uintptr_t)s->words[i]; /* spawn only reads them */
    words[s->n_words] = (char *)(uintptr_t)command;
    words[s->n_words + 1] = NULL;
    sigemptyset(&mask);
    if (files->holds_signals) {
        sigaddset(&mask, SIGINT);
        sigaddset(&mask, SIGQUIT);
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, files->in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, files->out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, files->err, STDERR_FILENO);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigmask(&how, &mask);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    int reason = posix_spawnp(&pid, words[0], &actions, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&actions);
    if (reason == 0)
        return pid;
    tmk_say("cannot start %s: %s", words[0], strerror(reason));
    return -1;
}

pid_t tmk_ssh_start(struct tmk_ssh *s, const struct tmk_ssh_files *files)
{
    return spawn_ssh(s, command_there(s), files);
}

/* ---- what came of it ---- */

static const char *sentence_of(struct tmk_ssh *s, int code)
{
    const char *name = s->remote_path ? s->remote_path : "tidemark";
    if (code == SSH_FAILED)
        return tmk_xarena_format(&s->texts, _("%s cannot be reached over ssh%s; try: ssh %s true"),
                                 s->host, s->is_batch ? _(", without asking for a password") : "",
                                 s->host);
    if (code == NOT_FOUND && s->remote_path)
        return tmk_xarena_format(
            &s->texts, _("%s has no program %s (--remote-path, TIDEMARK_REMOTE)"), s->host, name);
    if (code == NOT_FOUND)
        return tmk_xarena_format(&s->texts,
                                 _("%s has no tidemark on the PATH of ssh, nor in ~/.local/bin: "
                                   "install it there (docs/install.md), or say where it is: "
                                   "--remote-path /PATH/tidemark"),
                                 s->host);
    return tmk_xarena_format(&s->texts, _("%s on %s cannot be run"), name, s->host);
}

int tmk_ssh_status(struct tmk_ssh *s, int wait_status, const char **ret_reason)
{
    *ret_reason = NULL;
    if (WIFSIGNALED(wait_status)) {
        *ret_reason = tmk_xarena_format(&s->texts, _("%s: ssh was ended by signal %d"), s->host,
                                        WTERMSIG(wait_status));
        return TMK_EXIT_FINDING;
    }
    int code = WEXITSTATUS(wait_status);
    if (code != SSH_FAILED && code != NOT_FOUND && code != NOT_A_PROGRAM)
        return code;
    *ret_reason = sentence_of(s, code);
    return TMK_EXIT_FINDING;
}

int tmk_ssh_connect(struct tmk_ssh *s, const char **ret_reason)
{
    if (is_connected(s))
        return 0;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), status;
    const struct tmk_ssh_files files = {.in = nothing, .out = nothing, .err = STDERR_FILENO};
    pid_t pid = nothing < 0 ? -1 : spawn_ssh(s, "true", &files);
    if (nothing >= 0)
        close(nothing);
    pid_t ended = -1;
    while (pid > 0 && (ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    if (ended > 0 && !WIFSIGNALED(status) && WEXITSTATUS(status) != SSH_FAILED)
        return 0;
    *ret_reason = sentence_of(s, SSH_FAILED);
    return TMK_EXIT_FINDING;
}
