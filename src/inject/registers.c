/* SPDX-License-Identifier: MIT */
/* inject/registers.c - read and write the registers of a stopped thread, on every processor.
 *
 * Register sets have the numbers they have in core files (PTRACE_GETREGSET): one for the general
 * registers, and one for all of the vector state, which the kernel returns in one piece of any
 * length. */
#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/error.h"
#include "inject/arch.h"

/* The sets beside the general one that a function call may change. On aarch64 SVE contains the
 * plain vector registers, and setting it says whether it is in use, so it comes last. */
static const unsigned extended_types[TMK_EXTENDED_SETS] = {
#if defined(__x86_64__)
    NT_X86_XSTATE, NT_PRFPREG, /* asked for only where there is no XSTATE */
#else
    NT_PRFPREG,
    NT_ARM_SVE,
#endif
};

int tmk_general_get(pid_t tid, struct user_regs_struct *ret)
{
    struct user_regs_struct g;
    struct iovec to = {.iov_base = &g, .iov_len = sizeof g};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &to) < 0)
        return TMK_EIO;
    if (to.iov_len != sizeof g)
        return TMK_EINVAL;
    *ret = g;
    return 0;
}

int tmk_general_set(pid_t tid, const struct user_regs_struct *general)
{
    struct user_regs_struct g = *general;
    struct iovec from = {.iov_base = &g, .iov_len = sizeof g};
    return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &from) < 0 ? TMK_EIO : 0;
}

static bool is_set_needed(const struct tmk_registers *r, int i)
{
    return extended_types[i] != NT_PRFPREG || i == 0 || r->extended[0].n_bytes == 0;
}

/* EINVAL and ENODEV mean that this processor has no such set. A set that fills the buffer may be
 * cut. */
static int get_extended_set(pid_t tid, struct tmk_register_set *set)
{
    struct iovec to = {.iov_base = set->bytes, .iov_len = sizeof set->bytes};
    set->n_bytes = 0;
    if (ptrace(PTRACE_GETREGSET, tid, set->type, &to) < 0)
        return errno == EINVAL || errno == ENODEV ? 0 : TMK_EIO;
    if (to.iov_len >= sizeof set->bytes)
        return TMK_EFULL;
    set->n_bytes = to.iov_len;
    return 0;
}

int tmk_registers_get(pid_t tid, struct tmk_registers *ret)
{
    int rc = tmk_general_get(tid, &ret->general);
    for (int i = 0; i < TMK_EXTENDED_SETS && rc == 0; i++) {
        ret->extended[i].type = extended_types[i];
        ret->extended[i].n_bytes = 0;
        if (is_set_needed(ret, i))
            rc = get_extended_set(tid, &ret->extended[i]);
    }
    return rc == 0 && ret->extended[0].n_bytes == 0 && ret->extended[1].n_bytes == 0 ? TMK_EIO : rc;
}

int tmk_extended_set(pid_t tid, const struct tmk_registers *registers)
{
    int rc = 0;
    for (int i = 0; i < TMK_EXTENDED_SETS; i++) {
        const struct tmk_register_set *set = &registers->extended[i];
        struct iovec from = {.iov_base = (void *)set->bytes, .iov_len = set->n_bytes};
        if (set->n_bytes > 0 && ptrace(PTRACE_SETREGSET, tid, set->type, &from) < 0)
            rc = TMK_EIO;
    }
    return rc;
}
