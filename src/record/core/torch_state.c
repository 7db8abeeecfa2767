/* SPDX-License-Identifier: MIT */
/* record/core/torch_state.c - see torch_state.h. */
#include "record/core/torch_state.h"

#include "record/core/fast_path_line.h"
#include "record/core/fast_path_state.h"
#include "record/core/hot.h"
#include "record/core/recorder.h"
#include "trace/layout.h"

struct tmk_torch_hot tmk_torch_hot TMK_HOT_FIRST;

void tmk_torch_expect_streams(void)
{
    atomic_store(&tmk_torch_hot.streams_used, true);
    tmk_fast_path_close();
}

void tmk_torch_expect_listeners(void)
{
    if (!atomic_exchange(&tmk_torch_hot.is_listened_to, true))
        tmk_fast_path_close();
}

bool tmk_torch_has_said(uint16_t device)
{
    uint32_t generation = atomic_load(&tmk_recorder.control->generation);
    const struct tmk_fast_path_device *said = tmk_fast_path_device_of(device);
    if ((device & 0xff) >= TMK_TORCH_DEVICES)
        return generation && device >> 8 == TMK_DEVICE_TYPE_CUDA &&
               atomic_load(&tmk_torch_hot.cuda_devices) >> (device & 63) & 1;
    return generation && atomic_load(&said->generation) == generation &&
           atomic_load(&said->torch_device) == tmk_accelerator_of(device);
}
