/* SPDX-License-Identifier: MIT */
/* record/control/attach.h - begin and end recording in a process that already runs.
 *
 * To begin: take options instead of the environment, put hooks into import slots, arm at once. To
 * end: restore the slots, close the trace. The library stays loaded and may begin again, with a new
 * trace. */
#ifndef TMK_RECORD_ATTACH_H
#define TMK_RECORD_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

/* Attach. Options are lines "key=value": run (an absolute path), max_size (bytes), cpu_tensors,
 * native, no_stacks, no_modules, no_categories (1), step_at (FILE:LINE), injected (1: the calling
 * thread was made for this and ends then), at_first_event (1: make nothing before, as `tidemark
 * run` does; for a process in which nothing is alive that would have to be listed), seccomp (trust:
 * its filters do no harm). 0, or -1 with the reason in `message`. Waits up to 5 s for an attach or
 * detach that is under way. The injector, `import tidemark` and tests call this. */
__attribute__((visibility("default"))) int tidemark_attach(const char *options, char *message,
                                                           size_t size);

/* Take the hooks out of torch's calls (0), or put them in again: all (1), or all but those in calls
 * of modules, backward and optimizers (2). Returns how many import slots were written. This is for
 * measuring what hooks cost; what they do not see meanwhile is not recorded. */
__attribute__((visibility("default"))) int tidemark_hook(int in);

/* Detach. 0, or -1 with the reason in `message`. */
int tmk_attach_end(char *message, size_t size);

#endif
