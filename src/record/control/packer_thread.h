/* SPDX-License-Identifier: MIT */
/* record/control/packer_thread.h - the helper thread that makes ring and trace and moves events. */
#ifndef TMK_RECORD_PACKER_THREAD_H
#define TMK_RECORD_PACKER_THREAD_H

/* The thread's main function: makes ring and trace, says so by tmk_recorder_set_armed(), packs
 * until it is told to stop, and closes the trace. */
void *tmk_packer_thread_main(void *unused);

#endif
