/* SPDX-License-Identifier: MIT */
/* record/control/sandbox.h - decide whether this process may be recorded under its seccomp filters.
 * For filters that come later, see seccomp.h. */
#ifndef TMK_RECORD_SANDBOX_H
#define TMK_RECORD_SANDBOX_H

#include <stdbool.h>

/* Read the environment; called from our library's constructor. */
void tmk_sandbox_prepare(void);

/* Take what `attach` says of the filters: a value of TIDEMARK_SECCOMP (base/filters.h). The filters
 * are judged again with it. */
void tmk_sandbox_hear(const char *said);
bool tmk_sandbox_is_trusted(void);

/* Judge the filters. False: they are not known to let a recorder live. Then nothing was called but
 * open, read and close of files that are opened for reading, as the loader does it, and nothing
 * else will be. `tidemark run` around the program notices (TIDEMARK_REFUSALS); nobody else does. */
bool tmk_sandbox_allows(void);

/* True when the last answer was false. */
bool tmk_sandbox_is_refused(void);

#endif
