/* SPDX-License-Identifier: MIT */
/* record/training/grad_ranges.h - ranges that say in which grad mode a thread is.
 *
 * What is made under no_grad or inference_mode is not kept by autograd's graph. Such a range opens
 * when the mode changes, and closes when it changes back:
 *
 *     with torch.no_grad():            open "no_grad"
 *         y = model(x)                     stage eval, modules
 *         with torch.enable_grad():        open "enable_grad"
 *             ...                          close
 *                                      close
 *
 * The innermost one counts; without any, grad mode is on. A close also closes the ranges inside. So
 * a mode that ends while a module is called that began within it is not closed: the new mode opens
 * another range. A mode that goes on after its module or stage has ended is opened again.
 *
 * Inside of backward and of an optimizer's step() no mode is recorded: they switch it all the
 * time, and what they make says nothing. */
#ifndef TMK_RECORD_GRAD_RANGES_H
#define TMK_RECORD_GRAD_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "record/core/lane.h"

enum tmk_grad_mode {
    TMK_GRAD_ON = 0,
    TMK_GRAD_OFF,
    TMK_GRAD_INFERENCE,
    TMK_N_GRAD_MODES,
};

enum { TMK_MAX_GRAD_RANGES = 4 };

struct tmk_grad_ranges {
    uint8_t now;    /* the thread's mode, enum tmk_grad_mode */
    uint8_t around; /* the mode on record when the stage opened */
    uint8_t n;      /* ranges opened in the stage */
    struct {
        uint8_t mode;
        uint16_t n_calls; /* module calls that were under way */
    } open[TMK_MAX_GRAD_RANGES];
};

/* The ranges at the begin of a stage inside of these. */
struct tmk_grad_ranges tmk_grad_ranges_inside(const struct tmk_grad_ranges *outer);

/* Put the thread's mode on record, if the record says another. */
void tmk_grad_ranges_settle(struct tmk_lane *lane, struct tmk_grad_ranges *g, uint16_t n_calls);

/* True when a range was opened in a module call that has ended and closed it. */
static inline bool tmk_grad_ranges_ended(const struct tmk_grad_ranges *g, uint16_t n_calls)
{
    return __builtin_expect(g->n > 0, 0) && g->open[g->n - 1].n_calls > n_calls;
}

/* Take such ranges off, and put the mode on record again. */
void tmk_grad_ranges_leave(struct tmk_lane *lane, struct tmk_grad_ranges *g, uint16_t n_calls);

#endif
