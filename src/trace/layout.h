/* SPDX-License-Identifier: MIT */
/* trace/layout.h - the bytes of ring and trace file, as docs/format.md has them.
 *
 * Only src/trace/ includes this, and record/ for the ring's records. Structs are used where the
 * bytes are mapped or written whole; tests pin every offset. Little-endian, 64-bit aligned. */
#ifndef TMK_TRACE_LAYOUT_H
#define TMK_TRACE_LAYOUT_H

#include <stdatomic.h>
#include <stdint.h>

#define TMK_FILE_MAGIC "TIDEMARK"
#define TMK_CHUNK_MAGIC 0x434b4d54u /* "TMKC" */
#define TMK_RING_MAGIC "TMKRING1"

enum {
    TMK_FORMAT_VERSION = 1,
    TMK_HEADER_MAX_BYTES = 4096, /* of the file; it ends with its info */
    TMK_INFO_OFFSET = 320,
    TMK_INFO_MAX_BYTES = TMK_HEADER_MAX_BYTES - TMK_INFO_OFFSET,
    TMK_RING_HEADER_BYTES = 4096,
    TMK_STATUS_OFFSET = 64,
    TMK_STATUS_BYTES = 128,
    TMK_CHUNK_HEADER_BYTES = 64,
    TMK_CHUNK_MAX_PAYLOAD = 1 << 26,
    TMK_PAGE_BYTES = 16384,
    TMK_PAGE_SLOTS = 510,
    TMK_SLOT_BYTES = 32,
    TMK_STRING_MAX_BYTES = 4000,
    TMK_LINES_MAX_BYTES = 1 << 20,   /* of a code's line table */
    TMK_PERMANENT_MAX_BYTES = 65536, /* of a definitions or steps chunk, header included */
    TMK_MAX_SIZE_LEAST = 4 << 20,    /* the smallest --max-size */
};

#define TMK_NO_STEP INT64_MIN

/* A device's number: type × 256 + index; the types are torch's. */
enum tmk_device_type { TMK_DEVICE_TYPE_CPU = 0, TMK_DEVICE_TYPE_CUDA = 1 };

static inline uint16_t tmk_cuda_device(unsigned index)
{
    return (uint16_t)(TMK_DEVICE_TYPE_CUDA << 8 | (index & 0xff));
}

/* The layout of a code object's line table, named after the CPython version that introduced it. */
enum tmk_py_lines {
    TMK_PY_LINES_RUNS = 1, /* never a code's own: of a table made of TMK_DEF_LINE_RUNS */
    TMK_PY_LINES_39 = 39,
    TMK_PY_LINES_310 = 310,
    TMK_PY_LINES_311 = 311,
};

/* Field b of an allocation in the ring: the size, and above it the stream; of a segment its kind.
 */
enum { TMK_SIZE_BITS = 48 };

enum tmk_chunk_kind {
    TMK_CHUNK_DEFS = 1,
    TMK_CHUNK_EVENTS = 2,
    TMK_CHUNK_STEPS = 3,
    TMK_CHUNK_CHECKPOINT = 4,
};

enum { TMK_CHUNK_PERMANENT = 1 };

/* Flags of a parameter. */
enum tmk_parameter_flag {
    TMK_PARAMETER_REQUIRES_GRAD = 1,
    TMK_PARAMETER_IS_BUFFER = 2,
    TMK_PARAMETER_OPTIMIZED = 4, /* on an optimizer's list */
    TMK_PARAMETER_IS_TIED = 8,   /* another name for one defined before */
};

/* The text of a parameter in the ring begins with this; "dtype [shape]" follows. */
struct tmk_parameter_head {
    uint64_t address; /* of its storage */
    uint64_t size_bytes;
    uint32_t name; /* string */
    uint32_t reserved;
};

/* A device's figures from its driver: the whole text of a sample in the ring. UINT64_MAX: not
 * known. */
struct tmk_sample_body {
    uint64_t used_bytes; /* of the whole device */
    uint64_t total_bytes;
    uint64_t own_bytes;    /* of this process */
    uint64_t others_bytes; /* of all other processes */
};

/* Set in the device of an OOM: the driver ran out of memory, not the framework's allocator. */
enum { TMK_OOM_OF_DRIVER = 0x8000 };

enum tmk_section {
    TMK_SECTION_THREADS = 1,
    TMK_SECTION_CONTEXT = 2,
    TMK_SECTION_ADDRESSES = 3,
    TMK_SECTION_SHAPES = 4,
    TMK_SECTION_HEADS = 5,
    TMK_SECTION_STREAMS = 6,
    TMK_SECTION_RESERVED = 7,
    TMK_SECTION_DATA = 16, /* + kind, up to 23 */
    TMK_SECTION_TOTALS = 32,
    TMK_SECTION_STEP = 33,
    TMK_SECTION_CONTEXTS = 34,
    TMK_SECTION_BLOCKS = 35,
    TMK_SECTION_BLOCK_STREAMS = 36,
    TMK_SECTION_SEGMENTS = 37,
    TMK_SECTION_REQUESTED = 38,
    TMK_SECTION_BRIEF_BLOCKS = 39,
};

enum { TMK_STEP_HAS_NUMBER = 1, TMK_STEP_OPEN = 2 };

enum tmk_file_state { TMK_STATE_OPEN = 0, TMK_STATE_CLOSED = 1, TMK_STATE_STOPPED = 2 };

/* Why recording stopped early. X(name, value, text for people). */
#define TMK_STOPS(X)                                                                               \
    X(TMK_STOP_NONE, 0, "it did not stop early")                                                   \
    X(TMK_STOP_DISK_FULL, 1, "the disk was full")                                                  \
    X(TMK_STOP_SIZE_LIMIT, 2, "the process's file-size limit (ulimit -f) was reached")             \
    X(TMK_STOP_WRITE_ERROR, 3, "writing the trace failed")                                         \
    X(TMK_STOP_INNER_ERROR, 4, "the recorder met an error of its own")                             \
    X(TMK_STOP_HISTORY, 5, "the per-step history alone fills the size allowed by --max-size")      \
    X(TMK_STOP_SECCOMP, 6, "the program restricted its system calls (seccomp)")                    \
    X(TMK_STOP_SANDBOX, 7, "it runs under a seccomp filter that tidemark does not know")           \
    X(TMK_STOP_THREAD, 8, "no thread could be started for the recorder")                           \
    X(TMK_STOP_NESTED, 9, "another tidemark recorded it")                                          \
    X(TMK_STOP_FOLDER, 10, "the trace could not be made")                                          \
    X(TMK_STOP_SLOW, 11, "the disk did not answer within a second")                                \
    X(TMK_STOP_BUDGET, 12, "the run's share of the disk or of /dev/shm was used up")               \
    X(TMK_STOP_EARLY_END, 13, "it ended before its recording had begun")                           \
    X(TMK_STOP_ADDRESSES, 14, "it may have less than 1 GiB of address space (ulimit -v)")          \
    X(TMK_STOP_REMOVED, 15, "its trace was removed while it was recorded")

enum tmk_stop {
#define X(name, value, text) name = (value),
    TMK_STOPS(X)
#undef X
};

enum tmk_status_flag {
    TMK_STATUS_MERGED = 1,
    TMK_STATUS_CUT = 2, /* a checkpoint had no room for the details of all live blocks */
};

struct tmk_file_header { /* bytes 0-39 of the file */
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint8_t trace_id[16];
    uint32_t info_bytes;
    uint32_t crc;
};

struct tmk_status {
    uint64_t serial;
    uint32_t state;
    uint32_t reason;
    uint32_t os_error;
    uint32_t flags;
    uint64_t last_seq;
    uint64_t n_events;
    uint64_t n_dropped;
    uint64_t n_allocs;
    uint64_t n_frees;
    uint64_t head;
    uint64_t tail;
    uint64_t oldest_seq;
    uint64_t n_given_up;
    uint64_t end_ns;
    uint64_t n_untracked;
    uint64_t n_unnamed;
    uint8_t reserved[4];
    uint32_t crc;
};

struct tmk_chunk_header {
    uint32_t magic;
    uint16_t kind;
    uint8_t codec;
    uint8_t flags;
    uint64_t seq;
    uint32_t payload_bytes;
    uint32_t n_items;
    uint64_t start_ns;
    uint64_t end_ns;
    int64_t first_step;
    int64_t last_step;
    uint32_t payload_crc;
    uint32_t header_crc;
};

struct tmk_ring_header {
    char magic[8];
    uint32_t header_bytes;
    uint32_t page_bytes;
    _Atomic uint32_t n_pages; /* that have memory behind them; grows */
    uint32_t pid;
    uint8_t trace_id[16];
    uint64_t clock_ticks; /* the last clock reading */
    uint64_t clock_ns;    /* trace time at it */
    uint64_t clock_rate;  /* ns per tick << 32 */
    uint64_t start_ticks;
    uint64_t start_monotonic_ns;
    uint8_t reserved0[48];
    _Atomic uint64_t n_dropped; /* 128: a cache line of its own, written by many threads */
    _Atomic uint64_t n_unnamed; /* uses of names, stacks and streams that found no room */
    uint8_t reserved1[48];
    _Atomic uint64_t free_list; /* 192: tag << 32 | page index + 1 */
    uint8_t reserved2[56];
    _Atomic uint64_t next_page_number; /* 256 */
    _Atomic uint32_t next_thread;
    uint32_t reserved3;
    _Atomic uint64_t epoch;    /* 272: odd while the packer moves records to the trace */
    _Atomic uint64_t last_seq; /* number of the last chunk in the trace */
    uint8_t reserved4[224];
    char trace_path[3584]; /* 512 */
};

enum tmk_page_state { TMK_PAGE_FREE = 0, TMK_PAGE_USED = 1, TMK_PAGE_SEALED = 2 };

/* One record, or its first slot. `head` is stored last, so head.kind != 0 means that all of it is
 * there. `payload` of a longer record runs from `b` on into the following slots. */
union tmk_record_head {
    struct {
        uint8_t kind;
        uint8_t n_slots;
        uint16_t device;
        uint32_t id;
    };
    uint64_t word;
};

struct tmk_record {
    _Atomic uint64_t head;
    uint64_t ticks;
    uint64_t a;
    uint64_t b;
};

struct tmk_page {
    _Atomic uint32_t state;
    uint32_t thread;
    uint64_t number;
    _Atomic uint64_t done;
    _Atomic uint64_t done_before;
    uint32_t next_free;
    uint32_t reserved[7];
    struct tmk_record slots[TMK_PAGE_SLOTS];
};

/* The bytes of a file's header: its info, then zeros up to a multiple of 8. */
static inline uint32_t tmk_header_bytes(uint32_t info_bytes)
{
    return TMK_INFO_OFFSET + ((info_bytes + 7) & ~(uint32_t)7);
}

/* The bytes of a chunk in the file: header, payload, zeros up to a multiple of 8. */
static inline uint64_t tmk_chunk_bytes(uint64_t payload_bytes)
{
    return TMK_CHUNK_HEADER_BYTES + ((payload_bytes + 7) & ~(uint64_t)7);
}

_Static_assert(sizeof(struct tmk_file_header) == 40, "format.md 1");
_Static_assert(sizeof(struct tmk_status) == TMK_STATUS_BYTES, "format.md 1");
_Static_assert(sizeof(struct tmk_chunk_header) == TMK_CHUNK_HEADER_BYTES, "format.md 2");
_Static_assert(sizeof(struct tmk_ring_header) == TMK_RING_HEADER_BYTES, "format.md 3");
_Static_assert(sizeof(struct tmk_record) == TMK_SLOT_BYTES, "format.md 3");
_Static_assert(sizeof(struct tmk_parameter_head) == 24, "format.md 3");
_Static_assert(sizeof(struct tmk_sample_body) == 32, "format.md 3");
_Static_assert(sizeof(struct tmk_page) == TMK_PAGE_BYTES, "format.md 3");

#endif
