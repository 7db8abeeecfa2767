/* SPDX-License-Identifier: MIT */
/* record/loader/loader.h - dlsym() as the C library answers us, whoever stands in front of it. */
#ifndef TMK_RECORD_LOADER_H
#define TMK_RECORD_LOADER_H

/* What the C library's dlsym() says to us, whoever else stands in front of it: our RTLD_NEXT is
 * what comes after us, and nobody gives us our own. */
void *tmk_loader_symbol(void *handle, const char *name);

/* The next dlsym() behind ours, another preloaded library's or the C library's; for our own stub.
 */
void *tmk_loader_next_dlsym(void);

#endif
