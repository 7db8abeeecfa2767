/* SPDX-License-Identifier: MIT */
/* base/text.h - bounded text building without stdio or malloc, for use inside any process.
 *
 * A writer over the caller's buffer: what does not fit is cut, the end is always a zero byte, and
 * `cut` says that it happened. */
#ifndef TMK_BASE_TEXT_H
#define TMK_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tmk_text {
    char *buffer;
    size_t size; /* of the buffer, zero byte included */
    size_t length;
    bool cut;
};

/* Start an empty text in `buffer`; size must be at least 1. */
void tmk_text_init(struct tmk_text *t, char *buffer, size_t size);
void tmk_text_char(struct tmk_text *t, char c);
void tmk_text_bytes(struct tmk_text *t, const char *bytes, size_t n);
void tmk_text_string(struct tmk_text *t, const char *s);
void tmk_text_u64(struct tmk_text *t, uint64_t value);
void tmk_text_i64(struct tmk_text *t, int64_t value);
/* Adds a number with at least `digits` digits, zero-padded. */
void tmk_text_padded(struct tmk_text *t, uint64_t value, unsigned digits);
void tmk_text_hex(struct tmk_text *t, uint64_t value);

/* Adds text by a subset of printf: %s %d %u %llu %lld %llx %zu %c %%. Anything else is copied as it
 * stands. */
void tmk_text_format(struct tmk_text *t, const char *format, va_list args);
void tmk_text_add(struct tmk_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
