/* SPDX-License-Identifier: MIT */
/* bench/scan_speed.c - how fast `tidemark model` looks at a file's numbers, against a probe of the
 * memory: the same file, mapped anew, and its words added up by the same cores, pages and cache
 * lines asked for ahead.
 *
 *     scan_speed FILE [N]      N rounds (5), probe and scan in turn; the best of each counts
 *
 * Both find the file in the page cache (a round before the first sees to it), and both pay for the
 * mapping: what a reader of a file cannot avoid. {"probe_bytes_per_s", "scan_bytes_per_s", ...}. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"

enum { PIECE_BYTES = 4 << 20, MAX_CORES = 16, POPULATE_READ = 22, AHEAD_BYTES = 1024 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the probe ---- */

struct probe {
    const uint8_t *data;
    size_t n_bytes;
    atomic_size_t next;
    atomic_ullong sum;
};

static uint64_t add_up(const uint8_t *at, size_t n_bytes)
{
    uint64_t lanes __attribute__((vector_size(64))) = {0};
    uint64_t more __attribute__((vector_size(64))) = {0};
    uint64_t first __attribute__((vector_size(64)));
    uint64_t second __attribute__((vector_size(64)));
    for (size_t i = 0; i + 128 <= n_bytes; i += 128) {
        __builtin_prefetch(at + i + AHEAD_BYTES);
        __builtin_prefetch(at + i + AHEAD_BYTES + 64);
        memcpy(&first, at + i, sizeof first);
        memcpy(&second, at + i + 64, sizeof second);
        lanes += first;
        more += second;
    }
    lanes += more;
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += lanes[i];
    return sum;
}

static void *probe_work(void *arg)
{
    struct probe *p = arg;
    size_t at;
    while ((at = atomic_fetch_add(&p->next, PIECE_BYTES)) < p->n_bytes) {
        size_t n = p->n_bytes - at < PIECE_BYTES ? p->n_bytes - at : PIECE_BYTES;
        madvise((void *)(uintptr_t)(p->data + at), n, POPULATE_READ);
        atomic_fetch_add(&p->sum, add_up(p->data + at, n));
    }
    return NULL;
}

static int n_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > MAX_CORES ? MAX_CORES : n;
}

static double probe(const char *path)
{
    struct stat st;
    pthread_t threads[MAX_CORES];
    double start = now_s();
    int fd = open(path, O_RDONLY), n = n_cores();
    if (fd < 0 || fstat(fd, &st) < 0) {
        perror(path);
        exit(1);
    }
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    struct probe p = {.data = data, .n_bytes = (size_t)st.st_size};
    for (int i = 1; i < n; i++)
        pthread_create(&threads[i], NULL, probe_work, &p);
    probe_work(&p);
    for (int i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    munmap(data, (size_t)st.st_size);
    close(fd);
    return now_s() - start;
}

/* ---- the scan ---- */

static double scan(const char *path, uint64_t *ret_bytes)
{
    struct tmk_weights w;
    struct tmk_error err = {0};
    double start = now_s();
    int rc = tmk_weights_read(&w, &path, 1, false, NULL, &err);
    struct tmk_scan_result *results = rc < 0 ? NULL : calloc(w.n + 1, sizeof *results);
    if (results)
        rc = tmk_weights_scan(&w, results, NULL, NULL, NULL, &err);
    if (rc < 0 || !results) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    double took = now_s() - start;
    *ret_bytes = 0;
    for (uint64_t i = 0; i < w.n; i++)
        *ret_bytes += w.all[i].same_as ? 0 : w.all[i].n_bytes;
    free(results);
    tmk_weights_fini(&w);
    return took;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: scan_speed FILE [ROUNDS]\n");
        return 2;
    }
    int n = argc > 2 ? atoi(argv[2]) : 5;
    uint64_t n_bytes = 0;
    double best_probe = probe(argv[1]), best_scan = scan(argv[1], &n_bytes);
    for (int i = 0; i < n; i++) {
        double a = probe(argv[1]), b = scan(argv[1], &n_bytes);
        best_probe = a < best_probe ? a : best_probe;
        best_scan = b < best_scan ? b : best_scan;
    }
    printf("{\"bytes\": %" PRIu64
           ", \"cores\": %d, \"level\": \"%s\", \"probe_bytes_per_s\": %.0f, "
           "\"scan_bytes_per_s\": %.0f, \"ratio\": %.3f}\n",
           n_bytes, n_cores(), tmk_scan_level(), (double)n_bytes / best_probe,
           (double)n_bytes / best_scan, best_probe / best_scan);
    return 0;
}
