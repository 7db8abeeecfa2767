/* SPDX-License-Identifier: MIT */
/* What the kit writes: JSON, CSV, tables, and texts of strangers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/csv.h"
#include "kit/json.h"
#include "kit/markdown.h"
#include "kit/print.h"
#include "kit/progress.h"
#include "kit/shell.h"
#include "kit/table.h"
#include "kit/tree.h"
#include "kit/utf8.h"

/* A stream whose text is then compared. */
struct sheet {
    FILE *out;
    char *text;
    size_t n;
};

static void sheet_open(struct sheet *s)
{
    *s = (struct sheet){0};
    s->out = open_memstream(&s->text, &s->n);
    assert_non_null(s->out);
}

static void sheet_check(struct sheet *s, const char *expected)
{
    fclose(s->out);
    assert_string_equal(s->text, expected);
    free(s->text);
}

/* ---- JSON ---- */

static void test_json_values(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_json j;
    sheet_open(&s);
    tmk_json_init(&j, s.out, 0);
    tmk_json_object(&j, NULL);
    tmk_json_u64(&j, "a", UINT64_MAX);
    tmk_json_i64(&j, "b", INT64_MIN);
    tmk_json_double(&j, "c", 0.1);
    tmk_json_double(&j, "d", NAN);
    tmk_json_double(&j, "e", 1e300);
    tmk_json_bool(&j, "f", true);
    tmk_json_null(&j, "g");
    tmk_json_text(&j, "h", NULL);
    tmk_json_array(&j, "i");
    tmk_json_end(&j);
    tmk_json_array(&j, "k");
    tmk_json_u64(&j, NULL, 1);
    tmk_json_object(&j, NULL);
    tmk_json_end(&j);
    tmk_json_end(&j);
    tmk_json_end(&j);
    sheet_check(&s, "{\"a\": 18446744073709551615, \"b\": -9223372036854775808, \"c\": 0.1, "
                    "\"d\": null, \"e\": 1e+300, \"f\": true, \"g\": null, \"h\": null, \"i\": [], "
                    "\"k\": [1, {}]}\n");
}

static void test_json_fixed(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_json j;
    sheet_open(&s);
    tmk_json_init(&j, s.out, 0);
    tmk_json_array(&j, NULL);
    tmk_json_fixed(&j, NULL, 50, 2);
    tmk_json_fixed(&j, NULL, 34.375, 2);
    tmk_json_fixed(&j, NULL, 1.0 / 3, 0);
    tmk_json_fixed(&j, NULL, INFINITY, 1);
    tmk_json_end(&j);
    sheet_check(&s, "[50.00, 34.38, 0.3, null]\n");
}

static void test_json_text(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_json j;
    sheet_open(&s);
    tmk_json_init(&j, s.out, 0);
    tmk_json_text(&j, NULL, "\"\\\n\t\x01 \xc3\xa9 \xff \xe4\xb8 \xed\xa0\x80 end");
    sheet_check(&s, "\"\\\"\\\\\\n\\t\\u0001 \xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd "
                    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd end\"\n");
}

static void test_json_lines(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_json j;
    sheet_open(&s);
    tmk_json_init(&j, s.out, 2);
    tmk_json_object(&j, NULL);
    tmk_json_array(&j, "rows");
    for (uint64_t i = 0; i < 2; i++) {
        tmk_json_object(&j, NULL);
        tmk_json_u64(&j, "n", i);
        tmk_json_u64(&j, "m", i);
        tmk_json_end(&j);
    }
    tmk_json_end(&j);
    tmk_json_end(&j);
    sheet_check(&s,
                "{\n  \"rows\": [\n    {\"n\": 0, \"m\": 0},\n    {\"n\": 1, \"m\": 1}\n  ]\n}\n");
}

/* ---- CSV ---- */

static void test_csv(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_csv c;
    sheet_open(&s);
    tmk_csv_init(&c, s.out, false);
    tmk_csv_text(&c, "plain");
    tmk_csv_text(&c, "with, comma");
    tmk_csv_text(&c, "with \"quotes\"");
    tmk_csv_text(&c, "two\nlines");
    tmk_csv_text(&c, NULL);
    tmk_csv_text(&c, "");
    tmk_csv_number(&c, "7");
    tmk_csv_number(&c, "-7");
    tmk_csv_end_row(&c);
    tmk_csv_text(&c, NULL);
    tmk_csv_end_row(&c);
    sheet_check(&s, "plain,\"with, comma\",\"with \"\"quotes\"\"\",\"two\nlines\",,\"\",7,-7\n\n");
}

static void test_csv_of_strangers(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_csv c;
    sheet_open(&s);
    tmk_csv_init(&c, s.out, true);
    tmk_csv_text(&c, "=1+1");
    tmk_csv_text(&c, "  @x");
    tmk_csv_text(&c, "a=b");
    tmk_csv_text(&c, "\x1b[2J\xe2\x80\xaeq\xff");
    tmk_csv_text(&c, "\tx");
    tmk_csv_text(&c, "two\r\nlines");
    tmk_csv_text(&c, "\n=1");
    tmk_csv_number(&c, "-2.5");
    tmk_csv_number(&c, "-7");
    tmk_csv_end_row(&c);
    sheet_check(&s, "\"'=1+1\",\"'  @x\",a=b,\xef\xbf\xbd[2J\xef\xbf\xbdq\xef\xbf\xbd,"
                    "\"'\tx\",\"two\xef\xbf\xbd\xef\xbf\xbdlines\",\"'\xef\xbf\xbd=1\",-2.5,-7\n");
}

/* ---- trees: the same values as JSON and as CSV ---- */

static void put_known_and_unknown(struct tmk_tree *t)
{
    tmk_tree_text(t, "text", "a, b");
    tmk_tree_text(t, "no_text", NULL);
    tmk_tree_label(t, "no_label", "");
    tmk_tree_bytes(t, "bytes", 4096);
    tmk_tree_bytes(t, "no_bytes", TMK_BYTES_UNKNOWN);
    tmk_tree_number(t, "rank", 0);
    tmk_tree_number(t, "no_rank", -1);
    tmk_tree_u64_if(t, "no_u64", false, 3);
    tmk_tree_i64_if(t, "i64", true, -3);
    tmk_tree_bool(t, "bool", true);
    tmk_tree_bool_if(t, "no_bool", false, true);
    tmk_tree_double(t, "double", 0.5);
    tmk_tree_double(t, "no_double", NAN);
    tmk_tree_fixed(t, "fixed", 1.0 / 3, 2);
    tmk_tree_fixed(t, "no_fixed", INFINITY, 2);
    tmk_tree_unknown(t, "unknown");
}

static void put_tree(struct tmk_tree *t)
{
    tmk_tree_object(t, NULL);
    tmk_tree_list(t, "all");
    for (int i = 0; i < 2; i++) {
        tmk_tree_object(t, NULL);
        tmk_tree_u64(t, "n", (uint64_t)i);
        if (tmk_tree_object_if(t, "inner", i == 1)) {
            tmk_tree_text(t, "name", "x");
            tmk_tree_end(t);
        }
        if (tmk_tree_list_if(t, "words", i == 1)) {
            tmk_tree_text(t, NULL, "=1");
            tmk_tree_end(t);
        }
        tmk_tree_end(t);
    }
    tmk_tree_end(t);
    tmk_tree_end(t);
}

static void test_tree_json(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_tree t;
    sheet_open(&s);
    tmk_tree_init_json(&t, s.out, 0);
    tmk_tree_object(&t, NULL);
    put_known_and_unknown(&t);
    tmk_tree_end(&t);
    sheet_check(&s,
                "{\"text\": \"a, b\", \"no_text\": null, \"no_label\": null, \"bytes\": 4096, "
                "\"no_bytes\": null, \"rank\": 0, \"no_rank\": null, \"no_u64\": null, "
                "\"i64\": -3, \"bool\": true, \"no_bool\": null, \"double\": 0.5, "
                "\"no_double\": null, \"fixed\": 0.33, \"no_fixed\": null, \"unknown\": null}\n");
    sheet_open(&s);
    tmk_tree_init_json(&t, s.out, 0);
    put_tree(&t);
    sheet_check(&s, "{\"all\": [{\"n\": 0, \"inner\": null, \"words\": null}, "
                    "{\"n\": 1, \"inner\": {\"name\": \"x\"}, \"words\": [\"=1\"]}]}\n");
}

static void test_tree_csv(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_tree t;
    sheet_open(&s);
    tmk_tree_init_csv(&t, s.out, true);
    put_tree(&t);
    sheet_check(&s, "section,item,key,value\n"
                    "all,0,n,0\n"
                    "all,0,inner,\n"
                    "all,0,words,\n"
                    "all,1,n,1\n"
                    "all.inner,1,name,x\n"
                    "all.words,1,,\"'=1\"\n");
}

static void test_tree_rows(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_tree t;
    sheet_open(&s);
    tmk_tree_init_rows(&t, s.out, false);
    for (int i = 0; i < 2; i++) {
        tmk_tree_object(&t, NULL);
        put_known_and_unknown(&t);
        tmk_tree_end(&t);
    }
    sheet_check(&s,
                "text,no_text,no_label,bytes,no_bytes,rank,no_rank,no_u64,i64,bool,no_bool,double,"
                "no_double,fixed,no_fixed,unknown\n"
                "\"a, b\",,,4096,,0,,,-3,true,,0.5,,0.33,,\n");
}

/* ---- printing ---- */

static void test_print(void **state)
{
    (void)state;
    struct sheet s;
    sheet_open(&s);
    tmk_print(s.out, "a %s\n%d %s\n", "x\ny", 7, "\1\2\x1b[m");
    tmk_print(s.out, "%s", "\xe2\x80\xae");
    tmk_print(s.out, "\n\n%s.", "\1\2\3\4\5\6\7");
    sheet_check(&s, "a x\xef\xbf\xbdy\n7 \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd[m\n"
                    "\xef\xbf\xbd\n\n\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                    "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
}

/* ---- UTF-8 ---- */

static void check_cut(const char *text, size_t width, const char *expected, size_t columns)
{
    struct sheet s;
    sheet_open(&s);
    assert_int_equal(tmk_utf8_write(s.out, text, width), columns);
    sheet_check(&s, expected);
}

static void test_utf8(void **state)
{
    (void)state;
    assert_int_equal(tmk_utf8_width("abc"), 3);
    assert_int_equal(tmk_utf8_width("h\xc3\xa9"), 2);
    assert_int_equal(tmk_utf8_width("\xe4\xb8\xad\xe6\x96\x87"), 4); /* two wide characters */
    assert_int_equal(tmk_utf8_width("e\xcc\x81"), 1);                /* combining */
    assert_int_equal(tmk_utf8_width("\xff\x1b"), 2);
    check_cut("abcdef", 6, "abcdef", 6);
    check_cut("abcdef", 4, "abc…", 4);
    check_cut("abcdef", 1, "…", 1);
    check_cut("abcdef", 0, "", 0);
    check_cut("\xe4\xb8\xad\xe6\x96\x87", 3, "\xe4\xb8\xad…", 3);
    check_cut("\xe4\xb8\xad\xe6\x96\x87", 2, "…", 1); /* half a character: none */
    check_cut("a\x1b[31mb", 20, "a\xef\xbf\xbd[31mb", 7);
}

/* Pieces are written with a bar behind each. */
static void check_pieces(const char *text, const char *expected)
{
    struct sheet s;
    sheet_open(&s);
    while (*text) {
        size_t n = tmk_utf8_piece(text);
        fprintf(s.out, "%.*s|", (int)n, text);
        text += n;
        text += *text == ' ';
    }
    sheet_check(&s, expected);
}

static void test_utf8_pieces(void **state)
{
    (void)state;
    check_pieces("two words", "two|words|");
    check_pieces("显存。", "显|存。|");
    check_pieces("泄漏，每步 3 个", "泄|漏，|每|步|3|个|");
    check_pieces("（第 3 步）", "（第|3|步）|");
    check_pieces("a.py:12的张量", "a.py:12|的|张|量|");
    check_pieces("步(cuda:0)里", "步|(cuda:0)|里|");
}

static void test_utf8_tail(void **state)
{
    (void)state;
    assert_string_equal(tmk_utf8_tail("abcdef", 6), "abcdef");
    assert_string_equal(tmk_utf8_tail("abcdef", 4), "cdef");
    assert_string_equal(tmk_utf8_tail("abcdef", 0), "");
    assert_string_equal(tmk_utf8_tail("", 3), "");
    assert_string_equal(tmk_utf8_tail("\xe4\xb8\xad\xe6\x96\x87", 3), "\xe6\x96\x87");
    assert_string_equal(tmk_utf8_tail("\xff\x1b"
                                      "a",
                                      2),
                        "\x1b"
                        "a");
}

/* ---- words for a shell ---- */

static void check_word(const char *word, const char *expected)
{
    struct tmk_arena arena = {0};
    assert_string_equal(tmk_shell_word(&arena, word), expected);
    tmk_arena_fini(&arena);
}

static void test_shell_word(void **state)
{
    (void)state;
    check_word("/a/b-c_d/0001.tmk", "/a/b-c_d/0001.tmk");
    check_word("{seq}", "{seq}");
    check_word("{a,b}", "'{a,b}'"); /* two words to bash */
    check_word("{1..3}", "'{1..3}'");
    check_word("", "''");
    check_word("a b", "'a b'");
    check_word("~/a", "'~/a'");
    check_word("it's", "'it'\\''s'");
    check_word("'", "''\\'''");
}

/* ---- tables ---- */

static const struct tmk_column columns[] = {
    {"name", TMK_LEFT, TMK_SHRINK},
    {"n", TMK_RIGHT, TMK_FIXED},
    {"", TMK_LEFT, TMK_FIXED},
};

static void add_row(struct tmk_table *t, const char *name, const char *n, const char *bar)
{
    tmk_table_cell(t, name);
    tmk_table_cell(t, n);
    tmk_table_cell(t, bar);
}

static void test_table(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_row(t, "long name of a thing", "1", "");
    add_row(t, NULL, "1000", "#");
    struct tmk_table_style style = {.indent = 1};
    sheet_open(&s);
    assert_int_equal(tmk_table_n_rows(t), 2);
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    add_row(t, "more", "2", "");
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    sheet_check(&s, " name                     n\n"
                    " long name of a thing     1\n"
                    " -                     1000  #\n"
                    " more                     2\n");
    tmk_table_close(t);
}

static void test_table_fits(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_row(t, "long name of a thing", "1", "#");
    struct tmk_table_style style = {.indent = 2, .width = 20};
    sheet_open(&s);
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    sheet_check(&s, "  name          n\n"
                    "  long name of  1  #\n"
                    "    a thing\n");
    tmk_table_close(t);
}

/* Titles that are wider than what stands below them are broken before anything is cut, and no more
 * of them than need be. */
static void test_table_folds_titles(void **state)
{
    static const struct tmk_column long_titles[] = {
        {"max_physical_batch_size", TMK_RIGHT, TMK_SHRINK},
        {"kind of thing", TMK_LEFT, TMK_SHRINK},
        {"lora_rank", TMK_RIGHT, TMK_SHRINK},
        {"time taken", TMK_RIGHT, TMK_FIXED},
    };
    (void)state;
    struct sheet s;
    struct tmk_table *t = tmk_table_open(long_titles, 4);
    struct tmk_table_style style = {.indent = 1, .width = 44};
    for (int i = 0; i < 4; i++)
        tmk_table_cell(t, "8");
    sheet_open(&s);
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    sheet_check(&s, "       max_  kind\n"
                    "  physical_  of\n"
                    " batch_size  thing  lora_rank  time taken\n"
                    "          8  8              8           8\n");
    tmk_table_close(t);
}

/* A column that had to be cut below what its title needs: no more lines than else, the last one
 * cut.
 */
static void test_table_cuts_titles(void **state)
{
    static const struct tmk_column long_titles[] = {
        {"of_a_very_long_name_with_many_parts", TMK_LEFT, TMK_SHRINK},
        {"thing", TMK_LEFT, TMK_FIXED},
    };
    (void)state;
    struct sheet s;
    struct tmk_table *t = tmk_table_open(long_titles, 2);
    struct tmk_table_style style = {.width = 15};
    tmk_table_cell(t, "8");
    tmk_table_cell(t, "9");
    sheet_open(&s);
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    sheet_check(&s, "of_a_\n"
                    "very_\n"
                    "long_na…  thing\n"
                    "8         9\n");
    tmk_table_close(t);
}

static void test_table_markdown(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_table *t = tmk_table_open(columns, 3);
    add_row(t, "a|b_c", "1", "x\ny");
    struct tmk_table_style style = {.markdown = true};
    sheet_open(&s);
    assert_int_equal(tmk_table_print(t, s.out, &style), 0);
    sheet_check(&s, "| name | n |  |\n|---|---:|---|\n| a\\|b\\_c | 1 | x y |\n");
    tmk_table_close(t);
}

/* ---- Markdown ---- */

static void check_markdown(const char *text, bool begins_line, const char *expected)
{
    struct sheet s;
    sheet_open(&s);
    tmk_markdown_text(s.out, text, begins_line);
    sheet_check(&s, expected);
}

static void test_markdown(void **state)
{
    (void)state;
    check_markdown("blocks.0.attn (cuda:0), 5 % = x; a-b", false,
                   "blocks.0.attn (cuda:0), 5 % = x; a-b");
    check_markdown("![x](http://evil)", false, "!\\[x\\](http&#8203;://evil)");
    check_markdown("[log in](HTTPS://evil)", false, "\\[log in\\](HTTPS&#8203;://evil)");
    check_markdown("[a]: ftp://evil [^1]", true, "\\[a\\]: ftp&#8203;://evil \\[^1\\]");
    check_markdown("<b onclick=x> &copy; </b>", false, "\\<b onclick=x\\> \\&copy; \\</b\\>");
    check_markdown("<http://evil>", false, "\\<http&#8203;://evil\\>");
    check_markdown("www.evil.com wWw.", false, "www&#8203;.evil.com wWw&#8203;.");
    check_markdown("@root a@b.c @", false, "@&#8203;root a@&#8203;b.c @&#8203;");
    check_markdown("fixes #12, GH-7, gh-x, C# #", false,
                   "fixes \\#&#8203;12, GH-&#8203;7, gh-x, C\\# \\#");
    check_markdown("*a* _b_ ~c~ `d` $e$ |f| \\", false,
                   "\\*a\\* \\_b\\_ \\~c\\~ \\`d\\` &#36;e&#36; \\|f\\| \\\\");
    check_markdown("\\| \\[x]", false, "\\\\\\| \\\\\\[x\\]");
    check_markdown(":tada: a:b: a.py:3 in f", false, ":&#8203;tada: a:&#8203;b: a.py:3 in f");
    check_markdown("two\r\nlines \t\x1b\xff\xe2\x80\xae.  ", false,
                   "two  lines \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
}

static void test_markdown_at_the_start(void **state)
{
    (void)state;
    check_markdown("# a", true, "\\# a");
    check_markdown("> a", true, "\\> a");
    check_markdown("    a", true, "a");
    check_markdown("- a", true, "\\- a");
    check_markdown("+ a", true, "\\+ a");
    check_markdown("---", true, "\\---");
    check_markdown("===", true, "\\===");
    check_markdown("12. a", true, "12\\. a");
    check_markdown("1) a", true, "1\\) a");
    check_markdown("1.5 GiB", true, "1.5 GiB");
    check_markdown("480 MiB", true, "480 MiB");
    check_markdown("~~~", true, "\\~\\~\\~");
    check_markdown("```", true, "\\`\\`\\`");
    check_markdown("| a |", true, "\\| a \\|");
    check_markdown("- a", false, "- a");
    check_markdown("", true, "");
    check_markdown("  ", true, "");
}

/* A trace may have a name of megabytes: the work grows as the name does. */
static void check_long_markdown(const char *piece)
{
    const size_t n_bytes = 1 << 20, n = strlen(piece);
    char *text = malloc(n_bytes + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n_bytes; i++)
        text[i] = piece[i % n];
    text[n_bytes] = '\0';
    struct sheet s;
    sheet_open(&s);
    tmk_markdown_text(s.out, text, true);
    fclose(s.out);
    assert_true(s.n >= n_bytes);
    free(s.text);
    free(text);
}

static void test_markdown_of_long_names(void **state)
{
    (void)state;
    check_long_markdown("a");
    check_long_markdown(":");
    check_long_markdown(":aaaa");
    check_long_markdown(":aaaa_bbbb-cccc+dddd0123456789aaaabbbbccccddddeeeeffffgggghhhhiiiijjjj");
    check_markdown(":man_in_motorized_wheelchair_facing_right:", false,
                   ":&#8203;man\\_in\\_motorized\\_wheelchair\\_facing\\_right:");
}

/* ---- progress ---- */

/* Silent at first, then a line every ten seconds; not more. */
static void test_progress(void **state)
{
    (void)state;
    struct sheet s;
    struct tmk_progress p;
    const uint64_t second = 1000000000;
    sheet_open(&s);
    tmk_progress_init(&p, s.out, "reading a.trace");
    tmk_progress_tell(&p, 1, 4);
    p.start_ns -= 12 * second; /* as if it had been going on for twelve seconds */
    p.last_ns -= 12 * second;
    tmk_progress_tell(&p, 1, 4);
    tmk_progress_tell(&p, 2, 4);
    p.start_ns -= 10 * second;
    p.last_ns -= 10 * second;
    tmk_progress_tell(&p, 0, 0);
    tmk_progress_fini(&p);
    sheet_check(&s, "tidemark: reading a.trace: 25 %, 12 s\ntidemark: reading a.trace: 22 s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_values),
        cmocka_unit_test(test_json_fixed),
        cmocka_unit_test(test_json_text),
        cmocka_unit_test(test_json_lines),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_csv_of_strangers),
        cmocka_unit_test(test_tree_json),
        cmocka_unit_test(test_tree_csv),
        cmocka_unit_test(test_tree_rows),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_utf8_pieces),
        cmocka_unit_test(test_utf8_tail),
        cmocka_unit_test(test_shell_word),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_fits),
        cmocka_unit_test(test_table_folds_titles),
        cmocka_unit_test(test_table_cuts_titles),
        cmocka_unit_test(test_table_markdown),
        cmocka_unit_test(test_markdown),
        cmocka_unit_test(test_markdown_at_the_start),
        cmocka_unit_test(test_markdown_of_long_names),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
