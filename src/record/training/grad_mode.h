/* SPDX-License-Identifier: MIT */
/* record/training/grad_mode.h - notice when the program switches autograd off and on.
 *
 * torch.no_grad(), enable_grad() and set_grad_enabled() end in torch._C._set_grad_enabled: the
 * pointer in its method table leads here. inference_mode() is a C++ object that libtorch_python
 * makes, which calls c10::AutogradState::set_tls_state(): that library's import slot leads here
 * (torch/torch_slots.h). Calls from torch's own C++ code are not seen, and are not to be:
 * autograd.Function switches grad mode off while forward() runs, and keeps in the graph what that
 * saves. */
#ifndef TMK_RECORD_GRAD_MODE_H
#define TMK_RECORD_GRAD_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "record/training/grad_ranges.h"

struct tmk_object;

/* Called when the calling thread's mode may have changed. */
void tmk_grad_mode_note(void);

/* Find torch._C._set_grad_enabled, which `object` is. Without it, or when it is not as we know it,
 * modes are not recorded. Needs the interpreter's lock. */
void tmk_grad_mode_find(struct tmk_object *object);
/* Put the hook of that function in, or take it out. */
void tmk_grad_mode_switch(bool in);

/* The mode of the calling thread; ON when torch does not say. */
enum tmk_grad_mode tmk_grad_mode_now(void);

#endif
