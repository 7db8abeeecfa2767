/* SPDX-License-Identifier: MIT */
/* cli/output/tree.h - a report for machines: one tree of values, written as JSON or as long CSV.
 *
 * In CSV each value is a row `section,item,key,value`: section is the path of the names around the
 * value, item the numbers of the list elements around it (from 0), so that
 * processes[0].peak.by_category[2].bytes is `processes.peak.by_category,0.2,bytes,...`. */
#ifndef TMK_CLI_OUTPUT_TREE_H
#define TMK_CLI_OUTPUT_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kit/csv.h"
#include "kit/json.h"

enum { TMK_TREE_MAX_DEPTH = 12 };

struct tmk_tree_level {
    const char *name; /* of the object or list; NULL: an element of a list */
    bool is_list;
    uint64_t n; /* elements so far, of a list */
};

struct tmk_tree {
    bool is_csv;
    struct tmk_json json;
    struct tmk_csv csv;
    unsigned depth;
    struct tmk_tree_level levels[TMK_TREE_MAX_DEPTH];
};

/* `is_safe`: CSV without formulas, see kit/csv.h. */
void tmk_tree_init(struct tmk_tree *t, FILE *out, bool is_csv, bool is_safe);
void tmk_tree_object(struct tmk_tree *t, const char *key);
void tmk_tree_list(struct tmk_tree *t, const char *key);
void tmk_tree_end(struct tmk_tree *t);
void tmk_tree_text(struct tmk_tree *t, const char *key, const char *text); /* NULL: unknown */
void tmk_tree_u64(struct tmk_tree *t, const char *key, uint64_t value);
void tmk_tree_i64(struct tmk_tree *t, const char *key, int64_t value);
void tmk_tree_double(struct tmk_tree *t, const char *key, double value);
void tmk_tree_bool(struct tmk_tree *t, const char *key, bool value);
void tmk_tree_null(struct tmk_tree *t, const char *key);

#endif
