/* SPDX-License-Identifier: MIT */
/* record/control/seccomp_stub.S - our prctl() and syscall(); see seal.h.
 *
 * Each looks at its arguments and jumps to the next one behind it, so that the stack, the arguments
 * and the return address are the caller's. The way through tmk_seccomp_before() is for calls that may
 * install a filter, and until the next one is known. Where there is none (before the loader has
 * prepared us), the system call is made here, as the C library makes it. */
#define NR_SECCOMP_X86 317
#define NR_PRCTL_X86 157
#define NR_SECCOMP_ARM 277
#define NR_PRCTL_ARM 167
#define SET_SECCOMP 22    /* PR_SET_SECCOMP */

#if defined(__x86_64__)
.text
.macro slow_way which
    sub $72, %rsp    /* six arguments, %rax (how many vector registers a variadic call has) */
    .cfi_adjust_cfa_offset 72
    mov %rdi, (%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    mov $\which, %edi
    mov %rsp, %rsi
    call tmk_seccomp_before
    mov %rax, %r11
    mov (%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    add $72, %rsp
    .cfi_adjust_cfa_offset -72
    test %r11, %r11
    jz 3f
    jmp *%r11
.endm
.macro result    /* as the C library gives it */
    cmp $-4095, %rax
    jae 4f
    ret
4:  neg %eax
    push %rax
    .cfi_adjust_cfa_offset 8
    call __errno_location@PLT
    pop %rcx
    .cfi_adjust_cfa_offset -8
    mov %ecx, (%rax)
    mov $-1, %rax
    ret
.endm

.globl prctl
.globl tmk_seccomp_stub_prctl
.hidden tmk_seccomp_stub_prctl
.type prctl, @function
.type tmk_seccomp_stub_prctl, @function
prctl:
tmk_seccomp_stub_prctl:
.cfi_startproc
    endbr64
    cmp $SET_SECCOMP, %edi
    je 1f
    mov tmk_seccomp_next(%rip), %r11
    test %r11, %r11
    jz 1f
    jmp *%r11
1:  slow_way 0
3:  mov %rcx, %r10
    mov $NR_PRCTL_X86, %eax
    syscall
    result
.cfi_endproc
.size prctl, . - prctl

.globl syscall
.globl tmk_seccomp_stub_syscall
.hidden tmk_seccomp_stub_syscall
.type syscall, @function
.type tmk_seccomp_stub_syscall, @function
syscall:
tmk_seccomp_stub_syscall:
.cfi_startproc
    endbr64
    cmp $NR_SECCOMP_X86, %rdi
    je 1f
    cmp $NR_PRCTL_X86, %rdi
    jne 2f
    cmp $SET_SECCOMP, %esi
    je 1f
2:  mov tmk_seccomp_next+8(%rip), %r11
    test %r11, %r11
    jz 1f
    jmp *%r11
1:  slow_way 1
3:  mov %rdi, %rax
    mov %rsi, %rdi
    mov %rdx, %rsi
    mov %rcx, %rdx
    mov %r8, %r10
    mov %r9, %r8
    mov 8(%rsp), %r9
    syscall
    result
.cfi_endproc
.size syscall, . - syscall

#elif defined(__aarch64__)
.text
.macro slow_way which
    stp x29, x30, [sp, #-80]!
    .cfi_def_cfa_offset 80
    .cfi_offset x29, -80
    .cfi_offset x30, -72
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    mov w0, #\which
    add x1, sp, #16
    bl tmk_seccomp_before
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    cbz x16, 3f
    br x16
.endm
.macro result
    cmn x0, #4095
    b.cs 4f
    ret
4:  neg w0, w0
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    str w0, [sp, #16]
    bl __errno_location
    ldr w1, [sp, #16]
    str w1, [x0]
    mov x0, #-1
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    .cfi_restore x29
    .cfi_restore x30
    ret
.endm

.globl prctl
.globl tmk_seccomp_stub_prctl
.hidden tmk_seccomp_stub_prctl
.type prctl, %function
.type tmk_seccomp_stub_prctl, %function
prctl:
tmk_seccomp_stub_prctl:
.cfi_startproc
    hint 34    /* bti c */
    cmp w0, #SET_SECCOMP
    b.eq 1f
    adrp x16, tmk_seccomp_next
    ldr x16, [x16, #:lo12:tmk_seccomp_next]
    cbz x16, 1f
    br x16
1:  slow_way 0
3:  mov x8, #NR_PRCTL_ARM
    svc #0
    result
.cfi_endproc
.size prctl, . - prctl

.globl syscall
.globl tmk_seccomp_stub_syscall
.hidden tmk_seccomp_stub_syscall
.type syscall, %function
.type tmk_seccomp_stub_syscall, %function
syscall:
tmk_seccomp_stub_syscall:
.cfi_startproc
    hint 34
    cmp x0, #NR_SECCOMP_ARM
    b.eq 1f
    cmp x0, #NR_PRCTL_ARM
    b.ne 2f
    cmp w1, #SET_SECCOMP
    b.eq 1f
2:  adrp x16, tmk_seccomp_next
    add x16, x16, #:lo12:tmk_seccomp_next
    ldr x16, [x16, #8]
    cbz x16, 1f
    br x16
1:  slow_way 1
3:  mov x8, x0
    mov x0, x1
    mov x1, x2
    mov x2, x3
    mov x3, x4
    mov x4, x5
    mov x5, x6
    svc #0
    result
.cfi_endproc
.size syscall, . - syscall
#endif
    .section .note.GNU-stack,"",%progbits
