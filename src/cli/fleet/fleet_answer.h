/* SPDX-License-Identifier: MIT */
/* cli/fleet/fleet_answer.h - a cluster, as `tidemark fleet` prints it. */
#ifndef TMK_CLI_FLEET_FLEET_ANSWER_H
#define TMK_CLI_FLEET_FLEET_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fleet/cluster/cluster.h"

enum tmk_fleet_sort {
    TMK_FLEET_BY_RISK,
    TMK_FLEET_BY_OOM,
    TMK_FLEET_BY_PEAK,
    TMK_FLEET_BY_ALLOCATED,
    TMK_FLEET_BY_USED,
    TMK_FLEET_BY_GROWTH,
    TMK_FLEET_BY_RANK,
};
#define TMK_FLEET_SORTS "risk|oom|peak|allocated|used|growth|rank"

struct tmk_fleet_answer {
    struct tmk_cluster *cluster;
    const char *url;       /* of Prometheus */
    bool is_url_given;     /* on the command line: commands repeat it */
    bool leaves_out_nodes; /* the text does, and their GPUs: the screen is too small */
    uint64_t rows_most;    /* of each table and of the findings; 0: all */
    uint32_t *order;       /* rows of ranks, sorted; those aside are left out */
    uint64_t n_order;
};

/* Growth of a step's peak or of what is kept after it, whichever is more; NAN: not known. */
double tmk_fleet_growth(const struct tmk_cluster_rank *r);

/* Sort the ranks. `order` is the caller's to free. */
void tmk_fleet_sort_ranks(struct tmk_fleet_answer *a, enum tmk_fleet_sort by);

/* The command that looks closer, for a shell here; NULL: none. It lives as long as the cluster. */
const char *tmk_fleet_command(const struct tmk_fleet_answer *a,
                              const struct tmk_cluster_finding *f);

/* Print at most `width` columns. */
void tmk_fleet_text(const struct tmk_fleet_answer *a, FILE *out, unsigned width, bool colour);
/* Print one object; `lines` as for tmk_json_init(). */
void tmk_fleet_json(const struct tmk_fleet_answer *a, FILE *out, unsigned lines);

#endif
