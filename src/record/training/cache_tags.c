/* SPDX-License-Identifier: MIT */
/* record/training/cache_tags.c - see cache_tags.h.
 *
 * Where a root's caches are is looked for after its first, second, fourth and eighth call in
 * inference (bridge.py's find_caches), since modules may get the attribute in a call. After each
 * call what lies there is tagged: lists, tuples, dicts and plain objects are gone through. What a
 * call gives back for a cache that it may be given is a container inside its result. Most models
 * have no cache: theirs cost one search in a short table. */
#include "record/training/cache_tags.h"

#include <stdint.h>
#include <string.h>

#include "record/python/python.h"
#include "record/training/bridge_python.h"
#include "record/training/tensor_tags.h"
#include "tidemark/tidemark.h"

enum { MAX_ROOTS = 64, LAST_LOOK = 8, MAX_DEPTH = 4, MAX_TENSORS = 2048, MAX_NAME = 64 };
enum { MAX_VALUES = 8192 }; /* of one call's caches, tensors or not */

struct cached_root {
    const void *root;
    uint64_t arguments;            /* bit i: positional argument i may be a cache */
    struct tmk_object *attributes; /* list of (weak reference to a module, key), or NULL */
    uint32_t n_calls;              /* no further than LAST_LOOK */
};

static struct cached_root cached[MAX_ROOTS];
static unsigned n_cached;
static unsigned n_values_left; /* of this call; with the interpreter's lock */

/* ---- names ---- */

static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at++)
        if ((at == name || at[-1] == '_') && (at[n] == '\0' || at[n] == '_'))
            return true;
    return false;
}

/* "past_key_values", "kv_cache", "k_cache", "kv"; but not "cache_position" or "cache_len". */
static bool is_cache_name(const char *text)
{
    static const char *const others[] = {"position", "mask", "len", "index", "idx", "size"};
    char name[MAX_NAME];
    size_t n = text ? strlen(text) : sizeof name;
    if (n >= sizeof name)
        return false;
    for (size_t i = 0; i <= n; i++)
        name[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strstr(name, others[i]))
            return false;
    return strstr(name, "cache") || strncmp(name, "past", 4) == 0 || has_word(name, "kv");
}

static const char *text_of(struct tmk_object *name)
{
    const char *text = name ? tmk_bridge.py->PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!text)
        tmk_bridge.py->PyErr_Clear();
    return text;
}

struct tmk_object *tmk_cache_tags_is_name(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    (void)self;
    return py->PyLong_FromLong(is_cache_name(text_of(py->PyTuple_GetItem(arguments, 0))));
}

/* ---- roots ---- */

static struct cached_root *find_cached_root(const void *root)
{
    for (unsigned i = 0; i < n_cached; i++)
        if (cached[i].root == root)
            return &cached[i];
    return NULL;
}

static struct cached_root *add_cached_root(const void *root)
{
    if (n_cached == MAX_ROOTS)
        return NULL;
    cached[n_cached] = (struct cached_root){.root = root};
    return &cached[n_cached++];
}

void tmk_cache_tags_forget(const void *root)
{
    struct cached_root *found = find_cached_root(root);
    if (!found)
        return;
    tmk_bridge.py->Py_DecRef(found->attributes);
    *found = cached[--n_cached];
}

void tmk_cache_tags_reset(void)
{
    while (n_cached > 0)
        tmk_cache_tags_forget(cached[0].root);
}

struct tmk_object *tmk_cache_tags_places(struct tmk_object *self, struct tmk_object *arguments)
{
    const struct tmk_python *py = tmk_bridge.py;
    uint64_t root = py->PyLong_AsUnsignedLongLong(py->PyTuple_GetItem(arguments, 0));
    struct cached_root *found = find_cached_root((const void *)(uintptr_t)root);
    (void)self;
    if (found) {
        py->Py_DecRef(found->attributes);
        found->arguments = py->PyLong_AsUnsignedLongLong(py->PyTuple_GetItem(arguments, 1));
        found->attributes = py->PyTuple_GetItem(arguments, 2);
        py->Py_IncRef(found->attributes);
    }
    return py->Py_BuildValue("");
}

/* ---- tensors ---- */

struct cache_walk {
    uint32_t name;
    unsigned n_left; /* tensors that may still be tagged */
};

static bool is_of_class(const struct tmk_object *value, enum tmk_tensor_class class)
{
    return tmk_bridge.py->PyType_IsSubtype(tmk_python_type(value), tmk_tensor_tags_class(class));
}

static void tag_cache(struct cache_walk *w, struct tmk_object *value, unsigned depth);

static void tag_dict(struct cache_walk *w, struct tmk_object *dict, unsigned depth)
{
    struct tmk_object *key, *value;
    long place = 0;
    while (w->n_left > 0 && n_values_left > 0 &&
           tmk_bridge.py->PyDict_Next(dict, &place, &key, &value))
        tag_cache(w, value, depth + 1);
}

static void tag_sequence(struct cache_walk *w, struct tmk_object *sequence, bool list,
                         unsigned depth)
{
    const struct tmk_python *py = tmk_bridge.py;
    long n = list ? py->PyList_Size(sequence) : py->PyTuple_Size(sequence);
    for (long i = 0; i < n && w->n_left > 0 && n_values_left > 0; i++)
        tag_cache(w, list ? py->PyList_GetItem(sequence, i) : py->PyTuple_GetItem(sequence, i),
                  depth + 1);
}

/* Whether objects of the class have a dict: an exception for each that has none would take time. */
static bool has_dict(struct tmk_object *class)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *offset = py->PyObject_GetAttrString(class, "__dictoffset__");
    bool has = offset && py->PyObject_IsTrue(offset) == 1;
    py->Py_DecRef(offset);
    py->PyErr_Clear();
    return has;
}

/* Its __dict__, without calling its class's __getattribute__(). */
static struct tmk_object *own_dict_of(struct tmk_object *object)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *name = py->PyUnicode_InternFromString("__dict__");
    struct tmk_object *fields = name ? py->PyObject_GenericGetAttr(object, name) : NULL;
    py->Py_DecRef(name);
    return fields;
}

/* An object of the program's own, such as class KVCache. */
static void tag_object(struct cache_walk *w, struct tmk_object *object, unsigned depth)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *fields = has_dict(tmk_python_type(object)) ? own_dict_of(object) : NULL;
    if (!fields)
        py->PyErr_Clear();
    else if (tmk_python_type(fields) == tmk_tensor_tags_class(TMK_CLASS_DICT))
        tag_dict(w, fields, depth);
    py->Py_DecRef(fields);
}

static void tag_cache(struct cache_walk *w, struct tmk_object *value, unsigned depth)
{
    if (!value || w->n_left == 0 || n_values_left == 0)
        return;
    n_values_left--;
    if (tmk_python_type(value) == tmk_bridge.tensor_class) {
        tmk_tensor_tags_put(value, TIDEMARK_KV_CACHE, w->name);
        w->n_left--;
    } else if (depth >= MAX_DEPTH || is_of_class(value, TMK_CLASS_MODULE)) {
        return;
    } else if (is_of_class(value, TMK_CLASS_DICT)) {
        tag_dict(w, value, depth);
    } else if (is_of_class(value, TMK_CLASS_LIST) || is_of_class(value, TMK_CLASS_TUPLE)) {
        tag_sequence(w, value, is_of_class(value, TMK_CLASS_LIST), depth);
    } else {
        tag_object(w, value, depth);
    }
}

static void tag_named(struct tmk_object *value, const char *name)
{
    struct cache_walk w = {.name = tmk_tensor_tags_name(name), .n_left = MAX_TENSORS};
    tag_cache(&w, value, 0);
}

/* ---- calls ---- */

static void note_attributes(const struct cached_root *c)
{
    const struct tmk_python *py = tmk_bridge.py;
    long n = c->attributes ? py->PyList_Size(c->attributes) : 0;
    for (long i = 0; i < n; i++) {
        struct tmk_object *place = py->PyList_GetItem(c->attributes, i);
        struct tmk_object *module = py->PyWeakref_GetObject(py->PyTuple_GetItem(place, 0));
        struct tmk_object *key = py->PyTuple_GetItem(place, 1);
        struct tmk_object *fields = module ? own_dict_of(module) : NULL;
        if (fields)
            tag_named(py->PyDict_GetItem(fields, key), text_of(key));
        py->Py_DecRef(fields);
        py->PyErr_Clear(); /* the module is gone */
    }
}

/* True when the call has an argument that may be a cache, also one that it was not given. */
static bool note_arguments(const struct cached_root *c, struct tmk_object *const *values, size_t n,
                           struct tmk_object *keywords)
{
    const struct tmk_python *py = tmk_bridge.py;
    bool has = c->arguments != 0;
    long n_keywords = keywords ? py->PyTuple_Size(keywords) : 0;
    for (size_t i = 0; i < n && i < 64; i++)
        if (c->arguments >> i & 1)
            tag_named(values[i], "cache");
    for (long i = 0; i < n_keywords; i++) {
        const char *name = text_of(py->PyTuple_GetItem(keywords, i));
        if (!is_cache_name(name))
            continue;
        tag_named(values[n + (size_t)i], name);
        has = true;
    }
    return has;
}

/* Containers inside the result, such as (logits, cache). A dict has them by name. */
static void note_cache_result(struct tmk_object *result)
{
    const struct tmk_python *py = tmk_bridge.py;
    struct tmk_object *key, *value;
    long place = 0;
    if (is_of_class(result, TMK_CLASS_DICT)) {
        while (py->PyDict_Next(result, &place, &key, &value))
            if (is_cache_name(text_of(key)))
                tag_named(value, text_of(key));
        return;
    }
    long n = is_of_class(result, TMK_CLASS_TUPLE) ? py->PyTuple_Size(result) : 0;
    for (long i = 0; i < n; i++) {
        value = py->PyTuple_GetItem(result, i);
        if (tmk_python_type(value) != tmk_bridge.tensor_class)
            tag_named(value, "cache");
    }
}

bool tmk_cache_tags_note(struct tmk_object *root, struct tmk_object *const *values, size_t n,
                         struct tmk_object *keywords, struct tmk_object *result)
{
    struct cached_root *c = find_cached_root(root);
    if (!c && !(c = add_cached_root(root)))
        return true;
    uint32_t n_calls = c->n_calls < LAST_LOOK ? ++c->n_calls : 0;
    if (n_calls > 0 && (n_calls & (n_calls - 1)) == 0) {
        if (!tmk_bridge_call(tmk_bridge.find_caches, root, NULL))
            return false;
        c = find_cached_root(root);
    }
    if (!c || tmk_bridge.py->PyErr_Occurred())
        return true;
    struct cached_root now = *c; /* the table may change while we look at the program's objects */
    tmk_bridge.py->Py_IncRef(now.attributes);
    n_values_left = MAX_VALUES;
    note_attributes(&now);
    if (note_arguments(&now, values, n, keywords))
        note_cache_result(result);
    tmk_bridge.py->Py_DecRef(now.attributes);
    tmk_bridge.py->PyErr_Clear();
    return true;
}
