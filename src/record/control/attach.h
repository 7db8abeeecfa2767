/* SPDX-License-Identifier: MIT */
/* record/control/attach.h - begin and end recording in a process that already runs.
 *
 * Beginning: options instead of environment, hooks into import slots, arm at once. Ending: slots as
 * they were, trace closed. The library stays loaded and may begin again, with a new trace. */
#ifndef TMK_RECORD_ATTACH_H
#define TMK_RECORD_ATTACH_H

#include <stdbool.h>
#include <stddef.h>

/* Options are lines "key=value": run (an absolute path), max_size (bytes), cpu_tensors, native,
 * no_stacks (1), injected (1: the calling thread was made for this and ends then), seccomp (trust:
 * its filters do no harm). 0, or -1 with the reason in `message`. Waits up to 5 s for an attach or
 * detach that is under way. Called by the injector, by `import tidemark`, by tests. */
__attribute__((visibility("default"))) int tidemark_attach(const char *options, char *message,
                                                           size_t size);

/* Take the hooks out of torch's calls for a while (0), or put them in again, all (1) or but for
 * those in calls of modules, backward and optimizers (2): how many import slots were written. For
 * measuring what they cost; what they do not see meanwhile is not recorded. */
__attribute__((visibility("default"))) int tidemark_hook(int in);

/* 0, or -1 with the reason. */
int tmk_attach_end(char *message, size_t size);

#endif
