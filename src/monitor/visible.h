/* SPDX-License-Identifier: MIT */
/* monitor/visible.h - the cards that a program of this environment sees, as CUDA and torch number
 * them: CUDA_VISIBLE_DEVICES, and of AMD's cards HIP_VISIBLE_DEVICES where that is set.
 *
 * Read as CUDA reads it: numbers, or ids (GPU-..., MIG-...) or their beginnings, up to the first
 * that is not there; one that is there twice, or an id that could be two, hides all. Not set: all
 * cards. Numbers count in the driver's order, which is CUDA's too where all cards are alike or
 * CUDA_DEVICE_ORDER=PCI_BUS_ID. A card that is divided stands for its first part. */
#ifndef TMK_MONITOR_VISIBLE_H
#define TMK_MONITOR_VISIBLE_H

#include "device/device.h"
#include "monitor/selection.h"

/* In their order; n is 0 where none is visible. */
void tmk_visible_devices(const struct tmk_devices *d, struct tmk_selection *ret);

/* The variable that says it for cards of that kind, and what it names of them: cards and parts as
 * they stand there; all cards where it is not set. */
const char *tmk_visible_variable(enum tmk_device_kind kind);
void tmk_visible_named(const struct tmk_devices *d, enum tmk_device_kind kind,
                       struct tmk_selection *ret);

#endif
