/* SPDX-License-Identifier: MIT */
/* record/loader/loader.h - our dlsym().
 *
 * The C library's answers by who asks: by the address that it returns to. A function of ours that
 * called on would ask in our name, and RTLD_NEXT, libraries loaded RTLD_LOCAL and other preloaded
 * libraries would get wrong answers. So it is a stub that looks at the name and *jumps* on, with
 * the stack as it was, unless the name is one of the driver's that we stand in front of.
 *
 * dlopen() is left alone: nothing that it loads need be seen at once, because what is loaded later
 * finds our names in the global scope, and our dlsym. */
#ifndef TMK_RECORD_LOADER_H
#define TMK_RECORD_LOADER_H

/* What the C library's dlsym() says to us, whoever else stands in front of it: our RTLD_NEXT is
 * what comes after us, and nobody gives us our own. */
void *tmk_loader_symbol(void *handle, const char *name);

/* The next dlsym() behind ours, another preloaded library's or the C library's; for the stub. */
void *tmk_loader_next_dlsym(void);
/* What our dlsym answers, NULL: let the next one answer, TMK_LOADER_NONE: there is none; for the
 * stub. */
#define TMK_LOADER_NONE ((void *)-1)
void *tmk_loader_answer(void *handle, const char *name);

#endif
