/* SPDX-License-Identifier: MIT */
/* tests/fault/journal.h - what the journal program reports, so that a checker can tell exactly.
 *
 * A lane is a series of events 1, 2, 3, ... of one thread (or of a signal handler). What event i of
 * lane L is follows from L and i alone. The program counts in a shared file, one u64 a lane, the
 * events whose report has returned: a kill leaves the count behind. */
#ifndef TMK_TESTS_JOURNAL_H
#define TMK_TESTS_JOURNAL_H

#include <stdint.h>

enum { JOURNAL_LANES = 4096 };

enum journal_kind {
    JOURNAL_ALLOC,
    JOURNAL_TAG,
    JOURNAL_PUSH,
    JOURNAL_POP,
    JOURNAL_FREE,
    JOURNAL_MARK,
};

struct journal_event {
    enum journal_kind kind;
    uint64_t address; /* ALLOC, TAG, FREE */
    uint64_t i;       /* size of an ALLOC, category of a TAG modulo 10 */
};

static inline uint64_t journal_address(uint32_t lane, uint64_t i)
{
    return (uint64_t)(lane + 1) << 44 | i << 6;
}

static inline uint32_t journal_lane(uint64_t address)
{
    return (uint32_t)(address >> 44) - 1;
}

/* Event i of a lane. Plain lanes have allocations only, so that each event says which it is. */
static inline struct journal_event journal_event(uint32_t lane, uint64_t i, int is_plain)
{
    static const struct {
        enum journal_kind kind;
        uint64_t back; /* the block is that of the event so many before */
    } round[8] = {{JOURNAL_FREE, 7},  {JOURNAL_ALLOC, 0}, {JOURNAL_TAG, 1},  {JOURNAL_PUSH, 0},
                  {JOURNAL_ALLOC, 0}, {JOURNAL_POP, 0},   {JOURNAL_FREE, 2}, {JOURNAL_MARK, 0}};
    uint64_t at = is_plain ? 1 : i % 8;
    return (struct journal_event){round[at].kind, journal_address(lane, i - round[at].back), i};
}

#endif
