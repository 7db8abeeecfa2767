/* SPDX-License-Identifier: MIT */
/* cli/run/filters_tried.h - the seccomp filters around this tidemark: do they let a recorder live?
 */
#ifndef TMK_CLI_RUN_FILTERS_TRIED_H
#define TMK_CLI_RUN_FILTERS_TRIED_H

#include <stdbool.h>

/* Returns whether a filter around us kills for a system call that a recorder or `tidemark run`
 * makes. */
bool tmk_filters_refuse(void);

/* Returns the value of TIDEMARK_SECCOMP for a watched program (base/filters.h), for free(); NULL:
 * there are no filters. A value that the user has set is kept. */
char *tmk_filters_said(void);

#endif
