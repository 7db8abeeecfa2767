/* SPDX-License-Identifier: MIT */
/* NVML's types as NVIDIA lays them out; the numbers are those of its header, version 12 and 13. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/nvml_abi.h"

static void test_layout(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct tmk_nvml_memory), 24);
    assert_int_equal(offsetof(struct tmk_nvml_memory, total), 0);
    assert_int_equal(offsetof(struct tmk_nvml_memory, free), 8);
    assert_int_equal(offsetof(struct tmk_nvml_memory, used), 16);

    assert_int_equal(sizeof(struct tmk_nvml_memory_v2), 40);
    assert_int_equal(offsetof(struct tmk_nvml_memory_v2, version), 0);
    assert_int_equal(offsetof(struct tmk_nvml_memory_v2, total), 8);
    assert_int_equal(offsetof(struct tmk_nvml_memory_v2, reserved), 16);
    assert_int_equal(offsetof(struct tmk_nvml_memory_v2, free), 24);
    assert_int_equal(offsetof(struct tmk_nvml_memory_v2, used), 32);
    assert_int_equal(TMK_NVML_MEMORY_V2, sizeof(struct tmk_nvml_memory_v2) | 2u << 24);

    assert_int_equal(sizeof(struct tmk_nvml_utilization), 8);
    assert_int_equal(offsetof(struct tmk_nvml_utilization, gpu), 0);
    assert_int_equal(offsetof(struct tmk_nvml_utilization, memory), 4);

    assert_int_equal(sizeof(struct tmk_nvml_process), 24);
    assert_int_equal(offsetof(struct tmk_nvml_process, pid), 0);
    assert_int_equal(offsetof(struct tmk_nvml_process, used_bytes), 8);
    assert_int_equal(offsetof(struct tmk_nvml_process, gpu_instance), 16);
    assert_int_equal(offsetof(struct tmk_nvml_process, compute_instance), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
