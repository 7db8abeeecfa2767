/* SPDX-License-Identifier: MIT */
/* record/control/dlsym_stub.S - our dlsym(); see dlsym_hook.h. In a file of its own because glibc_compat.h, which
 * is put in front of every C source, binds the name dlsym to the C library's. */
#if defined(__x86_64__)
.text
.globl dlsym
.type dlsym, @function
dlsym:
.cfi_startproc
    endbr64
    test %rsi, %rsi
    jz 1f
    cmpb $99, (%rsi)    /* "cu" */
    jne 3f
    cmpb $117, 1(%rsi)
    je 5f
3:  cmpb $112, (%rsi)    /* "pr", as in prctl */
    jne 4f
    cmpb $114, 1(%rsi)
    je 5f
4:  cmpb $115, (%rsi)    /* "sy", as in syscall */
    jne 1f
    cmpb $121, 1(%rsi)
    jne 1f
5:  push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call tmk_dlsym_answer
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    test %rax, %rax
    jz 1f
    cmp $-1, %rax    /* TMK_DLSYM_NONE */
    jne 2f
    xor %eax, %eax
2:  ret
1:  push %rdi
    .cfi_adjust_cfa_offset 8
    push %rsi
    .cfi_adjust_cfa_offset 8
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    call tmk_loader_next_dlsym
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    pop %rsi
    .cfi_adjust_cfa_offset -8
    pop %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
.cfi_endproc
.size dlsym, . - dlsym
#elif defined(__aarch64__)
.text
.globl dlsym
.type dlsym, %function
dlsym:
.cfi_startproc
    hint 34    /* bti c */
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    stp x0, x1, [sp, #16]
    cbz x1, 1f
    ldrb w2, [x1]
    cbz w2, 1f
    ldrb w3, [x1, #1]
    orr w2, w3, w2, lsl #8
    mov w3, #0x6375    /* "cu" */
    cmp w2, w3
    b.eq 3f
    mov w3, #0x7072    /* "pr", as in prctl */
    cmp w2, w3
    b.eq 3f
    mov w3, #0x7379    /* "sy", as in syscall */
    cmp w2, w3
    b.ne 1f
3:  bl tmk_dlsym_answer
    cbz x0, 1f
    cmn x0, #1    /* TMK_DLSYM_NONE */
    csel x0, xzr, x0, eq
    b 2f
1:  bl tmk_loader_next_dlsym
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_remember_state
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    br x16
2:  .cfi_restore_state
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    ret
.cfi_endproc
.size dlsym, . - dlsym
#endif
    .section .note.GNU-stack,"",%progbits
