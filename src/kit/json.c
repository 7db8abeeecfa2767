/* SPDX-License-Identifier: MIT */
/* kit/json.c - see json.h. */
#include "kit/json.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "kit/utf8.h"

enum { ESCAPE_BYTES = 16 };

/* The escape for a character that JSON does not allow as it is; NULL for any other. */
static const char *escape_of(uint32_t c, char *buffer)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\t':
        return "\\t";
    case TMK_UTF8_BAD:
        return "\xef\xbf\xbd";
    default:
        if (!tmk_utf8_is_unseen(c))
            return NULL;
        if (c < 0x10000)
            snprintf(buffer, ESCAPE_BYTES, "\\u%04x", (unsigned)c & 0xffff);
        else
            snprintf(buffer, ESCAPE_BYTES, "\\u%04x\\u%04x",
                     (unsigned)(0xd800 + (((c - 0x10000) >> 10) & 0x3ff)),
                     (unsigned)(0xdc00 + (c & 0x3ff)));
        return buffer;
    }
}

static bool is_plain_in_json(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes a quoted text. Plain stretches are written at once: a call per character would take most
 * of the time. */
static void write_json_text(FILE *out, const char *text)
{
    const char *plain = text;
    fputc('"', out);
    for (;;) {
        while (is_plain_in_json(*text))
            text++;
        const char *from = text;
        uint32_t c = tmk_utf8_next(&text);
        char buffer[ESCAPE_BYTES];
        const char *escape = c ? escape_of(c, buffer) : "";
        if (!escape)
            continue;
        fwrite(plain, 1, (size_t)(from - plain), out);
        if (c == 0)
            break;
        fputs(escape, out);
        plain = text;
    }
    fputc('"', out);
}

static void write_json_line_end(const struct tmk_json *j)
{
    fputc('\n', j->out);
    for (unsigned i = 0; i < j->depth; i++)
        fputs("  ", j->out);
}

/* Writes what comes before a value: comma, line end, key. */
static void write_json_lead(struct tmk_json *j, const char *key)
{
    if (j->depth == 0)
        return;
    unsigned level = j->depth - 1;
    assert(j->in_array[level] == (key == NULL));
    if (j->has_element[level])
        fputs(",", j->out);
    if (level < j->lines)
        write_json_line_end(j);
    else if (j->has_element[level])
        fputc(' ', j->out);
    j->has_element[level] = true;
    if (key) {
        write_json_text(j->out, key);
        fputs(": ", j->out);
    }
}

static void write_json_trail(const struct tmk_json *j)
{
    if (j->depth == 0)
        fputc('\n', j->out);
}

static void begin_json_level(struct tmk_json *j, const char *key, bool array)
{
    write_json_lead(j, key);
    assert(j->depth < TMK_JSON_MAX_DEPTH);
    fputc(array ? '[' : '{', j->out);
    j->in_array[j->depth] = array;
    j->has_element[j->depth] = false;
    j->depth++;
}

void tmk_json_init(struct tmk_json *j, FILE *out, unsigned lines)
{
    *j = (struct tmk_json){.out = out, .lines = lines};
}

void tmk_json_object(struct tmk_json *j, const char *key)
{
    begin_json_level(j, key, false);
}

void tmk_json_array(struct tmk_json *j, const char *key)
{
    begin_json_level(j, key, true);
}

void tmk_json_end(struct tmk_json *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->has_element[j->depth] && j->depth < j->lines)
        write_json_line_end(j);
    fputc(j->in_array[j->depth] ? ']' : '}', j->out);
    write_json_trail(j);
}

void tmk_json_text(struct tmk_json *j, const char *key, const char *text)
{
    if (!text) {
        tmk_json_null(j, key);
        return;
    }
    write_json_lead(j, key);
    write_json_text(j->out, text);
    write_json_trail(j);
}

/* Writes a number as printf would, in a fifth of the time: most of the output is numbers. */
static void write_number(FILE *out, uint64_t value, bool is_negative)
{
    char text[24], *at = text + sizeof text;
    do {
        *--at = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    if (is_negative)
        *--at = '-';
    fwrite(at, 1, (size_t)(text + sizeof text - at), out);
}

void tmk_json_u64(struct tmk_json *j, const char *key, uint64_t value)
{
    write_json_lead(j, key);
    write_number(j->out, value, false);
    write_json_trail(j);
}

void tmk_json_i64(struct tmk_json *j, const char *key, int64_t value)
{
    write_json_lead(j, key);
    write_number(j->out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
    write_json_trail(j);
}

/* Writes the shortest text that reads back as the same number. */
static void write_double(FILE *out, double value)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}

void tmk_json_double(struct tmk_json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        tmk_json_null(j, key);
        return;
    }
    write_json_lead(j, key);
    write_double(j->out, value);
    write_json_trail(j);
}

void tmk_json_fixed(struct tmk_json *j, const char *key, double value, unsigned decimals)
{
    if (!isfinite(value)) {
        tmk_json_null(j, key);
        return;
    }
    write_json_lead(j, key);
    fprintf(j->out, "%.*f", decimals ? (int)decimals : 1, value);
    write_json_trail(j);
}

void tmk_json_bool(struct tmk_json *j, const char *key, bool value)
{
    write_json_lead(j, key);
    fputs(value ? "true" : "false", j->out);
    write_json_trail(j);
}

void tmk_json_null(struct tmk_json *j, const char *key)
{
    write_json_lead(j, key);
    fputs("null", j->out);
    write_json_trail(j);
}
