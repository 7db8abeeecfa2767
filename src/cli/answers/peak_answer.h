/* SPDX-License-Identifier: MIT */
/* cli/answers/peak_answer.h - what `peak` found: the blocks of a moment by one key, for people and
 * as JSON. */
#ifndef TMK_CLI_ANSWERS_PEAK_ANSWER_H
#define TMK_CLI_ANSWERS_PEAK_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/answers/moment_answer.h"
#include "passes/group.h"

struct tmk_sheet;

struct tmk_peak_answer {
    struct tmk_moment_answer moment;
    enum tmk_by by;
    const char *by_name;
    const struct tmk_peak_row *rows; /* most bytes first */
    uint64_t n_rows;
    uint64_t top;    /* rows that people see; UINT64_MAX: all */
    bool is_folded;  /* modules that repeat are one row */
    const char *run; /* as the user called it, for the next command */
};

void tmk_peak_text(const struct tmk_peak_answer *a);
void tmk_peak_json(const struct tmk_peak_answer *a);
/* The table of --by module. */
void tmk_peak_tree_text(const struct tmk_peak_answer *a, struct tmk_sheet *sheet);

/* Returns how a row without a key is called. */
const char *tmk_unknown_key_text(enum tmk_by by);

#endif
