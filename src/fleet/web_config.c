/* SPDX-License-Identifier: MIT */
/* fleet/web_config.c - see web_config.h. */
#include "fleet/web_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { WORD_BYTES = 1024, NO_SECTION = -1 };

struct config_line {
    unsigned number, indent;
    bool has_value;
    char key[WORD_BYTES], value[WORD_BYTES];
};

struct config_reader {
    struct tmk_web_config *config;
    const char *folder;
    unsigned number;
    int section;                       /* number in `sections`, or NO_SECTION */
    unsigned inner_indent;             /* of the section's lines; 0: none yet */
    unsigned seen_sections, seen_keys; /* sets; of the section */
    struct tmk_error *err;
};

static int refuse_line(const struct config_reader *r, const char *what, const char *word)
{
    return tmk_fail(r->err, TMK_EINVAL, "line %u: %s%s", r->number, what, word ? word : "");
}

/* ---- scalars ---- */

/* Write the text in double quotes at *at; moves behind the closing quote. */
static bool take_double_quoted(const char **at, const char *end, char *to, size_t *ret_n)
{
    static const char escapes[] = "\"\"\\\\n\nt\t//";
    size_t n = 0;
    for (const char *c = *at + 1; c < end && n + 1 < WORD_BYTES; c++) {
        if (*c == '"') {
            *at = c + 1;
            *ret_n = n;
            return true;
        }
        if (*c != '\\') {
            to[n++] = *c;
            continue;
        }
        const char *meaning = NULL;
        c++;
        for (const char *e = escapes; c < end && *e; e += 2)
            meaning = *e == *c ? e + 1 : meaning;
        if (!meaning)
            return false;
        to[n++] = *meaning;
    }
    return false;
}

static bool take_single_quoted(const char **at, const char *end, char *to, size_t *ret_n)
{
    size_t n = 0;
    for (const char *c = *at + 1; c < end && n + 1 < WORD_BYTES; c++) {
        if (*c == '\'' && c + 1 < end && c[1] == '\'') {
            c++;
        } else if (*c == '\'') {
            *at = c + 1;
            *ret_n = n;
            return true;
        }
        to[n++] = *c;
    }
    return false;
}

/* A plain scalar ends at ": " (a key), at " #" or at the line's end. */
static bool take_plain(const char **at, const char *end, bool is_key, char *to, size_t *ret_n)
{
    const char *c = *at;
    if (strchr("-?:,[]{}#&*!|>'\"%@`", *c)) /* they begin something else in YAML */
        return false;
    while (c < end) {
        bool is_colon = *c == ':' && (c + 1 == end || c[1] == ' ');
        if ((is_key && is_colon) || (*c == '#' && c > *at && c[-1] == ' '))
            break;
        if (!is_key && is_colon) /* a mapping within a value */
            return false;
        c++;
    }
    size_t n = (size_t)(c - *at);
    while (n > 0 && (*at)[n - 1] == ' ')
        n--;
    if (n == 0 || n >= WORD_BYTES)
        return false;
    memcpy(to, *at, n);
    *ret_n = n;
    *at = c;
    return true;
}

static bool take_scalar(const char **at, const char *end, bool is_key, char to[WORD_BYTES])
{
    size_t n = 0;
    bool good = **at == '"'    ? take_double_quoted(at, end, to, &n)
                : **at == '\'' ? take_single_quoted(at, end, to, &n)
                               : take_plain(at, end, is_key, to, &n);
    if (!good || memchr(to, '\0', n))
        return false;
    to[n] = '\0';
    return true;
}

static void skip_blanks(const char **at, const char *end)
{
    while (*at < end && **at == ' ')
        ++*at;
}

static bool is_rest_empty(const char *at, const char *end)
{
    skip_blanks(&at, end);
    return at == end || *at == '#';
}

/* ---- lines ---- */

/* 1: a line with a key; 0: an empty one; <0: it is none that is understood. */
static int split_line(struct config_reader *r, const char *text, size_t n, struct config_line *ret)
{
    const char *at = text, *end = text + n;
    if (n > 0 && end[-1] == '\r')
        end--;
    skip_blanks(&at, end);
    *ret = (struct config_line){.number = r->number, .indent = (unsigned)(at - text)};
    if (at == end || *at == '#' || (ret->indent == 0 && end - at == 3 && memcmp(at, "---", 3) == 0))
        return 0;
    if (*at == '\t')
        return refuse_line(r, "YAML is indented with blanks, not tabs", NULL);
    if (*at == '-')
        return refuse_line(r, "a list is not expected here", NULL);
    if (!take_scalar(&at, end, true, ret->key))
        return refuse_line(r, "this is no 'key: value'", NULL);
    skip_blanks(&at, end);
    if (at == end || *at != ':')
        return refuse_line(r, "there is no ':' after ", ret->key);
    at++;
    if (at < end && *at != ' ')
        return refuse_line(r, "a blank is missing after ':'", NULL);
    skip_blanks(&at, end);
    ret->has_value = !is_rest_empty(at, end);
    if (!ret->has_value)
        return 1;
    if (!take_scalar(&at, end, false, ret->value) || !is_rest_empty(at, end))
        return refuse_line(r, "the value is not understood: a plain or quoted text is, of ",
                           ret->key);
    return 1;
}

/* ---- keys ---- */

static int set_path(struct config_reader *r, const char *value, char to[TMK_WEB_PATH_BYTES])
{
    bool is_absolute = value[0] == '/';
    int n = snprintf(to, TMK_WEB_PATH_BYTES, "%s%s%s", is_absolute ? "" : r->folder,
                     is_absolute ? "" : "/", value);
    return n < TMK_WEB_PATH_BYTES ? 0 : refuse_line(r, "the path is too long", NULL);
}

static int set_cert(struct config_reader *r, const struct config_line *l)
{
    return set_path(r, l->value, r->config->cert_file);
}

static int set_key(struct config_reader *r, const struct config_line *l)
{
    return set_path(r, l->value, r->config->key_file);
}

static int set_client_ca(struct config_reader *r, const struct config_line *l)
{
    return set_path(r, l->value, r->config->client_ca_file);
}

static int set_client_auth(struct config_reader *r, const struct config_line *l)
{
    static const char *const names[] = {
        [TMK_CLIENT_AUTH_NONE] = "NoClientCert",
        [TMK_CLIENT_AUTH_REQUEST] = "RequestClientCert",
        [TMK_CLIENT_AUTH_REQUIRE_ANY] = "RequireAnyClientCert",
        [TMK_CLIENT_AUTH_VERIFY_IF_GIVEN] = "VerifyClientCertIfGiven",
        [TMK_CLIENT_AUTH_REQUIRE] = "RequireAndVerifyClientCert",
    };
    for (size_t i = 0; i < TMK_N(names); i++)
        if (strcmp(l->value, names[i]) == 0) {
            r->config->client_auth = (enum tmk_client_auth)i;
            return 0;
        }
    return refuse_line(r, "no such client_auth_type: ", l->value);
}

static int set_version(const struct config_reader *r, const char *value, int *ret)
{
    static const char *const names[] = {"TLS10", "TLS11", "TLS12", "TLS13"};
    for (size_t i = 0; i < TMK_N(names); i++)
        if (strcmp(value, names[i]) == 0) {
            *ret = (int)(10 + i);
            return 0;
        }
    return refuse_line(r, "no such version of TLS (TLS12, TLS13): ", value);
}

static int set_min_version(struct config_reader *r, const struct config_line *l)
{
    return set_version(r, l->value, &r->config->min_version);
}

static int set_max_version(struct config_reader *r, const struct config_line *l)
{
    return set_version(r, l->value, &r->config->max_version);
}

/* What a switch says makes no difference here: HTTP/1.1 is spoken, and OpenSSL orders the ciphers.
 */
static int take_switch(struct config_reader *r, const struct config_line *l)
{
    bool is_bool = strcmp(l->value, "true") == 0 || strcmp(l->value, "false") == 0;
    return is_bool ? 0 : refuse_line(r, "neither true nor false: ", l->value);
}

static int add_user(struct config_reader *r, const struct config_line *l)
{
    struct tmk_web_config *c = r->config;
    size_t n = strlen(l->value);
    bool is_bcrypt = n == TMK_WEB_HASH_BYTES - 1 && l->value[0] == '$' && l->value[1] == '2' &&
                     strchr("aby", l->value[2]) && l->value[3] == '$' && l->value[6] == '$';
    if (strlen(l->key) >= TMK_WEB_NAME_BYTES || strchr(l->key, ':'))
        return refuse_line(r, "this cannot be a user's name: ", l->key);
    if (!is_bcrypt)
        return refuse_line(
            r, "not a bcrypt hash ($2y$10$..., from htpasswd -nBC 10 \"\"): of user ", l->key);
    for (unsigned i = 0; i < c->n_users; i++)
        if (strcmp(c->users[i].name, l->key) == 0)
            return refuse_line(r, "there is already a user ", l->key);
    if (c->n_users == TMK_WEB_USERS_MOST)
        return refuse_line(r, "there are too many users", NULL);
    struct tmk_web_user *u = &c->users[c->n_users++];
    strcpy(u->name, l->key);
    strcpy(u->hash, l->value);
    return 0;
}

struct config_key {
    const char *name;
    int (*take)(struct config_reader *r, const struct config_line *l);
};

static const struct config_key tls_keys[] = {
    {"cert_file", set_cert},
    {"key_file", set_key},
    {"client_ca_file", set_client_ca},
    {"client_auth_type", set_client_auth},
    {"min_version", set_min_version},
    {"max_version", set_max_version},
    {"prefer_server_cipher_suites", take_switch},
};

static const struct config_key http_keys[] = {{"http2", take_switch}};

static const struct config_section {
    const char *name;
    const struct config_key *keys; /* NULL: any name, a user's */
    unsigned n_keys;
} sections[] = {
    {"tls_server_config", tls_keys, TMK_N(tls_keys)},
    {"http_server_config", http_keys, TMK_N(http_keys)},
    {"basic_auth_users", NULL, 0},
};

enum { SECTION_TLS = 0 };

static int begin_section(struct config_reader *r, const struct config_line *l)
{
    r->section = NO_SECTION;
    for (size_t i = 0; i < TMK_N(sections); i++)
        if (strcmp(l->key, sections[i].name) == 0)
            r->section = (int)i;
    if (r->section == NO_SECTION)
        return refuse_line(r,
                           "tls_server_config, http_server_config and basic_auth_users are "
                           "understood, not ",
                           l->key);
    unsigned bit = 1u << r->section;
    if (l->has_value)
        return refuse_line(r, "keys belong on the lines below ", l->key);
    if (r->seen_sections & bit)
        return refuse_line(r, "this is there twice: ", l->key);
    r->seen_sections |= bit;
    r->seen_keys = 0;
    r->inner_indent = 0;
    if (r->section == SECTION_TLS)
        r->config->has_tls = true;
    return 0;
}

static int take_key(struct config_reader *r, const struct config_line *l)
{
    const struct config_section *s = &sections[r->section];
    if (!l->has_value)
        return refuse_line(r, "there is no value for ", l->key);
    if (!s->keys)
        return add_user(r, l);
    for (unsigned i = 0; i < s->n_keys; i++) {
        if (strcmp(l->key, s->keys[i].name) != 0)
            continue;
        if (r->seen_keys & 1u << i)
            return refuse_line(r, "this is there twice: ", l->key);
        r->seen_keys |= 1u << i;
        return s->keys[i].take(r, l);
    }
    return refuse_line(r, "this is not supported: ", l->key);
}

static int take_line(struct config_reader *r, const struct config_line *l)
{
    if (l->indent == 0)
        return begin_section(r, l);
    if (r->section == NO_SECTION)
        return refuse_line(r, "this is indented, and nothing is above it: ", l->key);
    if (r->inner_indent == 0)
        r->inner_indent = l->indent;
    if (l->indent != r->inner_indent)
        return refuse_line(r, "this is indented differently from the lines above: ", l->key);
    return take_key(r, l);
}

/* ---- the whole ---- */

static int check_whole(const struct tmk_web_config *c, struct tmk_error *err)
{
    bool is_verified = c->client_auth >= TMK_CLIENT_AUTH_VERIFY_IF_GIVEN;
    if (c->has_tls && (!c->cert_file[0] || !c->key_file[0]))
        return tmk_fail(err, TMK_EINVAL, "tls_server_config needs cert_file and key_file");
    if (is_verified && !c->client_ca_file[0])
        return tmk_fail(err, TMK_EINVAL, "this client_auth_type needs client_ca_file");
    if (!is_verified && c->client_ca_file[0])
        return tmk_fail(err, TMK_EINVAL,
                        "client_ca_file needs a client_auth_type that verifies, such as "
                        "RequireAndVerifyClientCert");
    if (c->max_version && c->max_version < c->min_version)
        return tmk_fail(err, TMK_EINVAL, "max_version is below min_version");
    return 0;
}

static int parse_lines(struct config_reader *r, const char *text, size_t n)
{
    const char *end = text + n;
    struct config_line line;
    int rc = 0;
    while (text < end && rc >= 0) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((feed ? feed : end) - text);
        r->number++;
        rc = split_line(r, text, length, &line);
        if (rc > 0)
            rc = take_line(r, &line);
        text += length + (feed != NULL);
    }
    return rc < 0 ? rc : check_whole(r->config, r->err);
}

int tmk_web_config_parse(const char *text, size_t n, const char *folder, struct tmk_web_config *ret,
                         struct tmk_error *err)
{
    struct tmk_web_config *config = calloc(1, sizeof *config);
    if (!config)
        return tmk_fail(err, TMK_ENOMEM, "out of memory");
    struct config_reader r = {
        .config = config, .folder = folder, .section = NO_SECTION, .err = err};
    int rc = parse_lines(&r, text, n);
    if (rc == 0)
        *ret = *config;
    free(config);
    return rc;
}

int tmk_web_config_read(const char *path, struct tmk_web_config *ret, struct tmk_error *err)
{
    char folder[TMK_WEB_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    FILE *file = fopen(path, "re");
    char *text = file ? malloc(TMK_WEB_CONFIG_MOST + 1) : NULL;
    int reason = errno;
    size_t n = text ? fread(text, 1, TMK_WEB_CONFIG_MOST + 1, file) : 0;
    bool is_whole = text && !ferror(file);
    if (file)
        fclose(file);
    int rc;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (!is_whole)
        rc = tmk_fail_os(err, TMK_EIO, reason, "cannot read it");
    else if (n > TMK_WEB_CONFIG_MOST)
        rc = tmk_fail(err, TMK_EINVAL, "it has more than 64 KiB");
    else
        rc = tmk_web_config_parse(text, n, folder, ret, err);
    free(text);
    return rc;
}
