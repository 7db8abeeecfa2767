/* SPDX-License-Identifier: MIT */
/* fleet/http_auth.h - basic authentication against bcrypt hashes, by crypt(3).
 *
 * A bcrypt hash takes 50 ms and more of a processor by design, so checks run one at a time on a
 * thread of their own, and their results are remembered: the scrape that comes every 15 seconds
 * costs a SHA-256. A name that is not known is checked against another user's hash, and refused, so
 * that the time does not tell which names there are.
 *
 *     switch (tmk_http_auth_ask(a, config, header)) {
 *     case TMK_AUTH_BUSY: ... ask again when tmk_http_auth_fd() is readable
 *
 * The remembered passwords are kept as keyed hashes only. */
#ifndef TMK_FLEET_HTTP_AUTH_H
#define TMK_FLEET_HTTP_AUTH_H

#include <stdbool.h>

#include "base/error.h"
#include "fleet/web_config.h"

enum tmk_auth { TMK_AUTH_REFUSED, TMK_AUTH_GRANTED, TMK_AUTH_BUSY };

struct tmk_http_auth;

int tmk_http_auth_open(struct tmk_http_auth **ret_auth, struct tmk_error *err);
struct tmk_http_auth *tmk_http_auth_close(struct tmk_http_auth *a); /* takes NULL */

/* Whether the value of an Authorization field is a user's name and password; `config` has users.
 * BUSY: that one, or another, is being checked. */
enum tmk_auth tmk_http_auth_ask(struct tmk_http_auth *a, const struct tmk_web_config *config,
                                const char *header);
/* Becomes readable when a check is done; tmk_http_auth_take() then notes the result. */
int tmk_http_auth_fd(const struct tmk_http_auth *a);
void tmk_http_auth_take(struct tmk_http_auth *a);

/* Decode "Basic BASE64" to the caller's buffers: the name up to the first ':', and the rest. False:
 * it is not that, or too long. */
enum { TMK_PASSWORD_BYTES = 73 }; /* bcrypt looks at 72 bytes */
bool tmk_http_basic_decode(const char *header, char name[TMK_WEB_NAME_BYTES],
                           char password[TMK_PASSWORD_BYTES]);

#endif
