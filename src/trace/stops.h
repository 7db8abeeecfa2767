/* SPDX-License-Identifier: MIT */
/* trace/stops.h - texts for the reasons why recording stopped early or never began. */
#ifndef TMK_TRACE_STOPS_H
#define TMK_TRACE_STOPS_H

#include "trace/layout.h"

/* A text for people; numbers that this tidemark does not know have one too. */
const char *tmk_stop_text(enum tmk_stop stop);

#endif
