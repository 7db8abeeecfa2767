/* SPDX-License-Identifier: MIT */
/* base/text.c - see text.h. Kept apart from stdio because the recorder may run while the watched
 * program holds stdio's or malloc's locks. */
#include "base/text.h"

#include <string.h>

void tmk_text_init(struct tmk_text *t, char *buffer, size_t size)
{
    *t = (struct tmk_text){.buffer = buffer, .size = size};
    buffer[0] = '\0';
}

void tmk_text_bytes(struct tmk_text *t, const char *bytes, size_t n)
{
    size_t room = t->size - 1 - t->length;
    if (n > room) {
        n = room;
        t->cut = true;
    }
    memcpy(t->buffer + t->length, bytes, n);
    t->length += n;
    t->buffer[t->length] = '\0';
}

void tmk_text_char(struct tmk_text *t, char c)
{
    tmk_text_bytes(t, &c, 1);
}

void tmk_text_string(struct tmk_text *t, const char *s)
{
    tmk_text_bytes(t, s, strlen(s));
}

static void add_number(struct tmk_text *t, uint64_t value, unsigned base, unsigned digits)
{
    char buffer[64];
    size_t at = sizeof buffer;
    do {
        buffer[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while ((value != 0 || sizeof buffer - at < digits) && at > 0);
    tmk_text_bytes(t, buffer + at, sizeof buffer - at);
}

void tmk_text_u64(struct tmk_text *t, uint64_t value)
{
    add_number(t, value, 10, 1);
}

void tmk_text_i64(struct tmk_text *t, int64_t value)
{
    if (value < 0)
        tmk_text_char(t, '-');
    add_number(t, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 1);
}

void tmk_text_padded(struct tmk_text *t, uint64_t value, unsigned digits)
{
    add_number(t, value, 10, digits);
}

void tmk_text_hex(struct tmk_text *t, uint64_t value)
{
    add_number(t, value, 16, 1);
}

/* Adds one conversion after '%'; returns the character after it. */
static const char *add_conversion(struct tmk_text *t, const char *f, va_list *args)
{
    if (strncmp(f, "llu", 3) == 0 || strncmp(f, "lld", 3) == 0 || strncmp(f, "llx", 3) == 0) {
        unsigned long long value = va_arg(*args, unsigned long long);
        if (f[2] == 'd')
            tmk_text_i64(t, (int64_t)value);
        else
            add_number(t, value, f[2] == 'x' ? 16 : 10, 1);
        return f + 3;
    }
    if (strncmp(f, "zu", 2) == 0) {
        tmk_text_u64(t, va_arg(*args, size_t));
        return f + 2;
    }
    switch (*f) {
    case 's':
        tmk_text_string(t, va_arg(*args, const char *));
        return f + 1;
    case 'd':
        tmk_text_i64(t, va_arg(*args, int));
        return f + 1;
    case 'u':
        tmk_text_u64(t, va_arg(*args, unsigned));
        return f + 1;
    case 'c':
        tmk_text_char(t, (char)va_arg(*args, int));
        return f + 1;
    case '%':
        tmk_text_char(t, '%');
        return f + 1;
    default:
        tmk_text_char(t, '%');
        return f;
    }
}

void tmk_text_format(struct tmk_text *t, const char *format, va_list args)
{
    va_list copy;
    va_copy(copy, args);
    while (*format) {
        const char *percent = strchrnul(format, '%');
        tmk_text_bytes(t, format, (size_t)(percent - format));
        format = *percent ? add_conversion(t, percent + 1, &copy) : percent;
    }
    va_end(copy);
}

void tmk_text_add(struct tmk_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tmk_text_format(t, format, args);
    va_end(args);
}
