/* SPDX-License-Identifier: MIT */
/* base/forks.h - keeps the program from forking for a moment.
 *
 * A fork in the middle of some steps would leave a child with half of them: a lock of the loader
 * that nobody unlocks, a mapping that only the parent should have. So forks wait, but for a tenth
 * of a second at most: the thread that holds them may wait for the loader, and the loader for a
 * thread that forks. */
#ifndef TMK_BASE_FORKS_H
#define TMK_BASE_FORKS_H

/* Calls may be nested. Nothing between hold and release may wait for a disk. */
void tmk_forks_hold(void);
void tmk_forks_let(void);

#endif
