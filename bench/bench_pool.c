/* SPDX-License-Identifier: MIT */
/* bench_pool.c - see bench_pool.h.
 *
 * Blocks are linked with their neighbours in the segment. Free ones stand in an array sorted by
 * (size, address), one for small and one for large blocks: best fit is a binary search, and with a
 * few hundred free blocks moving the tail of the array costs less than a tree. */
#include "bench_pool.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1ull << 20)

enum { ROUND_BYTES = 512 };
#define SMALL_MAX_BYTES (1 * MIB)
#define SMALL_SEGMENT_BYTES (2 * MIB)
#define MIDDLE_MAX_BYTES (10 * MIB)
#define MIDDLE_SEGMENT_BYTES (20 * MIB)
#define LARGE_ROUND_BYTES (2 * MIB)
#define FIRST_ADDRESS 0x7f2a00000000ull

struct node {
    uint64_t address;
    uint64_t size_bytes;
    uint32_t before, after; /* neighbours in the segment, 0: none; after also links unused nodes */
    bool is_free;
    bool is_small;
};

struct free_list { /* indices of free nodes, by (size, address) */
    uint32_t *nodes;
    uint32_t n, room;
};

struct tmk_bench_pool {
    struct node *nodes; /* from 1 */
    uint32_t n_nodes, room;
    uint32_t unused;
    struct free_list lists[2]; /* large, small */
    uint64_t next_address;
};

static void *grown(void *array, uint32_t n, size_t item_bytes)
{
    void *larger = realloc(array, (size_t)n * item_bytes);
    if (!larger) {
        perror("bench_pool");
        exit(1);
    }
    return larger;
}

struct tmk_bench_pool *tmk_bench_pool_open(void)
{
    struct tmk_bench_pool *p = calloc(1, sizeof *p);
    if (p) {
        p->next_address = FIRST_ADDRESS;
        p->n_nodes = 1;
    }
    return p;
}

struct tmk_bench_pool *tmk_bench_pool_close(struct tmk_bench_pool *p)
{
    if (p) {
        free(p->nodes);
        free(p->lists[0].nodes);
        free(p->lists[1].nodes);
        free(p);
    }
    return NULL;
}

static uint32_t new_node(struct tmk_bench_pool *p)
{
    uint32_t i = p->unused;
    if (i) {
        p->unused = p->nodes[i].after;
        return i;
    }
    if (p->n_nodes >= p->room) {
        p->room = p->room ? p->room * 2 : 4096;
        p->nodes = grown(p->nodes, p->room, sizeof *p->nodes);
    }
    return p->n_nodes++;
}

/* ---- the free lists ---- */

/* The first place whose node is not before (size, address). */
static uint32_t place_of(const struct tmk_bench_pool *p, const struct free_list *list,
                         uint64_t size_bytes, uint64_t address)
{
    uint32_t low = 0, high = list->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct node *node = &p->nodes[list->nodes[middle]];
        bool is_before = node->size_bytes < size_bytes ||
                         (node->size_bytes == size_bytes && node->address < address);
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low;
}

static void list_remove_at(struct free_list *list, uint32_t at)
{
    memmove(&list->nodes[at], &list->nodes[at + 1], (list->n - at - 1) * sizeof *list->nodes);
    list->n--;
}

static void list_remove(struct tmk_bench_pool *p, uint32_t i)
{
    struct node *node = &p->nodes[i];
    struct free_list *list = &p->lists[node->is_small];
    list_remove_at(list, place_of(p, list, node->size_bytes, node->address));
    node->is_free = false;
}

static void list_add(struct tmk_bench_pool *p, uint32_t i)
{
    struct node *node = &p->nodes[i];
    struct free_list *list = &p->lists[node->is_small];
    if (list->n >= list->room) {
        list->room = list->room ? list->room * 2 : 1024;
        list->nodes = grown(list->nodes, list->room, sizeof *list->nodes);
    }
    uint32_t at = place_of(p, list, node->size_bytes, node->address);
    memmove(&list->nodes[at + 1], &list->nodes[at], (list->n - at) * sizeof *list->nodes);
    list->nodes[at] = i;
    list->n++;
    node->is_free = true;
}

/* ---- taking and giving ---- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static uint32_t new_segment(struct tmk_bench_pool *p, uint64_t size_bytes, bool is_small)
{
    uint64_t bytes = is_small ? SMALL_SEGMENT_BYTES : MIDDLE_SEGMENT_BYTES;
    if (size_bytes >= MIDDLE_MAX_BYTES)
        bytes = round_up(size_bytes, LARGE_ROUND_BYTES);
    uint32_t i = new_node(p);
    p->nodes[i] =
        (struct node){.address = p->next_address, .size_bytes = bytes, .is_small = is_small};
    p->next_address += bytes;
    return i;
}

/* Cut node i down to size_bytes; what is left becomes a free node. */
static void split(struct tmk_bench_pool *p, uint32_t i, uint64_t size_bytes)
{
    uint64_t left = p->nodes[i].size_bytes - size_bytes;
    if (left < (p->nodes[i].is_small ? ROUND_BYTES : SMALL_MAX_BYTES))
        return;
    uint32_t rest = new_node(p);
    struct node *node = &p->nodes[i];
    p->nodes[rest] = (struct node){.address = node->address + size_bytes,
                                   .size_bytes = left,
                                   .before = i,
                                   .after = node->after,
                                   .is_small = node->is_small};
    if (node->after)
        p->nodes[node->after].before = rest;
    node->after = rest;
    node->size_bytes = size_bytes;
    list_add(p, rest);
}

struct tmk_bench_block tmk_bench_pool_take(struct tmk_bench_pool *p, uint64_t size_bytes)
{
    uint64_t bytes = round_up(size_bytes ? size_bytes : 1, ROUND_BYTES);
    bool is_small = bytes <= SMALL_MAX_BYTES;
    struct free_list *list = &p->lists[is_small];
    uint32_t at = place_of(p, list, bytes, 0);
    uint32_t i;
    if (at < list->n) {
        i = list->nodes[at];
        list_remove_at(list, at);
        p->nodes[i].is_free = false;
    } else {
        i = new_segment(p, bytes, is_small);
    }
    split(p, i, bytes);
    return (struct tmk_bench_block){
        .address = p->nodes[i].address, .size_bytes = bytes, .handle = i};
}

/* Join node i with the one after it, which disappears. */
static void join(struct tmk_bench_pool *p, uint32_t i)
{
    struct node *node = &p->nodes[i];
    uint32_t gone = node->after;
    node->size_bytes += p->nodes[gone].size_bytes;
    node->after = p->nodes[gone].after;
    if (node->after)
        p->nodes[node->after].before = i;
    p->nodes[gone].after = p->unused;
    p->unused = gone;
}

void tmk_bench_pool_give(struct tmk_bench_pool *p, uint32_t handle)
{
    uint32_t i = handle;
    uint32_t after = p->nodes[i].after, before = p->nodes[i].before;
    if (after && p->nodes[after].is_free) {
        list_remove(p, after);
        join(p, i);
    }
    if (before && p->nodes[before].is_free) {
        list_remove(p, before);
        join(p, before);
        i = before;
    }
    list_add(p, i);
}
