/* SPDX-License-Identifier: MIT */
/* fleet/http_request.h - the head of an HTTP/1.1 request, parsed strictly.
 *
 * An agent answers GET and HEAD without a body, so anything else about a request is an error with
 * its status. Why not evhttp: libevent 2.1's has no deadline for a whole request, so a client that
 * sends a byte now and then keeps its connection for ever. */
#ifndef TMK_FLEET_HTTP_REQUEST_H
#define TMK_FLEET_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { TMK_HTTP_HEAD_MOST = 8192, TMK_HTTP_PATH_BYTES = 256, TMK_HTTP_VALUE_BYTES = 1024 };

struct tmk_http_request {
    bool is_head;
    bool keeps_alive;
    char path[TMK_HTTP_PATH_BYTES]; /* without the query */
    char accept[TMK_HTTP_VALUE_BYTES];
    char authorization[TMK_HTTP_VALUE_BYTES]; /* "": none */
};

/* Parse the `n` bytes that have come. Returns 0: the head is not complete yet; 200: it is, and
 * *ret_used says how long it was; else the status of the error to answer. */
int tmk_http_request_parse(const char *bytes, size_t n, struct tmk_http_request *ret,
                           size_t *ret_used);

/* The text of a status: "Not Found". */
const char *tmk_http_status_text(int status);

#endif
