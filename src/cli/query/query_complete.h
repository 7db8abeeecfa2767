/* SPDX-License-Identifier: MIT */
/* cli/query/query_complete.h - the words that may end a statement as it is being typed. */
#ifndef TMK_CLI_QUERY_QUERY_COMPLETE_H
#define TMK_CLI_QUERY_QUERY_COMPLETE_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "kit/arena.h"

struct tmk_completions {
    struct tmk_arena texts;
    size_t n_typed;     /* bytes at the end of the text that each word continues */
    const char **words; /* sorted within two groups: those likely, then those possible */
    uint64_t n, n_likely, room;
};

/* Finds the words that `typed`, the statement up to the cursor, may end in. `rest` is what stands
 * behind the cursor: tables that it names count. */
void tmk_completions_find(struct tmk_completions *c, sqlite3 *db, const char *typed,
                          const char *rest);
void tmk_completions_fini(struct tmk_completions *c);

/* Returns how many bytes all likely words have in common. */
size_t tmk_completions_common(const struct tmk_completions *c);

#endif
