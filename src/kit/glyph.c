/* SPDX-License-Identifier: MIT */
/* kit/glyph.c - see glyph.h. Bars and curves are counted in eighths of a character. */
#include "kit/glyph.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

static bool uses_ascii;

static const struct {
    const char *sign, *ascii;
} signs[] = {
    {"═", "="},   {"─", "-"},  {"│", "|"},  {"┤", "+"},  {"└", "+"},  {"├", "+"},
    {"→", "->"},  {"←", "<-"}, {"↑", "^"},  {"↓", "v"},  {"×", "x"},  {"÷", "/"},
    {"≈", "~"},   {"–", "-"},  {"≤", "<="}, {"≥", ">="}, {"±", "+-"}, {"·", "-"},
    {"…", "..."}, {"•", "*"},  {"✓", "+"},  {"✗", "x"},
};

static const char *const upward[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const upward_ascii[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};
static const char *const rightward[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

void tmk_glyph_use_ascii(bool ascii)
{
    uses_ascii = ascii;
}

bool tmk_glyph_is_ascii(void)
{
    return uses_ascii;
}

const char *tmk_glyph(const char *sign)
{
    for (size_t i = 0; uses_ascii && i < TMK_N(signs); i++)
        if (strcmp(signs[i].sign, sign) == 0)
            return signs[i].ascii;
    assert(!uses_ascii);
    return sign;
}

char tmk_glyph_narrow(const char *at, size_t n)
{
    for (size_t i = 0; i < TMK_N(signs); i++)
        if (strlen(signs[i].sign) == n && memcmp(signs[i].sign, at, n) == 0)
            return signs[i].ascii[strlen(signs[i].ascii) - 1];
    return 0;
}

unsigned tmk_eighths(uint64_t value, uint64_t whole, unsigned eighths)
{
    if (value == 0 || whole == 0)
        return 0;
    unsigned n = (unsigned)((double)value / (double)whole * eighths + 0.5);
    return n == 0 ? 1 : n > eighths ? eighths : n;
}

const char *tmk_glyph_upward(unsigned eighths)
{
    return uses_ascii ? upward_ascii[eighths] : upward[eighths];
}

const char *tmk_bar(uint64_t part, uint64_t whole, unsigned width, char *buffer)
{
    unsigned eighths = tmk_eighths(part, whole, width * 8);
    char *at = buffer;
    if (uses_ascii) {
        unsigned n = eighths ? (eighths + 4) / 8 : 0;
        n += eighths > 0 && n == 0;
        memset(buffer, '#', n);
        buffer[n] = '\0';
        return buffer;
    }
    for (; eighths >= 8; eighths -= 8)
        at = stpcpy(at, rightward[8]);
    stpcpy(at, rightward[eighths]);
    return buffer;
}
