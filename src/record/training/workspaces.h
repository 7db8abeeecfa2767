/* SPDX-License-Identifier: MIT */
/* record/training/workspaces.h - tag the scratch memory that torch gives to cuBLAS. */
#ifndef TMK_RECORD_WORKSPACES_H
#define TMK_RECORD_WORKSPACES_H

struct tmk_object;

/* workspaces(), for bridge.py: tag all that there are. */
struct tmk_object *tmk_workspaces_note(struct tmk_object *self, struct tmk_object *arguments);

#endif
