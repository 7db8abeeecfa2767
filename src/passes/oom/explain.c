/* SPDX-License-Identifier: MIT */
/* passes/oom/explain.c - see explain.h: turns scenes into cases with what other passes know. */
#include "passes/oom/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit/arena.h"
#include "model/run.h"
#include "passes/oom/explain_inquiry.h"
#include "passes/oom/oom_case.h"
#include "passes/oom/oom_causes.h"
#include "passes/oom/oom_fixes.h"
#include "passes/oom/oom_need.h"
#include "passes/oom/oom_scene.h"
#include "trace/replay.h"

struct tmk_explanation {
    struct tmk_process *p;
    struct tmk_scenes *scenes;
    struct tmk_inquirer *inquirer;
    struct tmk_case *cases;
    uint64_t n;
    struct tmk_arena arena;
};

static int sweep_scenes(struct tmk_explanation *x, const struct tmk_visitor *watcher,
                        struct tmk_error *err)
{
    int rc = tmk_scenes_open(x->p, &x->scenes);
    if (rc < 0)
        return rc;
    struct tmk_visitor visitors[2] = {tmk_scenes_visitor(x->scenes)};
    if (watcher)
        visitors[1] = *watcher;
    rc = tmk_process_sweep(x->p, visitors, watcher ? 2 : 1, NULL, err);
    return rc < 0 ? rc : tmk_scenes_finish(x->scenes, err);
}

/* Replays need a limit: a first verdict, made without replays, gives it. */
static int explain_case(struct tmk_explanation *x, struct tmk_case *c, struct tmk_error *err)
{
    int rc = tmk_inquirer_ask(x->inquirer, &c->scene, &c->inquiry, err);
    if (rc == 0)
        rc = tmk_need_estimate(x->p, &c->scene, &c->inquiry, &c->need);
    if (rc < 0)
        return rc;
    tmk_causes_judge(&c->scene, &c->inquiry, c->need.bytes, &c->verdict);
    rc = tmk_inquirer_try(x->inquirer, &c->scene, &c->verdict, &c->inquiry, err);
    if (rc < 0)
        return rc;
    tmk_causes_judge(&c->scene, &c->inquiry, c->need.bytes, &c->verdict);
    return tmk_fixes_find(c, &x->arena);
}

static int explain_cases(struct tmk_explanation *x, const struct tmk_visitor *watcher,
                         struct tmk_error *err)
{
    int rc = sweep_scenes(x, watcher, err);
    x->n = rc == 0 ? tmk_scenes_n(x->scenes) : 0;
    if (x->n == 0)
        return rc;
    x->cases = calloc(x->n, sizeof *x->cases);
    if (!x->cases)
        return TMK_ENOMEM;
    rc = tmk_inquirer_open(x->p, x->scenes, watcher, &x->inquirer, err);
    for (uint64_t i = 0; i < x->n && rc == 0; i++) {
        x->cases[i].p = x->p;
        x->cases[i].scene = *tmk_scenes_get(x->scenes, i);
        rc = explain_case(x, &x->cases[i], err);
    }
    return rc;
}

int tmk_explanation_open(struct tmk_process *p, const struct tmk_visitor *watcher,
                         struct tmk_explanation **ret_explanation, struct tmk_error *err)
{
    struct tmk_explanation *x = calloc(1, sizeof *x);
    if (!x)
        return TMK_ENOMEM;
    x->p = p;
    int rc = explain_cases(x, watcher, err);
    if (rc < 0) {
        tmk_explanation_close(x);
        return rc;
    }
    *ret_explanation = x;
    return 0;
}

struct tmk_explanation *tmk_explanation_close(struct tmk_explanation *x)
{
    if (!x)
        return NULL;
    tmk_inquirer_close(x->inquirer);
    tmk_scenes_close(x->scenes);
    tmk_arena_fini(&x->arena);
    free(x->cases);
    free(x);
    return NULL;
}

uint64_t tmk_explanation_n_ooms(const struct tmk_explanation *x)
{
    return tmk_scenes_n_ooms(x->scenes);
}

uint64_t tmk_explanation_n(const struct tmk_explanation *x)
{
    return x->n;
}

const struct tmk_case *tmk_explanation_get(const struct tmk_explanation *x, uint64_t i)
{
    return &x->cases[i];
}
