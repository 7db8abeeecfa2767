/* SPDX-License-Identifier: MIT */
/* base/folder.h - the names in a folder, without malloc (opendir() does), for use inside any
 * process.
 *
 *     struct tmk_folder f;
 *     if (tmk_folder_open(&f, path) == 0)
 *         for (const char *name; (name = tmk_folder_next(&f)) != NULL;)
 *             ...                         // f.fd is the folder, for openat() and its kin
 *     tmk_folder_close(&f);               // takes one that could not be opened */
#ifndef TMK_BASE_FOLDER_H
#define TMK_BASE_FOLDER_H

#include <stddef.h>

struct tmk_folder {
    int fd; /* -1: not open */
    size_t at, end;
    _Alignas(8) char entries[4096];
};

/* Opens the folder. Returns 0, or -1 and errno. */
int tmk_folder_open(struct tmk_folder *f, const char *path);
/* The next name, good until the next call; NULL at the end. */
const char *tmk_folder_next(struct tmk_folder *f);
void tmk_folder_close(struct tmk_folder *f);

#endif
