/* SPDX-License-Identifier: MIT */
/* cli/page/page_columns.c - see page_columns.h. */
#include "cli/page/page_columns.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/grow.h"

enum { MAX_NAME = 64, MAX_LEB128 = 10 };

void tmk_page_column(struct tmk_page_columns *c, enum tmk_page_kind kind, const char *name, ...)
{
    char text[MAX_NAME];
    va_list args;
    va_start(args, name);
    vsnprintf(text, sizeof text, name, args);
    va_end(args);
    if (TMK_GROW(c->columns, c->n_columns + 1, c->column_room) < 0)
        tmk_die("out of memory");
    c->last = 0;
    c->columns[c->n_columns++] = (struct tmk_page_column){
        tmk_xarena_text(&c->arena, text, strlen(text)), kind, c->n_bytes, 0};
}

static void put_leb128(struct tmk_page_columns *c, uint64_t value)
{
    if (TMK_GROW(c->bytes, c->n_bytes + MAX_LEB128, c->byte_room) < 0)
        tmk_die("out of memory");
    for (; value > 0x7f; value >>= 7)
        c->bytes[c->n_bytes++] = (uint8_t)(value | 0x80);
    c->bytes[c->n_bytes++] = (uint8_t)value;
}

void tmk_page_put(struct tmk_page_columns *c, uint64_t value)
{
    struct tmk_page_column *column = &c->columns[c->n_columns - 1];
    uint64_t difference = value - c->last;
    column->n++;
    put_leb128(c,
               column->kind == TMK_PAGE_PLAIN ? value : difference << 1 ^ (0 - (difference >> 63)));
    c->last = value;
}

void tmk_page_put_if(struct tmk_page_columns *c, bool is_known, uint64_t value)
{
    tmk_page_put(c, is_known ? value + 1 : 0);
}

void tmk_page_put_text(struct tmk_page_columns *c, const char *text)
{
    uint32_t number = 0;
    if (text && !tmk_textmap_find(&c->strings, text, &number) &&
        tmk_textmap_put(&c->strings, tmk_xarena_text(&c->arena, text, strlen(text)), &number) < 0)
        tmk_die("out of memory");
    tmk_page_put_if(c, text != NULL, number);
}

void tmk_page_columns_json(const struct tmk_page_columns *c, struct tmk_tree *t)
{
    tmk_tree_object(t, "columns");
    for (uint64_t i = 0; i < c->n_columns; i++) {
        const struct tmk_page_column *column = &c->columns[i];
        uint64_t end = i + 1 < c->n_columns ? column[1].start : c->n_bytes;
        tmk_tree_list(t, column->name);
        tmk_tree_u64(t, NULL, column->start);
        tmk_tree_u64(t, NULL, end - column->start);
        tmk_tree_u64(t, NULL, column->n);
        tmk_tree_u64(t, NULL, column->kind);
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_list(t, "strings");
    for (uint64_t i = 0; i < c->strings.n; i++)
        tmk_tree_text(t, NULL, c->strings.texts[i]);
    tmk_tree_end(t);
}

void tmk_page_columns_fini(struct tmk_page_columns *c)
{
    free(c->bytes);
    free(c->columns);
    tmk_textmap_fini(&c->strings);
    tmk_arena_fini(&c->arena);
    *c = (struct tmk_page_columns){0};
}
