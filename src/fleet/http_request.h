/* SPDX-License-Identifier: MIT */
/* fleet/http_request.h - the head of an HTTP/1.1 request, parsed strictly.
 *
 * An agent answers GET and HEAD without a body, so anything else about a request is an error with
 * its status. A page's server answers GET, and POST with a body of a known length. Why not evhttp:
 * libevent 2.1's has no deadline for a whole request, so a client that sends a byte now and then
 * keeps its connection for ever. */
#ifndef TMK_FLEET_HTTP_REQUEST_H
#define TMK_FLEET_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TMK_HTTP_HEAD_MOST = 8192,
    TMK_HTTP_PATH_BYTES = 256,
    TMK_HTTP_QUERY_BYTES = 512,
    TMK_HTTP_VALUE_BYTES = 1024
};

struct tmk_http_request {
    bool is_head, is_post;
    bool keeps_alive;
    char path[TMK_HTTP_PATH_BYTES];   /* without the query */
    char query[TMK_HTTP_QUERY_BYTES]; /* behind the '?'; only where POST is taken */
    char host[TMK_HTTP_PATH_BYTES];
    char cookie[TMK_HTTP_VALUE_BYTES]; /* several fields as one list */
    char content_type[TMK_HTTP_PATH_BYTES];
    char accept[TMK_HTTP_VALUE_BYTES];
    char authorization[TMK_HTTP_VALUE_BYTES]; /* "": none */
    size_t n_body;                            /* the body follows the head */
    const char *body;                         /* the server's; borrowed while it is answered */
};

/* Parse the `n` bytes that have come. Returns 0: the head is not complete yet; 200: it is, and
 * *ret_used says how long it was; else the status of the error to answer. */
int tmk_http_request_parse(const char *bytes, size_t n, struct tmk_http_request *ret,
                           size_t *ret_used);
/* The same for GET and POST, not HEAD; the body may have `body_most` bytes. */
int tmk_http_request_parse_post(const char *bytes, size_t n, size_t body_most,
                                struct tmk_http_request *ret, size_t *ret_used);

/* The text of a status: "Not Found". */
const char *tmk_http_status_text(int status);

#endif
