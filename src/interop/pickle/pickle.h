/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle.h - read a Python pickle of plain data, of any length, without running any
 * of it.
 *
 * A pickle is a program for a small machine. This one has the instructions that make None, bool,
 * int, float, str, bytes, tuple, list and dict (protocols 2 to 5); one that would import a name,
 * call something or build an object ends the reading with the name it asked for.
 *
 * Long lists stream: the visitor is asked about each list that lies directly under a key of the
 * outermost dict, and about the lists in such a list; of those it wants, each dict is handed over
 * as soon as it is complete, and is not kept; neither is what it alone holds. A pickle may refer
 * back to anything, though: if one refers to what was given up, or makes too much pile up that it
 * might refer to, reading ends with TMK_EAGAIN. Then open with `is_careful`: a pass of its own
 * finds what is referred to, and just that is kept. So a usual snapshot is read in one pass, any
 * other in two more, and memory does not grow with the file.
 *
 *     0x80 4  }  94  (  "segments" 94  ]  94  ( } 94 ( "device" 94 K 0 ... u   } ... u   e  ... u .
 *     proto   dict memo mark   key           list      ^ item() when the next } or the e comes
 *
 * Lengths are held against what the file has, the stack and the memo are bounded, freeing does not
 * recurse: a hostile file gives an error. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_H
#define TMK_INTEROP_PICKLE_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_value.h"

struct tmk_pickle;

/* Machine for a feed, which is borrowed and at its start. 0 or TMK_ENOMEM. */
int tmk_pickle_open(struct tmk_feed *feed, const struct tmk_pickle_visitor *visitor,
                    bool is_careful, struct tmk_pickle **ret_pickle);
/* All values go with it. Takes NULL, returns NULL. */
struct tmk_pickle *tmk_pickle_close(struct tmk_pickle *p);

/* Read all: 0, and *ret_root is what is left of the outermost value, good until close. TMK_EAGAIN:
 * see above; the visitor has to forget what it was given. TMK_EFORMAT: this is no pickle, or not
 * one of plain data; TMK_EDAMAGED: it is cut or makes no sense; TMK_EFULL: more than is sensible;
 * item()'s error; *err has the reason and the byte. */
int tmk_pickle_read(struct tmk_pickle *p, struct tmk_pickle_value *ret_root, struct tmk_error *err);

/* The value of a key, NULL when there is none; of two the last counts. */
const struct tmk_pickle_value *tmk_pickle_get(const struct tmk_pickle_object *dict,
                                              const char *key);

/* What the visitor took from a list is in its tag now: give its items up. It may be referred to
 * again, but not be added to. */
void tmk_pickle_fold(struct tmk_pickle *p, struct tmk_pickle_object *list, uint32_t tag);

#endif
