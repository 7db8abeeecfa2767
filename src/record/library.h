/* SPDX-License-Identifier: MIT */
/* record/library.h - loaded libraries by name, whatever scope they were loaded into. */
#ifndef TMK_RECORD_LIBRARY_H
#define TMK_RECORD_LIBRARY_H

/* The address of a symbol in the loaded library whose file name begins with `prefix` and is not our
 * own definition of it; NULL when there is none. Takes the loader's lock for a moment. */
void *tmk_library_symbol(const char *prefix, const char *symbol);

#endif
