/* SPDX-License-Identifier: MIT */
/* interop/weights/weight_scan.c - see weight_scan.h. */
#include "interop/weights/weight_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "interop/weights/scan_kernels.h"
#include "kit/amount.h"
#include "kit/grow.h"

enum {
    PIECE_BYTES = 4 << 20,
    MAX_THREADS = 16,
    GATHERED = 4096, /* elements of a strided tensor, gathered at a time */
    /* Views may show the same data: the limit is this many times what they show, and a little
     * more. */
    SCANNED_TIMES = 16,
    SCANNED_LEAST_BYTES = 64 << 20,
};

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since Linux 5.14; where it is unknown, pages come one by one */
#endif

/* ---- which loops ---- */

struct kernel {
    const char *name;
    void (*scan)(enum tmk_weight_type type, const void *data, uint64_t n, struct tmk_scan_sums *s);
};

static const struct kernel kernels[] = {
    {"plain", tmk_scan_kernel_plain},
#ifdef TMK_SCAN_X86
    {"avx2", tmk_scan_kernel_avx2},
    {"avx512", tmk_scan_kernel_avx512},
#endif
};

static const struct kernel *find_kernel(void)
{
    unsigned best = 0;
#ifdef TMK_SCAN_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = 1;
    if (best == 1 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        best = 2;
#endif
    const char *asked = getenv("TIDEMARK_SCAN");
    for (unsigned i = 0; asked && i < best; i++)
        if (strcmp(asked, kernels[i].name) == 0)
            best = i;
    return &kernels[best];
}

const char *tmk_scan_level(void)
{
    return find_kernel()->name;
}

/* ---- sums become a result ---- */

static void add_sums(struct tmk_scan_sums *to, const struct tmk_scan_sums *s)
{
    if (to->first_nan == UINT64_MAX && s->first_nan != UINT64_MAX)
        to->first_nan = to->n + s->first_nan;
    if (to->first_inf == UINT64_MAX && s->first_inf != UINT64_MAX)
        to->first_inf = to->n + s->first_inf;
    to->n += s->n;
    to->n_nan += s->n_nan;
    to->n_inf += s->n_inf;
    to->n_zero += s->n_zero;
    to->n_denormal += s->n_denormal;
    to->min = fmin(to->min, s->min);
    to->max = fmax(to->max, s->max);
    to->sum += s->sum;
    to->squares += s->squares;
}

static struct tmk_scan_result result_of(const struct tmk_scan_sums *s)
{
    double n = (double)(s->n - s->n_nan - s->n_inf), mean = s->sum / n;
    bool has_any = n > 0;
    double variance = (s->squares - s->sum * mean) / (n - 1);
    return (struct tmk_scan_result){
        .is_scanned = true,
        .n_nan = s->n_nan,
        .n_inf = s->n_inf,
        .n_zero = s->n_zero,
        .n_denormal = s->n_denormal,
        .first_nan = s->first_nan,
        .first_inf = s->first_inf,
        .min = has_any ? s->min : (double)NAN,
        .max = has_any ? s->max : (double)NAN,
        .mean = has_any ? mean : (double)NAN,
        .std = n < 2             ? (double)NAN
               : variance > 0    ? sqrt(variance)
               : isnan(variance) ? variance
                                 : 0,
    };
}

void tmk_scan_memory(enum tmk_weight_type type, const void *data, uint64_t n,
                     struct tmk_scan_result *ret)
{
    struct tmk_scan_sums s = TMK_SCAN_SUMS_NONE;
    find_kernel()->scan(type, data, n, &s);
    *ret = result_of(&s);
}

/* ---- a file that is cut while it is mapped ---- */

static struct {
    int fd;
    uint8_t *start, *end;
    atomic_bool is_cut;
    struct sigaction before;
} mapped;

/* Map zeros from the missing page to the end of the mapping; the reader goes on. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    uint8_t *at = info->si_addr;
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;
    int saved = errno;
    (void)context;
    if (at < mapped.start || at >= mapped.end ||
        mmap((void *)page, (size_t)((uintptr_t)mapped.end - page), PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        sigaction(number, &mapped.before,
                  NULL); /* not ours: it comes again, to the previous handler */
    else
        atomic_store(&mapped.is_cut, true);
    errno = saved;
}

static int map_file(const struct tmk_weight_file *file, struct tmk_error *err)
{
    struct stat st;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open");
    void *data = MAP_FAILED;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == file->n_bytes)
        data = mmap(NULL, (size_t)file->n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    else
        errno = 0;
    int reason = errno;
    if (data == MAP_FAILED) {
        close(fd);
        return reason ? tmk_fail_os(err, TMK_EIO, reason, "cannot map")
                      : tmk_fail(err, TMK_EDAMAGED, "the file changed while it was read");
    }
    mapped.fd = fd;
    mapped.start = data;
    mapped.end = mapped.start + file->n_bytes;
    atomic_store(&mapped.is_cut, false);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &mapped.before);
    return 0;
}

static int unmap_file(struct tmk_error *err)
{
    struct stat st;
    size_t n_bytes = (size_t)(mapped.end - mapped.start);
    /* The missing part of the last page reads as zeros, without a signal. */
    bool is_cut = fstat(mapped.fd, &st) < 0 || (uint64_t)st.st_size < n_bytes;
    sigaction(SIGBUS, &mapped.before, NULL);
    munmap(mapped.start, n_bytes);
    close(mapped.fd);
    mapped.start = mapped.end = NULL;
    return is_cut || atomic_load(&mapped.is_cut)
               ? tmk_fail(err, TMK_EDAMAGED, "the file became shorter while it was read")
               : 0;
}

/* ---- pieces ---- */

struct tensor_piece {
    const struct tmk_weight *tensor;
    uint64_t first, n; /* elements; all of a strided tensor */
    struct tmk_scan_sums sums;
};

struct scan_job {
    const struct kernel *kernel;
    struct tensor_piece *pieces;
    uint64_t n, room;
    atomic_ullong next, done;
    uint64_t done_before, total; /* of all files */
    void (*progress)(void *arg, uint32_t done, uint32_t total);
    void *arg;
};

/* Scan the elements of a strided tensor, row by row, through a small buffer. */
static void scan_strided(const struct scan_job *job, struct tensor_piece *p)
{
    const struct tmk_weight *t = p->tensor;
    uint8_t buffer[GATHERED * 8];
    uint64_t at[TMK_WEIGHT_MAX_DIMS] = {0}, item = tmk_weight_type_bytes(t->type), n = 0;
    const uint8_t *data = mapped.start + t->offset;
    for (uint64_t i = 0; i < t->n_elements; i++) {
        memcpy(buffer + item * n++, data, item);
        if (n == GATHERED) {
            job->kernel->scan(t->type, buffer, n, &p->sums);
            n = 0;
        }
        for (uint32_t d = t->n_dims; d > 0; d--) {
            data += t->strides[d - 1] * item;
            if (++at[d - 1] < t->shape[d - 1])
                break;
            data -= t->strides[d - 1] * item * t->shape[d - 1];
            at[d - 1] = 0;
        }
    }
    job->kernel->scan(t->type, buffer, n, &p->sums);
}

/* Its pages are read in with one call and released again, so that a model larger than memory can
 * be scanned. */
static void scan_piece(const struct scan_job *job, struct tensor_piece *p)
{
    const struct tmk_weight *t = p->tensor;
    if (t->strides) {
        scan_strided(job, p);
        return;
    }
    uint64_t item = tmk_weight_type_bytes(t->type);
    uint8_t *data = mapped.start + t->offset + p->first * item;
    uintptr_t page = (uintptr_t)data & ~(uintptr_t)4095;
    size_t n_bytes = (size_t)((uintptr_t)data + p->n * item - page);
    madvise((void *)page, n_bytes, MADV_POPULATE_READ);
    job->kernel->scan(t->type, data, p->n, &p->sums);
}

static void *scan_worker(void *arg)
{
    struct scan_job *job = arg;
    unsigned long long i;
    while ((i = atomic_fetch_add(&job->next, 1)) < job->n) {
        scan_piece(job, &job->pieces[i]);
        atomic_fetch_add(&job->done, 1);
    }
    return NULL;
}

/* The caller works too, and reports the progress of all. */
static void work_and_tell_progress(struct scan_job *job)
{
    unsigned long long i;
    while ((i = atomic_fetch_add(&job->next, 1)) < job->n) {
        scan_piece(job, &job->pieces[i]);
        uint64_t done = job->done_before + atomic_fetch_add(&job->done, 1) + 1;
        if (job->progress)
            job->progress(job->arg, (uint32_t)done, (uint32_t)job->total);
    }
}

static unsigned n_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > MAX_THREADS ? MAX_THREADS : n < 1 ? 1 : (unsigned)n;
}

static void run_job(struct scan_job *job)
{
    pthread_t threads[MAX_THREADS];
    unsigned n = n_cores(), n_started = 0;
    while (n_started + 1 < n && n_started + 1 < job->n &&
           pthread_create(&threads[n_started], NULL, scan_worker, job) == 0)
        n_started++;
    work_and_tell_progress(job);
    for (unsigned i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
}

/* ---- tensors ---- */

/* The elements from a strided tensor's first to after its last. */
static uint64_t strided_extent(const struct tmk_weight *t)
{
    uint64_t extent = 1;
    for (uint32_t i = 0; t->n_elements > 0 && i < t->n_dims; i++)
        extent += (t->shape[i] - 1) * t->strides[i];
    return extent;
}

/* False for types that are not scanned (complex ones, those of fewer than 8 bits), and for views
 * that repeat their elements (expanded ones). */
static bool is_scannable_tensor(const struct tmk_weight *t)
{
    if (!t->has_data || t->same_as || !tmk_weight_type_is_scanned(t->type))
        return false;
    return !t->strides || t->n_elements <= strided_extent(t);
}

static uint64_t piece_elements(const struct tmk_weight *t)
{
    return t->strides ? t->n_elements : PIECE_BYTES / tmk_weight_type_bytes(t->type);
}

static int add_pieces(struct scan_job *job, const struct tmk_weight *t)
{
    uint64_t most = piece_elements(t);
    for (uint64_t first = 0; first < t->n_elements; first += most) {
        if (TMK_GROW(job->pieces, job->n + 1, job->room) < 0)
            return TMK_ENOMEM;
        job->pieces[job->n++] = (struct tensor_piece){
            .tensor = t,
            .first = first,
            .n = t->n_elements - first < most ? t->n_elements - first : most,
            .sums = TMK_SCAN_SUMS_NONE,
        };
    }
    return 0;
}

static void gather_results(const struct tmk_weights *w, const struct scan_job *job, uint32_t file,
                           struct tmk_scan_result *results)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < w->n; i++) {
        struct tmk_scan_sums sums = TMK_SCAN_SUMS_NONE;
        if (w->all[i].file != file || !is_scannable_tensor(&w->all[i]))
            continue;
        for (; at < job->n && job->pieces[at].tensor == &w->all[i]; at++)
            add_sums(&sums, &job->pieces[at].sums);
        results[i] = result_of(&sums);
    }
}

/* ---- how much there is to look at ---- */

/* Bytes of the file, from a tensor's first to after its last. */
struct shown_range {
    uint64_t begin, end;
};

static int compare_shown_ranges(const void *va, const void *vb)
{
    const struct shown_range *a = va, *b = vb;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* The number of bytes that are in any of the ranges, which get sorted. */
static uint64_t sum_ranges(struct shown_range *ranges, uint64_t n)
{
    uint64_t sum = 0, end = 0;
    qsort(ranges, n, sizeof *ranges, compare_shown_ranges);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t begin = ranges[i].begin > end ? ranges[i].begin : end;
        if (ranges[i].end > begin) {
            sum += ranges[i].end - begin;
            end = ranges[i].end;
        }
    }
    return sum;
}

/* Measure the bytes of the file that its tensors show: each counted once, and the sum of all. */
static int measure_shown(const struct tmk_weights *w, uint32_t file, uint64_t *ret_shown,
                         uint64_t *ret_scanned)
{
    uint64_t n = 0, scanned = 0;
    struct shown_range *ranges = malloc((w->n + 1) * sizeof *ranges);
    if (!ranges)
        return TMK_ENOMEM;
    for (uint64_t i = 0; i < w->n; i++) {
        const struct tmk_weight *t = &w->all[i];
        if (t->file != file || t->n_elements == 0 || !is_scannable_tensor(t))
            continue;
        scanned += t->n_bytes;
        ranges[n++] = (struct shown_range){
            t->offset, t->offset + (t->strides ? strided_extent(t) * tmk_weight_type_bytes(t->type)
                                               : t->n_bytes)};
    }
    *ret_shown = n > 0 ? sum_ranges(ranges, n) : 0;
    *ret_scanned = scanned;
    free(ranges);
    return 0;
}

/* A file of views, each of nearly the whole storage, would take the square of its size to scan.
 * Bytes that no tensor shows may be a hole, or padding: they do not count. */
static int check_size(const struct tmk_weights *w, uint32_t file, struct tmk_error *err)
{
    uint64_t n_bytes, shown, most;
    char scanned[TMK_AMOUNT_BYTES], size[TMK_AMOUNT_BYTES];
    int rc = measure_shown(w, file, &shown, &n_bytes);
    if (rc < 0)
        return rc;
    if (w->no_limits || __builtin_mul_overflow(shown, SCANNED_TIMES, &most) || n_bytes <= most ||
        n_bytes - most <= SCANNED_LEAST_BYTES)
        return 0;
    return tmk_fail(
        err, TMK_EFULL,
        "its tensors show the same data again and again: %s to look at in %s of the file "
        "(docs/limits.md). --no-scan shows names and shapes, --no-limits looks at all",
        tmk_size_text(n_bytes, scanned), tmk_size_text(shown, size));
}

static int scan_file(const struct tmk_weights *w, uint32_t file, struct scan_job *job,
                     struct tmk_scan_result *results, struct tmk_error *err)
{
    int rc = check_size(w, file, err);
    job->n = 0;
    for (uint64_t i = 0; i < w->n && rc == 0; i++)
        if (w->all[i].file == file && is_scannable_tensor(&w->all[i]))
            rc = add_pieces(job, &w->all[i]);
    if (rc < 0)
        return rc;
    if (job->n > 0) {
        atomic_store(&job->next, 0);
        atomic_store(&job->done, 0);
        rc = map_file(&w->files[file], err);
        if (rc < 0)
            return rc;
        run_job(job);
        rc = unmap_file(err);
    }
    job->done_before += job->n;
    if (rc == 0)
        gather_results(w, job, file, results);
    return rc;
}

static uint64_t count_pieces(const struct tmk_weights *w)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < w->n; i++)
        if (is_scannable_tensor(&w->all[i]) && w->all[i].n_elements > 0)
            n += (w->all[i].n_elements - 1) / piece_elements(&w->all[i]) + 1;
    return n;
}

int tmk_weights_scan(const struct tmk_weights *w, struct tmk_scan_result *results,
                     void (*progress)(void *arg, uint32_t done, uint32_t total), void *arg,
                     const char **ret_path, struct tmk_error *err)
{
    struct scan_job job = {
        .kernel = find_kernel(), .total = count_pieces(w), .progress = progress, .arg = arg};
    int rc = 0;
    memset(results, 0, w->n * sizeof *results);
    for (uint32_t file = 0; file < w->n_files && rc == 0; file++) {
        if (ret_path)
            *ret_path = w->files[file].path;
        rc = scan_file(w, file, &job, results, err);
    }
    free(job.pieces);
    if (rc < 0)
        return rc == TMK_ENOMEM ? tmk_fail(err, rc, "out of memory") : rc;
    for (uint64_t i = 0; i < w->n; i++)
        if (w->all[i].same_as)
            results[i] = results[w->all[i].same_as - 1];
    return 0;
}
