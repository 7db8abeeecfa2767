/* SPDX-License-Identifier: MIT */
/* record/loader/peek.h - memory that may not be there, read through the kernel: a wrong address is
 * an error, not a crash. Slow: for finding out how things stand. */
#ifndef TMK_RECORD_PEEK_H
#define TMK_RECORD_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

/* False: it is not there, or reading so is forbidden here (seccomp). */
static inline bool tmk_peek(const void *address, void *buffer, size_t n)
{
    struct iovec mine = {.iov_base = buffer, .iov_len = n};
    struct iovec theirs = {.iov_base = (void *)(uintptr_t)address, .iov_len = n};
    return process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == (ssize_t)n;
}

#endif
