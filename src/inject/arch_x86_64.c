/* SPDX-License-Identifier: MIT */
/* inject/arch_x86_64.c - see arch.h.
 *
 * A thread stopped in a system call has the call's number in orig_rax and an ERESTART code in rax.
 * The kernel looks at both when the thread continues, so registers that are put back exactly
 * restart the call with its remaining time. While we borrow the thread, orig_rax = -1 says "not in
 * a call".
 *
 * Without a tracer the return path does what the kernel would have done: it goes back to the system
 * call instruction, with the call's number in rax, or that of restart_syscall(). For the latter the
 * kernel remembers the rest of a sleep; none of our calls overwrites that (rt_sigreturn() would,
 * and so would an interrupted poll()). A call that a signal handler would have ended must end.
 * Signals have been blocked, so the path looks which ones have come (rt_sigpending) and how each is
 * handled (rt_sigaction) before it lets them through. Before and after the time in which they are
 * blocked, a stopped thread has the ERESTART code of its call and rip within the path. To restart a
 * call the kernel subtracts two from rip, so the two outcomes are two entries that lie two bytes
 * apart. */
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

/* The kernel's ERESTART codes. */
enum { RESTART_SYS = -512, RESTART_NOINTR = -513, RESTART_NOHAND = -514, RESTART_BLOCK = -516 };

void tmk_general_rewind(struct user_regs_struct *g)
{
    if ((int64_t)g->rax == -EINTR && ends_without_effect((long)g->orig_rax))
        g->rax = (unsigned long long)RESTART_NOHAND;
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

void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block, uint64_t stack)
{
    g->orig_rax = (unsigned long long)-1;
    g->rip = pc;
    g->rsp = stack & ~(uint64_t)15;
    g->rbp = 0;
    g->rbx = block;
    g->eflags &= ~(uint64_t)0x400; /* the calling convention wants the direction flag clear */
}

uint64_t tmk_general_flags(const struct user_regs_struct *g)
{
    return g->eflags;
}

/* No registers are special: system calls change no vector register, and xsave saves them all. */
bool tmk_registers_are_special(const struct tmk_registers *registers)
{
    (void)registers;
    return false;
}

/* The effects of a signal handler on the call that was interrupted. */
enum restart { RESTARTS_ANYWAY = 0, ENDS_IF_HANDLED = 1, ENDS_IF_NOT_ASKED = 2 };

static enum restart restart_of(const struct user_regs_struct *g)
{
    int64_t result = (int64_t)g->orig_rax < 0 ? 0 : (int64_t)g->rax;
    if (result == RESTART_NOHAND || result == RESTART_BLOCK)
        return ENDS_IF_HANDLED;
    return result == RESTART_SYS ? ENDS_IF_NOT_ASKED : RESTARTS_ANYWAY; /* SA_RESTART asks */
}

/* Set the registers as the kernel does when no handler runs. */
static void restart_as_kernel(struct user_regs_struct *g)
{
    int64_t result = (int64_t)g->rax;
    if ((int64_t)g->orig_rax < 0)
        return;
    if (result == RESTART_SYS || result == RESTART_NOINTR || result == RESTART_NOHAND)
        g->rax = g->orig_rax;
    else if (result == RESTART_BLOCK)
        g->rax = SYS_restart_syscall;
    else
        return;
    g->rip -= 2;
}

bool tmk_return_fill(uint8_t *path, uint64_t address, uint64_t scratch,
                     const struct user_regs_struct *g)
{
    struct user_regs_struct r = *g;
    (void)address;
    restart_as_kernel(&r);
    const uint64_t values[] = {
        r.rax,
        r.rdi,
        r.rsi,
        r.rdx,
        r.r10,
        r.r8,
        r.r9,
        r.rcx,
        r.r11,
        r.rbx,
        r.rbp,
        r.r12,
        r.r13,
        r.r14,
        r.r15,
        r.rsp,
        r.rip,
        g->rip,
        scratch ? restart_of(g) : RESTARTS_ANYWAY,
        scratch,
    };
    memcpy(path + sizeof(struct tmk_return_head), values, sizeof values);
    return true;
}

extern const uint64_t tmk_return_ended; /* offset of the entry for a call that ended in EINTR */

void tmk_general_for_return(struct user_regs_struct *g, uint64_t path)
{
    struct user_regs_struct restarted = *g;
    restart_as_kernel(&restarted);
    bool is_kernels = restarted.rip != g->rip;
    g->rip = is_kernels ? path + tmk_return_ended : path + tmk_return_back;
}

ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n)
{
    const uint8_t *at = memmem(code, n, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
    return at ? at - code : -1;
}

/* A call is e8 rel32, or ff /2 with a ModRM byte, SIB and displacement of any length. */
bool tmk_code_ends_in_call(const uint8_t *end)
{
    if (end[-5] == 0xe8)
        return true;
    for (int n = 2; n <= 7; n++)
        if (end[-n] == 0xff && (end[1 - n] & 0x38) == 0x10)
            return true;
    return false;
}

/* struct rt_sigframe: the return address, then a ucontext; its registers begin after 40 bytes. */
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
        ".globl tmk_return, tmk_return_bytes, tmk_return_call, tmk_return_back, tmk_return_ended\n"
        ".hidden tmk_return, tmk_return_bytes, tmk_return_call, tmk_return_back, tmk_return_ended\n"
        "tmk_return_bytes: .quad 9f - tmk_return\n"
        "tmk_return_ended: .quad 1f - tmk_return\n"
        "tmk_return_call: .quad 2f - tmk_return\n"
        "tmk_return_back: .quad 3f - tmk_return\n"
        ".balign 16\n"
        "tmk_return:\n"
        "    .fill 5, 8, 0\n"  /* struct tmk_return_head; the mask is at 32 */
        "    .fill 17, 8, 0\n" /* 40: the registers */
        "    .fill 3, 8, 0\n"  /* 176: rip of a call that has ended, enum restart, scratch */
        "    jmp 3f\n"         /* two bytes */
        "1:  mov $1, %ebx\n"   /* ended */
        "    jmp 6f\n"
        "2:  syscall\n"
        "3:  mov $0, %ebx\n" /* where no call was broken off, flags stay as they are */
        "    mov tmk_return+184(%rip), %rcx\n"
        "    jrcxz 6f\n"
        "    mov $127, %eax\n" /* rt_sigpending(scratch, 8) */
        "    mov tmk_return+192(%rip), %rdi\n"
        "    mov $8, %esi\n"
        "    syscall\n"
        "    mov tmk_return+192(%rip), %rdx\n"
        "    mov tmk_return+32(%rip), %r14\n"
        "    not %r14\n"
        "    and (%rdx), %r14\n" /* those that will come when they are not blocked any more */
        "4:  bsf %r14, %rdi\n"
        "    jz 6f\n"
        "    btr %rdi, %r14\n"
        "    inc %edi\n"
        "    mov $13, %eax\n" /* rt_sigaction(signal, NULL, scratch, 8) */
        "    xor %esi, %esi\n"
        "    mov $8, %r10d\n"
        "    syscall\n"
        "    cmpq $1, (%rdx)\n" /* SIG_DFL, SIG_IGN */
        "    jbe 4b\n"
        "    cmpl $1, tmk_return+184(%rip)\n"
        "    je 5f\n"
        "    testl $0x10000000, 8(%rdx)\n" /* SA_RESTART */
        "    jnz 6f\n"
        "5:  mov $1, %ebx\n"
        "6:  mov tmk_return+160(%rip), %rsp\n" /* handlers run on its own stack */
        "    mov $14, %eax\n"                  /* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
        "    mov $2, %edi\n"
        "    lea tmk_return+32(%rip), %rsi\n"
        "    mov $0, %edx\n"
        "    mov $8, %r10d\n"
        "    syscall\n"
        "    mov tmk_return+48(%rip), %rdi\n"
        "    mov tmk_return+56(%rip), %rsi\n"
        "    mov tmk_return+64(%rip), %rdx\n"
        "    mov tmk_return+72(%rip), %r10\n"
        "    mov tmk_return+80(%rip), %r8\n"
        "    mov tmk_return+88(%rip), %r9\n"
        "    mov tmk_return+104(%rip), %r11\n"
        "    mov tmk_return+120(%rip), %rbp\n"
        "    mov tmk_return+128(%rip), %r12\n"
        "    mov tmk_return+136(%rip), %r13\n"
        "    mov tmk_return+144(%rip), %r14\n"
        "    mov tmk_return+152(%rip), %r15\n"
        "    mov %rbx, %rcx\n"
        "    mov tmk_return+112(%rip), %rbx\n"
        "    jrcxz 7f\n"
        "    mov tmk_return+96(%rip), %rcx\n"
        "    mov $-4, %rax\n" /* -EINTR */
        "    jmp *tmk_return+176(%rip)\n"
        "7:  mov tmk_return+96(%rip), %rcx\n"
        "    mov tmk_return+40(%rip), %rax\n"
        "    jmp *tmk_return+168(%rip)\n"
        ".balign 8\n"
        "9:\n"
        ".popsection\n");

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl tmk_stub, tmk_stub_bytes\n"
        ".hidden tmk_stub, tmk_stub_bytes\n"
        "tmk_stub_bytes: .quad tmk_stub_end - tmk_stub\n"
        ".balign 16\n"
        "tmk_stub:\n"                 /* rbx: the block */
        "    mov $0xfff9ffff, %eax\n" /* all but the matrix tiles, which only their user changes */
        "    mov $0xffffffff, %edx\n"
        "    cmpl $0, 224(%rbx)\n"
        "    je 1f\n"
        "    xsave64 65536(%rbx)\n"
        "    jmp 2f\n"
        "1:  fxsave64 65536(%rbx)\n"
        "2:  call *0(%rbx)\n"
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
        "    mov $20, %r14d\n"
        "1:  movq $0, 208(%rbx)\n" /* ppoll(NULL, 0, 5 ms, NULL) */
        "    movq $5000000, 216(%rbx)\n"
        "    mov $271, %eax\n"
        "    xor %edi, %edi\n"
        "    xor %esi, %esi\n"
        "    lea 208(%rbx), %rdx\n"
        "    xor %r10d, %r10d\n"
        "    mov $8, %r8d\n"
        "    syscall\n"
        "    dec %r14d\n"
        "    jnz 1b\n"
        "    mov $0xfff9ffff, %eax\n"
        "    mov $0xffffffff, %edx\n"
        "    cmpl $0, 224(%rbx)\n"
        "    je 1f\n"
        "    xrstor64 65536(%rbx)\n"
        "    jmp 2f\n"
        "1:  fxrstor64 65536(%rbx)\n"
        "2:  push 200(%rbx)\n"
        "    popfq\n"
        "    jmp *56(%rbx)\n"
        "tmk_stub_helper:\n" /* rdi: the block */
        "    push %rbx\n"
        "    push %r12\n"
        "    sub $8, %rsp\n"
        "    mov %rdi, %rbx\n"
        "    call *16(%rbx)\n"
        "    mov %rax, %rdi\n"
        "    call *24(%rbx)\n"
        "    xor %edi, %edi\n" /* dlsym(RTLD_DEFAULT, symbol) */
        "    mov 96(%rbx), %rsi\n"
        "    call *40(%rbx)\n"
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
        "    dec %r12d\n"
        "    jnz 7b\n"
        "8:  xor %eax, %eax\n"
        "    cmpl $0, 184(%rbx)\n"
        "    je 9f\n"
        "    mov 80(%rbx), %rax\n"
        "    mov 128(%rbx), %rdi\n"
        "    mov 136(%rbx), %rsi\n"
        "    add $8, %rsp\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    jmp *%rax\n" /* munmap() returns 0 to where we were called from */
        "9:  add $8, %rsp\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    ret\n"
        "tmk_stub_end:\n"
        ".popsection\n");
