/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_outputs.h - the files and console output of a sweep, without its pictures.
 *
 *     struct tmk_sweep_outputs_options o = {.console = stdout, .capacity = 24 GiB};
 *     status = tmk_sweep_outputs(&survey, &o);
 *
 * Files in the results' folder; each is complete or not there (docs/sweep-files.md):
 *
 *     memory_profile_results.json    every cell, and the fit
 *     memory_profile_summary.csv     a row a cell
 *     detailed_memory_results.json   with `detailed`: stages, components, ranks of every cell
 *     index.html                     the page: tables and pictures in one file, offline
 *
 * The console shows the breakdown of the largest cell by component, the effect of each parameter on
 * the peak, how good the fit is, and what fits on which GPU. Everything is a view of the results:
 * it can be made again at any time, also for an unfinished sweep. */
#ifndef TMK_CLI_SWEEP_SWEEP_OUTPUTS_H
#define TMK_CLI_SWEEP_SWEEP_OUTPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sweep/survey.h"

struct tmk_sweep_outputs_options {
    bool detailed;     /* detailed_memory_results.json too */
    uint64_t capacity; /* of the GPU that is asked about; 0: the devices' own and common GPUs */
    FILE *console;     /* for the breakdown and the sentences; NULL: files only */
};

/* Write everything. 0, or an exit status after a message; then the files that could be written are
 * written. */
int tmk_sweep_outputs(const struct tmk_survey *g, const struct tmk_sweep_outputs_options *o);

#endif
