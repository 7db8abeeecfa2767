/* SPDX-License-Identifier: MIT */
/* kit/textmap.h - numbers for texts: equal texts get the same number, in order of first coming.
 *
 * Zero is an empty map. Texts are borrowed and must outlive it; NULL is a text of its own. */
#ifndef TMK_KIT_TEXTMAP_H
#define TMK_KIT_TEXTMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"

struct tmk_textmap {
    const char **texts; /* by number */
    uint64_t n, room;
    struct tmk_index index; /* of number + 1 */
};

/* Gives `text` a number, from 0, unless it has one. Returns 0 and *ret, or TMK_ENOMEM. */
int tmk_textmap_put(struct tmk_textmap *m, const char *text, uint32_t *ret);
/* The same, but false when the text has no number. */
bool tmk_textmap_find(const struct tmk_textmap *m, const char *text, uint32_t *ret);
void tmk_textmap_fini(struct tmk_textmap *m);

/* The invariants (base/valid.h): the index is valid and has a number for each text; a search for a
 * number's text finds that number, so no two texts are equal. */
bool tmk_textmap_is_valid(const struct tmk_textmap *m);
uint64_t tmk_textmap_check_cost(const struct tmk_textmap *m); /* in items */

#endif
