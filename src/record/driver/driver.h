/* SPDX-License-Identifier: MIT */
/* record/driver/driver.h - stand in front of the CUDA driver's functions that give memory and take
 * it back.
 *
 * A program comes to the driver in one of three ways, and is met in each:
 *
 * - by import slots, because it is linked with libcuda: we define the same names, as for torch
 *   (block_hooks.h)
 * - by dlsym() on libcuda's handle: our dlsym (dlsym_hook.h) answers with our function
 * - by cuGetProcAddress(), which CUDA's own runtime asks for everything, itself included: ours
 *   answers as the driver's does, and puts our function where it has one
 *
 * Our functions call the driver's and note the result (driver_table.h). A free is noted before the
 * driver is called: afterwards another thread may have the address already.
 *
 * What the driver allocates for itself (contexts, code, stacks of kernels) goes through no such
 * call. */
#ifndef TMK_RECORD_DRIVER_H
#define TMK_RECORD_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

/* Returns our function in front of the symbol of this name; NULL: there is none. `real` is the
 * symbol's function, and ours calls it if no other is known yet. `real` may belong to another
 * library that stands in front of the driver. When that library asks for the driver's function it
 * gets `real` itself, because we stand in front of it. */
void *tmk_driver_hook(const char *symbol, void *real);

/* True from the first call of any of the driver's functions on. */
bool tmk_driver_is_used(void);

/* Find a function of the loaded libcuda; NULL when there is none. */
void *tmk_driver_symbol(const char *symbol);

#endif
