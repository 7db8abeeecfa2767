/* SPDX-License-Identifier: MIT */
/* record/python/pyruntime.c - see pyruntime.h. */
#include "record/python/pyruntime.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "record/core/recorder.h"
#include "record/loader/peek.h"
#include "record/python/python.h"
#include "trace/layout.h"

/* ---- what is known ---- */

/* From 3.13 on CPython begins its runtime state with a table of u64 for debuggers: a cookie, the
 * version, whether it is free-threaded, then offsets in groups. This is which entries we need, by
 * version. 3.14 changed the table before its release, so it has two candidates; the proof
 * decides. */
static const struct published {
    uint16_t minor;
    uint8_t thread_interpreter, thread_frame;
    uint8_t frame_back, frame_code, frame_instruction, frame_owner;
    uint8_t code_file, code_name, code_lines, code_first_line, code_start;
    uint8_t bytes_size, bytes_start;
    uint8_t text_state, text_length, text_ascii;
} published[] = {
    {13, 22, 23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 65, 66, 68, 69, 70},
    {14, 25, 26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 75, 76, 78, 79, 80},
    {14, 23, 24, 30, 31, 32, 34, 37, 39, 40, 41, 45, 71, 72, 74, 75, 76},
};

static struct tmk_pylayout layout_from(const uint64_t *t, const struct published *p)
{
    return (struct tmk_pylayout){
        .minor = p->minor,
        .lines = TMK_PY_LINES_311,
        .has_owner = true,
        .tagged = p->minor >= 14,
        .thread_interpreter = (uint16_t)t[p->thread_interpreter],
        .thread_frame = (uint16_t)t[p->thread_frame],
        .frame_back = (uint16_t)t[p->frame_back],
        .frame_code = (uint16_t)t[p->frame_code],
        .frame_instruction = (uint16_t)t[p->frame_instruction],
        .frame_owner = (uint16_t)t[p->frame_owner],
        .code_file = (uint16_t)t[p->code_file],
        .code_name = (uint16_t)t[p->code_name],
        .code_lines = (uint16_t)t[p->code_lines],
        .code_first_line = (uint16_t)t[p->code_first_line],
        .code_start = (uint16_t)t[p->code_start],
        .code_version = (uint16_t)(p->minor == 13 ? t[p->code_first_line] + 24 : 0),
        .bytes_size = (uint16_t)t[p->bytes_size],
        .bytes_start = (uint16_t)t[p->bytes_start],
        .text_state = (uint16_t)t[p->text_state],
        .text_length = (uint16_t)t[p->text_length],
        .text_hash = (uint16_t)(t[p->text_length] + 8),
        .text_ascii = (uint16_t)t[p->text_ascii],
        .text_compact = (uint16_t)(t[p->text_ascii] + 16),
        .object_type = 8,
    };
}

/* ---- proving ---- */

static bool peek_pointer(const void *base, uint16_t offset, const void **ret)
{
    return base && tmk_peek((const uint8_t *)base + offset, ret, sizeof *ret);
}

static bool object_has_type(const struct tmk_pyruntime *rt, const void *object, const void *type)
{
    const void *there;
    return peek_pointer(object, rt->layout.object_type, &there) && there == type;
}

/* True for a string as code objects have it: compact, with characters of one, two or four bytes. */
static bool is_text_object(const struct tmk_pyruntime *rt, const void *text)
{
    const struct tmk_pylayout *l = &rt->layout;
    uint64_t length;
    uint32_t bits;
    if (!object_has_type(rt, text, rt->text_type) ||
        !tmk_peek((const uint8_t *)text + l->text_length, &length, sizeof length) ||
        !tmk_peek((const uint8_t *)text + l->text_state, &bits, sizeof bits))
        return false;
    unsigned width = bits >> tmk_pylayout_kind_bit(l) & 7;
    bool compact = bits >> (tmk_pylayout_kind_bit(l) + 3) & 1;
    return compact && (width == 1 || width == 2 || width == 4) && length < 1 << 20;
}

static bool is_code_object(const struct tmk_pyruntime *rt, const void *code)
{
    const struct tmk_pylayout *l = &rt->layout;
    const void *file, *name, *lines;
    uint64_t n_lines;
    int32_t first_line;
    return object_has_type(rt, code, rt->code_type) && peek_pointer(code, l->code_file, &file) &&
           peek_pointer(code, l->code_name, &name) && peek_pointer(code, l->code_lines, &lines) &&
           is_text_object(rt, file) && is_text_object(rt, name) &&
           object_has_type(rt, lines, rt->bytes_type) &&
           tmk_peek((const uint8_t *)lines + l->bytes_size, &n_lines, sizeof n_lines) &&
           n_lines < 1 << 26 &&
           tmk_peek((const uint8_t *)code + l->code_first_line, &first_line, sizeof first_line) &&
           first_line >= 0;
}

static bool peek_top_frame(const struct tmk_pyruntime *rt, const void *thread, const void **ret)
{
    const struct tmk_pylayout *l = &rt->layout;
    const void *interpreter;
    if (!peek_pointer(thread, l->thread_interpreter, &interpreter) ||
        interpreter != rt->main_interpreter || !peek_pointer(thread, l->thread_frame, ret))
        return false;
    return !l->indirect || !*ret || peek_pointer(*ret, l->cframe_frame, ret);
}

/* Follow this thread's frames, checking every step. */
static enum tmk_pyruntime_found prove_layout(const struct tmk_pyruntime *rt)
{
    enum { FRAMES_LOOKED_AT = 1000 };
    const struct tmk_pylayout *l = &rt->layout;
    const void *thread = rt->this_thread(), *frame = NULL;
    if (!thread)
        return TMK_PYRUNTIME_LATER;
    if (!peek_top_frame(rt, thread, &frame))
        return TMK_PYRUNTIME_REFUSED;
    int n_functions = 0;
    for (int n = 0; frame && n < FRAMES_LOOKED_AT; n++) {
        const void *code = NULL;
        uint8_t owner = 0;
        if (!peek_pointer(frame, l->frame_code, &code) ||
            (l->has_owner && !tmk_peek((const uint8_t *)frame + l->frame_owner, &owner, 1)))
            return TMK_PYRUNTIME_REFUSED;
        if (l->tagged)
            code = (const void *)((uintptr_t)code & ~(uintptr_t)3);
        /* From 3.13 on a frame's executable may be something else, but not in all frames. */
        if (owner < TMK_PYFRAME_OWNED_BY_C) {
            if (is_code_object(rt, code))
                n_functions++;
            else if (l->minor < 13)
                return TMK_PYRUNTIME_REFUSED;
        }
        if (!peek_pointer(frame, l->frame_back, &frame))
            return TMK_PYRUNTIME_REFUSED;
    }
    return n_functions > 0 ? TMK_PYRUNTIME_PROVEN : TMK_PYRUNTIME_LATER;
}

/* ---- finding ---- */

/* False when something is missing that every known version has. */
static bool find_symbols(struct tmk_pyruntime *rt, void *handle)
{
    const void *(*get_main)(void) = (const void *(*)(void))dlsym(handle, "PyInterpreterState_Main");
    rt->this_thread = (void *(*)(void))dlsym(handle, "PyGILState_GetThisThreadState");
    rt->code_type = dlsym(handle, "PyCode_Type");
    rt->text_type = dlsym(handle, "PyUnicode_Type");
    rt->bytes_type = dlsym(handle, "PyBytes_Type");
    rt->main_interpreter = get_main ? get_main() : NULL;
    if (tmk_recorder.settings.native)
        rt->image = tmk_library_range((const void *)get_main);
    return get_main && rt->this_thread && rt->code_type && rt->text_type && rt->bytes_type;
}

static unsigned minor_of(const char *version) /* "3.11.2 (main, ..." */
{
    unsigned minor = 0;
    if (strncmp(version, "3.", 2) != 0)
        return 0;
    for (const char *c = version + 2; *c >= '0' && *c <= '9'; c++)
        minor = minor * 10 + (unsigned)(*c - '0');
    return minor;
}

static enum tmk_pyruntime_found try_known(struct tmk_pyruntime *rt, unsigned minor)
{
    for (size_t i = 0; i < sizeof tmk_pylayout_known / sizeof tmk_pylayout_known[0]; i++) {
        if (tmk_pylayout_known[i].minor == minor) {
            rt->layout = tmk_pylayout_known[i];
            return prove_layout(rt);
        }
    }
    return TMK_PYRUNTIME_NONE;
}

static enum tmk_pyruntime_found try_published(struct tmk_pyruntime *rt, void *handle,
                                              unsigned minor, const char **ret_reason)
{
    const uint64_t *table = dlsym(handle, "_PyRuntime");
    enum tmk_pyruntime_found result = TMK_PYRUNTIME_NONE;
    if (!table || memcmp(table, "xdebugpy", 8) != 0)
        return result;
    if (table[2] != 0) {
        *ret_reason = "free-threaded builds of Python are not read";
        return TMK_PYRUNTIME_REFUSED;
    }
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        if (published[i].minor != minor)
            continue;
        rt->layout = layout_from(table, &published[i]);
        result = prove_layout(rt);
        if (result != TMK_PYRUNTIME_REFUSED)
            break;
    }
    return result;
}

static enum tmk_pyruntime_found refuse_interpreter(const char **ret_reason, const char *reason)
{
    if (!*ret_reason)
        *ret_reason = reason;
    return TMK_PYRUNTIME_REFUSED;
}

enum tmk_pyruntime_found tmk_pyruntime_find(struct tmk_pyruntime *ret, const char **ret_reason)
{
    static const char unknown[] = "this version of Python is not known (3.9 to 3.14 are)";
    void *handle;
    if (!tmk_python_handle(&handle))
        return TMK_PYRUNTIME_NONE;
    const char *(*get_version)(void) = (const char *(*)(void))dlsym(handle, "Py_GetVersion");
    if (!get_version)
        return TMK_PYRUNTIME_NONE;
    const char *version = get_version();
    unsigned minor = minor_of(version);
    *ret_reason = NULL;
    if (strstr(version, "free-threading"))
        return refuse_interpreter(ret_reason, "free-threaded builds of Python are not read");
    if (minor < tmk_pylayout_known[0].minor || !find_symbols(ret, handle))
        return refuse_interpreter(ret_reason, unknown);
    if (!ret->main_interpreter)
        return TMK_PYRUNTIME_LATER; /* not initialised yet */
    char byte;
    if (!tmk_peek(version, &byte, 1))
        return refuse_interpreter(ret_reason,
                                  "process_vm_readv() is forbidden here (seccomp?), so the way to "
                                  "Python's frames cannot be checked");
    enum tmk_pyruntime_found result = try_known(ret, minor);
    if (result == TMK_PYRUNTIME_NONE)
        result = try_published(ret, handle, minor, ret_reason);
    if (result == TMK_PYRUNTIME_NONE)
        return refuse_interpreter(ret_reason, unknown);
    if (result == TMK_PYRUNTIME_REFUSED)
        return refuse_interpreter(ret_reason, "Python's frames are not laid out as expected");
    return result;
}
