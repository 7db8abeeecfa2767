/* SPDX-License-Identifier: MIT */
/* tests/tools/trace_totals.c - a trace's totals and its per-step history, as one line of JSON.
 *
 *     trace_totals TRACE
 *
 * Totals twice: as the status has them, and as a replay from the oldest checkpoint ends. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "trace/layout.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/replay.h"
#include "trace/state.h"

static void print_steps(const struct tmk_reader *r)
{
    for (uint64_t i = 0; i < tmk_reader_n_step_rows(r); i++) {
        const struct tmk_step_row *row = tmk_reader_step_row(r, i);
        printf("%s{\"step\":", i ? "," : "");
        if (row->step == TMK_NO_STEP)
            printf("null");
        else
            printf("%" PRId64, row->step);
        printf(",\"device\":%u,\"peak_bytes\":%" PRIu64 ",\"end_bytes\":%" PRIu64
               ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64 "}",
               row->device, row->peak_bytes, row->end_bytes, row->n_allocs, row->n_frees);
    }
}

int main(int n_arguments, char **arguments)
{
    struct tmk_reader *r = NULL;
    struct tmk_error err = {0};
    struct tmk_replay rp;
    struct tmk_visitor nobody = {0};
    if (n_arguments != 2 || tmk_merge_open(arguments[1], &r, NULL, &err) < 0 ||
        tmk_replay_init(&rp, &tmk_state_limits_tool) < 0 ||
        tmk_replay_run(&rp, r, &nobody, &err) < 0) {
        fprintf(stderr, "trace_totals: %s\n", err.text);
        return 3;
    }
    const struct tmk_status *status = tmk_reader_status(r);
    uint64_t peak_bytes = rp.state.n_devices ? rp.state.devices[0].max_bytes : 0;
    printf("{\"events\":%" PRIu64 ",\"allocations\":%" PRIu64 ",\"frees\":%" PRIu64
           ",\"status_allocations\":%" PRIu64 ",\"status_frees\":%" PRIu64 ",\"dropped\":%" PRIu64
           ",\"given_up\":%" PRIu64 ",\"peak_bytes\":%" PRIu64 ",\"steps\":[",
           rp.state.n_events, rp.state.n_allocs, rp.state.n_frees, status->n_allocs,
           status->n_frees, status->n_dropped, status->n_given_up, peak_bytes);
    print_steps(r);
    printf("]}\n");
    tmk_replay_fini(&rp);
    tmk_reader_close(r);
    return 0;
}
