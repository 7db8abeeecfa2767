/* SPDX-License-Identifier: MIT */
/* cli/output/pager.h - long output goes through a pager, as git's does.
 *
 * After tmk_pager_begin() what is written to stdout is held until it is more than a screen. Then a
 * pager starts and has it, and all that follows; shorter output is written as it is, at the end.
 * Nothing happens where stdout is no terminal. The pager is TIDEMARK_PAGER, else PAGER, else less;
 * "" and "cat" mean none. LESS is set to FRX where it is not set, so that colours are shown.
 *
 * To leave the pager early is no error: what is still written goes nowhere, and the command ends
 * with its own exit status. ^C belongs to the pager. */
#ifndef TMK_CLI_OUTPUT_PAGER_H
#define TMK_CLI_OUTPUT_PAGER_H

#include <stdbool.h>
#include <stdio.h>

/* --no-pager: tmk_pager_begin() does nothing from now on. */
void tmk_pager_forbid(void);

/* Hold stdout from now on. A command that talks with its user, or shows how things change, must
 * not be held: it calls tmk_pager_end() before it prints. */
void tmk_pager_begin(void);
/* Write out what is held, or wait until the user leaves the pager. True: there was a pager, and
 * whether it has read everything is nobody's fault. */
bool tmk_pager_end(void);

/* Where messages go: stderr, or among the output that is held or paged, in its order. */
FILE *tmk_pager_talk(void);

#endif
