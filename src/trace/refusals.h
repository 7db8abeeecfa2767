/* SPDX-License-Identifier: MIT */
/* trace/refusals.h - a small text file of a run, with a line for each process that left no trace:
 * why it is not recorded.
 *
 *     PID REASON ERRNO TEXT
 *
 * It is RUN/refused, or RUN.refused beside it while there is no folder RUN: a process that does not
 * record makes none. The file has at most 64 KiB; further lines are left out. Writers make the
 * system calls prlimit64, openat, fstat, read, write and close. The loader makes some of these, but
 * does not open for writing: a process under a filter that may kill does not write here; `tidemark
 * run` does so in its stead (record/control/sandbox.h). Readers take numbers from the file and no
 * text. */
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

/* Write the path of the file inside the folder, or beside it. */
void tmk_refusals_path(const char *folder, bool is_inside, struct tmk_text *out);

/* Add a line, unless the file has other names or foreign lines: then it is the user's. Returns 0 or
 * TMK_E*. Uses no malloc and no stdio. */
int tmk_refusals_append(const char *folder, const struct tmk_refusal *refusal);

/* Whether tidemark made the file and may move or remove it: a plain file of this user (or the
 * caller is root), with no other name, with lines as above and nothing else. */
bool tmk_refusals_are_own(const char *folder, bool is_inside);

/* Read at most `most` of a run's lines, those inside first; returns how many. Anything but a plain
 * file, and any line not as above, counts as nothing; so does a file beside the folder that has one
 * such line, or another name. */
size_t tmk_refusals_read(const char *folder, struct tmk_refusal *ret, size_t most);

#endif
