/* SPDX-License-Identifier: MIT */
/* trace/stops.c - see stops.h. */
#include "trace/stops.h"

const char *tmk_stop_text(enum tmk_stop stop)
{
    switch (stop) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        TMK_STOPS(X)
#undef X
    }
    return "for a reason that this tidemark does not know";
}
