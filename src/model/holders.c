/* SPDX-License-Identifier: MIT */
/* model/holders.c - see holders.h. */
#include "model/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/grow.h"
#include "trace/defs.h"
#include "trace/reader.h"

struct rule {
    const char *part;  /* of the path where it has a slash, else how the file's name begins */
    const char *owner; /* NULL: a go-between, to be passed over */
};

/* The first that fits counts. First go-betweens, wherever they are; then libraries that are the
 * same whoever brings them along (NCCL in torch's wheel is NCCL); then those of one package, by its
 * folder or its files' names. */
static const struct rule rules[] = {
    {"libtidemark", NULL},
    {"libcuda.so", NULL},
    {"libcudart", NULL},
    {"libffi", NULL},
    {"_ctypes", NULL},
    {"libpython", NULL},
    {"libc.so", NULL},
    {"libpthread", NULL},
    {"ld-linux", NULL},
    {"libstdc++", NULL},
    {"libnvidia-ml", NULL},
    {"libnccl", "nccl"},
    {"libcublas", "cublas"},
    {"libcudnn", "cudnn"},
    {"libcufft", "cufft"},
    {"libcusolver", "cusolver"},
    {"libcusparse", "cusparse"},
    {"libcurand", "curand"},
    {"libnvrtc", "nvrtc"},
    {"libnvinfer", "tensorrt"},
    {"libnvshmem", "nvshmem"},
    {"libucp", "ucx"},
    {"libucs", "ucx"},
    {"libuct", "ucx"},
    {"libucm", "ucx"},
    {"libcupti", "cupti"},
    {"/jaxlib/", "jax"},
    {"/jax_plugins/", "jax"},
    {"/jax_cuda", "jax"},
    {"xla_", "jax"},
    {"/cupy_backends/", "cupy"},
    {"/cupy/", "cupy"},
    {"/cupyx/", "cupy"},
    {"librmm", "rmm"},
    {"/rmm/", "rmm"},
    {"/triton/", "triton"},
    {"libc10", "torch"},
    {"libtorch", "torch"},
    {"libcaffe2", "torch"},
    {"/torch/lib/", "torch"},
    {"/tensorflow/", "tensorflow"},
    {"libtensorflow", "tensorflow"},
};

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* python, python3, python3.11 */
static bool is_interpreter(const char *file)
{
    static const char name[] = "python";
    size_t n = sizeof name - 1;
    return strncmp(file, name, n) == 0 && file[n + strspn(file + n, "0123456789.")] == '\0';
}

static const struct rule *rule_for(const char *path)
{
    static const struct rule interpreter = {"python", NULL};
    const char *file = file_of(path);
    if (is_interpreter(file))
        return &interpreter;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const char *part = rules[i].part;
        const char *found = strstr(part[0] == '/' ? path : file, part);
        bool fits = found && (part[0] == '/' || found == file);
        if (fits)
            return &rules[i];
    }
    return NULL;
}

static void set(char *text, const char *value, size_t n)
{
    snprintf(text, TMK_HOLDER_BYTES, "%.*s", (int)(n < TMK_HOLDER_BYTES ? n : TMK_HOLDER_BYTES - 1),
             value);
}

/* The package that the file is installed with; none: it is the user's own. */
static void set_owner_by_folder(struct tmk_holder *h, const char *path)
{
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        const char *root = strstr(path, roots[i]);
        if (!root)
            continue;
        const char *package = root + strlen(roots[i]);
        set(h->owner, package, strcspn(package, "/."));
        return;
    }
    set(h->owner, "user", strlen("user"));
}

/* Whether this frame says it. */
static bool look_at_native(struct tmk_holder *h, const char *path)
{
    const struct rule *rule = rule_for(path);
    if (rule && !rule->owner)
        return false;
    if (rule)
        set(h->owner, rule->owner, strlen(rule->owner));
    else
        set_owner_by_folder(h, path);
    set(h->library, file_of(path), strlen(file_of(path)));
    return true;
}

static bool look_at_frame(const struct tmk_process *p, uint32_t id, struct tmk_holder *h)
{
    struct tmk_native native;
    struct tmk_frame frame;
    if (tmk_reader_native(p->reader, id, &native))
        return native.path && look_at_native(h, native.path);
    if (!tmk_reader_frame(p->reader, id, &frame) || !frame.file || !frame.file[0])
        return false;
    set_owner_by_folder(h, frame.file);
    return true;
}

/* Whether the stack goes down to the program itself: then nothing is missing of it. */
static bool is_whole(const struct tmk_process *p, const struct tmk_stack *stack)
{
    struct tmk_native last;
    const char *program = tmk_reader_info(p->reader, "exe");
    return program && stack->n_frames > 0 &&
           tmk_reader_native(p->reader, stack->frames[stack->n_frames - 1], &last) && last.path &&
           strcmp(last.path, program) == 0;
}

static void look_at_stack(const struct tmk_process *p, uint32_t id, struct tmk_holder *ret)
{
    struct tmk_stack stack;
    *ret = (struct tmk_holder){0};
    if (!tmk_reader_stack(p->reader, id, &stack))
        return;
    for (uint32_t i = 0; i < stack.n_frames; i++)
        if (look_at_frame(p, stack.frames[i], ret))
            return;
    if (is_whole(p, &stack))
        set(ret->owner, "user", strlen("user"));
}

/* ---- by stack ---- */

enum { MAX_STACKS = 1 << 24 }; /* a hostile trace may name any */

/* Whoever has been told of one keeps it, however many more are met. */
struct known {
    struct tmk_holder *holder; /* NULL: not looked at yet */
};

struct tmk_holders {
    const struct tmk_process *p;
    struct known *items; /* by stack */
    uint64_t room;
    bool failed;
};

int tmk_holders_open(const struct tmk_process *p, struct tmk_holders **ret_holders)
{
    struct tmk_holders *h = calloc(1, sizeof *h);
    if (!h)
        return TMK_ENOMEM;
    h->p = p;
    *ret_holders = h;
    return 0;
}

struct tmk_holders *tmk_holders_close(struct tmk_holders *h)
{
    if (!h)
        return NULL;
    for (uint64_t i = 0; i < h->room; i++)
        free(h->items[i].holder);
    free(h->items);
    free(h);
    return NULL;
}

static bool make_room(struct tmk_holders *h, uint32_t stack)
{
    uint64_t before = h->room;
    struct known *more = tmk_grow(h->items, (uint64_t)stack + 1, &h->room, sizeof *more);
    if (!more)
        return false;
    h->items = more;
    for (uint64_t i = before; i < h->room; i++)
        h->items[i].holder = NULL;
    return true;
}

static bool look_up(struct tmk_holders *h, uint32_t stack)
{
    if (!make_room(h, stack))
        return false;
    if (h->items[stack].holder)
        return true;
    struct tmk_holder *item = malloc(sizeof *item);
    if (!item)
        return false;
    look_at_stack(h->p, stack, item);
    h->items[stack].holder = item;
    return true;
}

const struct tmk_holder *tmk_holders_get(struct tmk_holders *h, uint32_t stack)
{
    static const struct tmk_holder nobody;
    if (stack == 0 || stack >= MAX_STACKS)
        return &nobody;
    if (look_up(h, stack))
        return h->items[stack].holder;
    h->failed = true;
    return &nobody;
}

bool tmk_holders_failed(const struct tmk_holders *h)
{
    return h->failed;
}
