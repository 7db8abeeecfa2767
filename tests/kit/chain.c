/* SPDX-License-Identifier: MIT */
/* chain.c - see chain.h. Each function does something after its call, so that none is a jump. */
#include "chain.h"

#include <string.h>

static _Atomic unsigned calls;

enum { INNER_LINE = __LINE__ + 4 };

static __attribute__((noinline)) void inner(void (*visit)(void *arg), void *arg)
{
    visit(arg);
    calls++;
}

int chain_line(void)
{
    return INNER_LINE;
}

static __attribute__((noinline)) void middle(void (*visit)(void *arg), void *arg)
{
    volatile char room[200];
    room[0] = 1;
    inner(visit, arg);
    calls += (unsigned)room[0];
}

void chain_call(void (*visit)(void *arg), void *arg)
{
    middle(visit, arg);
    calls++;
}

void chain_call_aligned(void (*visit)(void *arg), void *arg, size_t n)
{
    char aligned[64] __attribute__((aligned(64)));
    char varying[n + 1];
    memset(varying, (int)n, n + 1);
    memset(aligned, (int)n, sizeof aligned);
    __asm__ volatile("" : : "r"(aligned), "r"(varying) : "memory");
    inner(visit, arg);
    calls += (unsigned)(aligned[n % 64] + varying[n]);
}

void chain_call_mangled(void (*visit)(void *arg), void *arg)
{
    visit(arg);
    calls++;
}
