/* SPDX-License-Identifier: MIT */
/* monitor/selection.h - what devices are called, and which of them somebody means.
 *
 *     0, 1 ...   a card, NVIDIA's as its driver counts, AMD's behind them
 *     0:1        part 1 of card 0 (MIG)
 *     host       the machine's own memory; where there is no card it is also device 0
 *     GPU-...    what CUDA_VISIBLE_DEVICES takes, or a PCI address
 *     all        all cards; the host where there is none
 *     visible    the cards that a program of this environment sees (visible.h), numbered as CUDA
 *                and torch number them; the host, as 0, where it sees none
 *     visible:1  the second of these
 *
 * With visible ones only the host goes together: other numbers are not CUDA's.
 * Parts are named one by one: their memory is their card's, and would be counted twice. */
#ifndef TMK_MONITOR_SELECTION_H
#define TMK_MONITOR_SELECTION_H

#include "device/device.h"

enum { TMK_LABEL_BYTES = 16 };

struct tmk_selection {
    unsigned n;
    unsigned items[TMK_DEVICES_MOST]; /* indices of the list, each once; in the list's order, or as
                                         they are numbered if they are visible ones */
    char labels[TMK_DEVICES_MOST][TMK_LABEL_BYTES]; /* how each is shown */
};

/* "0", "0:1", "host": into the caller's buffer of TMK_LABEL_BYTES, which is returned. */
const char *tmk_device_label(const struct tmk_devices *d, unsigned index, char *buffer);

/* What `values` mean, each a name or several with commas; none at all: all. 0; TMK_ENOENT and a
 * sentence that names what is not there; TMK_EINVAL and one that says what is no name, or what does
 * not go together. *ret is untouched then. */
int tmk_selection_parse(const struct tmk_devices *d, const char *const *values, unsigned n_values,
                        struct tmk_selection *ret, struct tmk_error *err);
/* The same, but what is not there is left out: *err then has the sentence, while 0 is returned. An
 * error still if nothing is left. */
int tmk_selection_parse_present(const struct tmk_devices *d, const char *const *values,
                                unsigned n_values, struct tmk_selection *ret,
                                struct tmk_error *err);

#endif
