/* SPDX-License-Identifier: MIT */
/* record/training/python_method.h - CPython's entry for a function written in C (PyMethodDef). The
 * interpreter calls through it, so whoever writes another pointer there stands in front of the
 * function. */
#ifndef TMK_RECORD_PYTHON_METHOD_H
#define TMK_RECORD_PYTHON_METHOD_H

#include <stdatomic.h>
#include <stdbool.h>

struct tmk_object;

/* One that takes fewer arguments is called with more, which does no harm. */
typedef struct tmk_object *tmk_python_c_function(struct tmk_object *self,
                                                 struct tmk_object *arguments,
                                                 struct tmk_object *keywords);

struct tmk_python_method_def {
    const char *name;
    _Atomic(tmk_python_c_function *) function;
    int flags;
};

/* Let the kernel write and read the entry's pointer. False: it may not be one. */
bool tmk_python_method_is_writable(struct tmk_python_method_def *method);

#endif
