/* SPDX-License-Identifier: MIT */
/* record/driver/device_samples.h - sample what the driver says of the GPUs that the process uses.
 *
 * A thread of its own asks NVML, from when the process first has memory of the CUDA driver: how
 * much of the GPU is used, how much by this process, how much by others. It asks once a second,
 * sooner when memory has been asked for since or a call has failed; that takes 28 µs per device. It
 * is not the packer's thread, because that one has left the program's descriptors, and the program
 * may use NVML too, which keeps files open. */
#ifndef TMK_RECORD_DEVICE_SAMPLES_H
#define TMK_RECORD_DEVICE_SAMPLES_H

/* Start the thread unless it runs, because there is something to sample. Any thread of the program
 * that records; no lock of ours may be held. */
void tmk_device_samples_want(void);

/* How many threads are running at this moment. */
unsigned tmk_device_samples_n_threads(void);

#endif
