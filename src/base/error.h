/* SPDX-License-Identifier: MIT */
/* base/error.h - result codes and the error a caller can show.
 *
 * Functions that can fail return int: 0 or a positive count, else one of TMK_E* (negative). The
 * last parameter `struct tmk_error *err` may be NULL and takes a sentence that says what to do.
 * Nothing here allocates: the recorder uses it inside a stranger's process. */
#ifndef TMK_BASE_ERROR_H
#define TMK_BASE_ERROR_H

#include <stdint.h>

#define TMK_ERRORS(X)                                                                              \
    X(TMK_ENOMEM, -1, "out of memory")                                                             \
    X(TMK_EIO, -2, "reading or writing failed")                                                    \
    X(TMK_EFORMAT, -3, "not a tidemark trace")                                                     \
    X(TMK_EDAMAGED, -4, "the trace is damaged")                                                    \
    X(TMK_EVERSION, -5, "made by a newer tidemark")                                                \
    X(TMK_EINVAL, -6, "wrong argument")                                                            \
    X(TMK_ENOENT, -7, "no such thing")                                                             \
    X(TMK_EFULL, -8, "no room")                                                                    \
    X(TMK_EBUSY, -9, "in use")                                                                     \
    X(TMK_ESQL, -10, "SQL error")                                                                  \
    X(TMK_EPROCESS, -12, "not a watched process")                                                  \
    X(TMK_EAGAIN, -13, "has to be done in another way")

enum tmk_result {
    TMK_OK = 0,
#define X(name, value, text) name = (value),
    TMK_ERRORS(X)
#undef X
};

struct tmk_error {
    uint64_t offset; /* byte in the file the error is about, 0 when none */
    int os_error;    /* errno, 0 when none */
    char text[232];  /* one sentence, no newline */
};

/* Translates texts of errors and formats, where our own processes set it (kit/language.h). A
 * watched process leaves it NULL: the texts are as written. */
extern const char *(*tmk_error_language)(const char *text);

/* The general text of a result code, never NULL. */
const char *tmk_result_text(int rc);

/* Fill *err (may be NULL) from a format that knows %s %d %u %llu %llx only, and return rc. */
int tmk_fail(struct tmk_error *err, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same, with errno kept and its text appended. */
int tmk_fail_os(struct tmk_error *err, int rc, int os_error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
