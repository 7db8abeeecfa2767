/* SPDX-License-Identifier: MIT */
/* cli/page/page_columns.h - columns of whole numbers, as the page reads them, and the texts that
 * some of the numbers stand for.
 *
 *     tmk_page_column(c, TMK_PAGE_DELTA, "bins.%u.max", device);
 *     for (...)
 *         tmk_page_put(c, bytes);
 *
 * A number is written as LEB128: seven bits a byte, the lowest first. In a column of kind DELTA it
 * is the difference from the number before, zigzag: 0, -1, 1, -2 become 0, 1, 2, 3. docs/page.md
 * lists the columns. */
#ifndef TMK_CLI_PAGE_PAGE_COLUMNS_H
#define TMK_CLI_PAGE_PAGE_COLUMNS_H

#include <stdint.h>

#include "kit/arena.h"
#include "kit/textmap.h"
#include "kit/tree.h"

enum tmk_page_kind { TMK_PAGE_PLAIN, TMK_PAGE_DELTA };

struct tmk_page_column {
    const char *name;
    enum tmk_page_kind kind;
    uint64_t start, n; /* of its bytes; numbers */
};

struct tmk_page_columns {
    uint8_t *bytes;
    uint64_t n_bytes, byte_room;
    struct tmk_page_column *columns;
    uint64_t n_columns, column_room;
    uint64_t last; /* of the column under way */
    struct tmk_textmap strings;
    struct tmk_arena arena;
};

void tmk_page_columns_fini(struct tmk_page_columns *c); /* takes a zeroed one */

/* Begin a column; the one before ends. */
void tmk_page_column(struct tmk_page_columns *c, enum tmk_page_kind kind, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
void tmk_page_put(struct tmk_page_columns *c, uint64_t value);
/* Put a number plus one, or 0 when it is not known. */
void tmk_page_put_if(struct tmk_page_columns *c, bool is_known, uint64_t value);
/* Put the number of a text; 0: NULL. The text is copied. */
void tmk_page_put_text(struct tmk_page_columns *c, const char *text);

/* Write the keys "columns" (name: start, bytes, numbers, kind) and "strings" (text 1, 2 ...). */
void tmk_page_columns_json(const struct tmk_page_columns *c, struct tmk_tree *t);

#endif
