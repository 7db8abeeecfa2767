/* SPDX-License-Identifier: MIT */
/* tui/gather.h - look at the machine: devices, who uses them, who is watched. */
#ifndef TMK_TUI_GATHER_H
#define TMK_TUI_GATHER_H

#include "tui/top_model.h"

struct tmk_gather;

/* 0 or TMK_ENOMEM. */
int tmk_gather_open(double interval_s, struct tmk_gather **ret_gather, struct tmk_error *err);
struct tmk_gather *tmk_gather_close(struct tmk_gather *g);
/* Borrowed until close. */
struct tmk_top_model *tmk_gather_model(struct tmk_gather *g);

/* Look now. With `wait`, watched processes are read before this returns; else what is known of them
 * is taken, and tmk_gather_jobs() says when there is more. 0 or TMK_ENOMEM. */
int tmk_gather_look(struct tmk_gather *g, bool wait, struct tmk_error *err);
/* Take what was read of watched processes meanwhile; true when the model has changed. */
bool tmk_gather_jobs(struct tmk_gather *g);
/* The same for the details of one of them, which are read from the first call on. */
bool tmk_gather_details(struct tmk_gather *g, uint32_t pid);
/* Something is being read: worth asking again soon. */
bool tmk_gather_is_busy(const struct tmk_gather *g);

#endif
