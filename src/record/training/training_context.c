/* SPDX-License-Identifier: MIT */
/* record/training/training_context.c - see training_context.h. */
#include "record/training/training_context.h"

#include "record/core/fast_path_line.h"
#include "record/core/hot.h"
#include "record/core/intern.h"
#include "record/core/recorder.h"
#include "tidemark/tidemark.h"
#include "trace/kinds.h"

__thread struct tmk_training_context tmk_training_context
    __attribute__((tls_model("initial-exec")));

static const char *const stage_names[TMK_N_CONTEXT_STAGES] = {
    [TMK_CONTEXT_FORWARD] = "forward",
    [TMK_CONTEXT_EVAL] = "eval",
    [TMK_CONTEXT_BACKWARD] = "backward",
    [TMK_CONTEXT_OPTIMIZER] = "optimizer",
};

/* ---- ranges ---- */

static void push_range(struct tmk_lane *lane, uint32_t kind, uint32_t name)
{
    tmk_lane_put(lane, TMK_KIND_PUSH, 0, name, kind, 0);
}

static void pop_range(struct tmk_lane *lane, uint32_t kind, uint32_t thread)
{
    tmk_lane_put(lane, TMK_KIND_POP, 0, 0, kind, thread);
}

/* The id of a name is the same all through a recording. Whoever has it has its definition on
 * record. */
static void push_stage(struct tmk_lane *lane, enum tmk_training_context_stage stage)
{
    static _Atomic uint64_t known[TMK_N_CONTEXT_STAGES]; /* generation << 32 | name */
    uint64_t name = atomic_load_explicit(&known[stage], memory_order_acquire);
    if (name >> 32 != lane->generation) {
        name = (uint64_t)lane->generation << 32 | tmk_intern_string(lane, stage_names[stage]);
        if ((uint32_t)name)
            atomic_store_explicit(&known[stage], name, memory_order_release);
    }
    push_range(lane, TIDEMARK_STAGE, (uint32_t)name);
}

static void end_node(struct tmk_lane *lane, struct tmk_training_context *w)
{
    if (w->node)
        pop_range(lane, TIDEMARK_MODULE, 0);
    w->node = 0;
}

/* ---- grad mode ---- */

static void settle_modes(struct tmk_lane *lane, struct tmk_training_context *w)
{
    bool is_recorded = w->stage != TMK_CONTEXT_BACKWARD && w->stage != TMK_CONTEXT_OPTIMIZER;
    if (is_recorded)
        tmk_grad_ranges_settle(lane, &w->modes, w->n_calls);
}

void tmk_training_context_mode(struct tmk_lane *lane, enum tmk_grad_mode mode)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    w->modes.now = (uint8_t)mode;
    settle_modes(lane, w);
}

/* ---- stages ---- */

/* What was opened inside is closed with it. */
static void end_lingering(struct tmk_lane *lane, struct tmk_training_context *w)
{
    if (!w->lingers)
        return;
    pop_range(lane, TIDEMARK_STAGE, 0);
    w->is_open = w->is_closure;
    w->stage = w->is_closure ? TMK_CONTEXT_OPTIMIZER : TMK_CONTEXT_NONE;
    w->lingers = w->is_closure = false;
    w->modes.n = 0;
    settle_modes(lane, w);
}

struct tmk_training_context tmk_training_context_open(struct tmk_lane *lane,
                                                      enum tmk_training_context_stage stage)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    end_lingering(lane, w);
    struct tmk_training_context before = *w;
    *w = (struct tmk_training_context){.generation = before.generation,
                                       .backward = before.backward,
                                       .n_own = before.n_own,
                                       .runs_backward = before.runs_backward,
                                       .stage = (uint8_t)stage,
                                       .is_open = before.n_own == 0,
                                       .modes = tmk_grad_ranges_inside(&before.modes)};
    if (w->is_open)
        push_stage(lane, stage);
    settle_modes(lane, w);
    return before;
}

void tmk_training_context_close(struct tmk_lane *lane, const struct tmk_training_context *before)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    end_lingering(lane, w);
    end_node(lane, w);
    if (w->is_open)
        pop_range(lane, TIDEMARK_STAGE, 0);
    if (before->generation == w->generation) {
        uint8_t mode = w->modes.now;
        *w = *before;
        w->modes.now = mode;
        settle_modes(lane, w);
    }
}

/* Inside backward a forward does not stay open: backward goes on. */
void tmk_training_context_linger(struct tmk_lane *lane, const struct tmk_training_context *before)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    if (!w->is_open || before->stage == TMK_CONTEXT_BACKWARD) {
        tmk_training_context_close(lane, before);
        return;
    }
    w->module = 0;
    w->n_calls = 0;
    tmk_grad_ranges_leave(lane, &w->modes, 0);
    w->lingers = true;
    w->is_closure = before->stage == TMK_CONTEXT_OPTIMIZER;
}

void tmk_training_context_push_module(struct tmk_lane *lane, uint32_t name)
{
    push_range(lane, TIDEMARK_MODULE, name);
}

void tmk_training_context_pop_module(struct tmk_lane *lane)
{
    pop_range(lane, TIDEMARK_MODULE, 0);
}

void tmk_training_context_own(struct tmk_lane *lane, bool opens)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    if (opens) {
        end_lingering(lane, w);
        if (w->n_own < UINT8_MAX)
            w->n_own++;
    } else if (w->n_own > 0) {
        w->n_own--;
    }
}

/* ---- backward's nodes ---- */

enum { MAX_WORKERS = 64 };

/* Threads that have a stage "backward" open on behalf of another thread's backward. When there are
 * more, a range stays open until its thread opens the next one. */
static struct {
    _Atomic uint32_t backward; /* number of backwards that have ended */
    _Atomic uint32_t n;
    _Atomic uint32_t threads[MAX_WORKERS]; /* 0: free */
} workers;

/* The count is never less than the places that are taken, so whoever takes them back may stop at
 * 0. */
static void join_workers(uint32_t thread)
{
    atomic_fetch_add(&workers.n, 1);
    for (uint32_t i = 0; i < MAX_WORKERS; i++) {
        uint32_t free_place = 0;
        if (atomic_compare_exchange_strong(&workers.threads[i], &free_place, thread))
            return;
    }
    atomic_fetch_sub(&workers.n, 1);
}

/* Open the stage at a worker's first node of this backward. What the worker had open in an earlier
 * one is closed already. */
__attribute__((noinline)) static void
begin_worker(struct tmk_lane *lane, struct tmk_training_context *w, uint32_t backward)
{
    *w = (struct tmk_training_context){.generation = w->generation,
                                       .backward = backward,
                                       .n_own = w->n_own,
                                       .stage = TMK_CONTEXT_BACKWARD,
                                       .is_open = true,
                                       .is_worker = true};
    push_stage(lane, TMK_CONTEXT_BACKWARD);
    join_workers(lane->thread);
}

static bool is_in_backward(const struct tmk_training_context *w, uint32_t backward)
{
    return w->stage == TMK_CONTEXT_BACKWARD && (!w->is_worker || w->backward == backward);
}

__attribute__((noinline)) static void enter_node(struct tmk_lane *lane, uint32_t name,
                                                 uint32_t backward)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    if (!is_in_backward(w, backward))
        begin_worker(lane, w, backward);
    if (w->node == name)
        return;
    end_node(lane, w);
    if (name)
        push_range(lane, TIDEMARK_MODULE, name);
    w->node = name;
}

void tmk_training_context_work(struct tmk_lane *lane)
{
    enter_node(lane, 0, atomic_load_explicit(&workers.backward, memory_order_relaxed));
}

/* Most nodes belong to the same module as the one before. */
TMK_HOT_CODE_ALIGNED(4, 16) void tmk_training_context_node(uint32_t name)
{
    const struct tmk_training_context *w = &tmk_training_context;
    uint32_t backward = atomic_load_explicit(&workers.backward, memory_order_relaxed);
    uint32_t generation =
        atomic_load_explicit(&tmk_recorder.control->generation, memory_order_relaxed);
    if (w->node == name && w->generation == generation && is_in_backward(w, backward))
        return;
    struct tmk_lane *lane = tmk_lane_enter();
    if (!lane)
        return;
    enter_node(lane, name, backward);
    tmk_lane_leave(lane);
}

/* Have the next block of each thread say that the thread works, by a number that none has. It is
 * never 0, the number of threads that have said nothing. */
static void end_quiet(bool modules)
{
    static _Atomic uint32_t n;
    uint32_t next = atomic_fetch_add(&n, 1) % (TMK_TORCH_NEVER_QUIET - 1) + 1;
    atomic_store(&tmk_fast_path.quiet, modules ? TMK_TORCH_NEVER_QUIET : next);
}

void tmk_training_context_end_workers(struct tmk_lane *lane)
{
    atomic_fetch_add(&workers.backward, 1);
    end_quiet(atomic_load(&tmk_fast_path.quiet) == TMK_TORCH_NEVER_QUIET);
    for (uint32_t i = 0; i < MAX_WORKERS && atomic_load(&workers.n) > 0; i++) {
        uint32_t thread = atomic_exchange(&workers.threads[i], 0);
        if (!thread)
            continue;
        atomic_fetch_sub(&workers.n, 1);
        pop_range(lane, TIDEMARK_MODULE, thread);
        pop_range(lane, TIDEMARK_STAGE, thread);
    }
}

/* True when there was such a worker. */
static bool leave_workers(uint32_t thread)
{
    for (uint32_t i = 0; i < MAX_WORKERS; i++) {
        uint32_t found = thread;
        if (atomic_compare_exchange_strong(&workers.threads[i], &found, 0)) {
            atomic_fetch_sub(&workers.n, 1);
            return true;
        }
    }
    return false;
}

bool tmk_training_context_is_working(struct tmk_lane *lane)
{
    struct tmk_training_context *w = tmk_training_context_now(lane);
    if (!w->is_worker)
        return false;
    if (w->backward == atomic_load(&workers.backward) &&
        atomic_load(&tmk_recorder.control->n_backwards) > 0)
        return true;
    if (leave_workers(lane->thread)) {
        end_node(lane, w);
        pop_range(lane, TIDEMARK_STAGE, 0);
    }
    *w = (struct tmk_training_context){.generation = w->generation, .n_own = w->n_own};
    lane->quiet = 0;
    return false;
}

void tmk_training_context_enter_backward(void)
{
    atomic_fetch_add(&tmk_recorder.control->n_backwards, 1);
}

/* The count is 0 in a child that was forked inside of a backward. */
uint32_t tmk_training_context_leave_backward(void)
{
    _Atomic uint32_t *n_backwards = &tmk_recorder.control->n_backwards;
    uint32_t n = atomic_load(n_backwards);
    while (n > 0 && !atomic_compare_exchange_weak(n_backwards, &n, n - 1))
        ;
    return n > 0 ? n - 1 : 0;
}

/* ---- steps ---- */

enum { MAX_OPTIMIZERS = 64, MAX_ROOTS = 8, MANY = 2, MOST_ROUNDS = 16 };

/* A step ends when all optimizers that are waited for have stepped. At first that is all of them.
 * Those that others overtake are given up, and waited for again when they step after all, but not
 * for ever: one that steps every fifth time belongs to the step it falls into.
 *
 * An optimizer has a turn of its own when a model that it trains is called in the step and has had
 * no gradient yet: a GAN's generator, while its critic is updated five times. It is waited for
 * through MOST_ROUNDS updates of the others. */
struct optimizer {
    const void *object;
    bool is_awaited;
    bool has_turn;
    bool stepped;        /* in this step */
    bool stepped_before; /* in the step before */
    uint8_t n_given_up;
    uint32_t n_updates;
};

static struct {
    _Atomic bool is_due;             /* the next step begins with the next block */
    _Atomic bool has_failed;         /* something went wrong in this step */
    bool is_own;                     /* the program counts steps itself */
    bool begun;                      /* a step has begun */
    bool trains;                     /* it is a training, not mere inference */
    bool updates;                    /* an optimizer has stepped */
    bool was_due;                    /* before the update that is under way */
    bool is_fresh;                   /* no model has been called in the step yet */
    bool is_late;                    /* the update under way belongs to the step before */
    int64_t next;                    /* number of the next step */
    uint32_t n_backwards, n_updates; /* in this step */
    uint32_t n_rounds;               /* updates in it that others were waited for nevertheless */
    const void *first_root;          /* the first root module that was called */
    const void *roots[MAX_ROOTS];    /* those called in this step; compared, never followed */
    unsigned n_roots;
    unsigned n_optimizers;
    struct optimizer optimizers[MAX_OPTIMIZERS];
} steps;

static void begin_training_step(struct tmk_lane *lane)
{
    if (steps.is_own)
        return;
    steps.begun = true;
    steps.was_due = false;
    steps.n_backwards = steps.n_updates = steps.n_rounds = 0;
    steps.n_roots = 0;
    atomic_store(&steps.is_due, false);
    atomic_store(&steps.has_failed, false);
    end_lingering(lane, tmk_training_context_now(lane));
    tmk_lane_put(lane, TMK_KIND_STEP, 0, 0, (uint64_t)steps.next++, 0);
    steps.is_fresh = true;
    for (unsigned i = 0; i < steps.n_optimizers; i++) {
        steps.optimizers[i].stepped_before = steps.optimizers[i].stepped;
        steps.optimizers[i].stepped = false;
    }
}

static bool is_root_called(const void *root)
{
    for (unsigned i = 0; i < steps.n_roots; i++)
        if (steps.roots[i] == root)
            return true;
    return false;
}

static void note_root_called(const void *root)
{
    if (!steps.first_root)
        steps.first_root = root;
    if (steps.n_roots < MAX_ROOTS && !is_root_called(root))
        steps.roots[steps.n_roots++] = root;
}

/* A training without an optimizer of torch's has made its update before the next forward. */
void tmk_training_context_root(struct tmk_lane *lane, const void *root)
{
    bool by_hand = steps.n_optimizers == 0 && steps.n_backwards > 0;
    bool is_answer = !steps.trains && (root == steps.first_root || is_root_called(root));
    if (!steps.begun || is_answer || by_hand)
        begin_training_step(lane);
    else
        tmk_training_context_begin_due(lane);
    steps.is_fresh = false;
    note_root_called(root);
}

static void begin_training(struct tmk_lane *lane)
{
    steps.trains = true;
    if (!steps.begun)
        begin_training_step(lane);
    else
        tmk_training_context_begin_due(lane);
}

void tmk_training_context_backward(struct tmk_lane *lane)
{
    begin_training(lane);
    steps.is_fresh = false;
    steps.n_backwards++;
}

bool tmk_training_context_lacks_update(void)
{
    uint32_t n = steps.n_backwards;
    return (n & (n - 1)) == 0 && (n > 1 || !steps.updates);
}

bool tmk_training_context_skip_update(void)
{
    if (steps.n_backwards > 0 && steps.n_updates == 0 && !steps.is_own)
        atomic_store(&steps.is_due, true);
    return tmk_training_context_is_due();
}

bool tmk_training_context_is_due(void)
{
    return atomic_load(&steps.is_due);
}

void tmk_training_context_begin_due(struct tmk_lane *lane)
{
    if (atomic_exchange(&steps.is_due, false))
        begin_training_step(lane);
}

static struct optimizer *find_known_optimizer(const void *object)
{
    for (unsigned i = 0; i < steps.n_optimizers; i++)
        if (steps.optimizers[i].object == object)
            return &steps.optimizers[i];
    return NULL;
}

void tmk_training_context_expect(const void *optimizer)
{
    steps.trains = true;
    if (!find_known_optimizer(optimizer) && steps.n_optimizers < MAX_OPTIMIZERS)
        steps.optimizers[steps.n_optimizers++] =
            (struct optimizer){.object = optimizer, .is_awaited = true};
}

void tmk_training_context_forget(const void *optimizer)
{
    struct optimizer *o = find_known_optimizer(optimizer);
    if (o)
        *o = steps.optimizers[--steps.n_optimizers];
}

/* An optimizer steps again while others that were waited for have not stepped: they do not belong
 * together. The step should have ended before; it ends now, and from now on without the others. */
static void give_up_waiting(struct tmk_lane *lane)
{
    for (unsigned i = 0; i < steps.n_optimizers; i++) {
        struct optimizer *o = &steps.optimizers[i];
        if (!o->is_awaited || o->stepped)
            continue;
        o->is_awaited = o->has_turn = false;
        if (o->n_given_up < MANY)
            o->n_given_up++;
    }
    begin_training_step(lane);
}

static bool awaits_turn(void)
{
    bool awaits = false;
    for (unsigned i = 0; i < steps.n_optimizers; i++) {
        const struct optimizer *o = &steps.optimizers[i];
        awaits |= o->is_awaited && !o->stepped && o->has_turn;
    }
    return awaits && steps.n_rounds < MOST_ROUNDS;
}

const void *tmk_training_context_overtaken(const void *optimizer, unsigned i)
{
    const struct optimizer *by = find_known_optimizer(optimizer);
    if (!by || !by->stepped || tmk_training_context_is_due() || steps.is_own)
        return NULL;
    for (unsigned k = 0; k < steps.n_optimizers; k++) {
        const struct optimizer *o = &steps.optimizers[k];
        if (o->is_awaited && !o->stepped && !o->has_turn && o->n_given_up == 0 && i-- == 0)
            return o->object;
    }
    return NULL;
}

const void *tmk_training_context_called_root(unsigned i)
{
    return i < steps.n_roots ? steps.roots[i] : NULL;
}

void tmk_training_context_await_turn(const void *optimizer)
{
    struct optimizer *o = find_known_optimizer(optimizer);
    if (o)
        o->has_turn = true;
}

/* An update behind another optimizer's, without a model's call between, belongs to its step. */
static bool joins_step_before(const struct optimizer *o)
{
    return o && !o->stepped && tmk_training_context_is_due();
}

/* The same, but a block made meanwhile, a norm of gradients for one, has begun the next step: that
 * step does not count the update. */
static bool comes_late(const struct optimizer *o)
{
    return o && steps.is_fresh && steps.updates && !o->stepped_before && !o->stepped;
}

void tmk_training_context_begin_update(struct tmk_lane *lane, const void *optimizer)
{
    struct optimizer *o = find_known_optimizer(optimizer);
    if (joins_step_before(o)) {
        steps.was_due = true;
        atomic_store(&steps.is_due, false);
        return;
    }
    steps.is_late = comes_late(o);
    if (steps.is_late)
        return;
    begin_training(lane);
    tmk_training_context_expect(optimizer);
    o = find_known_optimizer(optimizer);
    if (!o)
        return;
    if (o->stepped && awaits_turn()) {
        steps.n_rounds++;
    } else if (o->stepped) {
        o->is_awaited = true;
        give_up_waiting(lane);
    } else if (o->n_given_up < MANY) {
        o->is_awaited = true;
    }
}

static void count_update(struct optimizer *o)
{
    unsigned n_left = 0;
    steps.updates = true;
    steps.n_updates++;
    if (o)
        o->stepped = true;
    for (unsigned i = 0; i < steps.n_optimizers; i++)
        n_left += steps.optimizers[i].is_awaited && !steps.optimizers[i].stepped;
    bool is_awaited = !o || o->is_awaited;
    if (n_left == 0 && is_awaited && !steps.is_own)
        atomic_store(&steps.is_due, true);
}

bool tmk_training_context_end_update(const void *optimizer, bool returned,
                                     enum tmk_training_update *ret_time)
{
    struct optimizer *o = find_known_optimizer(optimizer);
    uint32_t n = returned && o ? ++o->n_updates : 0;
    *ret_time = TMK_UPDATE_OTHER;
    if (returned && !o)
        *ret_time = TMK_UPDATE_UNCOUNTED;
    else if (returned && (n & (n - 1)) == 0)
        *ret_time = TMK_UPDATE_ROUND;
    if (returned && !steps.is_late)
        count_update(o);
    steps.is_late = false;
    if (steps.was_due && !steps.is_own)
        atomic_store(&steps.is_due, true);
    steps.was_due = false;
    return tmk_training_context_is_due();
}

void tmk_training_context_note_failure(void)
{
    atomic_store(&steps.has_failed, true);
}

void tmk_training_context_end_process(struct tmk_lane *lane)
{
    bool is_tail = steps.next > 1 && steps.updates && steps.n_updates == 0 &&
                   !atomic_load(&steps.has_failed) && !steps.is_own;
    if (is_tail)
        tmk_lane_put(lane, TMK_KIND_DEF_TAIL, 0, (uint32_t)(steps.next - 1), 0, 0);
}

void tmk_training_context_own_step(struct tmk_lane *lane)
{
    steps.is_own = true;
    atomic_store(&steps.is_due, false);
    end_lingering(lane, tmk_training_context_now(lane));
}

static bool are_steps_said;

void tmk_training_context_say_steps(bool are_said)
{
    are_steps_said = are_said;
    steps.is_own |= are_said;
}

void tmk_training_context_reset(bool modules)
{
    __builtin_memset(&steps, 0, sizeof steps);
    steps.is_own = are_steps_said;
    end_quiet(modules);
    atomic_store(&workers.n, 0);
    for (uint32_t i = 0; i < MAX_WORKERS; i++)
        atomic_store(&workers.threads[i], 0);
}
