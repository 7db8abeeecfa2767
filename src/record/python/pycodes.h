/* SPDX-License-Identifier: MIT */
/* record/python/pycodes.h - whether code objects of stacks that are known may have gone.
 *
 * A stack is known by the instructions that its frames are at. A code object that dies leaves its
 * address to another, so each frame's hash also has what tells its code from another's (pyknown.c):
 * one more line of memory for each frame, on a page of its own mostly, fetched with every block.
 * From 3.12 on Python tells who wants to know when a code object goes (PyCode_AddWatcher); then all
 * stacks that were known before are not any more, if the object was in one of them, and nothing has
 * to be looked at while none goes. Each stack in use is walked anew then, which takes milliseconds
 * for all of them: where codes go more than now and then (eval() in each step), they are looked at
 * again, for some time. */
#ifndef TMK_RECORD_PYCODES_H
#define TMK_RECORD_PYCODES_H

#include <stdint.h>

/* Have Python tell it, where that makes a difference, and again some time after it was given up.
 * Once it does, tmk_pyknown_set_watched(true) is called. From one thread, again and again: it may
 * wait for the loader, and asks nothing of Python but to be called. */
void tmk_pycodes_look(uint64_t now_ns);

/* A code object is in a stack that becomes known: before that. */
void tmk_pycodes_note(const void *code);

#endif
