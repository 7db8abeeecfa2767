/* SPDX-License-Identifier: MIT */
/* model/holders.c - see holders.h. */
#include "model/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "kit/grow.h"
#include "trace/defs.h"
#include "trace/reader.h"

struct holder_rule {
    const char *part;  /* with a slash: a part of the path; else the start of the file's name */
    const char *owner; /* NULL: a go-between, which is skipped */
};

/* The first rule that fits counts. First come go-betweens, wherever they are; then libraries that
 * have one owner whichever package contains them (NCCL in torch's wheel is NCCL); then those of one
 * package, by its folder or its files' names. */
static const struct holder_rule rules[] = {
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

static const char *file_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Whether a file is Whether a file is python, python3, python3.11.. */
static bool is_interpreter(const char *file)
{
    static const char name[] = "python";
    size_t n = sizeof name - 1;
    return strncmp(file, name, n) == 0 && file[n + strspn(file + n, "0123456789.")] == '\0';
}

static const struct holder_rule *rule_for(const char *path)
{
    static const struct holder_rule interpreter = {"python", NULL};
    const char *file = file_name_of(path);
    if (is_interpreter(file))
        return &interpreter;
    for (size_t i = 0; i < TMK_N(rules); i++) {
        const char *part = rules[i].part;
        const char *found = strstr(part[0] == '/' ? path : file, part);
        bool fits = found && (part[0] == '/' || found == file);
        if (fits)
            return &rules[i];
    }
    return NULL;
}

static void set_owner_text(char *text, const char *value, size_t n)
{
    snprintf(text, TMK_HOLDER_BYTES, "%.*s", (int)(n < TMK_HOLDER_BYTES ? n : TMK_HOLDER_BYTES - 1),
             value);
}

/* Set the owner to the package that the file is installed with; without one it is the user. */
static void set_owner_by_folder(struct tmk_holder *h, const char *path)
{
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < TMK_N(roots); i++) {
        const char *root = strstr(path, roots[i]);
        if (!root)
            continue;
        const char *package = root + strlen(roots[i]);
        set_owner_text(h->owner, package, strcspn(package, "/."));
        return;
    }
    set_owner_text(h->owner, "user", strlen("user"));
}

/* Whether this frame names the holder. */
static bool look_at_native(struct tmk_holder *h, const char *path)
{
    const struct holder_rule *rule = rule_for(path);
    if (rule && !rule->owner)
        return false;
    if (rule)
        set_owner_text(h->owner, rule->owner, strlen(rule->owner));
    else
        set_owner_by_folder(h, path);
    set_owner_text(h->library, file_name_of(path), strlen(file_name_of(path)));
    return true;
}

static bool look_at_frame(const struct tmk_process *p, uint32_t id, struct tmk_holder *h)
{
    struct tmk_native native;
    struct tmk_frame frame;
    if (tmk_reader_native(p->reader, id, &native))
        return native.path && look_at_native(h, native.path);
    if (!tmk_process_written_frame(p, id, &frame) || !frame.file || !frame.file[0])
        return false;
    set_owner_by_folder(h, frame.file);
    return true;
}

/* Whether the stack reaches down to the program itself, so that no frame is missing. */
static bool is_stack_whole(const struct tmk_process *p, const struct tmk_stack *stack)
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
    if (is_stack_whole(p, &stack))
        set_owner_text(ret->owner, "user", strlen("user"));
}

/* ---- by stack ---- */

enum { MAX_STACKS = 1 << 24 }; /* a hostile trace may name any stack stack */

/* A holder keeps its address when the table grows, because callers borrow it. */
struct known_holder {
    struct tmk_holder *holder; /* NULL: not looked up yet */
};

struct tmk_holders {
    const struct tmk_process *p;
    struct known_holder *items; /* by stack */
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

static bool make_holders_room(struct tmk_holders *h, uint32_t stack)
{
    uint64_t before = h->room;
    if (TMK_GROW(h->items, (uint64_t)stack + 1, h->room) < 0)
        return false;
    for (uint64_t i = before; i < h->room; i++)
        h->items[i].holder = NULL;
    return true;
}

static bool look_up_holder(struct tmk_holders *h, uint32_t stack)
{
    if (!make_holders_room(h, stack))
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
    if (look_up_holder(h, stack))
        return h->items[stack].holder;
    h->failed = true;
    return &nobody;
}

bool tmk_holders_failed(const struct tmk_holders *h)
{
    return h->failed;
}
