/* SPDX-License-Identifier: MIT */
/* record/core/intern.h - names, stacks and streams as small numbers, defined in the trace on first
 * use.
 *
 * A definition is a record, written before its id is used, so a kill loses no definition of an id
 * that was recorded. The tables are those of idtable.h. All stacks share one space of ids, and so
 * do all frames, whoever defines them: call sites (here), Python (pystack.c), native code. */
#ifndef TMK_RECORD_INTERN_H
#define TMK_RECORD_INTERN_H

#include "record/core/lane.h"
#include "tidemark/tidemark.h"

/* Id of a text; 0 for NULL, when the table is full, and when the definition found no room. */
uint32_t tmk_intern_string(struct tmk_lane *lane, const char *text);
uint32_t tmk_intern_text(struct tmk_lane *lane, const char *text, size_t n);

/* Id of the stack that has only this call site; 0 in the same cases. */
uint32_t tmk_intern_site(struct tmk_lane *lane, const struct tidemark_site *site);

/* Ids of a frame that has only a name, in square brackets, and of the stack of that frame alone. */
uint32_t tmk_intern_label_frame(struct tmk_lane *lane, const char *label);
uint32_t tmk_intern_label(struct tmk_lane *lane, const char *label);

/* Id of the stack with this hash; 0: not known. define_stack() writes it, innermost frame first,
 * and remembers it; 0 when there is no room. */
uint32_t tmk_intern_known_stack(uint64_t hash);
uint32_t tmk_intern_define_stack(struct tmk_lane *lane, uint64_t hash, const uint32_t *ids,
                                 uint32_t n_frames);

/* The same for frames: the id of a hash, a new id (0: no room), and, once it is defined, its entry
 * in the table. */
uint32_t tmk_intern_known_frame(uint64_t hash);
uint32_t tmk_intern_new_frame(uint64_t hash);
void tmk_intern_remember_frame(uint64_t hash, uint32_t id);

/* Id of a call site's frame, for stacks that have more frames. */
uint32_t tmk_intern_site_frame(struct tmk_lane *lane, const struct tidemark_site *site);
/* Id of a native frame. `address` counts from the start of its file, which is defined already. */
uint32_t tmk_intern_native_frame(struct tmk_lane *lane, uint32_t module, uint64_t address);
/* Id of the stack of these frame ids; 0 for no frames. */
uint32_t tmk_intern_stack(struct tmk_lane *lane, const uint32_t *ids, uint32_t n);

/* Id of a device's stream, below 2^16; 0 when there is no room. */
uint32_t tmk_intern_stream(struct tmk_lane *lane, uint16_t device, uint64_t handle);

/* Check the invariants of all tables, in tests, while no thread defines anything. */
bool tmk_intern_is_valid(void);

/* Make the tables, or empty them, for a new trace. 0 or TMK_ENOMEM. */
int tmk_intern_reset(void);

#endif
