/* SPDX-License-Identifier: MIT */
/* record/python/pycodes.h - learn whether code objects of known stacks may have died.
 *
 * A stack is known by the instructions that its frames are at. A code object that dies leaves its
 * address to another one, so each frame's hash also covers what tells its code from another's
 * (pyknown.c): one more line of memory per frame, mostly on a page of its own, fetched with every
 * block. From 3.12 on Python tells a watcher when a code object dies (PyCode_AddWatcher). If it was
 * in a known stack, all known stacks are then forgotten; as long as none dies, nothing has to be
 * checked. After that each stack in use is walked anew, which takes milliseconds for all of them.
 * Where code objects die often (eval() in each step), code is checked again for some time
 * instead. */
#ifndef TMK_RECORD_PYCODES_H
#define TMK_RECORD_PYCODES_H

#include <stdint.h>

/* Install the watcher where it makes a difference, and again some time after it was given up. Once
 * it is on, tmk_pyknown_set_watched(true) is called. Called by one thread, again and again; may
 * wait for the loader, and asks nothing of Python but a pending call. */
void tmk_pycodes_look(uint64_t now_ns);

/* Note a code object before a stack that it is in becomes known. */
void tmk_pycodes_note(const void *code);

#endif
