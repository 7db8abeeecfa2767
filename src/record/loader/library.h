/* SPDX-License-Identifier: MIT */
/* record/loader/library.h - loaded libraries by name, whatever scope they were loaded into. */
#ifndef TMK_RECORD_LIBRARY_H
#define TMK_RECORD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a module lies in memory. */
struct tmk_code_range {
    uintptr_t start, end;
};

/* Of the module that has this address; all zero when there is none. */
struct tmk_code_range tmk_library_range(const void *address);

/* The file's name, without its folder, begins with `prefix`. */
bool tmk_library_is_named(const char *path, const char *prefix);

/* The address of a symbol in the loaded library whose file name begins with `prefix` and is not our
 * own definition of it; NULL when there is none. Takes the loader's lock for a moment. */
void *tmk_library_symbol(const char *prefix, const char *symbol);

/* The same in the libraries that the module with this address was loaded with: what its own calls
 * would reach if nobody stood in front. */
void *tmk_library_symbol_from(const void *address, const char *symbol);

/* How large what has this address is, by its symbol; 0: not known. */
size_t tmk_library_symbol_bytes(const void *symbol);

#endif
