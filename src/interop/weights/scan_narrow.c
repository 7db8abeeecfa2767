/* SPDX-License-Identifier: MIT */
/* interop/weights/scan_narrow.c - a faster scan of 8-bit whole numbers and of 8- and 16-bit
 * floats, with AVX-512 only.
 *
 * Kinds and extremes are found 64 bytes at a time, as they stand in the file; only sums need
 * wider lanes. Whole numbers are summed without their sign and corrected afterwards, exactly.
 *
 * A float's bits are a sign and a magnitude that grows with the value. So the largest of the bits
 * taken as unsigned is the lowest negative number, and taken as signed the highest positive one:
 * four extremes of bits give the least, the most, and whether all is finite. Bytes become float16
 * by shifting their bits (e4m3 times 2^-8), the processor converts that to float32, and bfloat16
 * is the upper half of a float32. Sums of few are as good in float32; sums of more are doubles.
 *
 * The file is worth its lines: with it a core scans 47 to 56 GB of float16, bfloat16 or uint8 a
 * second, and with the loops of scan_kernels.c built for AVX-512 21 to 24. Most weights have those
 * types. */
#include "interop/weights/scan_kernels.h"
#include "interop/weights/weights.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <immintrin.h>

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum {
    WIDTH = 64,
    BLOCK = 8192,
    RUN = 32, /* vectors between two sums in doubles */
    AHEAD_BYTES = 1024,
};

/* ---- whole numbers ---- */

/* The sums of y = x + bias, and its extremes. */
struct whole {
    uint64_t n_zero, sum, squares;
    uint8_t least, most;
};

static struct whole run_whole(const uint8_t *at, uint64_t n, uint8_t bias)
{
    struct whole b = {.least = UINT8_MAX};
    uint8_t least[WIDTH], most[WIDTH];
    __m512i none = _mm512_setzero_si512(), lowest = _mm512_set1_epi8(-1), highest = none;
    __m512i sum = none, squares = none, shift = _mm512_set1_epi8((char)bias);
    for (uint64_t i = 0; i < n; i += WIDTH) {
        __builtin_prefetch(at + i + AHEAD_BYTES);
        __m512i x = _mm512_loadu_si512(at + i), y = _mm512_xor_si512(x, shift);
        __m512i low = _mm512_unpacklo_epi8(y, none), high = _mm512_unpackhi_epi8(y, none);
        b.n_zero += (unsigned)__builtin_popcountll(_mm512_testn_epi8_mask(x, x));
        lowest = _mm512_min_epu8(lowest, y);
        highest = _mm512_max_epu8(highest, y);
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(y, none));
        squares = _mm512_add_epi32(squares, _mm512_madd_epi16(low, low));
        squares = _mm512_add_epi32(squares, _mm512_madd_epi16(high, high));
    }
    b.sum = (uint64_t)_mm512_reduce_add_epi64(sum);
    b.squares = (uint32_t)_mm512_reduce_add_epi32(squares); /* at most 8192 * 255 * 255 */
    memcpy(least, &lowest, sizeof least);
    memcpy(most, &highest, sizeof most);
    for (unsigned i = 0; i < WIDTH; i++) {
        b.least = least[i] < b.least ? least[i] : b.least;
        b.most = most[i] > b.most ? most[i] : b.most;
    }
    return b;
}

static void add_whole_numbers(const uint8_t *at, uint64_t n, uint8_t bias, struct tmk_scan_sums *s)
{
    struct whole b = run_whole(at, n, bias);
    int64_t sum = (int64_t)b.sum - (int64_t)(bias * n);
    int64_t squares = (int64_t)b.squares - 2 * bias * (int64_t)b.sum + (int64_t)(bias * bias * n);
    s->min = b.least - bias < s->min ? b.least - bias : s->min;
    s->max = b.most - bias > s->max ? b.most - bias : s->max;
    s->n += n;
    s->n_zero += b.n_zero;
    s->sum += (double)sum;
    s->squares += (double)squares;
}

/* ---- floats ---- */

struct float_layout {
    unsigned n_bytes, mantissa_bits;
    int bias;
    uint32_t exponent; /* the exponent's bits: none is set in zeros and denormals */
    uint32_t odd;      /* the first magnitude that is not finite */
    double scale;      /* factor from what was summed to the sum */
};

static const struct float_layout e4m3 = {1, 3, 7, 0x78, 0x7f, 256};
static const struct float_layout e5m2 = {1, 2, 15, 0x7c, 0x7c, 1};
static const struct float_layout float16 = {2, 10, 15, 0x7c00, 0x7c00, 1};
static const struct float_layout bfloat16 = {2, 7, 127, 0x7f80, 0x7f80, 1};

/* What was seen, lane by lane: least and most of the bits, as unsigned and as signed. */
struct seen {
    uint64_t n_zero, n_small; /* magnitudes below the least normal one, including zeros */
    __m512i least_bits, most_bits, least_signed, most_signed;
    __m512d sum, squares;
};

ALWAYS_INLINE void look_at_bytes(struct seen *b, __m512i x, struct float_layout f)
{
    __m512i magnitude = _mm512_set1_epi8(0x7f), exponent = _mm512_set1_epi8((char)f.exponent);
    b->n_zero += (unsigned)__builtin_popcountll(_mm512_testn_epi8_mask(x, magnitude));
    b->n_small += (unsigned)__builtin_popcountll(_mm512_testn_epi8_mask(x, exponent));
    b->least_bits = _mm512_min_epu8(b->least_bits, x);
    b->most_bits = _mm512_max_epu8(b->most_bits, x);
    b->least_signed = _mm512_min_epi8(b->least_signed, x);
    b->most_signed = _mm512_max_epi8(b->most_signed, x);
}

ALWAYS_INLINE void look_at_halves(struct seen *b, __m512i x, struct float_layout f)
{
    __m512i magnitude = _mm512_set1_epi16(0x7fff), exponent = _mm512_set1_epi16((short)f.exponent);
    b->n_zero += (unsigned)__builtin_popcount(_mm512_testn_epi16_mask(x, magnitude));
    b->n_small += (unsigned)__builtin_popcount(_mm512_testn_epi16_mask(x, exponent));
    b->least_bits = _mm512_min_epu16(b->least_bits, x);
    b->most_bits = _mm512_max_epu16(b->most_bits, x);
    b->least_signed = _mm512_min_epi16(b->least_signed, x);
    b->most_signed = _mm512_max_epi16(b->most_signed, x);
}

/* Sums of 32 lanes, in float32. */
struct sums {
    __m512 sum[2], squares[2];
};

ALWAYS_INLINE void add_pair(struct sums *to, __m512 low, __m512 high)
{
    to->sum[0] = _mm512_add_ps(to->sum[0], low);
    to->sum[1] = _mm512_add_ps(to->sum[1], high);
    to->squares[0] = _mm512_fmadd_ps(low, low, to->squares[0]);
    to->squares[1] = _mm512_fmadd_ps(high, high, to->squares[1]);
}

ALWAYS_INLINE void add_float16(struct sums *to, __m512i bits)
{
    add_pair(to, _mm512_cvtph_ps(_mm512_castsi512_si256(bits)),
             _mm512_cvtph_ps(_mm512_extracti64x4_epi64(bits, 1)));
}

/* Convert a byte in the upper half of 16 bits to float16: e5m2 is that already. The exponent of
 * e4m3 has one bit less, so everything except the sign moves down; the shift doubles the sign,
 * hence the mask. */
ALWAYS_INLINE __m512i to_float16(__m512i upper, struct float_layout f)
{
    if (f.mantissa_bits == e5m2.mantissa_bits)
        return upper;
    return _mm512_and_si512(_mm512_srai_epi16(upper, 1), _mm512_set1_epi16((short)0xbf80));
}

ALWAYS_INLINE void add_values(struct sums *to, __m512i x, struct float_layout f)
{
    const __m512i none = _mm512_setzero_si512();
    if (f.n_bytes == 1) {
        add_float16(to, to_float16(_mm512_unpacklo_epi8(none, x), f));
        add_float16(to, to_float16(_mm512_unpackhi_epi8(none, x), f));
    } else if (f.bias == bfloat16.bias) {
        add_pair(to, (__m512)_mm512_unpacklo_epi16(none, x),
                 (__m512)_mm512_unpackhi_epi16(none, x));
    } else {
        add_float16(to, x);
    }
}

static __m512d widen_sums(__m512d to, const __m512 x[2])
{
    for (unsigned i = 0; i < 2; i++) {
        __m256 high = (__m256)_mm512_extractf64x4_pd((__m512d)x[i], 1);
        to = _mm512_add_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(x[i])));
        to = _mm512_add_pd(to, _mm512_cvtps_pd(high));
    }
    return to;
}

/* Look at whole vectors, at least one. */
ALWAYS_INLINE struct seen look(const uint8_t *at, uint64_t n_bytes, struct float_layout f)
{
    __m512i first = _mm512_loadu_si512(at);
    struct seen b = {.least_bits = first,
                     .most_bits = first,
                     .least_signed = first,
                     .most_signed = first,
                     .sum = _mm512_setzero_pd(),
                     .squares = _mm512_setzero_pd()};
    for (uint64_t i = 0; i < n_bytes;) {
        struct sums sums = {{_mm512_setzero_ps(), _mm512_setzero_ps()},
                            {_mm512_setzero_ps(), _mm512_setzero_ps()}};
        uint64_t end = n_bytes - i < RUN * WIDTH ? n_bytes : i + RUN * WIDTH;
        for (; i < end; i += WIDTH) {
            __builtin_prefetch(at + i + AHEAD_BYTES);
            __m512i x = _mm512_loadu_si512(at + i);
            if (f.n_bytes == 1)
                look_at_bytes(&b, x, f);
            else
                look_at_halves(&b, x, f);
            add_values(&sums, x, f);
        }
        b.sum = widen_sums(b.sum, sums.sum);
        b.squares = widen_sums(b.squares, sums.squares);
    }
    return b;
}

/* The extremes over all lanes. */
struct extremes {
    uint32_t least_bits, most_bits;
    int32_t least_signed, most_signed;
};

static uint32_t bits_at(const uint8_t *at, unsigned n_bytes)
{
    return n_bytes == 1 ? at[0] : (uint32_t)(at[0] | at[1] << 8);
}

static int32_t with_sign(uint32_t bits, unsigned n_bytes)
{
    return n_bytes == 1 ? (int8_t)bits : (int16_t)bits;
}

static struct extremes extremes_of(const struct seen *b, unsigned n_bytes)
{
    uint8_t least[WIDTH], most[WIDTH], least_signed[WIDTH], most_signed[WIDTH];
    struct extremes e = {UINT32_MAX, 0, INT32_MAX, INT32_MIN};
    memcpy(least, &b->least_bits, WIDTH);
    memcpy(most, &b->most_bits, WIDTH);
    memcpy(least_signed, &b->least_signed, WIDTH);
    memcpy(most_signed, &b->most_signed, WIDTH);
    for (unsigned i = 0; i < WIDTH; i += n_bytes) {
        uint32_t low = bits_at(least + i, n_bytes), high = bits_at(most + i, n_bytes);
        int32_t low_signed = with_sign(bits_at(least_signed + i, n_bytes), n_bytes);
        int32_t high_signed = with_sign(bits_at(most_signed + i, n_bytes), n_bytes);
        e.least_bits = low < e.least_bits ? low : e.least_bits;
        e.most_bits = high > e.most_bits ? high : e.most_bits;
        e.least_signed = low_signed < e.least_signed ? low_signed : e.least_signed;
        e.most_signed = high_signed > e.most_signed ? high_signed : e.most_signed;
    }
    return e;
}

/* The value that the bits stand for. */
static double value_of_bits(uint32_t bits, struct float_layout f)
{
    uint32_t sign = 1u << (8 * f.n_bytes - 1), magnitude = bits & (sign - 1);
    int exponent = (int)(magnitude >> f.mantissa_bits), least = 1 - f.bias - (int)f.mantissa_bits;
    double one = 1u << f.mantissa_bits, mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
    double x = exponent ? ldexp(one + mantissa, exponent - 1 + least) : ldexp(mantissa, least);
    return magnitude && (bits & sign) ? -x : x;
}

/* bfloat16 has the range of float32, so squares may exceed it: were they lost in float32? */
static bool are_squares_exact(uint64_t n, uint64_t n_zero, double squares, struct float_layout f)
{
    return f.bias != bfloat16.bias || n_zero == n || (squares > 1e-30 && squares < 1e38);
}

/* Returns false when the block has something that is not finite, or too large or small for
 * float32's sums; then nothing was added. */
ALWAYS_INLINE bool add_floats(const uint8_t *at, uint64_t n_bytes, struct float_layout f,
                              struct tmk_scan_sums *s)
{
    struct seen b = look(at, n_bytes, f);
    struct extremes e = extremes_of(&b, f.n_bytes);
    uint32_t sign = 1u << (8 * f.n_bytes - 1);
    double squares = _mm512_reduce_add_pd(b.squares);
    uint64_t n = n_bytes / f.n_bytes;
    if (e.most_signed >= (int32_t)f.odd || e.most_bits >= (sign | f.odd) ||
        !are_squares_exact(n, b.n_zero, squares, f))
        return false;
    /* Without negative numbers the least is a positive one, and vice versa. */
    double least = value_of_bits(e.most_bits >= sign ? e.most_bits : e.least_bits, f);
    double most = value_of_bits((uint32_t)(e.most_signed >= 0 ? e.most_signed : e.least_signed), f);
    s->min = least < s->min ? least : s->min;
    s->max = most > s->max ? most : s->max;
    s->n += n;
    s->n_zero += b.n_zero;
    s->n_denormal += b.n_small - b.n_zero;
    s->sum += f.scale * _mm512_reduce_add_pd(b.sum);
    s->squares += f.scale * f.scale * squares;
    return true;
}

static bool add_narrow_bytes(enum tmk_weight_type type, const uint8_t *at, uint64_t n_bytes,
                             struct tmk_scan_sums *s)
{
    switch (type) {
    case TMK_WEIGHT_I8:
    case TMK_WEIGHT_U8:
        add_whole_numbers(at, n_bytes, type == TMK_WEIGHT_I8 ? 128 : 0, s);
        return true;
    case TMK_WEIGHT_F8_E4M3:
        return add_floats(at, n_bytes, e4m3, s);
    case TMK_WEIGHT_F8_E5M2:
        return add_floats(at, n_bytes, e5m2, s);
    case TMK_WEIGHT_F16:
        return add_floats(at, n_bytes, float16, s);
    case TMK_WEIGHT_BF16:
        return add_floats(at, n_bytes, bfloat16, s);
    default:
        return false;
    }
}

uint64_t tmk_scan_narrow_avx512(enum tmk_weight_type type, const void *data, uint64_t n,
                                struct tmk_scan_sums *s)
{
    const uint8_t *at = data;
    uint64_t item = tmk_weight_type_bytes(type), n_bytes = n * item, done = 0;
    while (n_bytes - done >= WIDTH) {
        uint64_t m = n_bytes - done < BLOCK ? (n_bytes - done) / WIDTH * WIDTH : BLOCK;
        if (!add_narrow_bytes(type, at + done, m, s))
            break;
        done += m;
    }
    return done / item;
}
