/* SPDX-License-Identifier: MIT */
/* record/driver/device_samples.h - what the driver says of the devices that the process uses.
 *
 * A thread of its own asks NVML, from when the process first has memory of the CUDA driver: how
 * much of the card is used, how much by this process, how much by others. Once a second, sooner
 * when memory has been asked for since, and when a call has been refused. 28 µs a device. It is not
 * the packer's, which has left the program's descriptors: the program may use NVML, too, and that
 * has files open. */
#ifndef TMK_RECORD_DEVICE_SAMPLES_H
#define TMK_RECORD_DEVICE_SAMPLES_H

/* There is something to ask about: start the thread unless it runs. Any thread of the program that
 * records; nothing of ours is locked. */
void tmk_device_samples_want(void);

/* How many threads it has at this moment. */
unsigned tmk_device_samples_n_threads(void);

#endif
