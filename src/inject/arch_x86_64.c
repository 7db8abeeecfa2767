/* SPDX-License-Identifier: MIT */
/* inject/arch_x86_64.c - see arch.h.
 *
 * A thread stopped in a system call has its number in orig_rax and an ERESTART code in rax; the
 * kernel looks at both when the thread goes on, so registers put back exactly bring the call back,
 * its remaining time included. orig_rax = -1 says "not in a call" while the thread is ours. */
#include "inject/arch.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

const uint16_t tmk_arch_machine = EM_X86_64;
const bool tmk_sigreturn_in_libc = true;

uint64_t tmk_general_pc(const struct user_regs_struct *g)
{
    return g->rip;
}

uint64_t tmk_general_sp(const struct user_regs_struct *g)
{
    return g->rsp;
}

bool tmk_general_thread_record(pid_t tid, const struct user_regs_struct *g, uint64_t *ret_start,
                               uint64_t *ret_end)
{
    (void)tid;
    if (g->fs_base == 0)
        return false;
    *ret_start = g->fs_base;
    *ret_end = g->fs_base + 1024;
    return true;
}

/* Calls that end in EINTR at any stop, without having done anything. */
static bool ends_without_effect(long number)
{
    switch (number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_rt_sigtimedwait:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
        return true;
    default:
        return number == 441; /* epoll_pwait2, newer than some headers */
    }
}

void tmk_general_rewind(struct user_regs_struct *g)
{
    if ((int64_t)g->rax != -EINTR || !ends_without_effect((long)g->orig_rax))
        return;
    g->rax = g->orig_rax;
    g->rip -= 2;
    g->orig_rax = (unsigned long long)-1;
}

void tmk_general_for_syscall(struct user_regs_struct *g, uint64_t instruction, long number,
                             const uint64_t arguments[6])
{
    g->orig_rax = (unsigned long long)-1;
    g->rip = instruction;
    g->rax = (unsigned long long)number;
    g->rdi = arguments[0];
    g->rsi = arguments[1];
    g->rdx = arguments[2];
    g->r10 = arguments[3];
    g->r8 = arguments[4];
    g->r9 = arguments[5];
}

int64_t tmk_general_result(const struct user_regs_struct *g)
{
    return (int64_t)g->rax;
}

void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block,
                          uint64_t data_bytes)
{
    tmk_general_for_syscall(
        g, pc, SYS_mprotect,
        (uint64_t[6]){block, data_bytes, PROT_READ | PROT_WRITE}); /* the stub's first act */
    g->rsp = (block + data_bytes) & ~(uint64_t)15;
    g->rbp = 0;
    g->rbx = block;
    g->eflags &= ~(uint64_t)0x400; /* the calling convention wants the direction flag clear */
}

ssize_t tmk_code_find_syscall(const uint8_t *code, size_t n)
{
    const uint8_t *at = memmem(code, n, "\x0f\x05", 2);
    return at ? at - code : -1;
}

ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n)
{
    const uint8_t *at = memmem(code, n, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
    return at ? at - code : -1;
}

/* e8 rel32, or ff /2 with a ModRM byte, SIB and displacement of any length. */
bool tmk_code_ends_in_call(const uint8_t *end)
{
    if (end[-5] == 0xe8)
        return true;
    for (int n = 2; n <= 7; n++)
        if (end[-n] == 0xff && (end[1 - n] & 0x38) == 0x10)
            return true;
    return false;
}

/* struct rt_sigframe: the return address, then a ucontext whose registers begin after 40 bytes. */
bool tmk_sigframe_interrupted(const uint8_t *stack, size_t n, uint64_t *ret_pc, uint64_t *ret_sp)
{
    enum { REGISTERS = 8 + 40, RSP = REGISTERS + 15 * 8, RIP = REGISTERS + 16 * 8 };
    if (n < RIP + 8)
        return false;
    memcpy(ret_pc, stack + RIP, sizeof *ret_pc);
    memcpy(ret_sp, stack + RSP, sizeof *ret_sp);
    return true;
}

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl tmk_stub, tmk_stub_bytes\n"
        ".hidden tmk_stub, tmk_stub_bytes\n"
        "tmk_stub_bytes: .quad tmk_stub_end - tmk_stub\n"
        ".balign 16\n"
        "tmk_stub:\n"   /* rbx: the block */
        "    syscall\n" /* mprotect */
        "    call *0(%rbx)\n"
        "    mov %rax, %r12\n" /* where errno is */
        "    mov (%rax), %r13d\n"
        "    lea 152(%rbx), %rdi\n"
        "    xor %esi, %esi\n"
        "    lea tmk_stub_helper(%rip), %rdx\n"
        "    mov %rbx, %rcx\n"
        "    call *8(%rbx)\n"
        "    mov %r13d, (%r12)\n"
        "    mov %eax, 164(%rbx)\n"
        "    movl $1, 160(%rbx)\n"
        "1:  mov $34, %eax\n" /* pause() */
        "    syscall\n"
        "    jmp 1b\n"
        "tmk_stub_helper:\n" /* rdi: the block */
        "    push %rbx\n"
        "    push %r12\n"
        "    sub $8, %rsp\n"
        "    mov %rdi, %rbx\n"
        "    call *16(%rbx)\n"
        "    mov %rax, %rdi\n"
        "    call *24(%rbx)\n"
        "    mov 56(%rbx), %rax\n"
        "    test %rax, %rax\n"
        "    jnz 3f\n"
        "    mov 88(%rbx), %rdi\n"
        "    mov 188(%rbx), %esi\n"
        "    call *32(%rbx)\n"
        "    test %rax, %rax\n"
        "    jz 2f\n"
        "    mov %rax, %rdi\n"
        "    mov 96(%rbx), %rsi\n"
        "    call *40(%rbx)\n"
        "    test %rax, %rax\n"
        "    jnz 3f\n"
        "2:  mov 48(%rbx), %rax\n" /* not loaded */
        "    test %rax, %rax\n"
        "    jz 1f\n"
        "    call *%rax\n"
        "    mov %rax, 192(%rbx)\n"
        "1:  movl $3, 168(%rbx)\n"
        "    jmp 5f\n"
        "3:  cmpl $0, 176(%rbx)\n" /* rax: the function */
        "    je 4f\n"
        "    movl $4, 168(%rbx)\n"
        "    jmp 5f\n"
        "4:  movl $1, 168(%rbx)\n"
        "    mov 104(%rbx), %rdi\n"
        "    mov 112(%rbx), %rsi\n"
        "    mov 120(%rbx), %rdx\n"
        "    call *%rax\n"
        "    mov %eax, 172(%rbx)\n"
        "    movl $2, 168(%rbx)\n"
        "5:  mov 144(%rbx), %rdi\n"
        "    test %rdi, %rdi\n"
        "    js 6f\n"
        "    call *72(%rbx)\n"
        "6:  mov $2000, %r12d\n" /* times 5 ms, should nobody read */
        "7:  cmpl $0, 180(%rbx)\n"
        "    jne 8f\n"
        "    xor %edi, %edi\n"
        "    xor %esi, %esi\n"
        "    mov $5, %edx\n"
        "    call *64(%rbx)\n"
        "    cmpl $0, 184(%rbx)\n"
        "    je 7b\n"
        "    dec %r12d\n"
        "    jnz 7b\n"
        "8:  mov 80(%rbx), %rax\n"
        "    mov 128(%rbx), %rdi\n"
        "    mov 136(%rbx), %rsi\n"
        "    add $8, %rsp\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    jmp *%rax\n" /* munmap() returns 0 to where we were called from */
        "tmk_stub_end:\n"
        ".popsection\n");
