/* SPDX-License-Identifier: MIT */
/* record/unwind.h - from a function's frame to its caller's, by the tables in .eh_frame.
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
 * Registers are those that a CFA may be counted from: the stack pointer and those that a callee
 * saves. On anything unusual the walk ends: a short stack is fine, a wrong one or a fault is not.
 * No byte is read outside the module's table and the thread's stack. */
#ifndef TMK_RECORD_UNWIND_H
#define TMK_RECORD_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "record/modules.h"

/* Index 0 is the stack pointer; a rule's slot 0 is the return address. */
#if defined(__x86_64__)
enum {
    TMK_REG_SP,
    TMK_REG_RBP,
    TMK_REG_RBX,
    TMK_REG_R12,
    TMK_REG_R13,
    TMK_REG_R14,
    TMK_REG_R15,
    TMK_REG_R10, /* known only where a signal came in: a frame that aligns its stack counts by it */
    TMK_UNWIND_REGS,
    TMK_REGS_SAVED = TMK_REG_R15, /* the last one that a callee saves */
};
#elif defined(__aarch64__)
enum {
    TMK_REG_SP,
    TMK_REG_X29,
    TMK_REG_X30, /* the return address of a function that has not saved it */
    TMK_UNWIND_REGS,
    TMK_REGS_SAVED = TMK_REG_X29,
};
#endif

enum { TMK_UNWIND_SLOTS = 8 };
enum { TMK_SLOT_SAME = INT16_MIN, TMK_SLOT_LOST = INT16_MIN + 1 };

enum tmk_rule_flags {
    TMK_RULE_DEREF = 1,  /* the CFA is what lies at register + offset */
    TMK_RULE_SIGNAL = 2, /* the kernel's frame of a signal: all registers are in it */
    TMK_RULE_LAST = 4,   /* there is no caller */
    TMK_RULE_NONE = 8,   /* no rule is known: the walk ends here too */
};

struct tmk_unwind_rule { /* 24 bytes, kept as three words */
    uint8_t flags;
    uint8_t cfa_reg;
    uint8_t base_reg;   /* of the registers in `based` */
    uint8_t based;      /* bit i: register i is saved at base_reg + slot, not CFA + slot */
    int32_t cfa_offset; /* bytes */
    int16_t slot[TMK_UNWIND_SLOTS]; /* eights of bytes; [0] is the return address */
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

/* The rule for `pc`, an address inside the instruction that is under way. Always sets *ret: its
 * flags say when there is none. */
void tmk_unwind_find(const struct tmk_module *m, uintptr_t pc, struct tmk_unwind_rule *ret);

/* Registers of the caller into *regs; false: the walk ends, *regs is of no more use. */
bool tmk_unwind_step(const struct tmk_unwind_rule *rule, struct tmk_unwind_regs *regs,
                     const struct tmk_stack_bounds *bounds);

/* The registers here and now, in the function that says this. */
#if defined(__x86_64__)
#define TMK_UNWIND_HERE(regs)                                                                      \
    do {                                                                                           \
        __asm__ volatile("movq %%rsp, 8(%0)\n\tmovq %%rbp, 16(%0)\n\tmovq %%rbx, 24(%0)\n\t"       \
                         "movq %%r12, 32(%0)\n\tmovq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\t"      \
                         "movq %%r15, 56(%0)\n\tleaq 1f(%%rip), %%rcx\n1:\tmovq %%rcx, (%0)"       \
                         :                                                                         \
                         : "a"(regs)                                                               \
                         : "rcx", "memory");                                                       \
        (regs)->known = (1u << (TMK_REG_R15 + 1)) - 1;                                             \
        (regs)->exact = true;                                                                      \
    } while (0)
#elif defined(__aarch64__)
#define TMK_UNWIND_HERE(regs)                                                                      \
    do {                                                                                           \
        __asm__ volatile("mov x9, sp\n\tstr x9, [%0, #8]\n\tstr x29, [%0, #16]\n\t"                \
                         "str x30, [%0, #24]\n\tadr x9, 1f\n1:\tstr x9, [%0]"                      \
                         :                                                                         \
                         : "r"(regs)                                                               \
                         : "x9", "memory");                                                        \
        (regs)->known = 7;                                                                         \
        (regs)->exact = true;                                                                      \
    } while (0)
#endif

#endif
