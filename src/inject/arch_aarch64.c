/* SPDX-License-Identifier: MIT */
/* inject/arch_aarch64.c - see arch.h.
 *
 * Here the kernel prepares the restart of a broken-off call before it stops the thread: x0 has the
 * first argument again and pc is at the svc. So registers put back exactly start the call anew; a
 * relative sleep is then slept in full again, which is what it costs to have no orig_x0. */
#include "inject/arch.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

const uint16_t tmk_arch_machine = EM_AARCH64;
const bool tmk_sigreturn_in_libc = false;

enum { RECORD_BYTES = 4096 }; /* more than glibc's struct pthread, which ends where tp points */

uint64_t tmk_general_pc(const struct user_regs_struct *g)
{
    return g->pc;
}

uint64_t tmk_general_sp(const struct user_regs_struct *g)
{
    return g->sp;
}

bool tmk_general_thread_record(pid_t tid, const struct user_regs_struct *g, uint64_t *ret_start,
                               uint64_t *ret_end)
{
    uint64_t tp = 0;
    struct iovec to = {.iov_base = &tp, .iov_len = sizeof tp};
    (void)g;
    if (ptrace(PTRACE_GETREGSET, tid, NT_ARM_TLS, &to) < 0 || tp < RECORD_BYTES)
        return false;
    *ret_start = tp - RECORD_BYTES;
    *ret_end = tp;
    return true;
}

/* x0 is overwritten by -EINTR and the argument is lost: nothing can be done. Few calls end so. */
void tmk_general_rewind(struct user_regs_struct *g)
{
    (void)g;
}

void tmk_general_for_syscall(struct user_regs_struct *g, uint64_t instruction, long number,
                             const uint64_t arguments[6])
{
    g->pc = instruction;
    g->regs[8] = (unsigned long long)number;
    for (int i = 0; i < 6; i++)
        g->regs[i] = arguments[i];
}

int64_t tmk_general_result(const struct user_regs_struct *g)
{
    return (int64_t)g->regs[0];
}

void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block,
                          uint64_t data_bytes)
{
    tmk_general_for_syscall(
        g, pc, SYS_mprotect,
        (uint64_t[6]){block, data_bytes, PROT_READ | PROT_WRITE}); /* the stub's first act */
    g->sp = (block + data_bytes) & ~(uint64_t)15;
    g->regs[29] = 0;
    g->regs[30] = 0;
    g->regs[19] = block;
    g->pstate &= ~(uint64_t)0xc00; /* BTYPE: a thread stopped between a jump and its landing */
}

ssize_t tmk_code_find_syscall(const uint8_t *code, size_t n)
{
    for (size_t i = 0; i + 4 <= n; i += 4)
        if (memcmp(code + i, "\x01\x00\x00\xd4", 4) == 0) /* svc #0 */
            return (ssize_t)i;
    return -1;
}

ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n)
{
    for (size_t i = 0; i + 8 <= n; i += 4)
        if (memcmp(code + i, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 8) == 0) /* mov x8, #139; svc */
            return (ssize_t)i;
    return -1;
}

/* bl, or blr with or without pointer authentication. */
bool tmk_code_ends_in_call(const uint8_t *end)
{
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u || (word & 0xfefff000u) == 0xd63f0000u;
}

/* The return address is in the handler's own frame, whose distance to the kernel's is unknown. */
bool tmk_sigframe_interrupted(const uint8_t *stack, size_t n, uint64_t *ret_pc, uint64_t *ret_sp)
{
    (void)stack;
    (void)n;
    (void)ret_pc;
    (void)ret_sp;
    return false;
}

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl tmk_stub, tmk_stub_bytes\n"
        ".hidden tmk_stub, tmk_stub_bytes\n"
        "tmk_stub_bytes: .quad tmk_stub_end - tmk_stub\n"
        ".balign 16\n"
        "tmk_stub:\n"  /* x19: the block */
        "    svc #0\n" /* mprotect */
        "    ldr x16, [x19]\n"
        "    blr x16\n"
        "    mov x20, x0\n" /* where errno is */
        "    ldr w21, [x0]\n"
        "    add x0, x19, #152\n"
        "    mov x1, xzr\n"
        "    adr x2, tmk_stub_helper\n"
        "    mov x3, x19\n"
        "    ldr x16, [x19, #8]\n"
        "    blr x16\n"
        "    str w21, [x20]\n"
        "    str w0, [x19, #164]\n"
        "    mov w1, #1\n"
        "    dmb ish\n"
        "    str w1, [x19, #160]\n"
        "1:  mov x0, xzr\n" /* ppoll(nothing, for ever) */
        "    mov x1, xzr\n"
        "    mov x2, xzr\n"
        "    mov x3, xzr\n"
        "    mov x8, #73\n"
        "    svc #0\n"
        "    b 1b\n"
        "tmk_stub_helper:\n" /* x0: the block */
        "    stp x29, x30, [sp, #-32]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    mov x29, sp\n"
        "    mov x19, x0\n"
        "    ldr x16, [x19, #16]\n"
        "    blr x16\n"
        "    ldr x16, [x19, #24]\n"
        "    blr x16\n"
        "    ldr x20, [x19, #56]\n"
        "    cbnz x20, 3f\n"
        "    ldr x0, [x19, #88]\n"
        "    ldr w1, [x19, #188]\n"
        "    ldr x16, [x19, #32]\n"
        "    blr x16\n"
        "    cbz x0, 2f\n"
        "    ldr x1, [x19, #96]\n"
        "    ldr x16, [x19, #40]\n"
        "    blr x16\n"
        "    mov x20, x0\n"
        "    cbnz x20, 3f\n"
        "2:  ldr x16, [x19, #48]\n" /* not loaded */
        "    cbz x16, 1f\n"
        "    blr x16\n"
        "    str x0, [x19, #192]\n"
        "1:  mov w1, #3\n"
        "    b 5f\n"
        "3:  ldr w1, [x19, #176]\n" /* x20: the function */
        "    cbz w1, 4f\n"
        "    mov w1, #4\n"
        "    b 5f\n"
        "4:  mov w1, #1\n"
        "    str w1, [x19, #168]\n"
        "    ldr x0, [x19, #104]\n"
        "    ldr x1, [x19, #112]\n"
        "    ldr x2, [x19, #120]\n"
        "    blr x20\n"
        "    str w0, [x19, #172]\n"
        "    mov w1, #2\n"
        "5:  dmb ish\n"
        "    str w1, [x19, #168]\n"
        "    ldr x0, [x19, #144]\n"
        "    tbnz x0, #63, 6f\n"
        "    ldr x16, [x19, #72]\n"
        "    blr x16\n"
        "6:  mov w20, #2000\n" /* times 5 ms, should nobody read */
        "7:  ldr w1, [x19, #180]\n"
        "    cbnz w1, 8f\n"
        "    mov x0, xzr\n"
        "    mov x1, xzr\n"
        "    mov w2, #5\n"
        "    ldr x16, [x19, #64]\n"
        "    blr x16\n"
        "    ldr w1, [x19, #184]\n"
        "    cbz w1, 7b\n"
        "    subs w20, w20, #1\n"
        "    b.ne 7b\n"
        "8:  ldr x16, [x19, #80]\n"
        "    ldr x0, [x19, #128]\n"
        "    ldr x1, [x19, #136]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    br x16\n" /* munmap() returns 0 to where we were called from */
        "tmk_stub_end:\n"
        ".popsection\n");
