/* SPDX-License-Identifier: MIT */
/* test_web_config.c - what a web-config file may say, and that what is not understood is refused
 * with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "fleet/http_auth.h"
#include "fleet/web_config.h"

#define HASH "$2y$04$j1Su6h/VXpt53m4s1HL7Wua4uECFip/PPykMfXDFiqVETJJPX1UV2" /* of "secret" */

static int parse(const char *text, struct tmk_web_config *ret, struct tmk_error *err)
{
    *err = (struct tmk_error){0};
    return tmk_web_config_parse(text, strlen(text), "/etc/tidemark", ret, err);
}

static struct tmk_web_config parse_good(const char *text)
{
    struct tmk_web_config config;
    struct tmk_error err;
    memset(&config, 0xee, sizeof config);
    if (parse(text, &config, &err) < 0)
        fail_msg("%s", err.text);
    return config;
}

static void test_whole(void **state)
{
    (void)state;
    struct tmk_web_config c = parse_good("---\n"
                                         "# for Prometheus\n"
                                         "tls_server_config:\n"
                                         "  cert_file: server.crt   # relative\n"
                                         "  key_file: '/secret/it''s.key'\n"
                                         "\n"
                                         "  client_auth_type: \"RequireAndVerifyClientCert\"\r\n"
                                         "  client_ca_file: ca#1.crt\n"
                                         "  min_version: TLS12\n"
                                         "  max_version: TLS13\n"
                                         "  prefer_server_cipher_suites: true\n"
                                         "http_server_config:\n"
                                         "    http2: false\n"
                                         "basic_auth_users:\n"
                                         "  prometheus: " HASH "\n"
                                         "  \"a b\" : '" HASH "'");
    assert_true(c.has_tls);
    assert_string_equal(c.cert_file, "/etc/tidemark/server.crt");
    assert_string_equal(c.key_file, "/secret/it's.key");
    assert_string_equal(c.client_ca_file, "/etc/tidemark/ca#1.crt");
    assert_int_equal(c.client_auth, TMK_CLIENT_AUTH_REQUIRE);
    assert_int_equal(c.min_version, 12);
    assert_int_equal(c.max_version, 13);
    assert_int_equal(c.n_users, 2);
    assert_string_equal(c.users[0].name, "prometheus");
    assert_string_equal(c.users[1].name, "a b");
    assert_string_equal(c.users[1].hash, HASH);
}

static void test_empty(void **state)
{
    (void)state;
    struct tmk_web_config c = parse_good("# nothing\n\n");
    assert_false(c.has_tls);
    assert_int_equal(c.n_users, 0);
    c = parse_good("basic_auth_users:\n");
    assert_int_equal(c.n_users, 0);
}

/* A guard that is not understood is never passed over. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"tls_server_config:\n  cert_file: a\n", "tls_server_config needs cert_file and key_file"},
        {"basic_auth_user:\n",
         "line 1: tls_server_config, http_server_config and basic_auth_users are understood, not "
         "basic_auth_user"},
        {"tls_server_config:\n  cipher_suites: x\n",
         "line 2: this is not supported: cipher_suites"},
        {"tls_server_config:\n  cert_file: a\n  cert_file: b\n",
         "line 3: this is there twice: cert_file"},
        {"basic_auth_users:\nbasic_auth_users:\n", "line 2: this is there twice: basic_auth_users"},
        {"basic_auth_users:\n  a: secret\n",
         "line 2: not a bcrypt hash ($2y$10$..., from htpasswd -nBC 10 \"\"): of user a"},
        {"basic_auth_users:\n  a: " HASH "\n  a: " HASH "\n", "line 3: there is already a user a"},
        {"basic_auth_users:\n  a: " HASH "\n   b: " HASH "\n",
         "line 3: this is indented differently from the lines above: b"},
        {"basic_auth_users:\n\ta: x\n", "line 2: YAML is indented with blanks, not tabs"},
        {"basic_auth_users:\n  - a\n", "line 2: a list is not expected here"},
        {"basic_auth_users: {}\n", "line 1: the value is not understood: a plain or quoted text "
                                   "is, of basic_auth_users"},
        {"basic_auth_users:\n  a: |\n", "line 2: the value is not understood: a plain or quoted "
                                        "text is, of a"},
        {"basic_auth_users:\n  a: 'x\n", "line 2: the value is not understood: a plain or quoted "
                                         "text is, of a"},
        {"basic_auth_users:\n  a:\n", "line 2: there is no value for a"},
        {"  a: b\n", "line 1: this is indented, and nothing is above it: a"},
        {"word\n", "line 1: there is no ':' after word"},
        {"tls_server_config:\n  client_auth_type: Sometimes\n",
         "line 2: no such client_auth_type: Sometimes"},
        {"tls_server_config:\n  min_version: SSL3\n",
         "line 2: no such version of TLS (TLS12, TLS13): SSL3"},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: "
         "RequireAndVerifyClientCert\n",
         "this client_auth_type needs client_ca_file"},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  client_ca_file: c\n",
         "client_ca_file needs a client_auth_type that verifies, such as "
         "RequireAndVerifyClientCert"},
        {"tls_server_config:\n  cert_file: a\n  key_file: b\n  min_version: TLS13\n  max_version: "
         "TLS12\n",
         "max_version is below min_version"},
        {"http_server_config:\n  http2: maybe\n", "line 2: neither true nor false: maybe"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tmk_web_config config = {.n_users = 77};
        struct tmk_error err;
        assert_int_equal(parse(cases[i].text, &config, &err), TMK_EINVAL);
        assert_string_equal(err.text, cases[i].reason);
        assert_int_equal(config.n_users, 77);
    }
}

/* ---- the header with a password ---- */

static void test_basic(void **state)
{
    (void)state;
    static const struct {
        const char *header, *name, *password; /* name NULL: refused */
    } cases[] = {
        {"Basic cHJvbTpzZWNyZXQ=", "prom", "secret"},
        {"basic  cHJvbTpzZWNyZXQ", "prom", "secret"},
        {"Basic cHJvbTpwOnc=", "prom", "p:w"},
        {"Basic cHJvbTo=", "prom", ""},
        {"Basic Og==", "", ""},
        {"Basic cHJvbQ==", NULL, NULL},   /* no colon */
        {"Basic cHJvbTpz\"", NULL, NULL}, /* no base64 */
        {"Basic YTpiAGM=", NULL, NULL},   /* a zero byte */
        {"Basic A", NULL, NULL},          /* six bits */
        {"Bearer cHJvbTpzZWNyZXQ=", NULL, NULL},
        {"", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[TMK_WEB_NAME_BYTES], password[TMK_PASSWORD_BYTES];
        bool good = tmk_http_basic_decode(cases[i].header, name, password);
        assert_int_equal(good, cases[i].name != NULL);
        if (!good)
            continue;
        assert_string_equal(name, cases[i].name);
        assert_string_equal(password, cases[i].password);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_basic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
