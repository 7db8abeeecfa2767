/* SPDX-License-Identifier: MIT */
/* monitor/selection.h - the names of devices, and which devices a user's names select.
 *
 *     0, 1 ...   a GPU: NVIDIA's by its driver's number, AMD's behind them
 *     0:1        part 1 of GPU 0 (MIG)
 *     host       the machine's own memory; without a GPU it is also device 0
 *     GPU-...    an id as in CUDA_VISIBLE_DEVICES, or a PCI address
 *     all        all GPUs; the host if there is none
 *     visible    the GPUs that a program with this environment sees (visible.h), numbered as CUDA
 *                and torch number them; the host, as 0, if it sees none
 *     visible:1  the second of these
 *     cuda:1     the same, as torch names it; never the host
 *
 * Only the host can be named together with visible devices, because other numbers are not CUDA's.
 * Parts must be named one by one: their memory belongs to their GPU and would be counted twice. */
#ifndef TMK_MONITOR_SELECTION_H
#define TMK_MONITOR_SELECTION_H

#include "device/device.h"

enum { TMK_LABEL_BYTES = 16 };

struct tmk_selection {
    unsigned n;
    unsigned items[TMK_DEVICES_MOST]; /* indices into the list of devices, each once; in the list's
                                         order, or by number for visible devices */
    char labels[TMK_DEVICES_MOST][TMK_LABEL_BYTES]; /* the name that each is shown with */
};

/* Write "0", "0:1" or "host" to the caller's buffer of TMK_LABEL_BYTES, and return it. */
const char *tmk_device_label(const struct tmk_devices *d, unsigned index, char *buffer);

/* Find the devices that `values` select, each a name or several with commas; no value selects all
 * devices. 0; TMK_ENOENT with a sentence that names the missing devices; TMK_EINVAL with one that
 * says what is no name, or which names cannot be combined. On failure *ret is untouched. */
int tmk_selection_parse(const struct tmk_devices *d, const char *const *values, unsigned n_values,
                        struct tmk_selection *ret, struct tmk_error *err);
/* The same, but leave missing devices out: then 0 is returned while *err has the sentence. It is
 * still an error if no device is left. */
int tmk_selection_parse_present(const struct tmk_devices *d, const char *const *values,
                                unsigned n_values, struct tmk_selection *ret,
                                struct tmk_error *err);

#endif
