/* SPDX-License-Identifier: MIT */
/* passes/diff/gates.h - conditions that a change of memory must not meet: "peak>5%",
 * "reserved>1GiB".
 *
 *     gate     = what (">" | ">=") limit
 *     what     = "peak" | "allocated" | "reserved" | "leak" | category
 *     category = "parameter" | "gradient" | "optimizer_state" | "activation" | "input"
 *              | "temporary" | "autograd_detail" | "buffer" | "kv_cache" | "other" | "unknown"
 *     limit    = number "%" | size, as in "1GiB", "512 MiB", "0"
 *
 * Blanks may stand between the parts. A gate compares how much more B has than A, in bytes or in
 * percent of A; for a leak, how much B leaks a step. A gate that is met has failed. If a figure
 * is not known, the gate has failed too: a check that did not happen is no success. */
#ifndef TMK_PASSES_DIFF_GATES_H
#define TMK_PASSES_DIFF_GATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum tmk_gate_kind {
    TMK_GATE_ALLOCATED, /* "peak" too: they are the same */
    TMK_GATE_RESERVED,
    TMK_GATE_CATEGORY,
    TMK_GATE_LEAK,
};

struct tmk_gate {
    const char *text; /* as given; borrowed */
    enum tmk_gate_kind kind;
    uint8_t category; /* with TMK_GATE_CATEGORY */
    bool or_equal;
    bool is_percent;
    double percent;
    uint64_t bytes;
};

/* Returns 0, or TMK_EINVAL with *err saying what is wrong and what would be right. */
int tmk_gate_parse(const char *text, struct tmk_gate *ret, struct tmk_error *err);

struct tmk_gate_measure {
    bool known[2];
    uint64_t bytes[2]; /* for a leak: [1], what B leaks a step */
};

/* True when the gate lets this through. */
bool tmk_gate_passes(const struct tmk_gate *g, const struct tmk_gate_measure *m);

#endif
