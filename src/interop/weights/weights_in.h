/* SPDX-License-Identifier: MIT */
/* interop/weights/weights_in.h - shared by the readers behind weights.h, one for each format. */
#ifndef TMK_INTEROP_WEIGHTS_WEIGHTS_IN_H
#define TMK_INTEROP_WEIGHTS_WEIGHTS_IN_H

#include <stddef.h>
#include <sys/types.h>

#include "interop/weights/weights.h"

/* A file that is being read. */
struct tmk_weights_source {
    int fd;
    uint32_t file; /* its number */
    uint64_t n_bytes;
};

/* Read all of [offset, offset + n). Returns 0, TMK_EDAMAGED or TMK_EIO. */
int tmk_weights_pread(const struct tmk_weights_source *s, uint64_t offset, void *to, size_t n,
                      struct tmk_error *err);

/* Add a tensor, zeroed; NULL without memory. Good until the next. */
struct tmk_weight *tmk_weights_add(struct tmk_weights *w);
/* Compute elements and bytes of a shape. Returns 0, or TMK_EDAMAGED when they exceed 63 bits. */
int tmk_weight_measure(struct tmk_weight *t, struct tmk_error *err);

int tmk_safetensors_read(struct tmk_weights *w, const struct tmk_weights_source *s,
                         struct tmk_error *err);
/* Read the zip file's tensors; interop/weights/checkpoint_zip.c. */
int tmk_checkpoint_read(struct tmk_weights *w, const struct tmk_weights_source *s,
                        struct tmk_error *err);

/* Finds where a storage of the checkpoint lies. */
struct tmk_checkpoint_entries {
    const void *zip;
    /* Returns 0 with offset and size; TMK_EDAMAGED: there is no such entry; or another error. */
    int (*find)(const void *zip, const char *key, uint64_t *ret_offset, uint64_t *ret_bytes,
                struct tmk_error *err);
};

/* Read the tensors in a data.pkl; interop/weights/checkpoint_tensors.c. */
int tmk_checkpoint_tensors(struct tmk_weights *w, uint32_t file, const uint8_t *pickle, size_t n,
                           const struct tmk_checkpoint_entries *entries, struct tmk_error *err);

#endif
