/* SPDX-License-Identifier: MIT */
/* record/training/training_context.h - which step, stage and module a thread of a training is in.
 *
 * The Python side (bridge.c), autograd's nodes (autograd_nodes.c) and, where nodes are not hooked,
 * the first blocks of autograd's threads tell what begins and ends. Here that becomes ranges and
 * steps in the trace. Stages nest as calls do: backward inside a module's forward, forward inside
 * an optimizer's closure, forward again inside backward (checkpointing). So whoever opens a stage
 * keeps the context from before, and gives it back when the stage closes:
 *
 *     struct tmk_training_context before = tmk_training_context_open(lane, TMK_CONTEXT_BACKWARD);
 *     ...
 *     tmk_training_context_close(lane, &before);
 *
 * A training's forward stays open after its root module has returned, until something else opens on
 * the thread: the loss, which is computed from the result, belongs to it.
 *
 * A stage that the program names itself (tidemark.stage) is stronger: inside it we open none. The
 * same holds for steps: once the program has counted one, we count no more. */
#ifndef TMK_RECORD_TRAINING_CONTEXT_H
#define TMK_RECORD_TRAINING_CONTEXT_H

#include "record/core/lane.h"
#include "record/training/grad_ranges.h"

enum tmk_training_context_stage {
    TMK_CONTEXT_NONE = 0,
    TMK_CONTEXT_FORWARD,
    TMK_CONTEXT_EVAL,
    TMK_CONTEXT_BACKWARD,
    TMK_CONTEXT_OPTIMIZER,
    TMK_N_CONTEXT_STAGES,
};

struct tmk_training_context {
    uint32_t generation; /* the recording that this is about */
    uint32_t module;     /* string id of the innermost module called, 0: none */
    uint32_t node;       /* the module that made the nodes backward is at; 0: no range is open */
    uint32_t backward;   /* a worker's: the backward that its stage was opened for */
    uint16_t n_calls;    /* module calls under way since the stage opened */
    uint8_t stage;       /* the innermost stage that we opened, enum tmk_training_context_stage */
    uint8_t n_own;       /* stages that the program itself has open */
    bool is_open;        /* there is a range for `stage` */
    bool lingers;        /* a forward that stays open after its root module has returned */
    bool is_closure;     /* around it is the optimizer that called the root in a closure */
    bool is_worker;      /* it is a backward that another thread runs and will close */
    bool runs_backward;  /* the thread itself has run a backward */
    struct tmk_grad_ranges modes;
};

/* The context of the calling thread, maybe of an earlier recording. */
extern __thread struct tmk_training_context tmk_training_context
    __attribute__((tls_model("initial-exec")));

/* The context of the calling thread in this recording. The lane must have been entered. */
static inline struct tmk_training_context *tmk_training_context_now(const struct tmk_lane *lane)
{
    if (__builtin_expect(tmk_training_context.generation != lane->generation, 0))
        tmk_training_context = (struct tmk_training_context){.generation = lane->generation};
    return &tmk_training_context;
}

/* Open a stage and return the context from before. Close it, and whatever is still open inside. */
struct tmk_training_context tmk_training_context_open(struct tmk_lane *lane,
                                                      enum tmk_training_context_stage stage);
void tmk_training_context_close(struct tmk_lane *lane, const struct tmk_training_context *before);
/* Close it, but keep a forward open until something else opens. */
void tmk_training_context_linger(struct tmk_lane *lane, const struct tmk_training_context *before);

/* Enter another module, and return to the one before; 0: a module without a name. */
void tmk_training_context_push_module(struct tmk_lane *lane, uint32_t name);
void tmk_training_context_pop_module(struct tmk_lane *lane);

/* Called when the thread's grad mode is known, or has changed. */
void tmk_training_context_mode(struct tmk_lane *lane, enum tmk_grad_mode mode);

/* Called when the range of a module was closed: a mode that goes on is recorded again. */
static inline void tmk_training_context_leave_modes(struct tmk_lane *lane)
{
    struct tmk_training_context *w = &tmk_training_context;
    if (tmk_grad_ranges_ended(&w->modes, w->n_calls))
        tmk_grad_ranges_leave(lane, &w->modes, w->n_calls);
}

/* Called when the program opens or closes a stage of its own. */
void tmk_training_context_own(struct tmk_lane *lane, bool opens);

/* Called when backward comes to a node that this module made in forward; 0: no known module. Any
 * thread: one that does not run a backward itself is a worker of the one that does. */
void tmk_training_context_node(uint32_t name);
/* The same for a worker with its lane entered, without a module. */
void tmk_training_context_work(struct tmk_lane *lane);
/* End what the workers of the calling thread's backward have open, because it has ended. */
void tmk_training_context_end_workers(struct tmk_lane *lane);
/* Called when Python code runs on the thread. A thread that worked for a backward that began before
 * our time stops being its worker. True when the thread is still a worker. */
bool tmk_training_context_is_working(struct tmk_lane *lane);
/* Called before and after a backward, on any thread. leave() returns how many are still under
 * way. */
void tmk_training_context_enter_backward(void);
uint32_t tmk_training_context_leave_backward(void);

/* ---- steps; with the interpreter's lock ---- */

/* Called when the program calls a root module. Without an optimizer and a backward so far, a step
 * begins with each call of the first root, and with each call of one that the step has called
 * already. Without an optimizer, it begins with each call that follows a backward. */
void tmk_training_context_root(struct tmk_lane *lane, const void *root);
/* Called when backward begins: this is a training. */
void tmk_training_context_backward(struct tmk_lane *lane);
/* Add an optimizer (by any address that stays its own) to those that are waited for, or remove
 * it. */
void tmk_training_context_expect(const void *optimizer);
void tmk_training_context_forget(const void *optimizer);
/* The optimizers that this one is about to overtake: they are waited for, and it has stepped
 * already. It is not known of them whether they have a turn of their own. `i` counts from 0; NULL:
 * there are no more. */
const void *tmk_training_context_overtaken(const void *optimizer, unsigned i);
/* The roots that this step has called, for comparison only: they may be gone. */
const void *tmk_training_context_called_root(unsigned i);
/* The optimizer has a turn of its own: it is waited for though others step meanwhile. */
void tmk_training_context_await_turn(const void *optimizer);
/* Called before and after an optimizer's step(). end() is true when the next step is due, because
 * all optimizers that are waited for have stepped. *ret_time is which update of the optimizer this
 * was; one that has not `returned` is none. */
enum tmk_training_update {
    TMK_UPDATE_OTHER,
    TMK_UPDATE_ROUND,     /* its first, second, fourth, eighth ... */
    TMK_UPDATE_UNCOUNTED, /* too many optimizers to count */
};
void tmk_training_context_begin_update(struct tmk_lane *lane, const void *optimizer);
bool tmk_training_context_end_update(const void *optimizer, bool returned,
                                     enum tmk_training_update *ret_time);
/* Make the next step due without an update, if this one had a backward. */
bool tmk_training_context_skip_update(void);
bool tmk_training_context_is_due(void);
/* Begin a step that is due; called when a block is made. Any thread, without the interpreter's
 * lock. So blocks freed until then, mostly gradients, still belong to the previous step, and no
 * step begins after the last one. */
void tmk_training_context_begin_due(struct tmk_lane *lane);
/* True, though not each time, when there were backwards and no update: there may be optimizers that
 * we do not see. */
bool tmk_training_context_lacks_update(void);
/* Called when a call of a model or a backward raises, or memory runs out: this step is one, though
 * it may get no update any more. Any thread, without the interpreter's lock. */
void tmk_training_context_note_failure(void);
/* Called when the process ends: say on record when the step under way is none, because nothing was
 * updated or went wrong in it. What came after the last update belongs to the last step then. */
void tmk_training_context_end_process(struct tmk_lane *lane);
/* Called when the program counts a step itself. */
void tmk_training_context_own_step(struct tmk_lane *lane);

/* Whether the program, or a line of it (step_at.h), says when steps begin, in this recording and
 * those to come. */
void tmk_training_context_say_steps(bool are_said);

/* Start over for a new recording; `modules`: whether it records modules. */
void tmk_training_context_reset(bool modules);

#endif
