/* SPDX-License-Identifier: MIT */
/* kit/tree.h - the one writer of machine-readable output of commands: a tree of keys and values, as
 * JSON or as CSV.
 *
 *     struct tmk_tree t;
 *     tmk_tree_init_json(&t, stdout, 2);
 *     tmk_tree_object(&t, NULL);
 *     tmk_tree_bytes(&t, "reserved", reserved_bytes);
 *     tmk_tree_end(&t);
 *
 * While a tree is open, texts are made in English (kit/language.h). A value that is not known is
 * written all the same: as null in JSON, as an empty cell in CSV. Each function below says which
 * value stands for "unknown"; the caller never writes a null.
 *
 * Forms:
 * - JSON.
 * - Long CSV, for any tree: each value is a row `section,item,key,value`. Section is the path of
 *   the names around the value, item the numbers of the list elements around it (from 0), so that
 *   processes[0].peak.by_category[2].bytes is `processes.peak.by_category,0.2,bytes,...`.
 * - Rows of CSV, for a list of flat objects that all have the same keys: an object is a row. The
 *   first object is written twice, first for the titles, which are its keys. */
#ifndef TMK_KIT_TREE_H
#define TMK_KIT_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kit/csv.h"
#include "kit/json.h"

enum tmk_tree_form { TMK_TREE_JSON, TMK_TREE_LONG, TMK_TREE_TITLES, TMK_TREE_ROWS };

struct tmk_tree_level {
    const char *name; /* of the object or list; NULL: an element of a list */
    bool is_list;
    uint64_t n; /* elements so far, of a list */
};

struct tmk_tree {
    enum tmk_tree_form form;
    struct tmk_json json;
    struct tmk_csv csv;
    unsigned depth;
    struct tmk_tree_level levels[TMK_JSON_MAX_DEPTH];
};

/* `lines` as for tmk_json_init(). */
void tmk_tree_init_json(struct tmk_tree *t, FILE *out, unsigned lines);
/* Writes the titles. `is_safe`: without formulas, see kit/csv.h. */
void tmk_tree_init_csv(struct tmk_tree *t, FILE *out, bool is_safe);
/* The first object gives the titles, the others are rows. */
void tmk_tree_init_rows(struct tmk_tree *t, FILE *out, bool is_safe);

/* `key` inside an object, NULL inside a list and at the top; this holds for values too. */
void tmk_tree_object(struct tmk_tree *t, const char *key);
void tmk_tree_list(struct tmk_tree *t, const char *key);
void tmk_tree_end(struct tmk_tree *t);
/* Writes a value that is never known here. */
void tmk_tree_unknown(struct tmk_tree *t, const char *key);

/* Begins an object only if `is_known`; else writes the unknown value. Returns `is_known`: whether
 * the caller fills and ends the object. It is inline so that clang-tidy sees what it returns. */
static inline bool tmk_tree_object_if(struct tmk_tree *t, const char *key, bool is_known)
{
    if (is_known)
        tmk_tree_object(t, key);
    else
        tmk_tree_unknown(t, key);
    return is_known;
}

static inline bool tmk_tree_list_if(struct tmk_tree *t, const char *key, bool is_known)
{
    if (is_known)
        tmk_tree_list(t, key);
    else
        tmk_tree_unknown(t, key);
    return is_known;
}

/* Values. The remark says which one is unknown; where there is none, it is always known. */
void tmk_tree_text(struct tmk_tree *t, const char *key, const char *text);  /* NULL */
void tmk_tree_label(struct tmk_tree *t, const char *key, const char *text); /* NULL or "" */
void tmk_tree_bytes(struct tmk_tree *t, const char *key, uint64_t bytes);   /* TMK_BYTES_UNKNOWN */
/* A number that is counted from 0, such as a rank. */
void tmk_tree_number(struct tmk_tree *t, const char *key, int64_t number); /* negative */
void tmk_tree_u64(struct tmk_tree *t, const char *key, uint64_t value);
void tmk_tree_i64(struct tmk_tree *t, const char *key, int64_t value);
void tmk_tree_bool(struct tmk_tree *t, const char *key, bool value);
void tmk_tree_u64_if(struct tmk_tree *t, const char *key, bool is_known, uint64_t value);
void tmk_tree_i64_if(struct tmk_tree *t, const char *key, bool is_known, int64_t value);
void tmk_tree_bool_if(struct tmk_tree *t, const char *key, bool is_known, bool value);
void tmk_tree_double(struct tmk_tree *t, const char *key, double value); /* NAN, infinite */
/* Writes `decimals` digits after the point, at least one. */
void tmk_tree_fixed(struct tmk_tree *t, const char *key, double value, unsigned decimals);

#endif
