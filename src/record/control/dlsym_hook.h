/* SPDX-License-Identifier: MIT */
/* record/control/dlsym_hook.h - our dlsym().
 *
 * The C library answers by the address that dlsym() returns to. If our function called the real
 * one, the question would come from our address, and RTLD_NEXT, libraries loaded RTLD_LOCAL and
 * other preloaded libraries would get wrong answers. So our dlsym is a stub (dlsym_stub.S) that
 * looks at the name and *jumps* on, with the stack as it was, unless the name belongs to a function
 * that we stand in front of.
 *
 * dlopen() is left alone: nothing that it loads need be seen at once, because what is loaded later
 * finds our names in the global scope, and our dlsym. */
#ifndef TMK_RECORD_DLSYM_HOOK_H
#define TMK_RECORD_DLSYM_HOOK_H

/* Called by the stub: the answer of our dlsym. NULL: the next dlsym answers
 * (tmk_loader_next_dlsym()); TMK_DLSYM_NONE: there is no such symbol. */
#define TMK_DLSYM_NONE ((void *)-1)
void *tmk_dlsym_answer(void *handle, const char *name);

#endif
