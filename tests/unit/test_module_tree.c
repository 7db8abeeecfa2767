/* SPDX-License-Identifier: MIT */
/* Modules as a tree: sums, what repeats, what is joined, and what --top leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "passes/group.h"
#include "passes/module_tree.h"

/* Writes the tree as "name xN bytes/blocks [least-most] #rank", children indented. */
static void write_node(FILE *out, const struct tmk_module_node *node, int depth)
{
    for (uint32_t i = 0; i < node->n_children; i++) {
        const struct tmk_module_node *c = node->children[i];
        fprintf(out, "%*s%s", depth, "", c->is_own ? "(own)" : c->name ? c->name : "-");
        if (c->n > 1)
            fprintf(out, " x%u [%u-%u]", c->n, (unsigned)c->least_bytes, (unsigned)c->most_bytes);
        fprintf(out, " %u/%u #%u\n", (unsigned)c->bytes, (unsigned)c->n_blocks, c->rank);
        assert_ptr_equal(c->parent, node);
        write_node(out, c, depth + 1);
    }
}

static void check_tree(const struct tmk_peak_row *rows, uint64_t n, bool fold, const char *expected)
{
    struct tmk_module_tree *t = NULL;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(tmk_module_tree_open(rows, n, fold, &t), 0);
    write_node(out, tmk_module_tree_root(t), 0);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    tmk_module_tree_close(t);
}

#define ROW(module, size)                                                                          \
    {                                                                                              \
        .key = module, .bytes = size, .n_blocks = 1                                                \
    }

static void test_sums(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {ROW("a.b", 5), ROW("a", 3), ROW(NULL, 2),
                                               ROW("a.c", 1), ROW("AdamW", 4)};
    check_tree(rows, 5, true,
               "a 9/3 #0\n b 5/1 #1\n (own) 3/1 #3\n c 1/1 #5\nAdamW 4/1 #2\n- 2/1 #4\n");
    check_tree(rows, 0, true, "");
}

static void test_repeated(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {
        ROW("m.layers.0.up", 10),  ROW("m.layers.1.up", 12),  ROW("m.layers.2.up", 11),
        ROW("m.layers.0.down", 1), ROW("m.layers.1.down", 1), ROW("m.layers.2.down", 1),
        ROW("m.layers.1", 7),
    };
    check_tree(rows, 7, true,
               "m.layers.* x3 [11-20] 43/7 #0\n"
               " up x3 [10-12] 33/3 #1\n"
               " (own) x3 [0-7] 7/1 #2\n"
               " down x3 [1-1] 3/3 #3\n");
    check_tree(rows, 2, false, "m.layers 22/2 #0\n 1.up 12/1 #1\n 0.up 10/1 #2\n");
}

/* Trees in trees that repeat count all of them, so that n times "each" is the sum. */
static void test_repeated_in_repeated(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {ROW("l.0.e.0", 1), ROW("l.0.e.1", 1),
                                               ROW("l.1.e.0", 1), ROW("l.1.e.1", 1),
                                               ROW("l.2.e.0", 1), ROW("l.2.e.1", 1)};
    check_tree(rows, 6, true, "l.*.e.* x6 [1-1] 6/6 #0\n");
}

static void test_other_shapes(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {
        ROW("l.0", 1),   ROW("l.1", 1),   ROW("l.2.x", 5), ROW("l.3", 1),
        ROW("l.4.x", 5), ROW("l.5.x", 5), ROW("l.10", 1),  ROW("l.y", 1),
    };
    check_tree(rows, 8, true,
               "l 20/8 #0\n 2,4,5.x x3 [5-5] 15/3 #1\n 0,1,3,10 x4 [1-1] 4/4 #2\n y 1/1 #3\n");
}

/* A list of numbers does not grow without end. */
static void test_many_ranges(void **state)
{
    (void)state;
    struct tmk_peak_row rows[31];
    char names[31][16];
    for (int i = 0; i < 31; i++) {
        snprintf(names[i], sizeof names[i], i % 2 ? "l.%d.x.y" : "l.%d", i);
        rows[i] = (struct tmk_peak_row){.key = names[i], .bytes = 1, .n_blocks = 1};
    }
    check_tree(
        rows, 31, true,
        "l 31/31 #0\n 0,2,4,6,... x16 [1-1] 16/16 #1\n 1,3,5,7,....x.y x15 [1-1] 15/15 #2\n");
}

/* Names of strangers: a workspace with dots, empty parts, and a path without end. */
static void test_strange_names(void **state)
{
    (void)state;
    static const struct tmk_peak_row odd[] = {ROW("(lib v1.2 workspace)", 9), ROW("a..b", 1),
                                              ROW("", 2)};
    check_tree(odd, 3, true, "(lib v1.2 workspace) 9/1 #0\n 2/1 #1\na..b 1/1 #2\n");
    size_t n = 200000;
    char *deep = malloc(2 * n + 2);
    for (size_t i = 0; i < n; i++)
        memcpy(deep + 2 * i, "a.", 2);
    strcpy(deep + 2 * n, "b");
    struct tmk_peak_row row = {.key = deep, .bytes = 1, .n_blocks = 1};
    struct tmk_module_tree *t = NULL;
    assert_int_equal(tmk_module_tree_open(&row, 1, true, &t), 0);
    assert_int_equal(tmk_module_tree_root(t)->n_children, 1);
    assert_string_equal(tmk_module_tree_root(t)->children[0]->name, deep);
    tmk_module_tree_close(t);
    free(deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_repeated_in_repeated),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_many_ranges),
        cmocka_unit_test(test_strange_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
