/* SPDX-License-Identifier: MIT */
/* record/control/sandbox.h - whether this process may be recorded under the seccomp filters that it
 * has.
 *
 * Filters that come later are seal.h's. */
#ifndef TMK_RECORD_SANDBOX_H
#define TMK_RECORD_SANDBOX_H

#include <stdbool.h>

/* Read the environment; from our library's constructor. */
void tmk_sandbox_prepare(void);

/* `attach` says what it knows of the filters: a value of TIDEMARK_SECCOMP (base/filters.h). They
 * are looked at anew with that. */
void tmk_sandbox_hear(const char *said);
bool tmk_sandbox_is_trusted(void);

/* Look at the filters. False: they are not known to let a recorder live. Then nothing was called
 * but open, read and close of files that are opened for reading, as the loader does it, and nothing
 * else will be. `tidemark run` around the program notices (TIDEMARK_REFUSALS); nobody else does. */
bool tmk_sandbox_allows(void);

/* Whether that was the last answer. */
bool tmk_sandbox_is_refused(void);

#endif
