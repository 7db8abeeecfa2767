/* SPDX-License-Identifier: MIT */
/* record/python/pyframe.c - see pyframe.h. */
#include "record/python/pyframe.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "record/core/hot.h"
#include "record/core/thread_slot.h"
#include "record/python/pycodes.h"
#include "record/python/pyknown.h"
#include "record/python/pylayout.h"
#include "record/python/pyread.h"
#include "record/python/pyruntime.h"

enum state { NOT_LOOKED, LOOKING, READY, REFUSED };

struct tmk_pyruntime tmk_pyframe_runtime; /* valid when READY */
struct tmk_pyframe_hot tmk_pyframe_hot TMK_HOT_DATA;
static _Atomic int look_state;
static _Atomic pid_t looker;
static _Atomic int n_refused;
enum { MAX_REFUSALS = 5 };
static const char *_Atomic look_refusal;
static _Atomic uint64_t look_again_ns;
static const uint64_t no_python_ns = 100000000; /* between searches while there is no interpreter */
static const uint64_t no_frames_ns = 1000000;   /* the same while threads without frames ask */

/* ---- code objects ---- */

/* The bits of a string's state: how interned, kind (three bits), compact, ascii. Strings of code
 * objects are compact: the characters follow the header. */
static struct tmk_pytext text_at(const struct tmk_pylayout *l, const void *text)
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
    const struct tmk_pylayout *l = &tmk_pyframe_runtime.layout;
    const uint8_t *lines = tmk_pyread_pointer(code, l->code_lines);
    *ret = (struct tmk_pycode){
        .file = text_at(l, tmk_pyread_pointer(code, l->code_file)),
        .name = text_at(l, tmk_pyread_pointer(code, l->code_name)),
        .first_line = tmk_load_u32((const uint8_t *)code + l->code_first_line),
        .layout = l->lines,
        .lines = lines + l->bytes_start,
        .n_line_bytes = (size_t)tmk_load_u64(lines + l->bytes_size),
    };
}

static size_t put_utf8_character(char *out, uint32_t c)
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
        n += put_utf8_character(buffer + n, t->width == 1   ? t->characters[i]
                                            : t->width == 2 ? tmk_load_u16(t->characters + 2 * i)
                                                            : tmk_load_u32(t->characters + 4 * i));
    return n;
}

/* ---- finding the interpreter ---- */

/* Wait for the thread that is looking: that takes well under a millisecond, once in a process's
 * life. */
static void wait_for_look(void)
{
    int looking = LOOKING;
    for (int i = 0; i < 200 && atomic_load(&look_state) == LOOKING; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (atomic_load(&looker) != getpid()) /* we were forked meanwhile, so no thread is looking */
        atomic_compare_exchange_strong(&look_state, &looking, NOT_LOOKED);
}

/* Look, unless another thread does. */
static bool look_for_interpreter(void)
{
    uint64_t now = tmk_clock_monotonic_ns();
    int not_looked = NOT_LOOKED;
    if (now < atomic_load(&look_again_ns) ||
        !atomic_compare_exchange_strong(&look_state, &not_looked, LOOKING)) {
        if (not_looked == LOOKING)
            wait_for_look();
        return atomic_load(&look_state) == READY;
    }
    atomic_store(&looker, getpid());
    const char *reason = NULL;
    enum tmk_pyruntime_found found = tmk_pyruntime_find(&tmk_pyframe_runtime, &reason);
    if (found == TMK_PYRUNTIME_PROVEN) {
        tmk_thread_slot_find(tmk_pyframe_runtime.this_thread, &tmk_pyframe_hot.slot);
        const struct tmk_pylayout *l = &tmk_pyframe_runtime.layout;
        tmk_pyframe_hot.worker.thread_frame = l->thread_frame;
        tmk_pyframe_hot.worker.cframe_frame = l->cframe_frame;
        tmk_pyframe_hot.worker.indirect = l->indirect;
        tmk_pyframe_hot.worker.slot = tmk_pyframe_hot.slot;
        tmk_pyframe_hot.main_interpreter = tmk_pyframe_runtime.main_interpreter;
        tmk_pyknown_set_watched(false);
    }
    if (found == TMK_PYRUNTIME_REFUSED && atomic_fetch_add(&n_refused, 1) + 1 < MAX_REFUSALS)
        found = TMK_PYRUNTIME_LATER; /* one odd stack proves nothing */
    atomic_store(&look_again_ns, now + (found == TMK_PYRUNTIME_NONE ? no_python_ns : no_frames_ns));
    atomic_store(&look_refusal, reason);
    atomic_store_explicit(&look_state,
                          found == TMK_PYRUNTIME_PROVEN    ? READY
                          : found == TMK_PYRUNTIME_REFUSED ? REFUSED
                                                           : NOT_LOOKED,
                          memory_order_release);
    return found == TMK_PYRUNTIME_PROVEN;
}

bool tmk_pyframe_look(void)
{
    if (atomic_load(&look_state) == LOOKING)
        wait_for_look();
    int now = atomic_load_explicit(&look_state, memory_order_acquire);
    return now == READY || (now == NOT_LOOKED && look_for_interpreter());
}

const char *tmk_pyframe_refusal(void)
{
    return atomic_load(&look_state) == REFUSED ? atomic_load(&look_refusal) : NULL;
}

/* ---- walking ---- */

const struct tmk_code_range *tmk_pyframe_range(void)
{
    return &tmk_pyframe_runtime.image;
}

void tmk_pyframe_walk(struct tmk_pystack *ret)
{
    const struct tmk_pylayout *l = &tmk_pyframe_runtime.layout;
    const void *frame = tmk_pyread_next_function(l, tmk_pyread_top(l, tmk_pyread_thread()));
    ret->n_frames = 0;
    while (frame && ret->n_frames < TMK_PYFRAME_MAX) {
        const void *code = tmk_pyread_code(l, frame);
        tmk_pycodes_note(code);
        ret->frames[ret->n_frames++] =
            (struct tmk_pyframe){.code = code, .offset = tmk_pyread_offset(l, frame, code)};
        frame = tmk_pyread_next_function(l, tmk_pyread_pointer(frame, l->frame_back));
    }
    ret->cut = frame != NULL;
}
