/* SPDX-License-Identifier: MIT */
/* cli/page/page_parts.h - the parts of the page's data; page_data.h puts them together. Each writes
 * its object into the JSON text and its columns. */
#ifndef TMK_CLI_PAGE_PAGE_PARTS_H
#define TMK_CLI_PAGE_PAGE_PARTS_H

#include "cli/page/page_columns.h"
#include "cli/page/page_data.h"
#include "cli/page/page_stacks.h"

struct tmk_page_parts {
    const struct tmk_page_source *source;
    const struct tmk_page_detail *detail;
    const struct tmk_process_answer *about;
    struct tmk_tree *tree;
    struct tmk_page_columns *columns;
    struct tmk_page_stacks *stacks;
};

/* page_time.c: bins and layers */
void tmk_page_put_timeline(struct tmk_page_parts *p);
/* page_blocks.c: blocks drawn one by one; what was alive at the peak; the map of segments */
void tmk_page_put_blocks(struct tmk_page_parts *p);
void tmk_page_put_peak(struct tmk_page_parts *p);
void tmk_page_put_map(struct tmk_page_parts *p);
/* page_steps.c: the history of steps; the processes of the run */
void tmk_page_put_steps(struct tmk_page_parts *p);
void tmk_page_put_processes(struct tmk_page_parts *p);
/* page_settings.c: what other settings of the allocator would have done */
void tmk_page_put_settings(struct tmk_page_parts *p);

#endif
