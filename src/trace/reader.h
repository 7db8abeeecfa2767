/* SPDX-License-Identifier: MIT */
/* trace/reader.h - opens a trace file: its header, its chunks in order, its definitions.
 *
 * The file may be half-written (the job crashed), still growing, or hostile (it came by mail):
 * every offset is range-checked, every checksum verified before use, and every readable part is
 * read. The reader uses pread and never maps the file: a file that shrinks meanwhile is an error,
 * not SIGBUS.
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

/* The damage found in the file; all zero when there is none. */
struct tmk_damage {
    uint64_t n_bytes;  /* that belong to no valid chunk */
    uint32_t n_places; /* runs of such bytes */
    uint64_t first_offset;
    uint32_t n_chunks; /* with a wrong checksum or content of the payload */
    bool status_lost;  /* both status slots unreadable */
    bool info_lost;    /* the header's text unreadable */
};

/* Open a trace. Returns 0 and *ret_reader, which the caller closes; or <0 with *ret_reader
 * untouched and the reason in *err. */
int tmk_reader_open(const char *path, struct tmk_reader **ret_reader, struct tmk_error *err);
/* Close a reader; NULL is accepted. Returns NULL. */
struct tmk_reader *tmk_reader_close(struct tmk_reader *r);

/* Open the file that was read once more. Returns TMK_EIO when its path leads to another file now.
 */
int tmk_reader_open_again(const struct tmk_reader *r, int flags, int *ret_fd,
                          struct tmk_error *err);

const char *tmk_reader_path(const struct tmk_reader *r);
const uint8_t *tmk_reader_trace_id(const struct tmk_reader *r);
/* The value of a key of the header's text, NULL when absent. It is borrowed until close. */
const char *tmk_reader_info(const struct tmk_reader *r, const char *key);
/* The same as a number; false when absent or not one. */
bool tmk_reader_info_u64(const struct tmk_reader *r, const char *key, uint64_t *ret);
const struct tmk_status *tmk_reader_status(const struct tmk_reader *r);
const struct tmk_damage *tmk_reader_damage(const struct tmk_reader *r);
/* The offset of the first chunk: the header's size or, when the header was lost, the first chunk
 * found. */
uint64_t tmk_reader_first(const struct tmk_reader *r);
/* The offset just after the last chunk in the file. */
uint64_t tmk_reader_end(const struct tmk_reader *r);
uint64_t tmk_reader_file_bytes(const struct tmk_reader *r);

/* Chunks are numbered from 0 in the order of their sequence numbers. */
uint32_t tmk_reader_n_chunks(const struct tmk_reader *r);
const struct tmk_chunk_ref *tmk_reader_chunk(const struct tmk_reader *r, uint32_t i);
/* Read the payload of chunk i and verify its checksum; it is good until the next call. TMK_EDAMAGED
 * counts as damage. */
int tmk_reader_payload(struct tmk_reader *r, uint32_t i, struct tmk_view *ret,
                       struct tmk_error *err);
/* Whether chunk i's payload does not match its header. It does not count as damage. */
bool tmk_reader_is_torn(struct tmk_reader *r, uint32_t i);
/* Whether a living process has given chunk i up since the trace was opened: an unreadable payload
 * is no damage then. */
bool tmk_reader_is_gone(struct tmk_reader *r, uint32_t i);

/* Definitions; NULL or false for an id that has none. Texts end in a zero byte and may contain
 * others; they are borrowed until close. */
const char *tmk_reader_string(const struct tmk_reader *r, uint32_t id);
bool tmk_reader_frame(const struct tmk_reader *r, uint32_t id, struct tmk_frame *ret);
/* The module and address of a native frame; false for any other. */
bool tmk_reader_native(const struct tmk_reader *r, uint32_t frame, struct tmk_native *ret);
bool tmk_reader_stack(const struct tmk_reader *r, uint32_t id, struct tmk_stack *ret);
bool tmk_reader_thread(const struct tmk_reader *r, uint32_t id, struct tmk_thread_info *ret);
bool tmk_reader_stream(const struct tmk_reader *r, uint32_t id, struct tmk_stream *ret);
bool tmk_reader_parameter(const struct tmk_reader *r, uint32_t id, struct tmk_parameter *ret);
/* The class of the torch module with that string as its name. */
const char *tmk_reader_class(const struct tmk_reader *r, uint32_t name);
/* Ids in use are below these. */
uint32_t tmk_reader_n_strings(const struct tmk_reader *r);
uint32_t tmk_reader_n_frames(const struct tmk_reader *r);
uint32_t tmk_reader_n_stacks(const struct tmk_reader *r);
uint32_t tmk_reader_n_parameters(const struct tmk_reader *r);

/* The number of the last step, if it was none: the program ended before it made an update. Rows and
 * replays count it as a part of the step before. TMK_NO_STEP: there is none such. */
int64_t tmk_reader_tail_step(const struct tmk_reader *r);

/* Finished and last step rows, by ordinal, each once. */
uint64_t tmk_reader_n_step_rows(const struct tmk_reader *r);
const struct tmk_step_row *tmk_reader_step_row(const struct tmk_reader *r, uint64_t i);

/* Add chunks that were packed into memory from a ring; `bytes` are chunks as in a file, from
 * malloc(), and become the reader's. Chunks of the file after `last_seq` are left out. A chunk cut
 * by the end of the file is no damage any more: the ring has its events. */
int tmk_reader_attach(struct tmk_reader *r, uint8_t *bytes, size_t n, uint64_t last_seq,
                      struct tmk_error *err);
/* Take in what the trace's process has written since: chunks, definitions, step rows, the status.
 * Only for a trace without attached chunks. Returns the number of new chunks. TMK_EAGAIN: the
 * writer went round past the last chunk known, so the trace has to be opened anew. */
int tmk_reader_follow(struct tmk_reader *r, struct tmk_error *err);
/* Keep only the newest chunks and step rows, at least one of each, so that a reader that follows
 * for days takes no more memory. A payload that was read is gone. */
void tmk_reader_forget(struct tmk_reader *r, uint32_t most_chunks, uint64_t most_rows);
/* Set the status to what it would be if these chunks were in the file. */
void tmk_reader_set_status(struct tmk_reader *r, const struct tmk_status *status);

#endif
