/* SPDX-License-Identifier: MIT */
/* kit/textmap.c - see textmap.h. Open addressing, at most half full. */
#include "kit/textmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/valid.h"
#include "kit/grow.h"
#include "kit/seeded_hash.h"

enum { FIRST_SLOTS = 64 };

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static uint32_t slot_of(const struct tmk_textmap *m, const char *text)
{
    uint32_t mask = m->n_slots - 1;
    uint32_t at = (text ? (uint32_t)tmk_hash_seeded_bytes(text, strlen(text)) : 0) & mask;
    while (m->slots[at] && !same(m->texts[m->slots[at] - 1], text))
        at = (at + 1) & mask;
    return at;
}

static int widen(struct tmk_textmap *m)
{
    uint32_t n_slots = m->n_slots ? 2 * m->n_slots : FIRST_SLOTS;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return TMK_ENOMEM;
    free(m->slots);
    m->slots = slots;
    m->n_slots = n_slots;
    for (uint64_t i = 0; i < m->n; i++)
        slots[slot_of(m, m->texts[i])] = (uint32_t)i + 1;
    return 0;
}

int tmk_textmap_put(struct tmk_textmap *m, const char *text, uint32_t *ret)
{
    if (m->n >= m->n_slots / 2 && widen(m) < 0)
        return TMK_ENOMEM;
    uint32_t at = slot_of(m, text);
    if (m->slots[at] == 0) {
        const char **more = tmk_grow(m->texts, m->n + 1, &m->room, sizeof *more);
        if (!more)
            return TMK_ENOMEM;
        m->texts = more;
        m->texts[m->n++] = text;
        m->slots[at] = (uint32_t)m->n;
    }
    *ret = m->slots[at] - 1;
    TMK_ASSERT_VALID(tmk_textmap_is_valid(m), m->n * 8 + m->n_slots / 4);
    return 0;
}

bool tmk_textmap_find(const struct tmk_textmap *m, const char *text, uint32_t *ret)
{
    uint32_t found = m->n_slots ? m->slots[slot_of(m, text)] : 0;
    if (found)
        *ret = found - 1;
    return found != 0;
}

void tmk_textmap_fini(struct tmk_textmap *m)
{
    free(m->texts);
    free(m->slots);
    *m = (struct tmk_textmap){0};
}
