/* SPDX-License-Identifier: MIT */
/* kit/wildcard.h - patterns of fnmatch(3), read once: most have no sign but '*' at their ends, so
 * comparing bytes is enough to match them. */
#ifndef TMK_KIT_WILDCARD_H
#define TMK_KIT_WILDCARD_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_wildcard {
    enum {
        TMK_WILDCARD_IS,
        TMK_WILDCARD_BEGINS,
        TMK_WILDCARD_ENDS,
        TMK_WILDCARD_HAS,
        TMK_WILDCARD_OTHER
    } kind;
    const char *pattern; /* borrowed, as it came */
    const char *plain;   /* in it, without stars at its ends */
    size_t n;            /* bytes of that */
};

/* `pattern` is borrowed for as long as the result is used. */
void tmk_wildcard_read(struct tmk_wildcard *w, const char *pattern);

/* Whether fnmatch(pattern, text, 0) == 0, for a text of n bytes and a zero byte. */
bool tmk_wildcard_matches(const struct tmk_wildcard *w, const char *text, size_t n);

#endif
