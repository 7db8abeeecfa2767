/* SPDX-License-Identifier: MIT */
/* record/loader/loader.h - ask the C library's own dlsym(), whichever library stands in front of
 * it. */
#ifndef TMK_RECORD_LOADER_H
#define TMK_RECORD_LOADER_H

/* The C library's answer to us: RTLD_NEXT means the libraries after ours, and our own definitions
 * are not found. */
void *tmk_loader_symbol(void *handle, const char *name);

/* Called by our dlsym's stub: the next dlsym() behind ours, which is another preloaded library's or
 * the C library's. */
void *tmk_loader_next_dlsym(void);

#endif
