/* SPDX-License-Identifier: MIT */
/* interop/scan_kernels.c - one pass over numbers: counts, extremes, sum and sum of squares.
 *
 * Built once for each width of vectors, with TMK_SCAN_KERNEL as the name of its one function
 * (meson.build). Floats of 32 bits and fewer become vectors of float32 and the bits of their
 * absolute values; what they are (zero, denormal, not finite) is seen from those bits, so that no
 * comparison of NaNs is needed. Sums are of doubles: exact enough for any tensor that has a spread
 * above 1e-7 of its mean.
 *
 * The fast loop takes for granted that all is finite and notes whether that was so; a block that
 * has a NaN or an infinity is done again, one by one. So each is found with its place, and the
 * usual tensor pays two instructions for it. */
#include "interop/scan_kernels.h"

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
#define VECTOR(type, bytes) type __attribute__((vector_size(bytes)))

enum {
    LANES = VECTOR_BYTES / 4,
    LANES_64 = VECTOR_BYTES / 8,
    BLOCK = 8192, /* elements: lanes of counts cannot overflow, and a second look finds them near */
};

union lanes {
    VECTOR(float, VECTOR_BYTES) f;
    VECTOR(uint32_t, VECTOR_BYTES) u;
    VECTOR(int32_t, VECTOR_BYTES) i;
    VECTOR(float, VECTOR_BYTES / 2) half[2];
    float each[LANES];
    uint32_t each_u[LANES];
};

union lanes_64 {
    VECTOR(double, VECTOR_BYTES) d;
    VECTOR(uint64_t, VECTOR_BYTES) u;
    VECTOR(int64_t, VECTOR_BYTES) i;
    double each[LANES_64];
    uint64_t each_u[LANES_64];
};

/* ---- how small floats are laid out ---- */

struct format {
    uint32_t n_bytes;
    uint32_t sign, magnitude; /* masks of the bits as they stand in the file, moved up by `up` */
    uint32_t up;              /* bf16 is the upper half of float32, e5m2 that of float16 */
    uint32_t shift, bias;     /* from there to float32: mantissa, exponent; 0: it is float32 */
    uint32_t least_normal, least_odd; /* magnitudes: the first that is normal, or not finite */
    uint32_t infinite;                /* magnitude; 0: there is none */
};

#define F32                                                                                        \
    ((struct format){4, 0x80000000, 0x7fffffff, 0, 0, 0, 0x00800000, 0x7f800000, 0x7f800000})
#define BF16                                                                                       \
    ((struct format){2, 0x80000000, 0x7fffffff, 16, 0, 0, 0x00800000, 0x7f800000, 0x7f800000})
#define F16 ((struct format){2, 0x8000, 0x7fff, 0, 13, 112, 0x0400, 0x7c00, 0x7c00})
#define E5M2 ((struct format){1, 0x8000, 0x7fff, 8, 13, 112, 0x0400, 0x7c00, 0x7c00})
#define E4M3 ((struct format){1, 0x80, 0x7f, 0, 20, 120, 0x08, 0x7f, 0})

/* ---- elements of any width, as 32 bits ---- */

ALWAYS_INLINE union lanes load(const uint8_t *at, uint32_t n_bytes)
{
    union lanes v;
    if (n_bytes == 4) {
        memcpy(&v, at, sizeof v);
        return v;
    }
#if VECTOR_BYTES == 64
    if (n_bytes == 2)
        v.u = (VECTOR(uint32_t, 64))_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)at));
    else
        v.u = (VECTOR(uint32_t, 64))_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)at));
#elif VECTOR_BYTES == 32
    if (n_bytes == 2)
        v.u = (VECTOR(uint32_t, 32))_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)at));
    else
        v.u = (VECTOR(uint32_t, 32))_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
#else
    for (unsigned i = 0; i < LANES; i++)
        if (n_bytes == 2) {
            uint16_t element;
            memcpy(&element, at + 2 * i, 2);
            v.each_u[i] = element;
        } else {
            v.each_u[i] = at[i];
        }
#endif
    return v;
}

ALWAYS_INLINE union lanes to_float(union lanes bits, struct format f)
{
    if (f.shift == 0)
        return bits;
    union lanes magnitude, normal, small, x;
    magnitude.u = (bits.u & f.magnitude) << f.shift;
    normal.u = magnitude.u + (f.bias << 23);
    /* A denormal is an exact multiple of the least one: put it behind a 1 and take that off. */
    union lanes one, least;
    one.u = (VECTOR(uint32_t, VECTOR_BYTES)){0} + ((f.bias + 1) << 23);
    small.u = magnitude.u + one.u;
    small.f = small.f - one.f;
    least.u = (VECTOR(uint32_t, VECTOR_BYTES))((bits.u & f.magnitude) < f.least_normal);
    x.u = (least.u & small.u) | (~least.u & normal.u);
    x.u |= f.sign == 0x8000 ? (bits.u & f.sign) << 16 : (bits.u & f.sign) << 24;
    return x;
}

/* One element; of what is finite the value is right. */
static double one_of(const uint8_t *at, struct format f, uint32_t *ret_magnitude)
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

static void add_one(struct tmk_scan_sums *s, double x)
{
    s->min = x < s->min ? x : s->min;
    s->max = x > s->max ? x : s->max;
    s->sum += x;
    s->squares += x * x;
}

static void add_odd(struct tmk_scan_sums *s, uint64_t index, bool is_infinite)
{
    uint64_t *first = is_infinite ? &s->first_inf : &s->first_nan;
    *(is_infinite ? &s->n_inf : &s->n_nan) += 1;
    if (*first == UINT64_MAX)
        *first = index;
}

static void one_by_one(const uint8_t *at, uint64_t n, struct format f, struct tmk_scan_sums *s)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t magnitude;
        double x = one_of(at + i * f.n_bytes, f, &magnitude);
        if (magnitude >= f.least_odd) {
            add_odd(s, s->n + i, f.infinite && magnitude == f.infinite);
            continue;
        }
        s->n_zero += magnitude == 0;
        s->n_denormal += magnitude != 0 && magnitude < f.least_normal;
        add_one(s, x);
    }
    s->n += n;
}

/* ---- a block of floats of 32 bits and fewer ---- */

ALWAYS_INLINE void keep_extremes(union lanes *least, union lanes *most, union lanes x)
{
#if VECTOR_BYTES == 64
    least->f = (VECTOR(float, 64))_mm512_min_ps((__m512)least->f, (__m512)x.f);
    most->f = (VECTOR(float, 64))_mm512_max_ps((__m512)most->f, (__m512)x.f);
#elif VECTOR_BYTES == 32
    least->f = (VECTOR(float, 32))_mm256_min_ps((__m256)least->f, (__m256)x.f);
    most->f = (VECTOR(float, 32))_mm256_max_ps((__m256)most->f, (__m256)x.f);
#elif defined(__SSE2__)
    least->f = (VECTOR(float, 16))_mm_min_ps((__m128)least->f, (__m128)x.f);
    most->f = (VECTOR(float, 16))_mm_max_ps((__m128)most->f, (__m128)x.f);
#else
    for (unsigned i = 0; i < LANES; i++) {
        least->each[i] = x.each[i] < least->each[i] ? x.each[i] : least->each[i];
        most->each[i] = x.each[i] > most->each[i] ? x.each[i] : most->each[i];
    }
#endif
}

ALWAYS_INLINE void to_doubles(union lanes x, union lanes_64 *low, union lanes_64 *high)
{
#if VECTOR_BYTES == 64
    low->d = (VECTOR(double, 64))_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x.f));
    high->d = (VECTOR(double, 64))_mm512_cvtps_pd((__m256)x.half[1]);
#elif VECTOR_BYTES == 32
    low->d = (VECTOR(double, 32))_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x.f));
    high->d = (VECTOR(double, 32))_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x.f, 1));
#else
    for (unsigned i = 0; i < LANES_64; i++) {
        low->each[i] = x.each[i];
        high->each[i] = x.each[i + LANES_64];
    }
#endif
}

/* What a block adds up, lane by lane. */
struct block {
    union lanes n_zero, n_small, least, most, odd;
    union lanes_64 sum[2], squares[2];
};

/* False when something in it is not finite; then nothing was added. */
static bool add_block(struct tmk_scan_sums *s, const struct block *b, uint64_t n)
{
    uint32_t odd = 0, n_zero = 0, n_small = 0;
    for (unsigned i = 0; i < LANES; i++)
        odd |= b->odd.each_u[i];
    if (odd & 0x80000000)
        return false;
    for (unsigned i = 0; i < LANES; i++) {
        n_zero += b->n_zero.each_u[i];
        n_small += b->n_small.each_u[i];
        s->min = (double)b->least.each[i] < s->min ? (double)b->least.each[i] : s->min;
        s->max = (double)b->most.each[i] > s->max ? (double)b->most.each[i] : s->max;
    }
    for (unsigned i = 0; i < LANES_64; i++) {
        s->sum += b->sum[0].each[i] + b->sum[1].each[i];
        s->squares += b->squares[0].each[i] + b->squares[1].each[i];
    }
    s->n += n;
    s->n_zero += n_zero;
    s->n_denormal += n_small - n_zero;
    return true;
}

ALWAYS_INLINE void run_block(const uint8_t *at, uint64_t n, struct format f, struct block *b)
{
    union lanes_64 low, high;
    *b = (struct block){0};
    b->least.f += __builtin_inff();
    b->most.f -= __builtin_inff();
    for (uint64_t i = 0; i < n; i += LANES) {
        __builtin_prefetch(at + i * f.n_bytes + 1024);
        union lanes bits = load(at + i * f.n_bytes, f.n_bytes), magnitude;
        if (f.up > 0)
            bits.u <<= f.up;
        union lanes x = to_float(bits, f);
        magnitude.u = bits.u & f.magnitude;
        b->n_zero.i -= (magnitude.i == 0);
        b->n_small.i -= (magnitude.i < (int32_t)f.least_normal);
        b->odd.u |= magnitude.u + (0x80000000 - f.least_odd); /* the highest bit, if it is one */
        keep_extremes(&b->least, &b->most, x);
        to_doubles(x, &low, &high);
        b->sum[0].d += low.d;
        b->sum[1].d += high.d;
        b->squares[0].d += low.d * low.d;
        b->squares[1].d += high.d * high.d;
    }
}

ALWAYS_INLINE void scan_small_floats(const uint8_t *at, uint64_t n, struct format f,
                                     struct tmk_scan_sums *s)
{
    struct block b;
    while (n >= LANES) {
        uint64_t m = n < BLOCK ? n - n % LANES : BLOCK;
        run_block(at, m, f, &b);
        if (!add_block(s, &b, m))
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
        add_odd(s, index, bits == 0x7ff0000000000000);
        return;
    }
    s->n_zero += bits == 0;
    s->n_denormal += bits != 0 && bits < 0x0010000000000000;
    add_one(s, x);
}

ALWAYS_INLINE bool doubles_block(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)
{
    union lanes_64 x, magnitude, n_zero = {0}, n_small = {0}, odd = {0}, sum = {0}, squares = {0};
    union lanes_64 least = {0}, most = {0}, mask;
    least.d += __builtin_inf();
    most.d -= __builtin_inf();
    for (uint64_t i = 0; i < n; i += LANES_64) {
        memcpy(&x, at + 8 * i, sizeof x);
        magnitude.u = x.u & INT64_MAX;
        n_zero.i -= (magnitude.i == 0);
        n_small.i -= (magnitude.i < 0x0010000000000000);
        odd.u |= magnitude.u + 0x0010000000000000;
        mask.i = (x.d < least.d);
        least.u = (x.u & mask.u) | (least.u & ~mask.u);
        mask.i = (x.d > most.d);
        most.u = (x.u & mask.u) | (most.u & ~mask.u);
        sum.d += x.d;
        squares.d += x.d * x.d;
    }
    for (unsigned i = 0; i < LANES_64; i++)
        if (odd.each_u[i] >> 63)
            return false;
    for (unsigned i = 0; i < LANES_64; i++) {
        s->n_zero += n_zero.each_u[i];
        s->n_denormal += n_small.each_u[i] - n_zero.each_u[i];
        s->min = least.each[i] < s->min ? least.each[i] : s->min;
        s->max = most.each[i] > s->max ? most.each[i] : s->max;
        s->sum += sum.each[i];
        s->squares += squares.each[i];
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

#define SCAN_SMALL_INTEGERS(name, type, sum_type, square_type)                                     \
    static void name(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)                       \
    {                                                                                              \
        type block[BLOCK], least, most;                                                            \
        for (; n > 0;) {                                                                           \
            uint64_t m = n < BLOCK ? n : BLOCK;                                                    \
            uint32_t n_zero = 0;                                                                   \
            sum_type sum = 0;                                                                      \
            square_type squares = 0;                                                               \
            memcpy(block, at, m * sizeof(type));                                                   \
            least = most = block[0];                                                               \
            for (uint64_t i = 0; i < m; i++) {                                                     \
                type x = block[i];                                                                 \
                least = x < least ? x : least;                                                     \
                most = x > most ? x : most;                                                        \
                n_zero += x == 0;                                                                  \
                sum += x;                                                                          \
                squares += (square_type)((sum_type)x * (sum_type)x);                               \
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

SCAN_SMALL_INTEGERS(scan_i8, int8_t, int32_t, int32_t)
SCAN_SMALL_INTEGERS(scan_u8, uint8_t, uint32_t, uint32_t)
SCAN_SMALL_INTEGERS(scan_i16, int16_t, int32_t, int64_t)
SCAN_SMALL_INTEGERS(scan_u16, uint16_t, uint32_t, uint64_t)

#define SCAN_LARGE_INTEGERS(name, type)                                                            \
    static void name(const uint8_t *at, uint64_t n, struct tmk_scan_sums *s)                       \
    {                                                                                              \
        double sum[4] = {0}, squares[4] = {0};                                                     \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            type x;                                                                                \
            memcpy(&x, at + i * sizeof(type), sizeof(type));                                       \
            double value = (double)x;                                                              \
            s->min = value < s->min ? value : s->min;                                              \
            s->max = value > s->max ? value : s->max;                                              \
            s->n_zero += x == 0;                                                                   \
            sum[i % 4] += value;                                                                   \
            squares[i % 4] += value * value;                                                       \
        }                                                                                          \
        s->n += n;                                                                                 \
        s->sum += sum[0] + sum[1] + sum[2] + sum[3];                                               \
        s->squares += squares[0] + squares[1] + squares[2] + squares[3];                           \
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

void TMK_SCAN_KERNEL(enum tmk_weight_type type, const void *data, uint64_t n,
                     struct tmk_scan_sums *s)
{
    const uint8_t *at = data;
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
    case TMK_WEIGHT_C64:
    case TMK_WEIGHT_C128:
    case TMK_WEIGHT_N_TYPES:
        break;
    }
}
