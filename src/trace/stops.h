/* SPDX-License-Identifier: MIT */
/* trace/stops.h - reasons why recording stopped early, or never began, in words. */
#ifndef TMK_TRACE_STOPS_H
#define TMK_TRACE_STOPS_H

#include "trace/layout.h"

/* For people; also for a number that this tidemark does not know. */
const char *tmk_stop_text(enum tmk_stop stop);

#endif
