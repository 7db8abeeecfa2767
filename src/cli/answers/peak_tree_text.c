/* SPDX-License-Identifier: MIT */
/* cli/answers/peak_tree_text.c - the table of `peak --by module`: the tree of modules, each below
 * the one that it is in.
 *
 * With --top the largest modules are shown, wherever they are; what is left out at a place is one
 * row there, so the rows of a place still add up to the row above them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/peak_answer.h"
#include "cli/output/say.h"
#include "cli/output/sheet.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/glyph.h"
#include "kit/language.h"
#include "kit/table.h"
#include "passes/group.h"
#include "passes/module_tree.h"
#include "passes/peak.h"

enum { N_COLUMNS = 6, EACH = 2, DEEPEST = 16 };

struct tree_table {
    const struct tmk_peak_answer *a;
    struct tmk_sheet *sheet;
    struct tmk_table *table;
    bool has_each; /* some row stands for several modules */
};

static bool is_shown(const struct tree_table *p, const struct tmk_module_node *node)
{
    return node->rank < p->a->top;
}

static bool has_folded(const struct tree_table *p, const struct tmk_module_node *node)
{
    bool found = node->n > 1;
    for (uint32_t i = 0; i < node->n_children && !found; i++)
        found = is_shown(p, node->children[i]) && has_folded(p, node->children[i]);
    return found;
}

/* What one of several modules has: "384.0 MiB", or "380.0 to 384.0 MiB" when they differ. */
static void add_each_cell(struct tmk_table *t, const struct tmk_module_node *node)
{
    char least[TMK_AMOUNT_BYTES], most[TMK_AMOUNT_BYTES];
    tmk_size_text(node->least_bytes, least);
    tmk_size_text(node->most_bytes, most);
    char *unit = strchr(least, ' '), *most_unit = strchr(most, ' ');
    if (node->n == 1) {
        tmk_table_cell(t, "");
    } else if (strcmp(least, most) == 0) {
        tmk_table_cell(t, most);
    } else {
        if (strcmp(unit, most_unit) == 0)
            *unit = '\0';
        tmk_table_cellf(t, _("%s to %s"), least, most);
    }
}

static void add_name_cell(struct tree_table *p, const struct tmk_module_node *node, unsigned depth)
{
    const char *name = node->is_own ? _("(itself)")
                       : node->name ? node->name
                                    : _(tmk_unknown_key_text(TMK_BY_MODULE));
    char *count = node->n > 1 && !node->is_own ? tmk_xformat(" %s%" PRIu32, tmk_glyph("×"), node->n)
                                               : tmk_xstrdup("");
    char *text =
        tmk_xformat("%*s%s%s", 2 * (int)(depth < DEEPEST ? depth : DEEPEST), "", name, count);
    tmk_table_cell(p->table, text);
    if (node->is_own)
        tmk_table_paint(p->table, tmk_sheet_role(p->sheet, TMK_ROLE_DETAIL));
    free(text);
    free(count);
}

/* `node` is NULL where several that differ share the row. */
static void add_sums(struct tree_table *p, const struct tmk_module_node *node, uint64_t bytes,
                     uint64_t n_blocks)
{
    char text[TMK_AMOUNT_BYTES];
    tmk_table_size(p->table, bytes);
    if (p->has_each && node)
        add_each_cell(p->table, node);
    else if (p->has_each)
        tmk_table_cell(p->table, "");
    tmk_table_count(p->table, n_blocks);
    tmk_table_cell(p->table, tmk_percent_text(bytes, tmk_peak_bytes(p->a->moment.peak), text));
}

static void add_tree_bar(struct tree_table *p, uint64_t bytes, unsigned depth)
{
    tmk_table_bar(p->table, bytes, tmk_peak_bytes(p->a->moment.peak));
    if (depth > 0) /* its bytes are in the bar above, too */
        tmk_table_paint(p->table, tmk_sheet_role(p->sheet, TMK_ROLE_DETAIL));
}

static void add_module_row(struct tree_table *p, const struct tmk_module_node *node, unsigned depth)
{
    add_name_cell(p, node, depth);
    add_sums(p, node, node->bytes, node->n_blocks);
    add_tree_bar(p, node->bytes, depth);
}

/* Adds the children that are not shown as one row; a single one as itself. */
static void add_hidden(struct tree_table *p, const struct tmk_module_node *node, unsigned depth)
{
    uint64_t bytes = 0, n_blocks = 0, n = 0;
    const struct tmk_module_node *hidden = NULL;
    for (uint32_t i = 0; i < node->n_children; i++)
        if (!is_shown(p, node->children[i])) {
            hidden = node->children[i];
            bytes += hidden->bytes;
            n_blocks += hidden->n_blocks;
            n++;
        }
    if (n == 1)
        add_module_row(p, hidden, depth);
    if (n < 2)
        return;
    char *others = tmk_xformat(_("(%" PRIu64 " others)"), n);
    char *text = tmk_xformat("%*s%s", 2 * (int)(depth < DEEPEST ? depth : DEEPEST), "", others);
    tmk_table_cell(p->table, text);
    tmk_table_paint(p->table, tmk_sheet_role(p->sheet, TMK_ROLE_DETAIL));
    add_sums(p, NULL, bytes, n_blocks);
    add_tree_bar(p, bytes, depth);
    free(text);
    free(others);
}

static void add_below(struct tree_table *p, const struct tmk_module_node *node, unsigned depth)
{
    for (uint32_t i = 0; i < node->n_children; i++) {
        const struct tmk_module_node *child = node->children[i];
        if (!is_shown(p, child))
            continue;
        add_module_row(p, child, depth);
        add_below(p, child, depth + 1);
    }
    add_hidden(p, node, depth);
}

void tmk_peak_tree_text(const struct tmk_peak_answer *a, struct tmk_sheet *sheet)
{
    struct tmk_column columns[N_COLUMNS] = {
        {"module", TMK_LEFT, TMK_SHRINK}, {"size", TMK_RIGHT, TMK_FIXED},
        {"each", TMK_RIGHT, TMK_FIXED},   {"blocks", TMK_RIGHT, TMK_FIXED},
        {"share", TMK_RIGHT, TMK_FIXED},  {"", TMK_LEFT, TMK_BAR},
    };
    struct tree_table p = {.a = a, .sheet = sheet};
    struct tmk_module_tree *tree;
    if (tmk_module_tree_open(a->rows, a->n_rows, a->is_folded, &tree) < 0)
        tmk_die("out of memory");
    const struct tmk_module_node *root = tmk_module_tree_root(tree);
    p.has_each = has_folded(&p, root);
    if (!p.has_each)
        memmove(&columns[EACH], &columns[EACH + 1], (N_COLUMNS - 1 - EACH) * sizeof *columns);
    p.table = tmk_table_open(columns, N_COLUMNS - !p.has_each);
    add_below(&p, root, 0);
    tmk_sheet_table(sheet, p.table);
    tmk_module_tree_close(tree);
}
