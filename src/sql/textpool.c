/* SPDX-License-Identifier: MIT */
/* sql/textpool.c - see textpool.h. */
#include "sql/textpool.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kit/grow.h"

void tmk_textpool_fini(struct tmk_textpool *p)
{
    tmk_textmap_fini(&p->map);
    tmk_arena_fini(&p->copies);
    free(p->lengths);
    *p = (struct tmk_textpool){0};
}

static uint32_t fail(struct tmk_textpool *p)
{
    p->failed = true;
    return 0;
}

uint32_t tmk_textpool_put(struct tmk_textpool *p, const char *text)
{
    if (!text)
        return 0;
    size_t length = strlen(text);
    uint64_t n_before = p->map.n;
    uint32_t number;
    if (TMK_GROW(p->lengths, n_before + 1, p->length_room) < 0 || length > INT_MAX)
        return fail(p);
    if (tmk_textmap_put(&p->map, text, &number) < 0)
        return fail(p);
    if (p->map.n > n_before)
        p->lengths[number] = (int)length;
    return number + 1;
}

uint32_t tmk_textpool_copy(struct tmk_textpool *p, const char *text, size_t n)
{
    const char *copy = tmk_arena_text(&p->copies, text, n);
    return copy ? tmk_textpool_put(p, copy) : fail(p);
}

uint32_t tmk_textpool_keep(struct tmk_textpool *p, const char *text)
{
    uint32_t number;
    if (tmk_textmap_find(&p->map, text, &number))
        return number + 1;
    return tmk_textpool_copy(p, text, strlen(text));
}

int tmk_textpool_compare(const struct tmk_textpool *p, uint32_t a, uint32_t b)
{
    if (a == 0 || b == 0)
        return (a != 0) - (b != 0);
    int na = tmk_textpool_length(p, a), nb = tmk_textpool_length(p, b);
    int order =
        memcmp(tmk_textpool_text(p, a), tmk_textpool_text(p, b), (size_t)(na < nb ? na : nb));
    return order ? order : (na > nb) - (na < nb);
}
