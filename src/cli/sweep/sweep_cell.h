/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_cell.h - one configuration of a sweep: its command, environment, log and run when
 * it begins, and its outcome when it has ended.
 *
 * The outcome is decided by, in this order: our time limit; an OOM in a trace; the kernel's OOM
 * killer; the program's last output; its status. */
#ifndef TMK_CLI_SWEEP_SWEEP_CELL_H
#define TMK_CLI_SWEEP_SWEEP_CELL_H

#include "cli/sweep/keeper.h"
#include "cli/sweep/sweep_plan.h"

struct tmk_sweep_cell {
    char *run, *log;      /* absolute */
    off_t head_bytes;     /* of the log's head, which tidemark writes */
    uint64_t n_oom_kills; /* the machine's OOM kills before it began */
    bool timed_out;
    double seconds;
};

/* Begin cell `number` in slot `slot`. 0, or an exit status after a message; call forget in both
 * cases. */
int tmk_sweep_cell_start(const struct tmk_sweep_plan *p, uint32_t number, unsigned slot,
                         struct tmk_sweep_cell *f, struct tmk_keeper *ret_keeper);
/* Measure a cell that has ended and fill it in. Returns its last output if it failed (the
 * caller's), or NULL. */
char *tmk_sweep_cell_end(const struct tmk_sweep_plan *p, uint32_t number,
                         const struct tmk_kept *kept, const struct tmk_sweep_cell *f);
void tmk_sweep_cell_forget(struct tmk_sweep_cell *f);

/* Mark a cell that is not run because it would need at least `low` bytes. */
void tmk_sweep_cell_hopeless(struct tmk_results *r, uint32_t number, double low, uint64_t capacity);

/* Its command line for messages, without secrets; the caller's. */
char *tmk_sweep_cell_command(const struct tmk_sweep_plan *p, const struct tmk_cell *c);

#endif
