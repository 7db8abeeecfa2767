/* SPDX-License-Identifier: MIT */
#include "loader_parts.h"

int loader_needed(void)
{
    return 30;
}

int loader_own(void) /* what the next one after libloader_local.so has of this name */
{
    return 31;
}
