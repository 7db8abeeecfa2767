/* SPDX-License-Identifier: MIT */
/* cli/output/tree.c - see tree.h. */
#include "cli/output/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum { PATH_BYTES = 512 };

void tmk_tree_init(struct tmk_tree *t, FILE *out, bool is_csv, bool is_safe)
{
    *t = (struct tmk_tree){.is_csv = is_csv};
    tmk_json_init(&t->json, out, 4);
    tmk_csv_init(&t->csv, out, is_safe);
    if (!is_csv)
        return;
    static const char *const titles[] = {"section", "item", "key", "value"};
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        tmk_csv_text(&t->csv, titles[i]);
    tmk_csv_end_row(&t->csv);
}

static void enter(struct tmk_tree *t, const char *key, bool is_list)
{
    assert(t->depth < TMK_TREE_MAX_DEPTH);
    if (t->depth > 0 && t->levels[t->depth - 1].is_list)
        t->levels[t->depth - 1].n++;
    t->levels[t->depth++] = (struct tmk_tree_level){.name = key, .is_list = is_list};
}

void tmk_tree_object(struct tmk_tree *t, const char *key)
{
    enter(t, key, false);
    if (!t->is_csv)
        tmk_json_object(&t->json, key);
}

void tmk_tree_list(struct tmk_tree *t, const char *key)
{
    enter(t, key, true);
    if (!t->is_csv)
        tmk_json_array(&t->json, key);
}

void tmk_tree_end(struct tmk_tree *t)
{
    assert(t->depth > 0);
    t->depth--;
    if (!t->is_csv)
        tmk_json_end(&t->json);
}

/* ---- values ---- */

static void add(char *path, const char *part)
{
    size_t n = strlen(path);
    snprintf(path + n, PATH_BYTES - n, "%s%s", n ? "." : "", part);
}

/* section, item and key of a row; the value follows. */
static void begin_row(struct tmk_tree *t, const char *key)
{
    char section[PATH_BYTES] = "", item[PATH_BYTES] = "";
    for (unsigned i = 0; i < t->depth; i++) {
        const struct tmk_tree_level *level = &t->levels[i];
        if (level->name)
            add(section, level->name);
        if (level->is_list && i + 1 < t->depth) {
            char number[24];
            snprintf(number, sizeof number, "%" PRIu64, level->n - 1);
            add(item, number);
        }
    }
    tmk_csv_text(&t->csv, section[0] ? section : NULL);
    tmk_csv_number(&t->csv, item[0] ? item : NULL);
    tmk_csv_text(&t->csv, key);
}

void tmk_tree_text(struct tmk_tree *t, const char *key, const char *text)
{
    if (!t->is_csv) {
        tmk_json_text(&t->json, key, text);
        return;
    }
    begin_row(t, key);
    tmk_csv_text(&t->csv, text);
    tmk_csv_end_row(&t->csv);
}

void tmk_tree_u64(struct tmk_tree *t, const char *key, uint64_t value)
{
    if (!t->is_csv) {
        tmk_json_u64(&t->json, key, value);
        return;
    }
    begin_row(t, key);
    tmk_csv_u64(&t->csv, value);
    tmk_csv_end_row(&t->csv);
}

void tmk_tree_i64(struct tmk_tree *t, const char *key, int64_t value)
{
    if (!t->is_csv) {
        tmk_json_i64(&t->json, key, value);
        return;
    }
    begin_row(t, key);
    tmk_csv_i64(&t->csv, value);
    tmk_csv_end_row(&t->csv);
}

void tmk_tree_double(struct tmk_tree *t, const char *key, double value)
{
    char text[40];
    if (!t->is_csv) {
        tmk_json_double(&t->json, key, value);
        return;
    }
    snprintf(text, sizeof text, "%.17g", value);
    begin_row(t, key);
    tmk_csv_number(&t->csv, text);
    tmk_csv_end_row(&t->csv);
}

void tmk_tree_bool(struct tmk_tree *t, const char *key, bool value)
{
    if (!t->is_csv)
        tmk_json_bool(&t->json, key, value);
    else
        tmk_tree_text(t, key, value ? "true" : "false");
}

void tmk_tree_null(struct tmk_tree *t, const char *key)
{
    tmk_tree_text(t, key, NULL);
}
