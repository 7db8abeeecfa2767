/* SPDX-License-Identifier: MIT */
/* record/loader/loader.h - ask the C library's own dlsym(), whoever stands in front of it. */
#ifndef TMK_RECORD_LOADER_H
#define TMK_RECORD_LOADER_H

/* The C library's answer to us: RTLD_NEXT means what comes after our library, and we do not get our
 * own definitions. */
void *tmk_loader_symbol(void *handle, const char *name);

/* For our dlsym's stub: the next dlsym() behind ours, another preloaded library's or the C
 * library's. */
void *tmk_loader_next_dlsym(void);

#endif
