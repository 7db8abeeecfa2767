/* SPDX-License-Identifier: MIT */
/* interop/weights.h - the tensors in files of model weights: safetensors (one file, or shards with
 * an index), and torch.save's zip files. Neither torch nor Python is needed and no pickle is run.
 *
 * A file's header says what is in it; the data stay where they are until they are scanned:
 *
 *     safetensors   [u64 n][n bytes of JSON: name -> dtype, shape, data_offsets][data]
 *     torch zip     NAME/data.pkl: a pickle of names, shapes, storages; NAME/data/KEY: one storage
 *
 * Every length and offset is held against the file before it is used, products of shapes are
 * checked, ranges that overlap in a safetensors file are an error. Files may be hostile. */
#ifndef TMK_INTEROP_WEIGHTS_H
#define TMK_INTEROP_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/textmap.h"

/* name as we print it, name in safetensors (NULL: none), bytes, floating point, signed */
#define TMK_WEIGHT_TYPES(X)                                                                        \
    X(F64, "float64", "F64", 8, true)                                                              \
    X(F32, "float32", "F32", 4, true)                                                              \
    X(F16, "float16", "F16", 2, true)                                                              \
    X(BF16, "bfloat16", "BF16", 2, true)                                                           \
    X(F8_E4M3, "float8_e4m3", "F8_E4M3", 1, true)                                                  \
    X(F8_E5M2, "float8_e5m2", "F8_E5M2", 1, true)                                                  \
    X(I64, "int64", "I64", 8, false)                                                               \
    X(I32, "int32", "I32", 4, false)                                                               \
    X(I16, "int16", "I16", 2, false)                                                               \
    X(I8, "int8", "I8", 1, false)                                                                  \
    X(U64, "uint64", "U64", 8, false)                                                              \
    X(U32, "uint32", "U32", 4, false)                                                              \
    X(U16, "uint16", "U16", 2, false)                                                              \
    X(U8, "uint8", "U8", 1, false)                                                                 \
    X(BOOL, "bool", "BOOL", 1, false)                                                              \
    X(C64, "complex64", "C64", 8, true)                                                            \
    X(C128, "complex128", NULL, 16, true)

enum tmk_weight_type {
#define X(id, name, safetensors, bytes, is_float) TMK_WEIGHT_##id,
    TMK_WEIGHT_TYPES(X)
#undef X
        TMK_WEIGHT_N_TYPES
};

const char *tmk_weight_type_name(enum tmk_weight_type type);
uint32_t tmk_weight_type_bytes(enum tmk_weight_type type);
bool tmk_weight_type_is_float(enum tmk_weight_type type);

enum { TMK_WEIGHT_MAX_DIMS = 64 };

struct tmk_weight {
    const char *name;
    const uint64_t *shape;
    const uint64_t *strides; /* in elements; NULL: contiguous */
    uint64_t n_elements, n_bytes;
    uint64_t offset; /* of the first element in the file */
    uint32_t n_dims;
    uint32_t file;
    uint32_t same_as; /* 1 + the tensor that has the same data; 0: the first or only one */
    enum tmk_weight_type type;
    bool has_data;     /* false: a tensor of the meta device */
    bool is_extra;     /* beside the model: an optimizer's state and the like */
    bool is_parameter; /* the file says so, then it also says the next; else both unknown */
    bool requires_grad;
};

struct tmk_weight_file {
    const char *path;
    const char *format; /* "safetensors", "torch" */
    uint64_t n_bytes;
};

struct tmk_weights {
    struct tmk_weight *all;
    uint64_t n, room;
    struct tmk_weight_file *files;
    uint64_t n_files, files_room;
    struct tmk_textmap left_out; /* what a pickle names and we do not know: not run, not read */
    struct tmk_textmap twice;    /* names of tensors that are in more than one file */
    struct tmk_arena arena;
};

/* Read what the files or folders hold; an index stands for its shards. 0, or an error with the
 * reason and the byte in *err, and `*ret_path`, if not NULL, the file that it is about (good until
 * fini). Fini in both cases. TMK_EFORMAT: no such file; TMK_EDAMAGED; TMK_EIO; TMK_ENOMEM. */
int tmk_weights_read(struct tmk_weights *w, const char *const *paths, uint32_t n_paths,
                     const char **ret_path, struct tmk_error *err);
void tmk_weights_fini(struct tmk_weights *w);

#endif
