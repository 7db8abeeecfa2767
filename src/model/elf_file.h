/* SPDX-License-Identifier: MIT */
/* model/elf_file.h - one program or library on disk, as symbols.c looks into it.
 *
 * Everything in the file is untrusted. elfutils checks what it reads; we add: regular files only,
 * no mapping (a file that shrinks is an error, not SIGBUS), and limits. */
#ifndef TMK_MODEL_ELF_FILE_H
#define TMK_MODEL_ELF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/symbols.h"

struct tmk_elf;

/* NULL: not there, not an ELF file, not of this build id, or no memory: all the same to us. Debug
 * files are looked for in `debug_folder`/.build-id, which is borrowed. A file stays open until the
 * process ends. */
struct tmk_elf *tmk_elf_open(const char *path, const uint8_t *build_id, uint32_t build_id_bytes,
                             const char *debug_folder);

/* The symbol at or before `address`, still mangled, and how far before; false: none covers it.
 * Borrowed. */
bool tmk_elf_symbol(struct tmk_elf *elf, uint64_t address, const char **ret_name,
                    uint64_t *ret_offset);

/* Function (maybe mangled, NULL: not known), file and line by DWARF: the innermost inlined function
 * counts. False when there is none for `address`. Borrowed. */
bool tmk_elf_line(struct tmk_elf *elf, uint64_t address, struct tmk_symbol *ret);

#endif
