/* SPDX-License-Identifier: MIT */
/* monitor/history.h - memory use over time, kept in bounded memory however long it is watched.
 *
 * An entry stands for `width` samples: one, until the room is full. Then neighbours are merged in
 * pairs, and from then on an entry takes twice as many samples. So the whole history has one
 * resolution, and its shape (least, most and last of each entry) stays. A moment without an answer
 * is a gap, not a zero: the next entry says that a gap came before it. Entries are merged over a
 * gap only if there would be no room otherwise.
 *
 *     struct tmk_history h;
 *     tmk_history_init(&h, 4096);
 *     rc = tmk_history_add(&h, time_ns, used_bytes); */
#ifndef TMK_MONITOR_HISTORY_H
#define TMK_MONITOR_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

struct tmk_history_entry {
    uint64_t start_ns, end_ns; /* times of its first and last sample */
    uint64_t min_bytes, max_bytes, last_bytes;
    uint32_t n_samples;
    bool after_gap;
};

struct tmk_history {
    struct tmk_history_entry *entries;
    uint64_t n, room, most;
    uint32_t width; /* samples of a full entry */
    bool in_gap;
};

/* Begin a history that keeps at most `most` entries, an even number from 4 on. This takes no memory
 * yet. */
void tmk_history_init(struct tmk_history *h, uint64_t most);
void tmk_history_fini(struct tmk_history *h);

/* Times may not decrease. 0 or TMK_ENOMEM. */
int tmk_history_add(struct tmk_history *h, uint64_t time_ns, uint64_t bytes);
void tmk_history_gap(struct tmk_history *h);

#endif
