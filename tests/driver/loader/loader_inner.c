/* SPDX-License-Identifier: MIT */
#include "loader_parts.h"

int loader_inner(void)
{
    return 40;
}
