/* SPDX-License-Identifier: MIT */
/* trace/kinds.h - the kinds of records: events and definitions, each listed once.
 *
 * A kind of event has a number (docs/format.md 2.2 and 3), a word (the column `kind` of SQL's table
 * `events`), a form in the ring, and a set of fields. The file has the kinds from 16 on as "other":
 * their bodies are their fields in the order of enum tmk_field, so the set says how a body is
 * written and how it is read. A new kind needs a line here, a row in the document and its meaning
 * in state.c; tests/unit/test_layout.c compares the list with the document. */
#ifndef TMK_TRACE_KINDS_H
#define TMK_TRACE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

/* The fields of an event beside time and thread. */
enum tmk_field {
    TMK_HAS_DEVICE = 1 << 0,
    TMK_HAS_SEGMENT_KIND = 1 << 1,
    TMK_HAS_ADDRESS = 1 << 2,
    TMK_HAS_SIZE = 1 << 3, /* bytes; of DROP a number of events, of HOLDER flags */
    TMK_HAS_CAPACITY = 1 << 4,
    TMK_HAS_STACK = 1 << 5,
    TMK_HAS_NAME = 1 << 6,
    TMK_HAS_FREE = 1 << 7, /* the last of its body, which may lack it: not known */
    TMK_HAS_SAMPLE = 1 << 8,
    TMK_HAS_TEXT = 1 << 9,
    TMK_HAS_STREAM = 1 << 10, /* from here on: not of "other" kinds */
    TMK_HAS_CATEGORY = 1 << 11,
    TMK_HAS_RANGE = 1 << 12,
    TMK_HAS_STEP = 1 << 13,
};

/* How a record lies in the ring. */
enum tmk_ring_form {
    TMK_RING_NEVER = 0,
    TMK_RING_PLAIN, /* `a` and `b` are what the document says */
    TMK_RING_SIZED, /* `b` is a size and above it a stream, or a segment's kind */
    TMK_RING_RANGE, /* `a` is a range's kind, `b` the thread that has it */
    TMK_RING_TEXT,  /* text begins at `b`, its length is in the low half of `a` */
};

/* X(name, number, word, form in the ring, fields). HELD and RELEASED are only in traces that were
 * made of other tools' files. */
#define TMK_EVENT_KINDS(X)                                                                         \
    X(ALLOC, 1, "allocate", SIZED,                                                                 \
      TMK_HAS_DEVICE | TMK_HAS_ADDRESS | TMK_HAS_SIZE | TMK_HAS_STACK | TMK_HAS_STREAM)            \
    X(FREE, 2, "free", PLAIN, TMK_HAS_DEVICE | TMK_HAS_ADDRESS)                                    \
    X(TAG, 3, "tag", PLAIN, TMK_HAS_DEVICE | TMK_HAS_ADDRESS | TMK_HAS_CATEGORY | TMK_HAS_NAME)    \
    X(PUSH, 4, "open", RANGE, TMK_HAS_RANGE | TMK_HAS_NAME)                                        \
    X(POP, 5, "close", RANGE, TMK_HAS_RANGE)                                                       \
    X(STEP, 6, "step", PLAIN, TMK_HAS_STEP)                                                        \
    X(MARK, 16, "mark", TEXT, TMK_HAS_NAME | TMK_HAS_TEXT)                                         \
    X(OOM, 17, "oom", PLAIN,                                                                       \
      TMK_HAS_DEVICE | TMK_HAS_SIZE | TMK_HAS_CAPACITY | TMK_HAS_STACK | TMK_HAS_FREE)             \
    X(DROP, 18, "drop", NEVER, TMK_HAS_SIZE)                                                       \
    X(RESERVED, 19, "reserved", PLAIN, TMK_HAS_DEVICE | TMK_HAS_SIZE)                              \
    X(DEVICE_END, 20, "device_end", PLAIN, TMK_HAS_DEVICE)                                         \
    X(SEGMENT, 22, "segment", SIZED,                                                               \
      TMK_HAS_DEVICE | TMK_HAS_SEGMENT_KIND | TMK_HAS_ADDRESS | TMK_HAS_SIZE | TMK_HAS_STACK)      \
    X(SEGMENT_END, 23, "segment_end", SIZED,                                                       \
      TMK_HAS_DEVICE | TMK_HAS_SEGMENT_KIND | TMK_HAS_ADDRESS)                                     \
    X(SAMPLE, 24, "sample", TEXT, TMK_HAS_DEVICE | TMK_HAS_SAMPLE)                                 \
    X(HELD, 25, "held", NEVER, TMK_HAS_DEVICE | TMK_HAS_ADDRESS | TMK_HAS_SIZE)                    \
    X(RELEASED, 26, "released", NEVER, TMK_HAS_DEVICE | TMK_HAS_ADDRESS)                           \
    X(HOLDER, 27, "holder", PLAIN, TMK_HAS_DEVICE | TMK_HAS_ADDRESS | TMK_HAS_SIZE | TMK_HAS_NAME)

/* The kind of ranges that say a thread's grad mode, beside enum tidemark_range, and their names.
 * The innermost one counts; without any, grad mode is on or not known. */
enum { TMK_RANGE_GRAD_MODE = 0 };
#define TMK_RANGE_NO_GRAD "no_grad"
#define TMK_RANGE_INFERENCE_MODE "inference_mode"
#define TMK_RANGE_ENABLE_GRAD "enable_grad"

/* Flags of a HOLDER. */
enum {
    TMK_HOLDER_GRAPH = 1, /* autograd's graph made the tensor */
    TMK_HOLDER_ALL = 1,   /* of the last one of an inquiry: no tensor was left out */
};

/* X(name in the ring, name in the file, type in the file, form in the ring). The ring's number is
 * the type + 31. LINES_311 are whole entries in the ring; in the file they become runs of lines. */
#define TMK_DEFINITIONS(X)                                                                         \
    X(STRING, STRING, 1, TEXT)                                                                     \
    X(FRAME, FRAME, 2, PLAIN)                                                                      \
    X(STACK, STACK, 3, TEXT)                                                                       \
    X(THREAD, THREAD, 4, TEXT)                                                                     \
    X(CODE, CODE, 5, PLAIN)                                                                        \
    X(LINES, LINES, 6, TEXT)                                                                       \
    X(CODE_FRAME, CODE_FRAME, 7, PLAIN)                                                            \
    X(MODULE, MODULE, 8, TEXT)                                                                     \
    X(NATIVE_FRAME, NATIVE_FRAME, 9, PLAIN)                                                        \
    X(STREAM, STREAM, 10, PLAIN)                                                                   \
    X(TORCH_MODULE, TORCH_MODULE, 11, PLAIN)                                                       \
    X(PARAMETER, PARAMETER, 12, TEXT)                                                              \
    X(LINES_311, LINE_RUNS, 13, TEXT)                                                              \
    X(TAIL, TAIL, 14, PLAIN)

enum { TMK_KIND_OF_DEF = 31 }; /* more than its type */

/* The kinds of ring records; events 1-6 are also the file's. */
enum tmk_kind {
    TMK_KIND_NONE = 0,
    TMK_KIND_OTHER = 7,  /* in the file: type and length follow */
    TMK_KIND_FOUND = 21, /* in the ring: it becomes an ALLOC, or nothing */
#define X(name, number, word, form, fields) TMK_KIND_##name = (number),
    TMK_EVENT_KINDS(X)
#undef X
#define X(name, file_name, type, form) TMK_KIND_DEF_##name = TMK_KIND_OF_DEF + (type),
        TMK_DEFINITIONS(X)
#undef X
            TMK_N_KINDS,
};

enum tmk_def {
#define X(name, file_name, type, form) TMK_DEF_##file_name = (type),
    TMK_DEFINITIONS(X)
#undef X
};

extern const uint16_t tmk_fields_of_kinds[TMK_N_KINDS];
extern const uint8_t tmk_forms_of_kinds[TMK_N_KINDS];

/* The set of an event's fields; 0 for a kind that is no event of a trace. */
static inline unsigned tmk_kind_fields(unsigned kind)
{
    return kind < TMK_N_KINDS ? tmk_fields_of_kinds[kind] : 0;
}

/* Whether the file has the event as "other". */
static inline bool tmk_kind_is_other(unsigned kind)
{
    return kind > TMK_KIND_OTHER && tmk_kind_fields(kind) != 0;
}

static inline bool tmk_kind_is_definition(unsigned kind)
{
    return kind > TMK_KIND_OF_DEF && kind < TMK_N_KINDS;
}

static inline enum tmk_ring_form tmk_kind_ring_form(unsigned kind)
{
    return kind < TMK_N_KINDS ? (enum tmk_ring_form)tmk_forms_of_kinds[kind] : TMK_RING_NEVER;
}

/* The event's word; "" for a kind that is no event of a trace. */
const char *tmk_kind_word(unsigned kind);

/* Whether a record of this kind may have a text of `n_bytes`. `a` is the number beside it. */
bool tmk_kind_takes_text(unsigned kind, uint64_t a, uint32_t n_bytes);

#endif
