/* SPDX-License-Identifier: MIT */
/* record/training/workspaces.h - the scratch memory that torch gives to cuBLAS. */
#ifndef TMK_RECORD_WORKSPACES_H
#define TMK_RECORD_WORKSPACES_H

struct tmk_object;

/* workspaces(): tag those of cuBLAS. */
struct tmk_object *tmk_workspaces_note(struct tmk_object *self, struct tmk_object *arguments);

#endif
