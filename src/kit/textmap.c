/* SPDX-License-Identifier: MIT */
/* kit/textmap.c - see textmap.h. */
#include "kit/textmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/valid.h"
#include "kit/grow.h"
#include "kit/seeded_hash.h"

static int is_same_map_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t hash_map_text(const char *text)
{
    return text ? tmk_hash_seeded_bytes(text, strlen(text)) : 0;
}

/* The text's number + 1; 0 when it has none. */
static uint32_t find_text(const struct tmk_textmap *m, uint64_t hash, const char *text)
{
    struct tmk_probe probe = tmk_index_probe(&m->index, hash);
    uint32_t i;
    while ((i = tmk_probe_next(&probe)) && !is_same_map_text(m->texts[i - 1], text))
        continue;
    return i;
}

int tmk_textmap_put(struct tmk_textmap *m, const char *text, uint32_t *ret)
{
    uint64_t hash = hash_map_text(text);
    uint32_t found = find_text(m, hash, text);
    if (!found) {
        if (TMK_GROW(m->texts, m->n + 1, m->room) < 0 || tmk_grow_index(&m->index) < 0)
            return TMK_ENOMEM;
        m->texts[m->n++] = text;
        found = (uint32_t)m->n;
        tmk_index_add(&m->index, hash, found);
    }
    *ret = found - 1;
    TMK_ASSERT_VALID(tmk_textmap_is_valid(m), tmk_textmap_check_cost(m));
    return 0;
}

bool tmk_textmap_find(const struct tmk_textmap *m, const char *text, uint32_t *ret)
{
    uint32_t found = find_text(m, hash_map_text(text), text);
    if (found)
        *ret = found - 1;
    return found != 0;
}

void tmk_textmap_fini(struct tmk_textmap *m)
{
    free(m->texts);
    free(m->index.slots);
    *m = (struct tmk_textmap){0};
}
