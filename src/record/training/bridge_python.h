/* SPDX-License-Identifier: MIT */
/* record/training/bridge_python.h - the Python side of the bridge (bridge.py), as C sees it.
 *
 * Everything here needs the interpreter's lock, but for tmk_bridge_is_off(). */
#ifndef TMK_RECORD_BRIDGE_PYTHON_H
#define TMK_RECORD_BRIDGE_PYTHON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/core/recorder.h"
#include "record/python/python.h"

struct tmk_bridge {
    bool modules, categories;
    const struct tmk_python *py;
    struct tmk_object *names; /* bridge.py's namespace */
    struct tmk_object *learn, *called, *refresh, *updated, *wrap_steps, *only_devices, *find_turns;
    struct tmk_object *tensor_class; /* torch.Tensor */
};
extern struct tmk_bridge tmk_bridge;

/* True when nothing that the bridge sees is to be recorded. */
static inline bool tmk_bridge_is_off(void)
{
    const struct tmk_control *c = &tmk_control_page.control;
    uint32_t armed = atomic_load_explicit(&c->bridge, memory_order_relaxed);
    return armed != atomic_load_explicit(&c->generation, memory_order_relaxed) || armed == 0;
}

extern const char tmk_bridge_source[]; /* the text of bridge.py */

/* Call one of bridge.py's functions; NULL arguments end the list. Mistakes that it makes are
 * dropped. False when something else was raised in it, by a ^C or another signal's handler: that
 * belongs to the program, and stays raised. */
bool tmk_bridge_call(struct tmk_object *function, struct tmk_object *a, struct tmk_object *b);

/* Call a tensor's method that returns a number; `otherwise` when it raises. */
uint64_t tmk_bridge_ask_number(struct tmk_object *tensor, struct tmk_object *method,
                               uint64_t otherwise);

/* Drop the raised exception if it is a mistake of our code. True when nothing is raised any
 * more. */
bool tmk_bridge_drop_mistake(const struct tmk_python *py);

#endif
