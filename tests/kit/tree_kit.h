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

/* Make an empty tree, with proc/ and sys/ in it; roots.nvml is a library that does not exist. */
void tree_init(struct tree *t);
/* Remove the tree. */
void tree_fini(struct tree *t);
/* The same as cmocka's setup and teardown: *state is the tree. */
int tree_setup(void **state);
int tree_teardown(void **state);

/* Write a file at ROOT/NAME and make its folders; an existing file is overwritten. */
void tree_file(const struct tree *t, const char *text, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Make a symbolic link at ROOT/NAME. */
void tree_link(const struct tree *t, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Let the fake NVML ($FAKE_NVML) answer by this text from now on, and roots.nvml name it. */
void tree_cards(struct tree *t, const char *text);

#endif
