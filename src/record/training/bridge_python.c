/* SPDX-License-Identifier: MIT */
/* record/training/bridge_python.c - see bridge_python.h. */
#include "record/training/bridge_python.h"

#include <stddef.h>

#include "record/core/hot.h"

struct tmk_bridge tmk_bridge TMK_HOT_DATA;

/* A mistake of ours is dropped, an exception of another class is the program's. */
bool tmk_bridge_drop_mistake(const struct tmk_python *py)
{
    bool is_mistake = !py->PyErr_Occurred();
    for (size_t i = 0; i < sizeof py->mistakes / sizeof py->mistakes[0] && !is_mistake; i++)
        is_mistake = py->mistakes[i] && py->PyErr_ExceptionMatches(*py->mistakes[i]);
    if (is_mistake)
        py->PyErr_Clear();
    return is_mistake;
}

bool tmk_bridge_call(struct tmk_object *function, struct tmk_object *a, struct tmk_object *b)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *const arguments[] = {a, b};
    long n = b ? 2 : a ? 1 : 0;
    struct tmk_object *tuple = function ? py->PyTuple_New(n) : NULL;
    for (long i = 0; tuple && i < n; i++) {
        py->Py_IncRef(arguments[i]);
        py->PyTuple_SetItem(tuple, i, arguments[i]);
    }
    py->Py_DecRef(tuple ? py->PyObject_CallObject(function, tuple) : NULL);
    py->Py_DecRef(tuple);
    return tmk_bridge_drop_mistake(py);
}

uint64_t tmk_bridge_ask_number(struct tmk_object *tensor, struct tmk_object *method,
                               uint64_t otherwise)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *answer = py->PyObject_VectorcallMethod(method, &tensor, 1, NULL);
    uint64_t value = answer ? (uint64_t)py->PyLong_AsLong(answer) : otherwise;
    py->Py_DecRef(answer);
    if (!answer)
        py->PyErr_Clear();
    return value;
}
