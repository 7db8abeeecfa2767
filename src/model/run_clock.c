/* SPDX-License-Identifier: MIT */
/* model/run_clock.c - see run_clock.h. */
#include "model/run_clock.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/run.h"
#include "trace/layout.h"
#include "trace/reader.h"
#include "trace/state.h"

enum {
    LEAST_STEPS = 10,   /* that say how far apart two clocks are */
    MOST_STEPS = 1000,  /* that are looked at */
    CLEARLY_APART = 3,  /* times the spread */
    SLACK_NS = 1000000, /* nobody minds a millisecond */
};

#define MOST_APART_NS (INT64_MAX / 3) /* a clock that was never set is half a century behind */

/* One boot of one host. */
struct boot_clock {
    const char *id;
    bool has_start;
    int64_t first_ns;    /* monotonic, of its first process */
    int64_t realtime_ns; /* of its monotonic time 0, as that process saw it */
    int64_t moved_ns;
    struct tmk_process *longest; /* the process with the most steps */
};

struct start_pair {
    int64_t step;
    int64_t start_ns;
};

/* Numbers of a trace as times that sums of a few cannot overflow; the file may be hostile. */
static int64_t sane_ns(uint64_t ns)
{
    return ns > INT64_MAX / 16 ? 0 : (int64_t)ns;
}

static int64_t sane_realtime_ns(const struct tmk_process *p)
{
    return p->start_realtime_ns > INT64_MAX / 2 ? 0 : (int64_t)p->start_realtime_ns;
}

static bool process_monotonic_ns(const struct tmk_process *p, int64_t *ret)
{
    uint64_t ns;
    if (!tmk_reader_info(p->reader, "boot_id") ||
        !tmk_reader_info_u64(p->reader, "start_monotonic_ns", &ns))
        return false;
    *ret = sane_ns(ns);
    return true;
}

/* A trace that does not say its boot is known by its host. */
static const char *boot_id_of(const struct tmk_process *p)
{
    int64_t ns;
    return process_monotonic_ns(p, &ns) ? tmk_reader_info(p->reader, "boot_id") : p->host;
}

/* Real time when the process began, by the clock of its boot. */
static int64_t process_start_ns(const struct tmk_process *p, const struct boot_clock *b)
{
    int64_t monotonic_ns;
    if (!process_monotonic_ns(p, &monotonic_ns))
        return sane_realtime_ns(p) + b->moved_ns;
    return b->realtime_ns + monotonic_ns + b->moved_ns;
}

/* The time of day when the boot's first process began counts, so that the order of files does not.
 */
static void add_to_boot(struct boot_clock *b, struct tmk_process *p)
{
    int64_t monotonic_ns = 0;
    process_monotonic_ns(p, &monotonic_ns);
    if (!b->has_start || monotonic_ns < b->first_ns) {
        b->has_start = true;
        b->first_ns = monotonic_ns;
        b->realtime_ns = sane_realtime_ns(p) - monotonic_ns;
    }
    uint64_t n_best = b->longest ? tmk_reader_n_step_rows(b->longest->reader) : 0;
    uint64_t n_rows = tmk_reader_n_step_rows(p->reader);
    bool is_lower = b->longest && n_rows == n_best && p->rank < b->longest->rank;
    if (p->rank >= 0 && (n_rows > n_best || is_lower))
        b->longest = p;
}

/* Find the boots; `boot_of` has the number of each process's. Returns how many there are. */
static uint32_t find_boots(struct tmk_process *processes, uint32_t n, struct boot_clock *boots,
                           uint32_t *boot_of)
{
    uint32_t n_boots = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tmk_process *p = &processes[i];
        const char *id = boot_id_of(p);
        uint32_t k = 0;
        while (k < n_boots && strcmp(boots[k].id, id) != 0)
            k++;
        boot_of[i] = k;
        if (k == n_boots)
            boots[n_boots++] = (struct boot_clock){.id = id};
        add_to_boot(&boots[k], p);
    }
    return n_boots;
}

/* ---- steps ---- */

/* List when the last steps began, in real time; each step once. Returns how many. */
static uint32_t list_starts(const struct boot_clock *b, struct start_pair *ret)
{
    const struct tmk_reader *r = b->longest->reader;
    uint32_t n = 0;
    for (uint64_t i = tmk_reader_n_step_rows(r); i > 0 && n < MOST_STEPS; i--) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i - 1);
        if (row->step == TMK_NO_STEP || (n > 0 && ret[n - 1].step == row->step))
            continue;
        ret[n++] = (struct start_pair){row->step,
                                       process_start_ns(b->longest, b) + sane_ns(row->start_ns)};
    }
    return n;
}

static int by_step_number(const void *va, const void *vb)
{
    const struct start_pair *a = va, *b = vb;
    return (a->step > b->step) - (a->step < b->step);
}

static int compare_clock_values(const void *va, const void *vb)
{
    const int64_t *a = va, *b = vb;
    return (*a > *b) - (*a < *b);
}

/* Write by how much each step that both have began later in `b`. Returns how many they share. */
static uint32_t list_differences(struct start_pair *a, uint32_t n_a, struct start_pair *b,
                                 uint32_t n_b, int64_t *ret)
{
    uint32_t n = 0;
    qsort(a, n_a, sizeof *a, by_step_number);
    qsort(b, n_b, sizeof *b, by_step_number);
    for (uint32_t i = 0, k = 0; i < n_a && k < n_b;) {
        if (a[i].step == b[k].step)
            ret[n++] = b[k].start_ns - a[i].start_ns;
        bool is_behind = a[i].step <= b[k].step;
        k += b[k].step <= a[i].step;
        i += is_behind;
    }
    return n;
}

static int64_t absolute_ns(int64_t ns)
{
    return ns < 0 ? -ns : ns;
}

/* Judge the differences, and move `b` if its clock is clearly apart. */
static void match_boot(struct boot_clock *b, int64_t *differences, uint32_t n,
                       struct tmk_clock_match *match)
{
    if (n < LEAST_STEPS)
        return;
    qsort(differences, n, sizeof *differences, compare_clock_values);
    int64_t median = differences[n / 2];
    for (uint32_t i = 0; i < n; i++)
        differences[i] = absolute_ns(differences[i] - median);
    qsort(differences, n, sizeof *differences, compare_clock_values);
    int64_t spread = differences[(uint64_t)n * 9 / 10], apart = absolute_ns(median);
    bool moves = apart > SLACK_NS && apart < MOST_APART_NS && apart / CLEARLY_APART > spread;
    b->moved_ns = moves ? -median : 0;
    uint64_t within = (uint64_t)(moves ? spread : apart + spread);
    match->within_ns = within > match->within_ns ? within : match->within_ns;
    match->n_steps = match->n_measured == 0 || n < match->n_steps ? n : match->n_steps;
    match->n_measured++;
    if (moves && (uint64_t)apart > match->moved_ns)
        match->moved_ns = (uint64_t)apart;
}

/* Compare all boots with the first that has steps. */
static int match_boots(struct boot_clock *boots, uint32_t n, struct tmk_clock_match *match)
{
    struct start_pair *a = malloc(2 * MOST_STEPS * sizeof *a);
    int64_t *differences = malloc(MOST_STEPS * sizeof *differences);
    uint32_t first = 0;
    while (first < n && !boots[first].longest)
        first++;
    for (uint32_t i = first + 1; a && differences && i < n; i++) {
        if (!boots[i].longest)
            continue;
        uint32_t n_a = list_starts(&boots[first], a);
        uint32_t n_b = list_starts(&boots[i], a + MOST_STEPS);
        uint32_t n_both = list_differences(a, n_a, a + MOST_STEPS, n_b, differences);
        match_boot(&boots[i], differences, n_both, match);
    }
    int rc = a && differences ? 0 : TMK_ENOMEM;
    free(a);
    free(differences);
    match->n_measured += match->n_measured > 0; /* the one that the others were compared with */
    return rc;
}

/* ---- offsets ---- */

static void set_run_offsets(struct tmk_process *processes, uint32_t n,
                            const struct boot_clock *boots, const uint32_t *boot_of)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        int64_t start = process_start_ns(&processes[i], &boots[boot_of[i]]);
        first = start < first ? start : first;
    }
    for (uint32_t i = 0; i < n; i++)
        processes[i].offset_ns =
            (uint64_t)(process_start_ns(&processes[i], &boots[boot_of[i]]) - first);
}

int tmk_run_clock_match(struct tmk_process *processes, uint32_t n, struct tmk_clock_match *ret)
{
    struct boot_clock *boots = calloc((size_t)n + 1, sizeof *boots);
    uint32_t *boot_of = calloc((size_t)n + 1, sizeof *boot_of);
    int rc = boots && boot_of ? 0 : TMK_ENOMEM;
    *ret = (struct tmk_clock_match){0};
    if (rc == 0) {
        ret->n_hosts = find_boots(processes, n, boots, boot_of);
        rc = match_boots(boots, ret->n_hosts, ret);
    }
    if (rc == 0)
        set_run_offsets(processes, n, boots, boot_of);
    free(boots);
    free(boot_of);
    return rc;
}
