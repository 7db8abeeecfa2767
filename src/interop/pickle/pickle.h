/* SPDX-License-Identifier: MIT */
/* interop/pickle/pickle.h - a streaming reader of Python pickles of plain data, of any length,
 * that executes nothing.
 *
 * A pickle is a program for a small machine. This machine has the instructions that make None,
 * bool, int, float, str, bytes, tuple, list and dict (protocols 2 to 5); one that would import a
 * name, call something or build an object ends the reading, with the requested name in the error.
 *
 * Long lists stream: the visitor is asked about each list directly under a key of the outermost
 * dict, and about the lists in such a list. In the lists it wants, each dict is handed over as
 * soon as it is complete and is not kept; neither is anything that only this dict holds. But a
 * pickle may refer back to anything. If one refers to what was given up, or makes too much pile
 * up that it might refer to, reading ends with TMK_EAGAIN. Then open with `is_careful`: an extra
 * pass finds what is referred to, and only that is kept. So a usual snapshot is read in one pass,
 * any other in two more, and memory does not grow with the file.
 *
 *     0x80 4  }  94  (  "segments" 94  ]  94  ( } 94 ( "device" 94 K 0 ... u   } ... u   e  ... u .
 *     proto   dict memo mark   key           list      ^ item() when the next } or the e comes
 *
 * Lengths are checked against the file, the stack and the memo are bounded, and freeing does not
 * recurse: a hostile file gives an error. */
#ifndef TMK_INTEROP_PICKLE_PICKLE_H
#define TMK_INTEROP_PICKLE_PICKLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_value.h"

struct tmk_pickle;

/* Make a machine for a feed, which is borrowed and at its start. Returns 0 or TMK_ENOMEM. */
int tmk_pickle_open(struct tmk_feed *feed, const struct tmk_pickle_visitor *visitor,
                    bool is_careful, struct tmk_pickle **ret_pickle);
/* Free the machine and all its values. Takes NULL, returns NULL. */
struct tmk_pickle *tmk_pickle_close(struct tmk_pickle *p);

/* Read everything. 0: *ret_root is what is left of the outermost value, good until close.
 * TMK_EAGAIN: see above; the visitor has to forget what it was given. TMK_EFORMAT: this is no
 * pickle, or not one of plain data; TMK_EDAMAGED: it is cut off or makes no sense; TMK_EFULL: it
 * exceeds a limit; or item()'s error. *err has the reason and the byte. */
int tmk_pickle_read(struct tmk_pickle *p, struct tmk_pickle_value *ret_root, struct tmk_error *err);

/* The value of a key; NULL when there is none. If a key comes twice, the last one counts. */
const struct tmk_pickle_value *tmk_pickle_get(const struct tmk_pickle_object *dict,
                                              const char *key);

/* Give up the list's items: what the visitor took from it is in its tag now. It may be referred
 * to again, but not be added to. */
void tmk_pickle_fold(struct tmk_pickle *p, struct tmk_pickle_object *list, uint32_t tag);

#endif
