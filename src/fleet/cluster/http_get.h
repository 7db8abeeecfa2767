/* SPDX-License-Identifier: MIT */
/* fleet/cluster/http_get.h - ask a server with GET and wait for the whole answer, with bounds on
 * both.
 *
 *     struct tmk_http_get *h;
 *     rc = tmk_http_get_open(&settings, &h, &err);         // resolves the name and tries to
 * connect rc = tmk_http_get(h, "/api/v1/query?query=up", &answer, &err);
 *     ... answer.status, answer.body, answer.n ...
 *     tmk_http_get_answer_fini(&answer);
 *     h = tmk_http_get_close(h);
 *
 * A redirect is an answer, and not followed: it would take the password elsewhere. */
#ifndef TMK_FLEET_CLUSTER_HTTP_GET_H
#define TMK_FLEET_CLUSTER_HTTP_GET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tmk_http_get_settings {
    const char *url;             /* "https://HOST:PORT/PATH" */
    const char *ca_file;         /* authorities for https; NULL: the system's */
    const char *user, *password; /* basic authentication; NULL: none */
    const char *token;           /* of a bearer; NULL: none */
    const char *headers;         /* "key=value,key=value"; NULL: none */
    double timeout_s;            /* for a whole answer */
    size_t body_most;            /* bytes of an answer */
};

struct tmk_http_get_answer {
    int status;
    char location[256]; /* where it redirects to, cut; "" */
    const char *body;   /* contiguous, without a zero byte at its end */
    size_t n;
    void *owner;
};

struct tmk_http_get;

/* 0; TMK_EINVAL with what is wrong with the settings. Texts of `settings` are copied. */
int tmk_http_get_open(const struct tmk_http_get_settings *settings, struct tmk_http_get **ret,
                      struct tmk_error *err);
struct tmk_http_get *tmk_http_get_close(struct tmk_http_get *h); /* takes NULL */

/* Ask for `what`, which comes behind the URL's path. 0 and the answer, whatever its status; TMK_EIO
 * with a sentence that says why there is none, such as "connection refused". */
int tmk_http_get(struct tmk_http_get *h, const char *what, struct tmk_http_get_answer *ret,
                 struct tmk_error *err);
void tmk_http_get_answer_fini(struct tmk_http_get_answer *answer);

#endif
