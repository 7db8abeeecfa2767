/* SPDX-License-Identifier: MIT */
/* interop/scan_bytes.c - int8, uint8 and 8-bit floats, with AVX-512 alone.
 *
 * What a byte is (zero, denormal, not finite) and which is the least are seen from 64 bytes at a
 * time; only sums need wider lanes. Whole numbers are added up without their sign and put right
 * afterwards, exactly. Floats become float16 by moving their bits (e4m3 times 2^-8), and the
 * processor makes float32 of that; sums of few are as good in float32, of more they are doubles. */
#include "interop/scan_kernels.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <immintrin.h>

enum {
    WIDTH = 64,
    BLOCK = 8192,
    RUN = 32, /* vectors between two sums of doubles */
    AHEAD_BYTES = 1024,
};

/* ---- whole numbers ---- */

/* Sums of y = x + bias, and its extremes. */
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

static void add_whole(const uint8_t *at, uint64_t n, uint8_t bias, struct tmk_scan_sums *s)
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

struct small {
    uint64_t n_zero, n_small; /* magnitudes below the least normal one, zeros with them */
    bool is_odd;              /* something is not finite: the sums mean nothing */
    int least, most;          /* magnitudes with their sign */
    __m512d sum, squares;
};

static __m512d widen(__m512d to, __m512 x)
{
    __m256 high = (__m256)_mm512_extractf64x4_pd((__m512d)x, 1);
    to = _mm512_add_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    return _mm512_add_pd(to, _mm512_cvtps_pd(high));
}

/* 32 floats of float16's bits, into sums of two halves. */
static inline __attribute__((always_inline)) void add_halves(__m512i bits, __m512 *sum,
                                                             __m512 *squares)
{
    __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(bits));
    __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(bits, 1));
    sum[0] = _mm512_add_ps(sum[0], low);
    sum[1] = _mm512_add_ps(sum[1], high);
    squares[0] = _mm512_fmadd_ps(low, low, squares[0]);
    squares[1] = _mm512_fmadd_ps(high, high, squares[1]);
}

/* Bytes in the upper halves of 16 bits, as float16: e5m2 is that already. */
static inline __attribute__((always_inline)) __m512i to_half(__m512i upper, bool is_e4m3)
{
    if (!is_e4m3)
        return upper;
    __m512i sign = _mm512_and_si512(upper, _mm512_set1_epi16((short)0x8000));
    __m512i rest = _mm512_and_si512(_mm512_srli_epi16(upper, 1), _mm512_set1_epi16(0x3f80));
    return _mm512_or_si512(sign, rest);
}

static inline __attribute__((always_inline)) struct small run_small(const uint8_t *at, uint64_t n,
                                                                    bool is_e4m3)
{
    __m512i none = _mm512_setzero_si512(), lowest = _mm512_set1_epi8(127),
            highest = _mm512_set1_epi8(-128), magnitude_mask = _mm512_set1_epi8(0x7f),
            normal = _mm512_set1_epi8(is_e4m3 ? 0x08 : 0x04),
            odd = _mm512_set1_epi8(is_e4m3 ? 0x7f : 0x7c);
    struct small b = {.least = 127, .most = -128};
    uint64_t is_odd = 0;
    for (uint64_t i = 0; i < n;) {
        __m512 sum[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        __m512 squares[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        uint64_t end = n - i < RUN * WIDTH ? n : i + RUN * WIDTH;
        for (; i < end; i += WIDTH) {
            __builtin_prefetch(at + i + AHEAD_BYTES);
            __m512i x = _mm512_loadu_si512(at + i), magnitude = _mm512_and_si512(x, magnitude_mask);
            __m512i value =
                _mm512_mask_sub_epi8(magnitude, _mm512_movepi8_mask(x), none, magnitude);
            b.n_zero +=
                (unsigned)__builtin_popcountll(_mm512_testn_epi8_mask(magnitude, magnitude));
            b.n_small += (unsigned)__builtin_popcountll(_mm512_cmplt_epi8_mask(magnitude, normal));
            is_odd |= _mm512_cmpge_epi8_mask(magnitude, odd);
            lowest = _mm512_min_epi8(lowest, value);
            highest = _mm512_max_epi8(highest, value);
            add_halves(to_half(_mm512_unpacklo_epi8(none, x), is_e4m3), sum, squares);
            add_halves(to_half(_mm512_unpackhi_epi8(none, x), is_e4m3), sum, squares);
        }
        b.sum = widen(widen(b.sum, sum[0]), sum[1]);
        b.squares = widen(widen(b.squares, squares[0]), squares[1]);
    }
    int8_t least[WIDTH], most[WIDTH];
    memcpy(least, &lowest, sizeof least);
    memcpy(most, &highest, sizeof most);
    for (unsigned i = 0; i < WIDTH; i++) {
        b.least = least[i] < b.least ? least[i] : b.least;
        b.most = most[i] > b.most ? most[i] : b.most;
    }
    b.is_odd = is_odd != 0;
    return b;
}

/* The value of a magnitude with its sign. */
static double value_of(int code, bool is_e4m3)
{
    int bits = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15, magnitude = code < 0 ? -code : code;
    int exponent = magnitude >> bits, mantissa = magnitude & ((1 << bits) - 1);
    double x = exponent ? ldexp((1 << bits) + mantissa, exponent - bias - bits)
                        : ldexp(mantissa, 1 - bias - bits);
    return code < 0 ? -x : x;
}

/* False when the block has something that is not finite; then nothing was added. */
static bool add_small(const struct small *b, uint64_t n, bool is_e4m3, struct tmk_scan_sums *s)
{
    double scale = is_e4m3 ? 256 : 1, least = value_of(b->least, is_e4m3),
           most = value_of(b->most, is_e4m3);
    if (b->is_odd)
        return false;
    s->min = least < s->min ? least : s->min;
    s->max = most > s->max ? most : s->max;
    s->n += n;
    s->n_zero += b->n_zero;
    s->n_denormal += b->n_small - b->n_zero;
    s->sum += scale * _mm512_reduce_add_pd(b->sum);
    s->squares += scale * scale * _mm512_reduce_add_pd(b->squares);
    return true;
}

static bool add_floats(const uint8_t *at, uint64_t n, bool is_e4m3, struct tmk_scan_sums *s)
{
    struct small b = is_e4m3 ? run_small(at, n, true) : run_small(at, n, false);
    return add_small(&b, n, is_e4m3, s);
}

uint64_t tmk_scan_bytes_avx512(enum tmk_weight_type type, const void *data, uint64_t n,
                               struct tmk_scan_sums *s)
{
    const uint8_t *at = data;
    bool is_float = type == TMK_WEIGHT_F8_E4M3 || type == TMK_WEIGHT_F8_E5M2;
    uint64_t done = 0;
    if (!is_float && type != TMK_WEIGHT_I8 && type != TMK_WEIGHT_U8)
        return 0;
    while (n - done >= WIDTH) {
        uint64_t m = n - done < BLOCK ? (n - done) / WIDTH * WIDTH : BLOCK;
        if (!is_float)
            add_whole(at + done, m, type == TMK_WEIGHT_I8 ? 128 : 0, s);
        else if (!add_floats(at + done, m, type == TMK_WEIGHT_F8_E4M3, s))
            break;
        done += m;
    }
    return done;
}
