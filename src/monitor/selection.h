/* SPDX-License-Identifier: MIT */
/* monitor/selection.h - what devices are called, and which of them somebody means.
 *
 *     0, 1 ...   a card, NVIDIA's as its driver counts, AMD's behind them
 *     0:1        part 1 of card 0 (MIG)
 *     host       the machine's own memory; where there is no card it is also device 0
 *     GPU-...    what CUDA_VISIBLE_DEVICES takes, or a PCI address
 *     all        all cards; the host where there is none
 *
 * Parts are named one by one: their memory is their card's, and would be counted twice. */
#ifndef TMK_MONITOR_SELECTION_H
#define TMK_MONITOR_SELECTION_H

#include "device/device.h"

enum { TMK_LABEL_BYTES = 16 };

struct tmk_selection {
    unsigned n;
    unsigned items[TMK_DEVICES_MOST]; /* indices of the list, each once, in the list's order */
};

/* "0", "0:1", "host": into the caller's buffer of TMK_LABEL_BYTES, which is returned. */
const char *tmk_device_label(const struct tmk_devices *d, unsigned index, char *buffer);

/* What `values` mean, each a name or several with commas; none at all: all. 0, or TMK_ENOENT and a
 * sentence that names what is not there; *ret is untouched then. */
int tmk_selection_parse(const struct tmk_devices *d, const char *const *values, unsigned n_values,
                        struct tmk_selection *ret, struct tmk_error *err);

#endif
