/* SPDX-License-Identifier: MIT */
/* cli/page/page_stacks.h - the stacks that the page's columns name, each once, with their frames
 * and the source lines of the user's own code. */
#ifndef TMK_CLI_PAGE_PAGE_STACKS_H
#define TMK_CLI_PAGE_PAGE_STACKS_H

#include "cli/page/page_columns.h"
#include "model/run.h"

struct tmk_page_stacks {
    const struct tmk_process *p;
    uint32_t *number_of; /* by stack: its number on the page, from 1; 0: none yet */
    uint32_t n_known;    /* stacks of the trace */
    uint32_t *stacks;    /* by number - 1 */
    uint64_t n, room;
};

void tmk_page_stacks_init(struct tmk_page_stacks *s, const struct tmk_process *p);
void tmk_page_stacks_fini(struct tmk_page_stacks *s);

/* The number of a stack on the page; 0: it is not known. */
uint32_t tmk_page_stack(struct tmk_page_stacks *s, uint32_t stack);
/* Write the columns of frames and of the stacks named so far. */
void tmk_page_stacks_put(const struct tmk_page_stacks *s, struct tmk_page_columns *c);

#endif
