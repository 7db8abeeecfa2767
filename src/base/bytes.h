/* SPDX-License-Identifier: MIT */
/* base/bytes.h - little-endian numbers, varints and bounded byte views.
 *
 * A view (struct tmk_view) never reads past its end: a get beyond it returns 0, parks the view at
 * its end and sets `bad`, so that a decoder checks once after a group of gets instead of after
 * each. A sink (struct tmk_sink) is the same for writing. */
#ifndef TMK_BASE_BYTES_H
#define TMK_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TMK_VARINT_MAX_BYTES = 10 };

static inline uint16_t tmk_load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t tmk_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t tmk_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void tmk_store_u32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof v);
}

static inline void tmk_store_u64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads above are little-endian");

static inline uint64_t tmk_zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t tmk_unzigzag(uint64_t z)
{
    return (int64_t)((z >> 1) ^ (0 - (z & 1)));
}

struct tmk_view {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

static inline struct tmk_view tmk_view_of(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    return (struct tmk_view){.at = at, .end = at + n};
}

static inline size_t tmk_view_left(const struct tmk_view *v)
{
    return (size_t)(v->end - v->at);
}

static inline uint64_t tmk_view_fail(struct tmk_view *v)
{
    v->at = v->end;
    v->bad = true;
    return 0;
}

/* Reads a varint byte by byte, for the last bytes of a view and for long numbers. */
uint64_t tmk_view_varint_slow(struct tmk_view *v);

/* Reads the next varint. Numbers of up to eight bytes are taken without a loop: find the first byte
 * without its high bit, keep what lies below, squeeze the seven-bit groups together. */
static inline uint64_t tmk_view_varint(struct tmk_view *v)
{
    if (__builtin_expect(v->end - v->at < 8, 0))
        return tmk_view_varint_slow(v);
    uint64_t word = tmk_load_u64(v->at);
    uint64_t stops = ~word & 0x8080808080808080u;
    if (__builtin_expect(stops == 0, 0))
        return tmk_view_varint_slow(v);
    uint64_t below = stops ^ (stops - 1); /* all bits up to the stop bit */
    v->at += ((unsigned)__builtin_ctzll(stops) >> 3) + 1;
    word &= below & 0x7f7f7f7f7f7f7f7fu;
    word = (word & 0x007f007f007f007fu) | ((word & 0x7f007f007f007f00u) >> 1);
    word = (word & 0x00003fff00003fffu) | ((word & 0x3fff00003fff0000u) >> 2);
    return (word & 0x000000000fffffffu) | ((word & 0x0fffffff00000000u) >> 4);
}

static inline int64_t tmk_view_zigzag(struct tmk_view *v)
{
    return tmk_unzigzag(tmk_view_varint(v));
}

/* Takes the next n bytes as a separate view; an empty bad one when there are fewer. */
static inline struct tmk_view tmk_view_take(struct tmk_view *v, uint64_t n)
{
    if (n > tmk_view_left(v)) {
        (void)tmk_view_fail(v);
        return (struct tmk_view){.at = v->end, .end = v->end, .bad = true};
    }
    struct tmk_view part = {.at = v->at, .end = v->at + n};
    v->at += n;
    return part;
}

/* A growing end in a buffer of fixed size. */
struct tmk_sink {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool full; /* something did not fit: the content is not to be used */
};

static inline struct tmk_sink tmk_sink_of(void *buffer, size_t n)
{
    uint8_t *start = buffer;
    return (struct tmk_sink){.start = start, .at = start, .end = start + n};
}

static inline size_t tmk_sink_length(const struct tmk_sink *s)
{
    return (size_t)(s->at - s->start);
}

static inline void tmk_sink_varint(struct tmk_sink *s, uint64_t value)
{
    if (__builtin_expect(s->end - s->at < TMK_VARINT_MAX_BYTES, 0)) {
        s->full = true;
        return;
    }
    uint8_t *at = s->at;
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    s->at = at;
}

static inline void tmk_sink_zigzag(struct tmk_sink *s, int64_t value)
{
    tmk_sink_varint(s, tmk_zigzag(value));
}

static inline void tmk_sink_bytes(struct tmk_sink *s, const void *bytes, size_t n)
{
    if ((size_t)(s->end - s->at) < n) {
        s->full = true;
        return;
    }
    if (n > 0)
        memcpy(s->at, bytes, n);
    s->at += n;
}

/* How many bytes a varint takes. */
static inline size_t tmk_varint_bytes(uint64_t value)
{
    return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

#endif
