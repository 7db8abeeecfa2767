/* SPDX-License-Identifier: MIT */
/* trace/packer.h - turns records in time order into chunks.
 *
 * Records go in one by one; when enough have come, or flush is called, they leave as chunks through
 * a `tmk_chunk_out`: definitions, then events, then finished step rows, and now and then a
 * checkpoint. Inside the watched process the packer thread feeds it from the ring and the out is
 * the trace file; the merger of a dead process's ring and the generator of the benchmark use it
 * alike.
 *
 * Each events chunk carries its own dictionaries of addresses and of (size, stack, stream,
 * requested) shapes,
 * and the context it starts in, so that it can be read without the chunks before it. */
#ifndef TMK_TRACE_PACKER_H
#define TMK_TRACE_PACKER_H

#include <stddef.h>
#include <stdint.h>

#include "trace/layout.h"
#include "trace/state.h"

/* One record, out of the ring or made up. Fields by kind:
 *
 *   ALLOC       device, a = address, b = size, id = stack, stream, requested
 *   FREE        device, a = address
 *   TAG         device, a = address, b = category, id = name
 *   PUSH        a = range kind, id = name
 *   POP         a = range kind
 *   STEP        a = step
 *   MARK        id = event name, text = info
 *   OOM         device, a = requested, b = capacity, id = stack, requested = free bytes of the
 *               device + 1 (0: not known)
 *   DROP        a = events lost
 *   RESERVED    device, a = bytes
 *   DEVICE_END  device
 *   SEGMENT     device, stream = kind, a = address, b = size, id = stack
 *   SEGMENT_END device, stream = kind, a = address
 *   HELD        device, a = address, b = size
 *   RELEASED    device, a = address
 *   SAMPLE      id = device, text = tmk_sample_body
 *   DEF_STRING  id, text
 *   DEF_FRAME   id, a = file << 32 | function, b = line
 *   DEF_STACK   id, text = u32 frame ids
 *   DEF_THREAD  id, a = the system's thread id, text = name
 *   DEF_CODE    id, a = file << 32 | function, b = layout << 32 | first line
 *   DEF_LINES   id = code, a = offset, text = bytes
 *   DEF_CODE_FRAME    id, a = code, b = offset
 *   DEF_MODULE  id, a = length of the build id, text = build id, then path
 *   DEF_NATIVE_FRAME  id, a = module, b = address
 *   DEF_STREAM  id, device, a = handle
 *   DEF_TORCH_MODULE  id = name, a = class
 *   DEF_PARAMETER     id, a = flags << 16 | device, text = tmk_parameter_head, dtype, shape */
struct tmk_input {
    uint64_t ns;
    uint64_t a;
    uint64_t b;
    uint64_t requested; /* bytes asked for, of which b was made; 0: not known */
    const uint8_t *text;
    uint32_t text_bytes;
    uint32_t id;
    uint32_t thread;
    uint16_t device;
    uint16_t stream;
    uint8_t kind;
};

/* The place where chunks go. reserve makes room for a payload and returns the number that the chunk
 * will have; append fills in number and CRCs and writes the chunk. Both return 0 or TMK_E*; after a
 * failure nothing more is appended. */
struct tmk_chunk_out {
    int (*reserve)(void *arg, size_t payload_bytes, uint64_t *ret_seq);
    int (*append)(void *arg, struct tmk_chunk_header *header, const uint8_t *payload);
    void *arg;
};

struct tmk_packer_options {
    struct tmk_state_limits limits;
    uint32_t max_events;       /* of a chunk */
    uint64_t checkpoint_bytes; /* a checkpoint after so many bytes of chunks; 0: never */
    uint64_t max_size_bytes;   /* of the file that chunks go to; 0: unbounded */
};

struct tmk_packer;

/* The bounds of a chunk for a trace that may take max_size bytes (0: unbounded). */
struct tmk_packer_options tmk_packer_options_for(uint64_t max_size_bytes,
                                                 const struct tmk_state_limits *limits);

/* Make a packer in memory that it maps itself, without malloc. */
int tmk_packer_open(const struct tmk_packer_options *options, const struct tmk_chunk_out *out,
                    struct tmk_packer **ret_packer);
struct tmk_packer *tmk_packer_close(struct tmk_packer *p);

/* Call `commit` before each flush's decisive append with the number of the chunk that will have the
 * records added so far: the ring notes it as "done". */
void tmk_packer_on_commit(struct tmk_packer *p, void (*commit)(void *arg, uint64_t seq), void *arg);

/* Add one record. A time before the previous record's is raised to it. Returns 0, 1 when the chunk
 * is full and flush is due (adding more is an error), or TMK_E*. */
int tmk_packer_add(struct tmk_packer *p, const struct tmk_input *in);

/* Write all records added so far. Returns 0 or the out's error. */
int tmk_packer_flush(struct tmk_packer *p);

/* Write the open step's rows, so that the history is whole; for the end of a trace. */
int tmk_packer_finish(struct tmk_packer *p);

/* The state after all records added. To restore a packer, fill this before the first add; rows up
 * to `state->n_step_rows` at that time are taken as written already. */
struct tmk_state *tmk_packer_state(struct tmk_packer *p);

/* Bound the file to max_size_bytes from now on: checkpoints come as often as that needs, the next
 * one with the next flush. */
void tmk_packer_bound(struct tmk_packer *p, uint64_t max_size_bytes);

/* Skip step rows with an ordinal up to this one: they are in the file already. */
void tmk_packer_skip_rows(struct tmk_packer *p, uint64_t ordinal);

/* Count n_bytes of permanent chunks that the file has already: a checkpoint must fit beside them.
 */
void tmk_packer_count_permanent(struct tmk_packer *p, uint64_t n_bytes);

#endif
