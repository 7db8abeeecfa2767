/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_gates.c - see diff_answer.h: reads, measures and judges gates. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/answers/diff_answer.h"
#include "cli/answers/moment_answer.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "model/run.h"
#include "passes/diff/diff.h"
#include "passes/diff/gates.h"
#include "passes/leak/leak.h"
#include "passes/leak/leaks.h"
#include "trace/layout.h"
#include "trace/replay.h"

int tmk_diff_answer_gates(struct tmk_diff_answer *c, const struct tmk_args *args)
{
    const char *texts[TMK_MAX_VALUES];
    struct tmk_error err = {0};
    c->n_verdicts = tmk_args_list(args, "fail-if", texts);
    for (unsigned i = 0; i < c->n_verdicts; i++) {
        c->verdicts[i].passed = true;
        if (tmk_gate_parse(texts[i], &c->verdicts[i].gate, &err) < 0) {
            tmk_say("--fail-if: %s", err.text);
            return TMK_EXIT_USAGE;
        }
    }
    return 0;
}

static void measure_category(const struct tmk_diff_answer *c, uint8_t category,
                             struct tmk_gate_measure *m)
{
    for (uint64_t i = 0; i < tmk_diff_n_causes(c->diff); i++) {
        const struct tmk_diff_cause *cause = tmk_diff_cause(c->diff, i);
        for (unsigned side = 0; side < 2 && cause->category == category; side++)
            m->bytes[side] += cause->bytes[side];
    }
    for (unsigned side = 0; side < 2; side++)
        m->known[side] = !c->shown->sides[side].detail_lost;
}

/* Measure the most reserved in the run, or what was reserved at the moments that were asked for. */
static void measure_reserved(const struct tmk_diff_answer *c, struct tmk_gate_measure *m)
{
    bool is_peak = c->is_peak[0] && c->is_peak[1];
    struct tmk_two two = is_peak ? tmk_diff_answer_most_reserved(c) : tmk_diff_answer_reserved(c);
    memcpy(m->known, two.known, sizeof m->known);
    memcpy(m->bytes, two.bytes, sizeof m->bytes);
}

/* Add up the leaks of the device; the line of the largest goes into the note. How much leaks per
 * step is unknown where there are no steps, and then the gate does not pass. */
static void add_leaked_bytes(const struct tmk_leakage *l, uint16_t device,
                             struct tmk_gate_measure *m, char **ret_note)
{
    const struct tmk_leak *most = NULL;
    double bytes = 0, per_second = 0;
    char frame[TMK_FRAME_TEXT_BYTES], size[TMK_AMOUNT_BYTES];
    for (uint64_t i = 0; i < tmk_leakage_n(l); i++) {
        const struct tmk_leak *leak = tmk_leakage_get(l, i);
        if (leak->device != device)
            continue;
        bytes += leak->bytes_per_step;
        per_second += leak->bytes_per_second;
        most = most ? most : leak;
    }
    m->known[1] = !most || most->first_step != TMK_NO_STEP;
    m->bytes[1] = bytes < 1e18 ? (uint64_t)ceil(bytes) : (uint64_t)1e18;
    if (!m->known[1])
        *ret_note = tmk_xformat(_("it leaks %s a second and has no steps"),
                                tmk_size_text(tmk_size_whole(per_second), size));
    else if (most && most->has_site)
        *ret_note = tmk_xformat(_("most at %s"), tmk_frame_text(&most->site, true, frame));
}

/* Measure what B leaks, in a sweep of its own. 0, or an exit status after a message. */
static int measure_leak(const struct tmk_diff_answer *c, struct tmk_gate_measure *m,
                        char **ret_note)
{
    const struct tmk_moment_answer *l = &c->shown->sides[1];
    struct tmk_leakage *leakage = NULL;
    struct tmk_error err = {0};
    struct tmk_replay rp;
    int rc = tmk_leakage_open(l->p, TMK_LEAK_DEFAULT_BYTES, &leakage);
    if (rc == 0) {
        struct tmk_visitor visitor = tmk_leakage_visitor(leakage);
        rc = tmk_process_sweep(l->p, &visitor, 1, &rp, &err);
    }
    if (rc == 0) {
        rc = tmk_leakage_finish(leakage, &rp, &err);
        tmk_replay_fini(&rp);
    }
    if (rc == 0 && tmk_leakage_verdict(leakage) == TMK_LEAK_TOO_SHORT)
        *ret_note = tmk_xformat(_("%" PRIu64 " steps have ended, it takes %d"),
                                tmk_leakage_n_steps(leakage), TMK_LEAK_MIN_STEPS);
    else if (rc == 0)
        add_leaked_bytes(leakage, tmk_moment_answer_device(l), m, ret_note);
    tmk_leakage_close(leakage);
    if (rc < 0)
        tmk_say("%s: %s", l->p->file, err.text[0] ? err.text : tmk_result_text(rc));
    return rc < 0 ? TMK_EXIT_FINDING : 0;
}

/* Measure what a gate is about. 0, or an exit status after a message. */
static int measure_gate(const struct tmk_diff_answer *c, const struct tmk_gate *g,
                        struct tmk_gate_measure *ret, char **ret_note)
{
    struct tmk_gate_measure m = {0};
    int status = 0;
    switch (g->kind) {
    case TMK_GATE_ALLOCATED:
        for (unsigned side = 0; side < 2; side++) {
            m.known[side] = true;
            m.bytes[side] = tmk_moment_answer_bytes(&c->shown->sides[side]);
        }
        break;
    case TMK_GATE_RESERVED:
        measure_reserved(c, &m);
        break;
    case TMK_GATE_CATEGORY:
        measure_category(c, g->category, &m);
        break;
    case TMK_GATE_LEAK:
        status = measure_leak(c, &m, ret_note);
        break;
    }
    *ret = m;
    return status;
}

/* Returns whether this pair decides a gate: the first one that fails, else the one with the largest
 * increase. */
static bool decides_gate(const struct tmk_gate_verdict *v, const struct tmk_gate_measure *m,
                         bool passes)
{
    bool grows_more = tmk_diff_change(m->bytes[0], m->bytes[1]) >
                      tmk_diff_change(v->measure.bytes[0], v->measure.bytes[1]);
    return !v->of || (v->passed && (!passes || grows_more));
}

int tmk_diff_answer_judge(struct tmk_diff_answer *c)
{
    for (unsigned i = 0; i < c->n_verdicts; i++) {
        struct tmk_gate_verdict *v = &c->verdicts[i];
        struct tmk_gate_measure m;
        char *note = NULL;
        int status = measure_gate(c, &v->gate, &m, &note);
        if (status != 0)
            return status;
        bool passes = tmk_gate_passes(&v->gate, &m);
        if (!decides_gate(v, &m, passes)) {
            free(note);
            continue;
        }
        free(v->note);
        *v = (struct tmk_gate_verdict){.gate = v->gate,
                                       .passed = passes,
                                       .measure = m,
                                       .of = c->shown->sides[1].p,
                                       .note = note};
    }
    return 0;
}
