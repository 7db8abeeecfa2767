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
        ROW("m.layers.3.up", 10),  ROW("m.layers.0.down", 1), ROW("m.layers.1.down", 1),
        ROW("m.layers.2.down", 1), ROW("m.layers.3.down", 1), ROW("m.layers.1", 7),
    };
    check_tree(rows, 9, true,
               "m.layers.* x4 [11-20] 54/9 #0\n"
               " up x4 [10-12] 43/4 #1\n"
               " (own) x4 [0-7] 7/1 #2\n"
               " down x4 [1-1] 4/4 #3\n");
    check_tree(rows, 2, false, "m.layers 22/2 #0\n 1.up 12/1 #1\n 0.up 10/1 #2\n");
    check_tree(rows, 3, true, "m.layers 33/3 #0\n 1.up 12/1 #1\n 2.up 11/1 #2\n 0.up 10/1 #3\n");
}

/* A small model without modules in its modules has them by name; a long one does not. */
static void test_flat(void **state)
{
    (void)state;
    enum { N = 13 };
    struct tmk_peak_row rows[N];
    char names[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        rows[i] = (struct tmk_peak_row){.key = names[i], .bytes = 4, .n_blocks = 1};
    }
    check_tree(rows, 5, true, "0 4/1 #0\n1 4/1 #1\n2 4/1 #2\n3 4/1 #3\n4 4/1 #4\n");
    check_tree(rows, N, true, "* x13 [4-4] 52/13 #0\n");
}

/* One that is more than twice as large as the others stands alone. */
static void test_other_sizes(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {
        ROW("l.0.a.x", 5), ROW("l.1.a.x", 6),  ROW("l.2.a.x", 50),
        ROW("l.3.a.x", 3), ROW("l.4.a.x", 10), ROW("l.5.a.x", 5),
    };
    check_tree(rows, 6, true, "l 79/6 #0\n 2.a.x 50/1 #1\n 0,1,3-5.a.x x5 [3-10] 29/5 #2\n");
}

/* Trees in trees that repeat count all of them, so that n times "each" is the sum. */
static void test_repeated_in_repeated(void **state)
{
    (void)state;
    struct tmk_peak_row rows[16];
    char names[16][24];
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "l.%d.e.%d.x", i / 4, i % 4);
        rows[i] = (struct tmk_peak_row){.key = names[i], .bytes = 1, .n_blocks = 1};
    }
    check_tree(rows, 16, true, "l.*.e.*.x x16 [1-1] 16/16 #0\n");
}

static void test_other_shapes(void **state)
{
    (void)state;
    static const struct tmk_peak_row rows[] = {
        ROW("l.0.u.v", 1), ROW("l.1.u.v", 1),  ROW("l.2.x", 5),
        ROW("l.3.u.v", 1), ROW("l.4.x", 5),    ROW("l.5.x", 5),
        ROW("l.6.x", 5),   ROW("l.10.u.v", 1), ROW("l.y", 1),
    };
    check_tree(rows, 9, true,
               "l 25/9 #0\n 2,4-6.x x4 [5-5] 20/4 #1\n 0,1,3,10.u.v x4 [1-1] 4/4 #2\n y 1/1 #3\n");
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
        cmocka_unit_test(test_flat),
        cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_repeated_in_repeated),
        cmocka_unit_test(test_other_shapes),
        cmocka_unit_test(test_many_ranges),
        cmocka_unit_test(test_strange_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
