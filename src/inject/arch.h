/* SPDX-License-Identifier: MIT */
/* inject/arch.h - everything that differs between processors: registers, system calls, and the few
 * instructions that we put into the target. arch_x86_64.c and arch_aarch64.c implement it.
 *
 * A thread is borrowed by saving all of its registers, giving it others, and putting the saved ones
 * back; the functions here do not know what for. Normally we put them back as the tracer. If we are
 * killed meanwhile, the thread does it itself: see "the return path". */
#ifndef TMK_INJECT_ARCH_H
#define TMK_INJECT_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* The e_machine that a program's ELF header must have. */
extern const uint16_t tmk_arch_machine;

/* ---- registers ---- */

enum { TMK_EXTENDED_SETS = 2, TMK_EXTENDED_BYTES = 20480 };

/* One of the kernel's sets of registers beside the general ones. */
struct tmk_register_set {
    unsigned type;  /* NT_* */
    size_t n_bytes; /* 0: this processor has none */
    uint8_t bytes[TMK_EXTENDED_BYTES];
};

struct tmk_registers {
    struct user_regs_struct general;
    struct tmk_register_set extended[TMK_EXTENDED_SETS]; /* vector and floating point */
};

/* Read and write the general registers of a stopped thread. 0 or TMK_EIO (TMK_EINVAL: a 32-bit
 * thread). */
int tmk_general_get(pid_t tid, struct user_regs_struct *ret);
int tmk_general_set(pid_t tid, const struct user_regs_struct *general);
/* Read all registers. */
int tmk_registers_get(pid_t tid, struct tmk_registers *ret);
/* Write all registers but the general ones. */
int tmk_extended_set(pid_t tid, const struct tmk_registers *registers);

uint64_t tmk_general_pc(const struct user_regs_struct *g);
uint64_t tmk_general_sp(const struct user_regs_struct *g);

/* Find the C library's record of this thread, which contains the thread's number: bytes
 * [*ret_start, *ret_end). False: the thread has none. */
bool tmk_general_thread_record(pid_t tid, const struct user_regs_struct *g, uint64_t *ret_start,
                               uint64_t *ret_end);

/* Make the kernel start a system call again that ended in EINTR only because of the stop, unless a
 * signal handler runs. Calls that the kernel restarts by itself need nothing. */
void tmk_general_rewind(struct user_regs_struct *g);

/* Set the registers so that the system call instruction at `instruction` runs with these
 * arguments. */
void tmk_general_for_syscall(struct user_regs_struct *g, uint64_t instruction, long number,
                             const uint64_t arguments[6]);
int64_t tmk_general_result(const struct user_regs_struct *g);

/* Set the registers so that the stub below runs from `pc`, with its block at `block` and the end of
 * its stack at `stack`. */
void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block, uint64_t stack);

/* Whether the registers hold something that the return path and the stub cannot restore without a
 * tracer. Then another moment is better. */
bool tmk_registers_are_special(const struct tmk_registers *registers);

/* ---- code ---- */

/* Find the instructions to which a signal handler returns: their offset in `code`, -1: none. They
 * are in the C library if tmk_sigreturn_in_libc, else in the kernel's vdso. */
ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n);
extern const bool tmk_sigreturn_in_libc;

enum { TMK_CALL_BYTES = 8 };
/* Whether the TMK_CALL_BYTES before `end` could end in a call, so that `end` is a return
 * address. */
bool tmk_code_ends_in_call(const uint8_t *end);

/* Read a signal handler's frame: where the thread was when the signal came. The frame begins with
 * its return address at `stack`, of which `n` bytes are readable. False: this cannot be told. */
bool tmk_sigframe_interrupted(const uint8_t *stack, size_t n, uint64_t *ret_pc, uint64_t *ret_sp);

/* ---- the return path ----
 *
 * The return path is code that puts a thread back as it was: it sets the signal mask and all
 * general registers from the values in front of it, and jumps to where the thread was. It needs no
 * stack. A system call that the thread was in starts again, or ends in EINTR where a signal handler
 * makes it, as the kernel would decide. return_path.h says where the code is put. Offsets within
 * its tmk_return_bytes:
 *
 *   0                  struct tmk_return_head, then values that only the code knows
 *   tmk_return_call    a system call instruction, with what follows behind it
 *   tmk_return_back    look whether a handler will run, and return */

/* The room that one takes, the same in every version of tidemark. */
enum { TMK_RETURN_MAX_BYTES = 512 };
extern const uint8_t tmk_return[];
extern const uint64_t tmk_return_bytes, tmk_return_call, tmk_return_back;

/* "tmkwback" marks a place as taken. Every version of tidemark knows it. */
#define TMK_RETURN_MAGIC 0x6b636162776b6d74ull

struct tmk_return_head {
    uint64_t magic;
    uint64_t thread; /* the thread that will take it, by its number in its own namespace */
    uint64_t region; /* of the stub's stack; 0: the thread runs no stub */
    uint64_t region_bytes;
    uint64_t signal_mask;
};

enum { TMK_SCRATCH_BYTES = 32 };

/* Fill `path`, a copy of tmk_return that will lie at `address`, with the registers `g` that the
 * thread goes on with, as the kernel shows them at a stop, perhaps within a system call. The code
 * may write TMK_SCRATCH_BYTES at `scratch`; 0: there is no such place, so it cannot look for
 * handlers. False: the code cannot jump from there to where the thread was. */
bool tmk_return_fill(uint8_t *path, uint64_t address, uint64_t scratch,
                     const struct user_regs_struct *g);

/* Change the registers `g` of a thread at a stop so that it takes the return path that was filled
 * with them. If a signal handler runs when it goes on, the kernel itself decides what becomes of
 * the system call. */
void tmk_general_for_return(struct user_regs_struct *g, uint64_t path);

/* The flags register. */
uint64_t tmk_general_flags(const struct user_regs_struct *g);

/* ---- the stub ----
 *
 * The stub is two pieces of code, copied into the target together. Both find everything they need
 * in one block:
 *
 *   start    on the borrowed thread: keep the vector registers and errno, pthread_create(helper),
 *            put errno back, say so in `is_created`, then wait 100 ms to be stopped for good. It
 *            waits and does not spin: where many threads want few processors, one that wakes up
 *            has its turn soon, one that ran has not. It waits in ppoll(), which leaves the
 *            kernel's memory of a broken-off sleep alone. If nobody comes, the tracer is gone:
 *            put the vector registers and flags back and take the return path
 *   helper   on a thread of its own: dlsym, or else dlopen and dlsym, call, put down what came of
 *            it, wait until that was read (`is_read`), at most 10 s, and end in munmap() of the
 *            region that holds all of this. If the tracer is gone the region stays, since nobody
 *            can tell whether the borrowed thread has left it
 *
 * The helper is an ordinary thread of the C library, with all signals blocked, so the function it
 * calls may allocate, lock and wait like any other code. It looks for the function first, because
 * dlsym() waits for the loader's lock: a library that another helper is loading may be mapped but
 * not yet ready. */

extern const uint8_t tmk_stub[];
extern const uint64_t tmk_stub_bytes;

enum tmk_stub_state {
    TMK_STUB_LOADING = 0,
    TMK_STUB_CALLING = 1,
    TMK_STUB_DONE = 2,
    TMK_STUB_NOT_LOADED = 3, /* error_text, if any, says why */
    TMK_STUB_GIVEN_UP = 4,   /* found `is_given_up` before the call */
};

/* The assembly knows these offsets. Addresses are the target's. */
struct tmk_stub_block {
    uint64_t errno_location; /* 0: the functions up to dlerror are the C library's */
    uint64_t pthread_create;
    uint64_t pthread_self; /* 16 */
    uint64_t pthread_detach;
    uint64_t dlopen; /* 32 */
    uint64_t dlsym;
    uint64_t dlerror; /* 48; 0: there is none */
    uint64_t back;    /* of the return path */
    uint64_t poll;    /* 64 */
    uint64_t close;
    uint64_t munmap; /* 80 */
    uint64_t path;   /* texts */
    uint64_t symbol; /* 96 */
    uint64_t options;
    uint64_t message; /* 112 */
    uint64_t message_bytes;
    uint64_t region; /* 128: all that we mapped, this block included */
    uint64_t region_bytes;
    int64_t fd; /* 144: to close after loading, -1: none */
    uint64_t thread;
    uint32_t is_created; /* 160: pthread_create has returned this: */
    int32_t create_result;
    uint32_t state; /* 168: enum tmk_stub_state */
    int32_t result;
    uint32_t is_given_up; /* 176: we write it: do not call any more */
    uint32_t is_read;     /* we write it: the result was read, end */
    uint32_t is_returned; /* 184: we write it: the borrowed thread has left the stub */
    uint32_t dlopen_flags;
    uint64_t error_text; /* 192 */
    uint64_t flags;      /* of the borrowed thread */
    uint64_t wait[2];    /* 208: a struct timespec */
    uint32_t has_xsave;  /* 224: which instructions save the vector registers */
    uint32_t unused;
};

/* The vector registers are saved this far behind the start of the block. */
enum { TMK_STUB_VECTORS_AT = 65536 };
_Static_assert((int)TMK_EXTENDED_BYTES <= (int)TMK_STUB_VECTORS_AT,
               "they have as much room as the block");

_Static_assert(offsetof(struct tmk_stub_block, dlopen) == 32, "the assembly says 32");
_Static_assert(offsetof(struct tmk_stub_block, poll) == 64, "the assembly says 64");
_Static_assert(offsetof(struct tmk_stub_block, symbol) == 96, "the assembly says 96");
_Static_assert(offsetof(struct tmk_stub_block, region) == 128, "the assembly says 128");
_Static_assert(offsetof(struct tmk_stub_block, is_created) == 160, "the assembly says 160");
_Static_assert(offsetof(struct tmk_stub_block, is_returned) == 184, "the assembly says 184");
_Static_assert(offsetof(struct tmk_stub_block, error_text) == 192, "the assembly says 192");
_Static_assert(offsetof(struct tmk_stub_block, wait) == 208, "the assembly says 208");
_Static_assert(offsetof(struct tmk_stub_block, has_xsave) == 224, "the assembly says 224");

#endif
