/* SPDX-License-Identifier: MIT */
/* inject/arch_aarch64.c - see arch.h.
 *
 * On aarch64 the kernel prepares the restart of an interrupted call before it stops the thread: x0
 * has the first argument again and pc is at the svc. So registers that are put back exactly start
 * the call anew. A relative sleep then starts from its full length, because there is no orig_x0.
 *
 * No instruction jumps to an address in memory, and no register is free to hold one. So the return
 * path ends in a direct branch, which we encode for each thread. It reaches 128 MiB. */
#include "inject/arch.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

const uint16_t tmk_arch_machine = EM_AARCH64;
const bool tmk_sigreturn_in_libc = false;

enum {
    RECORD_BYTES = 4096, /* more than glibc's struct pthread, which ends where tp points */
    BTYPE_BITS = 0xc00,  /* set in a thread stopped between a jump and its landing */
};

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

/* -EINTR has overwritten x0, so the argument is lost and nothing can be done. Few calls end so. */
void tmk_general_rewind(struct user_regs_struct *g)
{
    (void)g;
}

void tmk_general_for_syscall(struct user_regs_struct *g, uint64_t instruction, long number,
                             const uint64_t arguments[6])
{
    g->pc = instruction;
    g->pstate &= ~(uint64_t)BTYPE_BITS;
    g->regs[8] = (unsigned long long)number;
    for (int i = 0; i < 6; i++)
        g->regs[i] = arguments[i];
}

int64_t tmk_general_result(const struct user_regs_struct *g)
{
    return (int64_t)g->regs[0];
}

void tmk_general_for_stub(struct user_regs_struct *g, uint64_t pc, uint64_t block, uint64_t stack)
{
    g->pc = pc;
    g->sp = stack & ~(uint64_t)15;
    g->regs[29] = 0;
    g->regs[30] = 0;
    g->regs[19] = block;
    g->pstate &= ~(uint64_t)BTYPE_BITS;
}

uint64_t tmk_general_flags(const struct user_regs_struct *g)
{
    return g->pstate & 0xf0000000u; /* NZCV */
}

/* A system call clears the bits of SVE registers above 128. */
bool tmk_registers_are_special(const struct tmk_registers *registers)
{
    const struct tmk_register_set *sve = &registers->extended[1];
    enum { FLAGS_AT = 12, IN_USE = 1 }; /* of struct user_sve_header */
    uint16_t flags = 0;
    if (sve->n_bytes >= FLAGS_AT + sizeof flags)
        memcpy(&flags, sve->bytes + FLAGS_AT, sizeof flags);
    return flags & IN_USE;
}

extern const uint64_t tmk_return_jump; /* offset of the branch */

/* The stop has overwritten whether and how a call was interrupted, so the call is started again. */
bool tmk_return_fill(uint8_t *path, uint64_t address, uint64_t scratch,
                     const struct user_regs_struct *g)
{
    (void)scratch;
    int64_t distance = (int64_t)(g->pc - (address + tmk_return_jump));
    if (distance < -(1 << 27) || distance >= 1 << 27 || distance & 3)
        return false;
    uint32_t branch = 0x14000000u | ((uint32_t)((uint64_t)distance >> 2) & 0x03ffffffu);
    memcpy(path + sizeof(struct tmk_return_head), g->regs, sizeof g->regs);
    memcpy(path + sizeof(struct tmk_return_head) + sizeof g->regs, &g->sp, sizeof g->sp);
    memcpy(path + tmk_return_jump, &branch, sizeof branch);
    return true;
}

void tmk_general_for_return(struct user_regs_struct *g, uint64_t path)
{
    g->pc = path + tmk_return_back;
    g->pstate &= ~(uint64_t)BTYPE_BITS;
}

ssize_t tmk_code_find_sigreturn(const uint8_t *code, size_t n)
{
    for (size_t i = 0; i + 8 <= n; i += 4)
        if (memcmp(code + i, "\x68\x11\x80\xd2\x01\x00\x00\xd4", 8) == 0) /* mov x8, #139; svc */
            return (ssize_t)i;
    return -1;
}

/* A call is bl, or blr with or without pointer authentication. */
bool tmk_code_ends_in_call(const uint8_t *end)
{
    uint32_t word;
    memcpy(&word, end - 4, sizeof word);
    return (word & 0xfc000000u) == 0x94000000u || (word & 0xfefff000u) == 0xd63f0000u;
}

/* The return address is in the handler's own frame; its distance to the kernel's frame is
 * unknown. */
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
        ".globl tmk_return, tmk_return_bytes, tmk_return_call, tmk_return_back, tmk_return_jump\n"
        ".hidden tmk_return, tmk_return_bytes, tmk_return_call, tmk_return_back, tmk_return_jump\n"
        "tmk_return_bytes: .quad 4f - tmk_return\n"
        "tmk_return_call: .quad 1f - tmk_return\n"
        "tmk_return_back: .quad 2f - tmk_return\n"
        "tmk_return_jump: .quad 3f - tmk_return\n"
        ".balign 16\n"
        "tmk_return:\n"
        "    .fill 5, 8, 0\n"  /* struct tmk_return_head; the mask is at 32 */
        "    .fill 32, 8, 0\n" /* 40: x0 to x30, sp */
        "1:  svc #0\n"
        "2:  hint #38\n"   /* bti jc */
        "    mov x0, #2\n" /* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
        "    adr x1, tmk_return+32\n"
        "    mov x2, #0\n"
        "    mov x3, #8\n"
        "    mov x8, #135\n"
        "    svc #0\n"
        "    ldr x0, tmk_return+288\n"
        "    mov sp, x0\n"
        "    ldr x0, tmk_return+40\n"
        "    ldr x1, tmk_return+48\n"
        "    ldr x2, tmk_return+56\n"
        "    ldr x3, tmk_return+64\n"
        "    ldr x4, tmk_return+72\n"
        "    ldr x5, tmk_return+80\n"
        "    ldr x6, tmk_return+88\n"
        "    ldr x7, tmk_return+96\n"
        "    ldr x8, tmk_return+104\n"
        "    ldr x9, tmk_return+112\n"
        "    ldr x10, tmk_return+120\n"
        "    ldr x11, tmk_return+128\n"
        "    ldr x12, tmk_return+136\n"
        "    ldr x13, tmk_return+144\n"
        "    ldr x14, tmk_return+152\n"
        "    ldr x15, tmk_return+160\n"
        "    ldr x16, tmk_return+168\n"
        "    ldr x17, tmk_return+176\n"
        "    ldr x18, tmk_return+184\n"
        "    ldr x19, tmk_return+192\n"
        "    ldr x20, tmk_return+200\n"
        "    ldr x21, tmk_return+208\n"
        "    ldr x22, tmk_return+216\n"
        "    ldr x23, tmk_return+224\n"
        "    ldr x24, tmk_return+232\n"
        "    ldr x25, tmk_return+240\n"
        "    ldr x26, tmk_return+248\n"
        "    ldr x27, tmk_return+256\n"
        "    ldr x28, tmk_return+264\n"
        "    ldr x29, tmk_return+272\n"
        "    ldr x30, tmk_return+280\n"
        "3:  b .\n"
        ".balign 8\n"
        "4:\n"
        ".popsection\n");

__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        ".globl tmk_stub, tmk_stub_bytes\n"
        ".hidden tmk_stub, tmk_stub_bytes\n"
        "tmk_stub_bytes: .quad tmk_stub_end - tmk_stub\n"
        ".balign 16\n"
        "tmk_stub:\n" /* x19: the block */
        "    add x16, x19, #65536\n"
        "    stp q0, q1, [x16, #0]\n"
        "    stp q2, q3, [x16, #32]\n"
        "    stp q4, q5, [x16, #64]\n"
        "    stp q6, q7, [x16, #96]\n"
        "    stp q8, q9, [x16, #128]\n"
        "    stp q10, q11, [x16, #160]\n"
        "    stp q12, q13, [x16, #192]\n"
        "    stp q14, q15, [x16, #224]\n"
        "    stp q16, q17, [x16, #256]\n"
        "    stp q18, q19, [x16, #288]\n"
        "    stp q20, q21, [x16, #320]\n"
        "    stp q22, q23, [x16, #352]\n"
        "    stp q24, q25, [x16, #384]\n"
        "    stp q26, q27, [x16, #416]\n"
        "    stp q28, q29, [x16, #448]\n"
        "    stp q30, q31, [x16, #480]\n"
        "    mrs x17, fpsr\n"
        "    str x17, [x16, #512]\n"
        "    mrs x17, fpcr\n"
        "    str x17, [x16, #520]\n"
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
        "    mov w22, #20\n"
        "    ldr x23, 9f\n"
        "1:  stp xzr, x23, [x19, #208]\n" /* ppoll(NULL, 0, 5 ms, NULL) */
        "    mov x0, xzr\n"
        "    mov x1, xzr\n"
        "    add x2, x19, #208\n"
        "    mov x3, xzr\n"
        "    mov x4, #8\n"
        "    mov x8, #73\n"
        "    svc #0\n"
        "    subs w22, w22, #1\n"
        "    b.ne 1b\n"
        "    add x16, x19, #65536\n"
        "    ldp q0, q1, [x16, #0]\n"
        "    ldp q2, q3, [x16, #32]\n"
        "    ldp q4, q5, [x16, #64]\n"
        "    ldp q6, q7, [x16, #96]\n"
        "    ldp q8, q9, [x16, #128]\n"
        "    ldp q10, q11, [x16, #160]\n"
        "    ldp q12, q13, [x16, #192]\n"
        "    ldp q14, q15, [x16, #224]\n"
        "    ldp q16, q17, [x16, #256]\n"
        "    ldp q18, q19, [x16, #288]\n"
        "    ldp q20, q21, [x16, #320]\n"
        "    ldp q22, q23, [x16, #352]\n"
        "    ldp q24, q25, [x16, #384]\n"
        "    ldp q26, q27, [x16, #416]\n"
        "    ldp q28, q29, [x16, #448]\n"
        "    ldp q30, q31, [x16, #480]\n"
        "    ldr x17, [x16, #512]\n"
        "    msr fpsr, x17\n"
        "    ldr x17, [x16, #520]\n"
        "    msr fpcr, x17\n"
        "    ldr x17, [x19, #200]\n"
        "    msr nzcv, x17\n"
        "    ldr x16, [x19, #56]\n"
        "    br x16\n"
        ".balign 8\n"
        "9:  .quad 5000000\n"
        "tmk_stub_helper:\n" /* x0: the block */
        "    stp x29, x30, [sp, #-32]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    mov x29, sp\n"
        "    mov x19, x0\n"
        "    ldr x16, [x19, #16]\n"
        "    blr x16\n"
        "    ldr x16, [x19, #24]\n"
        "    blr x16\n"
        "    mov x0, xzr\n" /* dlsym(RTLD_DEFAULT, symbol) */
        "    ldr x1, [x19, #96]\n"
        "    ldr x16, [x19, #40]\n"
        "    blr x16\n"
        "    mov x20, x0\n"
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
        "    subs w20, w20, #1\n"
        "    b.ne 7b\n"
        "8:  ldr w1, [x19, #184]\n"
        "    cbz w1, 9f\n"
        "    ldr x16, [x19, #80]\n"
        "    ldr x0, [x19, #128]\n"
        "    ldr x1, [x19, #136]\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    br x16\n" /* munmap() returns 0 to where we were called from */
        "9:  mov x0, xzr\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    ret\n"
        "tmk_stub_end:\n"
        ".popsection\n");
