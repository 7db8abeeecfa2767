/* SPDX-License-Identifier: MIT */
/* record/python/python.c - see python.h.
 *
 * `python` exports them itself or is linked with libpython: both are in the global scope. A program
 * that embeds Python may have opened libpython for itself alone (RTLD_LOCAL): that one is searched
 * for among the modules loaded. It is not opened from inside dl_iterate_phdr(), which holds the
 * loader's lock. */
#include "record/python/python.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>

struct libpython_search {
    char path[4096]; /* "": none */
};

static int note_libpython(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct libpython_search *s = arg;
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    (void)size;
    if (!slash || strncmp(slash, "/libpython3", 11) != 0 ||
        strlen(info->dlpi_name) >= sizeof s->path)
        return 0;
    strcpy(s->path, info->dlpi_name);
    return strncmp(slash, "/libpython3.so", 14) != 0; /* that one only hands on */
}

bool tmk_python_handle(void **ret_handle)
{
    *ret_handle = RTLD_DEFAULT;
    if (dlsym(RTLD_DEFAULT, "PyGILState_Ensure"))
        return true;
    struct libpython_search s = {.path = ""};
    dl_iterate_phdr(note_libpython, &s);
    *ret_handle = s.path[0] ? dlopen(s.path, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    return *ret_handle != NULL;
}

static bool fill_functions(struct tmk_python *py, void *handle)
{
#define X(result, name, arguments)                                                                 \
    *(void **)&py->name = dlsym(handle, #name);                                                    \
    if (!py->name)                                                                                 \
        return false;
    TMK_PYTHON_FUNCTIONS(X)
#undef X
    *(void **)&py->is_finalizing = dlsym(handle, "Py_IsFinalizing");
    if (!py->is_finalizing)
        *(void **)&py->is_finalizing = dlsym(handle, "_Py_IsFinalizing");
    *(void **)&py->PyGC_Disable = dlsym(handle, "PyGC_Disable");
    *(void **)&py->PyGC_Enable = dlsym(handle, "PyGC_Enable");
    *(void **)&py->PyCode_AddWatcher = dlsym(handle, "PyCode_AddWatcher");
    *(void **)&py->Py_AtExit = dlsym(handle, "Py_AtExit");
    *(void **)&py->vectorcall_of = dlsym(handle, "PyVectorcall_Function");
    py->function_vectorcall = dlsym(handle, "_PyFunction_Vectorcall");
    static const char *const mistakes[] = {"PyExc_AttributeError", "PyExc_TypeError",
                                           "PyExc_ValueError",     "PyExc_RuntimeError",
                                           "PyExc_LookupError",    "PyExc_ReferenceError"};
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        py->mistakes[i] = dlsym(handle, mistakes[i]);
    py->keyboard_interrupt_class = dlsym(handle, "PyExc_KeyboardInterrupt");
    return py->keyboard_interrupt_class != NULL;
}

const struct tmk_python *tmk_python_find(const char **ret_reason)
{
    static struct tmk_python python; /* threads that fill it at once write the same */
    static _Atomic bool is_filled;
    if (!atomic_load_explicit(&is_filled, memory_order_acquire)) {
        void *handle;
        bool found = tmk_python_handle(&handle);
        if (!found || !fill_functions(&python, handle)) {
            *ret_reason = !found
                              ? "there is no Python interpreter in this process"
                              : "the Python in this process is not one that we know (3.9 to 3.14)";
            return NULL;
        }
        atomic_store_explicit(&is_filled, true, memory_order_release);
    }
    if (!python.Py_IsInitialized()) {
        *ret_reason = "the Python interpreter of this process is not running";
        return NULL;
    }
    if (python.is_finalizing && python.is_finalizing()) {
        *ret_reason = "the Python interpreter of this process is about to end";
        return NULL;
    }
    return &python;
}

struct tmk_object *tmk_python_names(const struct tmk_python *py, const char *module)
{
    struct tmk_object *found = py->PyImport_AddModule(module);
    return found ? py->PyModule_GetDict(found) : NULL;
}

bool tmk_python_run(const struct tmk_python *py, struct tmk_object *names, const char *source)
{
    py->PyDict_SetItemString(names, "__builtins__", py->PyEval_GetBuiltins());
    struct tmk_object *compiled = py->Py_CompileString(source, "<tidemark>", TMK_PYTHON_FILE_INPUT);
    struct tmk_object *done = compiled ? py->PyEval_EvalCode(compiled, names, names) : NULL;
    py->Py_DecRef(compiled);
    py->Py_DecRef(done);
    return done != NULL;
}
