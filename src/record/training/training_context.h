/* SPDX-License-Identifier: MIT */
/* record/training/training_context.h - which step, stage and module a thread of a training is in.
 *
 * The Python side (bridge.c), autograd's nodes (autograd_nodes.c) and, where those are not asked,
 * its threads' first blocks tell what begins and ends; here it becomes ranges and steps in the
 * trace. Stages nest as calls do: backward inside a module's forward, forward inside an optimizer's
 * closure, forward again inside backward (checkpointing). So whoever opens one keeps what was there
 * before, and gives it back when it closes:
 *
 *     struct tmk_training_context before = tmk_training_context_open(lane, TMK_CONTEXT_BACKWARD);
 *     ...
 *     tmk_training_context_close(lane, &before);
 *
 * A training's forward stays open when its root module has returned, until something else opens on
 * the thread: what is computed from the result, the loss, belongs to it.
 *
 * A stage that the program itself names (tidemark.stage) is stronger: inside it none of ours is
 * opened. The same for steps: once the program has counted one, ours do not count any more. */
#ifndef TMK_RECORD_TRAINING_CONTEXT_H
#define TMK_RECORD_TRAINING_CONTEXT_H

#include "record/core/lane.h"

enum tmk_training_context_stage {
    TMK_CONTEXT_NONE = 0,
    TMK_CONTEXT_FORWARD,
    TMK_CONTEXT_EVAL,
    TMK_CONTEXT_BACKWARD,
    TMK_CONTEXT_OPTIMIZER,
    TMK_N_CONTEXT_STAGES,
};

struct tmk_training_context {
    uint32_t generation; /* of the recording that this is about */
    uint32_t module;     /* string id of the innermost module called, 0: none */
    uint32_t node;       /* of the module whose nodes backward is in, 0: none is open */
    uint32_t backward;   /* a worker's: which backward its stage was opened for */
    uint16_t n_calls;    /* of modules, since the stage opened */
    uint8_t stage;       /* the innermost of ours, enum tmk_training_context_stage */
    uint8_t n_own;       /* stages that the program itself has open */
    bool is_open;        /* there is a range for `stage` */
    bool lingers;        /* it is a forward whose root has returned */
    bool is_closure;     /* and around it is the optimizer whose closure called the root */
    bool is_worker;      /* it is a backward that another thread runs, and will close */
    bool runs_backward;  /* the thread has run one itself */
};

/* The calling thread's. */
extern __thread struct tmk_training_context tmk_training_context
    __attribute__((tls_model("initial-exec")));

/* The calling thread's, of this recording. The lane has been entered. */
static inline struct tmk_training_context *tmk_training_context_now(const struct tmk_lane *lane)
{
    if (__builtin_expect(tmk_training_context.generation != lane->generation, 0))
        tmk_training_context = (struct tmk_training_context){.generation = lane->generation};
    return &tmk_training_context;
}

/* Open a stage and return what was before; close it and what is left open inside. */
struct tmk_training_context tmk_training_context_open(struct tmk_lane *lane,
                                                      enum tmk_training_context_stage stage);
void tmk_training_context_close(struct tmk_lane *lane, const struct tmk_training_context *before);
/* The same, but a forward stays open until something else opens. */
void tmk_training_context_linger(struct tmk_lane *lane, const struct tmk_training_context *before);

/* The innermost module is another one; 0: none. */
void tmk_training_context_push_module(struct tmk_lane *lane, uint32_t name);
void tmk_training_context_pop_module(struct tmk_lane *lane);

/* The program opens or closes a stage of its own. */
void tmk_training_context_own(struct tmk_lane *lane, bool opens);

/* Backward has come to a node that the module of this name made in forward; 0: none did. Any
 * thread: one that does not run a backward itself is a worker of the one that does. */
void tmk_training_context_node(uint32_t name);
/* The same of a worker whose lane is entered, without a name. */
void tmk_training_context_work(struct tmk_lane *lane);
/* The backward of the calling thread has ended, and with it what its workers have open. */
void tmk_training_context_end_workers(struct tmk_lane *lane);
/* Python code runs on the thread. One that worked for a backward that nobody saw begin, because it
 * was before our time, works for it no more; true when the thread is still a worker. */
bool tmk_training_context_is_working(struct tmk_lane *lane);
/* A backward is called, on any thread; it has ended. The second returns how many are under way. */
void tmk_training_context_enter_backward(void);
uint32_t tmk_training_context_leave_backward(void);

/* ---- steps; with the interpreter's lock ---- */

/* A root module is called. Where there is neither an optimizer nor was there a backward, each call
 * is a step; where there is no optimizer, each that follows a backward. */
void tmk_training_context_root(struct tmk_lane *lane);
/* Backward begins: this is a training. */
void tmk_training_context_backward(struct tmk_lane *lane);
/* There is such an optimizer (any address that stays its own). */
void tmk_training_context_expect(const void *optimizer);
void tmk_training_context_forget(const void *optimizer);
/* It is about to step; it has. When all that are expected have, the next step is due: true. And
 * which time it was for this one. */
enum tmk_training_update {
    TMK_UPDATE_OTHER,
    TMK_UPDATE_ROUND,     /* the first, second, fourth, eighth ... */
    TMK_UPDATE_UNCOUNTED, /* there are too many optimizers */
};
void tmk_training_context_begin_update(struct tmk_lane *lane, const void *optimizer);
bool tmk_training_context_end_update(const void *optimizer, enum tmk_training_update *ret_time);
/* It is due without an update, if there was a backward in this one. */
bool tmk_training_context_skip_update(void);
bool tmk_training_context_is_due(void);
/* A block is made: a step that is due begins. Any thread, without the lock. What is freed before,
 * gradients mostly, still belongs to the step before; and after the last one none begins. */
void tmk_training_context_begin_due(struct tmk_lane *lane);
/* There were backwards and no update, so there may be optimizers that we do not see. Not true each
 * time. */
bool tmk_training_context_lacks_update(void);
/* The program counts steps itself. */
void tmk_training_context_own_step(struct tmk_lane *lane);

/* For a new recording; whether it has modules. */
void tmk_training_context_reset(bool modules);

#endif
