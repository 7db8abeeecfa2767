/* SPDX-License-Identifier: MIT */
/* Gates: what is understood, what is refused and why, and who passes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "passes/diff/gates.h"
#include "tidemark/tidemark.h"

static struct tmk_gate parse(const char *text)
{
    struct tmk_gate g;
    struct tmk_error err = {0};
    if (tmk_gate_parse(text, &g, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(g.text, text);
    return g;
}

static void test_parse(void **state)
{
    (void)state;
    struct tmk_gate g = parse("peak>5%");
    assert_int_equal(g.kind, TMK_GATE_ALLOCATED);
    assert_true(g.is_percent && g.percent == 5 && !g.or_equal);
    g = parse(" allocated >= 2.5 % ");
    assert_int_equal(g.kind, TMK_GATE_ALLOCATED);
    assert_true(g.is_percent && g.percent == 2.5 && g.or_equal);
    g = parse("reserved>1GiB");
    assert_int_equal(g.kind, TMK_GATE_RESERVED);
    assert_true(!g.is_percent && g.bytes == 1u << 30);
    g = parse("leak>0");
    assert_int_equal(g.kind, TMK_GATE_LEAK);
    assert_int_equal(g.bytes, 0);
    g = parse("optimizer_state > 512 KiB");
    assert_int_equal(g.kind, TMK_GATE_CATEGORY);
    assert_int_equal(g.category, TIDEMARK_OPTIMIZER_STATE);
    assert_int_equal(g.bytes, 512 * 1024);
    assert_int_equal(parse("unknown>0").category, TIDEMARK_UNKNOWN);
    assert_int_equal(parse("other>0%").category, TIDEMARK_OTHER);
}

static void refuse(const char *text, const char *why)
{
    struct tmk_gate g = {.bytes = 77};
    struct tmk_error err = {0};
    assert_int_equal(tmk_gate_parse(text, &g, &err), TMK_EINVAL);
    assert_int_equal(g.bytes, 77);
    if (!strstr(err.text, why))
        fail_msg("%s: %s", text, err.text);
}

static void test_refuse(void **state)
{
    (void)state;
    char longer[200];
    memset(longer, '>', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    refuse("", "has no '>'");
    refuse("peak", "has no '>'");
    refuse("peak<5%", "has no '>'");
    refuse(">5%", "'' is not known");
    refuse("peek>5%", "'peek' is not known");
    refuse("peak>", "a percentage (5%) or a size (1GiB, 0)");
    refuse("peak>%", "a percentage");
    refuse("peak>-5%", "a percentage");
    refuse("peak>5%%", "a percentage");
    refuse("peak>inf%", "a percentage");
    refuse("peak>many", "a percentage");
    refuse("peak>5%>3", "a percentage");
    refuse("leak>5%", "not a percentage");
    refuse(longer, "short");
}

static bool passes(const char *text, uint64_t a, uint64_t b)
{
    struct tmk_gate g = parse(text);
    struct tmk_gate_measure m = {.known = {true, true}, .bytes = {a, b}};
    return tmk_gate_passes(&g, &m);
}

static void test_judge(void **state)
{
    (void)state;
    assert_true(passes("peak>5%", 1000, 1050));
    assert_false(passes("peak>5%", 1000, 1051));
    assert_false(passes("peak>=5%", 1000, 1050));
    assert_true(passes("peak>=5%", 1000, 1049));
    assert_true(passes("peak>0%", 1000, 10));
    assert_false(passes("peak>0%", 1000, 1001));
    assert_true(passes("peak>1KiB", 0, 1024));
    assert_false(passes("peak>1KiB", 0, 1025));
    assert_false(passes("peak>=1KiB", 0, 1024));
    assert_true(passes("peak>1KiB", 5000, 100));
    assert_false(passes("peak>1000%", 0, 1)); /* of nothing there is no percentage */
    assert_true(passes("peak>0%", 0, 0));
    assert_false(passes("leak>0", 99, 1)); /* B's alone */
    assert_true(passes("leak>0", 99, 0));
    assert_true(passes("leak>1MiB", 0, 1 << 20));
    assert_false(passes("peak>0", UINT64_MAX - 1, UINT64_MAX));
}

/* A check that did not happen is no success. */
static void test_unknown(void **state)
{
    (void)state;
    struct tmk_gate g = parse("reserved>1GiB"), leak = parse("leak>0");
    assert_false(tmk_gate_passes(&g, &(struct tmk_gate_measure){.known = {true, false}}));
    assert_false(tmk_gate_passes(&g, &(struct tmk_gate_measure){.known = {false, true}}));
    assert_false(tmk_gate_passes(&leak, &(struct tmk_gate_measure){.known = {false, false}}));
    assert_true(tmk_gate_passes(&leak, &(struct tmk_gate_measure){.known = {false, true}}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refuse),
        cmocka_unit_test(test_judge),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
