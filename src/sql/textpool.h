/* SPDX-License-Identifier: MIT */
/* sql/textpool.h - the texts of all tables, each stored once and known by its number.
 *
 * Rows hold numbers, so that a column of texts costs four bytes a row, equal texts are equal
 * numbers whatever process they came from, and SQLite gets a pointer that stays good until close.
 * Number 0 is "no text". Running out of memory is remembered: `failed` is asked once after many
 * puts. */
#ifndef TMK_SQL_TEXTPOOL_H
#define TMK_SQL_TEXTPOOL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kit/arena.h"
#include "kit/textmap.h"

struct tmk_textpool {
    struct tmk_textmap map;
    int *lengths; /* by number in the map */
    uint64_t length_room;
    struct tmk_arena copies;
    bool failed;
};

/* Zero is an empty pool. */
void tmk_textpool_fini(struct tmk_textpool *p);

/* The number of `text`, which must outlive the pool; 0 for NULL and without memory. */
uint32_t tmk_textpool_put(struct tmk_textpool *p, const char *text);
/* The same for a text that goes away. */
uint32_t tmk_textpool_copy(struct tmk_textpool *p, const char *text, size_t n);
/* The same for a text that is often there already: only a new one is copied. */
uint32_t tmk_textpool_keep(struct tmk_textpool *p, const char *text);

/* The text of a number that is not 0. */
static inline const char *tmk_textpool_text(const struct tmk_textpool *p, uint32_t id)
{
    assert(id > 0 && id <= p->map.n);
    return p->map.texts[id - 1];
}

static inline int tmk_textpool_length(const struct tmk_textpool *p, uint32_t id)
{
    assert(id > 0 && id <= p->map.n);
    return p->lengths[id - 1];
}

/* Compare by bytes, as SQLite's BINARY collation does; 0, the unknown, comes first. */
int tmk_textpool_compare(const struct tmk_textpool *p, uint32_t a, uint32_t b);

#endif
