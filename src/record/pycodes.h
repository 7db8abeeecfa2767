/* SPDX-License-Identifier: MIT */
/* record/pycodes.h - whether code objects of stacks that are known may have gone.
 *
 * A stack is known by the instructions that its frames are at. A code object that dies leaves its
 * address to another, so each frame's hash also has what tells its code from another's (pyframe.c):
 * one more line of memory for each frame, on a page of its own mostly, fetched with every block.
 * From 3.12 on Python tells who wants to know when a code object goes (PyCode_AddWatcher); then all
 * stacks that were known before are not any more, if the object was in one of them, and nothing has
 * to be looked at while none goes. Programs whose code comes and goes all the time (eval() in a
 * loop) are read the other way again. */
#ifndef TMK_RECORD_PYCODES_H
#define TMK_RECORD_PYCODES_H

#include <stdbool.h>

/* Have Python tell it, when that can be: once, any thread, without Python's lock. Then, some time,
 * tmk_pyframe_set_watched(true) is called. */
void tmk_pycodes_want(void);

/* A code object is in a stack that becomes known: before that. */
void tmk_pycodes_note(const void *code);

#endif
