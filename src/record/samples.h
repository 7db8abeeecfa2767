/* SPDX-License-Identifier: MIT */
/* record/samples.h - what the driver says of the devices that the process uses.
 *
 * The packer thread asks NVML, which is loaded when the process first uses the CUDA driver: how
 * much of the card is used, how much by this process, how much by others. Once a second, sooner
 * when memory has been asked for since, and when a call has been refused. 28 µs a device. */
#ifndef TMK_RECORD_SAMPLES_H
#define TMK_RECORD_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

/* Packer thread only: take samples if they are due, `at_once` even if not. */
void tmk_samples_look(uint64_t now_ns, bool at_once);

/* For a new recording. */
void tmk_samples_reset(void);

#endif
