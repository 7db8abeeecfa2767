/* SPDX-License-Identifier: MIT */
/* Tests of draw/canvas.h and draw/svg_writer.h: what a canvas becomes as an SVG, byte for byte. */
#include "draw/canvas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/svg_writer.h"

#define BLACK 0xff000000
#define RED 0xffff0000

static struct tmk_canvas *c;

static int open_canvas(void **state)
{
    (void)state;
    return tmk_canvas_open(100, 50, 0xffffffff, &c);
}

static int close_canvas(void **state)
{
    (void)state;
    c = tmk_canvas_close(c);
    return 0;
}

/* The lines between the background and the end are these. */
static void assert_svg(const char *expected)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    assert_int_equal(tmk_canvas_error(c), 0);
    tmk_svg_write(c, out);
    fclose(out);
    const char *background = "<rect width=\"100\" height=\"50\" fill=\"#ffffff\"/>\n";
    char *body = strstr(text, background);
    assert_non_null(body);
    body += strlen(background);
    char *end = strstr(body, "</svg>\n");
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(body, expected);
    free(text);
}

static void test_path_moves(void **state)
{
    (void)state;
    const struct tmk_point points[] = {{1, 2}, {3, 2}, {3, 4.04}, {5.55, 6}, {4, 5}};
    tmk_canvas_path(c, points, 5, true, &(struct tmk_paint){.fill = RED});
    assert_svg("<path d=\"M1 2h2v2l2.6 2l-1.6-1z\" fill=\"#ff0000\"/>\n");
}

/* No error adds up: a thousand steps of a thirtieth end where they should. */
static void test_path_is_not_driven_off(void **state)
{
    (void)state;
    struct tmk_point points[1001];
    for (unsigned i = 0; i <= 1000; i++)
        points[i] = (struct tmk_point){i / 30.0, i % 2};
    tmk_canvas_path(c, points, 1001, false, &(struct tmk_paint){.stroke = BLACK});
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    tmk_svg_write(c, out);
    fclose(out);
    double x = 0;
    for (char *at = strchr(strstr(text, "d=\""), 'M'); *at != '"';) {
        char move = *at++;
        double step = strtod(at, &at);
        if (move != 'v')
            x += step;
        while (!strchr("lhv\"", *at))
            at++;
    }
    assert_true(x > 33.29 && x < 33.31);
    free(text);
}

static void test_points_on_a_line_are_left_out(void **state)
{
    (void)state;
    const struct tmk_point points[] = {{0, 0}, {1, 1}, {2, 2}, {2, 2}, {3, 3.01}, {9, 3}, {5, 3}};
    tmk_canvas_path(c, points, 7, false, &(struct tmk_paint){.stroke = RED, .width = 2});
    assert_svg("<path d=\"M0 0l3 3h6h-4\" fill=\"none\" stroke=\"#ff0000\" stroke-width=\"2\"/>\n");
}

/* The right edge of one is the left edge of the next, wherever they lie. */
static void test_neighbours_touch(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        tmk_canvas_rect(c, i * 1.26, 0, 1.26, 3, &(struct tmk_paint){.fill = 0x80ff0000});
    assert_svg("<rect x=\"0\" y=\"0\" width=\"1.3\" height=\"3\" fill=\"#ff0000\" "
               "fill-opacity=\"0.50\"/>\n"
               "<rect x=\"1.3\" y=\"0\" width=\"1.2\" height=\"3\" fill=\"#ff0000\" "
               "fill-opacity=\"0.50\"/>\n"
               "<rect x=\"2.5\" y=\"0\" width=\"1.3\" height=\"3\" fill=\"#ff0000\" "
               "fill-opacity=\"0.50\"/>\n");
}

static void test_texts_are_escaped(void **state)
{
    (void)state;
    tmk_canvas_text(c, 1, 2, "a<b>&\"'\x1b[31m\xff\xef\xbf\xbf",
                    &(struct tmk_text_style){.colour = RED});
    assert_svg(
        "<text x=\"1\" y=\"2\" fill=\"#ff0000\">a&lt;b&gt;&amp;\"'\xef\xbf\xbd[31m\xef\xbf\xbd"
        "\xef\xbf\xbd</text>\n");
}

static void test_styles(void **state)
{
    (void)state;
    tmk_canvas_text(c, 1, 2, "", &(struct tmk_text_style){.colour = RED});
    tmk_canvas_text(c, 1, 2, "a  b",
                    &(struct tmk_text_style){.colour = RED,
                                             .size = 9.5,
                                             .halo = 0xffffffff,
                                             .anchor = TMK_ANCHOR_END,
                                             .is_bold = true,
                                             .angle = 90});
    assert_svg("<text x=\"1\" y=\"2\" text-anchor=\"end\" font-size=\"9.5\" font-weight=\"bold\" "
               "transform=\"rotate(-90 1 2)\" fill=\"#ff0000\" stroke=\"#ffffff\" "
               "stroke-width=\"3\" stroke-linejoin=\"round\" paint-order=\"stroke\" "
               "xml:space=\"preserve\">a  b</text>\n");
}

static void test_groups(void **state)
{
    (void)state;
    tmk_canvas_clip(c, 0, 0, 10, 10);
    tmk_canvas_group(c, "x & y");
    tmk_canvas_disc(c, 5, 5, 2.5, &(struct tmk_paint){.stroke = RED, .dash = TMK_DASH_LONG});
    tmk_canvas_ungroup(c);
    tmk_canvas_ungroup(c);
    assert_svg("<clipPath id=\"c1\"><rect x=\"0\" y=\"0\" width=\"10\" height=\"10\"/></clipPath>\n"
               "<g clip-path=\"url(#c1)\">\n<g><title>x &amp; y</title>\n"
               "<circle cx=\"5\" cy=\"5\" r=\"2.5\" fill=\"none\" stroke=\"#ff0000\" "
               "stroke-dasharray=\"6 4\"/>\n</g>\n</g>\n");
}

static void test_long_texts_are_shortened_in_the_middle(void **state)
{
    (void)state;
    const double most = 60;
    static const char name[] = "model.layers.17.self_attn.q_proj";
    assert_true(tmk_text_width(name, 12, false) > most);
    tmk_canvas_text(c, 0, 0, name, &(struct tmk_text_style){.colour = RED, .most = most});
    assert_svg("<text x=\"0\" y=\"0\" fill=\"#ff0000\"><title>model.layers.17.self_attn.q_proj"
               "</title>mo\xe2\x80\xa6proj</text>\n");
    assert_true(tmk_text_width("mo\xe2\x80\xa6proj", 12, false) <= most);
    assert_true(tmk_text_width("mo\xe2\x80\xa6_proj", 12, false) > most);
}

/* XML has no U+FFFE and U+FFFF, not even as numbers: a picture with one is no picture. */
static void test_no_letter_that_xml_forbids(void **state)
{
    (void)state;
    tmk_canvas_text(c, 0, 0,
                    "\xef\xbf\xbe"
                    "abcdefghijklmnop\xef\xbf\xbf",
                    &(struct tmk_text_style){.colour = RED, .most = 60});
    assert_svg("<text x=\"0\" y=\"0\" fill=\"#ff0000\"><title>\xef\xbf\xbd"
               "abcdefghijklmnop\xef\xbf\xbd</title>\xef\xbf\xbd"
               "a\xe2\x80\xa6op\xef\xbf\xbd</text>\n");
}

static void test_no_accent_without_its_letter(void **state)
{
    (void)state;
    tmk_canvas_text(c, 0, 0,
                    "aaaaaaaaaabe\xcc\x81"
                    "e\xcc\x81"
                    "e\xcc\x81",
                    &(struct tmk_text_style){.colour = RED, .most = 40});
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    tmk_svg_write(c, out);
    fclose(out);
    assert_non_null(strstr(text, "\xe2\x80\xa6"));
    assert_null(strstr(text, "\xe2\x80\xa6\xcc\x81"));
    free(text);
}

static void test_widths(void **state)
{
    (void)state;
    assert_true(tmk_text_width("", 12, false) == 0);
    assert_true(tmk_text_width("WWW", 12, false) > tmk_text_width("iii", 12, false));
    assert_true(tmk_text_width("\xe4\xb8\xad\xe6\x96\x87", 10, false) == 20);
    assert_true(tmk_text_width("e\xcc\x81", 10, false) == tmk_text_width("e", 10, false));
    assert_true(tmk_text_width("abc", 10, true) > tmk_text_width("abc", 10, false));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_canvas, close_canvas)
    const struct CMUnitTest tests[] = {
        TEST(test_path_moves),
        TEST(test_path_is_not_driven_off),
        TEST(test_points_on_a_line_are_left_out),
        TEST(test_neighbours_touch),
        TEST(test_texts_are_escaped),
        TEST(test_styles),
        TEST(test_groups),
        TEST(test_long_texts_are_shortened_in_the_middle),
        TEST(test_no_letter_that_xml_forbids),
        TEST(test_no_accent_without_its_letter),
        TEST(test_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
