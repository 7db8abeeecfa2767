/* SPDX-License-Identifier: MIT */
/* passes/leak/leak_owner.c - see leak_owner.h. */
#include "passes/leak/leak_owner.h"

#include <string.h>

#include "model/run.h"
#include "passes/leak/leak.h"
#include "trace/defs.h"
#include "trace/reader.h"

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
           tmk_reader_frame(p->reader, s.frames[s.n_frames - 1 - level], ret);
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
        if (tmk_reader_frame(p->reader, s->frames[i], &f) && tmk_frame_is_users(&f)) {
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

bool tmk_leak_is_hook(const struct tmk_process *p, uint32_t stack)
{
    struct tmk_stack s;
    struct tmk_frame line, caller;
    uint32_t i;
    if (!tmk_reader_stack(p->reader, stack, &s) || !users_frame(p, &s, &i) || i + 1 >= s.n_frames ||
        !tmk_reader_frame(p->reader, s.frames[i], &line) ||
        !tmk_reader_frame(p->reader, s.frames[i + 1], &caller))
        return false;
    bool by_engine = caller.file && strstr(caller.file, "/torch/autograd/");
    return (is_module_call(&caller) || by_engine) && !is_called_name(line.function, "forward") &&
           !is_called_name(line.function, "backward");
}

/* ---- what keeps them, in words ---- */

static const struct {
    const char *name, *text, *advice;
} keepers[] = {
    [TMK_KEEPER_UNKNOWN] = {NULL, "what keeps them is not known",
                            "record with stacks, so that the line is known"},
    [TMK_KEEPER_GRAPH] =
        {"graph", "autograd's graph, held by a loss or an output that is kept",
         "keep loss.item() or tensor.detach() instead of the tensor; run what is not trained under "
         "torch.no_grad()"},
    [TMK_KEEPER_CONTAINER] =
        {"container",
         "a list, a dict, a cache or an attribute that is added to and never emptied (or, in "
         "Python, reference cycles that nobody collects: a trace cannot tell)",
         "bound it (deque(maxlen=...), an LRU), free or del what is done with, move it "
         "to the host, or hold it by weak references"},
    [TMK_KEEPER_HOOK] = {"hook", "a hook of a module's or a tensor's, which keeps what it makes",
                         "remove the hook (handle.remove()) when done, or empty what it fills each "
                         "step"},
    [TMK_KEEPER_CYCLE] = {"cycle",
                          "objects that go in bursts, as reference cycles do when Python collects "
                          "garbage, or a container that is emptied now and then",
                          "break the cycle (a weak reference, del), or call gc.collect() now and "
                          "then"},
    [TMK_KEEPER_GROWING] = {"growing", "one block that is made anew, larger each time (torch.cat)",
                            "allocate it once at its largest and write into it, or bound its "
                            "length"},
    [TMK_KEEPER_LOADER] = {"loader",
                           "batches of a data loader that are not let go, or a dataset that keeps "
                           "what it has read",
                           "keep no reference to batches after their step, and nothing in the "
                           "dataset (each worker has its own); lower prefetch_factor and "
                           "num_workers"},
};

const char *tmk_keeper_name(enum tmk_leak_keeper keeper)
{
    return keepers[keeper].name;
}

const char *tmk_keeper_text(enum tmk_leak_keeper keeper)
{
    return keepers[keeper].text;
}

const char *tmk_keeper_advice(enum tmk_leak_keeper keeper)
{
    return keepers[keeper].advice;
}
