/* SPDX-License-Identifier: MIT */
/* record/identity/identity.h - who this process is: names of its files and the header's text.
 *
 * Read once, when arming, from /proc, the environment and the system. Only what is named in
 * docs/format.md is kept: no environment, and command-line values that look like secrets are
 * replaced. No malloc, no stdio. */
#ifndef TMK_RECORD_IDENTITY_H
#define TMK_RECORD_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Places among the processes of a job, -1: not known. Of RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK,
 * PMI_RANK and their kin. */
struct tmk_ranks {
    int64_t rank;
    int64_t world_size;
    int64_t local_rank;
    int64_t local_size; /* ranks on this node */
};

/* Read them from the environment: on a thread of the program, never on the helper thread, which
 * does not know when the program changes its environment. */
void tmk_ranks_read(struct tmk_ranks *ranks);

/* Whether a list such as "0,8-15" has this rank in it. True for an empty list, for one that is
 * wrongly written, and for a process without a rank: when in doubt, watch. */
bool tmk_ranks_include(const char *list, int64_t rank);

struct tmk_identity {
    char host[64];
    uint32_t pid;
    struct tmk_ranks ranks;
    uint64_t start_realtime_ns;
    uint8_t trace_id[16];
};

void tmk_identity_init(struct tmk_identity *id, const struct tmk_ranks *ranks);

/* `FOLDER/HOST.rRANK.PID.START.trace` */
void tmk_identity_trace_path(const struct tmk_identity *id, const char *folder,
                             struct tmk_text *out);

/* `FOLDER/tidemark.UID.PID.START.ring` */
void tmk_identity_ring_path(const struct tmk_identity *id, const char *folder,
                            struct tmk_text *out);

struct tmk_identity_extra { /* what the header says beside */
    uint64_t start_monotonic_ns;
    uint64_t ticks_per_second; /* 0: not known */
    uint64_t max_size_bytes;
    const char *ring_path;    /* NULL: none */
    const char *control_path; /* of the control socket; NULL: none */
};

/* The header's info text. */
void tmk_identity_info(const struct tmk_identity *id, const struct tmk_identity_extra *extra,
                       struct tmk_text *out);

#endif
