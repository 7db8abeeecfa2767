/* SPDX-License-Identifier: MIT */
/* interop/weights/scan_kernels.c - one pass over numbers: counts, extremes, sum and sum of
 * squares.
 *
 * It is built once for each width of vectors, with TMK_SCAN_KERNEL as the name of its one
 * function (meson.build). Floats of 32 bits and fewer become vectors of float32 and the bits of
 * their absolute values; those bits tell zero, denormal and not finite, so that no comparison of
 * NaNs is needed. Sums are doubles: exact enough for any tensor with a spread above 1e-7 of its
 * mean.
 *
 * The fast loop assumes that everything is finite and notes whether that was so; a block with a
 * NaN or an infinity is done again, one by one. So each is found with its index, and the usual
 * tensor pays two instructions for it. */
#include "interop/weights/scan_kernels.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef TMK_SCAN_KERNEL
#define TMK_SCAN_KERNEL tmk_scan_kernel_plain
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* In C, vectors can only be named by a typedef; these are the only ones. */
typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t signs __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t words_64 __attribute__((vector_size(VECTOR_BYTES)));
typedef int64_t signs_64 __attribute__((vector_size(VECTOR_BYTES)));

enum {
    LANES = VECTOR_BYTES / 4,
    LANES_64 = VECTOR_BYTES / 8,
    BLOCK = 8192, /* elements: few enough that counts cannot overflow, and a second pass finds them
                     in cache */
    RUN = 32,     /* vectors with sums in float: their squares are exact in it */
    AHEAD_BYTES = 1024, /* prefetch distance */
    LINE_BYTES = 64,
};

/* ---- how small floats are laid out ---- */

struct kernel_format {
    uint32_t n_bytes;
    uint32_t sign, magnitude; /* bit masks as in the file, shifted up by `up` */
    uint32_t up;          /* bf16 is the upper half of float32, e5m2 the upper half of float16 */
    uint32_t shift, bias; /* mantissa and exponent from there to float32; 0: it is float32 */
    uint32_t least_normal,
        least_odd;     /* magnitudes: the first normal one, the first that is not finite */
    uint32_t infinite; /* magnitude; 0: there is none */
};

#define F32                                                                                        \
    ((struct kernel_format){4, 0x80000000, 0x7fffffff, 0, 0, 0, 0x00800000, 0x7f800000, 0x7f800000})
#define BF16                                                                                       \
    ((struct kernel_format){2, 0x80000000, 0x7fffffff, 16, 0, 0, 0x00800000, 0x7f800000,           \
                            0x7f800000})
#define F16 ((struct kernel_format){2, 0x8000, 0x7fff, 0, 13, 112, 0x0400, 0x7c00, 0x7c00})
#define E5M2 ((struct kernel_format){1, 0x8000, 0x7fff, 8, 13, 112, 0x0400, 0x7c00, 0x7c00})
#define E4M3 ((struct kernel_format){1, 0x80, 0x7f, 0, 20, 120, 0x08, 0x7f, 0})

/* ---- elements of any width, as 32 bits ---- */

ALWAYS_INLINE words load(const uint8_t *at, uint32_t n_bytes)
{
    words v = {0};
    if (n_bytes == 4) {
        memcpy(&v, at, sizeof v);
        return v;
    }
#if VECTOR_BYTES == 64
    if (n_bytes == 2)
        return (words)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at));
    return (words)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)at));
#elif VECTOR_BYTES == 32
    if (n_bytes == 2)
        return (words)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at));
    return (words)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
#else
    for (unsigned i = 0; i < LANES; i++)
        v[i] = n_bytes == 2 ? (uint32_t)(at[2 * i] | at[2 * i + 1] << 8) : at[i];
    return v;
#endif
}

ALWAYS_INLINE floats to_float(words bits, struct kernel_format f)
{
    if (f.shift == 0)
        return (floats)bits;
#if VECTOR_BYTES == 64
    if (f.sign == 0x8000)
        return (floats)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)bits));
#endif
    words magnitude = bits & f.magnitude, moved = magnitude << f.shift;
    words normal = moved + (f.bias << 23);
    /* A denormal is an exact multiple of the least one: put it after a 1 and subtract that. */
    words one = (words){0} + ((f.bias + 1) << 23);
    words small = (words)((floats)(moved + one) - (floats)one);
    words is_small = (words)((signs)magnitude < (int32_t)f.least_normal);
    words sign = (bits & f.sign) << (f.sign == 0x8000 ? 16 : 24);
    return (floats)((is_small & small) | (~is_small & normal) | sign);
}

/* Convert one element; if it is finite the value is right. */
ALWAYS_INLINE double one_of(const uint8_t *at, struct kernel_format f, uint32_t *ret_magnitude)
{
    uint32_t bits = 0;
    memcpy(&bits, at, f.n_bytes);
    bits <<= f.up;
    union {
        uint32_t u;
        float f;
    } x = {.u = bits}, one = {.u = (f.bias + 1) << 23};
    *ret_magnitude = bits & f.magnitude;
    if (f.shift > 0 && *ret_magnitude >= f.least_normal) {
        x.u = (*ret_magnitude << f.shift) + (f.bias << 23);
    } else if (f.shift > 0) {
        x.u = (*ret_magnitude << f.shift) + one.u;
        x.f -= one.f;
    }
    return f.shift > 0 && (bits & f.sign) ? -(double)x.f : (double)x.f;
}

static void add_one_number(struct tmk_scan_sums *s, double x)
{
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
    s->sum += x;
    s->squares += x * x;
}

static void add_odd_number(struct tmk_scan_sums *s, uint64_t index, bool is_infinite)
{
    uint64_t *first = is_infinite ? &s->first_inf : &s->first_nan;
    *(is_infinite ? &s->n_inf : &s->n_nan) += 1;
    if (*first == UINT64_MAX)
        *first = index;
}

ALWAYS_INLINE void one_by_one(const uint8_t *at, uint64_t n, struct kernel_format f,
                              struct tmk_scan_sums *s)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t magnitude;
        double x = one_of(at + i * f.n_bytes, f, &magnitude);
        if (magnitude >= f.least_odd) {
            add_odd_number(s, s->n + i, f.infinite && magnitude == f.infinite);
            continue;
        }
        s->n_zero += magnitude == 0;
        s->n_denormal += magnitude != 0 && magnitude < f.least_normal;
        add_one_number(s, x);
    }
    s->n += n;
}

/* ---- a block of floats of 32 bits and fewer ---- */

ALWAYS_INLINE floats lesser(floats a, floats b)
{
#if VECTOR_BYTES == 64
    return (floats)_mm512_min_ps((__m512)a, (__m512)b);
#elif VECTOR_BYTES == 32
    return (floats)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__)
    return (floats)_mm_min_ps((__m128)a, (__m128)b);
#else
    words less = (words)(a < b);
    return (floats)(((words)a & less) | ((words)b & ~less));
#endif
}

/* One half of a vector, as doubles. */
ALWAYS_INLINE doubles half_of(floats x, unsigned half)
{
#if VECTOR_BYTES == 64
    __m512d whole = (__m512d)x;
    __m256d part = half ? _mm512_extractf64x4_pd(whole, 1) : _mm512_castpd512_pd256(whole);
    return (doubles)_mm512_cvtps_pd((__m256)part);
#elif VECTOR_BYTES == 32
    __m256 whole = (__m256)x;
    return (doubles)_mm256_cvtps_pd(half ? _mm256_extractf128_ps(whole, 1)
                                         : _mm256_castps256_ps128(whole));
#elif defined(__SSE2__)
    __m128 whole = (__m128)x;
    return (doubles)_mm_cvtps_pd(half ? _mm_movehl_ps(whole, whole) : whole);
#else
    return (doubles){x[2 * half], x[2 * half + 1]};
#endif
}

/* The sums of a block, lane by lane. */
struct kernel_block {
    words n_zero, n_small, odd;
    floats least, minus_most;
    doubles sum[2], squares[2];
};

/* Returns false when the block has something that is not finite; then nothing was added. */
static bool add_kernel_block(struct tmk_scan_sums *s, const struct kernel_block *b, uint64_t n)
{
    uint32_t odd = 0, n_zero = 0, n_small = 0;
    for (unsigned i = 0; i < LANES; i++)
        odd |= b->odd[i];
    if (odd & 0x80000000)
        return false;
    for (unsigned i = 0; i < LANES; i++) {
        double least = (double)b->least[i], most = -(double)b->minus_most[i];
        n_zero += b->n_zero[i];
        n_small += b->n_small[i];
        s->min = least < s->min ? least : s->min;
        s->max = most > s->max ? most : s->max;
    }
    for (unsigned i = 0; i < LANES_64; i++) {
        s->sum += b->sum[0][i] + b->sum[1][i];
        s->squares += b->squares[0][i] + b->squares[1][i];
    }
    s->n += n;
    s->n_zero += n_zero;
    s->n_denormal += n_small - n_zero;
    return true;
}

/* For 16 bits and fewer, sums of a few are as good in float32 (`is_narrow`), and half the work. */
ALWAYS_INLINE struct kernel_block run_block(const uint8_t *at, uint64_t n, struct kernel_format f,
                                            bool is_narrow)
{
    struct kernel_block b = {.least = (floats){0} + __builtin_inff(),
                             .minus_most = (floats){0} + __builtin_inff()};
    for (uint64_t i = 0; i < n;) {
        floats sum = {0}, squares = {0};
        uint64_t end = n - i < RUN * LANES ? n : i + RUN * LANES;
        for (; i < end; i += LANES) {
            __builtin_prefetch(at + i * f.n_bytes + AHEAD_BYTES);
            words bits = load(at + i * f.n_bytes, f.n_bytes) << f.up;
            words magnitude = bits & f.magnitude;
            floats x = to_float(bits, f);
            b.n_zero -= (words)((signs)magnitude == 0);
            b.n_small -= (words)((signs)magnitude < (int32_t)f.least_normal);
            b.odd |= magnitude +
                     (0x80000000 - f.least_odd); /* sets the highest bit if it is not finite */
            b.least = lesser(b.least, x);
            b.minus_most = lesser(b.minus_most, -x);
            if (is_narrow) {
                sum += x;
                squares += x * x;
                continue;
            }
            doubles low = half_of(x, 0), high = half_of(x, 1);
            b.sum[0] += low;
            b.sum[1] += high;
            b.squares[0] += low * low;
            b.squares[1] += high * high;
        }
        for (unsigned half = 0; is_narrow && half < 2; half++) {
            b.sum[half] += half ? half_of(sum, 1) : half_of(sum, 0);
            b.squares[half] += half ? half_of(squares, 1) : half_of(squares, 0);
        }
    }
    return b;
}

/* bf16 has the range of float32, so squares may exceed it: were they lost in float32? */
static bool is_block_exact(const struct kernel_block *b, uint64_t n)
{
    double squares = 0;
    uint64_t n_zero = 0;
    for (unsigned i = 0; i < LANES_64; i++)
        squares += b->squares[0][i] + b->squares[1][i];
    for (unsigned i = 0; i < LANES; i++)
        n_zero += b->n_zero[i];
    return n_zero == n || (squares > 1e-30 && squares < 1e38);
}

ALWAYS_INLINE void scan_small_floats(const uint8_t *at, uint64_t n, struct kernel_format f,
                                     struct tmk_scan_sums *s)
{
    while (n >= LANES) {
        uint64_t m = n < BLOCK ? n - n % LANES : BLOCK;
        struct kernel_block b = run_block(at, m, f, f.n_bytes < 4);
        if (f.n_bytes == 2 && f.shift == 0 && !is_block_exact(&b, m))
            b = run_block(at, m, f, false);
        if (!add_kernel_block(s, &b, m))
            one_by_one(at, m, f, s);
        at += m * f.n_bytes;
        n -= m;
    }
    one_by_one(at, n, f, s);
}

/* ---- float64 ---- */

static void one_double(const uint8_t *at, uint64_t index, struct tmk_scan_sums *s)
{
    uint64_t bits;
    double x;
    memcpy(&bits, at, 8);
    memcpy(&x, at, 8);
    bits &= INT64_MAX;
    if (bits >= 0x7ff0000000000000) {
        add_odd_number(s, index, bits == 0x7ff0000000000000);
        return;
    }
    s->n_zero += bits == 0;
    s->n_denormal += bits != 0 && bits < 0x0010000000000000;
    add_one_number(s, x);
}

static bool doubles_block(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)
{
    words_64 n_zero = {0}, n_small = {0}, odd = {0};
    doubles least = (doubles){0} + __builtin_inf(), most = -least, sum = {0}, squares = {0};
    for (uint64_t i = 0; i < n; i += LANES_64) {
        doubles x;
        __builtin_prefetch(at + 8 * i + AHEAD_BYTES);
        memcpy(&x, at + 8 * i, sizeof x);
        words_64 magnitude = (words_64)x & INT64_MAX;
        n_zero -= (words_64)((signs_64)magnitude == 0);
        n_small -= (words_64)((signs_64)magnitude < 0x0010000000000000);
        odd |= magnitude + 0x0010000000000000;
        words_64 is_less = (words_64)(x < least), is_more = (words_64)(x > most);
        least = (doubles)(((words_64)x & is_less) | ((words_64)least & ~is_less));
        most = (doubles)(((words_64)x & is_more) | ((words_64)most & ~is_more));
        sum += x;
        squares += x * x;
    }
    for (unsigned i = 0; i < LANES_64; i++)
        if (odd[i] >> 63)
            return false;
    for (unsigned i = 0; i < LANES_64; i++) {
        s->n_zero += n_zero[i];
        s->n_denormal += n_small[i] - n_zero[i];
        s->min = least[i] < s->min ? least[i] : s->min;
        s->max = most[i] > s->max ? most[i] : s->max;
        s->sum += sum[i];
        s->squares += squares[i];
    }
    s->n += n;
    return true;
}

static void scan_doubles(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)
{
    while (n > 0) {
        uint64_t m = n < BLOCK ? n - n % LANES_64 : BLOCK;
        if (m > 0 && doubles_block(at, m, s)) {
            at += 8 * m;
            n -= m;
            continue;
        }
        m = m ? m : n;
        for (uint64_t i = 0; i < m; i++)
            one_double(at + 8 * i, s->n + i, s);
        s->n += m;
        at += 8 * m;
        n -= m;
    }
}

/* ---- whole numbers: loops that the compiler makes vectors of ---- */

/* Prefetch what comes after this block while it is processed. */
static void prefetch_next_block(const uint8_t *at, uint64_t n_bytes)
{
    for (uint64_t i = 0; i < n_bytes; i += LINE_BYTES)
        __builtin_prefetch(at + i);
}

#define SCAN_SMALL_INTEGERS(name, type, wide, sum_type, square_type)                               \
    static void name(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)                       \
    {                                                                                              \
        type least, most;                                                                          \
        for (; n > 0;) {                                                                           \
            uint64_t m = n < BLOCK ? n : BLOCK;                                                    \
            uint16_t n_zero = 0;                                                                   \
            sum_type sum = 0;                                                                      \
            square_type squares = 0;                                                               \
            prefetch_next_block(at + m * sizeof(type), m * sizeof(type));                          \
            memcpy(&least, at, sizeof(type));                                                      \
            most = least;                                                                          \
            for (uint64_t i = 0; i < m; i++) {                                                     \
                type x;                                                                            \
                memcpy(&x, at + i * sizeof(type), sizeof(type));                                   \
                least = x < least ? x : least;                                                     \
                most = x > most ? x : most;                                                        \
                n_zero = (uint16_t)(n_zero + (x == 0));                                            \
                wide y = (wide)x;                                                                  \
                sum += y;                                                                          \
                squares += (square_type)(y * y);                                                   \
            }                                                                                      \
            s->min = (double)least < s->min ? (double)least : s->min;                              \
            s->max = (double)most > s->max ? (double)most : s->max;                                \
            s->n += m;                                                                             \
            s->n_zero += n_zero;                                                                   \
            s->sum += (double)sum;                                                                 \
            s->squares += (double)squares;                                                         \
            at += m * sizeof(type);                                                                \
            n -= m;                                                                                \
        }                                                                                          \
    }

SCAN_SMALL_INTEGERS(scan_i8, int8_t, int16_t, int32_t, int32_t)
SCAN_SMALL_INTEGERS(scan_u8, uint8_t, int16_t, int32_t, int32_t)
SCAN_SMALL_INTEGERS(scan_i16, int16_t, int32_t, int32_t, int64_t)
SCAN_SMALL_INTEGERS(scan_u16, uint16_t, uint32_t, uint32_t, uint64_t)

#define SCAN_LARGE_INTEGERS(name, type)                                                            \
    static void name(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)                       \
    {                                                                                              \
        double sum[8] = {0}, squares[8] = {0};                                                     \
        type least, most;                                                                          \
        uint64_t n_zero = 0;                                                                       \
        if (n == 0)                                                                                \
            return;                                                                                \
        memcpy(&least, at, sizeof(type));                                                          \
        most = least;                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            type x;                                                                                \
            memcpy(&x, at + i * sizeof(type), sizeof(type));                                       \
            least = x < least ? x : least;                                                         \
            most = x > most ? x : most;                                                            \
            n_zero += x == 0;                                                                      \
            sum[i % 8] += (double)x;                                                               \
            squares[i % 8] += (double)x * (double)x;                                               \
        }                                                                                          \
        s->min = (double)least < s->min ? (double)least : s->min;                                  \
        s->max = (double)most > s->max ? (double)most : s->max;                                    \
        s->n += n;                                                                                 \
        s->n_zero += n_zero;                                                                       \
        for (unsigned i = 0; i < 8; i++) {                                                         \
            s->sum += sum[i];                                                                      \
            s->squares += squares[i];                                                              \
        }                                                                                          \
    }

SCAN_LARGE_INTEGERS(scan_i32, int32_t)
SCAN_LARGE_INTEGERS(scan_u32, uint32_t)
SCAN_LARGE_INTEGERS(scan_i64, int64_t)
SCAN_LARGE_INTEGERS(scan_u64, uint64_t)

static void scan_bools(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)
{
    uint64_t n_true = 0;
    for (uint64_t i = 0; i < n; i++)
        n_true += at[i] != 0;
    if (n > n_true)
        s->min = 0 < s->min ? 0 : s->min, s->max = 0 > s->max ? 0 : s->max;
    if (n_true > 0)
        s->min = 1 < s->min ? 1 : s->min, s->max = 1 > s->max ? 1 : s->max;
    s->n += n;
    s->n_zero += n - n_true;
    s->sum += (double)n_true;
    s->squares += (double)n_true;
}

static void scan_any_type(enum tmk_weight_type type, const uint8_t *at, uint64_t n,
                          struct tmk_scan_sums *s)
{
    switch (type) {
    case TMK_WEIGHT_F64:
        scan_doubles(at, n, s);
        break;
    case TMK_WEIGHT_F32:
        scan_small_floats(at, n, F32, s);
        break;
    case TMK_WEIGHT_F16:
        scan_small_floats(at, n, F16, s);
        break;
    case TMK_WEIGHT_BF16:
        scan_small_floats(at, n, BF16, s);
        break;
    case TMK_WEIGHT_F8_E4M3:
        scan_small_floats(at, n, E4M3, s);
        break;
    case TMK_WEIGHT_F8_E5M2:
        scan_small_floats(at, n, E5M2, s);
        break;
    case TMK_WEIGHT_I64:
        scan_i64(at, n, s);
        break;
    case TMK_WEIGHT_I32:
        scan_i32(at, n, s);
        break;
    case TMK_WEIGHT_I16:
        scan_i16(at, n, s);
        break;
    case TMK_WEIGHT_I8:
        scan_i8(at, n, s);
        break;
    case TMK_WEIGHT_U64:
        scan_u64(at, n, s);
        break;
    case TMK_WEIGHT_U32:
        scan_u32(at, n, s);
        break;
    case TMK_WEIGHT_U16:
        scan_u16(at, n, s);
        break;
    case TMK_WEIGHT_U8:
        scan_u8(at, n, s);
        break;
    case TMK_WEIGHT_BOOL:
        scan_bools(at, n, s);
        break;
    case TMK_WEIGHT_F8_E4M3FNUZ: /* not scanned */
    case TMK_WEIGHT_F8_E5M2FNUZ:
    case TMK_WEIGHT_F8_E8M0:
    case TMK_WEIGHT_F6_E2M3:
    case TMK_WEIGHT_F6_E3M2:
    case TMK_WEIGHT_F4:
    case TMK_WEIGHT_F4_X2:
    case TMK_WEIGHT_C64:
    case TMK_WEIGHT_C128:
    case TMK_WEIGHT_OTHER:
    case TMK_WEIGHT_N_TYPES:
        break;
    }
}

void TMK_SCAN_KERNEL(enum tmk_weight_type type, const void *data, uint64_t n,
                     struct tmk_scan_sums *s)
{
    const uint8_t *at = data;
#if VECTOR_BYTES == 64
    /* Scan a block that the faster loops left, since it has a NaN or is the last; then they go
     * on. */
    for (uint64_t item = tmk_weight_type_bytes(type); item <= 2 && n > 0;) {
        uint64_t done = tmk_scan_narrow_avx512(type, at, n, s);
        uint64_t left = n - done < BLOCK ? n - done : BLOCK;
        scan_any_type(type, at + done * item, left, s);
        at += (done + left) * item;
        n -= done + left;
    }
#endif
    scan_any_type(type, at, n, s);
}
