/* SPDX-License-Identifier: MIT */
/* Settings of torch's allocator: texts that it takes and refuses, and the rules that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "model/alloc_conf.h"

static const uint64_t mib = 1ull << 20;

static struct tmk_alloc_conf parsed(const char *text)
{
    struct tmk_alloc_conf conf;
    assert_int_equal(tmk_alloc_conf_parse(text, &conf, NULL), 0);
    return conf;
}

static void test_defaults(void **state)
{
    (void)state;
    struct tmk_alloc_conf conf = parsed(NULL), empty = parsed("");
    assert_int_equal(conf.max_split_bytes, TMK_ALLOC_NO_BOUND);
    assert_int_equal(conf.max_non_split_rounding_bytes, 20 * mib);
    assert_int_equal(conf.large_segment_bytes, 20 * mib);
    assert_true(conf.gc_threshold == 0);
    assert_true(conf.memory_fraction == 1);
    assert_false(conf.expandable_segments);
    assert_false(conf.is_async);
    assert_int_equal(empty.max_split_bytes, TMK_ALLOC_NO_BOUND);
}

static void test_options(void **state)
{
    (void)state;
    struct tmk_alloc_conf conf =
        parsed(" expandable_segments : True, max_split_size_mb:128,garbage_collection_threshold:0.8"
               ",per_process_memory_fraction:0.5,large_segment_size_mb:40,"
               "max_non_split_rounding_mb:64,pinned_num_register_threads:8,backend:native");
    assert_true(conf.expandable_segments);
    assert_int_equal(conf.max_split_bytes, 128 * mib);
    assert_true(conf.gc_threshold == 0.8);
    assert_true(conf.memory_fraction == 0.5);
    assert_int_equal(conf.large_segment_bytes, 40 * mib);
    assert_int_equal(conf.max_non_split_rounding_bytes, 64 * mib);
    assert_false(conf.is_async);
    assert_true(parsed("backend:cudaMallocAsync").is_async);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"max_split_size:32", "torch knows no option 'max_split_size'"},
        {"max_split_size_mb:19", "max_split_size_mb must be at least 20"},
        {"max_split_size_mb:0", "max_split_size_mb must be at least 20"},
        {"max_split_size_mb:32,large_segment_size_mb:40", "max_split_size_mb must be at least 40"},
        {"max_non_split_rounding_mb:19", "max_non_split_rounding_mb must be at least 20"},
        {"large_segment_size_mb:64,max_non_split_rounding_mb:40", "must be at least 64"},
        {"large_segment_size_mb:2", "large_segment_size_mb must be at least 11"},
        {"large_segment_size_mb:10", "large_segment_size_mb must be at least 11"},
        {"max_split_size_mb", "':' expected before 'the end'"},
        {"max_split_size_mb:x", "max_split_size_mb needs a number, not 'x'"},
        {"max_split_size_mb:-32", "needs a number, not '-32'"},
        {"garbage_collection_threshold:1", "must be below 1"},
        {"garbage_collection_threshold:0", "between 0 and 1, not '0'"},
        {"garbage_collection_threshold:-0.5", "between 0 and 1, not '-0.5'"},
        {"per_process_memory_fraction:0", "between 0 and 1, not '0'"},
        {"per_process_memory_fraction:1.1", "between 0 and 1, not '1.1'"},
        {"roundup_power2_divisions:0", "must be a power of 2"},
        {"garbage_collection_threshold:nan", "between 0 and 1, not 'nan'"},
        {"expandable_segments:true", "needs True or False, not 'true'"},
        {"expandable_segments:True max_split_size_mb:32", "not 'Truemax_split_size_mb'"},
        {"roundup_power2_divisions:3", "must be a power of 2"},
        {"roundup_power2_divisions:[256:3]", "must be a power of 2"},
        {"roundup_power2_divisions:[255:4]",
         "intervals of roundup_power2_divisions must be a power"},
        {"roundup_power2_divisions:[256:4", "']' expected before 'the end'"},
        {"backend:mine", "backend is native or cudaMallocAsync, not 'mine'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tmk_alloc_conf conf = {.max_split_bytes = 7};
        struct tmk_error err = {0};
        assert_int_equal(tmk_alloc_conf_parse(bad[i].text, &conf, &err), TMK_EINVAL);
        if (!strstr(err.text, bad[i].why))
            fail_msg("%s: %s", bad[i].text, err.text);
        assert_int_equal(conf.max_split_bytes, 7); /* untouched */
    }
}

/* The first interval named stands for those below it too, ">" for those above the last one. */
static void test_roundup_intervals(void **state)
{
    (void)state;
    static const uint64_t expected[TMK_ALLOC_N_INTERVALS] = {1, 1, 1, 1, 1, 1, 1, 1,
                                                             1, 2, 4, 8, 8, 8, 8, 8};
    struct tmk_alloc_conf conf = parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    for (unsigned i = 0; i < TMK_ALLOC_N_INTERVALS; i++)
        assert_int_equal(conf.roundup_divisions[i], expected[i]);
    conf = parsed("roundup_power2_divisions:[64:8,128:0]");
    assert_int_equal(conf.roundup_divisions[0], 8);
    assert_int_equal(conf.roundup_divisions[6], 8);
    assert_int_equal(conf.roundup_divisions[7], 0);
    assert_int_equal(conf.roundup_divisions[8], 0);
    conf = parsed("roundup_power2_divisions:[>:4]");
    assert_int_equal(conf.roundup_divisions[0], 0);
    assert_int_equal(conf.roundup_divisions[1], 4);
    assert_int_equal(conf.roundup_divisions[15], 4);
    conf = parsed("roundup_power2_divisions:[1048576:2]"); /* beyond the last: the last */
    assert_int_equal(conf.roundup_divisions[15], 2);
}

static void test_round(void **state)
{
    (void)state;
    struct tmk_alloc_conf plain = parsed(""), four = parsed("roundup_power2_divisions:4");
    assert_int_equal(tmk_alloc_round(&plain, 0), 512);
    assert_int_equal(tmk_alloc_round(&plain, 1), 512);
    assert_int_equal(tmk_alloc_round(&plain, 512), 512);
    assert_int_equal(tmk_alloc_round(&plain, 513), 1024);
    assert_int_equal(tmk_alloc_round(&plain, 5 * mib + 1), 5 * mib + 512);
    /* Up to 512 x divisions as ever; above in quarters between powers of 2. */
    assert_int_equal(tmk_alloc_round(&four, 1200), 1536);
    assert_int_equal(tmk_alloc_round(&four, 2048), 2048);
    assert_int_equal(tmk_alloc_round(&four, 2049), 2560);
    assert_int_equal(tmk_alloc_round(&four, 4 * mib), 4 * mib);
    assert_int_equal(tmk_alloc_round(&four, 4 * mib + 1), 5 * mib);
    assert_int_equal(tmk_alloc_round(&four, 7 * mib + 1), 8 * mib);
    /* Intervals: 300 MiB lies in 256-512, where 8 parts are 32 MiB each. */
    struct tmk_alloc_conf some = parsed("roundup_power2_divisions:[128:0,256:8,512:0]");
    assert_int_equal(tmk_alloc_round(&some, 300 * mib), 320 * mib);
    assert_int_equal(tmk_alloc_round(&some, 200 * mib + 1), 200 * mib + 512);
    assert_int_equal(tmk_alloc_round(&some, 600 * mib + 1), 600 * mib + 512);
}

static void test_segments(void **state)
{
    (void)state;
    struct tmk_alloc_conf conf = parsed("");
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 512), 2 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, mib), 2 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, mib + 512), 20 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 10 * mib - 512), 20 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 10 * mib), 10 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 10 * mib + 512), 12 * mib);
    assert_int_equal(tmk_alloc_page_bytes(&conf, true), 2 * mib);
    assert_int_equal(tmk_alloc_page_bytes(&conf, false), 20 * mib);
    conf = parsed("large_segment_size_mb:64");
    assert_int_equal(tmk_alloc_segment_bytes(&conf, mib + 512), 64 * mib);
    assert_int_equal(tmk_alloc_page_bytes(&conf, false), 64 * mib);
    assert_int_equal(conf.max_non_split_rounding_bytes, 64 * mib);  /* unless it is given */
    conf = parsed("max_split_size_mb:11,large_segment_size_mb:11"); /* the least of both */
    assert_int_equal(conf.max_split_bytes, 11 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 10 * mib - 512), 11 * mib);
    assert_int_equal(tmk_alloc_segment_bytes(&conf, 10 * mib), 10 * mib);
}

static void test_split(void **state)
{
    (void)state;
    struct tmk_alloc_conf conf = parsed(""), split = parsed("max_split_size_mb:32");
    struct tmk_alloc_conf grow = parsed("expandable_segments:True");
    assert_true(tmk_alloc_should_split(&conf, 2 * mib, 2 * mib - 512 - mib));
    assert_true(tmk_alloc_should_split(&conf, 1024, 512)); /* small: whatever is left */
    assert_false(tmk_alloc_should_split(&conf, 512, 512));
    assert_false(tmk_alloc_should_split(&conf, 3 * mib, 2 * mib)); /* large: more than 1 MiB */
    assert_true(tmk_alloc_should_split(&conf, 3 * mib + 512, 2 * mib));
    assert_true(tmk_alloc_should_split(&split, 40 * mib, 32 * mib - 512));
    assert_false(tmk_alloc_should_split(&split, 40 * mib, 32 * mib));
    assert_true(tmk_alloc_should_split(&grow, 3 * mib, 3 * mib - 512));
    assert_false(tmk_alloc_should_split(&grow, 3 * mib, 3 * mib));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_roundup_intervals),
        cmocka_unit_test(test_round),    cmocka_unit_test(test_segments),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
