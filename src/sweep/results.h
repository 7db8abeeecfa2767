/* SPDX-License-Identifier: MIT */
/* sweep/results.h - the results of a sweep so far: a cell for each configuration and repeat.
 *
 * A sweep is a grid of parameters (sweep/params.h), a command, and a folder of results. The folder
 * has a journal, sweep.jsonl. Its first line is the sweep itself (parameters, command); each
 * further line is a cell that has ended. A line is appended and synced before the next cell begins,
 * so a sweep that was killed at any moment can be resumed, and a torn last line is a cell that has
 * not ended. Everything else in the folder (JSON, CSV, pictures, page) is a view of the journal and
 * can be made again.
 *
 *     struct tmk_results *r = NULL;
 *     if (tmk_results_load(folder, &r, &err) != 0) ...
 *     for (uint32_t i = 0; i < r->n_cells; i++)
 *         if (r->cells[i].outcome == TMK_CELL_DONE) ... r->cells[i].peak_allocated ...
 *     r = tmk_results_close(r);
 *
 * Bytes are those of the device with the largest peak on the rank with the largest peak, because
 * these decide whether a configuration fits. The host's memory counts only if no accelerator was
 * used. Unknown bytes are TMK_BYTES_UNKNOWN, which is null in JSON. */
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
    const char **values; /* as they are written into the command */
    double *numbers;     /* the same as numbers; NULL: not all of them are numbers */
    uint32_t n_values;
};

enum tmk_cell_outcome {
    TMK_CELL_PENDING,  /* not tried yet */
    TMK_CELL_DONE,     /* exit status 0 */
    TMK_CELL_OOM,      /* ran out of memory, whatever the status, and did not continue training */
    TMK_CELL_FAILED,   /* any other status or signal */
    TMK_CELL_TIMEOUT,  /* took longer than allowed */
    TMK_CELL_EXCLUDED, /* a constraint excludes it (physical > batch) */
    TMK_CELL_HOPELESS, /* not tried: by the fit it cannot fit */
};

/* The bytes of the peak that have a key in common; the largest first. */
struct tmk_share {
    const char *key;
    uint64_t bytes;
};

struct tmk_shares {
    struct tmk_share *rows;
    uint32_t n;
};

/* A stage of the program: model_load, data, wrap, optimizer_setup, privacy_setup, forward,
 * backward, optimizer, or the program's own name; in the order in which stages first began. */
struct tmk_cell_stage {
    const char *name;
    uint64_t peak;      /* the the most bytes allocated while it was open */
    uint64_t end;       /* bytes bytes allocated when it last ended */
    uint64_t allocated; /* bytes of all blocks allocated in it */
    uint64_t n_times;
    uint64_t ns; /* total time it was open */
};

struct tmk_cell_rank {
    int64_t rank; /* -1: there is only one */
    uint64_t pid;
    const char *device; /* "cuda:0", "cpu" */
    uint64_t peak_allocated;
    uint64_t peak_reserved;
};

struct tmk_cell {
    uint32_t *choice; /* the chosen value of each parameter */
    uint32_t repeat;  /* from 0 */
    enum tmk_cell_outcome outcome;
    int exit_status;     /* as in a shell: 128 + signal */
    const char *message; /* a sentence that says why it did not end well; else NULL */
    double seconds;
    const char *run;    /* the trace's path, relative to the folder; NULL: none */
    const char *log;    /* its output's path, likewise */
    const char *device; /* the device with the peak */
    uint64_t capacity;  /* of that device */
    uint64_t peak_allocated;
    uint64_t peak_reserved;
    uint64_t peak_device; /* most use of the device by all processes, from the driver */
    int64_t peak_step;    /* -1: before the first */
    uint64_t n_steps;
    struct tmk_shares categories; /* shares of peak_allocated; each set adds up to it */
    struct tmk_shares components;
    struct tmk_shares at_stage; /* the stages in which the bytes of the peak were allocated */
    struct tmk_cell_stage *stages;
    uint32_t n_stages;
    struct tmk_cell_rank *ranks;
    uint32_t n_ranks;
};

struct tmk_results {
    const char *folder;
    const char *title; /* title of pictures and pages: the command's words without secrets */
    struct tmk_sweep_param *params;
    uint32_t n_params;
    uint32_t n_repeats;
    struct tmk_cell *cells; /* the whole grid, in its order, including pending and excluded cells */
    uint32_t n_cells;
    struct tmk_arena *arena; /* owns everything here */

    /* A sweep needs the following to resume; views need none of it. */
    const char **command; /* words with {NAME} in them, without secrets */
    uint32_t n_command;
    bool has_secret;     /* secrets were left out */
    const char *cwd;     /* the folder where it runs; NULL: not known */
    const char **wheres; /* constraints (sweep/where.h) */
    uint32_t n_wheres;
    const char **options; /* other options of the command line: "--timeout=10m" */
    uint32_t n_options;
    uint32_t n_bad_lines;   /* lines of the journal that were skipped */
    uint64_t journal_bytes; /* bytes of the journal that are whole lines */
};

/* The file's name in the folder. */
#define TMK_SWEEP_JOURNAL "sweep.jsonl"
enum { TMK_SWEEP_MAX_CELLS = 100000 };

/* Load the results of a folder. 0; TMK_ENOENT: the folder has no journal, or one with an unfinished
 * first line; TMK_EFORMAT: its first line is not a sweep's; TMK_EVERSION. */
int tmk_results_load(const char *folder, struct tmk_results **ret, struct tmk_error *err);
/* The same from the journal's bytes. */
int tmk_results_parse(const char *folder, const char *bytes, size_t n, struct tmk_results **ret,
                      struct tmk_error *err);
struct tmk_results *tmk_results_close(struct tmk_results *r); /* takes NULL, returns NULL */

/* Make empty results for a new sweep. The caller fills in params, n_repeats, wheres and so on, with
 * memory from the arena, and then lays the grid out. NULL: no memory. */
struct tmk_results *tmk_results_new(const char *folder);
/* Make the cells, pending or excluded. TMK_EINVAL: a constraint cannot be judged; err->offset is
 * the position in its text. */
int tmk_results_lay_out(struct tmk_results *r, struct tmk_error *err);
/* Apply a line of the journal about a cell: returns the cell's number, or TMK_E*. */
int tmk_results_apply(struct tmk_results *r, const char *line, size_t n, struct tmk_error *err);

/* "done", "oom", "failed", "timeout", "excluded", "hopeless", "pending": as in JSON and CSV. */
const char *tmk_cell_outcome_name(enum tmk_cell_outcome o);
/* Whether the cell was run, with whatever result. */
bool tmk_cell_was_run(const struct tmk_cell *c);
/* Whether the cell ended well and its peak is known, so that it counts. */
static inline bool tmk_cell_is_measured(const struct tmk_cell *c)
{
    return c->outcome == TMK_CELL_DONE && c->peak_allocated != TMK_BYTES_UNKNOWN;
}
/* Whether the cell's trace is in the folder now. Traces are large, and often stay where they were
 * made or are deleted. */
bool tmk_cell_has_trace(const struct tmk_results *r, const struct tmk_cell *c);
bool tmk_results_has_pending(const struct tmk_results *r);
/* How many of the cells in that order have not been tried. */
uint32_t tmk_results_n_pending(const struct tmk_results *r, const uint32_t *order, uint32_t n);
/* Clean a program's words before they become a message: control characters, which could control a
 * terminal, become blanks. */
void tmk_message_clean(char *text);
/* Write "seq=128 batch=8", and " repeat 2 of 3" if there are several, to the caller's buffer, cut
 * to its size; returns it. */
const char *tmk_cell_text(const struct tmk_results *r, const struct tmk_cell *c, char *buffer,
                          size_t size);

#endif
