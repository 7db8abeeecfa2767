/* SPDX-License-Identifier: MIT */
/* tinytrain_mem.c - malloc with a ledger, and the place that reports blocks to tidemark.
 *
 * Each block carries a small head with its size and category, so that a free needs only the
 * address:
 *
 *     | size, category, padding to 64 bytes | the caller's bytes ...
 *     ^ from aligned_alloc()                ^ what the caller and tidemark know
 *
 * Invariant: ledger and report change together, under one lock. So the ledger's counts have the
 * order of tidemark's events, also when several threads allocate, and "the peak" is the same moment
 * in both. A block is tagged as soon as it is reported; no live block is untagged.
 *
 * tidemark_alloc() would name the line it stands on, which here is the same for all blocks. So the
 * macro tt_new() notes its caller's line, and tidemark_alloc_at() passes that on. */
#include "tinytrain_mem.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>

enum { HEAD_ALIGN = 64, NAME_MAX_BYTES = 128 };

struct head {
    alignas(HEAD_ALIGN) size_t size_bytes;
    enum tidemark_category category;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tt_mem_counts counts;
static uint64_t capacity_bytes;

static const char *const category_names[TT_N_CATEGORIES] = {
    [TIDEMARK_UNKNOWN] = "unknown",       [TIDEMARK_PARAMETER] = "parameter",
    [TIDEMARK_GRADIENT] = "gradient",     [TIDEMARK_OPTIMIZER_STATE] = "optimizer_state",
    [TIDEMARK_ACTIVATION] = "activation", [TIDEMARK_INPUT] = "input",
    [TIDEMARK_TEMPORARY] = "temporary",   [TIDEMARK_AUTOGRAD_DETAIL] = "autograd_detail",
    [TIDEMARK_BUFFER] = "buffer",         [TIDEMARK_OTHER] = "other",
    [TIDEMARK_KV_CACHE] = "kv_cache",
};

void tt_mem_limit(uint64_t limit_bytes)
{
    capacity_bytes = limit_bytes;
}

static const char *size_format(uint64_t size_bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)size_bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
        value /= 1024;
    snprintf(text, text_bytes, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* Report the OOM and exit. The lock stays taken, so no other thread reports anything after this. */
_Noreturn static void exit_out_of_memory(uint64_t size_bytes, const struct tidemark_site *site)
{
    if (tidemark_record_oom) /* tidemark_oom(), on behalf of the caller's line */
        tidemark_record_oom(TIDEMARK_HOST, size_bytes, capacity_bytes, site);

    char wanted[32], used[32], limit[32];
    size_format(size_bytes, wanted, sizeof(wanted));
    size_format(counts.live_bytes, used, sizeof(used));
    fflush(stdout);
    if (capacity_bytes)
        fprintf(stderr, "tinytrain: out of memory: tried to allocate %s, %s of %s in use\n", wanted,
                used, size_format(capacity_bytes, limit, sizeof(limit)));
    else
        fprintf(stderr, "tinytrain: out of memory: tried to allocate %s, %s in use\n", wanted,
                used);
    exit(EXIT_FAILURE);
}

static void count_alloc(size_t size_bytes, enum tidemark_category category)
{
    counts.n_allocations++;
    counts.live_bytes += size_bytes;
    counts.live_by_category[category] += size_bytes;
    if (counts.live_bytes <= counts.peak_bytes)
        return;
    counts.peak_bytes = counts.live_bytes;
    for (size_t i = 0; i < TT_N_CATEGORIES; i++)
        counts.peak_by_category[i] = counts.live_by_category[i];
}

static void count_free(size_t size_bytes, enum tidemark_category category)
{
    counts.n_frees++;
    counts.live_bytes -= size_bytes;
    counts.live_by_category[category] -= size_bytes;
}

/* Allocate the block's head. Returns NULL over the limit, or when the system has no more memory. */
static struct head *head_alloc(size_t size_bytes)
{
    if (capacity_bytes && size_bytes > capacity_bytes - counts.live_bytes)
        return NULL;
    if (size_bytes > SIZE_MAX / 2)
        return NULL;
    const size_t rounded_bytes = (size_bytes + HEAD_ALIGN - 1) / HEAD_ALIGN * HEAD_ALIGN;
    return aligned_alloc(HEAD_ALIGN, sizeof(struct head) + rounded_bytes);
}

void *tt_mem_new(enum tidemark_category category, size_t size_bytes, const char *owner,
                 const char *what, const struct tidemark_site *site)
{
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof(name), "%s.%s", owner, what);

    pthread_mutex_lock(&lock);
    struct head *head = head_alloc(size_bytes);
    if (!head)
        exit_out_of_memory(size_bytes, site);
    head->size_bytes = size_bytes;
    head->category = category;
    void *block = head + 1;

    tidemark_alloc_at(TIDEMARK_HOST, block, size_bytes, site->file, site->function, site->line);
    tidemark_tag(TIDEMARK_HOST, block, category, name);
    count_alloc(size_bytes, category);
    pthread_mutex_unlock(&lock);
    return block;
}

void *tt_free(void *block)
{
    if (!block)
        return NULL;
    struct head *head = (struct head *)block - 1;

    pthread_mutex_lock(&lock);
    tidemark_free(TIDEMARK_HOST, block); /* before the address can be handed out again */
    count_free(head->size_bytes, head->category);
    free(head);
    pthread_mutex_unlock(&lock);
    return NULL;
}

const struct tt_mem_counts *tt_mem_counts_get(void)
{
    return &counts;
}

void tt_mem_counts_print(FILE *file)
{
    fprintf(file, "{\"allocations\":%llu,\"frees\":%llu,\"peak_bytes\":%llu,\"peak_by_category\":{",
            (unsigned long long)counts.n_allocations, (unsigned long long)counts.n_frees,
            (unsigned long long)counts.peak_bytes);
    const char *comma = "";
    for (size_t i = 0; i < TT_N_CATEGORIES; i++) {
        if (!counts.peak_by_category[i])
            continue;
        fprintf(file, "%s\"%s\":%llu", comma, category_names[i],
                (unsigned long long)counts.peak_by_category[i]);
        comma = ",";
    }
    fprintf(file, "}}\n");
}
