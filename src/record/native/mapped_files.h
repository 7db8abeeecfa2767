/* SPDX-License-Identifier: MIT */
/* record/native/mapped_files.h - which file is mapped where: for native stacks.
 *
 * A module is a program or library that the loader has mapped. Looking one up is safe in any hook:
 * no lock, no allocation, no system call. The C library tells where its modules are:
 *
 *   glibc 2.35 and later have _dl_find_object(), made for unwinders: lock-free and always right. A
 *   module is learned when the first address in it is looked up.
 *   Before that there is only dl_iterate_phdr(), which waits for the loader's lock; a hook must
 * not, since whoever holds it may wait for the lock that our caller holds. There the packer thread
 *   lists modules, and keeps each one loaded (dlopen with RTLD_NOLOAD), so that what we know stays
 *   true; an address in a module that came since is unknown until the packer has looked.
 *
 * Entries are written once and stay; an unloaded module's is marked gone. */
#ifndef TMK_RECORD_MAPPED_FILES_H
#define TMK_RECORD_MAPPED_FILES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { TMK_BUILD_ID_MAX_BYTES = 32, TMK_MAPPED_FILES_MAX = 2048 };

struct tmk_mapped_file {
    uintptr_t start, end;           /* as the loader has mapped it */
    uintptr_t code_start, code_end; /* its executable part */
    uintptr_t bias;                 /* address in memory − address as its file has it */
    uintptr_t eh_header;            /* .eh_frame_hdr, 0: none */
    uintptr_t eh_start, eh_end;     /* readable memory around it */
    uint64_t name_hash;
    const char *name; /* the loader's, "" for the program; good while the module is loaded */
    const void *handle;
    uint32_t id; /* from 1 */
    uint32_t build_id_bytes;
    uint8_t build_id[TMK_BUILD_ID_MAX_BYTES];
    bool is_own;                  /* libtidemark.so */
    _Atomic bool ready, gone;     /* filled in; unloaded since */
    _Atomic uint32_t defined_for; /* recorder generation whose trace has its definition */
};

/* Before the first look-up: from our library's constructor, since it asks the loader for a symbol.
 * `old_ways` does without _dl_find_object(), for tests. 0 or TMK_ENOMEM. */
int tmk_mapped_files_open(bool old_ways);

/* The module whose code is at `pc`, NULL when there is none or none is known yet. */
struct tmk_mapped_file *tmk_mapped_file_find(uintptr_t pc);

/* Off the hot path (packer thread), now and then: learn what was asked for in vain, notice what has
 * been unloaded. May wait for the loader. */
void tmk_mapped_files_refresh(void);

/* Changes whenever a module was unloaded: what was remembered of addresses may no longer be so. */
uint32_t tmk_mapped_files_generation(void);

/* The module's path into buffer, absolute where it can be made so; returns its length. */
uint32_t tmk_mapped_file_path(const struct tmk_mapped_file *m, char *buffer, uint32_t size);

#endif
