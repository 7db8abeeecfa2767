/* SPDX-License-Identifier: MIT */
/* record/torch/torch_stubs.c - see torch_stubs.h.
 *
 * When nothing is found to jump to, nothing called us: the caller's library needs the one that
 * defines the function. A trap says so better than a jump to zero. */
#include "record/torch/torch_stubs.h"

/* clang-format off */
#define BOTH_NAMES(ours, torchs, type)                                                             \
    ".text\n"                                                                                      \
    ".globl " torchs "\n"                                                                          \
    ".type " torchs ", " type "\n"                                                                 \
    ".globl " #ours "\n"                                                                           \
    ".hidden " #ours "\n"                                                                          \
    ".type " #ours ", " type "\n"                                                                  \
    torchs ":\n"                                                                                   \
    #ours ":\n"

#if defined(__x86_64__)
#define STUB(ours, torchs, note)                                                                   \
    __asm__(BOTH_NAMES(ours, torchs, "@function")                                                  \
            ".cfi_startproc\n"                                                                     \
            "    endbr64\n"                                                                        \
            "    push %rdi\n    .cfi_adjust_cfa_offset 8\n"                                        \
            "    push %rsi\n    .cfi_adjust_cfa_offset 8\n"                                        \
            "    push %rdx\n    .cfi_adjust_cfa_offset 8\n"                                        \
            "    push %rcx\n    .cfi_adjust_cfa_offset 8\n"                                        \
            "    push %r8\n    .cfi_adjust_cfa_offset 8\n"                                         \
            "    push %r9\n    .cfi_adjust_cfa_offset 8\n"                                         \
            "    sub $8, %rsp\n    .cfi_adjust_cfa_offset 8\n"                                     \
            "    mov 56(%rsp), %rdi\n" /* where we were called from */                            \
            "    call " #note "\n"                                                                 \
            "    add $8, %rsp\n    .cfi_adjust_cfa_offset -8\n"                                    \
            "    pop %r9\n    .cfi_adjust_cfa_offset -8\n"                                         \
            "    pop %r8\n    .cfi_adjust_cfa_offset -8\n"                                         \
            "    pop %rcx\n    .cfi_adjust_cfa_offset -8\n"                                        \
            "    pop %rdx\n    .cfi_adjust_cfa_offset -8\n"                                        \
            "    pop %rsi\n    .cfi_adjust_cfa_offset -8\n"                                        \
            "    pop %rdi\n    .cfi_adjust_cfa_offset -8\n"                                        \
            "    test %rax, %rax\n"                                                                \
            "    jz 1f\n"                                                                          \
            "    jmp *%rax\n"                                                                      \
            "1:  ud2\n"                                                                            \
            ".cfi_endproc\n"                                                                       \
            ".size " torchs ", . - " torchs "\n"                                                   \
            ".size " #ours ", . - " #ours "\n")
#elif defined(__aarch64__)
#define STUB(ours, torchs, note)                                                                   \
    __asm__(BOTH_NAMES(ours, torchs, "%function")                                                  \
            ".cfi_startproc\n"                                                                     \
            "    hint 34\n" /* bti c */                                                            \
            "    stp x29, x30, [sp, #-96]!\n    .cfi_def_cfa_offset 96\n"                          \
            "    .cfi_offset x29, -96\n    .cfi_offset x30, -88\n"                                 \
            "    stp x0, x1, [sp, #16]\n"                                                          \
            "    stp x2, x3, [sp, #32]\n"                                                          \
            "    stp x4, x5, [sp, #48]\n"                                                          \
            "    stp x6, x7, [sp, #64]\n"                                                          \
            "    str x8, [sp, #80]\n"                                                              \
            "    mov x0, x30\n" /* where we were called from */                                   \
            "    bl " #note "\n"                                                                   \
            "    mov x16, x0\n"                                                                    \
            "    ldp x0, x1, [sp, #16]\n"                                                          \
            "    ldp x2, x3, [sp, #32]\n"                                                          \
            "    ldp x4, x5, [sp, #48]\n"                                                          \
            "    ldp x6, x7, [sp, #64]\n"                                                          \
            "    ldr x8, [sp, #80]\n"                                                              \
            "    ldp x29, x30, [sp], #96\n    .cfi_def_cfa_offset 0\n"                             \
            "    .cfi_restore x29\n    .cfi_restore x30\n"                                         \
            "    cbz x16, 1f\n"                                                                    \
            "    br x16\n"                                                                         \
            "1:  brk #1\n"                                                                         \
            ".cfi_endproc\n"                                                                       \
            ".size " torchs ", . - " torchs "\n"                                                   \
            ".size " #ours ", . - " #ours "\n")
#else
#error "torch_stubs: write the stub for this architecture"
#endif

STUB(tmk_stub_backward, TMK_NAME_BACKWARD, tmk_torch_begin_backward);
STUB(tmk_stub_pool_bool, TMK_NAME_POOL_BOOL, tmk_torch_use_pool_bool);
STUB(tmk_stub_pool_int, TMK_NAME_POOL_INT, tmk_torch_use_pool_int);
STUB(tmk_stub_external, TMK_NAME_EXTERNAL, tmk_torch_use_external);
STUB(tmk_stub_push, TMK_NAME_PUSH, tmk_torch_use_push);
STUB(tmk_stub_guard, TMK_NAME_GUARD, tmk_torch_use_guard);
/* clang-format on */
