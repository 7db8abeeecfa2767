/* SPDX-License-Identifier: MIT */
/* model/elf_file.h - read symbols and lines from one program or library on disk.
 *
 * Everything in the file is untrusted. elfutils checks what it reads; we add: regular files only,
 * no mapping (a file that shrinks is an error, not SIGBUS), and limits. */
#ifndef TMK_MODEL_ELF_FILE_H
#define TMK_MODEL_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/symbols.h"

struct tmk_elf;

/* Open a file. NULL: it is not there, is no ELF file, has another build id, or there is no memory;
 * callers treat all alike. Debug files are looked for in `debug_folder`/.build-id, which is
 * borrowed. A file stays open until the process ends. */
struct tmk_elf *tmk_elf_open(const char *path, const uint8_t *build_id, uint32_t build_id_bytes,
                             const char *debug_folder);

/* Find the symbol at or before `address`, still mangled, and its distance; false: none covers the
 * address. Borrowed. */
bool tmk_elf_symbol(struct tmk_elf *elf, uint64_t address, const char **ret_name,
                    uint64_t *ret_offset);

/* Find function (maybe mangled, NULL: not known), file and line by DWARF; the innermost inlined
 * function counts. False: DWARF has none for `address`. Borrowed. */
bool tmk_elf_line(struct tmk_elf *elf, uint64_t address, struct tmk_symbol *ret);

#endif
