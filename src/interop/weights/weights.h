/* SPDX-License-Identifier: MIT */
/* interop/weights/weights.h - the tensors in files of model weights: safetensors (one file, or
 * shards with an index), and torch.save's zip files. Neither torch nor Python is needed and no
 * pickle is run.
 *
 * A file's header says what is in it; the data stay where they are until they are scanned:
 *
 *     safetensors   [u64 n][n bytes of JSON: name -> dtype, shape, data_offsets][data]
 *     torch zip     NAME/data.pkl: a pickle of names, shapes, storages; NAME/data/KEY: one storage
 *
 * Every length and offset is held against the file before it is used, products of shapes are
 * checked, ranges that overlap in a safetensors file are an error. Files may be hostile. */
#ifndef TMK_INTEROP_WEIGHTS_WEIGHTS_H
#define TMK_INTEROP_WEIGHTS_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kit/arena.h"
#include "kit/textmap.h"

/* name as we print it, name in safetensors (NULL: none), bits, trained (a float that is no scale of
 * others), scanned. F4_X2 is torch's: two to a byte, and shapes count bytes. OTHER: the file names
 * a type that is not known here, and says how many bytes there are. */
#define TMK_WEIGHT_TYPES(X)                                                                        \
    X(F64, "float64", "F64", 64, true, true)                                                       \
    X(F32, "float32", "F32", 32, true, true)                                                       \
    X(F16, "float16", "F16", 16, true, true)                                                       \
    X(BF16, "bfloat16", "BF16", 16, true, true)                                                    \
    X(F8_E4M3, "float8_e4m3", "F8_E4M3", 8, true, true)                                            \
    X(F8_E5M2, "float8_e5m2", "F8_E5M2", 8, true, true)                                            \
    X(F8_E4M3FNUZ, "float8_e4m3fnuz", "F8_E4M3FNUZ", 8, true, false)                               \
    X(F8_E5M2FNUZ, "float8_e5m2fnuz", "F8_E5M2FNUZ", 8, true, false)                               \
    X(F8_E8M0, "float8_e8m0", "F8_E8M0", 8, false, false)                                          \
    X(F6_E2M3, "float6_e2m3", "F6_E2M3", 6, true, false)                                           \
    X(F6_E3M2, "float6_e3m2", "F6_E3M2", 6, true, false)                                           \
    X(F4, "float4", "F4", 4, true, false)                                                          \
    X(F4_X2, "float4_e2m1fn_x2", NULL, 8, true, false)                                             \
    X(I64, "int64", "I64", 64, false, true)                                                        \
    X(I32, "int32", "I32", 32, false, true)                                                        \
    X(I16, "int16", "I16", 16, false, true)                                                        \
    X(I8, "int8", "I8", 8, false, true)                                                            \
    X(U64, "uint64", "U64", 64, false, true)                                                       \
    X(U32, "uint32", "U32", 32, false, true)                                                       \
    X(U16, "uint16", "U16", 16, false, true)                                                       \
    X(U8, "uint8", "U8", 8, false, true)                                                           \
    X(BOOL, "bool", "BOOL", 8, false, true)                                                        \
    X(C64, "complex64", "C64", 64, true, false)                                                    \
    X(C128, "complex128", NULL, 128, true, false)                                                  \
    X(OTHER, "other", NULL, 0, false, false)

enum tmk_weight_type {
#define X(id, name, safetensors, bits, is_float, is_scanned) TMK_WEIGHT_##id,
    TMK_WEIGHT_TYPES(X)
#undef X
        TMK_WEIGHT_N_TYPES
};

const char *tmk_weight_type_name(enum tmk_weight_type type);
/* Of an element; 0 where it has less than one, or nobody knows. */
uint32_t tmk_weight_type_bytes(enum tmk_weight_type type);
bool tmk_weight_type_is_float(enum tmk_weight_type type);
/* Whether its numbers can be looked at (interop/weights/weight_scan.h). */
bool tmk_weight_type_is_scanned(enum tmk_weight_type type);

enum { TMK_WEIGHT_MAX_DIMS = 64 };

struct tmk_weight {
    const char *name;
    const char *other_type; /* of TMK_WEIGHT_OTHER: what the file calls it */
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

/* Its type as people read it. */
const char *tmk_weight_dtype(const struct tmk_weight *t);

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
    struct tmk_textmap left_out; /* what a pickle calls and we do not know: not run, not read */
    struct tmk_textmap classes;  /* of objects in a pickle, not made, but their state was read */
    struct tmk_textmap twice;    /* names of tensors that are in more than one file */
    struct tmk_arena arena;
    bool no_limits; /* as read was told */
};

/* Read what the files or folders hold; an index stands for its shards. 0, or an error with the
 * reason and the byte in *err, and `*ret_path`, if not NULL, the file that it is about (good until
 * fini). Fini in both cases. TMK_EFORMAT: no such file; TMK_EDAMAGED; TMK_EIO; TMK_ENOMEM;
 * TMK_EFULL: it takes far more memory or time than its size lets expect, and `no_limits` is false.
 */
int tmk_weights_read(struct tmk_weights *w, const char *const *paths, uint32_t n_paths,
                     bool no_limits, const char **ret_path, struct tmk_error *err);
void tmk_weights_fini(struct tmk_weights *w);

#endif
