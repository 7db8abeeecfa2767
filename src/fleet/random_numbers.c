/* SPDX-License-Identifier: MIT */
/* fleet/random_numbers.c - see random_numbers.h. The kernel's generator answers from 3.17 on; the
 * caller cannot be told of a failure, and must not go on with numbers that can be guessed. */
#include "fleet/random_numbers.h"

#include <errno.h>
#include <sys/random.h>

void arc4random_buf(void *buffer, size_t n)
{
    uint8_t *at = buffer;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno != EINTR)
            __builtin_trap();
        at += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
}

uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}
