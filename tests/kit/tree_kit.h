/* SPDX-License-Identifier: MIT */
/* tree_kit.h - a folder of made-up files, such as a /proc and a /sys, for one test. */
#ifndef TREE_KIT_H
#define TREE_KIT_H

#include "device/device.h"

struct tree {
    char root[64];
    char proc[80], sys[80], state[80]; /* below root; state: the file for $FAKE_CUDA_STATE */
    struct tmk_device_roots roots;
};

/* An empty one, with proc/ and sys/ in it; roots.nvml is a library that is not there. */
void tree_init(struct tree *t);
/* Remove it all. */
void tree_fini(struct tree *t);
/* The same around a test of cmocka's: *state is the tree. */
int tree_setup(void **state);
int tree_teardown(void **state);

/* A file at ROOT/NAME, its folders made; written over when there is one. */
void tree_file(const struct tree *t, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A symbolic link at ROOT/NAME. */
void tree_link(const struct tree *t, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The fake NVML ($FAKE_NVML) shall answer by this text from now on, and be what roots.nvml names.
 */
void tree_cards(struct tree *t, const char *text);

#endif
