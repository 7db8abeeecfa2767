/* SPDX-License-Identifier: MIT */
/* kit/utf8.c - see utf8.h.
 *
 * wcwidth() would need the user's locale, and a table printed into a file should look the same
 * everywhere: the ranges of wide characters are few and stand here. */
#include "kit/utf8.h"

#include <string.h>

#include "kit/glyph.h"

static const struct {
    uint32_t first, last;
} wide[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
    {0xa000, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe4f},   {0xff00, 0xff60},
    {0xffe0, 0xffe6}, {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

/* Marks that combine with what stands before them, and variation selectors: no column of their
 * own. */
static const struct {
    uint32_t first, last;
} combining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x93a, 0x93c},   {0x941, 0x948},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
    {0x302a, 0x302d}, {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

/* Controls, and invisible characters that change the text around them: marks of direction, joiners,
 * tags. */
static const struct {
    uint32_t first, last;
} unseen[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
    {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

bool tmk_utf8_is_unseen(uint32_t c)
{
    if (c >= 0x20 && c < 0x7f)
        return false;
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++)
        if (c >= unseen[i].first && c <= unseen[i].last)
            return true;
    return false;
}

static size_t columns_of_character(uint32_t c)
{
    if (c < combining[0].first)
        return 1;
    for (size_t i = 0; i < sizeof combining / sizeof combining[0]; i++)
        if (c >= combining[i].first && c <= combining[i].last)
            return 0;
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (c >= wide[i].first && c <= wide[i].last)
            return 2;
    return 1;
}

uint32_t tmk_utf8_next(const char **at)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)*at;
    if (s[0] == 0)
        return 0;
    *at += 1;
    if (s[0] < 0x80)
        return s[0];
    int more = s[0] >= 0xf0 && s[0] < 0xf5 ? 3 : s[0] >= 0xe0 && s[0] < 0xf0 ? 2 : 1;
    if (s[0] < 0xc2 || s[0] >= 0xf5)
        return TMK_UTF8_BAD;
    uint32_t c = s[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return TMK_UTF8_BAD;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return TMK_UTF8_BAD;
    *at += more;
    return c;
}

uint32_t tmk_utf8_shown(const char **at, size_t *ret_columns)
{
    uint32_t c = tmk_utf8_next(at);
    if (c != 0 && tmk_utf8_is_unseen(c))
        c = TMK_UTF8_BAD;
    *ret_columns = c == 0 ? 0 : columns_of_character(c);
    return c;
}

size_t tmk_utf8_width(const char *text)
{
    size_t width = 0, columns;
    while (tmk_utf8_shown(&text, &columns) != 0)
        width += columns;
    return width;
}

/* Returns whether a line may not begin with a character: punctuation that closes. */
static bool closes(uint32_t c)
{
    static const char *const signs = "、。〉》」』】〕！），．：；？］｝～％";
    size_t columns;
    for (const char *at = signs; *at;)
        if (tmk_utf8_shown(&at, &columns) == c)
            return true;
    return c < 0x80 && c != 0 && strchr("!%),.:;?]}'", (int)c);
}

/* Returns whether a line may not end with a character: punctuation that opens. */
static bool opens(uint32_t c)
{
    static const char *const signs = "〈《「『【〔（［｛";
    size_t columns;
    for (const char *at = signs; *at;)
        if (tmk_utf8_shown(&at, &columns) == c)
            return true;
    return c < 0x80 && c != 0 && strchr("([{", (int)c);
}

size_t tmk_utf8_piece(const char *text)
{
    const char *at = text;
    size_t columns, next_columns;
    for (uint32_t c = tmk_utf8_shown(&at, &columns); *at && *at != ' ' && *at != '\n';) {
        const char *end = at;
        uint32_t next = tmk_utf8_shown(&at, &next_columns);
        if ((columns == 2 || next_columns == 2) && !opens(c) && !closes(next))
            return (size_t)(end - text);
        c = next;
        columns = next_columns;
    }
    return (size_t)(at - text);
}

const char *tmk_utf8_tail(const char *text, size_t width)
{
    size_t columns;
    for (size_t left = tmk_utf8_width(text); left > width; left -= columns)
        (void)tmk_utf8_shown(&text, &columns);
    return text;
}

size_t tmk_utf8_fill(FILE *out, const char *text, size_t width)
{
    size_t written = 0;
    for (;;) {
        const char *from = text;
        size_t columns;
        uint32_t c = tmk_utf8_shown(&text, &columns);
        if (c == 0 || written + columns > width)
            return written;
        written += columns;
        char narrow =
            c > 0x7f && tmk_glyph_is_ascii() ? tmk_glyph_narrow(from, (size_t)(text - from)) : '\0';
        if (c == TMK_UTF8_BAD)
            fputs(tmk_glyph_is_ascii() ? "?" : "\xef\xbf\xbd", out);
        else if (narrow)
            fputc(narrow, out);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

size_t tmk_utf8_write(FILE *out, const char *text, size_t width)
{
    if (tmk_utf8_width(text) <= width)
        return tmk_utf8_fill(out, text, width);
    if (width == 0)
        return 0;
    size_t written = tmk_utf8_fill(out, text, width - 1);
    fputs(tmk_glyph_is_ascii() ? "~" : "…", out);
    return written + 1;
}

size_t tmk_utf8_repair(const char *text, char *to, size_t room)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t n = 0;
    for (;;) {
        const char *from = text;
        uint32_t c = tmk_utf8_next(&text);
        bool is_bad = c == TMK_UTF8_BAD;
        size_t part = is_bad ? sizeof replacement - 1 : (size_t)(text - from);
        if (c == 0 || part >= room - n)
            break;
        memcpy(to + n, is_bad ? replacement : from, part);
        n += part;
    }
    to[n] = '\0';
    return n;
}
