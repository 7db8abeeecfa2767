/* SPDX-License-Identifier: MIT */
/* fleet/web_config.h - TLS and passwords of a listener, configured by the file that Prometheus and
 * its exporters call web-config:
 *
 *     tls_server_config:
 *       cert_file: server.crt             # relative to this file
 *       key_file: server.key
 *       client_auth_type: RequireAndVerifyClientCert
 *       client_ca_file: ca.crt
 *       min_version: TLS12
 *     basic_auth_users:
 *       prometheus: $2y$10$...            # bcrypt, as `htpasswd -nBC 10 ""` makes it
 *
 * It is YAML, of which this reads what such files use: mappings two levels deep, plain and quoted
 * scalars, comments. A key that is not known, or that this server cannot honour, is an error with
 * its line: a listener that is less guarded than its file says would be worse than none. */
#ifndef TMK_FLEET_WEB_CONFIG_H
#define TMK_FLEET_WEB_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
    TMK_WEB_USERS_MOST = 64,
    TMK_WEB_NAME_BYTES = 65,
    TMK_WEB_HASH_BYTES = 61, /* of bcrypt */
    TMK_WEB_PATH_BYTES = 1024,
    TMK_WEB_CONFIG_MOST = 1 << 16,
};

enum tmk_client_auth {
    TMK_CLIENT_AUTH_NONE,
    TMK_CLIENT_AUTH_REQUEST,
    TMK_CLIENT_AUTH_REQUIRE_ANY,
    TMK_CLIENT_AUTH_VERIFY_IF_GIVEN,
    TMK_CLIENT_AUTH_REQUIRE,
};

struct tmk_web_user {
    char name[TMK_WEB_NAME_BYTES], hash[TMK_WEB_HASH_BYTES];
};

struct tmk_web_config {
    bool has_tls;
    char cert_file[TMK_WEB_PATH_BYTES], key_file[TMK_WEB_PATH_BYTES];
    char client_ca_file[TMK_WEB_PATH_BYTES]; /* "": none */
    enum tmk_client_auth client_auth;
    int min_version, max_version; /* 10 ... 13: of TLS; 0: the library's */
    unsigned n_users;
    struct tmk_web_user users[TMK_WEB_USERS_MOST];
};

/* Parse a text of `n` bytes; `folder` goes before relative paths. 0, or TMK_EINVAL with the line
 * and what is wrong with it; *ret is untouched then. */
int tmk_web_config_parse(const char *text, size_t n, const char *folder, struct tmk_web_config *ret,
                         struct tmk_error *err);
/* The same for a file; TMK_EIO: it cannot be read. */
int tmk_web_config_read(const char *path, struct tmk_web_config *ret, struct tmk_error *err);

#endif
