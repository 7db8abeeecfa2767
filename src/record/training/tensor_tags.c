/* SPDX-License-Identifier: MIT */
/* record/training/tensor_tags.c - see tensor_tags.h.
 *
 * Gradients are made anew in each backward, so they are tagged in each: by gradients.c where they
 * are made, or else here afterwards, by a few calls of tensor methods for each parameter. A look at
 * all of them decides which of the two, and which gradients are parts of larger blocks, as in DDP's
 * buckets. That look comes after backwards 1, 2, 4, 7, 11 ..., at least after each 61st, when the
 * list of parameters is new, and when gradients.c asks for it. Nothing that is called lets other
 * Python threads run. */
#include "record/training/tensor_tags.h"

#include <stddef.h>

#include "base/region.h"
#include "base/text.h"
#include "record/core/intern.h"
#include "record/core/lane.h"
#include "record/core/recorder.h"
#include "record/python/python.h"
#include "record/training/bridge_python.h"
#include "record/training/gradients.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"
#include "trace/layout.h"

enum { MAX_GRADIENTS = 1 << 16, MAX_INPUTS = 64, MAX_DEPTH = 2 };

struct parameter_source {         /* a parameter; torch does not support weak references to those */
    struct tmk_object *reference; /* weak, to its module; shared by all of a module's parameters */
    struct tmk_object *key;       /* its place among the module's parameters */
    struct tmk_gradients_parameter parameter;
    bool asks_python; /* gradients.c does not tag it, so we ask Python */
};

static struct {
    struct tmk_region memory;
    struct parameter_source *sources;
    uint32_t n;
    uint64_t n_backwards;
    bool is_new;        /* the list is new, or something that is known of it */
    bool is_watched;    /* gradients.c tells when it meets gradients that it does not tag */
    uint32_t n_asking;  /* how many have asks_python */
    uint64_t looked;    /* the backward after which all were looked at */
    uint64_t next_look; /* look for a stranger's sake not before this backward */
    uint32_t n_futile;  /* such looks in a row that found nothing */
    uint32_t bucket;    /* name of a block that holds several gradients */
    struct tmk_object *grad, *data_ptr, *get_device, *parameters; /* names of attributes */
    struct tmk_object *storage_offset, *element_size, *cdata;
    struct tmk_object *none, *tuple_class, *list_class, *dict_class;
} tags;

static void forget_list(void)
{
    for (uint32_t i = 0; i < tags.n; i++) {
        tmk_bridge.py->Py_DecRef(tags.sources[i].reference);
        tmk_bridge.py->Py_DecRef(tags.sources[i].key);
    }
    tags.n = 0;
}

void tmk_tensor_tags_reset(void)
{
    forget_list();
    tags.n_asking = tags.n_futile = 0;
    tags.is_watched = false;
    tags.n_backwards = tags.looked = tags.next_look = 0;
    tmk_gradients_reset();
}

static struct tmk_object *class_of_new(struct tmk_object *fresh)
{
    struct tmk_object *class = fresh ? tmk_python_type(fresh) : NULL;
    tmk_bridge.py->Py_DecRef(fresh);
    return class;
}

void tmk_tensor_tags_init(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    tmk_tensor_tags_reset();
    if (tags.grad)
        return;
    tags.grad = py->PyUnicode_InternFromString("grad");
    tags.data_ptr = py->PyUnicode_InternFromString("data_ptr");
    tags.get_device = py->PyUnicode_InternFromString("get_device");
    tags.parameters = py->PyUnicode_InternFromString("_parameters");
    tags.storage_offset = py->PyUnicode_InternFromString("storage_offset");
    tags.element_size = py->PyUnicode_InternFromString("element_size");
    tags.cdata = py->PyUnicode_InternFromString("_cdata");
    tags.none = py->Py_BuildValue("");
    tags.tuple_class = class_of_new(py->PyTuple_New(0));
    tags.list_class = class_of_new(py->Py_BuildValue("[]"));
    tags.dict_class = class_of_new(py->Py_BuildValue("{}"));
    if (tmk_region_init(&tags.memory, MAX_GRADIENTS * sizeof *tags.sources) == 0)
        tags.sources = tags.memory.base;
}

/* ---- tensors ---- */

static void put_tensor_tag(uint16_t device, uint64_t address, unsigned category, uint32_t name)
{
    struct tmk_lane *lane = address ? tmk_lane_enter() : NULL;
    if (!lane)
        return;
    tmk_lane_put(lane, TMK_KIND_TAG, device, name, address, category);
    tmk_lane_leave(lane);
}

/* ---- gradients ---- */

static uint32_t intern_text(const char *text)
{
    struct tmk_lane *lane = text ? tmk_lane_enter() : NULL;
    uint32_t id = lane ? tmk_intern_string(lane, text) : 0;
    if (lane)
        tmk_lane_leave(lane);
    return id;
}

static uint32_t intern_name(struct tmk_object *name)
{
    return intern_text(tmk_bridge.py->PyUnicode_AsUTF8AndSize(name, NULL));
}

struct tmk_object *tmk_tensor_tags_gradients(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *list = py->PyTuple_GetItem(arguments, 0), *row;
    (void)self;
    forget_list();
    tags.is_new = true;
    tags.bucket = intern_text("gradient bucket");
    for (long i = 0; tags.sources && i < MAX_GRADIENTS && (row = py->PyList_GetItem(list, i));
         i++) {
        struct parameter_source *source = &tags.sources[tags.n++];
        *source = (struct parameter_source){
            .reference = py->PyTuple_GetItem(row, 0),
            .key = py->PyTuple_GetItem(row, 1),
            .parameter = {.name = intern_name(py->PyTuple_GetItem(row, 2)),
                          .device = (uint16_t)py->PyLong_AsLong(py->PyTuple_GetItem(row, 3))}};
        py->Py_IncRef(source->reference);
        py->Py_IncRef(source->key);
    }
    for (long i = tags.n; py->PyList_GetItem(list, i); i++)
        tmk_lane_count_unnamed(); /* its gradient will have no name */
    py->PyErr_Clear();            /* the list has ended */
    return py->Py_BuildValue("");
}

/* The parameters of a module by key, as a new reference; NULL when the module is gone. */
static struct tmk_object *parameters_of(struct tmk_object *reference)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *module = py->PyWeakref_GetObject(reference); /* borrowed */
    if (!module || module == tags.none)
        return NULL;
    struct tmk_object *parameters = py->PyObject_GetAttr(module, tags.parameters);
    if (!parameters)
        py->PyErr_Clear();
    return parameters;
}

/* A module is gone: another tensor may take the address of one of its parameters. */
void tmk_tensor_tags_forget(void)
{
    const struct tmk_object *last = NULL;
    bool is_ours = false;
    if (!tmk_gradients_are_watched())
        return;
    for (uint32_t i = 0; i < tags.n && !is_ours; i++) {
        struct tmk_object *reference = tags.sources[i].reference;
        if (reference != last)
            is_ours = tmk_bridge.py->PyWeakref_GetObject(reference) == tags.none;
        last = reference;
    }
    if (!is_ours)
        return;
    tags.is_new = true;
    tmk_gradients_stop();
}

/* Returns the gradient's address; 0: it has none, or several. */
static uint64_t put_gradient(const struct tmk_gradients_parameter *p, struct tmk_object *grad,
                             bool is_careful)
{
    uint64_t address = tmk_bridge_ask_number(grad, tags.data_ptr, 0);
    uint64_t offset =
        is_careful && address ? tmk_bridge_ask_number(grad, tags.storage_offset, 0) : 0;
    if (offset)
        put_tensor_tag(p->device,
                       address - offset * tmk_bridge_ask_number(grad, tags.element_size, 0),
                       TIDEMARK_GRADIENT, tags.bucket);
    else
        put_tensor_tag(p->device, address, TIDEMARK_GRADIENT, p->name);
    return address;
}

static uint64_t cdata_of(struct tmk_object *tensor)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *number = py->PyObject_GetAttr(tensor, tags.cdata);
    uint64_t cdata = number ? py->PyLong_AsUnsignedLongLong(number) : 0;
    bool failed = py->PyErr_Occurred();
    py->Py_DecRef(number);
    py->PyErr_Clear();
    return failed ? 0 : cdata;
}

struct sources_look {     /* one look at all of them */
    uint32_t n_gradients; /* gradients with an address, of parameters that gradients.c knows */
    bool is_other;        /* there are parameters that gradients.c does not know */
    bool is_trial;        /* some are to be tried that were not tried before */
};

/* The state that gradients.c had of the parameter stays valid, whichever list the parameter is on.
 * */
static void learn_source(struct parameter_source *source, struct tmk_object *parameter,
                         bool has_gradient, uint64_t address, struct sources_look *look)
{
    struct tmk_gradients_parameter *p = &source->parameter, before = {0};
    p->cdata = cdata_of(parameter);
    bool is_known = tmk_gradients_find(p->cdata, &before);
    bool is_first = before.state == TMK_GRADIENT_LISTED;
    bool is_gone = is_first && before.said == TMK_GRADIENT_SOMEWHERE && !has_gradient;
    p->said = is_first ? 0 : before.said;
    p->state = before.state;
    if (is_gone || (has_gradient && !address))
        p->state = TMK_GRADIENT_ODD;
    else if (has_gradient && p->said == address)
        p->state = TMK_GRADIENT_TRUSTED;
    else if (has_gradient && (p->said || p->state != TMK_GRADIENT_TRUSTED))
        p->state = TMK_GRADIENT_TRIED;
    source->asks_python =
        p->state == TMK_GRADIENT_TRIED || (p->state == TMK_GRADIENT_ODD && !has_gradient);
    look->is_other |= p->cdata && !is_known;
    look->is_trial |=
        p->cdata && p->state == TMK_GRADIENT_TRIED && before.state != TMK_GRADIENT_TRIED;
    look->n_gradients += is_known && address != 0;
}

/* Tag the parameter's gradient, if it has one; `look`, if not NULL, takes what can be learnt. */
static void note_gradient(struct parameter_source *source, struct tmk_object *parameter,
                          struct sources_look *look)
{
    const struct tmk_python *py = tmk_bridge.py;
    py->Py_IncRef(parameter);
    struct tmk_object *grad = py->PyObject_GetAttr(parameter, tags.grad);
    uint64_t address = 0;
    if (!grad)
        py->PyErr_Clear();
    else if (tmk_python_type(grad) == tmk_bridge.tensor_class)
        address = put_gradient(&source->parameter, grad, look != NULL);
    if (look)
        learn_source(source, parameter, grad && grad != tags.none, address, look);
    py->Py_DecRef(grad);
    py->Py_DecRef(parameter);
}

/* For all parameters, or without `look` only for those that gradients.c does not tag. */
static void note_sources(struct sources_look *look)
{
    const struct tmk_python *py = tmk_bridge.py;
    const struct tmk_object *of = NULL; /* the module of `parameters` */
    struct tmk_object *parameters = NULL;
    for (uint32_t i = 0; i < tags.n; i++) {
        struct parameter_source *source = &tags.sources[i];
        if (!look && !source->asks_python)
            continue;
        if (source->reference != of) {
            py->Py_DecRef(parameters);
            parameters = parameters_of(source->reference);
            of = source->reference;
        }
        struct tmk_object *parameter =
            parameters ? py->PyDict_GetItem(parameters, source->key) : NULL; /* borrowed */
        source->parameter.cdata = look ? 0 : source->parameter.cdata;
        if (parameter && parameter != tags.none)
            note_gradient(source, parameter, look);
    }
    py->Py_DecRef(parameters);
}

static void make_gradients_table(void)
{
    tmk_gradients_clear(tags.n);
    for (uint32_t i = 0; i < tags.n; i++)
        tmk_gradients_put(&tags.sources[i].parameter);
    tags.is_watched = tags.n > 0 && tmk_gradients_watch();
    tags.n_asking = 0;
    for (uint32_t i = 0; i < tags.n; i++) {
        tags.sources[i].asks_python |= !tags.is_watched;
        tags.n_asking += tags.sources[i].asks_python;
    }
}

/* Tensors that are no parameters of modules have gradients too. Looking whether such a stranger is
 * on the list becomes ever rarer while none is. */
static void look_at_all(bool for_stranger)
{
    enum { MOST_FUTILE = 6 };
    struct sources_look look = {0};
    note_sources(&look);
    bool is_learnt = tmk_gradients_learn(look.n_gradients);
    tags.is_new = is_learnt || look.is_trial; /* the next backward shows whether it is true */
    if (look.is_other)
        tags.n_futile = 0;
    else if (for_stranger && tags.n_futile < MOST_FUTILE)
        tags.n_futile++;
    tags.looked = tags.n_backwards;
    tags.next_look = tags.n_backwards + (UINT64_C(1) << tags.n_futile);
    make_gradients_table();
}

static bool is_look_due(uint64_t n)
{
    enum { EVERY = 61 }; /* odd, because many programs repeat themselves after 2, 4 or 8 */
    bool is_listed = tmk_gradients_met_listed();
    uint64_t wait = tags.looked / 2 < EVERY ? tags.looked / 2 + 1 : EVERY;
    return tags.is_new || is_listed || n >= tags.looked + wait;
}

/* An exception may be on its way: it is put aside meanwhile. Python's collector is held off,
 * because what it runs lets other threads run, and those may begin a backward. */
void tmk_tensor_tags_note_gradients(void)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *error[3];
    uint64_t n = ++tags.n_backwards;
    bool for_stranger = tmk_gradients_met_stranger() && n >= tags.next_look;
    bool looks = is_look_due(n) || for_stranger;
    if (!py->PyGC_Disable || !py->PyGC_Enable)
        return; /* before 3.10 the stage alone says that they are gradients, without names */
    bool is_made =
        tmk_gradients_met_untrusted() || !tags.is_watched; /* it cannot be said for sure */
    if (!looks && !(tags.n_asking > 0 && is_made))
        return;
    py->PyErr_Fetch(&error[0], &error[1], &error[2]);
    bool was_on = py->PyGC_Disable();
    if (looks)
        look_at_all(for_stranger);
    else
        note_sources(NULL);
    if (was_on)
        py->PyGC_Enable();
    py->PyErr_Restore(error[0], error[1], error[2]);
}

/* ---- inputs ---- */

static void note_input(struct tmk_object *tensor, uint32_t name)
{
    tmk_bridge.py->Py_IncRef(tensor);
    int64_t index = (int64_t)tmk_bridge_ask_number(tensor, tags.get_device, UINT64_MAX);
    uint16_t device = index < 0 ? TIDEMARK_HOST : tmk_cuda_device((unsigned)index);
    put_tensor_tag(device, tmk_bridge_ask_number(tensor, tags.data_ptr, 0), TIDEMARK_INPUT, name);
    tmk_bridge.py->Py_DecRef(tensor);
}

static uint32_t note_value(struct tmk_object *value, uint32_t name, unsigned depth);

static uint32_t note_dict(struct tmk_object *dict, uint32_t name, unsigned depth)
{
    struct tmk_object *key, *value;
    long place = 0;
    uint32_t n = 0;
    while (n < MAX_INPUTS && tmk_bridge.py->PyDict_Next(dict, &place, &key, &value))
        n += note_value(value, name, depth + 1);
    return n;
}

static uint32_t note_sequence(struct tmk_object *sequence, uint32_t name, unsigned depth, bool list)
{
    const struct tmk_python *py = tmk_bridge.py;
    long n = list ? py->PyList_Size(sequence) : py->PyTuple_Size(sequence);
    uint32_t n_noted = 0;
    for (long i = 0; i < n && i < MAX_INPUTS && n_noted < MAX_INPUTS; i++) {
        struct tmk_object *value =
            list ? py->PyList_GetItem(sequence, i) : py->PyTuple_GetItem(sequence, i);
        n_noted += value ? note_value(value, name, depth + 1) : 0;
    }
    return n_noted;
}

/* Tag plain tensors, also those in plain containers; returns how many. */
static uint32_t note_value(struct tmk_object *value, uint32_t name, unsigned depth)
{
    struct tmk_object *type = tmk_python_type(value);
    if (type == tmk_bridge.tensor_class) {
        note_input(value, name);
        return 1;
    }
    if (depth >= MAX_DEPTH)
        return 0;
    if (type == tags.dict_class)
        return note_dict(value, name, depth);
    if (type == tags.list_class || type == tags.tuple_class)
        return note_sequence(value, name, depth, type == tags.list_class);
    return 0;
}

/* The name "input[i]", for i below MAX_INPUTS. */
static uint32_t numbered_input(size_t i)
{
    static uint64_t known[MAX_INPUTS]; /* generation << 32 | name */
    char text[32];
    struct tmk_text out;
    uint32_t generation = atomic_load(&tmk_control_page.control.bridge);
    if (known[i] >> 32 == generation)
        return (uint32_t)known[i];
    tmk_text_init(&out, text, sizeof text);
    tmk_text_add(&out, "input[%u]", (unsigned)i);
    uint32_t name = intern_text(text);
    known[i] = name ? (uint64_t)generation << 32 | name : 0;
    return name;
}

void tmk_tensor_tags_note_inputs(struct tmk_object *const *values, size_t n,
                                 struct tmk_object *keywords)
{
    const struct tmk_python *py = tmk_bridge.py;
    long n_keywords = keywords ? py->PyTuple_Size(keywords) : 0;
    for (size_t i = 0; i < n && i < MAX_INPUTS; i++)
        note_value(values[i], numbered_input(i), 0);
    for (long i = 0; i < n_keywords && i < MAX_INPUTS; i++)
        note_value(values[n + (size_t)i], intern_name(py->PyTuple_GetItem(keywords, i)), 0);
    if (py->PyErr_Occurred())
        py->PyErr_Clear();
}
