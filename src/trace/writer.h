/* SPDX-License-Identifier: MIT */
/* trace/writer.h - the trace file as a place to put chunks: header, status, bounded size.
 *
 * Chunks are appended until the file has max_size bytes; from then on the oldest are overwritten,
 * but definitions and step rows are first copied to the head, so they stay for ever. A crash never
 * loses anything that was not already given up: the copy is written before its original may be
 * overwritten, and the status that says "given up" is written before the overwriting begins.
 *
 *     header          head           tail                 end   max_size
 *     | newer chunks  |    free      | older chunks        | slack |
 *
 * The writer uses write calls only (a mapped file would raise SIGBUS on a full disk) and never the
 * memory allocator. The caller must have SIGXFSZ blocked or ignored. */
#ifndef TMK_TRACE_WRITER_H
#define TMK_TRACE_WRITER_H

#include <sys/types.h>

#include "base/error.h"
#include "trace/layout.h"
#include "trace/packer.h"

/* Returns whether the file may grow by `bytes`; granted bytes count for the run. */
typedef bool tmk_grant(void *arg, uint64_t bytes);

struct tmk_writer {
    int fd;
    char path[3584];
    dev_t device;
    ino_t inode;
    uint64_t first;    /* offset of the first chunk: the header's size */
    uint64_t max_size; /* 0: unbounded */
    uint64_t end;      /* of the older part when the file is written round */
    bool wrapped;
    bool is_held;        /* with a lock: it was made by this process */
    uint64_t saved_tail; /* as the file's status has it */
    uint64_t file_bytes;
    tmk_grant *grant; /* NULL: grow as max_size allows */
    void *grant_arg;
    uint64_t granted; /* the file may be so long */
    struct tmk_status status;
    struct tmk_error error; /* why the last call failed */
};

/* Make the file (it must not exist). `info` is the header's text. Before it has its name, and for
 * as long as it is open, it has a shared lock where the file system has locks: its process lives.
 */
int tmk_writer_create(struct tmk_writer *w, const char *path, const uint8_t trace_id[16],
                      const char *info, uint64_t max_size, struct tmk_error *err);

/* Write the name that a trace has until it has its header. */
void tmk_writer_part_name(const char *path, char *part, size_t size);

/* Go on with an existing trace; its descriptor `fd` becomes the writer's. `status` is the trace's
 * last one, brought up to date with the chunks found (head, last_seq); `first` and `end` are the
 * offsets where the first chunk in the file may begin and the last one ends. */
int tmk_writer_resume(struct tmk_writer *w, int fd, const char *path,
                      const struct tmk_status *status, uint64_t first, uint64_t end,
                      uint64_t max_size, struct tmk_error *err);

/* Let the file grow only as far as `grant` allows from now on. After the first refusal the writer
 * overwrites the oldest chunks in the space that the file has, if that is at least
 * TMK_MAX_SIZE_LEAST (max_size then says so), else writing fails with ENOBUFS: a reason for the
 * status. */
void tmk_writer_ask(struct tmk_writer *w, tmk_grant *grant, void *arg);

/* Close the file; the status stays as last written. */
void tmk_writer_close(struct tmk_writer *w);

/* The functions a packer calls. */
struct tmk_chunk_out tmk_writer_out(struct tmk_writer *w);

/* Write the status with the totals of `s` (may be NULL: leave them). */
int tmk_writer_put_status(struct tmk_writer *w, const struct tmk_state *s);

/* Put the totals of `s` into a status. */
void tmk_status_count(struct tmk_status *status, const struct tmk_state *s);

/* Turn the error of a failed write into a reason for the status. */
enum tmk_stop tmk_writer_stop_reason(int os_error);

/* Write the file's data to the disk (fdatasync). */
int tmk_writer_sync(struct tmk_writer *w);

#endif
