/* SPDX-License-Identifier: MIT */
/* record/python.h - CPython's functions, if the process has an interpreter.
 *
 * Found by name at run time, so that one library serves every version from 3.9 on, and programs
 * without Python. Only functions of the stable ABI: their names, arguments and meaning do not
 * change. Objects are opaque to us. */
#ifndef TMK_RECORD_PYTHON_H
#define TMK_RECORD_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

struct _object; /* PyObject */

typedef struct _object *tmk_object; /* one word in the table below */

struct tmk_python_method { /* PyMethodDef */
    const char *name;
    tmk_object (*function)(tmk_object self, tmk_object arguments);
    int flags; /* TMK_PYTHON_VARARGS */
    const char *doc;
};

enum { TMK_PYTHON_VARARGS = 1, TMK_PYTHON_FILE_INPUT = 257 };

/* X(result, name, arguments) */
#define TMK_PYTHON_FUNCTIONS(X)                                                                    \
    X(int, Py_IsInitialized, (void))                                                               \
    X(int, Py_AddPendingCall, (int (*)(void *), void *))                                           \
    X(int, PyGILState_Ensure, (void))                                                              \
    X(void, PyGILState_Release, (int))                                                             \
    X(void *, PyEval_SaveThread, (void))                                                           \
    X(void, PyEval_RestoreThread, (void *))                                                        \
    X(unsigned long, PyThread_get_thread_ident, (void))                                            \
    X(int, PyThreadState_SetAsyncExc, (unsigned long, tmk_object))                                 \
    X(void, Py_IncRef, (tmk_object))                                                               \
    X(void, Py_DecRef, (tmk_object))                                                               \
    X(tmk_object, Py_CompileString, (const char *, const char *, int))                             \
    X(tmk_object, PyEval_EvalCode, (tmk_object, tmk_object, tmk_object))                           \
    X(tmk_object, PyEval_GetBuiltins, (void))                                                      \
    X(tmk_object, PyImport_AddModule, (const char *))                                              \
    X(tmk_object, PyModule_GetDict, (tmk_object))                                                  \
    X(tmk_object, PyDict_GetItemString, (tmk_object, const char *))                                \
    X(int, PyDict_SetItemString, (tmk_object, const char *, tmk_object))                           \
    X(tmk_object, PyCFunction_NewEx, (struct tmk_python_method *, tmk_object, tmk_object))         \
    X(tmk_object, PyObject_CallObject, (tmk_object, tmk_object))                                   \
    X(tmk_object, PyTuple_New, (long))                                                             \
    X(int, PyTuple_SetItem, (tmk_object, long, tmk_object))                                        \
    X(tmk_object, PyTuple_GetItem, (tmk_object, long))                                             \
    X(tmk_object, PyLong_FromLong, (long))                                                         \
    X(long, PyLong_AsLong, (tmk_object))                                                           \
    X(tmk_object, PyUnicode_DecodeUTF8, (const char *, long, const char *))                        \
    X(int, PyBytes_AsStringAndSize, (tmk_object, char **, long *))                                 \
    X(tmk_object, Py_BuildValue, (const char *, ...))                                              \
    X(tmk_object, PyErr_Occurred, (void))                                                          \
    X(void, PyErr_Clear, (void))                                                                   \
    X(void, PyErr_SetNone, (tmk_object))

struct tmk_python {
#define X(result, name, arguments) result(*name) arguments;
    TMK_PYTHON_FUNCTIONS(X)
#undef X
    int (*is_finalizing)(void);           /* NULL: this version does not say */
    tmk_object *keyboard_interrupt_class; /* PyExc_KeyboardInterrupt */
};

/* The functions, good from now on; NULL and why when there is no interpreter, none any more, or it
 * is about to end. Needs no lock of Python's. One thread at a time. */
const struct tmk_python *tmk_python_find(const char **ret_reason);

#endif
