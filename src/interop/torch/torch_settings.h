/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_settings.h - the allocator's settings in a snapshot, as
 * PYTORCH_CUDA_ALLOC_CONF would say them. */
#ifndef TMK_INTEROP_TORCH_TORCH_SETTINGS_H
#define TMK_INTEROP_TORCH_TORCH_SETTINGS_H

#include <stddef.h>

#include "interop/pickle/pickle.h"

/* The variable itself if the snapshot has it and it makes sense, else what follows from the values
 * in force: only those that are not torch's defaults. "" when all are. */
void tmk_import_settings_text(const struct tmk_pickle_object *settings, char *to, size_t room);

#endif
