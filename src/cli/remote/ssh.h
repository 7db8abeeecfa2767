/* SPDX-License-Identifier: MIT */
/* cli/remote/ssh.h - the user's own ssh, started so that it runs tidemark on another machine.
 *
 *     struct tmk_ssh s;
 *     if ((status = tmk_ssh_init(&s, host, remote_path, TMK_SSH_ASKS)) == 0 &&
 *         (status = tmk_ssh_connect(&s, &reason)) == 0)
 *         ... tmk_ssh_start(), wait, tmk_ssh_status() ...
 *     tmk_ssh_fini(&s);
 *
 * The first command logs in and leaves a connection behind (ControlMaster), on a socket in the
 * user's private folder; for ten minutes after the last command further ones take it. ssh gets a
 * list of words, no shell of ours is between. TIDEMARK_SSH ("ssh -F FILE") names another program,
 * with options that come first and so win over ours. */
#ifndef TMK_CLI_REMOTE_SSH_H
#define TMK_CLI_REMOTE_SSH_H

#include <stdbool.h>
#include <sys/types.h>

#include "kit/arena.h"

/* The command of the other side (remote_end.h). */
#define TMK_REMOTE_END "remote-end"

enum { TMK_SSH_WORDS = 64, TMK_SSH_SOCKET_BYTES = 88 };

struct tmk_ssh {
    struct tmk_arena texts;
    const char *host; /* borrowed */
    const char *remote_path;
    bool is_batch;
    const char *words[TMK_SSH_WORDS]; /* up to and with the host */
    unsigned n_words;
    char socket[TMK_SSH_SOCKET_BYTES]; /* of the connection; "": it is not kept */
};

enum tmk_ssh_prompts {
    TMK_SSH_ASKS,  /* for a password or a new host, where there is a terminal */
    TMK_SSH_BATCH, /* never */
};

/* `remote_path` is --remote-path; NULL: $TIDEMARK_REMOTE, else tidemark on the PATH there. 0, or an
 * exit status after a message; fini in both cases. */
int tmk_ssh_init(struct tmk_ssh *s, const char *host, const char *remote_path,
                 enum tmk_ssh_prompts prompts);
void tmk_ssh_fini(struct tmk_ssh *s);

/* Log in, unless there is a connection. ^C ends ssh and us, as long as this takes. 0, or an exit
 * status with a sentence in *ret_reason, which is in `s->texts`; ssh has said more. */
int tmk_ssh_connect(struct tmk_ssh *s, const char **ret_reason);

/* Files for the program's stdin, stdout and stderr; it leaves ^C to us where `holds_signals`. */
struct tmk_ssh_files {
    int in, out, err;
    bool holds_signals;
};

/* Start `tidemark remote-end` there. Returns the PID of ssh, which is the caller's child; -1 after
 * a message. */
pid_t tmk_ssh_start(struct tmk_ssh *s, const struct tmk_ssh_files *files);

/* Returns the status of tidemark there, or why there is none: *ret_reason is a sentence in
 * `s->texts`, else NULL. */
int tmk_ssh_status(struct tmk_ssh *s, int wait_status, const char **ret_reason);

#endif
