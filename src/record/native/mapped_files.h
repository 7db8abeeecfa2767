/* SPDX-License-Identifier: MIT */
/* record/native/mapped_files.h - which program or library is mapped where, for native stacks.
 *
 * Looking up an address is safe in any hook: no lock, no allocation, no system call. The C library
 * tells where files are mapped:
 *
 * - glibc 2.35 and later have _dl_find_object(), made for unwinders: lock-free and always right. A
 *   file is learned when the first address in it is looked up.
 * - Before that there is only dl_iterate_phdr(), which waits for the loader's lock. A hook must not
 *   wait for it, because whoever holds it may wait for the lock that our caller holds. There the
 *   packer thread lists the files, and keeps each one loaded (dlopen with RTLD_NOLOAD), so that
 *   what we know stays true. An address in a file that came since is unknown until the packer has
 *   looked.
 *
 * Entries are written once and stay; that of an unloaded file is marked gone. */
#ifndef TMK_RECORD_MAPPED_FILES_H
#define TMK_RECORD_MAPPED_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TMK_BUILD_ID_MAX_BYTES = 32, TMK_MAPPED_FILES_MAX = 2048 };

struct tmk_mapped_file {
    uintptr_t start, end;           /* as the loader has mapped it */
    uintptr_t code_start, code_end; /* its executable part */
    uintptr_t bias;                 /* address in memory − address in the file */
    uintptr_t eh_header;            /* .eh_frame_hdr, 0: none */
    uintptr_t eh_start, eh_end;     /* the readable memory around it */
    uint64_t name_hash;
    const char *name; /* the loader's name, "" for the program; valid while the file is loaded */
    const void *handle;
    uint32_t id; /* counts from 1 */
    uint32_t build_id_bytes;
    uint8_t build_id[TMK_BUILD_ID_MAX_BYTES];
    bool is_own;                  /* libtidemark.so */
    _Atomic bool ready, gone;     /* filled in; unloaded since */
    _Atomic uint32_t defined_for; /* the recording with a trace that has its definition */
};

/* Prepare, before the first look-up: from our library's constructor, because it asks the loader for
 * a symbol. `old_ways` does without _dl_find_object(), for tests. 0 or TMK_ENOMEM. */
int tmk_mapped_files_open(bool old_ways);

/* The file that the code at `pc` belongs to; NULL: there is none, or it is not known yet. */
struct tmk_mapped_file *tmk_mapped_file_find(uintptr_t pc);

/* Learn files that were looked for in vain, and notice unloaded ones. Off the hot path (packer
 * thread), now and then; may wait for the loader. */
void tmk_mapped_files_refresh(void);

/* A number that changes whenever a file was unloaded: what was remembered about addresses may no
 * longer hold. */
uint32_t tmk_mapped_files_generation(void);

/* Write the file's path into buffer, absolute where possible; returns its length. */
uint32_t tmk_mapped_file_path(const struct tmk_mapped_file *m, char *buffer, uint32_t size);

#endif
