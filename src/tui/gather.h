/* SPDX-License-Identifier: MIT */
/* tui/gather.h - gather what `top` shows of the machine: devices, the processes that use them, and
 * the watched ones. */
#ifndef TMK_TUI_GATHER_H
#define TMK_TUI_GATHER_H

#include "tui/top_model.h"

struct tmk_gather;

/* Open and close a gatherer. 0 or TMK_ENOMEM. */
int tmk_gather_open(double interval_s, struct tmk_gather **ret_gather, struct tmk_error *err);
struct tmk_gather *tmk_gather_close(struct tmk_gather *g);
/* The model that it fills in, borrowed until close. */
struct tmk_top_model *tmk_gather_model(struct tmk_gather *g);

/* Watched processes are read this often from now on, or more seldom. */
void tmk_gather_interval(struct tmk_gather *g, double interval_s);

/* Look now. With `wait`, watched processes are read before this returns; else the known figures are
 * taken, and tmk_gather_jobs() says when there are new ones. 0 or TMK_ENOMEM. */
int tmk_gather_look(struct tmk_gather *g, bool wait, struct tmk_error *err);
/* Take the figures of watched processes that were read meanwhile; true: the model has changed. */
bool tmk_gather_jobs(struct tmk_gather *g);
/* The same for the details of one watched process, which are read from the first call on. */
bool tmk_gather_details(struct tmk_gather *g, uint32_t pid);
/* Whether something is being read, so that asking again soon is worthwhile. */
bool tmk_gather_is_busy(const struct tmk_gather *g);

#endif
