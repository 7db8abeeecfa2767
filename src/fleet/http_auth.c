/* SPDX-License-Identifier: MIT */
/* fleet/http_auth.c - see http_auth.h. */
#include "fleet/http_auth.h"

#include <crypt.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kit/errand.h"

enum { REMEMBERED = 64, SECRET_BYTES = 32 };

struct auth_result {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    bool is_known, is_granted;
};

struct tmk_http_auth {
    int fd;
    unsigned char secret[SECRET_BYTES];
    struct auth_result results[REMEMBERED];
    unsigned next;
    struct tmk_errand errand;
    /* Of the check: they belong to the errand while that runs. */
    char hash[TMK_WEB_HASH_BYTES], password[TMK_PASSWORD_BYTES];
    unsigned char digest[SHA256_DIGEST_LENGTH];
    bool is_nobody, is_granted;
};

int tmk_http_auth_open(struct tmk_http_auth **ret_auth, struct tmk_error *err)
{
    struct tmk_http_auth *a = calloc(1, sizeof *a);
    if (!a)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    a->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (a->fd < 0 || RAND_bytes(a->secret, sizeof a->secret) != 1) {
        int reason = errno;
        tmk_http_auth_close(a);
        return tmk_fail_os(err, TMK_EIO, reason, "cannot prepare authentication");
    }
    a->errand.fd = a->fd;
    *ret_auth = a;
    return 0;
}

/* A check that still runs keeps its memory. */
struct tmk_http_auth *tmk_http_auth_close(struct tmk_http_auth *a)
{
    if (!a || !tmk_errand_is_idle(&a->errand))
        return NULL;
    close(a->fd);
    OPENSSL_cleanse(a, sizeof *a);
    free(a);
    return NULL;
}

int tmk_http_auth_fd(const struct tmk_http_auth *a)
{
    return a->fd;
}

/* ---- decoding ---- */

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Returns the number of bytes, or -1. */
static int decode_base64(const char *text, size_t n, char *to, size_t room)
{
    size_t n_bytes = 0;
    while (n > 0 && text[n - 1] == '=')
        n--;
    if (n % 4 == 1)
        return -1;
    uint32_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = base64_digit(text[i]);
        if (digit < 0)
            return -1;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 0)
            continue;
        if (n_bytes == room)
            return -1;
        to[n_bytes++] = (char)(bits >> (2 * (3 - i % 4)));
    }
    return (int)n_bytes;
}

bool tmk_http_basic_decode(const char *header, char name[TMK_WEB_NAME_BYTES],
                           char password[TMK_PASSWORD_BYTES])
{
    char text[TMK_WEB_NAME_BYTES + TMK_PASSWORD_BYTES];
    if (strncasecmp(header, "Basic ", 6) != 0)
        return false;
    header += 6;
    header += strspn(header, " ");
    int n = decode_base64(header, strlen(header), text, sizeof text);
    const char *colon = n > 0 ? memchr(text, ':', (size_t)n) : NULL;
    if (!colon || memchr(text, '\0', (size_t)n))
        return false;
    size_t n_name = (size_t)(colon - text), n_password = (size_t)n - n_name - 1;
    if (n_name >= TMK_WEB_NAME_BYTES || n_password >= TMK_PASSWORD_BYTES)
        return false;
    memcpy(name, text, n_name);
    name[n_name] = '\0';
    memcpy(password, colon + 1, n_password);
    password[n_password] = '\0';
    OPENSSL_cleanse(text, sizeof text);
    return true;
}

/* ---- checking ---- */

static void check_password(void *arg)
{
    struct tmk_http_auth *a = arg;
    struct crypt_data *data = calloc(1, sizeof *data);
    const char *found = data ? crypt_r(a->password, a->hash, data) : NULL;
    a->is_granted = found && strlen(found) == strlen(a->hash) &&
                    CRYPTO_memcmp(found, a->hash, strlen(a->hash)) == 0 && !a->is_nobody;
    if (data)
        OPENSSL_cleanse(data, sizeof *data);
    free(data);
    OPENSSL_cleanse(a->password, sizeof a->password);
}

static void digest_of(const struct tmk_http_auth *a, const char *name, const char *password,
                      const char *hash, unsigned char *ret)
{
    char all[SECRET_BYTES + TMK_WEB_NAME_BYTES + TMK_PASSWORD_BYTES + TMK_WEB_HASH_BYTES] = {0};
    memcpy(all, a->secret, SECRET_BYTES);
    strcpy(all + SECRET_BYTES, name);
    strcpy(all + SECRET_BYTES + TMK_WEB_NAME_BYTES, password);
    strcpy(all + SECRET_BYTES + TMK_WEB_NAME_BYTES + TMK_PASSWORD_BYTES, hash);
    SHA256((const unsigned char *)all, sizeof all, ret);
    OPENSSL_cleanse(all, sizeof all);
}

static const struct auth_result *find_result(const struct tmk_http_auth *a,
                                             const unsigned char *digest)
{
    for (unsigned i = 0; i < REMEMBERED; i++)
        if (a->results[i].is_known &&
            CRYPTO_memcmp(a->results[i].digest, digest, SHA256_DIGEST_LENGTH) == 0)
            return &a->results[i];
    return NULL;
}

enum tmk_auth tmk_http_auth_ask(struct tmk_http_auth *a, const struct tmk_web_config *config,
                                const char *header)
{
    char name[TMK_WEB_NAME_BYTES], password[TMK_PASSWORD_BYTES];
    unsigned char digest[SHA256_DIGEST_LENGTH];
    const char *hash = NULL;
    if (!tmk_http_basic_decode(header, name, password))
        return TMK_AUTH_REFUSED;
    for (unsigned i = 0; i < config->n_users; i++)
        if (strcmp(config->users[i].name, name) == 0)
            hash = config->users[i].hash;
    bool is_nobody = hash == NULL;
    hash = is_nobody ? config->users[0].hash : hash;
    digest_of(a, name, password, hash, digest);
    const struct auth_result *known = find_result(a, digest);
    if (!known && tmk_errand_is_idle(&a->errand)) {
        strcpy(a->hash, hash);
        strcpy(a->password, password);
        memcpy(a->digest, digest, sizeof digest);
        a->is_nobody = is_nobody;
        tmk_errand_begin(&a->errand, check_password, a);
    }
    OPENSSL_cleanse(password, sizeof password);
    if (!known)
        return TMK_AUTH_BUSY;
    return known->is_granted ? TMK_AUTH_GRANTED : TMK_AUTH_REFUSED;
}

/* Passwords that are right are remembered longer: wrong ones take turns in one half. */
void tmk_http_auth_take(struct tmk_http_auth *a)
{
    uint64_t n;
    (void)!read(a->fd, &n, sizeof n);
    if (!tmk_errand_take(&a->errand))
        return;
    unsigned half = REMEMBERED / 2;
    unsigned place = a->next++ % half + (a->is_granted ? half : 0);
    a->results[place] = (struct auth_result){.is_known = true, .is_granted = a->is_granted};
    memcpy(a->results[place].digest, a->digest, sizeof a->digest);
}
