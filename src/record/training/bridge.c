/* SPDX-License-Identifier: MIT */
/* record/training/bridge.c - see bridge.h.
 *
 * Arming needs the interpreter's lock, for which the hook that wants it may not wait. So a pending
 * call does it, which the interpreter makes on its main thread between two instructions. When the
 * main thread does not come to it, because it waits for others, a helper thread does it.
 *
 *     IDLE -> QUEUED -> IDLE: armed, or not yet, because torch is still being imported */
#include "record/training/bridge.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/core/helper.h"
#include "record/core/intern.h"
#include "record/core/parts.h"
#include "record/core/recorder.h"
#include "record/core/seal.h"
#include "record/loader/peek.h"
#include "record/python/python.h"
#include "record/training/autograd_nodes.h"
#include "record/training/bridge_python.h"
#include "record/training/cache_tags.h"
#include "record/training/grad_mode.h"
#include "record/training/gradients.h"
#include "record/training/module_names.h"
#include "record/training/step_at.h"
#include "record/training/tensor_holders.h"
#include "record/training/tensor_tags.h"
#include "record/training/torch_calls.h"
#include "record/training/training_context.h"
#include "record/training/workspaces.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { HELPER_STACK_BYTES = 1 << 20, ASK_EVERY = 16 };
static const uint64_t retry_ns = 5000000u;    /* between checks whether torch is ready */
static const uint64_t helper_ns = 300000000u; /* for the main thread to come to a pending call */

enum { IDLE, QUEUED };
static struct {
    atomic_flag busy;
    _Atomic uint32_t state;
    _Atomic uint64_t since_ns; /* since when the state is what it is */
    _Atomic uint32_t n_asked;  /* a check costs more than all else of a block: not at each */
    _Atomic bool has_helper;
} arming = {.busy = ATOMIC_FLAG_INIT};

/* ---- for bridge.py ---- */

static const char *text_argument(struct tmk_object *arguments, long i, long *ret_n)
{
    const struct tmk_python *py = tmk_bridge.py;
    return py->PyUnicode_AsUTF8AndSize(py->PyTuple_GetItem(arguments, i), ret_n);
}

/* 0 when it is no number; then an exception is set, which the caller clears in the end. */
static uint64_t number_argument(struct tmk_object *arguments, long i)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *number = py->PyTuple_GetItem(arguments, i);
    uint64_t value = number ? py->PyLong_AsUnsignedLongLong(number) : 0;
    return py->PyErr_Occurred() ? 0 : value;
}

static struct tmk_object *python_none(void)
{
    return tmk_bridge.py->Py_BuildValue("");
}

/* named(id, name, class), for bridge.py */
static struct tmk_object *name_module(struct tmk_object *self, struct tmk_object *arguments)
{
    long n_name = 0, n_class = 0;
    uint64_t object = number_argument(arguments, 0);
    const char *name = text_argument(arguments, 1, &n_name),
               *class = text_argument(arguments, 2, &n_class);
    (void)self;
    struct tmk_lane *lane = name && class ? tmk_lane_enter() : NULL;
    if (lane) {
        uint32_t id = tmk_intern_text(lane, name, (size_t)n_name);
        uint32_t class_id = tmk_intern_text(lane, class, (size_t)n_class);
        tmk_lane_put(lane, TMK_KIND_DEF_TORCH_MODULE, 0, id, class_id, 0);
        if (!tmk_module_names_put((const void *)(uintptr_t)object, id))
            tmk_lane_count_unnamed();
        tmk_lane_leave(lane);
    }
    tmk_bridge.py->PyErr_Clear();
    return python_none();
}

/* forget(id), for bridge.py: a module or an optimizer is gone */
static struct tmk_object *forget_object(struct tmk_object *self, struct tmk_object *arguments)
{
    uint64_t object = number_argument(arguments, 0);
    (void)self;
    tmk_module_names_remove(object);
    tmk_training_context_forget((const void *)(uintptr_t)object);
    tmk_tensor_tags_forget();
    tmk_cache_tags_forget((const void *)(uintptr_t)object);
    return python_none();
}

/* expect(id), for bridge.py: there is such an optimizer */
static struct tmk_object *expect_optimizer(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self;
    tmk_training_context_expect((const void *)(uintptr_t)number_argument(arguments, 0));
    return python_none();
}

/* tag(device, address, category, name), for bridge.py */
static struct tmk_object *tag_address(struct tmk_object *self, struct tmk_object *arguments)
{
    long n = 0;
    uint64_t device = number_argument(arguments, 0), address = number_argument(arguments, 1);
    uint64_t category = number_argument(arguments, 2);
    const char *name = text_argument(arguments, 3, &n);
    (void)self;
    if (name)
        tidemark_record_tag((unsigned)device, (const void *)(uintptr_t)address, (unsigned)category,
                            name);
    tmk_bridge.py->PyErr_Clear();
    return python_none();
}

/* parameter(id, name, flags, device, address, bytes, text), for bridge.py */
static struct tmk_object *tell_parameter(struct tmk_object *self, struct tmk_object *arguments)
{
    struct {
        struct tmk_parameter_head head;
        char text[200];
    } body = {.head = {.address = number_argument(arguments, 4),
                       .size_bytes = number_argument(arguments, 5)}};
    uint32_t id = (uint32_t)number_argument(arguments, 0),
             flags = (uint32_t)number_argument(arguments, 2);
    uint32_t device = (uint32_t)number_argument(arguments, 3);
    long n_name = 0, n_text = 0;
    const char *name = text_argument(arguments, 1, &n_name),
               *text = text_argument(arguments, 6, &n_text);
    (void)self;
    struct tmk_lane *lane = name && text ? tmk_lane_enter() : NULL;
    if (lane) {
        size_t n = (size_t)n_text < sizeof body.text ? (size_t)n_text : sizeof body.text;
        memcpy(body.text, text, n);
        body.head.name = tmk_intern_text(lane, name, (size_t)n_name);
        tmk_lane_put_text(lane, TMK_KIND_DEF_PARAMETER, id, flags << 16 | (device & 0xffff), &body,
                          sizeof body.head + n);
        tmk_lane_leave(lane);
    }
    tmk_bridge.py->PyErr_Clear();
    return python_none();
}

/* instances(), for bridge.py: all modules and optimizers that exist. It is in C, because between
 * two Python instructions other threads may run: a tensor that one of them lets go of while we have
 * a list of all objects looks as if it were in use, and torch prints a warning. */
static struct tmk_object *list_instances(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *module_class = py->PyDict_GetItemString(tmk_bridge.names, "Module");
    struct tmk_object *optimizer_class = py->PyDict_GetItemString(tmk_bridge.names, "Optimizer");
    struct tmk_object *gc = py->PyDict_GetItemString(tmk_bridge.names, "gc");
    struct tmk_object *ask = gc ? py->PyObject_GetAttrString(gc, "get_objects") : NULL;
    struct tmk_object *all = ask ? py->PyObject_CallObject(ask, NULL) : NULL;
    struct tmk_object *found = all ? py->PyList_New(0) : NULL;
    (void)self, (void)arguments;
    for (long i = 0, n = found ? py->PyList_Size(all) : 0; i < n; i++) {
        struct tmk_object *thing = py->PyList_GetItem(all, i), *type = tmk_python_type(thing);
        if (py->PyType_IsSubtype(type, module_class) || py->PyType_IsSubtype(type, optimizer_class))
            py->PyList_Append(found, thing);
    }
    py->Py_DecRef(all);
    py->Py_DecRef(ask);
    return found;
}

/* slots(frame, code, n), for bridge.py: the first n variables of a function that is being run by
 * CPython 3.11 or 3.12, None where there is none. The frame object's fourth word leads to them; the
 * code, which lies beside them, tells whether this is the layout that we know. */
static struct tmk_object *list_slots(struct tmk_object *self, struct tmk_object *arguments)
{
    enum { FRAME_WORD = 3, CODE_312 = 0, CODE_311 = 4, FIRST_SLOT = 9, MOST = 512 };
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *const *frame = (struct tmk_object *const *)py->PyTuple_GetItem(arguments, 0);
    const struct tmk_object *code = py->PyTuple_GetItem(arguments, 1);
    uint64_t n = number_argument(arguments, 2);
    struct tmk_object *slots[FIRST_SLOT + MOST], *found = py->PyList_New(0);
    (void)self;
    n = n < MOST ? n : MOST;
    if (!found || !tmk_seal_enter())
        return found;
    bool is_read = tmk_peek(frame[FRAME_WORD], slots, (FIRST_SLOT + n) * sizeof(void *));
    tmk_seal_leave();
    if (!is_read)
        return found;
    bool is_known = code && (slots[CODE_311] == code || slots[CODE_312] == code);
    for (uint64_t i = 0; is_known && i < n; i++) {
        struct tmk_object *none = slots[FIRST_SLOT + i] ? NULL : python_none();
        py->PyList_Append(found, none ? none : slots[FIRST_SLOT + i]);
        py->Py_DecRef(none);
    }
    return found;
}

/* later(), for bridge.py: learn() has not decided on a name; ask at the next call again. */
static struct tmk_object *decide_later(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self, (void)arguments;
    tmk_bridge.is_undecided = true;
    return python_none();
}

/* calm(), for bridge.py */
static struct tmk_object *say_whether_calm(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self, (void)arguments;
    return tmk_bridge.py->PyLong_FromLong(tmk_torch_calls_is_calm());
}

/* text(TEXT), for bridge.py: define it in the trace, for readers that look for it. */
static struct tmk_object *define_text(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    (void)self;
    (void)tmk_tensor_tags_name(
        py->PyUnicode_AsUTF8AndSize(py->PyTuple_GetItem(arguments, 0), NULL));
    py->PyErr_Clear();
    return python_none();
}

static struct tmk_python_method bridge_methods[] = {
    {"instances", list_instances, TMK_PYTHON_VARARGS, NULL},
    {"named", name_module, TMK_PYTHON_VARARGS, NULL},
    {"forget", forget_object, TMK_PYTHON_VARARGS, NULL},
    {"later", decide_later, TMK_PYTHON_VARARGS, NULL},
    {"text", define_text, TMK_PYTHON_VARARGS, NULL},
    {"slots", list_slots, TMK_PYTHON_VARARGS, NULL},
    {"expect", expect_optimizer, TMK_PYTHON_VARARGS, NULL},
    {"tag", tag_address, TMK_PYTHON_VARARGS, NULL},
    {"parameter", tell_parameter, TMK_PYTHON_VARARGS, NULL},
    {"gradients", tmk_tensor_tags_gradients, TMK_PYTHON_VARARGS, NULL},
    {"begin", tmk_torch_calls_begin_update, TMK_PYTHON_VARARGS, NULL},
    {"end", tmk_torch_calls_end_update, TMK_PYTHON_VARARGS, NULL},
    {"await_turn", tmk_torch_calls_await_turn, TMK_PYTHON_VARARGS, NULL},
    {"skip", tmk_torch_calls_skip_update, TMK_PYTHON_VARARGS, NULL},
    {"calm", say_whether_calm, TMK_PYTHON_VARARGS, NULL},
    {"hush", tmk_torch_calls_hush, TMK_PYTHON_VARARGS, NULL},
    {"workspaces", tmk_workspaces_note, TMK_PYTHON_VARARGS, NULL},
    {"is_cache_name", tmk_cache_tags_is_name, TMK_PYTHON_VARARGS, NULL},
    {"caches", tmk_cache_tags_places, TMK_PYTHON_VARARGS, NULL},
    {"tensors", tmk_tensor_holders_tensors, TMK_PYTHON_VARARGS, NULL},
    {"holder", tmk_tensor_holders_holder, TMK_PYTHON_VARARGS, NULL},
};

/* ---- arming ---- */

static struct tmk_object *module_named(const struct tmk_python *py, const char *name)
{
    struct tmk_object *sys = py->PyImport_AddModule("sys");
    struct tmk_object *modules =
        sys ? py->PyDict_GetItemString(py->PyModule_GetDict(sys), "modules") : NULL;
    return modules ? py->PyDict_GetItemString(modules, name) : NULL;
}

static bool is_object_true(const struct tmk_python *py, struct tmk_object *object)
{
    bool is = object && py->PyObject_IsTrue(object) == 1;
    py->Py_DecRef(object);
    py->PyErr_Clear();
    return is;
}

/* True when all that is needed of torch has been imported. */
static bool is_torch_ready(const struct tmk_python *py)
{
    struct tmk_object *torch = module_named(py, "torch");
    if (!torch || !module_named(py, "torch.nn.modules.module") ||
        !module_named(py, "torch.optim.optimizer"))
        return false;
    struct tmk_object *spec = py->PyObject_GetAttrString(torch, "__spec__");
    bool is_importing =
        spec && is_object_true(py, py->PyObject_GetAttrString(spec, "_initializing"));
    py->Py_DecRef(spec);
    py->PyErr_Clear();
    return !is_importing;
}

/* False in an interpreter without a lock, where other threads could change what we keep. */
static bool has_lock(const struct tmk_python *py)
{
    struct tmk_object *sys = py->PyImport_AddModule("sys");
    struct tmk_object *ask = sys ? py->PyObject_GetAttrString(sys, "_is_gil_enabled") : NULL;
    bool has = !ask || is_object_true(py, py->PyObject_CallObject(ask, NULL));
    py->Py_DecRef(ask);
    /* A build that can do without has objects of another layout, with its lock on, too. */
    struct tmk_object *flags = sys ? py->PyObject_GetAttrString(sys, "abiflags") : NULL;
    const char *text = flags ? py->PyUnicode_AsUTF8AndSize(flags, NULL) : NULL;
    has = has && !(text && strchr(text, 't'));
    py->Py_DecRef(flags);
    py->PyErr_Clear();
    return has;
}

static void set_global(const char *name, struct tmk_object *value)
{
    tmk_bridge.py->PyDict_SetItemString(tmk_bridge.names, name, value);
    tmk_bridge.py->Py_DecRef(value);
}

/* Keep the functions that C calls: the namespace ends before the last call does. */
static bool find_python_functions(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    const struct {
        const char *name;
        struct tmk_object **place;
    } functions[] = {
        {"learn", &tmk_bridge.learn},           {"called", &tmk_bridge.called},
        {"refresh", &tmk_bridge.refresh},       {"updated", &tmk_bridge.updated},
        {"wrap_steps", &tmk_bridge.wrap_steps}, {"only_devices", &tmk_bridge.only_devices},
        {"find_turns", &tmk_bridge.find_turns}, {"find_caches", &tmk_bridge.find_caches},
        {"Module", &tmk_bridge.module_class}};
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        struct tmk_object *function = py->PyDict_GetItemString(tmk_bridge.names, functions[i].name);
        if (!function)
            return false;
        py->Py_IncRef(function);
        *functions[i].place = function;
    }
    return true;
}

static bool load_bridge_source(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    tmk_bridge.names = tmk_python_names(py, "_tidemark_bridge");
    if (!tmk_bridge.names)
        return false;
    set_global("categories", py->PyLong_FromLong(tmk_bridge.categories));
    if (py->PyDict_GetItemString(tmk_bridge.names, "arm"))
        return true;
    for (size_t i = 0; i < sizeof bridge_methods / sizeof bridge_methods[0]; i++)
        set_global(bridge_methods[i].name, py->PyCFunction_NewEx(&bridge_methods[i], NULL, NULL));
    return tmk_python_run(py, tmk_bridge.names, tmk_bridge_source) && find_python_functions();
}

static pid_t armed_in; /* the process that armed it last */

static bool wake_bridge(void);

static const char *arm_bridge(const struct tmk_python *py)
{
    const char *why = NULL;
    armed_in = getpid();
    tmk_bridge.py = py;
    tmk_bridge.modules = !tmk_recorder.settings.no_modules && tmk_autograd_nodes_ready();
    tmk_bridge.categories = !tmk_recorder.settings.no_categories;
    tmk_training_context_reset(tmk_bridge.modules);
    tmk_autograd_nodes_reset();
    tmk_tensor_tags_init();
    tmk_cache_tags_reset();
    if (!has_lock(py))
        return "this Python is built without a global lock";
    if (!tmk_module_names_reset() || !load_bridge_source())
        return "the Python side could not be loaded";
    struct tmk_object *found =
        py->PyObject_CallObject(py->PyDict_GetItemString(tmk_bridge.names, "arm"), NULL);
    if (!found)
        return "this torch has not the classes that we know";
    tmk_bridge.tensor_class = py->PyTuple_GetItem(found, 2);
    tmk_torch_calls_patch(py->PyTuple_GetItem(found, 0), py->PyTuple_GetItem(found, 1), wake_bridge,
                          &why);
    tmk_grad_mode_find(py->PyTuple_GetItem(found, 3));
    py->Py_DecRef(found); /* torch keeps the objects */
    if (!why) {
        tmk_parts.switch_nodes(tmk_bridge.modules);
        tmk_grad_mode_switch(true);
        tmk_parts.watch_modes();
    }
    return why;
}

static bool wants_no_bridge(void)
{
    return tmk_recorder.settings.no_modules && tmk_recorder.settings.no_categories;
}

/* Needs the interpreter's lock. True when it is decided, either way. */
static bool try_to_arm(const struct tmk_python *py)
{
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    if (generation == 0 || atomic_load(&tmk_control_page.control.bridge) == generation)
        return true;
    tmk_step_at_arm(py);
    if (wants_no_bridge()) {
        atomic_store(&tmk_fast_path.settled, generation);
        return true;
    }
    if (!is_torch_ready(py))
        return false;
    const char *why = arm_bridge(py);
    if (!tmk_bridge_drop_mistake(py))
        return false; /* a signal's handler has raised: try again later */
    if (why)
        tidemark_record_mark("modules not recorded", why);
    else
        atomic_store(&tmk_control_page.control.bridge, generation);
    atomic_store(&tmk_fast_path.settled, generation);
    return true;
}

static bool is_inherited(void)
{
    return armed_in != 0 && armed_in != getpid() && tmk_torch_calls_are_in();
}

/* Arm in a forked child, at the first call of a module, of backward or of an optimizer. The child
 * has its parent's hooks, but most children (data loader workers) never get there, and arming runs
 * Python, which makes them copy pages that they share with their parent. Needs the interpreter's
 * lock. True: it is armed now. */
static bool wake_bridge(void)
{
    struct tmk_control *c = &tmk_control_page.control;
    uint32_t sleeps = atomic_load_explicit(&c->bridge_sleeps, memory_order_relaxed);
    if (sleeps == 0 || sleeps != atomic_load(&c->generation) ||
        atomic_flag_test_and_set(&arming.busy))
        return false;
    try_to_arm(tmk_bridge.py);
    atomic_store(&c->bridge_sleeps, 0);
    atomic_flag_clear(&arming.busy);
    return !tmk_bridge_is_off();
}

/* False when something was raised that belongs to the program. */
static bool take_arming_turn(const struct tmk_python *py)
{
    if (!atomic_flag_test_and_set(&arming.busy)) {
        try_to_arm(py);
        atomic_flag_clear(&arming.busy);
    }
    atomic_store(&arming.since_ns, tmk_clock_monotonic_ns());
    atomic_store(&arming.n_asked, 0);
    atomic_store(&arming.state, IDLE);
    return !py->PyErr_Occurred();
}

static int arm_on_main_thread(void *py)
{
    return take_arming_turn(py) ? 0 : -1;
}

static void *arm_on_helper(void *arg)
{
    const struct tmk_python *py = arg;
    int lock = py->PyGILState_Ensure();
    if (!take_arming_turn(py))
        py->PyErr_Clear(); /* not here: handlers run on the main thread */
    py->PyGILState_Release(lock);
    atomic_store(&arming.has_helper, false);
    return NULL;
}

static void queue_arming(const struct tmk_python *py)
{
    uint32_t idle = IDLE;
    if (atomic_compare_exchange_strong(&arming.state, &idle, QUEUED) &&
        py->Py_AddPendingCall(arm_on_main_thread, (void *)py) < 0)
        atomic_store(&arming.state, IDLE); /* the interpreter's queue is full */
}

/* The lane is entered, so nothing that is called here may have events. */
__attribute__((noinline, cold)) void tmk_bridge_want(struct tmk_lane *lane)
{
    const char *reason;
    if (atomic_load(&tmk_control_page.control.bridge) == lane->generation) {
        atomic_store(&tmk_fast_path.settled, lane->generation);
        tmk_training_context_begin_due(lane);
        return;
    }
    if (atomic_fetch_add_explicit(&arming.n_asked, 1, memory_order_relaxed) % ASK_EVERY != 0)
        return;
    uint64_t now = tmk_clock_monotonic_ns(), since = atomic_load(&arming.since_ns);
    bool is_queued = atomic_load(&arming.state) == QUEUED;
    if (now - since < (is_queued ? helper_ns : retry_ns))
        return;
    if (wants_no_bridge() && !*tmk_recorder.settings.step_at) {
        atomic_store(&tmk_fast_path.settled, lane->generation);
        return;
    }
    if (is_inherited()) {
        atomic_store(&tmk_control_page.control.bridge_sleeps, lane->generation);
        atomic_store(&tmk_fast_path.settled, lane->generation);
        return;
    }
    const struct tmk_python *py = tmk_python_find(&reason);
    atomic_store(&arming.since_ns, now);
    if (!py) /* and there will be none: C++ makes these blocks */
        atomic_store(&tmk_fast_path.settled, lane->generation);
    else if (!is_queued)
        queue_arming(py);
    else if (!atomic_exchange(&arming.has_helper, true) &&
             !tmk_helper_start(arm_on_helper, (void *)py, HELPER_STACK_BYTES))
        atomic_store(&arming.has_helper, false);
}

/* tidemark.watch(). Needs the interpreter's lock. 1 when the thing is known now. */
int tidemark_watch(struct tmk_object *thing)
{
    const char *reason;
    const struct tmk_python *py = tmk_python_find(&reason);
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    if (!py || !generation || !try_to_arm(py) ||
        atomic_load(&tmk_control_page.control.bridge) != generation)
        return 0;
    tmk_bridge_call(py->PyDict_GetItemString(tmk_bridge.names, "watch"), thing, NULL);
    return 1;
}

/* ---- ending ---- */

static void *disarm_main(void *unused)
{
    const char *reason;
    const struct tmk_python *py = tmk_python_find(&reason);
    (void)unused;
    if (!py)
        return NULL;
    int lock = py->PyGILState_Ensure();
    if (atomic_load(&tmk_recorder.control->generation) == 0) {
        if (tmk_bridge.names) {
            tmk_bridge_call(py->PyDict_GetItemString(tmk_bridge.names, "disarm"), NULL, NULL);
            py->PyErr_Clear();
            tmk_tensor_tags_reset();
            tmk_cache_tags_reset();
        }
        tmk_step_at_disarm(py);
    }
    py->PyGILState_Release(lock);
    return NULL;
}

/* Python's part is undone when its lock is free; until then its functions do nothing. */
void tmk_bridge_end(void)
{
    const char *reason;
    if ((!tmk_bridge.names && !tmk_step_at_is_armed()) ||
        !tmk_python_find(&reason)) /* with Python everything patched is gone */
        return;
    if (tmk_bridge.names) {
        tmk_torch_calls_switch(false);
        tmk_grad_mode_switch(false);
        tmk_gradients_switch(false, false);
    }
    tmk_helper_start(disarm_main, NULL, HELPER_STACK_BYTES);
}

void tmk_bridge_switch(bool in)
{
    tmk_torch_calls_switch(in);
    tmk_grad_mode_switch(in);
    tmk_gradients_switch(in, true);
}
