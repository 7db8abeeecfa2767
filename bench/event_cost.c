/* SPDX-License-Identifier: MIT */
/* event_cost.c - what one event costs the program that reports it.
 *
 *     event_cost [--only NAME] [--batches N] [--live N] [--pause MS]      one JSON object
 *
 * Run it under `tidemark run` for the cost of recording, and alone for the cost of not being
 * watched. It knows the public header only, like any annotated program. Events come in batches of
 * 20,000; only the batch is timed, and the pause after it lets the packer keep up, because a full
 * ring drops events, which is quick but not what we want to know. The packer thread runs meanwhile,
 * as it does in real life. "loop" is the same loop without events: it is part of every figure. The
 * very first event, which makes the recorder's files and thread, is timed by itself ("first_us").
 *
 * A program has other things to do between two events, and finds the caches full of them. The cold
 * kind reads more memory before each event than fits the first-level cache; what that takes is
 * measured in turn with it, a thousand events at a time, and subtracted.
 *
 * Instructions are counted for this thread alone, in user mode, where the machine has a counter;
 * else they are null, and bench/run counts them with valgrind: --only batch by batch. */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tidemark/tidemark.h"

enum {
    BATCH = 20000, /* events */
    SLICE = 1000,
    N_BLOCKS = 1024, /* alive at once */
    N_NAMES = 128,
    WALK_BYTES = 64 << 10,
    MAX_BATCHES = 100000,
    GPU = TIDEMARK_CUDA(0),
};

struct block {
    uintptr_t address;
    uint64_t size_bytes;
};

static struct block blocks[N_BLOCKS];
static uint16_t order[BATCH]; /* of blocks, random */
static char names[N_NAMES][48];
static char walked[WALK_BYTES];
static int64_t step;
static struct timespec pause_time; /* after each batch */

/* ---- the batches: each reports n events ---- */

#define NOINLINE __attribute__((noinline))

static inline const void *address_of(const struct block *b)
{
    return (const void *)b->address; /* never followed: a device address */
}

static NOINLINE void batch_loop(int n)
{
    for (int i = 0; i < n; i++) {
        const struct block *b = &blocks[order[i]];
        __asm__ volatile("" : : "r"(b->address), "r"(b->size_bytes));
    }
}

/* A block goes and comes again, in random order among those alive. */
static NOINLINE void batch_alloc_free(int n)
{
    for (int i = 0; i < n / 2; i++) {
        const struct block *b = &blocks[order[i]];
        tidemark_free(GPU, address_of(b));
        tidemark_alloc(GPU, address_of(b), b->size_bytes);
    }
}

/* What else the program does, as far as the caches feel it. */
static void walk(void)
{
    for (uint32_t i = 0; i < WALK_BYTES; i += 64)
        (void)*(const volatile char *)&walked[i];
}

static NOINLINE void batch_cold_loop(int n)
{
    for (int i = 0; i < n; i++) {
        const struct block *b = &blocks[order[i]];
        __asm__ volatile("" : : "r"(b->address), "r"(b->size_bytes));
        walk();
    }
}

static NOINLINE void batch_cold_alloc_free(int n)
{
    for (int i = 0; i < n / 2; i++) {
        const struct block *b = &blocks[order[i]];
        tidemark_free(GPU, address_of(b));
        walk();
        tidemark_alloc(GPU, address_of(b), b->size_bytes);
        walk();
    }
}

/* The two apart. Blocks are alive when alloc comes again: the recorder neither knows nor cares. */
static NOINLINE void batch_alloc(int n)
{
    for (int i = 0; i < n; i++) {
        const struct block *b = &blocks[order[i]];
        tidemark_alloc(GPU, address_of(b), b->size_bytes);
    }
}

/* Allocations some frames further down: what the depth costs when stacks are native
 * (TIDEMARK_NATIVE=1), and nothing else. */
static NOINLINE void descend(int n_frames, int n)
{
    if (n_frames > 0)
        descend(n_frames - 1, n);
    else
        batch_alloc(n);
    __asm__ volatile("" : : : "memory"); /* or the call would become a jump */
}

static NOINLINE void batch_deep(int n)
{
    descend(20, n);
}

static NOINLINE void batch_free(int n)
{
    for (int i = 0; i < n; i++)
        tidemark_free(GPU, address_of(&blocks[order[i]]));
}

static NOINLINE void batch_range(int n)
{
    for (int i = 0; i < n / 2; i++) {
        tidemark_push(TIDEMARK_MODULE, names[order[i] % N_NAMES]);
        tidemark_pop(TIDEMARK_MODULE);
    }
}

static NOINLINE void batch_tag(int n)
{
    for (int i = 0; i < n; i++)
        tidemark_tag(GPU, address_of(&blocks[order[i]]), TIDEMARK_ACTIVATION,
                     names[order[i] % N_NAMES]);
}

static NOINLINE void batch_step(int n)
{
    for (int i = 0; i < n; i++)
        tidemark_step(step++);
}

static const struct kind {
    const char *name;
    void (*batch)(int n);
    void (*base)(int n); /* to be subtracted, or NULL */
    uint32_t share;      /* of the batches asked for, 1/share are run */
    uint32_t n_events;   /* of a batch */
} kinds[] = {
    {"loop", batch_loop, NULL, 1, 0},
    {"alloc_free", batch_alloc_free, NULL, 1, BATCH},
    {"alloc", batch_alloc, NULL, 1, BATCH},
    {"deep", batch_deep, NULL, 1, BATCH},
    {"free", batch_free, NULL, 1, BATCH},
    {"cold_alloc_free", batch_cold_alloc_free, batch_cold_loop, 2, BATCH},
    {"range", batch_range, NULL, 2, BATCH},
    {"tag", batch_tag, NULL, 2, BATCH},
    {"step", batch_step, NULL, 10, BATCH}, /* a step is a row for ever: not too many of them */
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- measuring ---- */

static uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A counter of this thread's instructions, or -1. */
static int open_counter(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_HW_INSTRUCTIONS,
        .disabled = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void count_on(int counter)
{
    if (counter >= 0)
        (void)ioctl(counter, PERF_EVENT_IOC_ENABLE, 0);
}

static void count_off(int counter)
{
    if (counter >= 0)
        (void)ioctl(counter, PERF_EVENT_IOC_DISABLE, 0);
}

/* What was counted so far, 0 when it cannot be. */
static uint64_t count_of(int counter)
{
    uint64_t value = 0;
    if (counter < 0 || read(counter, &value, sizeof value) != (ssize_t)sizeof value)
        return 0;
    return value;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t time_of(void (*batch)(int n), int n)
{
    uint64_t start_ns = now_ns();
    batch(n);
    return (int64_t)(now_ns() - start_ns);
}

/* The time of one batch, without its base: below 0 when noise is more than there is to see. */
static int64_t batch_ns(const struct kind *kind)
{
    if (!kind->base)
        return time_of(kind->batch, BATCH);
    int64_t ns = 0;
    for (int i = 0; i < BATCH; i += SLICE) {
        ns -= time_of(kind->base, SLICE);
        ns += time_of(kind->batch, SLICE);
    }
    return ns;
}

/* n batches; times[] gets each one's ns, sorted. Returns instructions, 0 when not counted. */
static uint64_t measure(const struct kind *kind, uint32_t n, int64_t *times, int counter)
{
    uint64_t before = count_of(counter);
    for (uint32_t i = 0; i < n; i++) {
        if (!kind->base)
            count_on(counter);
        times[i] = batch_ns(kind);
        count_off(counter);
        nanosleep(&pause_time, NULL);
    }
    qsort(times, n, sizeof *times, compare_times);
    return count_of(counter) - before;
}

static double mean_ns(const int64_t *times, uint32_t n)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += times[i];
    return (double)sum / n / BATCH;
}

static void print_kind(const char *name, const int64_t *times, uint32_t n, uint64_t instructions)
{
    printf("\"%s\":{\"mean_ns\":%.2f,\"best_ns\":%.2f,\"p50_ns\":%.2f,\"p90_ns\":%.2f,"
           "\"p99_ns\":%.2f,\"batches\":%u,\"instructions\":",
           name, mean_ns(times, n), (double)times[0] / BATCH, (double)times[n / 2] / BATCH,
           (double)times[n - 1 - n / 10] / BATCH, (double)times[n - 1 - n / 100] / BATCH, n);
    if (instructions)
        printf("%.2f},", (double)instructions / n / BATCH);
    else
        printf("null},");
}

/* ---- setting up ---- */

static void set_up(void)
{
    static const uint64_t sizes[] = {512, 2048, 65536, 1048576, 4194304, 16777216};
    uint64_t random = 1;
    uintptr_t address = (uintptr_t)0x7f2a00000000u;
    for (int i = 0; i < N_BLOCKS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        blocks[i].size_bytes = sizes[(random >> 33) % (sizeof sizes / sizeof sizes[0])];
        blocks[i].address = address;
        address += blocks[i].size_bytes;
    }
    for (int i = 0; i < BATCH; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        order[i] = (uint16_t)((random >> 33) % N_BLOCKS);
    }
    memset(walked, 1, sizeof walked); /* pages of its own, not the kernel's zeros */
    for (int i = 0; i < N_NAMES; i++)
        snprintf(names[i], sizeof names[i], "encoder.layers.%d.self_attn.out_proj", i);
}

/* Many blocks at once: the recorder has to know each one. Returns the events reported. */
static uint64_t hold_many(uint64_t n_live)
{
    for (uint64_t i = 0; i < n_live; i++) {
        tidemark_alloc(GPU, (const void *)(uintptr_t)(0x7e0000000000u + i * 512), 512);
        if (i % BATCH == BATCH - 1)
            nanosleep(&pause_time, NULL);
    }
    return n_live;
}

/* "VmHWM:" and the like of this process, in KiB; -1 when not known. */
static long memory_kib(const char *key)
{
    long kib = -1;
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key), NULL, 10);
    if (status)
        fclose(status);
    return kib;
}

/* ---- the program ---- */

struct settings {
    const char *only;
    uint64_t n_batches, n_live, pause_ms;
};

static int parse(int argc, char **argv, struct settings *s)
{
    const struct {
        const char *name;
        uint64_t *number; /* NULL: it is --only */
    } flags[] = {{"--only", NULL},
                 {"--batches", &s->n_batches},
                 {"--live", &s->n_live},
                 {"--pause", &s->pause_ms}};
    for (int i = 1; i < argc; i += 2) {
        size_t k = 0;
        while (k < sizeof flags / sizeof flags[0] && strcmp(argv[i], flags[k].name) != 0)
            k++;
        if (k == sizeof flags / sizeof flags[0] || i + 1 >= argc)
            return -1;
        char *end = NULL;
        if (flags[k].number)
            *flags[k].number = strtoull(argv[i + 1], &end, 10);
        else
            s->only = argv[i + 1];
        if (end && (*end || end == argv[i + 1]))
            return -1;
    }
    return s->n_batches <= MAX_BATCHES && s->pause_ms < 1000 ? 0 : -1;
}

static uint64_t run_kinds(const struct settings *s)
{
    static int64_t times[MAX_BATCHES];
    uint64_t n_events = 0;
    int counter = open_counter();
    for (int k = 0; k < N_KINDS; k++) {
        if (s->n_batches == 0 || (s->only && strcmp(s->only, kinds[k].name) != 0))
            continue;
        uint32_t n = ((uint32_t)s->n_batches + kinds[k].share - 1) / kinds[k].share;
        uint64_t instructions = measure(&kinds[k], n, times, counter);
        print_kind(kinds[k].name, times, n, instructions);
        n_events += (uint64_t)n * kinds[k].n_events;
    }
    if (counter >= 0)
        close(counter);
    return n_events;
}

int main(int argc, char **argv)
{
    struct settings s = {.n_batches = 200, .pause_ms = 5};
    if (parse(argc, argv, &s) < 0) {
        fputs("usage: event_cost [--only NAME] [--batches N] [--live N] [--pause MS]\n", stderr);
        return 2;
    }
    pause_time.tv_nsec = (long)s.pause_ms * 1000000;
    set_up();
    bool is_watched = tidemark_is_watched();
    uint64_t start_ns = now_ns();
    tidemark_mark("event_cost", NULL);
    printf("{\"watched\":%s,\"first_us\":%.1f,", is_watched ? "true" : "false",
           (double)(now_ns() - start_ns) / 1e3);
    uint64_t n_events = 1;
    n_events += hold_many(s.n_live);
    n_events += run_kinds(&s);
    printf("\"events\":%" PRIu64 ",\"still_watched\":%s,\"peak_kib\":%ld,\"anonymous_kib\":%ld,"
           "\"shared_kib\":%ld}\n",
           is_watched ? n_events : 0, tidemark_is_watched() ? "true" : "false",
           memory_kib("VmHWM:"), memory_kib("RssAnon:"), memory_kib("RssShmem:"));
    return 0;
}
