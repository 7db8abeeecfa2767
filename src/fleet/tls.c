/* SPDX-License-Identifier: MIT */
/* fleet/tls.c - see tls.h. */
#include "fleet/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* Say what OpenSSL did not like, and forget its list of errors. */
static int fail_tls(struct tmk_error *err, const char *what, const char *file)
{
    unsigned long first = ERR_peek_error();
    const char *reason = ERR_reason_error_string(first);
    ERR_clear_error();
    if (ERR_SYSTEM_ERROR(first))
        return tmk_fail_os(err, TMK_EINVAL, ERR_GET_REASON(first), "%s %s", what, file);
    return tmk_fail(err, TMK_EINVAL, "%s %s: %s", what, file,
                    reason ? reason : "it cannot be read");
}

static int version_number(int version)
{
    static const int numbers[] = {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};
    return numbers[version - 10];
}

static int verify_mode(enum tmk_client_auth auth)
{
    switch (auth) {
    case TMK_CLIENT_AUTH_NONE:
        return SSL_VERIFY_NONE;
    case TMK_CLIENT_AUTH_REQUEST:
    case TMK_CLIENT_AUTH_VERIFY_IF_GIVEN:
        return SSL_VERIFY_PEER;
    default:
        return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    }
}

/* For the types that ask for a certificate and do not look at it. */
static int accept_any(int is_good, X509_STORE_CTX *store)
{
    (void)is_good;
    (void)store;
    return 1;
}

static int set_tls_client_auth(SSL_CTX *context, const struct tmk_web_config *config,
                               struct tmk_error *err)
{
    bool verifies = config->client_auth >= TMK_CLIENT_AUTH_VERIFY_IF_GIVEN;
    SSL_CTX_set_verify(context, verify_mode(config->client_auth),
                       config->client_auth != TMK_CLIENT_AUTH_NONE && !verifies ? accept_any
                                                                                : NULL);
    if (!verifies)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(config->client_ca_file);
    if (!names || SSL_CTX_load_verify_file(context, config->client_ca_file) != 1)
        return fail_tls(err, "client_ca_file", config->client_ca_file);
    SSL_CTX_set_client_CA_list(context, names);
    return 0;
}

static int fill_server(SSL_CTX *context, const struct tmk_web_config *config, struct tmk_error *err)
{
    SSL_CTX_set_min_proto_version(context, config->min_version ? version_number(config->min_version)
                                                               : TLS1_2_VERSION);
    if (config->max_version)
        SSL_CTX_set_max_proto_version(context, version_number(config->max_version));
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (SSL_CTX_use_certificate_chain_file(context, config->cert_file) != 1)
        return fail_tls(err, "cert_file", config->cert_file);
    if (SSL_CTX_use_PrivateKey_file(context, config->key_file, SSL_FILETYPE_PEM) != 1)
        return fail_tls(err, "key_file", config->key_file);
    if (SSL_CTX_check_private_key(context) != 1)
        return fail_tls(err, "key_file", config->key_file);
    return set_tls_client_auth(context, config, err);
}

int tmk_tls_server(const struct tmk_web_config *config, SSL_CTX **ret_context,
                   struct tmk_error *err)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    int rc = context ? fill_server(context, config, err) : tmk_fail(err, TMK_ENOMEM, "no memory");
    if (rc < 0) {
        SSL_CTX_free(context);
        return rc;
    }
    *ret_context = context;
    return 0;
}

int tmk_tls_client(const char *ca_file, SSL_CTX **ret_context, struct tmk_error *err)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context)
        return tmk_fail(err, TMK_ENOMEM, "no memory");
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    int good = ca_file ? SSL_CTX_load_verify_file(context, ca_file)
                       : SSL_CTX_set_default_verify_paths(context);
    if (good != 1) {
        SSL_CTX_free(context);
        return fail_tls(err, "authorities", ca_file ? ca_file : "of the system");
    }
    *ret_context = context;
    return 0;
}
