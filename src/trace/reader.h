/* SPDX-License-Identifier: MIT */
/* trace/reader.h - open a trace file: its header, its chunks in order, its definitions.
 *
 * The file may be half-written (the job crashed), still growing, or hostile (it was mailed to us):
 * every offset is range-checked, every checksum verified before use, and what can be read is read.
 * Reading is by pread, never by mapping: a file that shrinks under us is an error, not SIGBUS.
 *
 * Opening reads chunk headers and definitions; events are read when asked for. */
#ifndef TMK_TRACE_READER_H
#define TMK_TRACE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/error.h"
#include "trace/defs.h"
#include "trace/layout.h"
#include "trace/state.h"

struct tmk_reader;

struct tmk_chunk_ref {
    struct tmk_chunk_header header;
    uint64_t offset;       /* of the header in the file */
    const uint8_t *memory; /* payload of a chunk that is in memory, else NULL */
};

/* What was wrong with the file. All zero: nothing. */
struct tmk_damage {
    uint64_t n_bytes;  /* that belong to no valid chunk */
    uint32_t n_places; /* runs of such bytes */
    uint64_t first_offset;
    uint32_t n_chunks; /* whose payload's checksum or content is wrong */
    bool status_lost;  /* both status slots unreadable */
    bool info_lost;    /* the header's text unreadable */
};

/* 0: *ret_reader is the caller's. <0: untouched, *err says why. */
int tmk_reader_open(const char *path, struct tmk_reader **ret_reader, struct tmk_error *err);
/* Takes NULL. Returns NULL. */
struct tmk_reader *tmk_reader_close(struct tmk_reader *r);

/* Another descriptor of the file that was read. TMK_EIO when its path leads to another one now. */
int tmk_reader_open_again(const struct tmk_reader *r, int flags, int *ret_fd,
                          struct tmk_error *err);

const char *tmk_reader_path(const struct tmk_reader *r);
const uint8_t *tmk_reader_trace_id(const struct tmk_reader *r);
/* Value of a key of the header's text, NULL when absent. Borrowed until close. */
const char *tmk_reader_info(const struct tmk_reader *r, const char *key);
/* The same as a number; false when absent or not one. */
bool tmk_reader_info_u64(const struct tmk_reader *r, const char *key, uint64_t *ret);
const struct tmk_status *tmk_reader_status(const struct tmk_reader *r);
const struct tmk_damage *tmk_reader_damage(const struct tmk_reader *r);
/* Offset at which chunks begin: the header's size, or when that was lost the first one found. */
uint64_t tmk_reader_first(const struct tmk_reader *r);
/* Offset just after the last chunk in the file. */
uint64_t tmk_reader_end(const struct tmk_reader *r);
uint64_t tmk_reader_file_bytes(const struct tmk_reader *r);

/* Chunks by sequence number. */
uint32_t tmk_reader_n_chunks(const struct tmk_reader *r);
const struct tmk_chunk_ref *tmk_reader_chunk(const struct tmk_reader *r, uint32_t i);
/* Payload of chunk i, checksum verified; good until the next call. TMK_EDAMAGED counts it. */
int tmk_reader_payload(struct tmk_reader *r, uint32_t i, struct tmk_view *ret,
                       struct tmk_error *err);
/* Whether chunk i's payload is not the one that its header tells of. Not counted as damage. */
bool tmk_reader_is_torn(struct tmk_reader *r, uint32_t i);
/* True when a living process has given chunk i up since the trace was opened: that its payload
 * cannot be read is no damage then. */
bool tmk_reader_is_gone(struct tmk_reader *r, uint32_t i);

/* Definitions; NULL or false for an id that has none. Texts end in a zero byte and may hold any
 * other byte; borrowed until close. */
const char *tmk_reader_string(const struct tmk_reader *r, uint32_t id);
bool tmk_reader_frame(const struct tmk_reader *r, uint32_t id, struct tmk_frame *ret);
/* The module and address of a native frame; false for any other. */
bool tmk_reader_native(const struct tmk_reader *r, uint32_t frame, struct tmk_native *ret);
bool tmk_reader_stack(const struct tmk_reader *r, uint32_t id, struct tmk_stack *ret);
bool tmk_reader_thread(const struct tmk_reader *r, uint32_t id, struct tmk_thread_info *ret);
bool tmk_reader_stream(const struct tmk_reader *r, uint32_t id, struct tmk_stream *ret);
bool tmk_reader_parameter(const struct tmk_reader *r, uint32_t id, struct tmk_parameter *ret);
/* The class of the torch module whose name is that string. */
const char *tmk_reader_class(const struct tmk_reader *r, uint32_t name);
/* Ids in use are below these. */
uint32_t tmk_reader_n_strings(const struct tmk_reader *r);
uint32_t tmk_reader_n_frames(const struct tmk_reader *r);
uint32_t tmk_reader_n_stacks(const struct tmk_reader *r);
uint32_t tmk_reader_n_threads(const struct tmk_reader *r);
uint32_t tmk_reader_n_parameters(const struct tmk_reader *r);

/* Finished and last step rows, by ordinal, each once. */
uint64_t tmk_reader_n_step_rows(const struct tmk_reader *r);
const struct tmk_step_row *tmk_reader_step_row(const struct tmk_reader *r, uint64_t i);

/* Add chunks that were packed into memory from a ring; `bytes` is chunks as in a file and becomes
 * the reader's (malloc). Chunks of the file after `last_seq` are left out, and one that the file
 * ends in the middle of is no damage any more: the ring has its events. */
int tmk_reader_attach(struct tmk_reader *r, uint8_t *bytes, size_t n, uint64_t last_seq,
                      struct tmk_error *err);
/* The status as it would be if these chunks were in the file. */
void tmk_reader_set_status(struct tmk_reader *r, const struct tmk_status *status);

#endif
