/* SPDX-License-Identifier: MIT */
/* fleet/tls.h - OpenSSL contexts: of a listener, from its web-config, and of a client. */
#ifndef TMK_FLEET_TLS_H
#define TMK_FLEET_TLS_H

#include <openssl/types.h>

#include "base/error.h"
#include "fleet/web_config.h"

/* Make the context of a listener. 0, or TMK_EINVAL with the file that is wrong and why. */
int tmk_tls_server(const struct tmk_web_config *config, SSL_CTX **ret_context,
                   struct tmk_error *err);
/* Make the context of a client that verifies the server's certificate: by the authorities of the
 * file, or with NULL by the system's. */
int tmk_tls_client(const char *ca_file, SSL_CTX **ret_context, struct tmk_error *err);

#endif
