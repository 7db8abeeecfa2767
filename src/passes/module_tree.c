/* SPDX-License-Identifier: MIT */
/* passes/module_tree.c - see module_tree.h.
 *
 * A node is made for each beginning of a path, parents before children. Then, from the bottom up,
 * children are sorted by name, those that are alike are merged, and single ones joined. Two trees
 * are alike when their children, by name, are. */
#include "passes/module_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "kit/arena.h"
#include "kit/textmap.h"

/* A path may be a stranger's: what is deeper is one name. A list of numbers has at most so many
 * ranges. */
enum { MOST_DEPTH = 48, MOST_RANGES = 4, LIST_BYTES = 96 };

/* Fewer siblings are shown by name. Those with nothing in them take a line each, so more of them
 * are. */
enum { LEAST_FOLDED = 4, LEAST_FOLDED_FLAT = 13 };

struct tmk_module_tree {
    struct tmk_arena memory;
    struct tmk_textmap paths;
    struct tmk_module_node **nodes; /* by number of the path; the root is not among them */
    uint32_t n_nodes;
    struct tmk_module_node root;
    bool fold;
};

/* ---- making nodes ---- */

/* The bytes of the path's next part, with those before it. */
static size_t end_of_part(const char *path, size_t from, unsigned depth)
{
    if (path[0] == '(' || depth + 1 == MOST_DEPTH) /* "(cuBLAS workspace)" */
        return strlen(path);
    size_t n = strcspn(path + from, ".");
    return from + n;
}

/* Returns the node of the path's first `end` bytes, which is made when new; NULL without memory. */
static struct tmk_module_node *node_of(struct tmk_module_tree *t, struct tmk_module_node *parent,
                                       const char *path, size_t from, size_t end)
{
    uint32_t number;
    const char *key = path ? tmk_arena_text(&t->memory, path, end) : NULL;
    if ((path && !key) || tmk_textmap_put(&t->paths, key, &number) < 0)
        return NULL;
    if (number < t->n_nodes)
        return t->nodes[number];
    if ((number & (number + 1)) == 0) { /* 0, 1, 3, 7 ...: full */
        void *more = realloc(t->nodes, (2 * (size_t)number + 2) * sizeof(struct tmk_module_node *));
        if (!more)
            return NULL;
        t->nodes = more;
    }
    struct tmk_module_node *node = tmk_arena_take(&t->memory, sizeof *node);
    if (!node)
        return NULL;
    *node = (struct tmk_module_node){.name = key ? key + from : NULL, .n = 1, .parent = parent};
    parent->n_children++;
    t->nodes[t->n_nodes++] = node;
    return node;
}

static int add_module_row(struct tmk_module_tree *t, const struct tmk_peak_row *row)
{
    struct tmk_module_node *node = &t->root;
    const char *path = row->key;
    size_t from = 0;
    unsigned depth = 0;
    do {
        size_t end = path ? end_of_part(path, from, depth++) : 0;
        node = node_of(t, node, path, from, end);
        if (!node)
            return TMK_ENOMEM;
        from = end + 1;
    } while (path && path[from - 1]);
    node->own_bytes += row->bytes;
    node->own_blocks += row->n_blocks;
    return 0;
}

/* Gives each node its children and its sums. */
static int link_nodes(struct tmk_module_tree *t)
{
    struct tmk_module_node **places =
        tmk_arena_take(&t->memory, (t->n_nodes + 1) * sizeof(struct tmk_module_node *));
    if (!places)
        return TMK_ENOMEM;
    uint32_t used = t->root.n_children;
    t->root.children = places;
    t->root.n_children = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        struct tmk_module_node *node = t->nodes[i];
        node->children = places + used;
        used += node->n_children;
        node->n_children = 0;
    }
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        struct tmk_module_node *parent = t->nodes[i]->parent;
        parent->children[parent->n_children++] = t->nodes[i];
    }
    for (uint32_t i = t->n_nodes; i-- > 0;) {
        struct tmk_module_node *node = t->nodes[i];
        node->bytes += node->own_bytes;
        node->n_blocks += node->own_blocks;
        node->least_bytes = node->most_bytes = node->bytes;
        node->least_own = node->most_own = node->own_bytes;
        node->parent->bytes += node->bytes;
        node->parent->n_blocks += node->n_blocks;
    }
    return 0;
}

/* ---- folding ---- */

static bool is_number(const char *name)
{
    return name && *name && name[strspn(name, "0123456789")] == '\0' && strlen(name) < 10;
}

/* Numbers before other names, by value; no name last. */
static int compare_names(const void *va, const void *vb)
{
    const struct tmk_module_node *a = *(struct tmk_module_node *const *)va;
    const struct tmk_module_node *b = *(struct tmk_module_node *const *)vb;
    if (!a->name || !b->name)
        return (a->name == NULL) - (b->name == NULL);
    bool both = is_number(a->name) && is_number(b->name);
    long x = both ? strtol(a->name, NULL, 10) : 0, y = both ? strtol(b->name, NULL, 10) : 0;
    return x != y ? (x > y ? 1 : -1) : strcmp(a->name, b->name);
}

static int compare_bytes(const void *va, const void *vb)
{
    const struct tmk_module_node *a = *(struct tmk_module_node *const *)va;
    const struct tmk_module_node *b = *(struct tmk_module_node *const *)vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    if (a->is_own != b->is_own)
        return a->is_own - b->is_own;
    return compare_names(va, vb);
}

static void sort_children(struct tmk_module_node *node, int compare(const void *, const void *))
{
    if (node->n_children > 1)
        qsort(node->children, node->n_children, sizeof(struct tmk_module_node *), compare);
}

/* Whether the trees below two modules have the same shape. One of them may stand for several. */
static bool are_alike(const struct tmk_module_node *a, const struct tmk_module_node *b)
{
    if (a->n_children != b->n_children)
        return false;
    for (uint32_t i = 0; i < a->n_children; i++)
        if ((uint64_t)a->children[i]->n * b->n != (uint64_t)b->children[i]->n * a->n ||
            strcmp(a->children[i]->name, b->children[i]->name) != 0 ||
            !are_alike(a->children[i], b->children[i]))
            return false;
    return true;
}

/* Whether neither has more than twice the bytes of the other. */
static bool are_of_a_size(const struct tmk_module_node *a, const struct tmk_module_node *b)
{
    return a->bytes / 2 <= b->bytes && b->bytes / 2 <= a->bytes;
}

/* Adds a tree of the same shape. */
static void merge_node(struct tmk_module_node *to, const struct tmk_module_node *from)
{
    to->n += from->n;
    to->bytes += from->bytes;
    to->n_blocks += from->n_blocks;
    to->own_bytes += from->own_bytes;
    to->own_blocks += from->own_blocks;
    to->least_bytes = from->least_bytes < to->least_bytes ? from->least_bytes : to->least_bytes;
    to->most_bytes = from->most_bytes > to->most_bytes ? from->most_bytes : to->most_bytes;
    to->least_own = from->least_own < to->least_own ? from->least_own : to->least_own;
    to->most_own = from->most_own > to->most_own ? from->most_own : to->most_own;
    for (uint32_t i = 0; i < to->n_children; i++)
        merge_node(to->children[i], from->children[i]);
}

/* A group of siblings that are alike; numbers come in their order. */
struct alike {
    struct tmk_module_node *node; /* the first; the others are merged into it */
    uint32_t n_siblings, n_ranges;
    long first, last; /* of the range not yet written */
    struct tmk_text numbers;
    char text[LIST_BYTES];
};

static void write_range(struct alike *a)
{
    if (a->n_ranges == MOST_RANGES)
        tmk_text_string(&a->numbers, ",...");
    if (a->n_ranges++ >= MOST_RANGES)
        return;
    tmk_text_add(&a->numbers, "%s%lld", a->n_ranges > 1 ? "," : "", (long long)a->first);
    if (a->last > a->first)
        tmk_text_add(&a->numbers, "%s%lld", a->last == a->first + 1 ? "," : "-",
                     (long long)a->last);
}

static bool is_folded(const struct alike *a)
{
    return a->n_siblings >= (a->node->n_children > 0 ? LEAST_FOLDED : LEAST_FOLDED_FLAT);
}

/* Returns the number of each child's group, the caller's, and the groups. NULL: no memory. */
static uint32_t *find_groups(const struct tmk_module_node *node, uint32_t n, struct alike *groups)
{
    uint32_t n_groups = 0, *group_of = calloc(n, sizeof *group_of);
    for (uint32_t i = 0; group_of && i < n; i++) {
        struct tmk_module_node *child = node->children[i];
        uint32_t g = 0;
        while (g < n_groups &&
               !(are_alike(groups[g].node, child) && are_of_a_size(groups[g].node, child)))
            g++;
        if (g == n_groups)
            groups[n_groups++].node = child;
        groups[g].n_siblings++;
        group_of[i] = g;
    }
    return group_of;
}

/* Merges a sibling into its group; the group's first one begins it. */
static void join_group(struct alike *a, const struct tmk_module_node *node)
{
    long number = strtol(node->name, NULL, 10);
    if (node == a->node) {
        a->first = number;
        tmk_text_init(&a->numbers, a->text, sizeof a->text);
    } else {
        merge_node(a->node, node);
        if (number != a->last + 1) {
            write_range(a);
            a->first = number;
        }
    }
    a->last = number;
}

static int name_group(struct tmk_module_tree *t, struct alike *a, uint32_t n_numbers)
{
    write_range(a);
    const char *name = a->n_siblings == n_numbers ? "*" : a->text;
    a->node->name = tmk_arena_text(&t->memory, name, strlen(name));
    return a->node->name ? 0 : TMK_ENOMEM;
}

/* Merges the groups that are large enough among the first `n` children. Returns how many children
 * are left of these. */
static uint32_t fold_groups(struct tmk_module_node *node, uint32_t n, struct alike *groups,
                            const uint32_t *group_of)
{
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_module_node *child = node->children[i];
        struct alike *a = &groups[group_of[i]];
        if (is_folded(a))
            join_group(a, child);
        if (!is_folded(a) || child == a->node)
            node->children[n_left++] = child;
    }
    return n_left;
}

/* Merges the children with numbers for names that are alike. They stand first and in order. */
static int fold_numbers(struct tmk_module_tree *t, struct tmk_module_node *node)
{
    uint32_t n_numbers = 0;
    while (n_numbers < node->n_children && is_number(node->children[n_numbers]->name))
        n_numbers++;
    if (n_numbers < LEAST_FOLDED)
        return 0;
    struct alike *groups = calloc(n_numbers, sizeof *groups);
    uint32_t *group_of = groups ? find_groups(node, n_numbers, groups) : NULL;
    int rc = group_of ? 0 : TMK_ENOMEM;
    if (rc == 0) {
        uint32_t n_left = fold_groups(node, n_numbers, groups, group_of);
        for (uint32_t g = 0; g < n_numbers && groups[g].node && rc == 0; g++)
            rc = is_folded(&groups[g]) ? name_group(t, &groups[g], n_numbers) : 0;
        memmove(node->children + n_left, node->children + n_numbers,
                (node->n_children - n_numbers) * sizeof(struct tmk_module_node *));
        node->n_children -= n_numbers - n_left;
    }
    free(group_of);
    free(groups);
    return rc;
}

static int fold_below(struct tmk_module_tree *t, struct tmk_module_node *node)
{
    int rc = 0;
    for (uint32_t i = 0; i < node->n_children && rc == 0; i++)
        rc = fold_below(t, node->children[i]);
    sort_children(node, compare_names);
    return rc == 0 && t->fold ? fold_numbers(t, node) : rc;
}

/* ---- joining, and what is a node's own ---- */

/* Takes the only child in the node's place. */
static int join_child(struct tmk_module_tree *t, struct tmk_module_node *node)
{
    const struct tmk_module_node *child = node->children[0];
    const char *name = tmk_arena_format(&t->memory, "%s.%s", node->name, child->name);
    if (!name)
        return TMK_ENOMEM;
    struct tmk_module_node *parent = node->parent;
    *node = *child;
    node->name = name;
    node->parent = parent;
    return 0;
}

/* Adds the node's own bytes as one more child. */
static int add_own(struct tmk_module_tree *t, struct tmk_module_node *node)
{
    struct tmk_module_node *own = tmk_arena_take(&t->memory, sizeof *own);
    struct tmk_module_node **children =
        tmk_arena_take(&t->memory, (node->n_children + 1) * sizeof(struct tmk_module_node *));
    if (!own || !children)
        return TMK_ENOMEM;
    *own = (struct tmk_module_node){.name = node->name,
                                    .is_own = true,
                                    .n = node->n,
                                    .bytes = node->own_bytes,
                                    .n_blocks = node->own_blocks,
                                    .least_bytes = node->least_own,
                                    .most_bytes = node->most_own,
                                    .parent = node};
    memcpy(children, node->children, node->n_children * sizeof(struct tmk_module_node *));
    children[node->n_children++] = own;
    node->children = children;
    return 0;
}

static int finish_below(struct tmk_module_tree *t, struct tmk_module_node *node)
{
    int rc = 0;
    for (uint32_t i = 0; i < node->n_children && rc == 0; i++)
        rc = finish_below(t, node->children[i]);
    if (rc == 0 && node->name && node->n_children == 1 && node->own_blocks == 0)
        rc = join_child(t, node);
    else if (rc == 0 && node->n_children > 0 && node->own_blocks > 0)
        rc = add_own(t, node);
    sort_children(node, compare_bytes);
    for (uint32_t i = 0; i < node->n_children; i++)
        node->children[i]->parent = node;
    return rc;
}

/* ---- ranks ---- */

static uint32_t count_nodes(const struct tmk_module_node *node)
{
    uint32_t n = node->n_children;
    for (uint32_t i = 0; i < node->n_children; i++)
        n += count_nodes(node->children[i]);
    return n;
}

/* Lists the nodes in the order of a table; `rank` keeps that order until they are sorted. */
static void list_nodes(struct tmk_module_node *node, struct tmk_module_node **list, uint32_t *n)
{
    for (uint32_t i = 0; i < node->n_children; i++) {
        node->children[i]->rank = *n;
        list[(*n)++] = node->children[i];
        list_nodes(node->children[i], list, n);
    }
}

static int compare_ranks(const void *va, const void *vb)
{
    const struct tmk_module_node *a = *(struct tmk_module_node *const *)va;
    const struct tmk_module_node *b = *(struct tmk_module_node *const *)vb;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static int rank_nodes(struct tmk_module_tree *t)
{
    uint32_t n = 0, n_nodes = count_nodes(&t->root);
    struct tmk_module_node **list =
        tmk_arena_take(&t->memory, (n_nodes + 1) * sizeof(struct tmk_module_node *));
    if (!list)
        return TMK_ENOMEM;
    list_nodes(&t->root, list, &n);
    qsort(list, n, sizeof(struct tmk_module_node *), compare_ranks);
    for (uint32_t i = 0; i < n; i++)
        list[i]->rank = i;
    return 0;
}

/* ---- the tree ---- */

int tmk_module_tree_open(const struct tmk_peak_row *rows, uint64_t n, bool fold,
                         struct tmk_module_tree **ret_tree)
{
    struct tmk_module_tree *t = calloc(1, sizeof *t);
    if (!t)
        return TMK_ENOMEM;
    t->fold = fold;
    t->root.n = 1;
    int rc = 0;
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = add_module_row(t, &rows[i]);
    if (rc == 0)
        rc = link_nodes(t);
    if (rc == 0)
        rc = fold_below(t, &t->root);
    if (rc == 0)
        rc = finish_below(t, &t->root);
    if (rc == 0)
        rc = rank_nodes(t);
    if (rc == 0)
        *ret_tree = t;
    else
        tmk_module_tree_close(t);
    return rc;
}

struct tmk_module_tree *tmk_module_tree_close(struct tmk_module_tree *t)
{
    if (!t)
        return NULL;
    free(t->nodes);
    tmk_textmap_fini(&t->paths);
    tmk_arena_fini(&t->memory);
    free(t);
    return NULL;
}

const struct tmk_module_node *tmk_module_tree_root(const struct tmk_module_tree *t)
{
    return &t->root;
}
