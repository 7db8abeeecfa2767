/* SPDX-License-Identifier: MIT */
/* record/native/unwind.h - from a function's frame to its caller's, by the tables in .eh_frame.
 *
 * The code we walk through (torch, libcuda) has no frame pointers. What it has, for exceptions, is
 * call frame information: for each address a rule that says where the frame ends (the CFA, the
 * caller's stack pointer) and where the caller's registers were saved. Decoding one takes about a
 * microsecond; so the decoded rule is small and is kept by address (native.c), and a step by a kept
 * rule is a few loads.
 *
 *     tmk_unwind_find(module, pc, &rule)       decode
 *     tmk_unwind_step(&rule, &regs, &bounds)   apply: registers of the caller
 *
 * Only the stack pointer and the frame pointer are followed from frame to frame: in code made by
 * gcc and clang no other register says where a frame ends while a call is under way. A signal may
 * come in the middle of a prologue, where another register does; there the kernel has saved them
 * all.
 *
 * On anything unusual the walk ends: a short stack is fine, a wrong one or a fault is not. No byte
 * is read outside the module's table and the thread's stack. */
#ifndef TMK_RECORD_UNWIND_H
#define TMK_RECORD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "record/native/mapped_files.h"

#if defined(__x86_64__)
enum {
    TMK_REG_SP,
    TMK_REG_FP,
    TMK_REG_RBX, /* this one and the next are known only in a signal's frame */
    TMK_REG_R10,
    TMK_REG_R12,
    TMK_REG_R13,
    TMK_REG_R14,
    TMK_REG_R15,
    TMK_UNWIND_REGS,
};
#elif defined(__aarch64__)
enum {
    TMK_REG_SP,
    TMK_REG_FP,
    TMK_REG_X30, /* the return address, in a function that calls nothing */
    TMK_UNWIND_REGS,
};
#endif

enum tmk_rule_flags {
    TMK_RULE_DEREF = 1,  /* the CFA is what lies at register + offset */
    TMK_RULE_SIGNAL = 2, /* the kernel's frame of a signal: all registers are in it */
    TMK_RULE_LAST = 4,   /* there is no caller */
    TMK_RULE_NONE = 8,   /* no rule is known: the walk ends here too */
    TMK_RULE_LEAF = 16,  /* aarch64: the return address is still in x30 */
    TMK_RULE_BASED = 32, /* the frame pointer was saved relative to itself, not to the CFA */
};

enum { TMK_SAVED_SAME = INT32_MIN, TMK_SAVED_LOST = INT32_MIN + 1 };

struct tmk_unwind_rule { /* 16 bytes, kept as two words */
    uint16_t flags;
    uint16_t cfa_reg;
    int32_t cfa_offset; /* the CFA is register + this */
    int32_t pc_offset;  /* the return address is at CFA + this */
    int32_t fp_offset;  /* the caller's frame pointer is at CFA + this; or TMK_SAVED_* */
};

struct tmk_unwind_regs {
    uintptr_t pc;
    uintptr_t r[TMK_UNWIND_REGS];
    uint32_t known; /* bit i: r[i] */
    bool exact;     /* pc is where the thread was, not where a call returns to */
};

struct tmk_stack_bounds { /* the thread's stack: mapped from low to top */
    uintptr_t low, top;
};

/* Decode the rule for `pc`, an address inside the instruction that is under way. Always sets *ret:
 * its flags say when there is no rule. */
void tmk_unwind_find(const struct tmk_mapped_file *m, uintptr_t pc, struct tmk_unwind_rule *ret);

/* The rare cases of tmk_unwind_step(). */
bool tmk_unwind_step_slow(const struct tmk_unwind_rule *rule, struct tmk_unwind_regs *regs,
                          const struct tmk_stack_bounds *bounds);

/* Read a word of the stack, which holds whatever the program put there. */
__attribute__((no_sanitize("address", "thread"))) static inline bool
tmk_unwind_load(uintptr_t at, uintptr_t lowest, uintptr_t top, uintptr_t *ret)
{
    if (__builtin_expect(at < lowest || at > top - sizeof at || (at & (sizeof at - 1)) != 0, 0))
        return false;
    *ret = *(const volatile uintptr_t *)at;
    return true;
}

/* Step to the caller: its registers go into *regs. False: the walk ends, and *regs must not be used
 * any more. Only the usual step, from a call to its caller, is inline. */
static inline bool tmk_unwind_step(const struct tmk_unwind_rule *rule, struct tmk_unwind_regs *regs,
                                   const struct tmk_stack_bounds *bounds)
{
    if (__builtin_expect(rule->flags || regs->exact, 0))
        return tmk_unwind_step_slow(rule, regs, bounds);
    uintptr_t sp = regs->r[TMK_REG_SP];
    uintptr_t cfa = regs->r[rule->cfa_reg] + (uintptr_t)(intptr_t)rule->cfa_offset;
    if (cfa <= sp || cfa > bounds->top || !(regs->known & 1u << rule->cfa_reg) ||
        !tmk_unwind_load(cfa + (uintptr_t)(intptr_t)rule->pc_offset, sp, bounds->top, &regs->pc))
        return false;
    if (rule->fp_offset > TMK_SAVED_LOST) {
        if (!tmk_unwind_load(cfa + (uintptr_t)(intptr_t)rule->fp_offset, sp, bounds->top,
                             &regs->r[TMK_REG_FP]))
            return false;
        regs->known |= 1u << TMK_REG_FP;
    } else if (rule->fp_offset == TMK_SAVED_LOST) {
        regs->known &= ~(1u << TMK_REG_FP);
    }
    regs->r[TMK_REG_SP] = cfa;
    return regs->pc != 0;
}

/* Take the registers here and now, in the function that uses this macro. */
#if defined(__x86_64__)
#define TMK_UNWIND_HERE(regs)                                                                      \
    do {                                                                                           \
        __asm__ volatile("movq %%rsp, 8(%1)\n\tmovq %%rbp, 16(%1)\n\t"                             \
                         "leaq 1f(%%rip), %%rcx\n1:\tmovq %%rcx, (%1)"                             \
                         : "=m"(*(regs))                                                           \
                         : "a"(regs)                                                               \
                         : "rcx", "memory");                                                       \
        (regs)->known = 1u << TMK_REG_SP | 1u << TMK_REG_FP;                                       \
        (regs)->exact = true;                                                                      \
    } while (0)
#elif defined(__aarch64__)
#define TMK_UNWIND_HERE(regs)                                                                      \
    do {                                                                                           \
        __asm__ volatile("mov x9, sp\n\tstr x9, [%1, #8]\n\tstr x29, [%1, #16]\n\t"                \
                         "str x30, [%1, #24]\n\tadr x9, 1f\n1:\tstr x9, [%1]"                      \
                         : "=m"(*(regs))                                                           \
                         : "r"(regs)                                                               \
                         : "x9", "memory");                                                        \
        (regs)->known = 1u << TMK_REG_SP | 1u << TMK_REG_FP | 1u << TMK_REG_X30;                   \
        (regs)->exact = true;                                                                      \
    } while (0)
#endif

#endif
