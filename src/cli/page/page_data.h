/* SPDX-License-Identifier: MIT */
/* cli/page/page_data.h - what the page of a run shows, as bytes: the answer of `report --json`, and
 * columns for what is drawn. docs/page.md is the contract with web/.
 *
 *     +0  u32, little endian: length of the JSON text
 *     +4  the JSON text
 *      *  the columns; "columns" of the JSON text counts from here */
#ifndef TMK_CLI_PAGE_PAGE_DATA_H
#define TMK_CLI_PAGE_PAGE_DATA_H

#include "cli/answers/report_answer.h"
#include "passes/pyramid/pyramid.h"

enum { TMK_PAGE_BINS = 8192 };

struct tmk_page_source {
    struct tmk_report_answer *report;
    const struct tmk_pyramid *pyramid; /* of the chosen process, with TMK_PAGE_BINS bins */
};

/* How much is shown. What is left out is said. */
struct tmk_page_detail {
    uint32_t merged_bins; /* bins of the pyramid that become one; a power of two */
    uint32_t n_keys;      /* of a dimension; the others are put together */
    uint64_t n_blocks, n_peak_rows, n_steps, n_map_blocks;
    uint64_t n_ranks; /* that have a curve */
};

/* The most detail, halved so many times. */
struct tmk_page_detail tmk_page_detail_halved(unsigned times);

/* Make the bytes, which are the caller's for free(). 0 or an exit status after a message. */
int tmk_page_data(const struct tmk_page_source *s, const struct tmk_page_detail *d,
                  char **ret_bytes, size_t *ret_n);

/* Make the bytes of a window: `drawn` has its timeline, its blocks and their stacks, and nothing
 * else. */
void tmk_page_window_data(struct tmk_process *p, const struct tmk_pyramid *y, char **ret_bytes,
                          size_t *ret_n);

/* Sweep a process for its page. Returns 0, TMK_ENOMEM or another TMK_E*. */
int tmk_page_sweep(struct tmk_process *p, uint64_t start_ns, uint64_t end_ns, uint32_t n_bins,
                   bool shows_progress, struct tmk_pyramid **ret, struct tmk_error *err);

#endif
