/* SPDX-License-Identifier: MIT */
/* model/components.h - classify modules by their part of the model: attention, mlp, embedding and
 * so on.
 *
 * Rules match the module's dotted name and the classes of the modules along it. A rule is a line of
 * text; rules of the user's file come before the built-in ones (docs/owners.md says how to write
 * them). The innermost module with a matching rule decides: a norm inside an attention is a
 * normalization, and a module without a rule belongs to the part around it. */
#ifndef TMK_MODEL_COMPONENTS_H
#define TMK_MODEL_COMPONENTS_H

#include "base/error.h"

struct tmk_components;

/* A model's modules. class_of returns the qualified class of the module with that dotted name;
 * NULL: there is no such module, or its class is not known. */
struct tmk_model_tree {
    const char *(*class_of)(const void *arg, const char *name);
    const void *arg;
};

/* Read the built-in rules and the user's file: the one that TIDEMARK_COMPONENTS names, or
 * tidemark/components in the configuration folder. 0 or TMK_ENOMEM. A file that cannot be read or a
 * bad line is left out and *ret_problem says so; otherwise its text is empty. */
int tmk_components_open(struct tmk_components **ret_components, struct tmk_error *ret_problem);
/* Close; takes NULL and half-made ones, returns NULL. */
struct tmk_components *tmk_components_close(struct tmk_components *c);

/* Add the rules of a text after the existing ones. 0, TMK_EINVAL with the first bad line's problem
 * in *err, or TMK_ENOMEM. */
int tmk_components_read(struct tmk_components *c, const char *text, struct tmk_error *err);

/* Find the component of a module or parameter by its dotted name; "other": no rule matches. Valid
 * until close. */
const char *tmk_components_find(const struct tmk_components *c, const struct tmk_model_tree *tree,
                                const char *name);

#endif
