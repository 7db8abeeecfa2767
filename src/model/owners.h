/* SPDX-License-Identifier: MIT */
/* model/owners.h - whose memory it is: stage, module, component and category of a block.
 *
 * A block belongs to the ranges that were open when it was made. Where those do not say, other
 * things do: the Python functions that asked for it (a data loader, a model being loaded), and its
 * name, which is a parameter's. docs/owners.md has the rules in plain words.
 *
 * Asking is a look-up: what a stack or a name means is found once per process. */
#ifndef TMK_MODEL_OWNERS_H
#define TMK_MODEL_OWNERS_H

#include "model/components.h"
#include "trace/reader.h"
#include "trace/state.h"

struct tmk_process;

struct tmk_owners; /* what is known of one process's model and stacks */

/* 0 or TMK_ENOMEM. Reader and components must outlive it. */
int tmk_owners_open(const struct tmk_reader *r, const struct tmk_components *c,
                    struct tmk_owners **ret_owners);
struct tmk_owners *tmk_owners_close(struct tmk_owners *o);

/* Of a block with the contexts of the state that it is of. Settle a live block before, since its
 * category is asked (tmk_state_settled). NULL when not known; good until close.
 *
 * Stage: the innermost stage range, else what the stack says, else "model_load" for parameters and
 * buffers and "other" for the rest. Module: the innermost
 * module range, else that of the parameter it is named by. Component: of the parameter, else of the
 * module, else "other". Category: its own, or input for what a data loader made. */
const char *tmk_block_stage(const struct tmk_process *p, const struct tmk_context *contexts,
                            const struct tmk_block *b);
const char *tmk_block_module(const struct tmk_process *p, const struct tmk_context *contexts,
                             const struct tmk_block *b);
const char *tmk_block_component(const struct tmk_process *p, const struct tmk_context *contexts,
                                const struct tmk_block *b);
uint8_t tmk_block_category(const struct tmk_process *p, const struct tmk_context *contexts,
                           const struct tmk_block *b);

/* True when the block's name is a parameter's and its category one that makes it that parameter's:
 * module (without a range) and component then follow from the name alone. */
bool tmk_block_has_parameter(const struct tmk_process *p, const struct tmk_block *b);

/* The stage that a stack's functions speak of; NULL: of none. */
const char *tmk_stack_stage(const struct tmk_process *p, uint32_t stack);
/* The component of a module or parameter by its name, a string of the trace; "other" without one.
 */
const char *tmk_name_component(const struct tmk_process *p, uint32_t name);
const char *tmk_module_component(const struct tmk_process *p, const char *module);
/* The class of a module, qualified; NULL: not known. */
const char *tmk_module_class(const struct tmk_process *p, const char *module);

/* The parameters and buffers, each name once: the last that was defined. */
uint32_t tmk_parameters_n(const struct tmk_process *p);
const struct tmk_parameter *tmk_parameter_get(const struct tmk_process *p, uint32_t i);
/* Number of its definition in the trace. */
uint32_t tmk_parameter_id(const struct tmk_process *p, uint32_t i);
/* The module that a parameter is in: its name up to the last dot, or the model; NULL: not known. */
const char *tmk_parameter_module(const struct tmk_process *p, uint32_t i);
const char *tmk_parameter_component(const struct tmk_process *p, uint32_t i);

#endif
