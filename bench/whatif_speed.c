/* SPDX-License-Identifier: MIT */
/* whatif_speed.c - how fast recorded allocations go through the model of torch's allocator.
 *
 *     whatif_speed RUN [--repeat N]      one JSON object; --repeat: best of N (3)
 *
 * The trace is swept once; each setting is then replayed from memory. Allocations and frees a
 * second of CPU time, one thread; what came out is printed too, so that two runs can be compared.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "model/alloc_conf.h"
#include "model/run.h"
#include "passes/whatif/whatif.h"
#include "trace/reader.h"
#include "trace/replay.h"

static const struct {
    const char *name, *conf;
} settings[] = {
    {"default", ""},
    {"expandable", "expandable_segments:True"},
    {"max_split", "max_split_size_mb:128"},
    {"roundup", "roundup_power2_divisions:8"},
};

static int complain(int rc, const struct tmk_error *err)
{
    fprintf(stderr, "whatif_speed: %s\n", err->text[0] ? err->text : tmk_result_text(rc));
    return 1;
}

static int sweep(struct tmk_process *p, uint16_t device, struct tmk_whatif **ret,
                 struct tmk_error *err)
{
    struct tmk_replay rp;
    int rc = tmk_whatif_open(p, device, ret);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitor = tmk_whatif_visitor(*ret);
    rc = tmk_process_sweep(p, &visitor, 1, &rp, err);
    if (rc < 0)
        return rc;
    rc = tmk_whatif_finish(*ret, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}

static int measure(const struct tmk_whatif *w, const char *conf, long n_repeats, uint64_t *ret_ns,
                   struct tmk_whatif_result *ret, struct tmk_error *err)
{
    struct tmk_whatif_setting setting = {.limit_bytes = TMK_ALLOC_NO_BOUND};
    int rc = tmk_alloc_conf_parse(conf, &setting.conf, err);
    *ret_ns = UINT64_MAX;
    for (long i = 0; i < n_repeats && rc == 0; i++) {
        uint64_t start = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        rc = tmk_whatif_replay(w, &setting, ret, err);
        uint64_t ns = tmk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
        if (ns < *ret_ns)
            *ret_ns = ns;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct tmk_error err = {0};
    struct tmk_run *run = NULL;
    struct tmk_whatif *w = NULL;
    long n_repeats = argc > 3 && strcmp(argv[2], "--repeat") == 0 ? atol(argv[3]) : 3;
    if (argc < 2 || n_repeats < 1) {
        fputs("usage: whatif_speed RUN [--repeat N]\n", stderr);
        return 2;
    }
    int rc = tmk_run_open(argv[1], &run, &err);
    if (rc < 0)
        return complain(rc, &err);
    struct tmk_process *p = tmk_run_process(run, 0);
    uint16_t device =
        tmk_reader_n_step_rows(p->reader) ? tmk_reader_step_row(p->reader, 0)->device : 0;
    rc = sweep(p, device, &w, &err);
    if (rc < 0)
        return complain(rc, &err);
    uint64_t n = tmk_whatif_recorded(w)->n_events;
    printf("{\"events\": %" PRIu64, n);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        struct tmk_whatif_result result;
        uint64_t ns;
        rc = measure(w, settings[i].conf, n_repeats, &ns, &result, &err);
        if (rc < 0)
            return complain(rc, &err);
        printf(", \"%s_events_per_s\": %.0f, \"%s_peak_reserved\": %" PRIu64, settings[i].name,
               (double)n / ((double)ns / 1e9), settings[i].name, result.peak_reserved_bytes);
    }
    puts("}");
    tmk_whatif_close(w);
    tmk_run_close(run);
    return 0;
}
