/* SPDX-License-Identifier: MIT */
/* kit/language.c - see language.h. */
#include "kit/language.h"

#include <stdlib.h>
#include <string.h>

bool tmk_language_is_chinese(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strncmp(value, "zh_CN", 5) == 0;
    }
    return false;
}
