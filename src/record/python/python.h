/* SPDX-License-Identifier: MIT */
/* record/python/python.h - CPython's functions, if the process has an interpreter.
 *
 * They are found by name at run time, so that one library serves every version from 3.9 on, and
 * programs without Python. All belong to the stable ABI: their names, arguments and meaning do not
 * change. Objects are opaque to us. */
#ifndef TMK_RECORD_PYTHON_H
#define TMK_RECORD_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_object; /* PyObject */

struct tmk_python_method { /* PyMethodDef */
    const char *name;
    struct tmk_object *(*function)(struct tmk_object *self, struct tmk_object *arguments);
    int flags; /* TMK_PYTHON_VARARGS, or _ONE_ARGUMENT for the argument itself */
    const char *doc;
};

enum { TMK_PYTHON_VARARGS = 1, TMK_PYTHON_ONE_ARGUMENT = 8, TMK_PYTHON_FILE_INPUT = 257 };

/* X(result, name, arguments) */
#define TMK_PYTHON_FUNCTIONS(X)                                                                    \
    X(int, Py_IsInitialized, (void))                                                               \
    X(int, Py_AddPendingCall, (int (*)(void *), void *))                                           \
    X(int, PyGILState_Ensure, (void))                                                              \
    X(void, PyGILState_Release, (int))                                                             \
    X(void *, PyEval_SaveThread, (void))                                                           \
    X(void, PyEval_RestoreThread, (void *))                                                        \
    X(unsigned long, PyThread_get_thread_ident, (void))                                            \
    X(int, PyThreadState_SetAsyncExc, (unsigned long, struct tmk_object *))                        \
    X(void, Py_IncRef, (struct tmk_object *))                                                      \
    X(void, Py_DecRef, (struct tmk_object *))                                                      \
    X(struct tmk_object *, Py_CompileString, (const char *, const char *, int))                    \
    X(struct tmk_object *, PyEval_EvalCode,                                                        \
      (struct tmk_object *, struct tmk_object *, struct tmk_object *))                             \
    X(struct tmk_object *, PyEval_GetBuiltins, (void))                                             \
    X(struct tmk_object *, PyImport_AddModule, (const char *))                                     \
    X(struct tmk_object *, PyModule_GetDict, (struct tmk_object *))                                \
    X(struct tmk_object *, PyDict_GetItemString, (struct tmk_object *, const char *))              \
    X(int, PyDict_SetItemString, (struct tmk_object *, const char *, struct tmk_object *))         \
    X(struct tmk_object *, PyCFunction_NewEx,                                                      \
      (struct tmk_python_method *, struct tmk_object *, struct tmk_object *))                      \
    X(struct tmk_object *, PyObject_CallObject, (struct tmk_object *, struct tmk_object *))        \
    X(struct tmk_object *, PyTuple_New, (long))                                                    \
    X(int, PyTuple_SetItem, (struct tmk_object *, long, struct tmk_object *))                      \
    X(struct tmk_object *, PyTuple_GetItem, (struct tmk_object *, long))                           \
    X(struct tmk_object *, PyLong_FromLong, (long))                                                \
    X(long, PyLong_AsLong, (struct tmk_object *))                                                  \
    X(struct tmk_object *, PyUnicode_DecodeUTF8, (const char *, long, const char *))               \
    X(int, PyBytes_AsStringAndSize, (struct tmk_object *, char **, long *))                        \
    X(struct tmk_object *, Py_BuildValue, (const char *, ...))                                     \
    X(void, PyErr_Clear, (void))                                                                   \
    X(void, PyErr_SetNone, (struct tmk_object *))                                                  \
    X(int, PyErr_ExceptionMatches, (struct tmk_object *))                                          \
    X(struct tmk_object *, PyErr_Occurred, (void))                                                 \
    X(void, PyErr_Fetch, (struct tmk_object **, struct tmk_object **, struct tmk_object **))       \
    X(void, PyErr_Restore, (struct tmk_object *, struct tmk_object *, struct tmk_object *))        \
    X(struct tmk_object *, PyObject_GetAttr, (struct tmk_object *, struct tmk_object *))           \
    X(struct tmk_object *, PyObject_GetAttrString, (struct tmk_object *, const char *))            \
    X(int, PyObject_IsTrue, (struct tmk_object *))                                                 \
    X(struct tmk_object *, PyObject_GenericGetAttr, (struct tmk_object *, struct tmk_object *))    \
    X(struct tmk_object *, PyObject_VectorcallMethod,                                              \
      (struct tmk_object *, struct tmk_object *const *, size_t, struct tmk_object *))              \
    X(struct tmk_object *, PyWeakref_GetObject, (struct tmk_object *))                             \
    X(struct tmk_object *, PyUnicode_InternFromString, (const char *))                             \
    X(const char *, PyUnicode_AsUTF8AndSize, (struct tmk_object *, long *))                        \
    X(struct tmk_object *, PyBytes_FromStringAndSize, (const char *, long))                        \
    X(unsigned long long, PyLong_AsUnsignedLongLong, (struct tmk_object *))                        \
    X(long, PyTuple_Size, (struct tmk_object *))                                                   \
    X(long, PyList_Size, (struct tmk_object *))                                                    \
    X(struct tmk_object *, PyList_GetItem, (struct tmk_object *, long))                            \
    X(struct tmk_object *, PyList_New, (long))                                                     \
    X(int, PyList_Append, (struct tmk_object *, struct tmk_object *))                              \
    X(int, PyType_IsSubtype, (struct tmk_object *, struct tmk_object *))                           \
    X(void *, PyType_GetSlot, (struct tmk_object *, int))                                          \
    X(struct tmk_object *, PyDict_GetItem, (struct tmk_object *, struct tmk_object *))             \
    X(int, PyDict_Next, (struct tmk_object *, long *, struct tmk_object **, struct tmk_object **))

struct tmk_python {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): types and names cannot be in any */
#define X(result, name, arguments) result(*name) arguments;
    TMK_PYTHON_FUNCTIONS(X)
#undef X
    int (*PyGC_Disable)(void); /* NULL before 3.10, as is the next */
    int (*PyGC_Enable)(void);
    int (*PyCode_AddWatcher)(int (*)(int, const void *)); /* NULL before 3.12 */
    int (*Py_AtExit)(void (*)(void));
    int (*is_finalizing)(void);                   /* NULL: this version cannot say */
    void *(*vectorcall_of)(struct tmk_object *);  /* PyVectorcall_Function; NULL before 3.11 */
    void *function_vectorcall;                    /* _PyFunction_Vectorcall; NULL from 3.13 on */
    struct tmk_object **keyboard_interrupt_class; /* PyExc_KeyboardInterrupt */
    struct tmk_object **mistakes[6]; /* the exceptions that mistakes in our code raise */
};

/* The type of an object, borrowed. It is the second word of each object. */
static inline struct tmk_object *tmk_python_type(const struct tmk_object *object)
{
    return ((struct tmk_object *const *)object)[1];
}

/* Both need the interpreter's lock. names() returns the namespace of one of our modules, which is
 * made when first asked for and lives as long as the interpreter. run() runs a source in it. NULL
 * or false when that fails, with an exception set. */
struct tmk_object *tmk_python_names(const struct tmk_python *py, const char *module);
bool tmk_python_run(const struct tmk_python *py, struct tmk_object *names, const char *source);

/* The handle in which dlsym() finds Python's names; false when there is no interpreter.
 * (RTLD_DEFAULT itself is NULL.) */
bool tmk_python_handle(void **ret_handle);

/* The functions, valid from now on. NULL, with the reason, when there is no interpreter, or it has
 * ended or is about to. Needs no lock of Python's. */
const struct tmk_python *tmk_python_find(const char **ret_reason);

#endif
