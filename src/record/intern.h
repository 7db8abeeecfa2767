/* SPDX-License-Identifier: MIT */
/* record/intern.h - names and call sites as small numbers, defined in the trace on first use.
 *
 * A definition is a record like any other, written before the id is first used, so it survives a
 * kill like any other. Tables are fixed-size and lock-free. Texts are told apart by a 64-bit hash;
 * that two of a hundred thousand names collide has a chance of one in a few billion. Two threads
 * that meet a new name at once may both define it: the trace allows that. */
#ifndef TMK_RECORD_INTERN_H
#define TMK_RECORD_INTERN_H

#include "record/lane.h"
#include "tidemark/tidemark.h"

/* Id of a text; 0 for NULL, and when the table is full or the definition was dropped. */
uint32_t tmk_intern_string(struct tmk_lane *lane, const char *text);

/* Id of the stack that consists of this one site; 0 likewise. */
uint32_t tmk_intern_site(struct tmk_lane *lane, const struct tidemark_site *site);

/* For stacks of more than one frame. Ids of frames; 0 likewise. `address` is relative to the
 * module, whose definition is written before. */
uint32_t tmk_intern_site_frame(struct tmk_lane *lane, const struct tidemark_site *site);
uint32_t tmk_intern_native_frame(struct tmk_lane *lane, uint32_t module, uint64_t address);
/* Id of the stack of these frames, innermost first; 0 likewise, and for none. */
uint32_t tmk_intern_stack(struct tmk_lane *lane, const uint32_t *ids, uint32_t n);

/* Make (or empty) the tables, for a new trace. 0 or TMK_ENOMEM. */
int tmk_intern_reset(void);

#endif
