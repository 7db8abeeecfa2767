/* SPDX-License-Identifier: MIT */
/* record/training/torch_calls.c - see torch_calls.h.
 *
 * A Python function object has a pointer to the C function that calls it. For
 * torch.nn.Module.__call__ ours stands there instead: it opens a range, calls on, and closes the
 * range, whether the call returned or raised. The interpreter calls through that pointer when an
 * object is called, because that goes through its type. (Python code that calls the function by
 * name, as in super().__call__(...), may bypass it from 3.11 on.) */
#include "record/training/torch_calls.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/hot.h"
#include "record/core/intern.h"
#include "record/core/recorder.h"
#include "record/loader/library.h"
#include "record/python/pyknown.h"
#include "record/python/python.h"
#include "record/training/autograd_nodes.h"
#include "record/training/bridge_python.h"
#include "record/training/cache_tags.h"
#include "record/training/grad_mode.h"
#include "record/training/gradients.h"
#include "record/training/module_names.h"
#include "record/training/python_method.h"
#include "record/training/tensor_tags.h"
#include "record/training/training_context.h"

typedef struct tmk_object *vectorcall(struct tmk_object *callable, struct tmk_object *const *values,
                                      size_t n, struct tmk_object *keywords);
typedef _Atomic(vectorcall *) call_pointer;

struct method_descriptor { /* PyMethodDescrObject */
    size_t n_references;
    struct tmk_object *type;
    struct tmk_object *class;
    struct tmk_object *name, *qualified_name;
    struct tmk_python_method_def *method;
};

enum { VARARGS_AND_KEYWORDS = 3 };
static const size_t offset_flag = (size_t)1 << (8 * sizeof(size_t) - 1);

static struct {
    vectorcall *call_module;             /* the function that was there */
    tmk_python_c_function *run_backward; /* the function that was there */
    call_pointer *call_at;               /* where it was; NULL: not patched */
    struct tmk_python_method_def *backward_at;
    _Atomic bool is_in; /* calls are seen, also those of optimizers */
    bool (*is_grad_enabled)(void);
    void **(*tracing_state)(void); /* pointers to shared pointers, as are the next */
    void **(*function_mode)(void);
    int64_t (*n_function_modes)(void);
    struct tmk_object *training, *accumulate_grad; /* these words as Python strings */
    bool (*wake)(void); /* called while the bridge is off (see the header) */
} torch TMK_HOT_DATA;

/* With the interpreter's lock: the thread that calls models and runs backward, and whether there
 * are several. Then one thread must not look at the gradients of another: torch itself breaks when
 * that happens, even between two backwards. */
static const struct tmk_training_context *training_thread;
static bool are_several;

static void note_thread(void)
{
    are_several |= training_thread && training_thread != &tmk_training_context;
    training_thread = &tmk_training_context;
    if (are_several)
        tmk_gradients_stop();
}

/* Called when Python code runs on the thread; true when it works for a backward. */
static bool is_worker(struct tmk_lane *lane)
{
    if (!tmk_torch_calls_knows_worker(lane) && atomic_load(&tmk_recorder.control->n_backwards) > 0)
        tmk_torch_calls_note_worker(lane);
    return tmk_training_context_is_working(lane);
}

/* ---- modules ---- */

/* False when something was raised meanwhile that belongs to the program. */
__attribute__((noinline)) static bool learn_name(struct tmk_object *module, bool is_root,
                                                 uint32_t *ret_name)
{
    struct tmk_object *flag = tmk_bridge.py->PyLong_FromLong(is_root);
    tmk_bridge.is_undecided = false;
    bool ok = tmk_bridge_call(tmk_bridge.learn, module, flag);
    tmk_bridge.py->Py_DecRef(flag);
    *ret_name = tmk_module_names_find(module);
    if (ok && !*ret_name && !tmk_bridge.is_undecided) /* and it never will have one */
        tmk_module_names_put(module, TMK_MODULE_UNNAMED);
    return ok;
}

static inline bool name_of_module(struct tmk_object *module, bool is_root, uint32_t *ret_name)
{
    uint32_t name = tmk_module_names_find(module);
    *ret_name = name & ~TMK_MODULE_UNNAMED;
    return __builtin_expect(name != 0, 1) || learn_name(module, is_root, ret_name);
}

static bool is_training(struct tmk_object *module)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *value = py->PyObject_GetAttr(module, torch.training);
    bool is = !value || py->PyObject_IsTrue(value) != 0;
    py->Py_DecRef(value);
    py->PyErr_Clear();
    return is;
}

/* Call on, with an anchor: the frames below do not change until that returns. */
static inline struct tmk_object *call_with_anchor(struct tmk_object *function,
                                                  struct tmk_object *const *values, size_t n,
                                                  struct tmk_object *keywords)
{
    struct tmk_pyanchor anchor;
    const struct tmk_pyanchor *before = tmk_lane.anchor;
    tmk_lane.anchor = tmk_pyknown_enter(&anchor, before);
    struct tmk_object *result = torch.call_module(function, values, n, keywords);
    tmk_lane.anchor = tmk_pyknown_leave(&anchor, before);
    return result;
}

/* A module is called inside another one, and calls are named. */
__attribute__((noinline)) static struct tmk_object *call_inner(struct tmk_object *function,
                                                               struct tmk_object *const *values,
                                                               size_t n,
                                                               struct tmk_object *keywords)
{
    uint32_t name = 0;
    if (!name_of_module(values[0], false, &name))
        return NULL;
    uint32_t outer = tmk_training_context.module, generation = tmk_training_context.generation;
    struct tmk_lane *lane = name ? tmk_lane_enter() : NULL;
    if (lane) {
        tmk_training_context_push_module(lane, name);
        tmk_autograd_nodes_note(name);
        tmk_lane_leave(lane);
        tmk_training_context.module = name;
    }
    tmk_training_context.n_calls++;
    struct tmk_object *result = call_with_anchor(function, values, n, keywords);
    if (tmk_training_context.generation != generation)
        return result;
    tmk_training_context.n_calls--;
    tmk_training_context.module = outer;
    if (lane && (lane = tmk_lane_enter())) {
        tmk_training_context_pop_module(lane);
        tmk_training_context_leave_modes(lane);
        tmk_autograd_nodes_note(outer);
        tmk_lane_leave(lane);
    }
    return result;
}

/* A forward stays open where a loss may follow: not on threads that run only a part of it. */
static bool may_linger(void)
{
    static __thread int8_t is_main __attribute__((tls_model("initial-exec"))); /* 0: not known */
    if (!is_main)
        is_main = getpid() == (pid_t)syscall(SYS_gettid) ? 1 : -1;
    return is_main > 0 || tmk_training_context.runs_backward;
}

/* Note that the program itself calls the module; a backward that repeats a forward (checkpointing)
 * does not count. False when something was raised that belongs to the program. */
static bool note_root(struct tmk_object *module)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return true;
    bool is_again = is_worker(lane) || tmk_training_context.stage == TMK_CONTEXT_BACKWARD;
    tmk_lane_leave(lane);
    if (is_again)
        return true;
    note_thread(); /* first: the call below looks for its gradients, unless there are several
                      threads */
    return !tmk_module_names_mark(module) || tmk_bridge_call(tmk_bridge.called, module, NULL);
}

/* After a call in inference. False when something was raised that belongs to the program: the
 * result is dropped. */
static bool note_caches(struct tmk_object *const *values, size_t n, struct tmk_object *keywords,
                        struct tmk_object *result)
{
    if (!tmk_bridge.categories || tmk_bridge_is_off() || !tmk_torch_calls_is_calm() ||
        tmk_cache_tags_note(values[0], values + 1, (n & ~offset_flag) - 1, keywords, result))
        return true;
    tmk_bridge.py->Py_DecRef(result);
    return false;
}

/* The program itself calls a module: forward begins. */
__attribute__((noinline)) static struct tmk_object *call_root(struct tmk_object *function,
                                                              struct tmk_object *const *values,
                                                              size_t n, struct tmk_object *keywords)
{
    uint32_t name;
    if (!name_of_module(values[0], true, &name) || !note_root(values[0]))
        return NULL;
    bool is_eval = !torch.is_grad_enabled() || !is_training(values[0]);
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return torch.call_module(function, values, n, keywords);
    tmk_training_context_mode(lane, tmk_grad_mode_now());
    tmk_training_context_root(lane, values[0]);
    struct tmk_training_context before =
        tmk_training_context_open(lane, is_eval ? TMK_CONTEXT_EVAL : TMK_CONTEXT_FORWARD);
    bool has_module = tmk_bridge.modules && name;
    if (has_module) {
        tmk_training_context_push_module(lane, name);
        tmk_autograd_nodes_note(name);
    }
    tmk_training_context.module = name;
    tmk_training_context.n_calls = 1;
    tmk_lane_leave(lane);
    if (tmk_bridge.categories && tmk_torch_calls_is_calm())
        tmk_tensor_tags_note_inputs(values + 1, (n & ~offset_flag) - 1, keywords);
    /* Forget an anchor that was left behind. (A call around this one goes without it from then
     * on.) */
    tmk_lane.anchor = NULL;
    struct tmk_object *result = call_with_anchor(function, values, n, keywords);
    if (!result)
        tmk_training_context_note_failure();
    else if (is_eval && !note_caches(values, n, keywords, result))
        result = NULL;
    lane = tmk_lane_enter();
    if (!lane)
        return result;
    if (has_module) {
        tmk_training_context_pop_module(lane);
        tmk_autograd_nodes_note(before.module);
    }
    if (result && !is_eval && may_linger())
        tmk_training_context_linger(lane, &before);
    else
        tmk_training_context_close(lane, &before);
    tmk_lane_leave(lane);
    return result;
}

TMK_HOT_CODE_NEXT
static struct tmk_object *call_module(struct tmk_object *function, struct tmk_object *const *values,
                                      size_t n, struct tmk_object *keywords)
{
    if (__builtin_expect((n & ~offset_flag) == 0 || tmk_bridge_is_off(), 0))
        return (n & ~offset_flag) && torch.wake()
                   ? call_root(function, values, n, keywords)
                   : torch.call_module(function, values, n, keywords);
    if (tmk_training_context.n_calls > 0 &&
        tmk_training_context.generation ==
            atomic_load_explicit(&tmk_control_page.control.bridge, memory_order_relaxed))
        return tmk_bridge.modules ? call_inner(function, values, n, keywords)
                                  : call_with_anchor(function, values, n, keywords);
    return call_root(function, values, n, keywords);
}

/* ---- backward ---- */

/* torch.autograd.grad() gives its results to its caller and leaves the gradients of parameters
 * alone. */
static bool accumulates(struct tmk_object *arguments, struct tmk_object *keywords)
{
    const struct tmk_python *py = tmk_bridge.py;
    enum { PLACE = 6 };
    struct tmk_object *flag = keywords ? py->PyDict_GetItem(keywords, torch.accumulate_grad) : NULL;
    if (!flag && py->PyTuple_Size(arguments) > PLACE)
        flag = py->PyTuple_GetItem(arguments, PLACE);
    return !flag || py->PyObject_IsTrue(flag) != 0;
}

/* False when something was raised that belongs to the program. */
static bool finish_backward(bool is_accumulating, bool is_only)
{
    if (tmk_bridge.categories && is_accumulating && is_only && !are_several &&
        tmk_torch_calls_is_calm())
        tmk_tensor_tags_note_gradients();
    return !tmk_training_context_lacks_update() || tmk_bridge.py->PyErr_Occurred() ||
           tmk_bridge_call(tmk_bridge.wrap_steps, NULL, NULL);
}

static bool is_awake(void)
{
    return !tmk_bridge_is_off() || torch.wake();
}

static struct tmk_object *run_backward(struct tmk_object *self, struct tmk_object *arguments,
                                       struct tmk_object *keywords)
{
    struct tmk_lane *lane = is_awake() ? tmk_lane_enter() : NULL;
    if (!lane)
        return torch.run_backward(self, arguments, keywords);
    is_worker(lane);
    tmk_training_context.runs_backward = true;
    tmk_training_context_backward(lane);
    struct tmk_training_context before = tmk_training_context_open(lane, TMK_CONTEXT_BACKWARD);
    bool is_inner = before.stage == TMK_CONTEXT_BACKWARD;
    bool is_accumulating = accumulates(arguments, keywords);
    tmk_lane_leave(lane);
    if (!is_inner)
        note_thread();
    tmk_training_context_enter_backward();
    if (!is_accumulating)
        tmk_gradients_begin_capture();
    struct tmk_object *result = torch.run_backward(self, arguments, keywords);
    if (!is_accumulating)
        tmk_gradients_end_capture();
    bool is_only = tmk_training_context_leave_backward() == 0;
    if (!result)
        tmk_training_context_note_failure();
    lane = tmk_lane_enter();
    if (!lane)
        return result;
    tmk_training_context_close(lane, &before);
    if (!is_inner)
        tmk_training_context_end_workers(lane);
    tmk_lane_leave(lane);
    if (is_inner || finish_backward(is_accumulating, is_only) || !result)
        return result;
    tmk_bridge.py->Py_DecRef(result);
    return NULL;
}

TMK_HOT_CODE_ALIGNED(4, 16) void tmk_torch_calls_note_node(const void *node)
{
    bool keep = false;
    if (tmk_bridge_is_off())
        return;
    uint32_t name = tmk_autograd_nodes_module(node, &keep);
    if (!keep || tmk_training_context.stage != TMK_CONTEXT_BACKWARD)
        tmk_training_context_node(name);
}

/* Where modules have names, nodes tell of workers. The number is read first: if the backward ends
 * meanwhile, it is an old one. */
void tmk_torch_calls_note_worker(struct tmk_lane *lane)
{
    uint32_t quiet = atomic_load_explicit(&tmk_fast_path.quiet, memory_order_acquire);
    if (!tmk_bridge_is_off() && quiet != TMK_TORCH_NEVER_QUIET)
        tmk_training_context_work(lane);
    lane->quiet = quiet;
}

void tmk_torch_calls_end_process(void)
{
    struct tmk_lane *lane = tmk_bridge_is_off() ? NULL : tmk_lane_enter();
    if (!lane)
        return;
    tmk_training_context_end_process(lane);
    tmk_lane_leave(lane);
}

/* ---- optimizers ---- */

static uint32_t class_name(struct tmk_lane *lane, struct tmk_object *name)
{
    long n = 0;
    const char *text = name ? tmk_bridge.py->PyUnicode_AsUTF8AndSize(name, &n) : NULL;
    return text ? tmk_intern_text(lane, text, (size_t)n) : 0;
}

/* The optimizer that this thread runs the step() of. */
static __thread const void *updating __attribute__((tls_model("initial-exec")));

static void append_address(struct tmk_object *list, const void *address)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *number = py->PyLong_FromLong((long)(intptr_t)address);
    if (number)
        py->PyList_Append(list, number);
    py->Py_DecRef(number);
}

/* Before `optimizer` overtakes others for the first time: find which of them have a turn of their
 * own. False when something was raised meanwhile that belongs to the program. */
static bool find_turns(const struct tmk_object *optimizer)
{
    const struct tmk_python *py = tmk_bridge.py;
    const void *address;
    if (!tmk_bridge.categories || are_several || !tmk_training_context_overtaken(optimizer, 0) ||
        !tmk_torch_calls_is_calm())
        return true;
    struct tmk_object *others = py->PyList_New(0), *roots = py->PyList_New(0);
    for (unsigned i = 0; others && (address = tmk_training_context_overtaken(optimizer, i)); i++)
        append_address(others, address);
    for (unsigned i = 0; roots && (address = tmk_training_context_called_root(i)); i++)
        append_address(roots, address);
    bool ok = !others || !roots || tmk_bridge_call(tmk_bridge.find_turns, others, roots);
    py->Py_DecRef(others);
    py->Py_DecRef(roots);
    return ok;
}

/* await_turn(address), for bridge.py */
struct tmk_object *tmk_torch_calls_await_turn(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    long address = py->PyLong_AsLong(py->PyTuple_GetItem(arguments, 0));
    (void)self;
    tmk_training_context_await_turn((const void *)(intptr_t)address);
    return py->Py_BuildValue("");
}

/* begin(optimizer), for bridge.py: a token, or None when there is nothing to end. */
struct tmk_object *tmk_torch_calls_begin_update(struct tmk_object *self,
                                                struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *optimizer = py->PyTuple_GetItem(arguments, 0);
    struct tmk_training_context before;
    (void)self;
    bool is_inner = is_awake() && tmk_training_context.stage == TMK_CONTEXT_OPTIMIZER;
    if (is_inner && optimizer != updating) /* it is stepped by the one around it */
        tmk_training_context_forget(optimizer);
    bool is_named = tmk_bridge.modules && torch.is_in && !is_inner;
    struct tmk_object *class = is_named ? py->PyObject_GetAttrString(optimizer, "__class__") : NULL;
    struct tmk_object *name = class ? py->PyObject_GetAttrString(class, "__name__") : NULL;
    struct tmk_object *token = NULL;
    if (!is_inner && torch.is_in && !tmk_bridge_is_off() && !find_turns(optimizer)) {
        py->Py_DecRef(name);
        py->Py_DecRef(class);
        return NULL;
    }
    struct tmk_lane *lane =
        is_inner || !torch.is_in || tmk_bridge_is_off() ? NULL : tmk_lane_enter();
    if (lane) {
        is_worker(lane);
        updating = optimizer;
        tmk_training_context_begin_update(lane, optimizer);
        before = tmk_training_context_open(lane, TMK_CONTEXT_OPTIMIZER);
        if (tmk_bridge.modules)
            tmk_training_context_push_module(lane, class_name(lane, name));
        tmk_lane_leave(lane);
        token = py->PyBytes_FromStringAndSize((const char *)&before, sizeof before);
    }
    py->Py_DecRef(name);
    py->Py_DecRef(class);
    py->PyErr_Clear();
    /* cppcheck-suppress invalidLifetime; the bytes are copied */
    return token ? token : py->Py_BuildValue("");
}

/* end(optimizer, token, returned), for bridge.py. Also called while an exception is on its way;
 * then it was no update. */
struct tmk_object *tmk_torch_calls_end_update(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *optimizer = py->PyTuple_GetItem(arguments, 0);
    struct tmk_training_context before;
    char *bytes = NULL;
    long n = 0;
    (void)self;
    if (py->PyBytes_AsStringAndSize(py->PyTuple_GetItem(arguments, 1), &bytes, &n) < 0 ||
        n != sizeof before)
        return NULL;
    bool returned = py->PyLong_AsLong(py->PyTuple_GetItem(arguments, 2)) != 0;
    memcpy(&before, bytes, sizeof before);
    struct tmk_lane *lane = tmk_bridge_is_off() ? NULL : tmk_lane_enter();
    if (lane) {
        if (tmk_bridge.modules)
            tmk_training_context_pop_module(lane);
        tmk_training_context_close(lane, &before);
        tmk_lane_leave(lane);
        enum tmk_training_update time = TMK_UPDATE_OTHER;
        if (tmk_training_context_end_update(optimizer, returned, &time))
            tmk_fast_path_unsettle();
        updating = NULL;
        if (time != TMK_UPDATE_OTHER &&
            !tmk_bridge_call(time == TMK_UPDATE_ROUND ? tmk_bridge.refresh : tmk_bridge.updated,
                             optimizer, NULL))
            return NULL;
    }
    return py->Py_BuildValue("");
}

struct tmk_object *tmk_torch_calls_skip_update(struct tmk_object *self,
                                               struct tmk_object *arguments)
{
    (void)self, (void)arguments;
    if (!tmk_bridge_is_off() && tmk_training_context_skip_update())
        tmk_fast_path_unsettle();
    return tmk_bridge.py->Py_BuildValue("");
}

/* hush(on), for bridge.py: while it is on, no block begins a step that is due. */
struct tmk_object *tmk_torch_calls_hush(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    (void)self;
    bool on = py->PyLong_AsLong(py->PyTuple_GetItem(arguments, 0)) != 0;
    if (!tmk_bridge_is_off() && on)
        atomic_store(&tmk_fast_path.settled, atomic_load(&tmk_control_page.control.bridge));
    else if (!tmk_bridge_is_off() && tmk_training_context_is_due())
        tmk_fast_path_unsettle();
    return py->Py_BuildValue("");
}

/* ---- patching ---- */

static bool always_true(void)
{
    return true;
}

/* Find the pointer in the function object; NULL when its place is not clear. */
static call_pointer *find_pointer(struct tmk_object *function)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *class = py->PyObject_GetAttrString(function, "__class__");
    struct tmk_object *size = class ? py->PyObject_GetAttrString(class, "__basicsize__") : NULL;
    size_t n_words = size ? (size_t)py->PyLong_AsLong(size) / sizeof(void *) : 0;
    vectorcall *now = py->vectorcall_of ? (vectorcall *)py->vectorcall_of(function)
                                        : (vectorcall *)py->function_vectorcall;
    call_pointer *words = (call_pointer *)function, *found = NULL;
    for (size_t i = 2; now && i < n_words && n_words < 64; i++) {
        if (atomic_load(&words[i]) != now)
            continue;
        if (found) {
            found = NULL;
            break;
        }
        found = &words[i];
    }
    py->Py_DecRef(size);
    py->Py_DecRef(class);
    py->PyErr_Clear();
    return found;
}

/* The definition behind a method of a C class; NULL when it is not as we know it. */
static struct tmk_python_method_def *find_method(struct tmk_object *object)
{
    const struct tmk_python *py = tmk_bridge.py;
    const struct method_descriptor *d = (const struct method_descriptor *)object;
    struct tmk_object *class = py->PyObject_GetAttrString(object, "__objclass__");
    bool is_known = class && d->class == class && d->method->flags == VARARGS_AND_KEYWORDS &&
                    tmk_python_method_is_writable(d->method);
    py->Py_DecRef(class);
    py->PyErr_Clear();
    return is_known ? d->method : NULL;
}

/* Functions of torch that tell of the calling thread; those that this torch lacks are NULL. */
static void find_torch_functions(void)
{
    static const char cpu[] = "libtorch_cpu.so";
    *(void **)&torch.is_grad_enabled =
        tmk_library_symbol("libc10.so", "_ZN3c108GradMode10is_enabledEv");
    *(void **)&torch.tracing_state =
        tmk_library_symbol(cpu, "_ZN5torch3jit6tracer15getTracingStateEv");
    *(void **)&torch.function_mode =
        tmk_library_symbol(cpu, "_ZN2at4impl22PythonTorchFunctionTLS8get_modeEv");
    *(void **)&torch.n_function_modes =
        tmk_library_symbol(cpu, "_ZN2at4impl22PythonTorchFunctionTLS9stack_lenEv");
    if (!torch.is_grad_enabled)
        torch.is_grad_enabled = always_true;
}

/* An exception of the program may be on its way: it is put aside meanwhile. */
static bool are_modes_harmless(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *error[3];
    py->PyErr_Fetch(&error[0], &error[1], &error[2]);
    struct tmk_object *answer = py->PyObject_CallObject(tmk_bridge.only_devices, NULL);
    bool are = answer && py->PyObject_IsTrue(answer) == 1;
    py->Py_DecRef(answer);
    py->PyErr_Clear();
    py->PyErr_Restore(error[0], error[1], error[2]);
    return are;
}

bool tmk_torch_calls_is_calm(void)
{
    if ((torch.tracing_state && *torch.tracing_state()) ||
        (torch.function_mode && *torch.function_mode()))
        return false;
    return !torch.n_function_modes || torch.n_function_modes() == 0 || are_modes_harmless();
}

/* The function is kept alive, so that the pointer's place stays its own. */
bool tmk_torch_calls_patch(struct tmk_object *function, struct tmk_object *run, bool (*wake)(void),
                           const char **ret_why)
{
    torch.wake = wake;
    if (!torch.training) {
        torch.training = tmk_bridge.py->PyUnicode_InternFromString("training");
        torch.accumulate_grad = tmk_bridge.py->PyUnicode_InternFromString("accumulate_grad");
        find_torch_functions();
        tmk_bridge.py->Py_IncRef(function);
        tmk_bridge.py->Py_IncRef(run);
        torch.call_at = find_pointer(function);
        torch.backward_at = find_method(run);
    }
    if (!torch.call_at || !torch.backward_at || !torch.training || !torch.accumulate_grad) {
        *ret_why = "torch.nn.Module.__call__ or run_backward is not as we know it";
        return false;
    }
    tmk_torch_calls_switch(true);
    return true;
}

bool tmk_torch_calls_are_in(void)
{
    return atomic_load(&torch.is_in);
}

/* Single stores: a call meanwhile finds the one function or the other. */
void tmk_torch_calls_switch(bool in)
{
    if (!torch.call_at || !torch.backward_at)
        return;
    atomic_store(&torch.is_in, in);
    vectorcall *call = atomic_load(torch.call_at);
    tmk_python_c_function *run = atomic_load(&torch.backward_at->function);
    if (in && call != call_module) {
        torch.call_module = call;
        atomic_store(torch.call_at, call_module);
    } else if (!in && call == call_module) {
        atomic_store(torch.call_at, torch.call_module);
    }
    if (in && run != run_backward) {
        torch.run_backward = run;
        atomic_store(&torch.backward_at->function, run_backward);
    } else if (!in && run == run_backward) {
        atomic_store(&torch.backward_at->function, torch.run_backward);
    }
}
