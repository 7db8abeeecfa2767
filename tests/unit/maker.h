/* SPDX-License-Identifier: MIT */
/* maker.h - small traces made by hand, for tests of what reads them.
 *
 * Events go through the real packer and writer into a file of a temporary run folder; the clock is
 * the test's. The same calls feed a plain model (all events in an array), against which a test
 * compares what the passes found out. */
#ifndef TMK_TESTS_MAKER_H
#define TMK_TESTS_MAKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "model/run.h"
#include "passes/peak.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"
#include "trace/replay.h"
#include "trace/state.h"
#include "trace/writer.h"

struct maker {
    char folder[64], path[128];
    struct tmk_writer writer;
    struct tmk_packer *packer;
    uint64_t ns;
    uint32_t thread;
};

/* Begin a trace with this text in its header: `name`.trace in a folder that is there. */
static inline void maker_open_as(struct maker *m, const char *folder, const char *name,
                                 const char *info, uint64_t max_size)
{
    static const uint8_t id[16] = {1, 2, 3};
    *m = (struct maker){.thread = 1};
    snprintf(m->folder, sizeof m->folder, "%s", folder);
    snprintf(m->path, sizeof m->path, "%s/%s.trace", folder, name);
    assert_int_equal(tmk_writer_create(&m->writer, m->path, id, info, max_size, NULL), 0);
    struct tmk_packer_options options =
        tmk_packer_options_for(max_size, &tmk_state_limits_recorder);
    struct tmk_chunk_out out = tmk_writer_out(&m->writer);
    assert_int_equal(tmk_packer_open(&options, &out, &m->packer), 0);
}

static inline void maker_open(struct maker *m, uint64_t max_size)
{
    char folder[] = "/tmp/tidemark-test.XXXXXX";
    assert_non_null(mkdtemp(folder));
    maker_open_as(m, folder, "test.r0.42.x",
                  "host=test\npid=42\nrank=0\nexe=/usr/bin/python3.11\n"
                  "command=made by hand\n"
                  "start_realtime_ns=1700000000000000000\n",
                  max_size);
}

static inline void maker_flush(struct maker *m)
{
    assert_int_equal(tmk_packer_flush(m->packer), 0);
    assert_int_equal(tmk_writer_put_status(&m->writer, tmk_packer_state(m->packer)), 0);
}

static inline void maker_add(struct maker *m, struct tmk_input in)
{
    in.ns = m->ns;
    in.thread = m->thread;
    int rc = tmk_packer_add(m->packer, &in);
    assert_true(rc >= 0);
    if (rc == 1)
        maker_flush(m);
}

static inline void maker_string(struct maker *m, uint32_t id, const char *text)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_STRING,
                                    .id = id,
                                    .text = (const uint8_t *)text,
                                    .text_bytes = (uint32_t)strlen(text)});
}

static inline void maker_frame(struct maker *m, uint32_t id, uint32_t file, uint32_t function,
                               uint32_t line)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_FRAME,
                                    .id = id,
                                    .a = (uint64_t)file << 32 | function,
                                    .b = line});
}

static inline void maker_stack(struct maker *m, uint32_t id, const uint32_t *frames, uint32_t n)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEF_STACK,
                                    .id = id,
                                    .text = (const uint8_t *)frames,
                                    .text_bytes = n * (uint32_t)sizeof *frames});
}

static inline void maker_alloc(struct maker *m, unsigned device, uint64_t address, uint64_t size,
                               uint32_t stack)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_ALLOC,
                                    .device = (uint16_t)device,
                                    .a = address,
                                    .b = size,
                                    .id = stack});
}

static inline void maker_free(struct maker *m, unsigned device, uint64_t address)
{
    maker_add(m,
              (struct tmk_input){.kind = TMK_KIND_FREE, .device = (uint16_t)device, .a = address});
}

static inline void maker_tag(struct maker *m, unsigned device, uint64_t address, unsigned category,
                             uint32_t name)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_TAG,
                                    .device = (uint16_t)device,
                                    .a = address,
                                    .b = category,
                                    .id = name});
}

static inline void maker_push(struct maker *m, unsigned kind, uint32_t name)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_PUSH, .a = kind, .id = name});
}

static inline void maker_pop(struct maker *m, unsigned kind)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_POP, .a = kind});
}

static inline void maker_step(struct maker *m, int64_t step)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_STEP, .a = (uint64_t)step});
}

static inline void maker_mark(struct maker *m, uint32_t name, const char *text)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_MARK,
                                    .id = name,
                                    .text = (const uint8_t *)text,
                                    .text_bytes = (uint32_t)strlen(text)});
}

static inline void maker_oom(struct maker *m, unsigned device, uint64_t requested,
                             uint64_t capacity, uint32_t stack)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_OOM,
                                    .device = (uint16_t)device,
                                    .a = requested,
                                    .b = capacity,
                                    .id = stack});
}

/* The driver's, not the framework's. */
static inline void maker_driver_oom(struct maker *m, unsigned device, uint64_t requested,
                                    uint32_t stack)
{
    maker_oom(m, device | TMK_OOM_OF_DRIVER, requested, 0, stack);
}

static inline void maker_reserved(struct maker *m, unsigned device, uint64_t bytes)
{
    maker_add(
        m, (struct tmk_input){.kind = TMK_KIND_RESERVED, .device = (uint16_t)device, .a = bytes});
}

static inline void maker_device_end(struct maker *m, unsigned device)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_DEVICE_END, .device = (uint16_t)device});
}

/* UINT64_MAX: not known. */
static inline void maker_sample(struct maker *m, unsigned device, uint64_t total, uint64_t used,
                                uint64_t own, uint64_t others)
{
    struct tmk_sample_body body = {
        .used_bytes = used, .total_bytes = total, .own_bytes = own, .others_bytes = others};
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_SAMPLE,
                                    .id = device,
                                    .text = (const uint8_t *)&body,
                                    .text_bytes = sizeof body});
}

/* End the trace as a process does that exits; or, not closed, as one that was killed. */
/* What Python says of a block's tensor; address 0 ends the inquiry. */
static inline void maker_holder(struct maker *m, unsigned device, uint64_t address, uint64_t flags,
                                uint32_t text)
{
    maker_add(m, (struct tmk_input){.kind = TMK_KIND_HOLDER,
                                    .device = (uint16_t)device,
                                    .a = address,
                                    .b = flags,
                                    .id = text});
}

static inline void maker_end(struct maker *m, bool is_closed)
{
    maker_flush(m);
    assert_int_equal(tmk_packer_finish(m->packer), 0);
    m->writer.status.state = is_closed ? TMK_STATE_CLOSED : TMK_STATE_OPEN;
    assert_int_equal(tmk_writer_put_status(&m->writer, tmk_packer_state(m->packer)), 0);
    m->packer = tmk_packer_close(m->packer);
    tmk_writer_close(&m->writer);
}

/* End the trace as a process does that exits, and open the run. */
static inline struct tmk_run *maker_finish(struct maker *m)
{
    struct tmk_run *run = NULL;
    struct tmk_error err = {0};
    maker_end(m, true);
    if (tmk_run_open(m->folder, &run, &err) < 0)
        fail_msg("%s", err.text);
    return run;
}

static inline void maker_remove(struct maker *m)
{
    unlink(m->path);
    rmdir(m->folder);
}

/* ---- the plain model: blocks with their times, nothing clever ---- */

struct plain_block {
    uint64_t address, size, born_ns, died_ns; /* died_ns UINT64_MAX: alive at the end */
    uint64_t born_at, died_at;                /* numbers of the events */
    unsigned device;
};

enum { PLAIN_MAX = 1 << 19 };

struct plain {
    struct plain_block *blocks;
    uint32_t n;
    uint64_t n_events; /* allocations and frees so far, from 1 */
    uint64_t *event_ns;
    int64_t *event_step;
    int64_t step;
};

static inline void plain_init(struct plain *p)
{
    *p = (struct plain){.step = TMK_NO_STEP};
    p->blocks = calloc(PLAIN_MAX, sizeof *p->blocks);
    p->event_ns = calloc(2 * PLAIN_MAX, sizeof *p->event_ns);
    p->event_step = calloc(2 * PLAIN_MAX, sizeof *p->event_step);
    assert_non_null(p->blocks);
    assert_non_null(p->event_ns);
    assert_non_null(p->event_step);
}

static inline void plain_fini(struct plain *p)
{
    free(p->blocks);
    free(p->event_ns);
    free(p->event_step);
}

static inline uint64_t plain_event(struct plain *p, uint64_t ns)
{
    p->n_events++;
    p->event_ns[p->n_events] = ns;
    p->event_step[p->n_events] = p->step;
    return p->n_events;
}

static inline void plain_alloc(struct plain *p, uint64_t ns, unsigned device, uint64_t address,
                               uint64_t size)
{
    assert_true(p->n < PLAIN_MAX);
    p->blocks[p->n++] = (struct plain_block){.address = address,
                                             .size = size,
                                             .born_ns = ns,
                                             .died_ns = UINT64_MAX,
                                             .born_at = plain_event(p, ns),
                                             .died_at = UINT64_MAX,
                                             .device = device};
}

static inline void plain_free(struct plain *p, uint64_t ns, struct plain_block *b)
{
    b->died_ns = ns;
    b->died_at = plain_event(p, ns);
}

/* Bytes on a device after event number `at`. */
static inline uint64_t plain_bytes(const struct plain *p, unsigned device, uint64_t at)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->blocks[i].device == device && p->blocks[i].born_at <= at &&
            p->blocks[i].died_at > at)
            bytes += p->blocks[i].size;
    return bytes;
}

/* A small, repeatable generator. */
static inline uint32_t plain_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* What was alive at a moment of the run's first process; the caller's. */
static inline struct tmk_peak *maker_peak(struct tmk_run *run, struct tmk_moment moment)
{
    struct tmk_process *p = tmk_run_process(run, 0);
    struct tmk_peak *k = NULL;
    struct tmk_replay rp;
    assert_int_equal(tmk_peak_open(p, &moment, &k), 0);
    struct tmk_visitor visitor = tmk_peak_visitor(k);
    assert_int_equal(tmk_process_sweep(p, &visitor, 1, &rp, NULL), 0);
    assert_int_equal(tmk_peak_finish(k, &rp, NULL), 0);
    tmk_replay_fini(&rp);
    return k;
}

#endif
