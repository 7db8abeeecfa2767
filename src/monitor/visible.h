/* SPDX-License-Identifier: MIT */
/* monitor/visible.h - the GPUs that a program with this environment sees, as CUDA and torch number
 * them: CUDA_VISIBLE_DEVICES, or for AMD's GPUs HIP_VISIBLE_DEVICES where that is set.
 *
 * The variable is read as CUDA reads it: numbers, ids (GPU-..., MIG-...) or beginnings of ids, up
 * to the first that does not exist. A device named twice, or an id that fits two, hides all. If the
 * variable is not set, all GPUs are visible. Numbers count in the driver's order, which is also
 * CUDA's if all GPUs are alike or CUDA_DEVICE_ORDER=PCI_BUS_ID. A GPU that is divided stands for
 * its first part. */
#ifndef TMK_MONITOR_VISIBLE_H
#define TMK_MONITOR_VISIBLE_H

#include "device/device.h"
#include "monitor/selection.h"

/* A program's variables; NULL: not set. */
struct tmk_visible_texts {
    const char *cuda; /* CUDA_VISIBLE_DEVICES */
    const char *hip;  /* HIP_VISIBLE_DEVICES */
};

/* List the devices that a program with these variables (NULL: with this environment) sees, in their
 * order; n is 0 if none is visible. */
void tmk_visible_devices(const struct tmk_devices *d, const struct tmk_visible_texts *texts,
                         struct tmk_selection *ret);

/* The environment variable for GPUs of that kind, and the GPUs and parts that it names, in its
 * order; all GPUs of the kind if it is not set. */
const char *tmk_visible_variable(enum tmk_device_kind kind);
void tmk_visible_named(const struct tmk_devices *d, enum tmk_device_kind kind,
                       struct tmk_selection *ret);

#endif
