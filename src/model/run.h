/* SPDX-License-Identifier: MIT */
/* model/run.h - a run as its readers see it: its processes, each with a trace, and sweeps over
 * them.
 *
 * A run is a folder of traces, a single trace, or the PID of a watched process; the trace of such a
 * process is read as it is now, without disturbing the process. Traces may be finished or still
 * growing. Opening is cheap (chunk headers and definitions). Events are read by sweeping: one
 * replay of a process for any number of visitors. Times in traces count from each process's start;
 * those shown to people count from the run's, which is the start of its first process: add
 * `offset_ns`. */
#ifndef TMK_MODEL_RUN_H
#define TMK_MODEL_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "model/run_clock.h"
#include "model/watched.h"
#include "trace/layout.h"
#include "trace/replay.h"

struct tmk_process {
    struct tmk_reader *reader;
    struct tmk_symbols **symbols; /* the run's; NULL there: not needed yet */
    struct tmk_owners *owners;    /* owners.h */
    struct tmk_cells *cells;      /* cells.h; NULL: no notebook */
    const char *file;             /* the trace's name, without folder */
    const char *host;             /* "" when not known */
    const char *command;
    uint64_t pid;
    int64_t rank;       /* -1: none */
    int64_t world_size; /* -1: not known */
    const char *role;   /* what the launcher says that the rank does; NULL: not known */
    uint64_t start_realtime_ns;
    uint64_t offset_ns; /* run time = trace time + offset_ns */
    uint64_t end_ns;    /* trace time of the last event known */
    bool live;          /* still being written */
};

struct tmk_run;

/* Open a run. 0: *ret_run is the caller's. TMK_ENOENT: nothing is there, or a folder without
 * traces. TMK_EPROCESS: `target` is a number that is neither a file nor a watched process. */
int tmk_run_open(const char *target, struct tmk_run **ret_run, struct tmk_error *err);
/* The same for a process that was found already; the run's path is its PID. */
int tmk_run_open_watched(const struct tmk_watched *w, struct tmk_run **ret_run,
                         struct tmk_error *err);
struct tmk_run *tmk_run_close(struct tmk_run *run); /* takes NULL, returns NULL */

const char *tmk_run_path(const struct tmk_run *run);
uint32_t tmk_run_n_processes(const struct tmk_run *run);
/* Processes are ordered by rank, then start. */
struct tmk_process *tmk_run_process(struct tmk_run *run, uint32_t i);
/* How well the clocks of the hosts agree. */
const struct tmk_clock_match *tmk_run_clock(const struct tmk_run *run);
/* How many traces of the folder could not be opened, and why the first could not. */
uint32_t tmk_run_n_unreadable(const struct tmk_run *run, struct tmk_error *ret_first);
/* The problem with the user's file of components; NULL: none. */
const char *tmk_run_components_problem(const struct tmk_run *run);

/* Replay a process once for all `n` visitors. `rp` may be NULL; if given it is initialised by the
 * call, holds the final state and must be given to tmk_replay_fini() by the caller (on success). */
int tmk_process_sweep(struct tmk_process *p, const struct tmk_visitor *visitors, uint32_t n,
                      struct tmk_replay *rp, struct tmk_error *err);

/* Names; NULL: there is none. Show "-" (people), NULL (SQL), null (JSON). */
const char *tmk_category_name(uint8_t category);
/* Write "cpu", "cuda:0", ... to the caller's buffer of at least 24 bytes; returns it. */
const char *tmk_device_name(uint16_t device, char *buffer);
/* The module path and the stage of a context (a block's, or a thread's now). */
const char *tmk_context_module(const struct tmk_process *p, const struct tmk_state *s,
                               uint32_t context);
const char *tmk_context_stage(const struct tmk_process *p, const struct tmk_state *s,
                              uint32_t context);
/* Find a frame. For a native one, function, file and line come from symbols as far as they can;
 * this opens the files that the trace names (symbols.h). False: the frame is not defined. */
bool tmk_process_frame(const struct tmk_process *p, uint32_t frame, struct tmk_frame *ret);
/* The same without symbols: what the trace says of the frame. */
bool tmk_process_written_frame(const struct tmk_process *p, uint32_t frame, struct tmk_frame *ret);
/* Who wrote a line, by its file. */
enum tmk_frame_kind {
    TMK_FRAME_USERS,
    TMK_FRAME_LIBRARY, /* Python's standard library, or installed: in site-packages, dist-packages
                        */
    TMK_FRAME_INNER,   /* native, torch's, frozen in the interpreter, tidemark's */
};
enum tmk_frame_kind tmk_frame_kind(const struct tmk_frame *f);
bool tmk_frame_is_users(const struct tmk_frame *f);
/* The beginning of a C++ frame's file if its address is not known, as other tools write it:
 * "<c++>", "<c++ Engine.cpp>". */
#define TMK_CPP_FILE "<c++"
/* Whether the frame is C or C++: it has an address, or such a file. */
bool tmk_frame_is_native(const struct tmk_frame *f);
/* Find the allocation site, "your line": the innermost frame of the user's code; failing that, of a
 * library's; or else the innermost frame. False: the stack is unknown. */
bool tmk_stack_site(const struct tmk_process *p, uint32_t stack, struct tmk_frame *ret);
/* Find the library's line that the user's line called to make the block, directly or not: the
 * innermost one. False: there is none between them. */
bool tmk_stack_library_line(const struct tmk_process *p, uint32_t stack, struct tmk_frame *ret);
/* Return a file's name as people know it: without folders, "In [12]" for a cell of IPython or
 * Jupyter, and "ipykernel_123/456.py" for a cell whose number is not known. The buffer of
 * TMK_FRAME_FILE_BYTES is used for the second. */
enum { TMK_FRAME_FILE_BYTES = 32 };
const char *tmk_frame_file(const char *file, char *buffer);
/* Write a frame as all commands print it to the caller's buffer of at least TMK_FRAME_TEXT_BYTES;
 * returns it. The text is "file:line function"; "module+0x1234" for a native frame without symbols;
 * only the function where there is no file, as in "[thread pt_autograd_0]"; "?" for anything
 * unknown. `f` may be NULL. `short_file`: leave out the file's folders. */
enum { TMK_FRAME_TEXT_BYTES = 2 * TMK_STRING_MAX_BYTES + 64 };
const char *tmk_frame_text(const struct tmk_frame *f, bool short_file, char *buffer);

#endif
