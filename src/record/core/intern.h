/* SPDX-License-Identifier: MIT */
/* record/core/intern.h - names and call sites as small numbers, defined in the trace on first use.
 *
 * A definition is a record like any other, written before the id is first used, so it survives a
 * kill like any other. Tables are those of idtable.h. Stacks and frames have one space of ids each,
 * whoever defines them: sites (here), Python (pystack.c), native code. */
#ifndef TMK_RECORD_INTERN_H
#define TMK_RECORD_INTERN_H

#include "record/core/lane.h"
#include "tidemark/tidemark.h"

/* Id of a text; 0 for NULL, and when the table is full or the definition was dropped. */
uint32_t tmk_intern_string(struct tmk_lane *lane, const char *text);
uint32_t tmk_intern_text(struct tmk_lane *lane, const char *text, size_t n);

/* Id of the stack that consists of this one site; 0 likewise. */
uint32_t tmk_intern_site(struct tmk_lane *lane, const struct tidemark_site *site);

/* Id of a frame that has a name only, in square brackets, and of the stack of just that. */
uint32_t tmk_intern_label_frame(struct tmk_lane *lane, const char *label);
uint32_t tmk_intern_label(struct tmk_lane *lane, const char *label);

/* Id of the stack with this hash, 0: not known. define_stack writes it, innermost frame first, and
 * remembers it; 0 when there is no room. */
uint32_t tmk_intern_known_stack(uint64_t hash);
uint32_t tmk_intern_define_stack(struct tmk_lane *lane, uint64_t hash, const uint32_t *ids,
                                 uint32_t n_frames);

/* The same for frames: id of a hash; a new id (0: no room), to be defined, then remembered. */
uint32_t tmk_intern_known_frame(uint64_t hash);
uint32_t tmk_intern_new_frame(uint64_t hash);
void tmk_intern_remember_frame(uint64_t hash, uint32_t id);

/* Id of a site's frame, for stacks that have more. */
uint32_t tmk_intern_site_frame(struct tmk_lane *lane, const struct tidemark_site *site);
/* Id of a native frame; `address` counts from the module's start, and the module is defined. */
uint32_t tmk_intern_native_frame(struct tmk_lane *lane, uint32_t module, uint64_t address);
/* Id of the stack of these frames, by their ids; 0 for none. */
uint32_t tmk_intern_stack(struct tmk_lane *lane, const uint32_t *ids, uint32_t n);

/* Id of a device's stream, below 2^16; 0 when there is no room. */
uint32_t tmk_intern_stream(struct tmk_lane *lane, uint16_t device, uint64_t handle);

/* For tests, while no thread defines anything: the tables are as they should be. */
bool tmk_intern_is_valid(void);

/* Make (or empty) the tables, for a new trace. 0 or TMK_ENOMEM. */
int tmk_intern_reset(void);

#endif
