/* SPDX-License-Identifier: MIT */
/* model/components.h - which part of a model a module is: attention, mlp, embedding and so on.
 *
 * Found from the module's dotted name and the classes of the modules along it, by rules: a line
 * each, ours and, before them, those of the user's file (docs/owners.md says how to write them).
 * The innermost module with a rule decides, so that the norm inside an attention is a normalization
 * and what has no rule belongs to what it is in. */
#ifndef TMK_MODEL_COMPONENTS_H
#define TMK_MODEL_COMPONENTS_H

#include "base/error.h"

struct tmk_components;

/* What is known of a model. class_of gives the qualified class of the module with that dotted name,
 * NULL when there is no such module or its class is not known. */
struct tmk_model_tree {
    const char *(*class_of)(const void *arg, const char *name);
    const void *arg;
};

/* The rules, ours and those of the user's file: the one that TIDEMARK_COMPONENTS names, or
 * tidemark/components in the folder for settings. 0 or TMK_ENOMEM; when the file cannot be read or
 * a line makes no sense, that is left out and *ret_problem says so, else its text is empty. */
int tmk_components_open(struct tmk_components **ret_components, struct tmk_error *ret_problem);
/* Takes NULL and half-made ones; returns NULL. */
struct tmk_components *tmk_components_close(struct tmk_components *c);

/* Add the rules of a text, after those that are there: 0, TMK_EINVAL with what is wrong with the
 * first bad line in *err, or TMK_ENOMEM. */
int tmk_components_read(struct tmk_components *c, const char *text, struct tmk_error *err);

/* The component of a module, or of a parameter, by its dotted name; "other" when no rule says. Good
 * until close. */
const char *tmk_components_find(const struct tmk_components *c, const struct tmk_model_tree *tree,
                                const char *name);

#endif
