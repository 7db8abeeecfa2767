/* SPDX-License-Identifier: MIT */
/* fake_use.h - what each process that uses the stand-in libcuda.so.1 has of each card.
 *
 * A file beside the one that describes the machine, $FAKE_CUDA_STATE.use, shared by all processes:
 * an array of struct fake_use, changed under flock. A process that died has nothing, as with the
 * real driver: its entries are passed over, and taken by the next one. */
#ifndef FAKE_USE_H
#define FAKE_USE_H

#include <stdbool.h>
#include <stdint.h>

struct fake_use {
    uint32_t pid; /* 0: a free entry */
    uint32_t card;
    uint64_t bytes;
};

/* The living, at most `most`; their number. */
int fake_use_list(struct fake_use *to, int most);

/* This process gets `bytes` more of a card that has `capacity` for all processes of the file. False
 * when that is too much, and then nothing is changed. */
bool fake_use_take(unsigned card, uint64_t bytes, uint64_t capacity);
void fake_use_give_back(unsigned card, uint64_t bytes);

/* This process has nothing: it starts. (It may have executed another program before.) */
void fake_use_reset(void);

#endif
