/* SPDX-License-Identifier: MIT */
/* trace/refusals.h - why processes of a run left no trace: a small text file, a line for each.
 *
 *     PID REASON ERRNO TEXT
 *
 * It is RUN/refused, or RUN.refused beside it while there is no folder RUN: a process that does not
 * record makes none. At most 64 KiB, the rest is left out. Writers make the system calls prlimit64,
 * openat, fstat, read, write and close. The loader makes some of these, but does not open for
 * writing: who is under a filter that may kill does not write here; `tidemark run` does so in its
 * stead (record/control/sandbox.h). Readers take numbers from the file and no text. */
#ifndef TMK_TRACE_REFUSALS_H
#define TMK_TRACE_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "trace/layout.h"

enum { TMK_REFUSALS_MAX_BYTES = 65536 };

struct tmk_refusal {
    uint32_t pid;         /* 0: not known */
    enum tmk_stop reason; /* may be one that this tidemark does not know */
    int os_error;         /* 0: none */
};

/* Path of the file inside the folder, or beside it. */
void tmk_refusals_path(const char *folder, bool is_inside, struct tmk_text *out);

/* Add a line, unless the file has other names or lines that are not ours: then it is the user's.
 * 0 or TMK_E*. No malloc, no stdio. */
int tmk_refusals_append(const char *folder, const struct tmk_refusal *refusal);

/* Whether the file there is of our making and may be moved or removed: a plain file of this user
 * (or the asker is root), with no other name, with lines as above and nothing else. */
bool tmk_refusals_are_own(const char *folder, bool is_inside);

/* Read at most `most` of a run's lines, those inside first; returns how many. What is not a plain
 * file, or a line that is not as above, counts as nothing; so does a file beside the folder that
 * has one such line, or another name. */
size_t tmk_refusals_read(const char *folder, struct tmk_refusal *ret, size_t most);

#endif
