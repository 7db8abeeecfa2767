/* SPDX-License-Identifier: MIT */
/* cli/remote/hosts.h - one command on several machines at once, over ssh.
 *
 * At most eight are asked at a time, each for at most half a minute: a machine that is down holds
 * nobody up. Several machines are never asked for passwords, which nobody could tell apart; one is,
 * on a terminal. */
#ifndef TMK_CLI_REMOTE_HOSTS_H
#define TMK_CLI_REMOTE_HOSTS_H

#include <stddef.h>

struct tmk_host_answer {
    const char *host; /* as ssh takes it */
    int status;       /* exit status there; negative: there is none */
    char *out, *said; /* its stdout and stderr, with a zero byte behind; NULL: not known */
    size_t n_out;
    char *reason; /* a sentence, when there is no status, or another than 0 */
};

/* Ask all. `words` are the command and its arguments, for tidemark there; NULL ends them. The
 * answers come with their hosts filled in, and nothing else. 0, or an exit status after a message.
 * Fini them in both cases. */
int tmk_hosts_ask(struct tmk_host_answer *answers, size_t n, const char *remote_path,
                  const char **words);
void tmk_hosts_fini(struct tmk_host_answer *answers, size_t n);

#endif
