/* SPDX-License-Identifier: MIT */
/* web/gate.h - who may ask a server that serves one person.
 *
 * The link that is printed has a random token of 128 bits. Opening it sets a cookie with another
 * secret, which scripts cannot read and other sites cannot send (HttpOnly, SameSite=Strict); all
 * further requests need the cookie. Names of hosts are refused unless they are known, so that a
 * name of another site that leads to this machine (DNS rebinding) leads nowhere. Secrets are
 * compared in constant time. */
#ifndef TMK_WEB_GATE_H
#define TMK_WEB_GATE_H

#include <stdbool.h>

#include "fleet/http_request.h"

enum { TMK_GATE_SECRET_BYTES = 33, TMK_GATE_BASE_BYTES = 128, TMK_GATE_FIELDS_BYTES = 512 };

struct tmk_page_gate {
    char token[TMK_GATE_SECRET_BYTES], cookie[TMK_GATE_SECRET_BYTES];
    char base_path[TMK_GATE_BASE_BYTES]; /* "/" or "/user/me/proxy/8000/" */
    const char *host;                    /* one more name that is allowed; NULL: none */
    unsigned port;                       /* names the cookie: ports share their cookies */
};

/* Make the secrets. `base_path` may be NULL. False: it is not a path, or no random numbers. */
bool tmk_gate_init(struct tmk_page_gate *g, const char *base_path, const char *host);

enum tmk_gate_result {
    TMK_GATE_GRANTED,
    TMK_GATE_ENTERED,    /* with the token: set the cookie and lead to the page */
    TMK_GATE_FORBIDDEN,  /* neither token nor cookie */
    TMK_GATE_WRONG_HOST, /* a name that is not this machine's */
};

enum tmk_gate_result tmk_gate_check(const struct tmk_page_gate *g,
                                    const struct tmk_http_request *r);
/* The fields of the answer to one that has entered, in the caller's buffer. */
const char *tmk_gate_entry_fields(const struct tmk_page_gate *g,
                                  char buffer[TMK_GATE_FIELDS_BYTES]);
/* The path without the base path, which a proxy may have taken off; begins with '/'. */
const char *tmk_gate_path(const struct tmk_page_gate *g, const char *path);

#endif
