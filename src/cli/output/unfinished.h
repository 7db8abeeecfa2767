/* SPDX-License-Identifier: MIT */
/* cli/output/unfinished.h - removes what is not whole when the program ends early: files and
 * empty folders. It ends by exit() or by a signal (^C, SIGTERM, a closed
 * terminal ...), which ends it afterwards as if nothing had been done about it. SIGKILL leaves
 * them.
 *
 *     tmk_unfinished_hold(&before);     no signal comes between the two
 *     fd = mkostemp(path, O_CLOEXEC);
 *     number = tmk_unfinished_add(path);
 *     tmk_unfinished_release(&before);
 *     ...
 *     tmk_unfinished_drop(number);      it is whole, or gone
 *
 * Signals that are ignored, or that somebody handles already, stay so. */
#ifndef TMK_CLI_OUTPUT_UNFINISHED_H
#define TMK_CLI_OUTPUT_UNFINISHED_H

#include <signal.h>
#include <sys/types.h>

/* Returns a number for drop. -1: it stays where it is, because its name is too long or there are
 * too many. Add a folder before what is in it. */
int tmk_unfinished_add(const char *path);
void tmk_unfinished_drop(int number); /* takes -1 */

void tmk_unfinished_hold(sigset_t *ret_before);
void tmk_unfinished_release(const sigset_t *before);

#endif
