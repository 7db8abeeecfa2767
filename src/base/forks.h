/* SPDX-License-Identifier: MIT */
/* base/forks.h - keep the program from forking for a moment.
 *
 * A fork in the middle of some steps would leave a child with half of them: a lock of the loader's
 * that nobody unlocks, a mapping that was to be the parent's alone. So forks wait, but for a tenth
 * of a second at most: whoever holds them may wait for the loader, and the loader for whoever
 * forks. */
#ifndef TMK_BASE_FORKS_H
#define TMK_BASE_FORKS_H

/* May be nested. Never around anything that waits for a disk. */
void tmk_forks_hold(void);
void tmk_forks_let(void);

#endif
