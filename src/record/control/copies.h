/* SPDX-License-Identifier: MIT */
/* record/control/copies.h - other copies of this library in the process.
 *
 * A job under `tidemark run` may load the libtidemark.so of a Python package, or be started by a
 * `tidemark run` of another installation inside the first. Calls of torch and the driver go through
 * all of them, so each event would be recorded by each. The one that was loaded first records what
 * the environment asks for; the others do nothing unless they are attached to, and then only when
 * none of the others records. */
#ifndef TMK_RECORD_COPIES_H
#define TMK_RECORD_COPIES_H

#include <stdbool.h>

/* Whether no other copy was loaded before this one. Takes the loader's lock for a moment. */
bool tmk_copies_is_first(void);

/* Whether another copy records, or would with the next event. */
bool tmk_copies_record(void);

#endif
