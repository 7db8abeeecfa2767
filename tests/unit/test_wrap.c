/* SPDX-License-Identifier: MIT */
/* Names and tables that are wider than their place; bars; signs where only ASCII is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit/glyph.h"
#include "kit/table.h"
#include "kit/utf8.h"
#include "kit/wrap.h"

/* Breaks `text` in lines of `width`, joined by '|' for comparison. */
static void check_wrap(const char *text, size_t width, const char *expected)
{
    char *lines = NULL;
    size_t n;
    FILE *out = open_memstream(&lines, &n);
    for (const char *rest; *text; text = rest) {
        size_t columns = tmk_wrap_line(text, width, &rest);
        assert_true(columns <= width && rest > text);
        assert_int_equal(tmk_utf8_fill(out, text, columns), columns);
        fputs(*rest ? "|" : "", out);
    }
    fclose(out);
    assert_string_equal(lines, expected);
    free(lines);
}

static void test_wrap(void **state)
{
    (void)state;
    check_wrap("short", 5, "short");
    check_wrap("torch/nn/modules/linear.py:114 forward", 20,
               "torch/nn/modules/|linear.py:114|forward");
    check_wrap("model.layers.0.self_attn.q_proj", 16, "model.layers.0.|self_attn.q_proj");
    check_wrap("backend:native,max_split_size_mb:128", 24, "backend:native,max_|split_size_mb:128");
    check_wrap("abcdefghij", 4, "abcd|efgh|ij");
    check_wrap("a.bcdefghijklm", 9, "a.bcdefgh|ijklm"); /* "a." alone would be a waste */
    check_wrap("one  two", 4, "one|two");
    check_wrap("模型.层.注意力", 6, "模型.|层.注|意力");
    check_wrap("中文，好", 4, "中|文，|好"); /* no line begins with a comma */
    check_wrap("e\xcc\x81"
               "e\xcc\x81"
               "e\xcc\x81",
               2,
               "e\xcc\x81"
               "e\xcc\x81|e\xcc\x81");
    check_wrap("a\x1b[31mb", 4, "a\xef\xbf\xbd[3|1mb");
    const char *rest = NULL;
    assert_int_equal(tmk_wrap_line("", 4, &rest), 0);
    assert_string_equal(rest, "");
}

/* ---- tables ---- */

static const struct tmk_column columns[] = {
    {"setting", TMK_LEFT, TMK_SHRINK},
    {"size", TMK_RIGHT, TMK_FIXED},
    {"", TMK_LEFT, TMK_BAR},
};

static void check_table(struct tmk_table *t, const struct tmk_table_style *style,
                        const char *expected)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(tmk_table_print(t, out, style), 0);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    tmk_table_close(t);
}

static void add_bar_row(struct tmk_table *t, const char *name, const char *size, uint64_t part)
{
    tmk_table_cell(t, name);
    tmk_table_cell(t, size);
    tmk_table_bar(t, part, 8);
}

/* Two settings that begin alike are two rows that look different. */
static void test_table_wraps(void **state)
{
    (void)state;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_bar_row(t, "max_split_size_mb:128,expandable_segments:True", "1.0 GiB", 8);
    add_bar_row(t, "max_split_size_mb:128,expandable_segments:False", "2.0 GiB", 4);
    check_table(t, &(struct tmk_table_style){.indent = 2, .width = 48},
                "  setting                         size\n"
                "  max_split_size_mb:128,       1.0 GiB  ████████\n"
                "    expandable_segments:True\n"
                "  max_split_size_mb:128,       2.0 GiB  ████\n"
                "    expandable_segments:False\n");
}

static void test_bars_take_the_rest(void **state)
{
    (void)state;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_bar_row(t, "a", "1 B", 8);
    add_bar_row(t, "b", "1 B", 0);
    add_bar_row(t, "c", "1 B", 1);
    check_table(t, &(struct tmk_table_style){.width = 34},
                "setting  size\n"
                "a         1 B  ███████████████████\n"
                "b         1 B\n"
                "c         1 B  ██▍\n");
    t = tmk_table_open(columns, 3); /* nobody said how wide: the usual width */
    add_bar_row(t, "a", "1 B", 8);
    check_table(t, &(struct tmk_table_style){0},
                "setting  size\na         1 B  ████████████████\n");
}

static void test_paint(void **state)
{
    (void)state;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_bar_row(t, "long.name", "1 B", 8);
    tmk_table_paint(t, "<red>");
    tmk_table_cell(t, "x.long.name");
    tmk_table_paint(t, "<dim>");
    tmk_table_cell(t, "2 B");
    tmk_table_cell(t, "");
    check_table(t, &(struct tmk_table_style){.width = 24, .paint_off = "<off>"},
                "setting   size\n"
                "long.      1 B  <red>████████<off>\n"
                "  name\n"
                "<dim>x.long.<off>    2 B\n"
                "  <dim>name<off>\n");
    t = tmk_table_open(columns, 3);
    add_bar_row(t, "a", "1 B", 0);
    tmk_table_paint(t, "<red>"); /* without colours, or without a bar: none */
    check_table(t, &(struct tmk_table_style){.width = 24, .paint_off = "<off>"},
                "setting  size\na         1 B\n");
}

/* The indent of a tree stays in front of what is broken. */
static void test_hanging_indent(void **state)
{
    (void)state;
    struct tmk_table *t = tmk_table_open(columns, 2);
    tmk_table_cell(t, "    attention.output_projection");
    tmk_table_cell(t, "1 B");
    tmk_table_cell(t, "  层.注意力.投影.注意力");
    tmk_table_cell(t, "2 B");
    check_table(t, &(struct tmk_table_style){.width = 26},
                "setting               size\n"
                "    attention.         1 B\n"
                "      output_\n"
                "      projection\n"
                "  层.注意力.投影.注    2 B\n"
                "    意力\n");
}

/* ---- ASCII ---- */

static void test_ascii(void **state)
{
    (void)state;
    char bar[64], *text = NULL;
    size_t n;
    tmk_glyph_use_ascii(true);
    assert_string_equal(tmk_glyph("→"), "->");
    assert_string_equal(tmk_glyph("×"), "x");
    assert_string_equal(tmk_bar(1, 2, 16, bar), "########");
    assert_string_equal(tmk_bar(1, 1000, 16, bar), "#");
    assert_string_equal(tmk_bar(0, 1000, 16, bar), "");
    assert_string_equal(tmk_glyph_upward(8), "#");
    FILE *out = open_memstream(&text, &n);
    tmk_utf8_write(out,
                   "abc\x1b"
                   "defghij",
                   6);
    fclose(out);
    assert_string_equal(text, "abc?d~");
    free(text);
    out = open_memstream(&text, &n);
    tmk_utf8_write(out, "A–B ÷ 2 → 层", 20); /* names stay as they are */
    fclose(out);
    assert_string_equal(text, "A-B / 2 > 层");
    free(text);
    tmk_glyph_use_ascii(false);
    assert_string_equal(tmk_glyph("→"), "→");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_table_wraps),
        cmocka_unit_test(test_bars_take_the_rest),
        cmocka_unit_test(test_paint),
        cmocka_unit_test(test_hanging_indent),
        cmocka_unit_test(test_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
