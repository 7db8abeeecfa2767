/* SPDX-License-Identifier: MIT */
/* inject/arch.h - what differs between processors: registers, system calls, and the few
 * instructions that we put into the target. One source for each: arch_x86_64.c, arch_aarch64.c.
 *
 * A thread is borrowed by saving all of its registers, giving it others, and putting the saved ones
 * back; no function here knows why. We put them back as its tracer, or the thread does it itself,
 * should we be killed meanwhile: see "the return path". */
#ifndef TMK_INJECT_ARCH_H
#define TMK_INJECT_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* What e_machine and EI_CLASS of a program must say. */
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

/* General registers of a stopped thread. 0 or TMK_EIO (TMK_EINVAL: a 32-bit thread). */
int tmk_general_get(pid_t tid, struct user_regs_struct *ret);
int tmk_general_set(pid_t tid, const struct user_regs_struct *general);
/* All of them. */
int tmk_registers_get(pid_t tid, struct tmk_registers *ret);
/* All but the general ones. */
int tmk_extended_set(pid_t tid, const struct tmk_registers *registers);

uint64_t tmk_general_pc(const struct user_regs_struct *g);
uint64_t tmk_general_sp(const struct user_regs_struct *g);

/* Where the C library keeps its record of this thread, which has the thread's number in it: bytes
 * [*ret_start, *ret_end). False when the thread has none. */
bool tmk_general_thread_record(pid_t tid, const struct user_regs_struct *g, uint64_t *ret_start,
                               uint64_t *ret_end);

/* The stop made a call end in EINTR that would otherwise have gone on waiting: make the kernel
 * start it again, unless a signal's handler runs. Calls that it restarts by itself need nothing. */
void tmk_general_rewind(struct user_regs_struct *g);

/* Make the system call instruction at `instruction` run with these. */
void tmk_general_for_syscall(struct user_regs_struct *g, uint64_t instruction, long number,
                             const uint64_t arguments[6]);
int64_t tmk_general_result(const struct user_regs_struct *g);

/* Run the stub below: from `pc`, with its block at `block` and the end of its stack at `stack`. */
void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block, uint64_t stack);

/* Do these hold something that the return path and the stub cannot put back without a tracer? Then
 * another moment is better. */
bool tmk_registers_are_special(const struct tmk_registers *registers);

/* ---- code ---- */

/* Offset of the instructions to which a signal handler returns, -1: none. Where they are:
 * in the C library (true) or in the kernel's vdso. */
ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n);
extern const bool tmk_sigreturn_in_libc;

enum { TMK_CALL_BYTES = 8 };
/* Could the TMK_CALL_BYTES before `end` end in a call, so that it is a return address? */
bool tmk_code_ends_in_call(const uint8_t *end);

/* A handler's frame found by its return address, which is at `stack` (of `n` bytes, that lie at
 * `address` in the target): where the signal came. False when it cannot be told. */
bool tmk_sigframe_interrupted(const uint8_t *stack, size_t n, uint64_t *ret_pc, uint64_t *ret_sp);

/* ---- the return path ----
 *
 * Code that puts a thread back as it was: it sets the signal mask and all general registers from
 * the values in front of it, and jumps to where the thread was. It needs no stack. If the thread
 * was in a system call, that is started again, or ends in EINTR where a signal's handler makes it,
 * as the kernel decides that. return_path.h says where it is put. Offsets within its
 * tmk_return_bytes:
 *
 *   0                  struct tmk_return_head, then values that only the code knows
 *   tmk_return_call    a system call instruction, with what follows behind it
 *   tmk_return_back    look whether a handler will run, and return */

/* Room for one; the same in every version of tidemark. */
enum { TMK_RETURN_MAX_BYTES = 512 };
extern const uint8_t tmk_return[];
extern const uint64_t tmk_return_bytes, tmk_return_call, tmk_return_back;

/* "tmkwback": a place is taken. Every version of tidemark knows it. */
#define TMK_RETURN_MAGIC 0x6b636162776b6d74ull

struct tmk_return_head {
    uint64_t magic;
    uint64_t thread; /* who will take it: its number in its own namespace */
    uint64_t region; /* where the stub that it runs has its stack, 0: it runs none */
    uint64_t region_bytes;
    uint64_t signal_mask;
};

enum { TMK_SCRATCH_BYTES = 32 };

/* Fill `path`, a copy of tmk_return that will lie at `address`, with what a thread with registers
 * `g` goes on with: `g` is as the kernel shows it at a stop, perhaps within a system call. The code
 * may write TMK_SCRATCH_BYTES at `scratch`; 0: nowhere, and then it cannot look for handlers.
 * False: the thread's place cannot be reached from there. */
bool tmk_return_fill(uint8_t *path, uint64_t address, uint64_t scratch,
                     const struct user_regs_struct *g);

/* Let a thread with registers `g`, at a stop, take the return path that was filled with them. If a
 * handler runs when it goes on, the kernel itself decides what becomes of the system call. */
void tmk_general_for_return(struct user_regs_struct *g, uint64_t path);

/* The flags among the registers. */
uint64_t tmk_general_flags(const struct user_regs_struct *g);

/* ---- the stub ----
 *
 * Two pieces of code, copied into the target together; both find everything in one block:
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
 * The helper is an ordinary thread of the C library, with all signals blocked, so what it calls may
 * allocate, lock and wait like any other code. It looks for the function first, because dlsym()
 * waits for the loader's lock: a library that another helper is loading may be mapped and not yet
 * ready. */

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
    uint64_t errno_location; /* 0: functions of its C library */
    uint64_t pthread_create;
    uint64_t pthread_self; /* 16 */
    uint64_t pthread_detach;
    uint64_t dlopen; /* 32 */
    uint64_t dlsym;
    uint64_t dlerror; /* 48; 0: there is none */
    uint64_t back;    /* to the return path */
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
    uint32_t is_given_up; /* 176: written by us: do not call any more */
    uint32_t is_read;     /* written by us: end */
    uint32_t is_returned; /* 184: written by us: the borrowed thread has left the stub */
    uint32_t dlopen_flags;
    uint64_t error_text; /* 192 */
    uint64_t flags;      /* of the borrowed thread */
    uint64_t wait[2];    /* 208: a struct timespec */
    uint32_t has_xsave;  /* 224: by which instructions vector registers are kept */
    uint32_t unused;
};

/* Where the vector registers are kept: so far behind the block. */
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
