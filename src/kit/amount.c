/* SPDX-License-Identifier: MIT */
/* kit/amount.c - see amount.h. */
#include "kit/amount.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"

#define NS_PER_S 1000000000u

/* ---- for people ---- */

const char *tmk_size_text(uint64_t size_bytes, char *buffer)
{
    static const struct {
        const char *unit;
        unsigned shift;
        int decimals;
    } steps[] = {{"EiB", 60, 2}, {"PiB", 50, 2}, {"TiB", 40, 2},
                 {"GiB", 30, 2}, {"MiB", 20, 1}, {"KiB", 10, 1}};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (size_bytes >> steps[i].shift == 0)
            continue;
        double value = (double)size_bytes / (double)((uint64_t)1 << steps[i].shift);
        snprintf(buffer, TMK_AMOUNT_BYTES, "%.*f %s", steps[i].decimals, value, steps[i].unit);
        return buffer;
    }
    snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " B", size_bytes);
    return buffer;
}

const char *tmk_time_text(uint64_t ns, char *buffer)
{
    const double value = (double)ns;
    const uint64_t seconds = ns / NS_PER_S;
    if (ns == 0)
        snprintf(buffer, TMK_AMOUNT_BYTES, "0 s");
    else if (ns < 1000)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " ns", ns);
    else if (ns < 1000000)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%.1f us", value / 1e3);
    else if (ns < NS_PER_S)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%.2f ms", value / 1e6);
    else if (seconds < 120)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%.3f s", value / 1e9);
    else if (seconds < 7200)
        snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " min %02" PRIu64 " s", seconds / 60,
                 seconds % 60);
    else
        snprintf(buffer, TMK_AMOUNT_BYTES, "%" PRIu64 " h %02" PRIu64 " min", seconds / 3600,
                 seconds / 60 % 60);
    return buffer;
}

const char *tmk_count_text(uint64_t n, char *buffer)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, n);
    char *out = buffer;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *out++ = ',';
        *out++ = digits[i];
    }
    *out = '\0';
    return buffer;
}

const char *tmk_percent_text(uint64_t part, uint64_t whole, char *buffer)
{
    double percent = whole ? 100.0 * (double)part / (double)whole : 0;
    if (whole == 0)
        strcpy(buffer, "-");
    else if (part > 0 && percent < 1)
        strcpy(buffer, "<1 %");
    else
        snprintf(buffer, TMK_AMOUNT_BYTES, "%.0f %%", percent);
    return buffer;
}

/* ---- from people ---- */

struct amount_unit {
    const char *name;
    uint64_t factor;
};

static const struct amount_unit size_units[] = {
    {"", 1},
    {"b", 1},
    {"k", 1 << 10},
    {"kb", 1 << 10},
    {"kib", 1 << 10},
    {"m", 1 << 20},
    {"mb", 1 << 20},
    {"mib", 1 << 20},
    {"g", 1 << 30},
    {"gb", 1 << 30},
    {"gib", 1 << 30},
    {"t", (uint64_t)1 << 40},
    {"tb", (uint64_t)1 << 40},
    {"tib", (uint64_t)1 << 40},
    {NULL, 0},
};

static const struct amount_unit time_units[] = {
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000000},
    {"s", NS_PER_S},
    {"min", 60 * (uint64_t)NS_PER_S},
    {"m", 60 * (uint64_t)NS_PER_S},
    {"h", 3600 * (uint64_t)NS_PER_S},
    {NULL, 0},
};

/* Reads a number, perhaps with a fraction, and one of the units. Whole numbers stay exact. */
static int parse_amount(const char *text, const struct amount_unit *units, uint64_t *ret)
{
    size_t n_whole = strspn(text, "0123456789");
    size_t n_number = n_whole;
    if (text[n_whole] == '.')
        n_number += 1 + strspn(text + n_whole + 1, "0123456789");
    if (n_whole == 0 || (n_number > n_whole && n_number == n_whole + 1))
        return TMK_EINVAL;
    const char *name = text + n_number;
    while (*name == ' ')
        name++;
    while (units->name && strcasecmp(units->name, name) != 0)
        units++;
    if (!units->name)
        return TMK_EINVAL;
    errno = 0;
    unsigned long long whole = strtoull(text, NULL, 10);
    if (errno || whole > UINT64_MAX / units->factor / 2)
        return TMK_EINVAL;
    double fraction = n_number > n_whole ? strtod(text + n_whole, NULL) : 0;
    *ret = whole * units->factor + (uint64_t)llround(fraction * (double)units->factor);
    return 0;
}

int tmk_size_parse(const char *text, uint64_t *ret_bytes)
{
    return parse_amount(text, size_units, ret_bytes);
}

int tmk_time_parse(const char *text, uint64_t *ret_ns)
{
    return parse_amount(text, time_units, ret_ns);
}

int tmk_seconds_parse(const char *text, uint64_t *ret_ns)
{
    char seconds[64];
    if (tmk_time_parse(text, ret_ns) == 0)
        return 0;
    int n = snprintf(seconds, sizeof seconds, "%ss", text);
    return (size_t)n < sizeof seconds ? tmk_time_parse(seconds, ret_ns) : TMK_EINVAL;
}

int tmk_integer_parse(const char *text, int64_t *ret)
{
    const char *digits = text + (*text == '-' || *text == '+');
    if (!isdigit((unsigned char)*digits))
        return TMK_EINVAL;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end)
        return TMK_EINVAL;
    *ret = value;
    return 0;
}
