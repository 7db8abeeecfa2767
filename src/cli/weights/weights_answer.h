/* SPDX-License-Identifier: MIT */
/* cli/weights/weights_answer.h - what `tidemark model` found in files of weights, for people and as
 * JSON. */
#ifndef TMK_CLI_WEIGHTS_WEIGHTS_ANSWER_H
#define TMK_CLI_WEIGHTS_WEIGHTS_ANSWER_H

#include <stdio.h>

#include "interop/weights/weight_scan.h"
#include "interop/weights/weights.h"
#include "kit/textmap.h"

enum { TMK_MODEL_MAX_RANKS = 16 };

/* Tensors that have something in common: a layer, a component. */
struct tmk_weights_group {
    const char *name;
    uint64_t n_tensors, n_parameters, n_bytes;
};

struct tmk_weights_groups {
    struct tmk_textmap names;
    struct tmk_weights_group *all;
    uint64_t room;
};

struct tmk_weights_answer {
    struct tmk_weights weights;
    const struct tmk_scan_result *results; /* by tensor; NULL: not scanned */
    const char **components;               /* by tensor */
    struct tmk_weights_group total, extra; /* tied ones count once */
    struct tmk_weights_group types[TMK_WEIGHT_N_TYPES];
    struct tmk_weights_groups other_types;   /* that are not known here, by the files' names */
    struct tmk_weights_groups layers, parts; /* parts: components */
    uint64_t n_tied, tied_bytes;             /* that are there under another name, too */
    uint64_t n_nan, n_inf;                   /* tensors that have some */
    uint64_t n_floats;                       /* parameters: floats that are no running statistics */
    bool says_grad;                          /* the files say what is trained, and so: */
    uint64_t n_trainable, n_frozen;          /* parameters */
    uint64_t n_adapted, adapted_sides;       /* matrices of attention and mlp; out + in of all */
    uint32_t ranks[TMK_MODEL_MAX_RANKS];
    uint32_t n_ranks;
    uint32_t n_shown; /* largest tensors */
    bool shows_all;
};

/* Compute groups, totals and estimates from weights and results. Ends the program without memory.
 */
void tmk_weights_sum_up(struct tmk_weights_answer *a);
void tmk_weights_answer_fini(struct tmk_weights_answer *a);

/* List the tensors, largest first, each storage once. `to` has room for all. Returns how many. */
uint64_t tmk_weights_largest(const struct tmk_weights_answer *a, uint32_t *to);

/* Writes the shape, "[4096, 1024]", into the caller's buffer. */
enum { TMK_SHAPE_TEXT = 96 };
const char *tmk_weights_shape(const struct tmk_weight *t, char *buffer);

void tmk_weights_text(const struct tmk_weights_answer *a, FILE *out);
void tmk_weights_json(const struct tmk_weights_answer *a, FILE *out);

#endif
