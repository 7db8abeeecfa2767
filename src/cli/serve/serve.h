/* SPDX-License-Identifier: MIT */
/* cli/serve/serve.h - the page of a run, or of the machine, served to one browser: the loop of
 * `tidemark serve`. */
#ifndef TMK_CLI_SERVE_SERVE_H
#define TMK_CLI_SERVE_SERVE_H

struct tmk_serve_settings {
    const char *target;    /* a run or a PID; NULL: the processes of this machine */
    const char *rank;      /* NULL: the one with the largest peak */
    const char *listen;    /* HOST or HOST:PORT; NULL: 127.0.0.1 */
    const char *port;      /* NULL: any that is free, or the one of `listen` */
    const char *base_path; /* NULL: "/" */
    const char *host;      /* one more name in links; NULL: none */
};

/* Serve until SIGINT or SIGTERM. 0, or an exit status after a message. */
int tmk_serve_run(const struct tmk_serve_settings *settings);

#endif
