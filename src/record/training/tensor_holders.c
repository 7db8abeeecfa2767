/* SPDX-License-Identifier: MIT */
/* record/training/tensor_holders.c - see tensor_holders.h.
 *
 * The tensors are looked at in C, with the interpreter's lock held all the time: a tensor that
 * another thread lets go of while we have a list of all objects looks as if it were in use, and
 * torch prints a warning.
 *
 * A tensor's object lives on while C++ code has the tensor, so that it exists says little. It is
 * Python's when another object refers to it. (The variables of functions that run do not count:
 * they have a few tensors, never many.) */
#include "record/training/tensor_holders.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/python/python.h"
#include "record/training/bridge_python.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { MAX_TENSORS = 2048, N_ENTRIES = 2 * MAX_TENSORS };
enum { MAX_KINDS = 64, MANY = 4, PER_KIND = 16, BEST_KINDS = 8 };
enum { TYPE_SLOT_TRAVERSE = 71 }; /* Py_tp_traverse */

struct tensor_look {
    uint64_t address; /* of its storage; 0: it has none of its own */
    uint64_t bytes;
    uint16_t device;
    bool is_graph; /* autograd's graph made it */
};

struct known_tensor {
    struct tmk_object *tensor; /* borrowed */
    struct tensor_look look;
    bool is_referred;
};

/* With the interpreter's lock, during one look. */
static struct {
    uint32_t n;
    struct known_tensor *order[MAX_TENSORS];
    struct known_tensor tensors[N_ENTRIES];
} known;

/* Tensors of one size. Different things may hold them: a list, a variable, an optimizer. */
struct tensor_kind {
    struct tensor_look look;
    uint32_t n, n_samples;
    struct tmk_object *samples[PER_KIND]; /* the first, then 16th, 32nd ...; borrowed */
};

static struct {
    struct tmk_object *data_ptr, *get_device, *storage_offset, *element_size, *numel,
        *requires_grad, *is_view, *grad_fn;
    struct tmk_object *none;
} names;

static void find_names(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    if (names.none)
        return;
    names.data_ptr = py->PyUnicode_InternFromString("data_ptr");
    names.get_device = py->PyUnicode_InternFromString("get_device");
    names.storage_offset = py->PyUnicode_InternFromString("storage_offset");
    names.element_size = py->PyUnicode_InternFromString("element_size");
    names.numel = py->PyUnicode_InternFromString("numel");
    names.requires_grad = py->PyUnicode_InternFromString("requires_grad");
    names.is_view = py->PyUnicode_InternFromString("_is_view");
    names.grad_fn = py->PyUnicode_InternFromString("grad_fn");
    names.none = py->Py_BuildValue("");
}

/* Whether autograd's graph made it. A view's grad_fn is not read: when its base was changed in
 * place, torch would make the node anew, with another number than without us. */
static bool is_tensor_of_graph(struct tmk_object *tensor)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *answer = py->PyObject_GetAttr(tensor, names.requires_grad);
    bool is_graph = answer && py->PyObject_IsTrue(answer) == 1;
    py->Py_DecRef(answer);
    if (is_graph && tmk_bridge_ask_number(tensor, names.is_view, 0) == 0) {
        struct tmk_object *node = py->PyObject_GetAttr(tensor, names.grad_fn);
        is_graph = node && node != names.none;
        py->Py_DecRef(node);
    }
    py->PyErr_Clear();
    return is_graph;
}

static struct tensor_look look_at_tensor(struct tmk_object *tensor)
{
    struct tensor_look look = {.address = tmk_bridge_ask_number(tensor, names.data_ptr, 0)};
    if (!look.address)
        return look;
    int64_t index = (int64_t)tmk_bridge_ask_number(tensor, names.get_device, UINT64_MAX);
    uint64_t item = tmk_bridge_ask_number(tensor, names.element_size, 0);
    look.device = index < 0 ? TIDEMARK_HOST : tmk_cuda_device((unsigned)index);
    look.address -= tmk_bridge_ask_number(tensor, names.storage_offset, 0) * item;
    look.bytes = tmk_bridge_ask_number(tensor, names.numel, 0) * item;
    look.is_graph = is_tensor_of_graph(tensor);
    return look;
}

static void put_holder(const struct tensor_look *look, uint32_t flags)
{
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    tmk_lane_put(lane, TMK_KIND_HOLDER, look->device, 0, look->address, flags);
    tmk_lane_leave(lane);
}

/* ---- which tensors there are, and which of them are referred to ---- */

/* The entry of a tensor, or the free one where it goes. */
static struct known_tensor *entry_of_tensor(const struct tmk_object *tensor)
{
    uint64_t at = tmk_hash_u64((uintptr_t)tensor);
    while (known.tensors[at % N_ENTRIES].tensor && known.tensors[at % N_ENTRIES].tensor != tensor)
        at++;
    return &known.tensors[at % N_ENTRIES];
}

/* False when there are too many. */
static bool find_tensors(struct tmk_object *all)
{
    const struct tmk_python *py = tmk_bridge.py;
    __builtin_memset(&known, 0, sizeof known);
    for (long i = 0, n = py->PyList_Size(all); i < n; i++) {
        struct tmk_object *tensor = py->PyList_GetItem(all, i);
        if (tmk_python_type(tensor) != tmk_bridge.tensor_class)
            continue;
        struct tensor_look look = look_at_tensor(tensor);
        if (!look.address)
            continue;
        if (known.n == MAX_TENSORS)
            return false;
        struct known_tensor *entry = entry_of_tensor(tensor);
        *entry = (struct known_tensor){.tensor = tensor, .look = look};
        known.order[known.n++] = entry;
    }
    return true;
}

static int note_reference(struct tmk_object *thing, void *unused)
{
    (void)unused;
    if (thing && tmk_python_type(thing) == tmk_bridge.tensor_class)
        entry_of_tensor(thing)->is_referred = true;
    return 0;
}

/* Go through what all objects refer to, as Python's collector does. */
static void find_tensor_references(struct tmk_object *all)
{
    typedef int visit_function(struct tmk_object * thing, void *arg);
    typedef int traverse_function(struct tmk_object * thing, visit_function * visit, void *arg);
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *type = NULL;
    traverse_function *traverse = NULL;
    for (long i = 0, n = py->PyList_Size(all); i < n; i++) {
        struct tmk_object *thing = py->PyList_GetItem(all, i);
        if (tmk_python_type(thing) != type) {
            type = tmk_python_type(thing);
            *(void **)&traverse = py->PyType_GetSlot(type, TYPE_SLOT_TRAVERSE);
        }
        if (traverse)
            traverse(thing, note_reference, NULL);
    }
}

/* ---- samples ---- */

static void count_kind(struct tensor_kind *kinds, uint32_t *n, const struct tensor_look *look,
                       struct tmk_object *tensor)
{
    uint32_t i = 0;
    while (i < *n && (kinds[i].look.bytes != look->bytes || kinds[i].look.device != look->device ||
                      kinds[i].look.is_graph != look->is_graph))
        i++;
    if (i == MAX_KINDS)
        return;
    if (i == *n)
        kinds[(*n)++] = (struct tensor_kind){.look = *look};
    struct tensor_kind *kind = &kinds[i];
    bool is_sample = ++kind->n <= PER_KIND / 2 || (kind->n & (kind->n - 1)) == 0;
    if (is_sample && kind->n_samples < PER_KIND)
        kind->samples[kind->n_samples++] = tensor;
}

/* Tensors with a graph first, since a scalar may hold much of it, then those with most bytes. */
static bool is_kind_better(const struct tensor_kind *a, const struct tensor_kind *b)
{
    if (a->look.is_graph != b->look.is_graph)
        return a->look.is_graph;
    return a->look.bytes * a->n > b->look.bytes * b->n;
}

static struct tmk_object *samples_of(struct tensor_kind *kinds, uint32_t n)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *samples = py->PyList_New(0);
    for (int taken = 0; samples && taken < BEST_KINDS; taken++) {
        struct tensor_kind *best = NULL;
        for (uint32_t i = 0; i < n; i++)
            if (kinds[i].n >= MANY && (!best || is_kind_better(&kinds[i], best)))
                best = &kinds[i];
        if (!best)
            break;
        for (uint32_t i = 0; i < best->n_samples; i++)
            py->PyList_Append(samples, best->samples[i]);
        best->n = 0;
    }
    return samples;
}

/* All objects that Python's collector knows; NULL and an exception when it fails. */
static struct tmk_object *all_objects(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *gc = py->PyDict_GetItemString(tmk_bridge.names, "gc");
    struct tmk_object *ask = gc ? py->PyObject_GetAttrString(gc, "get_objects") : NULL;
    struct tmk_object *all = ask ? py->PyObject_CallObject(ask, NULL) : NULL;
    py->Py_DecRef(ask);
    return all;
}

/* Write down the tensors of a list of all objects; the samples of those of which there are many. */
static struct tmk_object *note_tensors(struct tmk_object *all)
{
    struct tensor_kind kinds[MAX_KINDS];
    uint32_t n_kinds = 0;
    bool are_all = find_tensors(all);
    find_tensor_references(all);
    for (uint32_t i = 0; i < known.n; i++) {
        const struct known_tensor *t = known.order[i];
        if (!t->is_referred)
            continue;
        put_holder(&t->look, t->look.is_graph ? TMK_HOLDER_GRAPH : 0);
        count_kind(kinds, &n_kinds, &t->look, t->tensor);
    }
    put_holder(&(struct tensor_look){0}, are_all ? TMK_HOLDER_ALL : 0);
    return samples_of(kinds, n_kinds);
}

/* Before 3.10 not all types say how they are gone through. The collector rests meanwhile: what it
 * frees may run code of the program's, and let another thread in. */
struct tmk_object *tmk_tensor_holders_tensors(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    (void)self, (void)arguments;
    if (!py->PyGC_Disable || tmk_bridge_is_off())
        return py->Py_BuildValue("[]");
    find_names();
    bool was_on = py->PyGC_Disable();
    struct tmk_object *all = all_objects();
    struct tmk_object *samples = all ? note_tensors(all) : NULL;
    py->Py_DecRef(all);
    py->PyErr_Clear();
    if (was_on)
        py->PyGC_Enable();
    return samples ? samples : py->Py_BuildValue("[]");
}

struct tmk_object *tmk_tensor_holders_holder(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    uint64_t device = py->PyLong_AsUnsignedLongLong(py->PyTuple_GetItem(arguments, 0));
    uint64_t address = py->PyLong_AsUnsignedLongLong(py->PyTuple_GetItem(arguments, 1));
    const char *text = py->PyUnicode_AsUTF8AndSize(py->PyTuple_GetItem(arguments, 2), NULL);
    (void)self;
    struct tmk_lane *lane = text && !py->PyErr_Occurred() ? tmk_lane_enter() : NULL;
    if (lane) {
        uint32_t name = tmk_intern_string(lane, text);
        if (name)
            tmk_lane_put(lane, TMK_KIND_HOLDER, (uint16_t)device, name, address, 0);
        tmk_lane_leave(lane);
    }
    py->PyErr_Clear();
    return py->Py_BuildValue("");
}
