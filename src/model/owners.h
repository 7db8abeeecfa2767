/* SPDX-License-Identifier: MIT */
/* model/owners.h - find the owner of a block: its stage, module, component and category.
 *
 * A block belongs to the ranges that were open when it was allocated. If they do not say enough,
 * two other things do: the Python functions on its stack (a data loader, a model being loaded), and
 * the block's name, if it is a parameter's. docs/owners.md has the rules in plain words.
 *
 * Each call is a look-up: the meaning of a stack or a name is found once per process. */
#ifndef TMK_MODEL_OWNERS_H
#define TMK_MODEL_OWNERS_H

#include "model/components.h"
#include "trace/reader.h"
#include "trace/state.h"

struct tmk_process;

struct tmk_owners; /* one process's model and stacks */

/* Open the owners of a trace. 0 or TMK_ENOMEM. Reader and components must outlive them. */
int tmk_owners_open(const struct tmk_reader *r, const struct tmk_components *c,
                    struct tmk_owners **ret_owners);
struct tmk_owners *tmk_owners_close(struct tmk_owners *o);

/* The next four describe a block; `contexts` are those of the block's state. Settle a live block
 * first (tmk_state_settled), because its category is used. NULL: not known. Valid until close.
 *
 * Stage: the innermost stage range, else the stack's stage, else "model_load" for parameters and
 * buffers and "other" for the rest. Module: the innermost module range, else the module of the
 * parameter that the block is named after. Component: the parameter's, else the module's, else
 * "other". Category: the block's own, or input if a data loader allocated it. */
const char *tmk_block_stage(const struct tmk_process *p, const struct tmk_context *contexts,
                            const struct tmk_block *b);
const char *tmk_block_module(const struct tmk_process *p, const struct tmk_context *contexts,
                             const struct tmk_block *b);
const char *tmk_block_component(const struct tmk_process *p, const struct tmk_context *contexts,
                                const struct tmk_block *b);
uint8_t tmk_block_category(const struct tmk_process *p, const struct tmk_context *contexts,
                           const struct tmk_block *b);

/* Whether the block was made under no_grad or inference_mode: autograd's graph does not keep it.
 * False when grad mode was on, or is not known. */
bool tmk_block_is_without_grad(const struct tmk_process *p, const struct tmk_context *contexts,
                               const struct tmk_block *b);

/* Whether the block's name is a parameter's and its category makes it belong to that parameter.
 * Then module (without a range) and component follow from the name alone. */
bool tmk_block_has_parameter(const struct tmk_process *p, const struct tmk_block *b);

/* Whether the functions that made the block have a name that stands in place of its module, as for
 * torch's RNG states. */
bool tmk_block_has_maker(const struct tmk_process *p, const struct tmk_block *b);

/* The stage that a stack's functions indicate; NULL: none. */
const char *tmk_stack_stage(const struct tmk_process *p, uint32_t stack);
/* The component of a module or parameter by its name, a string of the trace; "other": not known. */
const char *tmk_name_component(const struct tmk_process *p, uint32_t name);
const char *tmk_module_component(const struct tmk_process *p, const char *module);
/* The qualified class of a module; NULL: not known. */
const char *tmk_module_class(const struct tmk_process *p, const char *module);

/* The parameters and buffers. Of several with one name the last definition counts. */
uint32_t tmk_parameters_n(const struct tmk_process *p);
const struct tmk_parameter *tmk_parameter_get(const struct tmk_process *p, uint32_t i);
/* The number of its definition in the trace. */
uint32_t tmk_parameter_id(const struct tmk_process *p, uint32_t i);
/* The module that contains a parameter: the name up to the last dot, or the model; NULL: not
 * known. */
const char *tmk_parameter_module(const struct tmk_process *p, uint32_t i);
const char *tmk_parameter_component(const struct tmk_process *p, uint32_t i);

#endif
