/* SPDX-License-Identifier: MIT */
/* fleet/random_numbers.h - two functions that libevent takes from the C library.
 *
 * Debian 12's libevent was built with glibc 2.36, which has them, and a package of ours that has
 * its archive in it must start with glibc 2.34, which has not. The linker finds these first. They
 * are declared as glibc and the BSDs do. */
#ifndef TMK_FLEET_RANDOM_NUMBERS_H
#define TMK_FLEET_RANDOM_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

uint32_t arc4random(void);
void arc4random_buf(void *buffer, size_t n);

#endif
