/* SPDX-License-Identifier: MIT */
/* inject/image.h - the memory of another process: its mappings, the libraries among them, and the
 * addresses of their functions.
 *
 * Symbols are read from the process's memory, not from files: a library may have been replaced
 * since it was loaded, or be in a container, where its files have other paths. Nothing read is
 * trusted: the process may be hostile, so every length is bounded. */
#ifndef TMK_INJECT_IMAGE_H
#define TMK_INJECT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A line of /proc/PID/maps. */
struct tmk_mapping {
    uint64_t start, end;
    uint64_t file_offset;
    uint64_t inode;
    bool is_code; /* executable */
    char *path;   /* "" for memory without a name */
};

/* A range of addresses. */
struct tmk_range {
    uint64_t start, end;
};

struct tmk_image {
    pid_t pid;
    int mem_fd; /* /proc/PID/mem, for reading and writing */
    struct tmk_mapping *mappings;
    uint64_t n, room;
};

/* A loaded ELF file, as its dynamic section describes it. */
struct tmk_image_module {
    const struct tmk_mapping
        *head;     /* the mapping with its header; good until the image is closed */
    uint64_t bias; /* address minus address in the file */
    uint64_t symtab, strtab, strtab_bytes, gnu_hash, versym;
};

/* Read the maps of `pid` and open its memory. 0, or <0 with *ret closed. */
int tmk_image_open(pid_t pid, struct tmk_image *ret, struct tmk_error *err);
void tmk_image_close(struct tmk_image *image);

/* Copy bytes from or to the process; false when not all of them are there. */
bool tmk_image_read(const struct tmk_image *image, uint64_t address, void *to, size_t n);
bool tmk_image_write(const struct tmk_image *image, uint64_t address, const void *from, size_t n);
/* Copy as many of `n` bytes as are there, from the start; returns how many. */
size_t tmk_image_read_some(const struct tmk_image *image, uint64_t address, void *to, size_t n);
/* Copy a text, cut after `size` - 1 bytes; "" when it cannot be read. Control characters become
 * '?', because they could control our user's terminal. */
void tmk_image_read_text(const struct tmk_image *image, uint64_t address, char *to, size_t size);

/* The mapping at `address`, NULL: none. */
const struct tmk_mapping *tmk_image_at(const struct tmk_image *image, uint64_t address);

/* Find the first mapping of a file with a name (the last part of its path) that `fits`; NULL:
 * none. */
const struct tmk_mapping *tmk_image_find(const struct tmk_image *image,
                                         bool (*fits)(const char *name));
/* The last part of a path. */
const char *tmk_path_name(const char *path);

/* Whether both map the same file. */
bool tmk_mapping_same_file(const struct tmk_mapping *a, const struct tmk_mapping *b);

/* Read the ELF file that begins at `head`. 0, or TMK_EFORMAT when it is no ELF file or has no
 * symbols. */
int tmk_module_init(const struct tmk_image *image, const struct tmk_mapping *head,
                    struct tmk_image_module *ret);

/* Find the unused bytes behind the code of the ELF file that begins at `head`. They reach to the
 * end of the page, so they can be executed although the file does not use them. False: there are
 * none. */
bool tmk_module_tail(const struct tmk_image *image, const struct tmk_mapping *head,
                     struct tmk_range *ret);

/* The same behind the file's data, where they can be written. */
bool tmk_module_data_tail(const struct tmk_image *image, const struct tmk_mapping *head,
                          struct tmk_range *ret);

/* Find a function that the module defines: its range. Of several versions the default one
 * counts. */
bool tmk_module_symbol(const struct tmk_image *image, const struct tmk_image_module *module,
                       const char *name, struct tmk_range *ret);

/* Widen `range` to the gap between the exported symbols before and behind it. So it covers
 * functions that the library does not export and that were compiled into one object with exported
 * ones. */
int tmk_module_widen(const struct tmk_image *image, const struct tmk_image_module *module,
                     struct tmk_range *range);

#endif
