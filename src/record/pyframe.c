/* SPDX-License-Identifier: MIT */
/* record/pyframe.c - see pyframe.h.
 *
 * Code objects die and their addresses are used again, for another function in half of the cases.
 * From 3.12 on each carries a number that no other has had. Before, the identity of a code object
 * covers, beside its address, its first line and the hashes that CPython keeps in the strings of
 * its name and file, which costs two cache lines more a frame. While Python tells when code objects
 * go (pycodes.h) nothing of them is read. */
#include "record/pyframe.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "record/hot.h"
#include "record/pycodes.h"
#include "record/pylayout_known.h"

enum state { NOT_LOOKED, LOOKING, READY, REFUSED };

static struct tmk_pyruntime runtime; /* good when READY */
struct tmk_pyframe_hot tmk_pyframe_hot TMK_HOT_FIRST;
static _Atomic int state;
static _Atomic pid_t looker;
static _Atomic int n_refused;
enum { MAX_REFUSALS = 5 };
static const char *_Atomic refusal;
static _Atomic uint64_t look_again_ns;
static const uint64_t no_python_ns = 100000000; /* between looks while there is no interpreter */
static const uint64_t no_frames_ns = 1000000;   /* and while threads without frames ask */

/* ---- walking ---- */

static inline const void *pointer_at(const void *base, uint16_t offset)
{
    return (const void *)(uintptr_t)tmk_load_u64((const uint8_t *)base + offset);
}

static inline const void *code_of(const struct tmk_pylayout *l, const void *frame)
{
    uintptr_t word = (uintptr_t)pointer_at(frame, l->frame_code);
    return (const void *)(l->tagged ? word & ~(uintptr_t)3 : word);
}

static inline uint32_t offset_of(const struct tmk_pylayout *l, const void *frame, const void *code)
{
    const uint8_t *at = (const uint8_t *)frame + l->frame_instruction;
    if (l->count_scale)
        return tmk_load_u32(at) * l->count_scale;
    return (uint32_t)(tmk_load_u64(at) - (uintptr_t)code - l->code_start);
}

/* NULL without frames, and in a sub-interpreter, whose frames are not read. */
static inline const void *top_frame(const struct tmk_pylayout *l, const void *thread)
{
    if (!thread || pointer_at(thread, l->thread_interpreter) != tmk_pyframe_hot.main_interpreter)
        return NULL;
    const void *frame = pointer_at(thread, l->thread_frame);
    return l->indirect && frame ? pointer_at(frame, l->cframe_frame) : frame;
}

static inline uint64_t text_hash(const struct tmk_pylayout *l, const void *code, uint16_t field)
{
    return tmk_load_u64((const uint8_t *)pointer_at(code, field) + l->text_hash);
}

/* Whether a frame stands for an entry from C. */
static inline bool is_entry(const struct tmk_pylayout *l, const void *frame)
{
    return l->has_owner && ((const uint8_t *)frame)[l->frame_owner] >= TMK_PYFRAME_OWNED_BY_C;
}

/* Whether a frame is that of a Python function. From 3.13 on its code may be something else. */
static inline bool is_function(const struct tmk_pylayout *l, const void *frame, const void *code)
{
    if (is_entry(l, frame))
        return false;
    return code && (l->minor < 13 || pointer_at(code, l->object_type) == runtime.code_type);
}

/* x, to be computed apart: the compiler would add its terms to the hash one by one, and the next
 * frame would wait for all of them. */
static inline uint64_t apart(uint64_t x)
{
    __asm__("" : "+r"(x));
    return x;
}

/* What tells a code object from another that was at its address before. */
static inline uint64_t identity_of(const struct tmk_pylayout *l, const void *code)
{
    if (l->code_version) {
        uint32_t version = tmk_load_u32((const uint8_t *)code + l->code_version);
        if (__builtin_expect(version != 0, 1)) /* 0: four thousand million have been given out */
            return version;
    }
    uint64_t first_line = tmk_load_u32((const uint8_t *)code + l->code_first_line);
    return apart(text_hash(l, code, l->code_name) + 2 * text_hash(l, code, l->code_file) +
                 8 * first_line);
}

/* Address and instruction of a frame's code in one number: that of the instruction, if it is there.
 */
static inline uint64_t place_of(const struct tmk_pylayout *l, const void *frame, const void *code)
{
    const uint8_t *at = (const uint8_t *)frame + l->frame_instruction;
    if (l->count_scale)
        return apart((uintptr_t)code + ((uint64_t)tmk_load_u32(at) << 32));
    return tmk_load_u64(at);
}

/* The frame of the next Python function, from `frame` on; NULL behind the last. */
static inline const void *next_function(const struct tmk_pylayout *l, const void *frame)
{
    while (frame && !is_function(l, frame, code_of(l, frame)))
        frame = pointer_at(frame, l->frame_back);
    return frame;
}

/* The hash of a stack: the sum of what its frames are, each times another power. */
struct sum {
    uint64_t hash, power;
};

/* While code objects are watched (pycodes.h) they are not looked at, and what stands for an entry
 * from C counts, too. */
__attribute__((always_inline)) static inline void
add_frame(const struct tmk_pylayout *l, bool is_watched, const void *frame, struct sum *sum)
{
    const void *code = is_watched ? NULL : code_of(l, frame);
    if (!is_watched && !is_function(l, frame, code))
        return;
    uint64_t what = place_of(l, frame, code);
    if (!is_watched)
        what += identity_of(l, code) * 0xbf58476d1ce4e5b9u;
    sum->hash += what * sum->power;
    sum->power *= 0x9e3779b97f4a7c15u;
}

/* Where the hash begins. What is called while a thread's outermost function goes, destructors for
 * one, has nothing but the entry from C: that is no stack. */
static inline const void *first_frame(const struct tmk_pylayout *l, bool is_watched,
                                      const void *thread)
{
    const void *top = top_frame(l, thread);
    return is_watched && top && is_entry(l, top) ? pointer_at(top, l->frame_back) : top;
}

/* So many are gone through where none is known: all functions that are recorded and one more, and
 * between them the entries from C. (Below known ones it may be more: what is not recorded of deep
 * stacks may so give one of them several hashes.) */
enum { MOST_FRAMES = 2 * (TMK_PYFRAME_MAX + 1) };

/* Read once for what is followed: another thread may write it. */
static inline const void *read_hint(const _Atomic uintptr_t *hint)
{
    return (const void *)atomic_load_explicit(hint, memory_order_relaxed);
}

/* Frames above a known one, the outermost first; as many of those as there is room for. */
static inline void remember(struct tmk_pyframe_hints *hints, _Atomic uintptr_t *known,
                            const void *const *frames, const void *const *end)
{
    while (frames < end && known < &hints->frames[TMK_PYFRAME_HINTS])
        atomic_store_explicit(++known, (uintptr_t)*frames++, memory_order_relaxed);
    atomic_store_explicit(&hints->n, (uint64_t)(known - hints->frames), memory_order_relaxed);
}

/* The hash alone: mostly the stack is known, and nothing else is wanted.
 *
 * First come frames that were not there the last time. Functions' frames mostly lie one above the
 * other, so of the known ones those above this one are passed over. (Those of generators lie
 * elsewhere, and may make all below them new; entries from C lie above.) Then come those that were
 * there, down to the last, or to one that has another below it now: then it begins again, and those
 * above have to be remembered anew.
 *
 * Compiled for each layout whose offsets are known: they are constants then. */
__attribute__((always_inline)) static inline uint64_t hash_frames(const struct tmk_pylayout *l,
                                                                  bool is_watched,
                                                                  const void *thread,
                                                                  struct tmk_pyframe_hints *hints)
{
    const void *added[MOST_FRAMES + TMK_PYFRAME_HINTS];
    const void **const end = added + MOST_FRAMES + TMK_PYFRAME_HINTS, **at = end;
    _Atomic uintptr_t *known =
        hints->frames + atomic_load_explicit(&hints->n, memory_order_relaxed);
    _Atomic uintptr_t *joined = hints->frames;
    const void *frame = first_frame(l, is_watched, thread);
    struct sum sum = {.power = 1};
    while (frame) {
        const void *there = read_hint(known), *below;
        while ((uintptr_t)there > (uintptr_t)frame)
            there = read_hint(--known);
        if (there != frame) {
            if (__builtin_expect(at - added <= TMK_PYFRAME_HINTS, 0))
                break;
            *--at = frame;
            add_frame(l, is_watched, frame, &sum);
            frame = pointer_at(frame, l->frame_back);
            continue;
        }
        joined = known;
        do {
            below = pointer_at(frame, l->frame_back);
            there = read_hint(--known);
            add_frame(l, is_watched, frame, &sum);
            frame = (const void *)apart((uintptr_t)there); /* and not below, which comes late */
        } while (below == there && frame);
        if (__builtin_expect(below == there, 1))
            break;
        for (; joined > known; joined--)
            *--at = read_hint(joined);
        joined = hints->frames;
        frame = below;
    }
    if (at < end)
        remember(hints, joined, at, end);
    uint64_t epoch = is_watched ? atomic_load(&tmk_pyframe_hot.epoch) : 0;
    return sum.power != 1 ? tmk_hash_fold(sum.hash, epoch) | 1 : 0;
}

#define HASH_OF(order, name, layout, is_watched)                                                   \
    TMK_HOT_CODE(order)                                                                            \
    static uint64_t hash_##name(const void *thread, struct tmk_pyframe_hints *hints)               \
    {                                                                                              \
        return hash_frames(&(layout), is_watched, thread, hints);                                  \
    }
HASH_OF(5, 3_9, tmk_pylayout_known[TMK_PYLAYOUT_3_9], false)
HASH_OF(5, 3_10, tmk_pylayout_known[TMK_PYLAYOUT_3_10], false)
HASH_OF(3, 3_11, tmk_pylayout_known[TMK_PYLAYOUT_3_11], false)
HASH_OF(5, 3_12, tmk_pylayout_known[TMK_PYLAYOUT_3_12], false)
HASH_OF(3, 3_12_watched, tmk_pylayout_known[TMK_PYLAYOUT_3_12], true)
HASH_OF(5, 3_13, tmk_pylayout_usual_3_13, false)
HASH_OF(3, 3_13_watched, tmk_pylayout_usual_3_13, true)

static uint64_t hash_published(const void *thread, struct tmk_pyframe_hints *hints)
{
    struct tmk_pylayout l = runtime.layout; /* a copy, which no store can change */
    return hash_frames(&l, false, thread, hints);
}

typedef uint64_t hash_function(const void *thread, struct tmk_pyframe_hints *hints);

static hash_function *find_hash(const struct tmk_pylayout *l, bool is_watched)
{
    if (memcmp(l, &tmk_pylayout_usual_3_13, sizeof *l) == 0)
        return is_watched ? hash_3_13_watched : hash_3_13;
    switch (l->minor) {
    case 9:
        return hash_3_9;
    case 10:
        return hash_3_10;
    case 11:
        return hash_3_11;
    case 12:
        return is_watched ? hash_3_12_watched : hash_3_12;
    default:
        return hash_published;
    }
}

bool tmk_pyframe_can_be_watched(void)
{
    return atomic_load(&tmk_pyframe_hot.hash) &&
           find_hash(&runtime.layout, true) != find_hash(&runtime.layout, false);
}

/* Hashes of the one way mean nothing to the other. */
void tmk_pyframe_set_watched(bool is_watched)
{
    tmk_pyframe_forget();
    atomic_store_explicit(&tmk_pyframe_hot.hash, find_hash(&runtime.layout, is_watched),
                          memory_order_release);
}

void tmk_pyframe_forget(void)
{
    atomic_fetch_add(&tmk_pyframe_hot.epoch, 1);
}

const struct tmk_code_range *tmk_pyframe_range(void)
{
    return &runtime.image;
}

void tmk_pyframe_walk(struct tmk_pystack *ret)
{
    const struct tmk_pylayout *l = &runtime.layout;
    const void *frame = next_function(l, top_frame(l, tmk_pyframe_thread()));
    ret->n_frames = 0;
    while (frame && ret->n_frames < TMK_PYFRAME_MAX) {
        const void *code = code_of(l, frame);
        tmk_pycodes_note(code);
        ret->frames[ret->n_frames++] =
            (struct tmk_pyframe){.code = code, .offset = offset_of(l, frame, code)};
        frame = next_function(l, pointer_at(frame, l->frame_back));
    }
    ret->cut = frame != NULL;
}

/* ---- code objects ---- */

/* The bits of a string's state: how interned, kind (three bits), compact, ascii. Strings of code
 * objects are compact: the characters follow the header. */
static struct tmk_pytext text_of(const struct tmk_pylayout *l, const void *text)
{
    unsigned kind_bit = tmk_pylayout_kind_bit(l);
    uint32_t bits = tmk_load_u32((const uint8_t *)text + l->text_state);
    bool ascii = bits >> (kind_bit + 4) & 1;
    return (struct tmk_pytext){
        .characters = (const uint8_t *)text + (ascii ? l->text_ascii : l->text_compact),
        .n_characters = (size_t)tmk_load_u64((const uint8_t *)text + l->text_length),
        .width = bits >> kind_bit & 7,
    };
}

void tmk_pyframe_code(const void *code, struct tmk_pycode *ret)
{
    const struct tmk_pylayout *l = &runtime.layout;
    const uint8_t *lines = pointer_at(code, l->code_lines);
    *ret = (struct tmk_pycode){
        .file = text_of(l, pointer_at(code, l->code_file)),
        .name = text_of(l, pointer_at(code, l->code_name)),
        .first_line = tmk_load_u32((const uint8_t *)code + l->code_first_line),
        .layout = l->lines,
        .lines = lines + l->bytes_start,
        .n_line_bytes = (size_t)tmk_load_u64(lines + l->bytes_size),
    };
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n] | c);
    return n;
}

size_t tmk_pytext_utf8(const struct tmk_pytext *t, char *buffer, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_characters && n + 4 <= size; i++)
        n += put_utf8(buffer + n, t->width == 1   ? t->characters[i]
                                  : t->width == 2 ? tmk_load_u16(t->characters + 2 * i)
                                                  : tmk_load_u32(t->characters + 4 * i));
    return n;
}

/* ---- finding the interpreter ---- */

/* Another thread is at it: that takes well under a millisecond, once in a process's life. */
static void wait_for_look(void)
{
    int looking = LOOKING;
    for (int i = 0; i < 200 && atomic_load(&state) == LOOKING; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (atomic_load(&looker) != getpid()) /* we were forked meanwhile: nobody is */
        atomic_compare_exchange_strong(&state, &looking, NOT_LOOKED);
}

/* One thread looks. */
static bool look(void)
{
    uint64_t now = tmk_clock_monotonic_ns();
    int not_looked = NOT_LOOKED;
    if (now < atomic_load(&look_again_ns) ||
        !atomic_compare_exchange_strong(&state, &not_looked, LOOKING)) {
        if (not_looked == LOOKING)
            wait_for_look();
        return atomic_load(&state) == READY;
    }
    atomic_store(&looker, getpid());
    const char *reason = NULL;
    enum tmk_pylook found = tmk_pylayout_find(&runtime, &reason);
    if (found == TMK_PYLOOK_PROVEN) {
        tmk_pyframe_hot.this_thread = runtime.this_thread;
        tmk_thread_slot_find(runtime.this_thread, &tmk_pyframe_hot.slot);
        tmk_pyframe_hot.main_interpreter = runtime.main_interpreter;
        atomic_store_explicit(&tmk_pyframe_hot.hash, find_hash(&runtime.layout, false),
                              memory_order_release);
    }
    if (found == TMK_PYLOOK_REFUSED && atomic_fetch_add(&n_refused, 1) + 1 < MAX_REFUSALS)
        found = TMK_PYLOOK_LATER; /* one odd stack is no proof */
    atomic_store(&look_again_ns, now + (found == TMK_PYLOOK_NONE ? no_python_ns : no_frames_ns));
    atomic_store(&refusal, reason);
    atomic_store_explicit(&state,
                          found == TMK_PYLOOK_PROVEN    ? READY
                          : found == TMK_PYLOOK_REFUSED ? REFUSED
                                                        : NOT_LOOKED,
                          memory_order_release);
    return found == TMK_PYLOOK_PROVEN;
}

bool tmk_pyframe_look(void)
{
    if (atomic_load(&state) == LOOKING)
        wait_for_look();
    int now = atomic_load_explicit(&state, memory_order_acquire);
    return now == READY || (now == NOT_LOOKED && look());
}

const char *tmk_pyframe_refusal(void)
{
    return atomic_load(&state) == REFUSED ? atomic_load(&refusal) : NULL;
}
