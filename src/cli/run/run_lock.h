/* SPDX-License-Identifier: MIT */
/* cli/run/run_lock.h - one command at a time makes a run of a given name.
 *
 * The folder of a run is made at the first event, by the process that has it, so it cannot hold the
 * lock. An empty file beside it does: PARENT/.tidemark-run.NAME, locked (flock) for as long as the
 * command runs and removed at its end. It is this user's alone (mode 0600). The kernel drops the
 * lock of a command that was killed; the file stays until the next run in PARENT. Where PARENT
 * cannot be written, or another user has a file of that name there, the folder itself is locked if
 * it is there. File systems without locks (ENOLCK ...) have none: whether a run is living is then
 * told by its rings alone. */
#ifndef TMK_CLI_RUN_RUN_LOCK_H
#define TMK_CLI_RUN_RUN_LOCK_H

enum tmk_run_lock {
    TMK_RUN_LOCK_TAKEN, /* by us now */
    TMK_RUN_LOCK_BUSY,  /* by another command */
    TMK_RUN_LOCK_NONE,  /* there can be none here */
};

/* Lock the name of a run's folder, an absolute path. A process has one such lock. Missing folders
 * above it are made. */
enum tmk_run_lock tmk_run_lock_take(const char *folder);

/* Give the lock back, and remove what was made for it and is still empty. Safe in a handler, and
 * when there is no lock. */
void tmk_run_lock_release(void);

#endif
