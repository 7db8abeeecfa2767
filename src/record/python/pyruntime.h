/* SPDX-License-Identifier: MIT */
/* record/python/pyruntime.h - the interpreter in this process, with a layout that was proven.
 *
 * What is read of CPython are private structs: tables of offsets for 3.9 to 3.12 (pylayout.h), and
 * from 3.13 on the offsets that the interpreter publishes for debuggers. Neither is trusted: before
 * the first use a layout is proven on the calling thread's own stack. Every object met there must
 * have the type that is expected, each read going through the kernel, so that a wrong address is an
 * error and not a crash. Free-threaded builds are refused: their frames change under a reader. */
#ifndef TMK_RECORD_PYRUNTIME_H
#define TMK_RECORD_PYRUNTIME_H

#include "record/loader/library.h"
#include "record/python/pylayout.h"

/* An interpreter found in this process. */
struct tmk_pyruntime {
    struct tmk_pylayout layout;
    void *(*this_thread)(void); /* PyGILState_GetThisThreadState: NULL without one; needs no GIL */
    const void *main_interpreter;
    const void *code_type, *text_type, *bytes_type;
    struct tmk_code_range image; /* the interpreter's own code */
};

enum tmk_pyruntime_found {
    TMK_PYRUNTIME_NONE,    /* no interpreter here */
    TMK_PYRUNTIME_LATER,   /* one, but this thread has no frames to prove a layout on */
    TMK_PYRUNTIME_PROVEN,  /* *ret is good */
    TMK_PYRUNTIME_REFUSED, /* one that cannot be read; *ret_reason says why */
};

/* Slow: looks up symbols. Any thread. */
enum tmk_pyruntime_found tmk_pyruntime_find(struct tmk_pyruntime *ret, const char **ret_reason);

#endif
