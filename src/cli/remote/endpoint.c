/* SPDX-License-Identifier: MIT */
/* cli/remote/endpoint.c - see endpoint.h.
 *
 * ssh puts host and user into commands of its configuration (ProxyCommand, Match exec), which a
 * shell runs. So a name that means anything to a shell, or that could be an option, is refused
 * here, as OpenSSH does from 9.6 on. */
#include "cli/remote/endpoint.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "model/watched.h"

static const char digits[] = "0123456789";

/* Returns whether ssh and a shell take the name as it is. */
static bool is_plain_name(const char *name)
{
    static const char refused[] = "'\"`$\\;&<>|(){}[]*?!#~^,=@:/";
    if (*name == '\0' || *name == '-')
        return false;
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f || strchr(refused, *at))
            return false;
    return true;
}

/* Returns whether `name` is an IPv6 address, perhaps with a zone: fe80::1%eth0. */
static bool is_address6(const char *name)
{
    size_t n = strspn(name, "0123456789abcdefABCDEF:.");
    const char *first = strchr(name, ':');
    return first && strchr(first + 1, ':') &&
           (name[n] == '\0' || (name[n] == '%' && is_plain_name(name + n + 1)));
}

static int refuse_host(const char *text, const char *name, struct tmk_error *err)
{
    const char *colon = strchr(name, ':');
    if (colon && colon[1 + strspn(colon + 1, digits)] == '\0')
        return tmk_fail(err, TMK_EINVAL, "%s: a port belongs into ~/.ssh/config (Port)", text);
    return tmk_fail(err, TMK_EINVAL,
                    "%s: '%s' is not the name of a machine; wanted is what ssh takes: HOST, "
                    "USER@HOST or an alias of ~/.ssh/config",
                    text, name);
}

int tmk_endpoint_host(const char *text, char ret[TMK_HOST_BYTES], struct tmk_error *err)
{
    char name[TMK_HOST_BYTES];
    const char *at = strrchr(text, '@');
    size_t n_user = at ? (size_t)(at + 1 - text) : 0, n = strlen(text);
    if (n >= TMK_HOST_BYTES)
        return tmk_fail(err, TMK_EINVAL, "the name of a machine has at most %d bytes",
                        TMK_HOST_BYTES - 1);
    memcpy(name, text, n + 1);
    char *host = name + n_user;
    if (at) {
        name[n_user - 1] = '\0';
        if (!is_plain_name(name))
            return refuse_host(text, name, err);
        name[n_user - 1] = '@';
    }
    n = strlen(host);
    bool has_brackets = n > 2 && host[0] == '[' && host[n - 1] == ']';
    if (has_brackets) {
        memmove(host, host + 1, n - 2);
        host[n - 2] = '\0';
    }
    if (!is_address6(host) && (has_brackets || !is_plain_name(host)))
        return refuse_host(text, host, err);
    memcpy(ret, name, strlen(name) + 1);
    return 0;
}

/* Parse the PID behind the last colon. */
static int parse_endpoint_pid(const char *text, const char *colon, uint32_t *ret,
                              struct tmk_error *err)
{
    *ret = tmk_watched_parse(colon + 1);
    if (*ret != 0)
        return 0;
    return tmk_fail(err, TMK_EINVAL, "%s: '%s' is not the PID of a process", text, colon + 1);
}

int tmk_endpoint_parse(const char *text, struct tmk_endpoint *ret, struct tmk_error *err)
{
    struct tmk_endpoint found;
    char head[TMK_HOST_BYTES];
    struct stat st;
    const char *colon = strrchr(text, ':');
    if (!colon || strchr(text, '/') || colon[1] == '\0' ||
        colon[1 + strspn(colon + 1, digits)] != '\0' || lstat(text, &st) == 0)
        return 0;
    size_t n = (size_t)(colon - text);
    if (n >= sizeof head)
        return tmk_fail(err, TMK_EINVAL, "the name of a machine has at most %d bytes",
                        TMK_HOST_BYTES - 1);
    memcpy(head, text, n);
    head[n] = '\0';
    if (is_address6(head))
        return tmk_fail(err, TMK_EINVAL,
                        "%s: an IPv6 address stands in brackets before a PID: [%s]:%s", text, head,
                        colon + 1);
    int rc = tmk_endpoint_host(head, found.host, err);
    if (rc == 0)
        rc = parse_endpoint_pid(text, colon, &found.pid, err);
    if (rc < 0)
        return rc;
    *ret = found;
    return 1;
}
