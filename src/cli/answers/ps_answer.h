/* SPDX-License-Identifier: MIT */
/* cli/answers/ps_answer.h - the watched processes of this machine, or of others: what `tidemark ps`
 * lists.
 *
 *     struct tmk_ps_answer a = {0};
 *     tmk_ps_answer_here(&a);                          // of this machine
 *     tmk_ps_answer_add(&a, "node7", json, n, &err);   // what `ps --json` there has printed
 *     ... a.rows[0 .. a.n_rows - 1] ...
 *     tmk_ps_answer_fini(&a); */
#ifndef TMK_CLI_ANSWERS_PS_ANSWER_H
#define TMK_CLI_ANSWERS_PS_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/tree.h"
#include "passes/forecast.h"

struct tmk_ps_row {   /* of one process; texts may be NULL: not known */
    const char *host; /* NULL: this machine */
    uint64_t pid;
    int64_t rank; /* negative: it has none */
    const char *folder;
    const char *device; /* with the largest peak; NULL: nothing was allocated yet */
    uint64_t allocated_bytes, reserved_bytes, peak_bytes; /* of that device, or
                                                             TMK_BYTES_UNKNOWN */
    int64_t step;                                         /* TMK_NO_STEP: before the first */
    const char *command;
    struct tmk_forecast forecast; /* of that device; its risk may be unknown */
};

struct tmk_ps_answer {
    struct tmk_arena texts;
    struct tmk_ps_row *rows;
    size_t n_rows, room;
};

/* Add the processes of this machine. 0, or an exit status after a message. */
int tmk_ps_answer_here(struct tmk_ps_answer *a);

/* Add those of the object that a machine has printed. `host` is borrowed. 0, or TMK_EFORMAT with
 * the reason, and then nothing was added. */
int tmk_ps_answer_add(struct tmk_ps_answer *a, const char *host, const char *json, size_t n,
                      struct tmk_error *err);

enum tmk_ps_sort {
    TMK_PS_BY_PID,
    TMK_PS_BY_RANK,
    TMK_PS_BY_ALLOCATED,
    TMK_PS_BY_RESERVED,
    TMK_PS_BY_PEAK,
    TMK_PS_BY_FORECAST,
    TMK_PS_N_SORTS,
};
/* "pid", "rank" and so on: as --sort takes it. */
extern const char *const tmk_ps_sort_names[TMK_PS_N_SORTS];
/* Sort by numbers that name things (PID, rank) from the least, by bytes from the most, by forecast
 * from the worst and soonest; unknown comes last, and what is equal is in order of host and PID. */
void tmk_ps_answer_sort(struct tmk_ps_answer *a, enum tmk_ps_sort sort);

/* Write one row as an object of a list. */
void tmk_ps_answer_put(struct tmk_tree *t, const struct tmk_ps_row *row);

void tmk_ps_answer_fini(struct tmk_ps_answer *a);

#endif
