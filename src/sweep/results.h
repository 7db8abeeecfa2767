/* SPDX-License-Identifier: MIT */
/* sweep/results.h - what a sweep has measured so far: a cell for each configuration and repeat.
 *
 * A sweep is a grid of parameters (sweep/params.h), a command, and a folder of results. The folder
 * has a journal, sweep.jsonl: its first line is the sweep itself (parameters, command), every
 * further one a cell that has ended; a line is appended and synced before the next cell begins, so
 * that a sweep killed at any moment goes on from there, and a torn last line is a cell that has not
 * ended. Everything else in the folder (JSON, CSV, pictures, page) is a view of what is here and
 * can be made again.
 *
 *     struct tmk_results *r = NULL;
 *     if (tmk_results_load(folder, &r, &err) != 0) ...
 *     for (uint32_t i = 0; i < r->n_cells; i++)
 *         if (r->cells[i].outcome == TMK_CELL_DONE) ... r->cells[i].peak_allocated ...
 *     r = tmk_results_close(r);
 *
 * Bytes are of the device with the largest peak of the rank with the largest peak: what decides
 * whether it fits; the host's memory counts only where no accelerator's was used. What is not known
 * is TMK_BYTES_UNKNOWN, which is null in JSON. */
#ifndef TMK_SWEEP_RESULTS_H
#define TMK_SWEEP_RESULTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "kit/amount.h"
#include "kit/arena.h"

struct tmk_sweep_param {
    const char *name;
    const char **values; /* as they are put into the command */
    double *numbers;     /* the same, NULL: not all of them are numbers */
    uint32_t n_values;
};

enum tmk_cell_outcome {
    TMK_CELL_PENDING,  /* not tried yet */
    TMK_CELL_DONE,     /* exit status 0 */
    TMK_CELL_OOM,      /* ran out of memory, whatever the status, and did not train on */
    TMK_CELL_FAILED,   /* any other status or signal */
    TMK_CELL_TIMEOUT,  /* took longer than it may */
    TMK_CELL_EXCLUDED, /* a constraint says no (physical > batch) */
    TMK_CELL_HOPELESS, /* not tried: the fit says that it cannot fit */
};

/* Bytes of the peak that have something in common; largest first. */
struct tmk_share {
    const char *key;
    uint64_t bytes;
};

struct tmk_shares {
    struct tmk_share *rows;
    uint32_t n;
};

/* A stage of the program: model_load, data, wrap, optimizer_setup, privacy_setup, forward,
 * backward, optimizer, or a name of its own; in the order in which they first began. */
struct tmk_cell_stage {
    const char *name;
    uint64_t peak;      /* most bytes allocated while it was open */
    uint64_t end;       /* allocated when it last ended */
    uint64_t allocated; /* bytes given out in it, all together */
    uint64_t n_times;
    uint64_t ns; /* it was open, all together */
};

struct tmk_cell_rank {
    int64_t rank; /* -1: not one of several */
    uint64_t pid;
    const char *device; /* "cuda:0", "cpu" */
    uint64_t peak_allocated;
    uint64_t peak_reserved;
};

struct tmk_cell {
    uint32_t *choice; /* which value of each parameter */
    uint32_t repeat;  /* from 0 */
    enum tmk_cell_outcome outcome;
    int exit_status;     /* as a shell says it: 128 + signal */
    const char *message; /* why it did not end well, a sentence; else NULL */
    double seconds;
    const char *run;    /* of the trace, relative to the folder; NULL: none */
    const char *log;    /* what it printed, likewise */
    const char *device; /* which the peak is of */
    uint64_t capacity;  /* of that device */
    uint64_t peak_allocated;
    uint64_t peak_reserved;
    uint64_t peak_device; /* most of the device in use by anybody, as the driver says */
    int64_t peak_step;    /* -1: before the first */
    uint64_t n_steps;
    struct tmk_shares categories; /* of peak_allocated; each adds up to it */
    struct tmk_shares components;
    struct tmk_shares at_stage; /* in which stage the bytes alive at the peak were allocated */
    struct tmk_cell_stage *stages;
    uint32_t n_stages;
    struct tmk_cell_rank *ranks;
    uint32_t n_ranks;
};

struct tmk_results {
    const char *folder;
    const char *title; /* of pictures and pages; the command's words, secrets left out */
    struct tmk_sweep_param *params;
    uint32_t n_params;
    uint32_t n_repeats;
    struct tmk_cell *cells; /* the whole grid, in its order, pending and excluded ones too */
    uint32_t n_cells;
    struct tmk_arena *arena; /* has all of it */

    /* What a sweep needs to go on; views need none of it. */
    const char **command; /* words with {NAME} in them, secrets left out */
    uint32_t n_command;
    bool has_secret;     /* some were */
    const char *cwd;     /* where it is run; NULL: not known */
    const char **wheres; /* constraints (sweep/where.h) */
    uint32_t n_wheres;
    const char **options; /* others of the command line: "--timeout=10m" */
    uint32_t n_options;
    uint32_t n_bad_lines;   /* of the journal, which are passed over */
    uint64_t journal_bytes; /* of it that are whole lines */
};

/* The file's name in the folder. */
#define TMK_SWEEP_JOURNAL "sweep.jsonl"
enum { TMK_SWEEP_MAX_CELLS = 100000 };

/* 0; TMK_ENOENT: the folder has no journal, or one whose first line was not finished; TMK_EFORMAT:
 * its first line is none; TMK_EVERSION. */
int tmk_results_load(const char *folder, struct tmk_results **ret, struct tmk_error *err);
/* The same from what the journal has. */
int tmk_results_parse(const char *folder, const char *bytes, size_t n, struct tmk_results **ret,
                      struct tmk_error *err);
struct tmk_results *tmk_results_close(struct tmk_results *r); /* takes NULL, returns NULL */

/* For a new sweep: an empty one, whose params, n_repeats, wheres and so on the caller fills in from
 * the arena and then lays out. NULL without memory. */
struct tmk_results *tmk_results_new(const char *folder);
/* Make the cells, pending or excluded. A constraint that cannot be judged is TMK_EINVAL;
 * err->offset is then where in its text. */
int tmk_results_lay_out(struct tmk_results *r, struct tmk_error *err);
/* A line of the journal that tells of a cell, applied: the cell's number, or TMK_E*. */
int tmk_results_apply(struct tmk_results *r, const char *line, size_t n, struct tmk_error *err);

/* "done", "oom", "failed", "timeout", "excluded", "hopeless", "pending": as in JSON and CSV. */
const char *tmk_cell_outcome_name(enum tmk_cell_outcome o);
/* Whether it was run, whatever came of it. */
bool tmk_cell_was_run(const struct tmk_cell *c);
/* It ended well and its peak is known: it counts. */
static inline bool tmk_cell_is_measured(const struct tmk_cell *c)
{
    return c->outcome == TMK_CELL_DONE && c->peak_allocated != TMK_BYTES_UNKNOWN;
}
/* Traces are large, and often stay where they were made or are thrown away: whether the cell's is
 * in the folder now. */
bool tmk_cell_has_trace(const struct tmk_results *r, const struct tmk_cell *c);
bool tmk_results_has_pending(const struct tmk_results *r);
/* Of the cells in that order, those that have not been tried. */
uint32_t tmk_results_n_pending(const struct tmk_results *r, const uint32_t *order, uint32_t n);
/* Words of a program, before they become a message: control characters, which could drive a
 * terminal, become blanks. */
void tmk_message_clean(char *text);
/* "seq=128 batch=8", and " repeat 2 of 3" where there are several; in the caller's buffer, cut
 * where it does not fit; returns it. */
const char *tmk_cell_text(const struct tmk_results *r, const struct tmk_cell *c, char *buffer,
                          size_t size);
/* The number of a parameter of that name, -1: there is none. */
int tmk_results_param(const struct tmk_results *r, const char *name);

#endif
