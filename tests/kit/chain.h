/* SPDX-License-Identifier: MIT */
/* chain.h - a shared library with functions that call back, so that tests have a stack to walk. */
#ifndef TMK_TESTS_CHAIN_H
#define TMK_TESTS_CHAIN_H

#include <stddef.h>

/* Call `visit` at the end of a chain of three functions, the outermost of them exported. */
void chain_call(void (*visit)(void *arg), void *arg);
/* The line of the innermost call of chain_call(). */
int chain_line(void);

/* The same from a frame that aligns its stack and has an array of variable size. */
void chain_call_aligned(void (*visit)(void *arg), void *arg, size_t n);

/* The same under a C++ name: "at::native::add", as the linker has it. */
void chain_call_mangled(void (*visit)(void *arg),
                        void *arg) __asm__("_ZN2at6native3addERKNS_6TensorES3_");

#endif
