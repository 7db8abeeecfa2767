/* SPDX-License-Identifier: MIT */
/* tidemark.h - tell tidemark what a C or C++ program does with its memory.
 *
 * A program that manages memory itself (an allocator, an arena, a training loop in C) calls these
 * where it hands memory out and takes it back. Nothing is linked: every function is a weak symbol,
 * absent until the program runs under `tidemark run`, so an unwatched call costs one load and one
 * branch that is always predicted. Any thread may call any function at any time.
 *
 *     float *w = malloc(n);
 *     tidemark_alloc(TIDEMARK_HOST, w, n);
 *     tidemark_tag(TIDEMARK_HOST, w, TIDEMARK_PARAMETER, "encoder.0.weight");
 *     ...
 *     tidemark_free(TIDEMARK_HOST, w);
 *     free(w);
 *
 * Call tidemark_free() before you release memory and tidemark_alloc() after you got it, so that an
 * address reused by another thread is never seen live twice. The first event of a process starts a
 * helper thread, which takes a few milliseconds and some memory from malloc: a malloc of your own
 * reports outside its locks.
 *
 * Build as position-independent code (-fPIE or -fPIC, the default of Debian's and Ubuntu's
 * compilers): in a non-PIC program the linker may settle weak symbols to "absent" for good. */
#ifndef TIDEMARK_TIDEMARK_H
#define TIDEMARK_TIDEMARK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Devices: the host is one of them. Type in the high byte (torch's numbering), index in the low. */
#define TIDEMARK_HOST 0u
#define TIDEMARK_CUDA(index) (0x0100u | ((unsigned)(index)&0xffu))
#define TIDEMARK_HIP(index) (0x0600u | ((unsigned)(index)&0xffu))
#define TIDEMARK_XPU(index) (0x0c00u | ((unsigned)(index)&0xffu))

/* What a block is for. The numbers are part of the trace format. */
enum tidemark_category {
    TIDEMARK_UNKNOWN = 0,
    TIDEMARK_PARAMETER = 1,
    TIDEMARK_GRADIENT = 2,
    TIDEMARK_OPTIMIZER_STATE = 3,
    TIDEMARK_ACTIVATION = 4,
    TIDEMARK_INPUT = 5,
    TIDEMARK_TEMPORARY = 6,
    TIDEMARK_AUTOGRAD_DETAIL = 7,
    TIDEMARK_BUFFER = 8,
    TIDEMARK_OTHER = 9,
    TIDEMARK_KV_CACHE = 10
};

/* What a range means. Stages: "forward", "backward", "optimizer" or a name of your own. Modules:
 * dotted paths such as "blocks.3.attn". User: anything else worth seeing on a timeline. */
enum tidemark_range { TIDEMARK_STAGE = 1, TIDEMARK_MODULE = 2, TIDEMARK_USER = 3 };

/* A call site; the macros below make one per call. The recorder knows a site by these values, so
 * the strings must stay where they are while the program runs. */
struct tidemark_site {
    const char *file;
    const char *function;
    uint32_t line;
    uint32_t reserved; /* 0 */
};

#define TIDEMARK_WEAK __attribute__((weak, visibility("default")))

/* The recorder's side. These are absent (NULL) when the program is not watched: call the macros and
 * inline functions below instead, which test that. Strings are copied and may go away after the
 * call; they may be NULL where a comment says "or NULL". */
extern void tidemark_record_alloc(unsigned device, const void *address, uint64_t size_bytes,
                                  const struct tidemark_site *site) TIDEMARK_WEAK;
extern void tidemark_record_free(unsigned device, const void *address) TIDEMARK_WEAK;
extern void tidemark_record_tag(unsigned device, const void *address, unsigned category,
                                const char *name) TIDEMARK_WEAK;
extern void tidemark_record_push(unsigned kind, const char *name) TIDEMARK_WEAK;
extern void tidemark_record_pop(unsigned kind) TIDEMARK_WEAK;
extern void tidemark_record_step(int64_t step) TIDEMARK_WEAK;
extern void tidemark_record_mark(const char *event, const char *info) TIDEMARK_WEAK;
extern void tidemark_record_oom(unsigned device, uint64_t requested_bytes, uint64_t capacity_bytes,
                                const struct tidemark_site *site) TIDEMARK_WEAK;
extern int tidemark_record_on(void) TIDEMARK_WEAK;

/* 1 while events of this process are being recorded (or would be, from the first one on). */
static inline int tidemark_is_watched(void)
{
    return tidemark_record_on && tidemark_record_on();
}

/* Report a new block: `size_bytes` at `address` on `device`. Its allocation site is the line of
 * this call. A zero-size block is recorded like any other. */
#define tidemark_alloc(device, address, size_bytes)                                                \
    tidemark_alloc_at(device, address, size_bytes, __FILE__, __func__, __LINE__)

/* The same for another allocation site: allocator wrappers pass their caller's line. `file_` and
 * `function_` must be string literals or live as long as the program. */
#define tidemark_alloc_at(device, address, size_bytes, file_, function_, line_)                    \
    do {                                                                                           \
        if (tidemark_record_alloc) {                                                               \
            const struct tidemark_site tidemark_site_ = {file_, function_, (uint32_t)(line_), 0};  \
            tidemark_record_alloc(device, address, size_bytes, &tidemark_site_);                   \
        }                                                                                          \
    } while (0)

/* Report that the block at `address` is freed. */
static inline void tidemark_free(unsigned device, const void *address)
{
    if (tidemark_record_free)
        tidemark_record_free(device, address);
}

/* Say what the live block at `address` is: a category and a name (or NULL). A block may be tagged
 * again. TIDEMARK_INPUT is a hint: it overrules no other category, and has no effect on blocks made
 * in forward, backward, optimizer or eval. */
static inline void tidemark_tag(unsigned device, const void *address,
                                enum tidemark_category category, const char *name)
{
    if (tidemark_record_tag)
        tidemark_record_tag(device, address, (unsigned)category, name);
}

/* Ranges nest, per thread; blocks allocated inside belong to them. Pop closes the innermost open
 * range of that kind and whatever was left open inside it. */
static inline void tidemark_push(enum tidemark_range kind, const char *name)
{
    if (tidemark_record_push)
        tidemark_record_push((unsigned)kind, name);
}

static inline void tidemark_pop(enum tidemark_range kind)
{
    if (tidemark_record_pop)
        tidemark_record_pop((unsigned)kind);
}

/* Training step `step` begins (for the whole process). */
static inline void tidemark_step(int64_t step)
{
    if (tidemark_record_step)
        tidemark_record_step(step);
}

/* Report that something happened at this moment. `info` is a sentence about it, or NULL. */
static inline void tidemark_mark(const char *event, const char *info)
{
    if (tidemark_record_mark)
        tidemark_record_mark(event, info);
}

/* An allocation of `requested_bytes` failed: out of memory. `capacity_bytes` is the limit, 0 if
 * unknown. */
#define tidemark_oom(device, requested_bytes, capacity_bytes)                                      \
    tidemark_oom_at(device, requested_bytes, capacity_bytes, __FILE__, __func__, __LINE__)

#define tidemark_oom_at(device, requested_bytes, capacity_bytes, file_, function_, line_)          \
    do {                                                                                           \
        if (tidemark_record_oom) {                                                                 \
            const struct tidemark_site tidemark_site_ = {file_, function_, (uint32_t)(line_), 0};  \
            tidemark_record_oom(device, requested_bytes, capacity_bytes, &tidemark_site_);         \
        }                                                                                          \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
