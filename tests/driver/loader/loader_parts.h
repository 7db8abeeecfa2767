/* SPDX-License-Identifier: MIT */
/* loader_parts.h - functions of the libraries that loader_program opens. */
#ifndef LOADER_PARTS_H
#define LOADER_PARTS_H

int loader_own(void);
int loader_own_by_default(void);
int loader_needed_by_default(void);
int loader_needed_by_next(void);
int loader_own_by_next(void);
int loader_program_by_default(void);
int loader_need(void);
int loader_needed(void);
int loader_open_inner(void);
int loader_inner_at_start(void);
int loader_inner(void);

#endif
