/* SPDX-License-Identifier: MIT */
/* record/driver/driver.h - in front of the CUDA driver's functions that give memory and take it
 * back.
 *
 * A program comes to the driver in one of three ways, and is met in each:
 *
 *   by import slots (it is linked with libcuda): we define the same names, as for torch
 * (block_hooks.h); by dlsym() on libcuda's handle: our dlsym (loader.h) answers with our function;
 *   by cuGetProcAddress(), which CUDA's own runtime asks for everything, itself included: ours
 *   answers as the driver's does, and puts our function where it has one.
 *
 * Ours call the driver's and note what came of it (driver_table.h). What the driver is asked for a
 * free is noted before the call: afterwards another thread may have the address already.
 *
 * What the driver allocates for itself (contexts, code, stacks of kernels) is nobody's call. */
#ifndef TMK_RECORD_DRIVER_H
#define TMK_RECORD_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/* What stands in front of the symbol of that name, NULL when nothing does. `real` is what the
 * symbol is: where we call on to if we know of nothing yet. Where that is somebody else who stands
 * in front of the driver, he is given `real` itself when he asks for the driver's: we stand before
 * him. */
void *tmk_driver_hook(const char *symbol, void *real);

/* True from the first call of any of the driver's functions on. */
bool tmk_driver_is_used(void);

/* A function of the loaded libcuda; NULL when there is none. */
void *tmk_driver_symbol(const char *symbol);

#endif
