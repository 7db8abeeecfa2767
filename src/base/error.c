/* SPDX-License-Identifier: MIT */
/* base/error.c - see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/text.h"

const char *(*tmk_error_language)(const char *text);

static const char *in_language(const char *text)
{
    return tmk_error_language ? tmk_error_language(text) : text;
}

const char *tmk_result_text(int rc)
{
    switch (rc) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return in_language(text);
        TMK_ERRORS(X)
#undef X
    default:
        return "ok";
    }
}

int tmk_fail(struct tmk_error *err, int rc, const char *format, ...)
{
    if (!err)
        return rc;
    struct tmk_text t;
    tmk_text_init(&t, err->text, sizeof err->text);
    err->os_error = 0;
    va_list args;
    va_start(args, format);
    tmk_text_format(&t, in_language(format), args);
    va_end(args);
    return rc;
}

/* strerror() may allocate and translate, and strerrordesc_np() is newer than some glibc that the
 * recorder meets: the few errors a user can act on are named here. */
static const struct {
    int os_error;
    const char *text;
} os_texts[] = {
    {ENOENT, "no such file or folder"},
    {EACCES, "permission denied"},
    {EPERM, "not permitted"},
    {EEXIST, "it exists already"},
    {ENOTDIR, "a part of the path is not a folder"},
    {EISDIR, "it is a folder"},
    {EADDRINUSE, "the address is in use"},
    {EADDRNOTAVAIL, "this machine has no such address"},
    {ENOSPC, "no space left on the device"},
    {EDQUOT, "the disk quota is used up"},
    {EFBIG, "the file-size limit is reached (ulimit -f)"},
    {EROFS, "the file system is read-only"},
    {EMFILE, "too many open files"},
    {ENOMEM, "out of memory"},
    {EIO, "input/output error"},
    {EAGAIN, "try again"},
};

static void add_os_text(struct tmk_text *t, int os_error)
{
    for (size_t i = 0; i < sizeof os_texts / sizeof os_texts[0]; i++) {
        if (os_texts[i].os_error == os_error) {
            tmk_text_add(t, in_language(": %s"), in_language(os_texts[i].text));
            return;
        }
    }
    tmk_text_add(t, in_language(": error %d of the system"), os_error);
}

int tmk_fail_os(struct tmk_error *err, int rc, int os_error, const char *format, ...)
{
    if (!err)
        return rc;
    struct tmk_text t;
    tmk_text_init(&t, err->text, sizeof err->text);
    err->os_error = os_error;
    va_list args;
    va_start(args, format);
    tmk_text_format(&t, in_language(format), args);
    va_end(args);
    add_os_text(&t, os_error);
    return rc;
}
