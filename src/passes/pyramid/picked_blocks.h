/* SPDX-License-Identifier: MIT */
/* passes/pyramid/picked_blocks.h - the blocks that a picture of a run shows one by one.
 *
 * Two sets, put together at the end:
 *   - all blocks that lived in one window of time. The window is the whole run as long as there is
 *     room; then it is halved towards the peak until what lived in it fits.
 *   - the largest blocks at each resolution. A block is visible where the picture is about as wide
 *     as its life is long. So lives are sorted into levels, one for each power of two, a level is
 *     cut into cells of that length, and each cell keeps its largest blocks. */
#ifndef TMK_PASSES_PYRAMID_PICKED_BLOCKS_H
#define TMK_PASSES_PYRAMID_PICKED_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TMK_PICKED_WINDOW_BLOCKS = 40000, /* room for the window, unless the caller says otherwise */
    TMK_PICKED_N_KEYS = 4,
    TMK_PICKED_LEVELS = 13, /* cells of the last one: run / 2^12 */
};

struct tmk_picked_block {
    uint64_t alloc_ns;
    uint64_t free_ns; /* UINT64_MAX: alive at the end of the trace */
    uint64_t size_bytes;
    uint64_t address;
    uint64_t serial; /* as struct tmk_block has it */
    int64_t step;    /* TMK_NO_STEP: before the first */
    uint32_t stack, name;
    uint32_t keys[TMK_PICKED_N_KEYS]; /* numbers of the pyramid's category, module, component, stage
                                       */
    uint16_t device;
};

struct tmk_picked_cell;

struct tmk_picked_blocks {
    uint64_t end_ns, peak_ns;
    uint64_t window_room;              /* blocks that the window may have */
    uint64_t window_start, window_end; /* all blocks that lived in it are there */
    uint64_t n_all;                    /* blocks that were offered */
    struct tmk_picked_block *blocks;   /* by alloc_ns, then serial; during the sweep the window's */
    uint64_t n_blocks, block_room;
    struct tmk_picked_cell *cells;
    bool failed;
};

/* `end_ns` is the run's; the window keeps `peak_ns`. Returns 0 or TMK_ENOMEM. */
int tmk_picked_blocks_init(struct tmk_picked_blocks *s, uint64_t end_ns, uint64_t peak_ns,
                           uint64_t window_room);
void tmk_picked_blocks_fini(struct tmk_picked_blocks *s);

/* Offer a block when it has ended, or at the end of the run. */
void tmk_picked_blocks_offer(struct tmk_picked_blocks *s, const struct tmk_picked_block *b);
/* Put the sets together, in order. Returns 0 or TMK_ENOMEM. */
int tmk_picked_blocks_finish(struct tmk_picked_blocks *s);

/* Whether all blocks of the run are there. */
bool tmk_picked_blocks_has_all(const struct tmk_picked_blocks *s);

#endif
