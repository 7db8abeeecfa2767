/* SPDX-License-Identifier: MIT */
/* record/training/grad_mode.c - see grad_mode.h. */
#include "record/training/grad_mode.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/loader/library.h"
#include "record/python/python.h"
#include "record/training/bridge_python.h"
#include "record/training/python_method.h"
#include "record/training/training_context.h"

struct function_object { /* PyCFunctionObject */
    size_t n_references;
    struct tmk_object *type;
    struct tmk_python_method_def *method;
    struct tmk_object *self;
};

static struct {
    struct tmk_python_method_def *method; /* NULL: not found */
    tmk_python_c_function *set_enabled;   /* the function that was there */
    bool (*is_enabled)(void);
    bool (*is_inference)(void);
} grad;

enum tmk_grad_mode tmk_grad_mode_now(void)
{
    if (grad.is_inference && grad.is_inference())
        return TMK_GRAD_INFERENCE;
    return grad.is_enabled && !grad.is_enabled() ? TMK_GRAD_OFF : TMK_GRAD_ON;
}

void tmk_grad_mode_note(void)
{
    const struct tmk_training_context *w = &tmk_training_context;
    uint32_t generation =
        atomic_load_explicit(&tmk_recorder.control->generation, memory_order_relaxed);
    enum tmk_grad_mode mode = tmk_grad_mode_now();
    if (tmk_bridge_is_off() || (w->generation == generation && w->modes.now == mode))
        return;
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_training_context_mode(lane, mode);
    tmk_lane_leave(lane);
}

static struct tmk_object *set_grad_enabled(struct tmk_object *self, struct tmk_object *arguments,
                                           struct tmk_object *keywords)
{
    struct tmk_object *result = grad.set_enabled(self, arguments, keywords);
    tmk_grad_mode_note();
    return result;
}

void tmk_grad_mode_find(struct tmk_object *object)
{
    const struct tmk_python *py = tmk_bridge.py;
    const struct function_object *f = (const struct function_object *)object;
    if (grad.method)
        return;
    *(void **)&grad.is_enabled = tmk_library_symbol("libc10.so", "_ZN3c108GradMode10is_enabledEv");
    *(void **)&grad.is_inference =
        tmk_library_symbol("libc10.so", "_ZN3c1013InferenceMode10is_enabledEv");
    struct tmk_object *self = py->PyObject_GetAttrString(object, "__self__");
    /* A method of Python's has its self in the same word. How its function is called is in flags:
     * METH_VARARGS, with METH_KEYWORDS, METH_O. */
    struct tmk_object *builtin = py->PyDict_GetItemString(tmk_bridge.names, "calm");
    bool is_builtin = builtin && tmk_python_type(object) == tmk_python_type(builtin) &&
                      (f->method->flags == 1 || f->method->flags == 3 || f->method->flags == 8);
    if (self && f->self == self && is_builtin && grad.is_enabled &&
        tmk_python_method_is_writable(f->method) &&
        strcmp(f->method->name, "_set_grad_enabled") == 0) {
        py->Py_IncRef(object); /* its method table stays */
        grad.method = f->method;
    }
    py->Py_DecRef(self);
    py->PyErr_Clear();
}

/* A single store: a call meanwhile finds the one function or the other. */
void tmk_grad_mode_switch(bool in)
{
    if (!grad.method)
        return;
    tmk_python_c_function *now = atomic_load(&grad.method->function);
    if (in && now != set_grad_enabled) {
        grad.set_enabled = now;
        atomic_store(&grad.method->function, set_grad_enabled);
    } else if (!in && now == set_grad_enabled) {
        atomic_store(&grad.method->function, grad.set_enabled);
    }
}
