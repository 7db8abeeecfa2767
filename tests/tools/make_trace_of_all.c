/* SPDX-License-Identifier: MIT */
/* tests/tools/make_trace_of_all.c - a trace with records of every kind, at random.
 *
 *     make_trace_of_all TRACE SEED RECORDS [MAX_SIZE] */
#include <stdio.h>
#include <stdlib.h>

#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/state.h"
#include "trace/writer.h"
#include "trace_kit.h"

static int fail(const char *what)
{
    fprintf(stderr, "make_trace_of_all: %s\n", what);
    return 1;
}

static int fill(struct tmk_packer *packer, struct kit_source *source, uint64_t n)
{
    int rc = 0;
    for (uint64_t i = 0; i < n && rc >= 0; i++) {
        struct tmk_input in;
        kit_source_next(source, &in);
        rc = tmk_packer_add(packer, &in);
        if (rc > 0)
            rc = tmk_packer_flush(packer);
    }
    return rc < 0 ? rc : tmk_packer_finish(packer);
}

int main(int n_arguments, char **arguments)
{
    static const uint8_t trace_id[16] = {4, 2};
    static struct kit_source source;
    struct tmk_writer writer;
    struct tmk_packer *packer = NULL;
    struct tmk_packer_options options = {
        .limits = tmk_state_limits_recorder, .max_events = 900, .checkpoint_bytes = 40000};
    if (n_arguments != 4 && n_arguments != 5)
        return fail("usage: make_trace_of_all TRACE SEED RECORDS [MAX_SIZE]");
    uint64_t max_size = n_arguments == 5 ? strtoull(arguments[4], NULL, 10) : 0;
    if (tmk_writer_create(&writer, arguments[1], trace_id, "pid=7\n", max_size, NULL) < 0)
        return fail("cannot make the file");
    struct tmk_chunk_out out = tmk_writer_out(&writer);
    if (tmk_packer_open(&options, &out, &packer) < 0)
        return fail("no memory");
    kit_source_init(&source, strtoull(arguments[2], NULL, 10));
    if (fill(packer, &source, strtoull(arguments[3], NULL, 10)) < 0)
        return fail("cannot write");
    writer.status.state = TMK_STATE_CLOSED;
    if (tmk_writer_put_status(&writer, tmk_packer_state(packer)) < 0)
        return fail("cannot write the status");
    tmk_packer_close(packer);
    tmk_writer_close(&writer);
    return 0;
}
