/* SPDX-License-Identifier: MIT */
/* kit/tree.c - see tree.h. */
#include "kit/tree.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kit/amount.h"
#include "kit/language.h"

enum { PATH_BYTES = 512 };

void tmk_tree_init_json(struct tmk_tree *t, FILE *out, unsigned lines)
{
    *t = (struct tmk_tree){.form = TMK_TREE_JSON};
    tmk_json_init(&t->json, out, lines);
}

void tmk_tree_init_csv(struct tmk_tree *t, FILE *out, bool is_safe)
{
    static const char *const titles[] = {"section", "item", "key", "value"};
    *t = (struct tmk_tree){.form = TMK_TREE_LONG};
    tmk_csv_init(&t->csv, out, is_safe);
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        tmk_csv_text(&t->csv, titles[i]);
    tmk_csv_end_row(&t->csv);
}

void tmk_tree_init_rows(struct tmk_tree *t, FILE *out, bool is_safe)
{
    *t = (struct tmk_tree){.form = TMK_TREE_TITLES};
    tmk_csv_init(&t->csv, out, is_safe);
}

/* ---- objects and lists ---- */

static void enter_level(struct tmk_tree *t, const char *key, bool is_list)
{
    assert(t->depth < TMK_JSON_MAX_DEPTH);
    if (t->depth == 0)
        tmk_language_begin_data();
    assert(t->form < TMK_TREE_TITLES || (t->depth == 0 && !is_list)); /* rows are flat */
    if (t->depth > 0 && t->levels[t->depth - 1].is_list)
        t->levels[t->depth - 1].n++;
    t->levels[t->depth++] = (struct tmk_tree_level){.name = key, .is_list = is_list};
}

void tmk_tree_object(struct tmk_tree *t, const char *key)
{
    enter_level(t, key, false);
    if (t->form == TMK_TREE_JSON)
        tmk_json_object(&t->json, key);
}

void tmk_tree_list(struct tmk_tree *t, const char *key)
{
    enter_level(t, key, true);
    if (t->form == TMK_TREE_JSON)
        tmk_json_array(&t->json, key);
}

void tmk_tree_end(struct tmk_tree *t)
{
    assert(t->depth > 0);
    t->depth--;
    if (t->form == TMK_TREE_JSON)
        tmk_json_end(&t->json);
    else if (t->form != TMK_TREE_LONG)
        tmk_csv_end_row(&t->csv);
    if (t->form == TMK_TREE_TITLES)
        t->form = TMK_TREE_ROWS;
    if (t->depth == 0)
        tmk_language_end_data();
}

/* ---- values ---- */

static void add_path_part(char *path, const char *part)
{
    size_t n = strlen(path);
    snprintf(path + n, PATH_BYTES - n, "%s%s", n ? "." : "", part);
}

/* Writes section, item and key of a row; the value follows. */
static void begin_long_row(struct tmk_tree *t, const char *key)
{
    char section[PATH_BYTES] = "", item[PATH_BYTES] = "";
    for (unsigned i = 0; i < t->depth; i++) {
        const struct tmk_tree_level *level = &t->levels[i];
        if (level->name)
            add_path_part(section, level->name);
        if (level->is_list && i + 1 < t->depth) {
            char number[24];
            snprintf(number, sizeof number, "%" PRIu64, level->n - 1);
            add_path_part(item, number);
        }
    }
    tmk_csv_text(&t->csv, section[0] ? section : NULL);
    tmk_csv_number(&t->csv, item[0] ? item : NULL);
    tmk_csv_text(&t->csv, key);
}

/* Writes a value in CSV: `text` as it is, NULL for unknown. */
static void put_csv_value(struct tmk_tree *t, const char *key, const char *text, bool is_number)
{
    if (t->form == TMK_TREE_LONG)
        begin_long_row(t, key);
    if (t->form == TMK_TREE_TITLES)
        tmk_csv_text(&t->csv, key);
    else if (is_number)
        tmk_csv_number(&t->csv, text);
    else
        tmk_csv_text(&t->csv, text);
    if (t->form == TMK_TREE_LONG)
        tmk_csv_end_row(&t->csv);
}

/* The only place that says what an unknown value looks like. */
void tmk_tree_unknown(struct tmk_tree *t, const char *key)
{
    if (t->form == TMK_TREE_JSON)
        tmk_json_null(&t->json, key);
    else
        put_csv_value(t, key, NULL, false);
}

void tmk_tree_text(struct tmk_tree *t, const char *key, const char *text)
{
    if (!text)
        tmk_tree_unknown(t, key);
    else if (t->form == TMK_TREE_JSON)
        tmk_json_text(&t->json, key, text);
    else
        put_csv_value(t, key, text, false);
}

void tmk_tree_label(struct tmk_tree *t, const char *key, const char *text)
{
    tmk_tree_text(t, key, text && text[0] ? text : NULL);
}

void tmk_tree_u64(struct tmk_tree *t, const char *key, uint64_t value)
{
    char text[24];
    if (t->form == TMK_TREE_JSON) {
        tmk_json_u64(&t->json, key, value);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_csv_value(t, key, text, true);
}

void tmk_tree_i64(struct tmk_tree *t, const char *key, int64_t value)
{
    char text[24];
    if (t->form == TMK_TREE_JSON) {
        tmk_json_i64(&t->json, key, value);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64, value);
    put_csv_value(t, key, text, true);
}

void tmk_tree_bool(struct tmk_tree *t, const char *key, bool value)
{
    if (t->form == TMK_TREE_JSON)
        tmk_json_bool(&t->json, key, value);
    else
        put_csv_value(t, key, value ? "true" : "false", false);
}

void tmk_tree_double(struct tmk_tree *t, const char *key, double value)
{
    char text[40];
    if (!isfinite(value)) {
        tmk_tree_unknown(t, key);
    } else if (t->form == TMK_TREE_JSON) {
        tmk_json_double(&t->json, key, value);
    } else {
        snprintf(text, sizeof text, "%.17g", value);
        put_csv_value(t, key, text, true);
    }
}

void tmk_tree_fixed(struct tmk_tree *t, const char *key, double value, unsigned decimals)
{
    char text[400];
    if (!isfinite(value)) {
        tmk_tree_unknown(t, key);
    } else if (t->form == TMK_TREE_JSON) {
        tmk_json_fixed(&t->json, key, value, decimals);
    } else {
        snprintf(text, sizeof text, "%.*f", decimals ? (int)decimals : 1, value);
        put_csv_value(t, key, text, true);
    }
}

/* ---- values that may be unknown ---- */

void tmk_tree_bytes(struct tmk_tree *t, const char *key, uint64_t bytes)
{
    tmk_tree_u64_if(t, key, bytes != TMK_BYTES_UNKNOWN, bytes);
}

void tmk_tree_number(struct tmk_tree *t, const char *key, int64_t number)
{
    tmk_tree_i64_if(t, key, number >= 0, number);
}

void tmk_tree_u64_if(struct tmk_tree *t, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        tmk_tree_u64(t, key, value);
    else
        tmk_tree_unknown(t, key);
}

void tmk_tree_i64_if(struct tmk_tree *t, const char *key, bool is_known, int64_t value)
{
    if (is_known)
        tmk_tree_i64(t, key, value);
    else
        tmk_tree_unknown(t, key);
}

void tmk_tree_bool_if(struct tmk_tree *t, const char *key, bool is_known, bool value)
{
    if (is_known)
        tmk_tree_bool(t, key, value);
    else
        tmk_tree_unknown(t, key);
}
