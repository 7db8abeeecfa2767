/* SPDX-License-Identifier: MIT */
/* kit/wildcard.c - see wildcard.h. */
#include "kit/wildcard.h"

#include <fnmatch.h>
#include <string.h>

void tmk_wildcard_read(struct tmk_wildcard *w, const char *pattern)
{
    size_t n = strlen(pattern);
    bool is_open_before = n > 0 && pattern[0] == '*';
    bool is_open_behind = n > 1 && pattern[n - 1] == '*';
    *w = (struct tmk_wildcard){.pattern = pattern, .plain = pattern + is_open_before};
    w->n = n - is_open_before - is_open_behind;
    if (strcspn(w->plain, "*?[\\") < w->n)
        w->kind = TMK_WILDCARD_OTHER;
    else if (is_open_before)
        w->kind = is_open_behind ? TMK_WILDCARD_HAS : TMK_WILDCARD_ENDS;
    else
        w->kind = is_open_behind ? TMK_WILDCARD_BEGINS : TMK_WILDCARD_IS;
}

bool tmk_wildcard_matches(const struct tmk_wildcard *w, const char *text, size_t n)
{
    if (w->kind == TMK_WILDCARD_OTHER)
        return fnmatch(w->pattern, text, 0) == 0;
    if (n < w->n)
        return false;
    switch (w->kind) {
    case TMK_WILDCARD_IS:
        return n == w->n && memcmp(text, w->plain, n) == 0;
    case TMK_WILDCARD_BEGINS:
        return memcmp(text, w->plain, w->n) == 0;
    case TMK_WILDCARD_ENDS:
        return memcmp(text + n - w->n, w->plain, w->n) == 0;
    default:
        return memmem(text, n, w->plain, w->n) != NULL;
    }
}
