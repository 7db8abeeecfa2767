/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_owner.c - see leak_owner.h. */
#include "passes/leak/leak_owner.h"

#include <string.h>

#include "kit/arena.h"
#include "kit/language.h"
#include "model/owners.h"
#include "model/run.h"
#include "passes/leak/leak.h"
#include "passes/leak/leak_groups.h"
#include "passes/leak/leak_holders.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/state.h"

bool tmk_leak_is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool text_ends_with(const char *text, const char *end)
{
    size_t n = text ? strlen(text) : 0, n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* The frame at `level` calls inside the outermost one. */
static bool frame_at(const struct tmk_process *p, uint32_t stack, uint32_t level,
                     struct tmk_frame *ret)
{
    struct tmk_stack s;
    return tmk_reader_stack(p->reader, stack, &s) && level < s.n_frames &&
           tmk_process_written_frame(p, s.frames[s.n_frames - 1 - level], ret);
}

enum likeness { OTHER_FUNCTION, SAME_FUNCTION, SAME_LINE };

/* How alike the frames of all stacks are at a level. */
static enum likeness compare_frames(const struct tmk_process *p, const uint32_t *stacks, uint32_t n,
                                    uint32_t level)
{
    struct tmk_frame first, f;
    enum likeness likeness = SAME_LINE;
    if (!frame_at(p, stacks[0], level, &first))
        return OTHER_FUNCTION;
    for (uint32_t i = 1; i < n; i++) {
        if (!frame_at(p, stacks[i], level, &f) || !tmk_leak_is_same_text(f.file, first.file) ||
            !tmk_leak_is_same_text(f.function, first.function))
            return OTHER_FUNCTION;
        if (f.line != first.line)
            likeness = SAME_FUNCTION;
    }
    return likeness;
}

static bool is_module_call(const struct tmk_frame *f)
{
    return text_ends_with(f->file, "/torch/nn/modules/module.py");
}

bool tmk_leak_common_line(const struct tmk_process *p, const uint32_t *stacks, uint32_t n,
                          uint32_t root, struct tmk_frame *ret)
{
    enum likeness likeness = SAME_LINE;
    bool found = false;
    for (uint32_t level = 0; likeness == SAME_LINE; level++) {
        struct tmk_frame f;
        likeness = compare_frames(p, stacks, n, level);
        if (likeness == OTHER_FUNCTION || !frame_at(p, stacks[root], level, &f) ||
            is_module_call(&f))
            break;
        if (tmk_frame_is_users(&f)) {
            *ret = f;
            found = true;
        }
    }
    return found;
}

bool tmk_leak_passes(const struct tmk_process *p, uint32_t stack, const struct tmk_frame *line)
{
    struct tmk_frame f;
    for (uint32_t level = 0; frame_at(p, stack, level, &f); level++)
        if (f.line == line->line && tmk_leak_is_same_text(f.file, line->file) &&
            tmk_leak_is_same_text(f.function, line->function))
            return true;
    return false;
}

/* Find the number of the user's innermost frame. */
static bool users_frame(const struct tmk_process *p, const struct tmk_stack *s, uint32_t *ret)
{
    struct tmk_frame f;
    for (uint32_t i = 0; i < s->n_frames; i++)
        if (tmk_process_written_frame(p, s->frames[i], &f) && tmk_frame_is_users(&f)) {
            *ret = i;
            return true;
        }
    return false;
}

/* True for "forward" as well as "Model.forward", which Python 3.11 and later write. */
static bool is_called_name(const char *function, const char *name)
{
    const char *dot = function ? strrchr(function, '.') : NULL;
    return tmk_leak_is_same_text(dot ? dot + 1 : function, name);
}

/* The frame between a function under @torch.no_grad() and its caller. */
static bool is_decorator(const struct tmk_frame *f)
{
    return text_ends_with(f->file, "/torch/autograd/grad_mode.py") ||
           text_ends_with(f->file, "/torch/utils/_contextlib.py");
}

bool tmk_leak_is_hook(const struct tmk_process *p, uint32_t stack)
{
    struct tmk_stack s;
    struct tmk_frame line, caller;
    uint32_t i;
    if (!tmk_reader_stack(p->reader, stack, &s) || !users_frame(p, &s, &i) ||
        !tmk_process_written_frame(p, s.frames[i], &line))
        return false;
    do {
        if (++i >= s.n_frames || !tmk_process_written_frame(p, s.frames[i], &caller))
            return false;
    } while (is_decorator(&caller));
    bool by_engine = caller.file && strstr(caller.file, "/torch/autograd/");
    return (is_module_call(&caller) || by_engine) && !is_called_name(line.function, "forward") &&
           !is_called_name(line.function, "backward");
}

/* ---- what a graph keeps ---- */

enum { SCALAR_BYTES = 512 }; /* the most that an allocator makes of a tensor of one number */

static const struct tmk_leak_group *group_of(const struct tmk_leakage *l,
                                             const struct tmk_leak_line *line, uint64_t i)
{
    return &l->groups.groups[line->groups[i]];
}

static bool is_input(const struct tmk_leak_group *g)
{
    return tmk_leak_category_of(g) == TIDEMARK_INPUT;
}

static uint8_t stage_of_group(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    return l->contexts[g->latest.context].stage_kind;
}

/* Whether no tensor of Python's has the group's blocks, so that a graph keeps them. */
static bool is_kept_unheld(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    uint8_t stage = stage_of_group(l, g);
    return tmk_leak_is_unheld(&l->holders, g->latest.stack) && stage != TMK_STAGE_BACKWARD &&
           stage != TMK_STAGE_OPTIMIZER;
}

/* Whether tensors of Python's have them, made by a graph. */
static bool is_held_by_graph(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    const struct tmk_leak_holding *h = tmk_leak_holders_of(&l->holders, g->latest.stack);
    return tmk_leak_is_held(&l->holders, g->latest.stack) && h->n_graph * 2 >= h->n_held;
}

/* Whether a graph cannot keep the group's blocks: autograd was off, a hook made them, or detached
 * tensors have them. */
static bool is_apart(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    if (tmk_block_is_without_grad(l->p, l->contexts, &g->latest))
        return true;
    if (tmk_leak_is_held(&l->holders, g->latest.stack))
        return !is_held_by_graph(l, g);
    return !is_kept_unheld(l, g) && tmk_leak_is_hook(l->p, g->latest.stack);
}

void tmk_leak_find_graph_character(const struct tmk_leakage *l, struct tmk_leak_line *line)
{
    uint64_t all = 0, call_bytes = 0, loose_bytes = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = group_of(l, line, i);
        uint64_t bytes = g->kept_bytes;
        uint8_t stage = stage_of_group(l, g);
        bool in_call = stage == TMK_STAGE_FORWARD || stage == TMK_STAGE_EVAL ||
                       tmk_leak_category_of(g) == TIDEMARK_ACTIVATION || is_kept_unheld(l, g);
        all += bytes;
        if (is_apart(l, g))
            continue;
        call_bytes += in_call ? bytes : 0;
        loose_bytes += stage == TMK_STAGE_NONE ? bytes : 0;
    }
    line->may_be_graph = call_bytes > 0 && call_bytes >= all / 2;
    line->is_loose = !line->may_be_graph && loose_bytes > 0 && loose_bytes >= all / 2;
}

/* The serial of the block that was made last in a model's call. */
static uint64_t last_call(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_block *b = &group_of(l, line, i)->latest;
        if (l->contexts[b->context].stage_kind != TMK_STAGE_NONE && b->serial > last)
            last = b->serial;
    }
    return last;
}

/* True when the line keeps a tensor of one number, as the line of a loss does. */
static bool keeps_scalar(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    for (uint64_t i = 0; i < line->n_groups; i++)
        if (group_of(l, line, i)->latest.size_bytes <= SCALAR_BYTES &&
            group_of(l, line, i)->kept_bytes > 0)
            return true;
    return false;
}

/* What is made in no stage belongs to a graph only if it was made after the calls and looks like a
 * loss: it may be a batch, or anything else that the program keeps. */
bool tmk_leak_may_share_graph(const struct tmk_leakage *l, const struct tmk_leak_line *seed,
                              const struct tmk_leak_line *other)
{
    uint64_t called = last_call(l, seed);
    return other->may_be_graph ||
           (other->is_input &&
            !tmk_block_is_without_grad(l->p, l->contexts, &l->groups.groups[other->root].latest)) ||
           (other->is_loose && keeps_scalar(l, other) &&
            l->groups.groups[other->root].latest.serial > called);
}

bool tmk_leak_is_kept_by_graph(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint64_t n = 0, all = 0, largest = 0, unheld = 0, asked = 0;
    uint64_t n_blocks = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = group_of(l, line, i);
        uint64_t bytes = group_of(l, line, i)->kept_bytes;
        n_blocks += g->kept_blocks;
        n += bytes > 0;
        all += bytes;
        unheld += is_kept_unheld(l, g) ? bytes : 0;
        asked += tmk_leak_is_held(&l->holders, g->latest.stack) || is_kept_unheld(l, g) ? bytes : 0;
        if (bytes > largest && !is_input(g))
            largest = bytes;
    }
    if (!line->may_be_graph || n_blocks == 0)
        return false;
    if (asked * 2 > all)
        return unheld * 2 >= asked;
    return n > 1 && largest < all - all / 100;
}

/* How good a root a group is: what Python holds is the best; what backward makes is the worst, then
 * what the model is given; of what is made outside of modules a loss is better than the next batch.
 */
static unsigned rank_of_root(const struct tmk_leakage *l, const struct tmk_leak_group *g)
{
    enum { BACKWARD = 1, INPUT, LOOSE, CALL, HELD };
    if (is_held_by_graph(l, g))
        return HELD;
    const struct tmk_context *c = &l->contexts[g->latest.context];
    if (c->stage_kind == TMK_STAGE_BACKWARD)
        return BACKWARD;
    if (is_input(g))
        return INPUT;
    return !c->module && g->latest.size_bytes > SCALAR_BYTES ? LOOSE : CALL;
}

void tmk_leak_find_root(const struct tmk_leakage *l, struct tmk_leak_line *line)
{
    uint64_t last = 0;
    unsigned best = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_group *g = group_of(l, line, i);
        unsigned rank = rank_of_root(l, g);
        if (group_of(l, line, i)->kept_bytes == 0 || rank < best ||
            (rank == best && g->latest.serial < last))
            continue;
        last = g->latest.serial;
        best = rank;
        line->root = line->groups[i];
    }
}

/* Whether a group has a say in who owns a graph: an input only when it was made on a line that also
 * led to the root, as in loss_of(model, next_batch()). */
static bool is_voter(const struct tmk_leakage *l, const struct tmk_leak_line *line,
                     const struct tmk_leak_group *g)
{
    const struct tmk_leak_group *root = &l->groups.groups[line->root];
    struct tmk_frame made;
    return g == root || !is_input(g) ||
           (tmk_stack_site(l->p, g->latest.stack, &made) &&
            tmk_leak_passes(l->p, root->latest.stack, &made));
}

/* Among those who have a say the root alone decides. */
void tmk_leak_find_owner(struct tmk_leakage *l, struct tmk_leak_line *line)
{
    uint32_t *stacks = tmk_arena_take(&l->arena, line->n_groups * sizeof *stacks);
    uint32_t n = 0, root = 0;
    for (uint64_t i = 0; stacks && i < line->n_groups; i++) {
        const struct tmk_leak_group *g = group_of(l, line, i);
        if (group_of(l, line, i)->kept_bytes == 0 || !is_voter(l, line, g))
            continue;
        if (line->groups[i] == line->root)
            root = n;
        stacks[n++] = g->latest.stack;
    }
    struct tmk_frame f;
    if (n > 0 && tmk_leak_common_line(l->p, stacks, n, root, &f)) {
        line->site = f;
        line->has_site = true;
    }
}

const char *tmk_leak_holder_of(const struct tmk_leakage *l, const struct tmk_leak_line *line)
{
    uint32_t name = 0;
    uint64_t most = 0;
    for (uint64_t i = 0; i < line->n_groups; i++) {
        const struct tmk_leak_holding *h =
            tmk_leak_holders_of(&l->holders, group_of(l, line, i)->latest.stack);
        uint64_t growth = group_of(l, line, i)->kept_bytes;
        bool is_root = line->groups[i] == line->root;
        if (!h || !h->name || growth == 0 || (!is_root && growth <= most))
            continue;
        name = h->name;
        most = is_root ? UINT64_MAX : growth;
    }
    return name ? tmk_reader_string(l->p->reader, name) : NULL;
}

/* ---- what keeps them, in words ---- */

static const struct {
    const char *name, *text, *advice;
    const char *advice_for_host; /* NULL: the same */
} keepers[] = {
    [TMK_KEEPER_UNKNOWN] = {NULL, N_("what keeps them is not known"),
                            N_("record with stacks, so that the line is known"), NULL},
    [TMK_KEEPER_GRAPH] = {N_("graph"),
                          N_("autograd's graph, held by a loss or an output that is kept"),
                          N_("keep loss.item() or tensor.detach() instead of the tensor; run what "
                             "is not trained under "
                             "torch.no_grad()"),
                          NULL},
    [TMK_KEEPER_CONTAINER] =
        {N_("container"),
         N_("a list, a dict, a cache or an attribute that is added to and never emptied (or, in "
            "Python, reference cycles that nobody collects: a trace cannot tell)"),
         N_("bound it (deque(maxlen=...), an LRU), free or del what is done with, move it "
            "to the host, or hold it by weak references"),
         N_("bound it (deque(maxlen=...), an LRU), free or del what is done with, or hold it by "
            "weak "
            "references")},
    [TMK_KEEPER_HOOK] =
        {N_("hook"), N_("a hook of a module's or a tensor's, which keeps what it makes"),
         N_("remove the hook (handle.remove()) when done, or empty what it fills each "
            "step"),
         NULL},
    [TMK_KEEPER_CYCLE] =
        {N_("cycle"),
         N_("objects that go in bursts, as reference cycles do when Python collects "
            "garbage, or a container that is emptied now and then"),
         N_("break the cycle (a weak reference, del), or call gc.collect() now and "
            "then"),
         NULL},
    [TMK_KEEPER_GROWING] = {N_("growing"),
                            N_("one block that is made anew, larger each time (torch.cat)"),
                            N_("allocate it once at its largest and write into it, or bound its "
                               "length"),
                            NULL},
    [TMK_KEEPER_LOADER] =
        {N_("loader"),
         N_("batches of a data loader that are not let go, or a dataset that keeps "
            "what it has read"),
         N_("keep no reference to batches after their step, and nothing in the "
            "dataset (each worker has its own); lower prefetch_factor and "
            "num_workers"),
         NULL},
};

const char *tmk_keeper_name(enum tmk_leak_keeper keeper)
{
    return keepers[keeper].name;
}

const char *tmk_keeper_text(enum tmk_leak_keeper keeper)
{
    return _(keepers[keeper].text);
}

const char *tmk_leak_advice(const struct tmk_leak *leak)
{
    const char *for_host = keepers[leak->keeper].advice_for_host;
    return _(for_host && leak->device == TIDEMARK_HOST ? for_host : keepers[leak->keeper].advice);
}
