/* SPDX-License-Identifier: MIT */
/* record/training/workspaces.c - see workspaces.h.
 *
 * Torch takes one block for each handle and stream from the caching allocator, at the first matrix
 * product, and keeps it. It is no tensor, so nobody would know what it is for. Torch keeps these
 * blocks in two maps (std::map<std::tuple<void *, void *>, at::DataPtr>, from 2.0 on) that exported
 * functions return. We read them, as far as they look as expected, through the kernel, which
 * returns an error where our own read would crash. */
#include "record/training/workspaces.h"

#include <stddef.h>

#include "record/loader/library.h"
#include "record/loader/peek.h"
#include "record/training/bridge_python.h"
#include "tidemark/tidemark.h"
#include "trace/layout.h"

enum { MAX_WORKSPACES = 256, MAX_DEPTH = 64 };

struct std_map { /* std::map: a red-black tree */
    uint64_t compare;
    uint64_t header_color;
    uint64_t root;
    uint64_t first, last;
    uint64_t n;
};

struct std_map_node {
    uint64_t color;
    uint64_t parent, left, right;
    uint64_t handle, stream; /* the key */
    uint64_t address;        /* the DataPtr's address */
    uint64_t deleter, context;
    uint8_t device_type, device_index;
};

static void tag_workspace(const struct std_map_node *node, const char *name)
{
    if (node->address && node->device_type == TMK_DEVICE_TYPE_CUDA)
        tidemark_record_tag(TIDEMARK_CUDA(node->device_index),
                            (const void *)(uintptr_t)node->address, TIDEMARK_TEMPORARY, name);
}

static void note_map(const char *function, const char *name)
{
    void *(*find)(void);
    struct std_map map = {0};
    struct std_map_node node = {0};
    uint64_t waiting[MAX_DEPTH];
    unsigned n_waiting = 0, n_seen = 0;
    *(void **)&find = tmk_library_symbol("libtorch_cuda.so", function);
    if (!find || !tmk_peek(find(), &map, sizeof map) || map.n > MAX_WORKSPACES)
        return;
    if (map.n > 0)
        waiting[n_waiting++] = map.root;
    while (n_waiting > 0 && n_seen++ < map.n) {
        if (!tmk_peek((const void *)(uintptr_t)waiting[--n_waiting], &node, sizeof node))
            return;
        tag_workspace(&node, name);
        if (node.left && n_waiting < MAX_DEPTH)
            waiting[n_waiting++] = node.left;
        if (node.right && n_waiting < MAX_DEPTH)
            waiting[n_waiting++] = node.right;
    }
}

struct tmk_object *tmk_workspaces_note(struct tmk_object *self, struct tmk_object *arguments)
{
    (void)self, (void)arguments;
    note_map("_ZN2at4cuda33cublas_handle_stream_to_workspaceEv", "cuBLAS workspace");
    note_map("_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv", "cuBLASLt workspace");
    return tmk_bridge.py->Py_BuildValue("");
}
