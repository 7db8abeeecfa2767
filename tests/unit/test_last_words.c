/* SPDX-License-Identifier: MIT */
/* What a program said last: which error it ended with, and which it only spoke of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sweep/last_words.h"

static void memory_ran_out(void **state)
{
    static const char *const texts[] = {
        "MemoryError",
        "  File \"a.py\", line 1, in <module>\n    bytearray(1 << 40)\nMemoryError",
        "    x = x @ w\ntorch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
        "GiB",
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:66] . DefaultCPUAllocator: not enough memory",
        "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  "
        "std::bad_alloc",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9",
        "sh: 1: Cannot fork: Cannot allocate memory",
        "    y = f(x)\ntorch.OutOfMemoryError: CUDA out of memory. Tried\n[W Module.cpp:9] leaving",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!tmk_last_words_tell_oom(texts[i]))
            fail_msg("not told: %s", texts[i]);
}

static void something_else_went_wrong(void **state)
{
    static const char *const texts[] = {
        "caught MemoryError, trying half the batch\nValueError: no such file",
        "    y = f(x)\ntorch.OutOfMemoryError: CUDA out of memory\nDuring handling of the above "
        "exception, "
        "another exception occurred:\n    return c['batch']\nKeyError: "
        "'batch'",
        "CUDA out of memory: batch 8 is skipped\nstep 3 of 9\nSegmentation fault",
        "0 times MemoryError so far",
        "MemoryError: said in passing\nthe disk is full",
        "AssertionError: expected MemoryErrors",
        "",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (tmk_last_words_tell_oom(texts[i]))
            fail_msg("told: %s", texts[i]);
    assert_false(tmk_last_words_tell_oom(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_ran_out),
        cmocka_unit_test(something_else_went_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
