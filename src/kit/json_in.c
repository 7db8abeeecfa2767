/* SPDX-License-Identifier: MIT */
/* kit/json_in.c - see json_in.h.
 *
 * One position moves forward through the bytes. A stack of two bits a level says whether a comma or
 * which bracket may come: that is all the grammar needs. */
#include "kit/json_in.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 512 };

static void note_json_problem(struct tmk_json_in *j, const char *problem)
{
    if (!j->problem)
        j->problem = problem;
}

void tmk_json_in_init(struct tmk_json_in *j, const char *bytes, size_t n, struct tmk_arena *texts)
{
    *j = (struct tmk_json_in){.start = bytes, .at = bytes, .end = bytes + n, .texts = texts};
}

static char next_byte(struct tmk_json_in *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
    return j->problem || j->at == j->end ? '\0' : *j->at;
}

char tmk_json_in_peek(struct tmk_json_in *j)
{
    return next_byte(j);
}

static bool take_json_byte(struct tmk_json_in *j, char byte, const char *problem)
{
    if (next_byte(j) == byte && !j->problem) {
        j->at++;
        return true;
    }
    note_json_problem(j, problem);
    return false;
}

static void open_level(struct tmk_json_in *j, char bracket, const char *problem)
{
    if (j->depth == TMK_JSON_IN_DEPTH) {
        note_json_problem(j, "objects and arrays are nested deeper than is sensible");
        return;
    }
    if (!take_json_byte(j, bracket, problem))
        return;
    j->is_array[j->depth] = bracket == '[';
    j->has_element[j->depth] = false;
    j->depth++;
}

void tmk_json_in_object(struct tmk_json_in *j)
{
    open_level(j, '{', "an object should begin here");
}

void tmk_json_in_array(struct tmk_json_in *j)
{
    open_level(j, '[', "an array should begin here");
}

/* Whether one more element of the innermost level follows. */
static bool has_more_elements(struct tmk_json_in *j, bool in_array)
{
    if (j->problem || j->depth == 0 || j->is_array[j->depth - 1] != in_array) {
        note_json_problem(j, "this is not expected here");
        return false;
    }
    if (next_byte(j) == (in_array ? ']' : '}')) {
        j->at++;
        j->depth--;
        return false;
    }
    if (j->has_element[j->depth - 1] &&
        !take_json_byte(j, ',', "a comma or a closing bracket is missing"))
        return false;
    j->has_element[j->depth - 1] = true;
    return true;
}

/* ---- texts ---- */

static bool hex4(struct tmk_json_in *j, uint32_t *ret)
{
    uint32_t value = 0;
    if (j->end - j->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *j->at++;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        value = value * 16 + digit;
    }
    *ret = value;
    return true;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Reads the digits after "\u": a character of one or two such escapes. A zero byte or half a pair
 * is an error. */
static bool read_unicode_escape(struct tmk_json_in *j, uint32_t *ret)
{
    uint32_t c, low;
    if (!hex4(j, &c) || c == 0 || (c >= 0xdc00 && c < 0xe000))
        return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
            return false;
        j->at += 2;
        if (!hex4(j, &low) || low < 0xdc00 || low >= 0xe000)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    *ret = c;
    return true;
}

/* Reads the rest of an escape, after its backslash. */
static char *read_escape(struct tmk_json_in *j, char *to)
{
    static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    uint32_t code;
    if (j->at == j->end)
        return NULL;
    char c = *j->at++;
    if (c == 'u')
        return read_unicode_escape(j, &code) ? put_utf8(to, code) : NULL;
    const char *found = c ? strchr(from, c) : NULL;
    if (!found)
        return NULL;
    *to++ = means[found - from];
    return to;
}

/* Finds the end of a text: the closing quote's byte. `at` is after the opening quote. NULL when
 * there is no end. */
static const char *end_of_text(const char *at, const char *end)
{
    while (at < end && *at != '"')
        at += *at == '\\' && at + 1 < end ? 2 : 1;
    return at < end ? at : NULL;
}

const char *tmk_json_in_text(struct tmk_json_in *j)
{
    if (!take_json_byte(j, '"', "a text should begin here"))
        return NULL;
    const char *end = end_of_text(j->at, j->end);
    char *text = end ? tmk_arena_take(j->texts, (size_t)(end - j->at) + 1) : NULL, *to = text;
    if (!text) {
        note_json_problem(j, end ? "out of memory" : "a text has no end");
        return NULL;
    }
    while (to && j->at < end) {
        unsigned char c = (unsigned char)*j->at++;
        if (c == '\\')
            to = read_escape(j, to);
        else if (c < 0x20)
            to = NULL;
        else
            *to++ = (char)c;
    }
    if (!to || j->at != end) {
        note_json_problem(j, "a text has a character or an escape that JSON does not allow");
        return NULL;
    }
    j->at = end + 1;
    *to = '\0';
    return text;
}

/* ---- numbers and the rest ---- */

static bool is_digit(const struct tmk_json_in *j)
{
    return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

uint64_t tmk_json_in_u64(struct tmk_json_in *j)
{
    uint64_t value = 0;
    next_byte(j);
    if (j->problem || !is_digit(j)) {
        note_json_problem(j, "a whole number that is not negative should stand here");
        return 0;
    }
    bool is_zero = *j->at == '0';
    for (; is_digit(j); j->at++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*j->at - '0'), &value)) {
            note_json_problem(j, "a number is larger than 64 bits");
            return 0;
        } else if (is_zero && value > 0) {
            note_json_problem(j, "a number begins with 0");
            return 0;
        }
    if (j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'))
        note_json_problem(j, "a whole number should stand here");
    return j->problem ? 0 : value;
}

static void skip_digits(struct tmk_json_in *j)
{
    if (!is_digit(j))
        note_json_problem(j, "a digit is missing");
    while (is_digit(j))
        j->at++;
}

static void skip_number(struct tmk_json_in *j)
{
    if (*j->at == '-')
        j->at++;
    if (j->at < j->end && *j->at == '0')
        j->at++;
    else
        skip_digits(j);
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        skip_digits(j);
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
        j->at++;
        if (j->at < j->end && (*j->at == '+' || *j->at == '-'))
            j->at++;
        skip_digits(j);
    }
}

/* The C library's reader wants an end: a copy has one, and no number is longer. */
double tmk_json_in_double(struct tmk_json_in *j)
{
    char text[NUMBER_BYTES];
    char first = next_byte(j);
    const char *begin = j->at;
    if (j->problem || !(first == '-' || (first >= '0' && first <= '9'))) {
        note_json_problem(j, "a number should stand here");
        return 0;
    }
    skip_number(j);
    size_t n = (size_t)(j->at - begin);
    if (n >= sizeof text)
        note_json_problem(j, "a number has too many digits");
    if (j->problem)
        return 0;
    memcpy(text, begin, n);
    text[n] = '\0';
    return strtod(text, NULL);
}

static void skip_word(struct tmk_json_in *j)
{
    static const char *const words[] = {"true", "false", "null"};
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(j->end - j->at) >= n && memcmp(j->at, words[i], n) == 0) {
            j->at += n;
            return;
        }
    }
    note_json_problem(j, "a value should stand here");
}

static void skip_plain(struct tmk_json_in *j, char first)
{
    if (first == '"')
        tmk_json_in_text(j);
    else if (first == '-' || (first >= '0' && first <= '9'))
        skip_number(j);
    else
        skip_word(j);
}

void tmk_json_in_skip(struct tmk_json_in *j)
{
    unsigned outside = j->depth;
    do {
        char first = tmk_json_in_peek(j);
        if (first == '{')
            tmk_json_in_object(j);
        else if (first == '[')
            tmk_json_in_array(j);
        else
            skip_plain(j, first);
        /* Closes what is complete, up to where another value follows. */
        while (!j->problem && j->depth > outside)
            if (j->is_array[j->depth - 1] ? tmk_json_in_item(j) : tmk_json_in_key(j) != NULL)
                break;
    } while (!j->problem && j->depth > outside);
}

bool tmk_json_in_item(struct tmk_json_in *j)
{
    return has_more_elements(j, true);
}

const char *tmk_json_in_key(struct tmk_json_in *j)
{
    if (!has_more_elements(j, false))
        return NULL;
    const char *key = tmk_json_in_text(j);
    return key && take_json_byte(j, ':', "a colon is missing behind a key") ? key : NULL;
}

void tmk_json_in_end(struct tmk_json_in *j)
{
    if (!j->problem && (j->depth > 0 || next_byte(j) != '\0' || j->at != j->end))
        note_json_problem(j, "something follows behind the end");
}
