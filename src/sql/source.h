/* SPDX-License-Identifier: MIT */
/* sql/source.h - one process of the run, as the tables read it.
 *
 * It has what can be known without reading events: which chunks count and where one is missing,
 * the numbers of texts in the pool, when each step began and whether step numbers only rise. The
 * last comes from the per-step history, and from events only where the history has a hole. */
#ifndef TMK_SQL_SOURCE_H
#define TMK_SQL_SOURCE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "model/run.h"
#include "sql/textpool.h"
#include "trace/state.h"

struct tmk_source_chunk {
    const struct tmk_chunk_header *header;
    uint32_t index; /* for tmk_reader_payload() */
    bool after_gap; /* a chunk of the trace is missing before it */
};

struct tmk_step_start {
    uint64_t start_ns; /* trace time */
    int64_t step;
};

struct tmk_source {
    struct tmk_process *p;
    uint32_t index; /* of the process in the run */
    struct tmk_textpool *pool;
    const volatile sig_atomic_t *stop; /* set: end with an error; NULL: there is none */

    struct tmk_source_chunk *chunks; /* events, in order */
    uint32_t n_chunks;

    uint32_t *text_ids; /* by string id: number in the pool + 1; 0: not looked up yet */
    uint8_t *stages;    /* by string id: enum tmk_stage + 1; 0: not looked up yet */
    uint32_t n_strings;
    uint32_t *device_ids; /* by device: number in the pool */
    uint32_t category_ids[256];
    uint32_t *component_ids; /* by string id, of a module's name: number in the pool + 1 */

    bool steps_read, steps_known;        /* known: `steps` has every step of the process */
    bool steps_in_order, steps_distinct; /* numbers never fall; each comes once */
    struct tmk_step_start *steps;
    uint64_t n_steps, step_room;

    bool device_read, has_device;
    uint16_t main_device;
    uint16_t devices[TMK_MAX_DEVICES]; /* accelerators that ever had bytes, or the main device */
    uint32_t n_devices;
};

/* Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_source_init(struct tmk_source *s, struct tmk_process *p, uint32_t index,
                    struct tmk_textpool *pool);
void tmk_source_fini(struct tmk_source *s);

/* The number in the pool of a string of the trace; 0 when the trace has no such string. */
uint32_t tmk_source_text_slow(struct tmk_source *s, uint32_t string);
static inline uint32_t tmk_source_text(struct tmk_source *s, uint32_t string)
{
    if (string < s->n_strings && s->text_ids[string])
        return s->text_ids[string] - 1;
    return tmk_source_text_slow(s, string);
}

enum tmk_stage tmk_source_stage_slow(struct tmk_source *s, uint32_t string);
static inline enum tmk_stage tmk_source_stage(struct tmk_source *s, uint32_t string)
{
    if (string < s->n_strings && s->stages[string])
        return (enum tmk_stage)(s->stages[string] - 1);
    return tmk_source_stage_slow(s, string);
}

/* The numbers in the pool of "cuda:0", "parameter" and so on. */
uint32_t tmk_source_device(struct tmk_source *s, uint16_t device);
uint32_t tmk_source_category(struct tmk_source *s, uint8_t category);
/* The component of the module with that name. */
uint32_t tmk_source_component(struct tmk_source *s, uint32_t name);

/* The operating system's number of a thread of the trace; TMK_NULL_INT when not known. */
int64_t tmk_source_thread(const struct tmk_source *s, uint32_t thread);

/* The process's number and rank; TMK_NULL_INT when not known, or when it has no rank. */
int64_t tmk_source_pid(const struct tmk_source *s);
int64_t tmk_source_rank(const struct tmk_source *s);

/* Convert trace time to run time. */
static inline int64_t tmk_source_time(const struct tmk_source *s, uint64_t ns)
{
    return (int64_t)((ns + s->p->offset_ns) & INT64_MAX);
}

/* Make an id of an allocation or a stack unique in the run: the first process's ids are those of
 * its trace. TMK_NULL_INT for 0. */
int64_t tmk_source_id(const struct tmk_source *s, uint64_t id);

/* Look up when steps began. Returns 0, TMK_ENOMEM or TMK_EIO. */
int tmk_source_read_steps(struct tmk_source *s, struct tmk_error *err);
/* The number, from 0, of the step that began then; TMK_NULL_INT when not known. */
int64_t tmk_source_local_step(const struct tmk_source *s, uint64_t start_ns, int64_t step);

/* Find main_device: the accelerator that ever had the most bytes, else the host; and `devices`, by
 * number. */
int tmk_source_read_device(struct tmk_source *s, struct tmk_error *err);

#endif
